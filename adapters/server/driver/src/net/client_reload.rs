//! New certificates for clients while the server runs, as [`reload`](crate::net::reload) has them for links between servers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use quorate_tls::ClientTls;

use crate::net::client_tls::ClientSecure;
use crate::net::events::Shared;
use crate::runtime::Runtime;
use crate::threads::offload;

/// Looks for as long as the server runs. Connections that are open stay; those to come have what is there then.
pub(crate) async fn watch<R: Runtime>(
    runtime: R,
    shared: Arc<Shared>,
    secure: Arc<ClientSecure>,
    every: Duration,
) -> Infallible {
    let sid = shared.id.0;
    let mut seen = secure.marks();
    let mut failed = false;
    loop {
        runtime.sleep(every).await;
        let (settings, before) = (secure.settings(), seen.clone());
        let looked = offload("quorate-stores", move || {
            let now = ClientTls::marks_of(&settings);
            // All are good together, or the old ones stay.
            (now != before).then(|| (now, ClientTls::open(settings)))
        });
        let Ok(Some((now, opened))) = looked.await else { continue };
        match opened {
            Ok(tls) => {
                for notice in tls.notices() {
                    tracing::warn!(event = "tls.notice", sid, "{notice}");
                }
                let own = tls.own();
                tracing::info!(
                    event = "tls.reloaded",
                    sid,
                    "new stores, for clients to come: {own}"
                );
                secure.replace(tls);
                (seen, failed) = (now, false);
            }
            // Half written, perhaps: it is tried again at the next look, and said once.
            Err(error) => {
                if !failed {
                    let what = "the stores for clients have changed, and the old ones stay";
                    tracing::warn!(event = "tls.reload_failed", sid, %error, "{what}");
                }
                failed = true;
            }
        }
    }
}

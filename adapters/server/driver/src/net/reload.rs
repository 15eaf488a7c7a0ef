//! New certificates while the server runs: the stores are looked at now and then, and read again when they have changed.
//!
//! ZooKeeper watches the folder of a store for its name, and so misses the secrets of Kubernetes, whose files are links into a
//! folder that is swapped. Here each path is followed every time.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use quorate_tls::{Marks, Tls, TlsError};

use crate::net::events::Shared;
use crate::net::tls::Secure;
use crate::runtime::Runtime;
use crate::threads::offload;

/// Looks for as long as the server runs. Links that are up stay; those to come have what is there then.
pub(crate) async fn watch<R: Runtime>(
    runtime: R,
    shared: Arc<Shared>,
    secure: Arc<Secure>,
    every: Duration,
) -> Infallible {
    let sid = shared.id.0;
    let mut seen = secure.marks();
    let mut failed = false;
    loop {
        runtime.sleep(every).await;
        let (settings, before) = (secure.settings(), seen.clone());
        let looked = offload("quorate-stores", move || {
            let now = Marks::of(&settings);
            // All are good together, or the old ones stay.
            (now != before).then(|| (now, Tls::open(settings)))
        });
        let Ok(Some((now, opened))) = looked.await else { continue };
        match opened {
            Ok(tls) => {
                for notice in tls.notices() {
                    tracing::warn!(event = "tls.notice", sid, "{notice}");
                }
                tracing::info!(
                    event = "tls.reloaded",
                    sid,
                    "new stores, for links to come: {}",
                    tls.own()
                );
                secure.replace(tls);
                (seen, failed) = (now, false);
            }
            // Half written, perhaps: it is tried again at the next look, and said once.
            Err(error) => {
                if !failed {
                    tell(sid, &error);
                }
                failed = true;
            }
        }
    }
}

fn tell(sid: i64, error: &TlsError) {
    tracing::warn!(event = "tls.reload_failed", sid, %error, "the stores have changed, and the old ones stay");
}

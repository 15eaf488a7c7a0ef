//! New certificates for clients while the server runs, as [`reload`](crate::net::reload) has them for links between servers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_tls::ClientTls;

use crate::net::client_tls::ClientSecure;
use crate::net::events::Shared;
use crate::runtime::Runtime;
use crate::threads::offload;

/// Looks for as long as the server runs: every so often, if that is wanted, and when it is asked to. Connections that are
/// open stay; those to come have what is there then.
pub(crate) async fn watch<R: Runtime>(
    runtime: R,
    shared: Arc<Shared>,
    secure: Arc<ClientSecure>,
) -> Infallible {
    let sid = shared.id.0;
    let every = secure.settings().reload;
    let mut seen = secure.marks();
    let mut failed = false;
    let mut told_at = None;
    loop {
        tell_overdue(sid, &secure, &mut told_at, runtime.now());
        let asked = shared.looks.clients.wait(&runtime, every).await;
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
                if !failed || asked {
                    let what = "the stores for clients have changed, and the old ones stay";
                    tracing::warn!(event = "tls.reload_failed", sid, %error, "{what}");
                }
                failed = true;
            }
        }
    }
}

/// Tells of lists that are overdue, once a day.
fn tell_overdue(sid: i64, secure: &ClientSecure, told_at: &mut Option<Instant>, now: Instant) {
    let overdue = secure.overdue();
    let told = told_at.is_some_and(|at| now.saturating_duration_since(at) < DAY);
    if overdue.is_empty() || told {
        return;
    }
    *told_at = Some(now);
    for list in overdue {
        tracing::warn!(event = "tls.notice", sid, "for clients: {list}");
    }
}

const DAY: Duration = Duration::from_secs(86_400);

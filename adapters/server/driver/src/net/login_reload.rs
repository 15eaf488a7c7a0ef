//! Who logs in between servers, read again when the JAAS file has changed. Links stay; those to come have what is there then.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::net::events::Shared;
use crate::net::sasl::Logins;
use crate::runtime::Runtime;
use crate::threads::offload;

/// Looks for as long as the server runs: every so often, if that is wanted, and when it is asked to.
pub(crate) async fn watch<R: Runtime>(
    runtime: R,
    shared: Arc<Shared>,
    logins: Arc<Logins>,
    every: Option<Duration>,
) -> Infallible {
    let sid = shared.id.0;
    let mut failed = false;
    loop {
        let asked = shared.looks.logins.wait(&runtime, every).await;
        let settings = logins.settings().clone();
        let looked = offload("quorate-jaas", move || settings.read()).await;
        // What a file with other users is told by is its content: it is short, and so is what is done for it.
        match looked {
            Ok(Ok(who)) => {
                if logins.replace(who) {
                    let file = logins.settings().file.display();
                    tracing::info!(event = "sasl.reloaded", sid, %file, "other logins, for links to come");
                }
                failed = false;
            }
            // Half written, perhaps: it is tried again at the next look, and said once.
            Ok(Err(error)) => {
                if !failed || asked {
                    let what = "who logs in between servers cannot be read, and stays as it was";
                    tracing::warn!(event = "sasl.reload_failed", sid, %error, "{what}");
                }
                failed = true;
            }
            // No thread: at the next look.
            Err(_) => {}
        }
    }
}

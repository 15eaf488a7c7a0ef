//! Accepting at one listening socket, for as long as the server runs.
//!
//! When the system refuses to accept, out of descriptors say, the socket tries again; one that goes on to fail for another
//! reason is opened anew. What becomes of a connection, and who has to hear of a socket that fails, is its [`Door`]'s.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use futures_lite::future::{poll_once, yield_now};

use crate::net::events::Shared;
use crate::runtime::Runtime;

/// What stands behind a listening socket.
pub(super) trait Door<R: Runtime>: Send + Sync {
    /// Which port it is, for the log.
    fn name(&self) -> &'static str;

    /// Takes note of whether the socket fails: said again for as long as it does.
    fn report(&self, failing: bool) -> impl Future<Output = ()> + Send;

    /// A socket is open, for the first time or anew.
    fn opened(&self, listener: &R::Listener) {
        let _ = listener;
    }

    /// Takes a connection, or closes it.
    fn admit(&self, stream: R::Stream, remote: SocketAddr);
}

/// Accepts until it is dropped.
pub(super) async fn accept_all<R: Runtime>(
    runtime: &R,
    shared: &Shared,
    at: SocketAddr,
    listener: R::Listener,
    door: impl Door<R>,
) {
    let (mut rest, mut errors) = (ACCEPT_RETRY_MIN, 0);
    door.opened(&listener);
    let mut listener = Some(listener);
    loop {
        let accepted = match &listener {
            Some(listener) => accept(runtime, listener, &door, &mut errors).await.map(Some),
            None => runtime.listen(at).await.map(|opened| {
                door.opened(&opened);
                listener = Some(opened);
                None
            }),
        };
        let error = match accepted {
            Ok(None) => continue,
            Ok(Some((stream, remote))) => {
                (rest, errors) = (ACCEPT_RETRY_MIN, 0);
                door.admit(stream, remote);
                // While strangers come one after the other a socket never waits: those whose places they take have to get a
                // turn to end, and to give their descriptors back. (Not every runtime takes turns by itself.)
                yield_now().await;
                continue;
            }
            Err(error) => error,
        };
        door.report(true).await;
        errors += 1;
        // A descriptor that is given up when there are none may not come back.
        let anew = errors % ERRORS_FOR_GOOD == 0 && !lacks_descriptors(&error);
        if let Some(suppressed) = shared.warnings.permit("port.failed", None, runtime.now()) {
            let then = if anew { "opening the port anew" } else { "trying again" };
            tracing::warn!(
                event = "port.failed", sid = shared.id.0, port = door.name(), %at, %error, suppressed,
                "cannot accept connections, {then}"
            );
        }
        if lacks_descriptors(&error) {
            // Connections that exist live on, and one that ends gives its own back.
            runtime.sleep(DESCRIPTOR_WAIT).await;
            continue;
        }
        runtime.sleep(rest).await;
        rest = (rest * 2).min(ACCEPT_RETRY_MAX);
        if anew {
            listener = None;
        }
    }
}

/// Waits for the next connection. A socket that lets us wait works.
async fn accept<R: Runtime>(
    runtime: &R,
    listener: &R::Listener,
    door: &impl Door<R>,
    errors: &mut u32,
) -> io::Result<(R::Stream, SocketAddr)> {
    let mut accepting = pin!(runtime.accept(listener));
    match poll_once(accepting.as_mut()).await {
        Some(Err(error)) => Err(error),
        Some(Ok(accepted)) => {
            door.report(false).await;
            Ok(accepted)
        }
        None => {
            *errors = 0;
            door.report(false).await;
            accepting.await
        }
    }
}

/// Whether it is descriptors that the process or the system has none left of (EMFILE, ENFILE; WSAEMFILE): the
/// socket itself is well then.
fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24 | 10_024))
}

/// The first wait after the system refused to accept.
const ACCEPT_RETRY_MIN: Duration = Duration::from_millis(10);
/// The wait for descriptors.
const DESCRIPTOR_WAIT: Duration = Duration::from_millis(100);
/// The longest such wait.
const ACCEPT_RETRY_MAX: Duration = Duration::from_secs(1);
/// After so many errors in a row, some 150 ms, a socket is taken for broken and opened anew; again after as many.
const ERRORS_FOR_GOOD: u32 = 4;

//! Waiting for service: what surely did not happen is asked for again.
//!
//! ```text
//!   ask ──► refused, or lost ──► a pause ──► a server leads ──► ask again
//!             surely nothing        └── not as long as there is patience ──► how long, and what for
//! ```
//!
//! While there is no leader a server refuses at once, and a change of leader may cost a request its place;
//! neither says anything about the request. What may have happened is never asked for a second time.

use std::time::{Duration, Instant};

use futures_lite::future::or;
use quorate_leadership::boot_time;

use crate::runtime::Runtime;
use crate::status::Published;

/// How long a caller waits, and how long it has been.
pub(crate) struct Patience<'a, R> {
    runtime: &'a R,
    published: &'a Published,
    /// When it was asked for the first time.
    asked: Instant,
    /// The same by the runtime's clock, which costs several looks at clocks: most callers never wait.
    begun: Option<Instant>,
    length: Duration,
    pause: Duration,
}

impl<'a, R: Runtime> Patience<'a, R> {
    pub(crate) fn new(runtime: &'a R, published: &'a Published, length: Duration) -> Self {
        let (asked, pause) = (boot_time::now(), PAUSE_MIN);
        Self { runtime, published, asked, begun: None, length, pause }
    }

    /// Waits until it is worth another try.
    ///
    /// # Errors
    ///
    /// How long it was waited, if there is no patience left.
    pub(crate) async fn wait(&mut self) -> Result<(), Duration> {
        let (now, asked) = (self.runtime.now(), self.asked);
        let begun = || now.checked_sub(boot_time::since(asked)).unwrap_or(now);
        let begun = *self.begun.get_or_insert_with(begun);
        let waited = now.saturating_duration_since(begun);
        let left = self.length.saturating_sub(waited);
        let (runtime, published, pause) = (self.runtime, self.published, self.pause);
        self.pause = (2 * pause).min(PAUSE_MAX);
        let again = async {
            // A caller that is refused although there is a leader must not spin.
            runtime.sleep(pause).await;
            // Asked for anew each time: a server that has lost its leader and found the same one again has seen no
            // change. None: the server has ended, and the next try says so.
            published.leaders().led().await;
            true
        };
        let over = async {
            runtime.sleep(left).await;
            false
        };
        if !left.is_zero() && or(again, over).await {
            return Ok(());
        }
        Err(self.runtime.now().saturating_duration_since(begun))
    }
}

/// The first pause before another try.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The longest; each is twice the one before.
const PAUSE_MAX: Duration = Duration::from_millis(100);

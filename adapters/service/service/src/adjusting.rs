//! Settings that an operator changes while the service runs: what is answered, and how much there may be of something.

use alloc::sync::Arc;
use core::time::Duration;

use crate::options::{Options, Sasl, Words};
use crate::service::Service;

/// Settings of [`Options`] that may change while a service runs. What is open, watched or negotiated by then stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjustment {
    /// See [`Options::words`].
    pub words: Words,
    /// See [`Options::session_timeout_min`]; for sessions that begin from now on.
    pub session_timeout_min: Option<Duration>,
    /// See [`Options::session_timeout_max`]; the same.
    pub session_timeout_max: Option<Duration>,
    /// See [`Options::watches_per_client_max`].
    pub watches_per_client_max: usize,
    /// See [`Options::watches_max`].
    pub watches_max: usize,
}

impl From<Options> for Adjustment {
    fn from(options: Options) -> Self {
        Self {
            words: options.words,
            session_timeout_min: options.session_timeout_min,
            session_timeout_max: options.session_timeout_max,
            watches_per_client_max: options.watches_per_client_max,
            watches_max: options.watches_max,
        }
    }
}

impl Service {
    /// From now on these count.
    pub fn adjust(&mut self, to: Adjustment) {
        let options = &mut self.options;
        options.words = to.words;
        options.session_timeout_min = to.session_timeout_min;
        options.session_timeout_max = to.session_timeout_max;
        options.watches_per_client_max = to.watches_per_client_max;
        options.watches_max = to.watches_max;
    }

    /// From now on clients log in so. Who has logged in stays.
    pub fn adopt_logins(&mut self, sasl: Arc<Sasl>) {
        self.options.sasl = Some(sasl);
    }
}

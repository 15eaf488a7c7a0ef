//! The recorder: an interface that is told every input and every output of a server.
//!
//! ```text
//!   starts(config, durable)   hears(input), does(outputs)   hears(input), does(outputs)   …
//! ```
//!
//! These calls are a whole life: a [`Peer`](crate::peer::Peer) made of the same configuration and the same
//! disk that is stepped through the same inputs says the same, output by output. So what a server recorded
//! can be gone through again, elsewhere and later, by a debugger or by a checker of rules.
//!
//! The core itself never calls it: what drives a peer makes these calls, the driver and the simulator alike.

use core::fmt;

use crate::config::Config;
use crate::durable::Durable;
use crate::input::Input;
use crate::output::Output;

/// Listens to one server. It only listens: nothing that it does changes what the server does, but it is
/// called between two steps, so it should be quick.
///
/// What it is shown is borrowed, and cheap to clone: payloads are shared.
pub trait Recorder: fmt::Debug + Send {
    /// A server starts, in its first or another life; what was not carried out of the life before never
    /// will be.
    fn starts(&mut self, config: &Config, durable: &Durable);

    /// It is about to hear this. What it says to it comes next, unless it panics.
    fn hears(&mut self, input: &Input);

    /// What it says to what it heard last. None of it has been carried out yet, so the part that hears of it
    /// records that later.
    fn does(&mut self, outputs: &[Output]);
}

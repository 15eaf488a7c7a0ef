//! Leadership by a lease: one key that one candidate holds, for as long as it renews it.

mod boundary;
mod record;

use alloc::vec::Vec;

pub use crate::recipe::lease::boundary::{
    Answer, Call, Config, Event, Expiry, Held, Input, Output,
};
pub use crate::recipe::lease::record::Record;
use crate::recipe::terms::{ConfigError, Token};
use crate::time::Instant;

/// One candidate for one lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    config: Config,
}

impl Candidate {
    /// A candidate that has not begun.
    ///
    /// # Errors
    ///
    /// If `config` cannot work.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config })
    }

    /// What has to be done because of `input`.
    pub fn step(&mut self, input: Input) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.step_into(input, &mut outputs);
        outputs
    }

    /// The same, appended to `outputs`.
    pub fn step_into(&mut self, _input: Input, _outputs: &mut Vec<Output>) {
        let _ = &self.config;
    }

    /// The earliest time at which a [`Event::Tick`] is due.
    pub const fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The token of our term, if we lead.
    pub const fn leads(&self) -> Option<Token> {
        None
    }

    /// Until when our leadership is confirmed.
    pub const fn confirmed_until(&self) -> Option<Instant> {
        None
    }
}

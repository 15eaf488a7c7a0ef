//! Leadership by offers: one node for each candidate, in a row.

mod boundary;
mod names;

use alloc::vec::Vec;

pub use crate::recipe::offer::boundary::{
    Answer, Call, Config, Event, Input, Notice, Output, Session, State,
};
pub use crate::recipe::offer::names::{Entry, Naming, queue};
use crate::recipe::terms::{ConfigError, Token};
use crate::time::Instant;

/// One candidate among those that make offers under one root.
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

    /// Where it stands.
    pub const fn state(&self) -> State {
        State::Stop
    }

    /// The name of our offer, if we have one.
    pub const fn offer(&self) -> Option<&str> {
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

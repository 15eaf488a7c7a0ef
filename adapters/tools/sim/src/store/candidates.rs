//! A candidate as the store sees it: one trait over the offer recipe and the lease recipe.

mod lease;
mod offers;

use std::fmt;
use std::time::Duration;

use quorate_core::recipe::{Attempt, Failure, LeadershipChange, SessionId, Token};
use quorate_core::time::Instant;

use crate::call::{Op, Reply};

pub use lease::Lease;
pub use offers::Offers;

/// What happens to a candidate.
#[derive(Clone, Debug)]
pub enum Happening {
    /// Time has passed.
    Tick,
    /// It is to lead.
    Start,
    /// It is to end.
    Stop,
    /// Its guards are gone.
    Released,
    /// It has a session.
    Connected(SessionId, Duration),
    /// Its connection is lost.
    Suspended,
    /// Its session is over.
    Expired,
    /// What keeps the session alive was sent then.
    Renewed(SessionId, Instant),
    /// A call was answered.
    Done(Attempt, Result<Reply, Failure>),
    /// A watch has fired; the node is gone, or it is not.
    Fired(Attempt, bool),
}

/// What it wants.
#[derive(Clone, Debug)]
pub enum Wish {
    /// To be done by the store.
    Op(Attempt, Op),
    /// To be told to the guards.
    Leadership(LeadershipChange),
    /// It has ended.
    Stopped,
}

/// A candidate of one of the recipes.
pub trait Recipe: fmt::Debug {
    /// When something is due.
    fn deadline(&self) -> Option<Instant>;

    /// What it does about what happens.
    fn step(&mut self, at: Instant, happening: Happening) -> Vec<Wish>;

    /// The token of its term.
    fn leads(&self) -> Option<Token>;

    /// The node that it has, if it has one of its own.
    fn node(&self) -> Option<&str>;

    /// Whether the store ends what is its when its session ends.
    fn goes_with_its_session(&self) -> bool {
        true
    }
}

impl<R: Recipe + ?Sized> Recipe for Box<R> {
    fn deadline(&self) -> Option<Instant> {
        (**self).deadline()
    }

    fn step(&mut self, at: Instant, happening: Happening) -> Vec<Wish> {
        (**self).step(at, happening)
    }

    fn leads(&self) -> Option<Token> {
        (**self).leads()
    }

    fn node(&self) -> Option<&str> {
        (**self).node()
    }

    fn goes_with_its_session(&self) -> bool {
        (**self).goes_with_its_session()
    }
}

//! One candidate: its recipe, its clock, its connection, its term.

use std::collections::VecDeque;

use quorate_core::recipe::{Attempt, SessionId, Token};
use quorate_core::time::Instant;

use super::network::Message;

#[derive(Clone, Debug)]
pub(super) struct Client<R> {
    pub(super) recipe: R,
    /// What its clock showed at the beginning, and by how many thousandths of a second it goes on in one.
    pub(super) offset: u64,
    pub(super) rate: u64,
    pub(super) link: u64,
    pub(super) session: Option<SessionId>,
    /// How much of the log it knows of.
    pub(super) seen: usize,
    pub(super) in_flight: Vec<Attempt>,
    /// When the newest heartbeat was sent that counts for sure; and when later ones were sent, and answered.
    pub(super) counted: Instant,
    pub(super) beats: VecDeque<(Instant, Instant)>,
    pub(super) paused: bool,
    pub(super) backlog: VecDeque<(u64, Message)>,
    pub(super) wanted: bool,
    pub(super) stopped: bool,
    pub(super) crashed: bool,
    pub(super) term: Option<Term>,
    /// Something has happened that may be a reason to make another offer.
    pub(super) may_offer: bool,
    /// An offer that was asked for, and no answer has come.
    pub(super) offering: Option<Attempt>,
    /// The node of the last one that was answered, whether it knows that or did not wait for the answer.
    pub(super) offered: Option<String>,
    /// The session in which guarded work began that still runs.
    pub(super) guards: Option<(Option<SessionId>, Token)>,
    pub(super) wake_at: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) token: Token,
    pub(super) until: Instant,
    pub(super) suspended: bool,
}

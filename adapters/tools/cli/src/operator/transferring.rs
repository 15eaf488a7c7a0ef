//! To whom a leadership is to go that an operator wants at another server, and when it is of use to try again: decided from
//! what is seen, without doing anything.
//!
//! ```text
//!   seen: who leads ──► next ──► Done         another server leads
//!            ▲                ├► Try(to) ──► a transfer; refused ──┐
//!            │                ├► Wait     ─────────────────────────┤
//!            └────────────────┼────────────────────────────────────┘
//!                             └► GiveUp       it can come to nothing
//! ```

use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::reasons::TransferRefused;

use super::questions::Successor;

/// What is seen of the ensemble.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// This server.
    pub(super) own: ServerId,
    /// Who leads an ensemble that serves, if it is known.
    pub(super) leader: Option<ServerId>,
    /// Who votes.
    pub(super) voters: Vec<ServerId>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// That one leads.
    Done(ServerId),
    /// Transfer the leadership: to that server, or to the best.
    Try(Option<ServerId>),
    /// Look again in a moment.
    Wait,
    /// Nothing can come of it.
    GiveUp(Hopeless),
}

/// Why nothing can come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Hopeless {
    /// This server is all there is.
    #[error("no other server votes")]
    Alone,
    /// The one that is wanted has no vote.
    #[error("server {0} has no vote")]
    NoVoter(ServerId),
    /// Only the leader has a leadership to give.
    #[error("server {0} leads: ask there")]
    Elsewhere(ServerId),
    /// No server of ours.
    #[error(transparent)]
    Never(TransferRefused),
}

/// A leadership on its way.
#[derive(Clone, Debug)]
pub(super) struct Transferring {
    to: Successor,
    /// Those that have been tried in this round.
    tried: Vec<ServerId>,
    /// Why it has come to nothing so far.
    pub(super) refused: Option<TransferRefused>,
}

impl Transferring {
    pub(super) const fn new(to: Successor) -> Self {
        Self { to, tried: Vec::new(), refused: None }
    }

    pub(super) fn next(&mut self, seen: &Seen) -> Next {
        match (seen.leader, self.to) {
            (None, _) => Next::Wait,
            (Some(leader), Successor::Server(to)) if leader.0 == to => Next::Done(leader),
            (Some(leader), Successor::Server(_)) if leader != seen.own => {
                Next::GiveUp(Hopeless::Elsewhere(leader))
            }
            (Some(leader), _) if leader != seen.own => Next::Done(leader),
            (Some(_), to) => self.choose(to, seen),
        }
    }

    /// This server leads.
    fn choose(&mut self, to: Successor, seen: &Seen) -> Next {
        let others = || seen.voters.iter().copied().filter(|id| *id != seen.own);
        if others().next().is_none() {
            return Next::GiveUp(Hopeless::Alone);
        }
        if let Some(never) = self.refused.filter(|why| self.is_final(why)) {
            return Next::GiveUp(Hopeless::Never(never));
        }
        let next = match to {
            Successor::Best if self.tried.is_empty() => return self.tries(None, seen.own),
            Successor::Best => None,
            Successor::Server(id) if !others().any(|other| other.0 == id) => {
                return Next::GiveUp(Hopeless::NoVoter(ServerId(id)));
            }
            Successor::Server(id) => Some(ServerId(id)).filter(|id| !self.tried.contains(id)),
            Successor::Lowest => others().filter(|id| !self.tried.contains(id)).min(),
        };
        match next {
            Some(to) => self.tries(Some(to), to),
            None => {
                self.tried.clear();
                Next::Wait
            }
        }
    }

    fn tries(&mut self, to: Option<ServerId>, mark: ServerId) -> Next {
        self.tried.push(mark);
        Next::Try(to)
    }

    /// Whether it is of no use to ask for that server again.
    fn is_final(&self, why: &TransferRefused) -> bool {
        matches!(self.to, Successor::Server(_)) && matches!(why, TransferRefused::Foreign(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(id: i64) -> ServerId {
        ServerId(id)
    }

    fn seen(leader: Option<i64>) -> Seen {
        Seen { own: s(3), leader: leader.map(s), voters: vec![s(1), s(2), s(3)] }
    }

    #[test]
    fn the_lowest_that_can_is_found_and_those_before_are_tried_again_later() {
        let mut transferring = Transferring::new(Successor::Lowest);
        assert_eq!(transferring.next(&seen(None)), Next::Wait, "it may be elected in a moment");
        assert_eq!(transferring.next(&seen(Some(3))), Next::Try(Some(s(1))));
        transferring.refused = Some(TransferRefused::Foreign(s(1)));
        assert_eq!(transferring.next(&seen(Some(3))), Next::Try(Some(s(2))));
        transferring.refused = Some(TransferRefused::Late(s(2)));
        assert_eq!(transferring.next(&seen(Some(3))), Next::Wait);
        assert_eq!(transferring.next(&seen(Some(3))), Next::Try(Some(s(1))));
        assert_eq!(transferring.next(&seen(Some(2))), Next::Done(s(2)));
    }

    #[test]
    fn what_is_of_no_use_is_not_waited_for() {
        let next = |to, leader| Transferring::new(to).next(&seen(Some(leader)));
        assert_eq!(next(Successor::Best, 2), Next::Done(s(2)), "it does not lead: so be it");
        assert_eq!(next(Successor::Server(3), 3), Next::Done(s(3)));
        let elsewhere = Next::GiveUp(Hopeless::Elsewhere(s(2)));
        assert_eq!(next(Successor::Server(1), 2), elsewhere);
        assert_eq!(next(Successor::Server(7), 3), Next::GiveUp(Hopeless::NoVoter(s(7))));
        let alone = Seen { own: s(3), leader: Some(s(3)), voters: vec![s(3)] };
        let next = Transferring::new(Successor::Best).next(&alone);
        assert_eq!(next, Next::GiveUp(Hopeless::Alone));
        let mut transferring = Transferring::new(Successor::Server(1));
        assert_eq!(transferring.next(&seen(Some(3))), Next::Try(Some(s(1))));
        let foreign = TransferRefused::Foreign(s(1));
        transferring.refused = Some(foreign);
        assert_eq!(transferring.next(&seen(Some(3))), Next::GiveUp(Hopeless::Never(foreign)));
    }
}

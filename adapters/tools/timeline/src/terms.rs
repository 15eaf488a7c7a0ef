//! Terms: from a server's decision to the next time that it looks for a leader.

use std::ops::Range;

use quorate_core::id::ServerId;
use quorate_core::vote::{Round, ServerState};

use crate::event::What;
use crate::lanes::Lanes;

/// A server leads, or follows.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) id: ServerId,
    pub(crate) leads: bool,
    pub(crate) leader: Option<ServerId>,
    pub(crate) round: Option<Round>,
    /// The decision.
    pub(crate) start: usize,
    /// Behind the last event.
    pub(crate) end: usize,
}

/// The terms of all servers, lane by lane.
pub(crate) fn terms(lanes: &Lanes) -> Vec<Term> {
    lanes.lanes.iter().flat_map(|lane| of_lane(lanes, lane.id, &lane.range)).collect()
}

fn of_lane(lanes: &Lanes, id: ServerId, range: &Range<usize>) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    let (mut open, mut round) = (false, None);
    for at in range.clone() {
        let next = match &lanes.events[at].what {
            What::Votes { round: of, .. } => {
                round = Some(*of);
                continue;
            }
            // A joiner goes into the round of those that have decided.
            What::Heard { state, round: of, .. } if *state != ServerState::Looking && !open => {
                round = Some(*of);
                continue;
            }
            What::Started | What::Stopped | What::State { to: ServerState::Looking, .. } => None,
            What::State { to, leader, .. } => {
                let leads = *to == ServerState::Leading;
                let leader = if leads { Some(id) } else { *leader };
                Some(Term { id, leads, leader, round, start: at, end: range.end })
            }
            _ => continue,
        };
        if let Some(last) = terms.last_mut().filter(|_| open) {
            last.end = at;
        }
        open = next.is_some();
        terms.extend(next);
    }
    terms
}

impl Term {
    /// The first event of it that is so.
    pub(crate) fn first(&self, lanes: &Lanes, is: &dyn Fn(&What) -> bool) -> Option<usize> {
        (self.start..self.end).find(|at| is(&lanes.events[*at].what))
    }

    /// What this leader tells of a learner, connection by connection.
    pub(crate) fn sessions(&self, lanes: &Lanes, of: ServerId) -> Vec<Vec<usize>> {
        let mut sessions: Vec<Vec<usize>> = Vec::new();
        let mut stage = u8::MAX;
        for at in self.start..self.end {
            let (learner, next) = match &lanes.events[at].what {
                What::Connected { learner } => (*learner, 0),
                What::Compared { learner } => (*learner, 1),
                What::Sync { learner, .. } => (*learner, 2),
                What::Learner { id, synced: true } => (*id, 3),
                _ => continue,
            };
            if learner != of {
                continue;
            }
            match sessions.last_mut().filter(|_| next > stage) {
                Some(session) => session.push(at),
                None => sessions.push(vec![at]),
            }
            stage = next;
        }
        sessions
    }
}

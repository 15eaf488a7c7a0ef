//! Java's votes. Its log tells a vote when the server hears its own notification, a while after others may have heard it,
//! and without a reason; both follow from what it heard before (`FastLeaderElection.lookForLeader`).

use std::collections::BTreeMap;

use quorate_core::id::ServerId;
use quorate_core::status::Phase;
use quorate_core::vote::{Round, ServerState, Vote};

use crate::event::{Event, What, set};

/// The events of a server, its votes among them where they were cast, without what only repeats.
pub(crate) fn with_votes(own: ServerId, events: impl Iterator<Item = Event>) -> Vec<Event> {
    let mut reader = Reader::of(own);
    for event in events {
        reader.take(event);
    }
    reader.out
}

struct Reader {
    own: ServerId,
    out: Vec<Event>,
    state: Option<ServerState>,
    /// Whom it follows, where that was said.
    leader: Option<ServerId>,
    phase: Option<Phase>,
    /// Where the election of this round began, in `out`.
    begin: Option<usize>,
    vote: Option<(Vote, Round)>,
    /// The round before a restart of the vote.
    round: Round,
    /// What was heard since the last vote, in `out`.
    candidates: Vec<usize>,
    /// What each said last.
    heard: BTreeMap<ServerId, (ServerState, Vote, Round)>,
    lost: Option<String>,
}

impl Reader {
    fn of(own: ServerId) -> Self {
        Self {
            own,
            out: Vec::new(),
            state: None,
            leader: None,
            phase: None,
            begin: None,
            vote: None,
            round: Round(0),
            candidates: Vec::new(),
            heard: BTreeMap::new(),
            lost: None,
        }
    }

    fn take(&mut self, event: Event) {
        match event.what.clone() {
            What::Heard { from, state, vote, round } if from == self.own => {
                if state == ServerState::Looking && self.begin.is_some() {
                    self.own_vote(event, vote, round);
                }
            }
            What::Heard { from, state, vote, round } => {
                if self.heard.insert(from, (state, vote, round)) != Some((state, vote, round)) {
                    self.candidates.push(self.out.len());
                    self.out.push(event);
                }
            }
            What::State { to, leader, why, .. } => {
                // One that follows on, behind a leader that was given the leadership, has decided as well.
                let another = self.leader.zip(leader).is_some_and(|(old, new)| old != new);
                if self.state != Some(to) || another {
                    self.becomes(event, to, leader, &why);
                }
            }
            What::Phase { to, .. } => {
                if self.phase != Some(to) {
                    self.phase = Some(to);
                    self.out.push(event);
                }
            }
            what => {
                match what {
                    What::Started => (self.state, self.phase, self.round) = (None, None, Round(0)),
                    What::Begins { .. } => {
                        self.begin = Some(self.out.len());
                        self.vote = None;
                        self.candidates.clear();
                        self.heard.clear();
                    }
                    What::Votes { vote, round, .. } => {
                        (self.vote, self.round) = (Some((vote, round)), round)
                    }
                    What::Lost { why } => self.lost = Some(why),
                    What::Unreachable { peer } if self.just_said(peer) => return,
                    _ => {}
                }
                self.out.push(event);
            }
        }
    }

    /// Whether what was said last, votes apart, is that this peer cannot be reached.
    fn just_said(&self, peer: ServerId) -> bool {
        let since = self.begin.unwrap_or(0);
        self.out[since..]
            .iter()
            .rev()
            .take(16)
            .any(|event| event.what == What::Unreachable { peer })
    }

    fn own_vote(&mut self, mut event: Event, vote: Vote, round: Round) {
        if self.vote == Some((vote, round)) {
            return;
        }
        let first = self.vote.is_none();
        let (cause, from) = if first && vote.leader == self.own {
            (self.begin, None)
        } else {
            let cause = self.candidates.iter().copied().find(|at| match self.out[*at].what {
                What::Heard { vote: heard, round: of, .. } => {
                    of == round && (heard == vote || vote.leader == self.own)
                }
                _ => false,
            });
            let from = cause.and_then(|at| match self.out[at].what {
                What::Heard { from, .. } => Some(from),
                _ => None,
            });
            (cause, from)
        };
        let before = self.vote.map_or(self.round, |(_, round)| round);
        let why = match (from, self.vote) {
            (None, _) if vote.leader == self.own => "a round begins with one's own vote".to_owned(),
            (None, _) => String::new(),
            (Some(from), Some(_)) if round > before => {
                format!("round {round} > {before}, says {from}")
            }
            (Some(from), Some((old, _))) => match vote.better_than(&old) {
                Some(better) => format!("{better}, says {from}"),
                None => format!("says {from}"),
            },
            (Some(from), None) => format!("says {from}"),
        };
        event.what = What::Votes { vote, round, why, says: from };
        (self.vote, self.round) = (Some((vote, round)), round);
        let Some(cause) = cause else {
            self.candidates.clear();
            self.out.push(event);
            return;
        };
        (event.at, event.fine) = (self.out[cause].at, self.out[cause].fine);
        self.out.insert(cause + 1, event);
        self.candidates.retain(|at| *at > cause);
        self.candidates.iter_mut().for_each(|at| *at += 1);
    }

    fn becomes(&mut self, mut event: Event, to: ServerState, leader: Option<ServerId>, said: &str) {
        let was_looking = self.state == Some(ServerState::Looking);
        (self.state, self.leader) = (Some(to), leader);
        if to == ServerState::Looking {
            self.phase = None;
            if let (What::State { why, .. }, Some(lost)) = (&mut event.what, self.lost.take()) {
                if why.is_empty() {
                    *why = lost;
                }
            }
        } else if was_looking && leader.is_none() && said.is_empty() {
            event.what = self.decided(to);
        }
        self.out.push(event);
    }

    /// How a Java server came to its decision.
    fn decided(&self, to: ServerState) -> What {
        let settled = self
            .heard
            .iter()
            .find(|(id, (state, vote, _))| *state == ServerState::Leading && vote.leader == **id);
        let alike = self.vote.map(|(own, round)| {
            let mut members: Vec<_> = self
                .heard
                .iter()
                .filter(|(_, (state, vote, of))| {
                    *state == ServerState::Looking && vote.leader == own.leader && *of == round
                })
                .map(|(id, _)| *id)
                .chain([self.own])
                .collect();
            members.sort();
            (own.leader, members)
        });
        match (settled, alike) {
            (Some((leader, _)), alike)
                if alike.as_ref().is_none_or(|(of, members)| of != leader || members.len() < 2) =>
            {
                let follows: Vec<_> = self
                    .heard
                    .iter()
                    .filter(|(_, (state, vote, _))| {
                        *state != ServerState::Looking && vote.leader == *leader
                    })
                    .map(|(id, _)| *id)
                    .collect();
                let why = format!("quorum {} already follows {leader}", set(&follows));
                What::State { to, leader: Some(*leader), members: Vec::new(), why }
            }
            (_, Some((leader, members))) => {
                let why = format!("quorum {} for {leader}", set(&members));
                What::State { to, leader: Some(leader), members, why }
            }
            (_, None) => What::State { to, leader: None, members: Vec::new(), why: String::new() },
        }
    }
}

//! A candidate of the offer recipe: what an adapter of it to this store has to do.

use std::time::Duration;

use quorate_core::recipe::offer::{Entry, Naming, Session};
use quorate_core::recipe::{ConfigError, Token, offer};
use quorate_core::time::Instant;

use super::{Happening, Recipe, Wish};
use crate::call::{Node, Op, Reply};
use crate::store::plan::Plan;
use crate::store::world::Election;

/// A candidate of the offer recipe.
#[derive(Clone, Debug)]
pub struct Offers {
    candidate: offer::Candidate,
    /// The store tells when a key was created, and numbers no names.
    revisions: bool,
}

impl Offers {
    /// With this configuration.
    ///
    /// # Errors
    ///
    /// If it cannot work.
    pub fn new(config: offer::Config) -> Result<Self, ConfigError> {
        let revisions = config.naming == Naming::Lease;
        let candidate = offer::Candidate::new(config)?;
        Ok(Self { candidate, revisions })
    }

    /// An election among candidates of this recipe.
    ///
    /// # Panics
    ///
    /// If they cannot work.
    #[expect(clippy::expect_used, reason = "a mistake of the test")]
    pub fn elect(plan: Plan, naming: Naming) -> Election<Self> {
        let mut election = Election::new(plan, |number, seed| {
            Self::new(offer::Config {
                naming,
                call_deadline: Some(Duration::from_secs(3)),
                backoff_max: Duration::from_secs(2),
                seed,
                ..offer::Config::new(format!("host {number}"), 1 + number as u128)
            })
            .expect("it can work")
        });
        if naming == Naming::Lease {
            election.give_root();
        }
        election
    }

    /// The machine.
    pub const fn candidate(&self) -> &offer::Candidate {
        &self.candidate
    }

    fn op(&self, call: offer::Call) -> Op {
        match call {
            offer::Call::EnsureRoot => Op::Root,
            offer::Call::Create { session, name, data } => {
                Op::Create { name, numbered: !self.revisions, owner: Some(session), data }
            }
            offer::Call::List { fresh } => Op::List { fresh },
            offer::Call::Read { name, watch } => Op::Read { name, watch },
            offer::Call::Delete { name, created } => {
                Op::Delete { name, version: None, created: created.map(|Token(created)| created) }
            }
        }
    }

    fn answer(&self, reply: Reply) -> offer::Answer {
        match reply {
            Reply::Done => offer::Answer::Done,
            Reply::Listed(listed) => {
                let entry = |(name, created): (String, u64)| Entry {
                    name,
                    created: Some(created).filter(|_| self.revisions),
                };
                offer::Answer::Listed(listed.into_iter().map(entry).collect())
            }
            Reply::Made(name, _) => offer::Answer::Created { name },
            Reply::Read(Node { data, owner, created, .. }) => {
                offer::Answer::Read { data, owner, created: Token(created) }
            }
        }
    }
}

impl Recipe for Offers {
    fn deadline(&self) -> Option<Instant> {
        self.candidate.deadline()
    }

    fn step(&mut self, at: Instant, happening: Happening) -> Vec<Wish> {
        let event = match happening {
            Happening::Tick => offer::Event::Tick,
            Happening::Start => offer::Event::Start,
            Happening::Stop => offer::Event::Stop,
            Happening::Released => offer::Event::Released,
            Happening::Connected(session, timeout) => {
                offer::Event::Session(Session::Connected { session, timeout })
            }
            Happening::Suspended => offer::Event::Session(Session::Suspended),
            Happening::Expired => offer::Event::Session(Session::Expired),
            Happening::Renewed(session, sent) => {
                offer::Event::Session(Session::Renewed { session, sent })
            }
            Happening::Done(attempt, result) => {
                offer::Event::Done { attempt, result: result.map(|reply| self.answer(reply)) }
            }
            Happening::Fired(attempt, gone) => offer::Event::Fired { attempt, gone },
        };
        let outputs = self.candidate.step(offer::Input { at, event });
        let wish = |output| match output {
            offer::Output::Call { attempt, call } => Some(Wish::Op(attempt, self.op(call))),
            offer::Output::Leadership(change) => Some(Wish::Leadership(change)),
            offer::Output::Stopped => Some(Wish::Stopped),
            offer::Output::Notice(_) | offer::Output::Trouble { .. } => None,
        };
        outputs.into_iter().filter_map(wish).collect()
    }

    fn leads(&self) -> Option<Token> {
        self.candidate.leads()
    }

    fn node(&self) -> Option<&str> {
        self.candidate.offer()
    }
}

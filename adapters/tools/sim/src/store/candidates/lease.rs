//! A candidate of the lease recipe: what an adapter of it to this store has to do.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::recipe::lease::{Expiry, Held, Record};
use quorate_core::recipe::{Attempt, ConfigError, Failure, SessionId, Token, lease};
use quorate_core::time::Instant;

use super::{Happening, Recipe, Wish};
use crate::call::{Node, Op, Reply};
use crate::store::plan::Plan;
use crate::store::world::Election;

/// A candidate of the lease recipe.
#[derive(Clone, Debug)]
pub struct Lease {
    candidate: lease::Candidate,
    expiry: Expiry,
    /// What the store counts is older than what it has answered.
    counted: bool,
    session: Option<SessionId>,
    /// The reads that are not answered, and those of them whose connection was lost meanwhile.
    reads: Vec<Attempt>,
    late: Vec<Attempt>,
    /// Those that have left a watch, which goes with the connection.
    watches: Vec<Attempt>,
    /// Renewals that the store answers with nothing, and the version that they are of.
    renewals: Vec<(Attempt, u64)>,
}

/// Whether it was among them, and is no more.
fn remove(attempts: &mut Vec<Attempt>, attempt: Attempt) -> bool {
    let before = attempts.len();
    attempts.retain(|other| *other != attempt);
    attempts.len() < before
}

/// The key that is fought for.
const KEY: &str = "lease";

impl Lease {
    /// With this configuration.
    ///
    /// # Errors
    ///
    /// If it cannot work.
    pub fn new(config: lease::Config) -> Result<Self, ConfigError> {
        let expiry = config.expiry;
        let candidate = lease::Candidate::new(config)?;
        Ok(Self {
            candidate,
            expiry,
            counted: false,
            session: None,
            reads: Vec::new(),
            late: Vec::new(),
            watches: Vec::new(),
            renewals: Vec::new(),
        })
    }

    /// An election among candidates of this recipe; their leases last as long as sessions do, or up to twice
    /// as long where others observe them: each has a duration of its own.
    ///
    /// # Panics
    ///
    /// If they cannot work.
    #[expect(clippy::expect_used, reason = "a mistake of the test")]
    pub fn elect(plan: Plan, expiry: Expiry) -> Election<Self> {
        let (timeout, counted) = (plan.timeout, plan.touches);
        Election::new(plan, |number, seed| {
            let longer = expiry == Expiry::Observed && number % 2 == 0;
            let duration = if longer { 2 * timeout } else { timeout };
            let unique = (1 + number as u128) << 64;
            let config = lease::Config::new(format!("host {number}"), unique, duration);
            let candidate =
                Self::new(lease::Config { expiry, seed, ..config }).expect("it can work");
            Self { counted, ..candidate }
        })
    }

    /// The machine.
    pub const fn candidate(&self) -> &lease::Candidate {
        &self.candidate
    }

    fn op(&mut self, attempt: Attempt, call: lease::Call) -> Op {
        let name = KEY.to_owned();
        match call {
            lease::Call::Read { watch } => {
                self.reads.push(attempt);
                Op::Read { name, watch }
            }
            lease::Call::Put { record, expect: None } => {
                let owner = self.session.filter(|_| self.expiry == Expiry::Store);
                Op::Create { name, numbered: false, owner, data: record.encode() }
            }
            lease::Call::Put { record, expect: Some(version) } => {
                Op::Write { name, data: record.encode(), version }
            }
            lease::Call::Renew { version, .. } if self.expiry == Expiry::Store => {
                self.renewals.push((attempt, version));
                Op::Ping
            }
            lease::Call::Renew { version, record } => {
                Op::Write { name, data: record.encode(), version }
            }
            lease::Call::Delete { version } => {
                Op::Delete { name, version: Some(version), created: None }
            }
        }
    }

    fn answer(&mut self, attempt: Attempt, reply: Reply) -> lease::Answer {
        if let Some(at) = self.renewals.iter().position(|(renewal, _)| *renewal == attempt) {
            let (_, version) = self.renewals.swap_remove(at);
            return lease::Answer::Written { version, created: version };
        }
        match reply {
            Reply::Done | Reply::Listed(_) => lease::Answer::Done,
            Reply::Made(_, node) => {
                lease::Answer::Written { version: node.version, created: node.created }
            }
            Reply::Read(Node { data, created, version, .. }) => {
                let unknown = Record {
                    holder: 0,
                    identity: Bytes::new(),
                    duration: Duration::ZERO,
                    taken: 0,
                    released: false,
                };
                let record = Record::decode(&data).unwrap_or(unknown);
                lease::Answer::Found(Some(Held { record, version, created }))
            }
        }
    }
}

impl Recipe for Lease {
    fn deadline(&self) -> Option<Instant> {
        self.candidate.deadline()
    }

    fn step(&mut self, at: Instant, happening: Happening) -> Vec<Wish> {
        let mut wishes = Vec::new();
        let events = match happening {
            Happening::Tick => vec![lease::Event::Tick],
            Happening::Start => vec![lease::Event::Start],
            Happening::Stop => vec![lease::Event::Stop],
            Happening::Released => vec![lease::Event::Released],
            Happening::Connected(session, _) => {
                self.session = Some(session);
                let lost = std::mem::take(&mut self.watches).into_iter();
                lost.map(|attempt| lease::Event::Fired { attempt, gone: false }).collect()
            }
            Happening::Suspended => {
                self.late.append(&mut self.reads);
                vec![lease::Event::Suspended]
            }
            Happening::Expired => {
                self.session = None;
                self.late.append(&mut self.reads);
                vec![lease::Event::Expired]
            }
            Happening::Renewed(_, sent) if self.counted => vec![lease::Event::Counted { sent }],
            Happening::Renewed(..) => Vec::new(),
            Happening::Done(attempt, result) => {
                let is_late = remove(&mut self.late, attempt);
                let is_read = remove(&mut self.reads, attempt) || is_late;
                let result = match result {
                    Ok(reply) => Ok(self.answer(attempt, reply)),
                    Err(Failure::Absent) if is_read => Ok(lease::Answer::Found(None)),
                    Err(failure) => Err(failure),
                };
                let watches = is_read && result.is_ok();
                let mut events = vec![lease::Event::Done { attempt, result }];
                if watches && is_late {
                    // The watch was lost before it was known.
                    events.push(lease::Event::Fired { attempt, gone: false });
                } else if watches {
                    self.watches.push(attempt);
                }
                events
            }
            Happening::Fired(attempt, gone) => {
                remove(&mut self.watches, attempt);
                vec![lease::Event::Fired { attempt, gone }]
            }
        };
        for event in events {
            for output in self.candidate.step(lease::Input { at, event }) {
                match output {
                    lease::Output::Call { attempt, call } => {
                        let op = self.op(attempt, call);
                        wishes.push(Wish::Op(attempt, op));
                    }
                    lease::Output::Leadership(change) => wishes.push(Wish::Leadership(change)),
                    lease::Output::Stopped => wishes.push(Wish::Stopped),
                    lease::Output::Leads(_) | lease::Output::Trouble { .. } => {}
                }
            }
        }
        wishes
    }

    fn leads(&self) -> Option<Token> {
        self.candidate.leads()
    }

    fn node(&self) -> Option<&str> {
        None
    }

    fn goes_with_its_session(&self) -> bool {
        self.expiry == Expiry::Store
    }
}

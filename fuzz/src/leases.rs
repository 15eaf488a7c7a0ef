//! One candidate for a lease, under arbitrary answers of a store: it leads no longer than what it has written
//! and what was acknowledged is sure to last, and its token comes from the write that took the key; an
//! answer to an earlier call changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use bytes::Bytes;
use quorate_core::recipe::lease::{
    Answer, Call, Candidate, Config, Event, Expiry, Held, Input, Output, Record,
};
use quorate_core::recipe::{Attempt, Failure, LeadershipChange};
use quorate_core::time::Instant;

use crate::guards::Guards;

/// A run: the expiry of a lease, and what happens.
#[derive(Arbitrary, Debug)]
struct Run {
    observed: bool,
    happens: Vec<Happens>,
}

/// Few versions, so that they meet.
#[derive(Arbitrary, Debug)]
enum Happens {
    Time { ms: u16 },
    Due,
    Start,
    Stop,
    Released,
    Suspended,
    Expired,
    Works { which: u8, version: u8 },
    Found { which: u8, whose: u8, version: u8, taken: u8, released: bool, seconds: u8 },
    Missing { which: u8 },
    Fails { which: u8, how: u8 },
    Stale { attempt: u8, gone: bool },
    Fired { which: u8, gone: bool },
}

/// More than this is never wanted at once.
const OUTPUTS_MAX: usize = 32;
const DURATION: Duration = Duration::from_secs(10);
/// For how long after it was sent a write is relied on.
const RELIED_ON: Duration = Duration::from_secs(9);

struct Case {
    candidate: Candidate,
    now: Instant,
    guards: Guards,
    /// Calls without an answer, and when they were made; watches that were left.
    open: BTreeMap<Attempt, (Call, Instant)>,
    watches: Vec<Attempt>,
    last_attempt: u64,
    /// The last write that we made and that has not failed.
    wrote: Option<Instant>,
    /// What we have written.
    ours: Vec<Record>,
}

/// Lets happen what these bytes say.
pub fn feed(data: &[u8]) {
    let Ok(run) = Run::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let expiry = if run.observed { Expiry::Observed } else { Expiry::Store };
    let config = Config { expiry, ..Config::new(&b"us"[..], 7, DURATION) };
    let mut case = Case {
        candidate: Candidate::new(config).expect("a good configuration"),
        now: Instant::ORIGIN,
        guards: Guards::default(),
        open: BTreeMap::new(),
        watches: Vec::new(),
        last_attempt: 0,
        wrote: None,
        ours: Vec::new(),
    };
    for happens in run.happens {
        if let Some(event) = case.event(happens) {
            case.step(event);
        }
    }
}

fn done(attempt: Attempt, result: Result<Answer, Failure>) -> Event {
    Event::Done { attempt, result }
}

impl Case {
    fn event(&mut self, happens: Happens) -> Option<Event> {
        Some(match happens {
            Happens::Time { ms } => {
                self.now = self.now + Duration::from_millis(u64::from(ms));
                Event::Tick
            }
            Happens::Due => {
                self.now = self.candidate.deadline().map_or(self.now, |due| due.max(self.now));
                Event::Tick
            }
            Happens::Start => Event::Start,
            Happens::Stop => Event::Stop,
            Happens::Released => {
                self.guards.go();
                Event::Released
            }
            Happens::Suspended => Event::Suspended,
            Happens::Expired => Event::Expired,
            Happens::Works { which, version } => {
                let (attempt, call, sent) = self.take(which)?;
                let version = u64::from(version) + 1;
                match call {
                    Call::Read { .. } => {
                        self.open.insert(attempt, (call, sent));
                        return None;
                    }
                    Call::Delete { .. } => done(attempt, Ok(Answer::Done)),
                    Call::Put { .. } | Call::Renew { .. } => {
                        self.wrote = self.wrote.max(Some(sent));
                        done(attempt, Ok(Answer::Written { version, created: 1 }))
                    }
                }
            }
            Happens::Found { which, whose, version, taken, released, seconds } => {
                self.found(which, whose, version, taken, released, seconds)?
            }
            Happens::Missing { which } => {
                let (attempt, watch) = self.take_read(which)?;
                if watch {
                    self.watches.push(attempt);
                }
                done(attempt, Ok(Answer::Found(None)))
            }
            Happens::Fails { which, how } => self.fails(which, how)?,
            Happens::Stale { attempt, gone } => {
                self.stale(Attempt(u64::from(attempt)), gone);
                return None;
            }
            Happens::Fired { which, gone } => {
                let at = usize::from(which) % self.watches.len().max(1);
                let attempt = *self.watches.get(at)?;
                self.watches.remove(at);
                Event::Fired { attempt, gone }
            }
        })
    }

    /// The store answers an open read with a record.
    fn found(
        &mut self,
        which: u8,
        whose: u8,
        version: u8,
        taken: u8,
        released: bool,
        seconds: u8,
    ) -> Option<Event> {
        let (attempt, watch) = self.take_read(which)?;
        if watch {
            self.watches.push(attempt);
        }
        let record = self.ours.iter().rev().nth(usize::from(whose % 4)).cloned();
        let record = record.unwrap_or_else(|| Record {
            holder: u128::from(whose % 2),
            identity: Bytes::from_static(b"another"),
            duration: Duration::from_secs(u64::from(seconds % 32)),
            taken: u64::from(taken),
            released,
        });
        let held = Held { record, version: u64::from(version) + 1, created: 1 };
        Some(done(attempt, Ok(Answer::Found(Some(held)))))
    }

    /// An open call fails.
    fn fails(&mut self, which: u8, how: u8) -> Option<Event> {
        let (attempt, call, sent) = self.take(which)?;
        let failures = [
            Failure::Unknown,
            Failure::Absent,
            Failure::Exists,
            Failure::Conflict,
            Failure::Denied,
            Failure::Unauthenticated,
            Failure::Expired,
            Failure::Rejected,
        ];
        let failure = failures[usize::from(how) % failures.len()];
        // What was refused may be found nevertheless; a renewal changes nothing that is found.
        let may = matches!(call, Call::Put { .. });
        if may || matches!(call, Call::Renew { .. }) && failure == Failure::Unknown {
            self.wrote = self.wrote.max(Some(sent));
        }
        Some(done(attempt, Err(failure)))
    }

    fn take(&mut self, which: u8) -> Option<(Attempt, Call, Instant)> {
        let attempt = *self.open.keys().nth(usize::from(which) % self.open.len().max(1))?;
        self.open.remove(&attempt).map(|(call, sent)| (attempt, call, sent))
    }

    fn take_read(&mut self, which: u8) -> Option<(Attempt, bool)> {
        let (attempt, call, sent) = self.take(which)?;
        if let Call::Read { watch } = call {
            return Some((attempt, watch));
        }
        self.open.insert(attempt, (call, sent));
        None
    }

    /// An answer, and a watch, of a call that was answered, or never made, change nothing.
    fn stale(&mut self, attempt: Attempt, gone: bool) {
        if self.open.contains_key(&attempt) || self.watches.contains(&attempt) {
            return;
        }
        self.step(Event::Tick);
        let before = self.candidate.clone();
        let answer = Ok(Answer::Written { version: 1, created: 1 });
        for event in [done(attempt, answer), Event::Fired { attempt, gone }] {
            let outputs = self.candidate.step(Input { at: self.now, event });
            assert_eq!((&outputs[..], &self.candidate), (&[][..], &before), "{attempt:?} is stale");
        }
    }

    fn step(&mut self, event: Event) {
        let ticks = matches!(event, Event::Tick);
        let outputs = self.candidate.step(Input { at: self.now, event });
        assert!(outputs.len() <= OUTPUTS_MAX, "{} outputs", outputs.len());
        let due = self.candidate.deadline();
        assert!(!ticks || due.is_none_or(|due| due > self.now), "it is due for ever");
        for output in outputs {
            match output {
                Output::Call { attempt, call } => self.on_call(attempt, call),
                Output::Leadership(change) => {
                    // A write that no answer came to may have worked, as a read may show.
                    let lost = self.open.values().filter(|(call, _)| writes(call));
                    let wrote = self.wrote.max(lost.map(|(_, sent)| *sent).max());
                    self.guards.hear(change, self.now, wrote.map(|sent| sent + RELIED_ON));
                    if let LeadershipChange::Taken { token, .. } = change {
                        assert!(token.0 > 0, "a leadership without a token");
                    }
                }
                Output::Leads(_) | Output::Trouble { .. } | Output::Stopped => {}
            }
        }
        self.guards.look(self.now, self.candidate.leads());
    }

    fn on_call(&mut self, attempt: Attempt, call: Call) {
        assert!(attempt.0 > self.last_attempt, "{attempt:?} comes back");
        self.last_attempt = attempt.0;
        let returns = match &call {
            Call::Delete { .. } => true,
            Call::Put { record, .. } => {
                assert!(self.guards.leadership.is_none(), "it takes what it has");
                record.released
            }
            Call::Read { .. } | Call::Renew { .. } => false,
        };
        assert!(!returns || !self.guards.guarded, "given back while guarded work still runs");
        if let Call::Put { record, .. } | Call::Renew { record, .. } = &call {
            self.ours.push(record.clone());
        }
        self.open.insert(attempt, (call, self.now));
    }
}

fn writes(call: &Call) -> bool {
    matches!(call, Call::Put { .. } | Call::Renew { .. })
}

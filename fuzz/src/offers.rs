//! One candidate that makes offers, under arbitrary answers of a store: it leads only with a node that one
//! read has shown to be its present session's, and no longer than that session is sure to last; it makes a
//! second offer only when the first has failed; an answer to an earlier call changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use bytes::Bytes;
use quorate_core::recipe::offer::{
    Answer, Call, Candidate, Config, Entry, Event, Input, Naming, Output, Session,
};
use quorate_core::recipe::{Attempt, Failure, LeadershipChange, SessionId, Token};
use quorate_core::time::Instant;

use crate::guards::Guards;

/// A run: how offers are called, and what happens.
#[derive(Arbitrary, Debug)]
struct Run {
    naming: u8,
    restart: bool,
    happens: Vec<Happens>,
}

/// Few nodes and few sessions, so that they meet.
#[derive(Arbitrary, Debug)]
enum Happens {
    Time { ms: u16 },
    Due,
    Start,
    Stop,
    Released,
    Connected { session: u8, seconds: u8 },
    Suspended,
    Expired,
    Renewed { session: u8, ago: u16 },
    Works { which: u8 },
    Created { which: u8, counter: u8 },
    Listed { which: u8, counters: Vec<(u8, bool)> },
    Read { which: u8, owner: u8, created: u8 },
    Fails { which: u8, how: u8 },
    Stale { attempt: u8, gone: bool },
    Fired { which: u8, gone: bool },
}

/// More than this is never wanted at once.
const OUTPUTS_MAX: usize = 32;
/// What a session is not relied on for.
const MARGIN: Duration = Duration::from_millis(500);

struct Case {
    candidate: Candidate,
    now: Instant,
    guards: Guards,
    /// Calls without an answer, and watches that were left.
    open: BTreeMap<Attempt, Call>,
    watches: BTreeMap<Attempt, String>,
    last_attempt: u64,
    /// The session, for how long it lasts, and when what it answered was sent.
    session: Option<(SessionId, Duration, Option<Instant>)>,
    connected: bool,
    naming: Naming,
    /// What our last offer was to be called.
    prefix: String,
    /// The nodes that this session was shown to own, and when each was created.
    proven: BTreeSet<(String, Token)>,
    /// The nodes that were shown to the candidate, of any owner, and when each was created.
    shown: BTreeSet<(String, Token)>,
    /// A create may have taken effect, and was not looked for since.
    unknown: bool,
}

/// Lets happen what these bytes say.
pub fn feed(data: &[u8]) {
    let Ok(run) = Run::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let namings =
        [Naming::Guid, Naming::Java, Naming::Session, Naming::Latch, Naming::Kazoo, Naming::Lease];
    let naming = namings[usize::from(run.naming) % namings.len()];
    let config =
        Config { naming, restart: run.restart, margin: Some(MARGIN), ..Config::new(&b"us"[..], 7) };
    let mut case = Case {
        candidate: Candidate::new(config).expect("a good configuration"),
        now: Instant::ORIGIN,
        guards: Guards::default(),
        open: BTreeMap::new(),
        watches: BTreeMap::new(),
        last_attempt: 0,
        session: None,
        connected: false,
        naming,
        prefix: "n_".to_owned(),
        proven: BTreeSet::new(),
        shown: BTreeSet::new(),
        unknown: false,
    };
    for happens in run.happens {
        if let Some(event) = case.event(happens) {
            case.step(event);
        }
    }
}

fn session(which: u8) -> SessionId {
    SessionId(i64::from(which % 3) + 1)
}

fn done(attempt: Attempt, result: Result<Answer, Failure>) -> Event {
    Event::Done { attempt, result }
}

impl Case {
    /// A name as the store makes it.
    fn name(&self, prefix: &str, counter: u8) -> String {
        match self.naming {
            Naming::Lease => prefix.to_owned(),
            Naming::Guid | Naming::Java | Naming::Session | Naming::Latch | Naming::Kazoo => {
                format!("{prefix}{:010}", counter % 8)
            }
        }
    }

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
            Happens::Connected { session: which, seconds } => {
                let (id, timeout) =
                    (session(which), Duration::from_secs(u64::from(seconds % 16) + 1));
                let known = self.session.filter(|(known, ..)| *known == id);
                if known.is_none() {
                    self.session_ends();
                }
                self.connection_ends();
                let contact = known.and_then(|(_, _, contact)| contact);
                (self.session, self.connected) = (Some((id, timeout, contact)), true);
                Event::Session(Session::Connected { session: id, timeout })
            }
            Happens::Suspended => {
                self.connection_ends();
                self.connected = false;
                Event::Session(Session::Suspended)
            }
            Happens::Expired => {
                self.session_ends();
                Event::Session(Session::Expired)
            }
            Happens::Renewed { session: which, ago } => {
                let ago = Duration::from_millis(u64::from(ago));
                let sent = Instant::ORIGIN + (self.now - Instant::ORIGIN).saturating_sub(ago);
                let id = session(which);
                if let Some((_, _, contact)) = self.session.as_mut().filter(|(of, ..)| *of == id) {
                    *contact = (*contact).max(Some(sent));
                }
                Event::Session(Session::Renewed { session: id, sent })
            }
            Happens::Works { which } => {
                let (attempt, call) = self.take(which)?;
                match call {
                    Call::EnsureRoot | Call::Delete { .. } => done(attempt, Ok(Answer::Done)),
                    call @ (Call::Create { .. } | Call::List { .. } | Call::Read { .. }) => {
                        self.open.insert(attempt, call);
                        return None;
                    }
                }
            }
            Happens::Created { which, counter } => self.created(which, counter)?,
            Happens::Listed { which, counters } => self.listed(which, &counters)?,
            Happens::Read { which, owner, created } => self.read(which, owner, created)?,
            Happens::Fails { which, how } => self.fails(which, how)?,
            Happens::Stale { attempt, gone } => {
                self.stale(Attempt(u64::from(attempt)), gone);
                return None;
            }
            Happens::Fired { which, gone } => {
                let attempt =
                    *self.watches.keys().nth(usize::from(which) % self.watches.len().max(1))?;
                self.watches.remove(&attempt);
                Event::Fired { attempt, gone }
            }
        })
    }

    /// The store has created the node that an open call asked for.
    fn created(&mut self, which: u8, counter: u8) -> Option<Event> {
        let (attempt, call) = self.take(which)?;
        let Call::Create { name, .. } = call else {
            self.open.insert(attempt, call);
            return None;
        };
        let name = self.name(&name, counter);
        Some(done(attempt, Ok(Answer::Created { name })))
    }

    /// The store answers an open call with a list of nodes.
    fn listed(&mut self, which: u8, counters: &[(u8, bool)]) -> Option<Event> {
        let (attempt, call) = self.take(which)?;
        let Call::List { fresh } = call else {
            self.open.insert(attempt, call);
            return None;
        };
        if fresh && attempt.0 == self.last_attempt {
            self.is_looked_for();
        }
        let entry = |(counter, of_us): &(u8, bool)| {
            let name = self.name(if *of_us { &self.prefix } else { "n_" }, *counter);
            let created = (self.naming == Naming::Lease).then_some(u64::from(*counter));
            Entry { name, created }
        };
        let entries: Vec<_> = counters.iter().take(8).map(entry).collect();
        let known = |it: &Entry| Some((it.name.clone(), Token(it.created?)));
        self.shown.extend(entries.iter().filter_map(known));
        Some(done(attempt, Ok(Answer::Listed(entries))))
    }

    /// The store answers an open call with a node.
    fn read(&mut self, which: u8, owner: u8, created: u8) -> Option<Event> {
        let (attempt, call) = self.take(which)?;
        let Call::Read { name, watch } = call else {
            self.open.insert(attempt, call);
            return None;
        };
        let (owner, created) = (session(owner), Token(u64::from(created)));
        self.shown.insert((name.clone(), created));
        if self.session.is_some_and(|(id, ..)| id == owner) {
            self.proven.insert((name.clone(), created));
        }
        if watch {
            self.watches.insert(attempt, name);
        }
        let data = Bytes::from_static(b"us");
        Some(done(attempt, Ok(Answer::Read { data, owner: Some(owner), created })))
    }

    /// An open call fails.
    fn fails(&mut self, which: u8, how: u8) -> Option<Event> {
        let (attempt, call) = self.take(which)?;
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
        if failure == Failure::Expired {
            // The session says so, too.
            self.step(done(attempt, Err(failure)));
            self.session_ends();
            return Some(Event::Session(Session::Expired));
        }
        let current = attempt.0 == self.last_attempt;
        if current && call == (Call::List { fresh: true }) && failure == Failure::Absent {
            self.is_looked_for();
        }
        if matches!(call, Call::Create { .. }) && failure == Failure::Unknown {
            self.unknown = true;
        }
        Some(done(attempt, Err(failure)))
    }

    /// An answer, and a watch, of a call that was answered, or never made, change nothing.
    fn stale(&mut self, attempt: Attempt, gone: bool) {
        if self.open.contains_key(&attempt) || self.watches.contains_key(&attempt) {
            return;
        }
        self.step(Event::Tick);
        let before = self.candidate.clone();
        let answer = Ok(Answer::Created { name: "n_0000000001".to_owned() });
        for event in [Event::Done { attempt, result: answer }, Event::Fired { attempt, gone }] {
            let outputs = self.candidate.step(Input { at: self.now, event });
            assert_eq!((&outputs[..], &self.candidate), (&[][..], &before), "{attempt:?} is stale");
        }
    }

    fn take(&mut self, which: u8) -> Option<(Attempt, Call)> {
        let attempt = *self.open.keys().nth(usize::from(which) % self.open.len().max(1))?;
        self.open.remove_entry(&attempt)
    }

    /// Whatever was created was looked for, or is known.
    fn is_looked_for(&mut self) {
        self.unknown = false;
        self.open.retain(|_, call| !matches!(call, Call::Create { .. }));
    }

    /// All watches are gone.
    fn connection_ends(&mut self) {
        self.watches.clear();
    }

    fn session_ends(&mut self) {
        self.connection_ends();
        self.is_looked_for();
        (self.session, self.connected) = (None, false);
        self.proven.clear();
    }

    fn step(&mut self, event: Event) {
        let ticks = matches!(event, Event::Tick);
        let offer = self.candidate.offer().map(ToOwned::to_owned);
        let outputs = self.candidate.step(Input { at: self.now, event });
        assert!(outputs.len() <= OUTPUTS_MAX, "{} outputs", outputs.len());
        let due = self.candidate.deadline();
        assert!(!ticks || due.is_none_or(|due| due > self.now), "it is due for ever");
        if self.candidate.offer().is_some() && self.candidate.offer() != offer.as_deref() {
            self.is_looked_for();
        }
        for output in outputs {
            match output {
                Output::Call { attempt, call } => self.on_call(attempt, call),
                Output::Leadership(change) => {
                    let promised = self.session.filter(|_| self.connected);
                    let promised = promised.and_then(|(_, timeout, contact)| {
                        Some(contact? + timeout.saturating_sub(MARGIN))
                    });
                    self.guards.hear(change, self.now, promised);
                    if let LeadershipChange::Taken { token, .. } = change {
                        let name = self.candidate.offer().expect("it leads with an offer");
                        let proof = (name.to_owned(), token);
                        assert!(self.proven.contains(&proof), "{name} was never ours");
                    }
                }
                Output::Notice(_) | Output::Trouble { .. } | Output::Stopped => {}
            }
        }
        self.guards.look(self.now, self.candidate.leads());
    }

    fn on_call(&mut self, attempt: Attempt, call: Call) {
        assert!(attempt.0 > self.last_attempt, "{attempt:?} comes back");
        self.last_attempt = attempt.0;
        assert!(self.connected, "{call:?} without a connection");
        let reads = matches!(call, Call::Read { .. });
        assert!(reads || !self.guards.guarded, "{call:?} while guarded work still runs");
        if let (Call::Delete { name, created }, Naming::Lease) = (&call, self.naming) {
            let meant = created.map(|created| (name.clone(), created));
            assert!(meant.is_some_and(|meant| self.shown.contains(&meant)), "{call:?} of any");
        }
        if let Call::Create { session, name, .. } = &call {
            assert_eq!(self.session.map(|(id, ..)| id), Some(*session));
            assert!(!self.unknown, "a second offer, and the first was not looked for");
            let open = self.open.values().any(|call| matches!(call, Call::Create { .. }));
            assert!(!open, "two offers at once");
            assert_eq!(self.candidate.offer(), None, "two offers");
            self.prefix.clone_from(name);
        }
        self.open.insert(attempt, call);
    }
}

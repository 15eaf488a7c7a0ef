//! Candidates that elect through the store: clocks, connections, pauses, and what must hold.
//!
//! Everything comes from the seed of the [`Plan`]; of a story, as far as that leaves it open. Whenever a candidate
//! is told that it leads, or still does:
//!
//! - no other candidate leads, each by its own clock; the clocks run up to a twenty-fifth apart from true time;
//! - its token is greater than those of all terms before;
//! - no candidate works for an earlier term whose session the store still keeps;
//! - and no candidate makes a second offer without a reason: a start, a new session, a term that is over, an answer
//!   that has not come, a node that is gone.
//!
//! At the end, when no accident has happened for a while: one leads, each candidate that has not stopped has one
//! node, or none of them has, there is no other node, and each waits for something, but none for what is not there.
//!
//! Where an operator deletes nodes by hand, or ends a session, their owner may learn of it after the next has begun: what
//! it does until then is between it and the token.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use quorate_core::recipe::Token;
use quorate_core::rng::Rng;
use quorate_core::time::Instant;

use super::agenda::Happens;
use super::candidates::{Happening, Recipe};
use super::client::Client;
use super::network::Link;
use super::plan::{Plan, Standing};
use super::script::Script;
use super::servers::Store;
use crate::call::Node;
use crate::faults::CrashKind;
use crate::record::Happening as Told;
use crate::store::broken::{Broken, broken};

pub(super) const MS: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000 * MS;

/// An election, and the store that it goes through.
#[derive(Clone, Debug)]
pub struct Election<R> {
    pub(super) plan: Plan,
    pub(super) rng: Rng,
    pub(super) now: u64,
    pub(super) agenda: BTreeMap<(u64, u64), Happens>,
    pub(super) order: u64,
    pub(super) store: Store,
    pub(super) clients: Vec<Client<R>>,
    pub(super) links: BTreeMap<u64, Link>,
    pub(super) last_link: u64,
    /// Nodes that were deleted by hand: their owner may learn of it after the next has begun.
    pub(super) deleted: BTreeSet<u64>,
    pub(super) last_token: Option<Token>,
    /// Which client has made a write.
    pub(super) authors: BTreeMap<u64, usize>,
    pub(super) quiet: bool,
    pub(super) standing: Standing,
    /// What happened, for people; only if it is asked for.
    pub(super) history: Option<Vec<String>>,
    /// What a story decides; none if everything comes from the seed.
    pub(super) script: Option<Script>,
}

impl<R: Recipe> Election<R> {
    /// Candidates that are made one by one, each from its number and a seed; all of them start.
    pub fn new(plan: Plan, candidate: impl Fn(usize, u64) -> R) -> Self {
        let Ok(election) =
            Self::of(plan, |number, seed| Ok::<_, Infallible>(candidate(number, seed)));
        election
    }

    /// The same; perhaps a candidate cannot be made.
    pub(super) fn of<E>(
        plan: Plan,
        candidate: impl Fn(usize, u64) -> Result<R, E>,
    ) -> Result<Self, E> {
        let mut rng = Rng::new(plan.seed);
        let nanos = nanos(plan.timeout);
        let rate = |rng: &mut Rng| 1_000 - plan.drift + rng.below(2 * plan.drift + 1);
        let client = |number| {
            Ok(Client {
                recipe: candidate(number, rng.next_u64())?,
                offset: rng.below(1_000 * SECOND),
                rate: rate(&mut rng),
                link: 0,
                session: None,
                seen: 0,
                in_flight: Vec::new(),
                counted: Instant::ORIGIN,
                beats: VecDeque::new(),
                paused: false,
                backlog: VecDeque::new(),
                wanted: true,
                stopped: false,
                crashed: false,
                term: None,
                may_offer: false,
                offering: None,
                offered: None,
                guards: None,
                wake_at: None,
            })
        };
        let clients = (0..plan.candidates).map(client).collect::<Result<Vec<_>, E>>()?;
        let mut election = Self {
            store: Store::new(3, plan.counter, nanos),
            now: 0,
            agenda: BTreeMap::new(),
            order: 0,
            clients,
            links: BTreeMap::new(),
            last_link: 0,
            deleted: BTreeSet::new(),
            last_token: None,
            authors: BTreeMap::new(),
            quiet: false,
            standing: Standing::default(),
            history: None,
            script: None,
            rng,
            plan,
        };
        for client in 0..election.clients.len() {
            let at = election.rng.below(SECOND);
            election.plan_at(at, Happens::Dial(client));
            if !election.plan.touches {
                election.plan_at(at, Happens::Ping(client));
            }
        }
        for server in 0..3 {
            election.plan_at(0, Happens::CatchUp(server));
            if election.plan.touches {
                election.plan_at(server as u64 * SECOND / 3, Happens::Touch(server));
            }
        }
        election.plan_at(0, Happens::Expire);
        election.plan_at(SECOND, Happens::Accident);
        Ok(election)
    }

    /// Writes down what happens.
    pub fn record(&mut self) {
        self.history = Some(Vec::new());
    }

    /// What happened, if it was [recorded](Self::record).
    pub fn history(&self) -> &[String] {
        self.history.as_deref().unwrap_or_default()
    }

    /// What has been counted so far.
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// The store.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The candidates.
    pub fn candidates(&self) -> impl Iterator<Item = &R> {
        self.clients.iter().map(|client| &client.recipe)
    }

    /// Which candidate leads.
    pub fn leader(&self) -> Option<usize> {
        self.clients.iter().position(|client| client.term.is_some() && !client.crashed)
    }

    /// Has all accidents happen, waits, and looks at what is left.
    ///
    /// # Errors
    ///
    /// What does not hold, and when.
    pub fn run(&mut self) -> Result<Standing, Broken> {
        for client in 0..self.clients.len() {
            self.deliver(client, Happening::Start)?;
        }
        self.run_for(self.plan.accidents)?;
        self.settle()?;
        self.at_rest()?;
        Ok(self.standing)
    }

    /// Starts all candidates and waits, without accidents.
    ///
    /// # Errors
    ///
    /// What does not hold, and when.
    pub fn start(&mut self) -> Result<(), Broken> {
        self.quiet = true;
        for client in 0..self.clients.len() {
            self.deliver(client, Happening::Start)?;
        }
        self.run_for(Duration::from_secs(30))
    }

    /// A candidate's process ends, and the store ends its session.
    ///
    /// # Errors
    ///
    /// What does not hold, and when.
    pub fn crash(&mut self, client: usize) -> Result<(), Broken> {
        self.kill(client);
        if let Some(session) = self.clients[client].session {
            self.store.end(session);
        }
        self.run_for(Duration::from_secs(5))
    }

    /// A candidate's process ends, and the store has to find that out.
    pub fn kill(&mut self, client: usize) {
        self.tell_so(client, || Told::Crash(CrashKind::Process));
        let link = self.clients[client].link;
        self.hang_up(link, true);
        let client = &mut self.clients[client];
        (client.crashed, client.term, client.guards) = (true, None, None);
    }

    /// A candidate is told to stop; goes on until its node is gone or written over, which takes no longer than
    /// this.
    ///
    /// # Errors
    ///
    /// What does not hold, and when.
    pub fn stop(&mut self, client: usize, most: Duration) -> Result<(), Broken> {
        let token = self.clients[client].term.map(|term| term.token);
        self.want(client, false)?;
        let owner =
            self.store.nodes.values().find(|node| Some(Token(node.created)) == token).cloned();
        let is_its = |node: &Node| owner.as_ref().is_some_and(|its| its.data == node.data);
        self.until(most, |election| !election.store.nodes.values().any(is_its)).map(drop)
    }

    /// Goes on until a candidate leads; says how long that has taken, and how often the store was called.
    ///
    /// # Errors
    ///
    /// What does not hold, and when; that no candidate leads after this time.
    pub fn until_led(&mut self, most: Duration) -> Result<(Duration, u64), Broken> {
        let (terms, calls) = (self.standing.terms, self.standing.calls);
        let took = self.until(most, |election| election.standing.terms > terms)?;
        Ok((took, self.standing.calls - calls))
    }

    fn until(&mut self, most: Duration, so: impl Fn(&Self) -> bool) -> Result<Duration, Broken> {
        let begun = self.now;
        while !so(self) {
            if self.now - begun > nanos(most) {
                return broken(format!("not after {most:?}"));
            }
            self.run_for(Duration::from_millis(1))?;
        }
        Ok(Duration::from_nanos(self.now - begun))
    }

    /// Goes on for a while.
    ///
    /// # Errors
    ///
    /// What does not hold, and when.
    pub fn run_for(&mut self, time: Duration) -> Result<(), Broken> {
        let end = self.now + nanos(time);
        while let Some(entry) = self.agenda.first_entry() {
            if entry.key().0 > end {
                break;
            }
            let ((at, _), happens) = entry.remove_entry();
            self.now = self.now.max(at);
            self.happen(happens)?;
            self.follow();
        }
        self.now = end;
        self.follow();
        Ok(())
    }

    /// Ends all accidents, and waits until nothing is under way.
    fn settle(&mut self) -> Result<(), Broken> {
        self.quiet = true;
        for server in &mut self.store.servers {
            server.cut_until = 0;
        }
        let live = pick(&mut self.rng, self.clients.len());
        for client in 0..self.clients.len() {
            if self.clients[client].paused {
                self.happen(Happens::Resume(client))?;
            }
            let wanted = client == live || self.rng.below(3) > 0;
            self.want(client, wanted)?;
        }
        self.run_for(6 * self.plan.timeout + Duration::from_secs(60))
    }

    pub(super) fn say(&mut self, line: impl FnOnce() -> String) {
        if let Some(history) = &mut self.history {
            history.push(format!("{:>9.3}  {}", self.now as f64 / SECOND as f64, line()));
        }
    }
}

/// A candidate as people count them.
pub(super) const fn name(client: usize) -> usize {
    client + 1
}

pub(super) fn nanos(duration: Duration) -> u64 {
    Instant::from_origin(duration).0
}

/// A number below this one.
pub(super) fn pick(rng: &mut Rng, below: usize) -> usize {
    usize::try_from(rng.below(below as u64)).unwrap_or(0)
}

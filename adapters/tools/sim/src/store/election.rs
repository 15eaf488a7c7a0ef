//! Candidates that elect through the store: clocks, connections, pauses, and what must hold.
//!
//! Everything comes from the seed of the [`Plan`]; of a story, as far as that leaves it open. Whenever somebody is
//! told that it leads, or still does:
//!
//! - nobody else leads, each by its own clock; the clocks run up to a twenty-fifth apart from true time;
//! - its token is greater than those of all terms before;
//! - nobody works for an earlier term whose session the store still keeps;
//! - and nobody makes a second offer without a reason: a start, a new session, a term that is over, an answer
//!   that has not come, a node that is gone.
//!
//! At the end, when no accident has happened for a while: one leads, each candidate that has not stopped has one
//! node, or none of them has, there is no other node, and each waits for something, but nobody for what is not there.
//!
//! Where somebody deletes nodes by hand, or ends a session, their owner may learn of it after the next has begun: what
//! it does until then is between it and the token.

mod accidents;
mod clients;
mod network;
mod rules;
mod script;
mod telling;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use quorate_core::recipe::{Attempt, Failure, SessionId, Token};
use quorate_core::rng::Rng;
use quorate_core::time::Instant;

use super::{Happening, Node, Op, Recipe, Reply, Server, Store};
use crate::faults::CrashKind;
use crate::record::{Candidacy, Happening as Told};
use script::Script;

pub(crate) use script::{Errand, Mishap, Part, Stand};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// For how long a server serves that hears nothing of the leader.
pub const SYNC_LIMIT: Duration = Duration::from_secs(3);

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where all chance comes from.
    pub seed: u64,
    /// How many candidates there are.
    pub candidates: usize,
    /// After how much silence the store ends a session.
    pub timeout: Duration,
    /// For how long accidents happen.
    pub accidents: Duration,
    /// An operator deletes nodes.
    pub deletions: bool,
    /// The counter of the root at the beginning.
    pub counter: i32,
    /// What comes from a connection that is lost takes effect though the session has moved on, as in etcd,
    /// where a lease is on no connection. Whoever stops ends its session then.
    pub late: bool,
    /// Servers are cut off from the leader now and then.
    pub cuts: bool,
    /// The leader hears of sessions from their servers, every fifth of the time-out.
    pub touches: bool,
    /// A candidate relies on the heartbeat that was answered last, though only earlier ones are sure to be counted.
    pub hasty: bool,
    /// By how much a clock may run faster or slower: so many thousandths.
    pub drift: u64,
}

impl Plan {
    /// Accidents of all kinds, from this seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5707_e5ee_d000_0001);
        Self {
            seed,
            candidates: 2 + pick(&mut rng, 5),
            timeout: Duration::from_secs(10),
            accidents: Duration::from_secs(60 + rng.below(120)),
            deletions: rng.below(4) == 0,
            counter: if rng.below(4) == 0 { i32::MAX - 3 } else { 0 },
            late: false,
            cuts: false,
            touches: false,
            hasty: false,
            drift: 40,
        }
    }

    /// No accident, and clocks that agree.
    pub const fn quiet(candidates: usize) -> Self {
        Self {
            seed: 1,
            candidates,
            timeout: Duration::from_secs(10),
            accidents: Duration::ZERO,
            deletions: false,
            counter: 0,
            late: false,
            cuts: false,
            touches: false,
            hasty: false,
            drift: 0,
        }
    }
}

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Terms that have begun.
    pub terms: u64,
    /// Watches that have fired, and reached whoever left them.
    pub woken: u64,
    /// Calls on the store, without what keeps sessions alive.
    pub calls: u64,
    /// Listings of the children among them.
    pub lists: u64,
    /// Nodes that it was asked for.
    pub creates: u64,
    /// Connections that were made.
    pub connections: u64,
}

/// An election, and the store that it goes through.
#[derive(Clone, Debug)]
pub struct Election<R> {
    plan: Plan,
    rng: Rng,
    now: u64,
    agenda: BTreeMap<(u64, u64), Happens>,
    order: u64,
    store: Store,
    clients: Vec<Client<R>>,
    links: BTreeMap<u64, Link>,
    last_link: u64,
    /// Nodes that were deleted by hand: their owner may learn of it after the next has begun.
    deleted: BTreeSet<u64>,
    last_token: Option<Token>,
    /// Which client has made a write.
    authors: BTreeMap<u64, usize>,
    quiet: bool,
    standing: Standing,
    /// What happened, for people; only if it is asked for.
    history: Option<Vec<String>>,
    /// What a story decides; none if everything comes from the seed.
    script: Option<Script>,
}

#[derive(Clone, Debug)]
struct Client<R> {
    recipe: R,
    /// What its clock showed at the beginning, and by how many thousandths of a second it goes on in one.
    offset: u64,
    rate: u64,
    link: u64,
    session: Option<SessionId>,
    /// How much of the log it knows of.
    seen: usize,
    in_flight: Vec<Attempt>,
    /// When the newest heartbeat was sent that counts for sure; and when later ones were sent, and answered.
    counted: Instant,
    beats: VecDeque<(Instant, Instant)>,
    paused: bool,
    backlog: VecDeque<(u64, Message)>,
    wanted: bool,
    stopped: bool,
    crashed: bool,
    term: Option<Term>,
    /// Something has happened that may be a reason to make another offer.
    may_offer: bool,
    /// An offer that was asked for, and no answer has come.
    offering: Option<Attempt>,
    /// The node of the last one that was answered, whether it knows that or did not wait for the answer.
    offered: Option<String>,
    /// The session in which guarded work began that still runs.
    guards: Option<(Option<SessionId>, Token)>,
    wake_at: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Term {
    token: Token,
    until: Instant,
    suspended: bool,
}

/// A connection, and until when its queues are taken.
#[derive(Clone, Copy, Debug)]
struct Link {
    client: usize,
    server: usize,
    up: u64,
    leader: u64,
    again: u64,
    down: u64,
    /// Until when an answer of the leader is waited for that does not come through, and all behind it.
    held: u64,
    /// A story has delayed something that is on its way to the server: that arrives, even if the connection is lost.
    delayed: bool,
    /// What is on its way to the server does not arrive.
    cut: bool,
    open: bool,
}

#[derive(Clone, Debug)]
struct Request {
    link: u64,
    session: Option<SessionId>,
    attempt: Option<Attempt>,
    sent: Instant,
    op: Op,
}

#[derive(Clone, Debug)]
enum Message {
    Connected(SessionId, Instant),
    SessionOver,
    Answer(Request, Result<Reply, Failure>, usize),
    Fired(Attempt, bool),
    /// What the client's own library says.
    Here(Happening),
}

#[derive(Clone, Debug)]
enum Happens {
    AtServer(Request),
    AtLeader(Request, u64),
    AtServerAgain(Request, Result<Reply, Failure>, usize),
    AtClient(usize, u64, Message),
    CatchUp(usize),
    Wake(usize),
    Ping(usize),
    /// On this connection.
    Beat(usize, u64),
    /// A server tells the leader whom it has heard.
    Touch(usize),
    Dial(usize),
    /// This connection of a client.
    Break(usize, u64),
    Resume(usize),
    /// A server that is still cut off sends its clients away.
    GiveUp(usize),
    /// Of the term with this token.
    GuardsGone(usize, Token),
    Expire,
    Accident,
}

impl<R: Recipe> Election<R> {
    /// Candidates that are made one by one, each from its number and a seed; all of them start.
    pub fn new(plan: Plan, candidate: impl Fn(usize, u64) -> R) -> Self {
        let Ok(election) =
            Self::of(plan, |number, seed| Ok::<_, Infallible>(candidate(number, seed)));
        election
    }

    /// The same; perhaps a candidate cannot be made.
    fn of<E>(plan: Plan, candidate: impl Fn(usize, u64) -> Result<R, E>) -> Result<Self, E> {
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
    pub fn run(&mut self) -> Result<Standing, String> {
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
    pub fn start(&mut self) -> Result<(), String> {
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
    pub fn crash(&mut self, client: usize) -> Result<(), String> {
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
    pub fn stop(&mut self, client: usize, most: Duration) -> Result<(), String> {
        let token = self.clients[client].term.map(|term| term.token);
        self.want(client, false)?;
        let owner =
            self.store.nodes.values().find(|node| Some(Token(node.created)) == token).cloned();
        let is_its = |node: &Node| owner.as_ref().is_some_and(|its| its.data == node.data);
        self.until(most, |election| !election.store.nodes.values().any(is_its)).map(drop)
    }

    /// Goes on until somebody leads; says how long that has taken, and how often the store was called.
    ///
    /// # Errors
    ///
    /// What does not hold, and when; that nobody leads after this time.
    pub fn until_led(&mut self, most: Duration) -> Result<(Duration, u64), String> {
        let (terms, calls) = (self.standing.terms, self.standing.calls);
        let took = self.until(most, |election| election.standing.terms > terms)?;
        Ok((took, self.standing.calls - calls))
    }

    fn until(&mut self, most: Duration, so: impl Fn(&Self) -> bool) -> Result<Duration, String> {
        let begun = self.now;
        while !so(self) {
            if self.now - begun > nanos(most) {
                return Err(format!("not after {most:?}"));
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
    pub fn run_for(&mut self, time: Duration) -> Result<(), String> {
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
    fn settle(&mut self) -> Result<(), String> {
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

    /// What must hold when nothing has happened for a while.
    fn at_rest(&self) -> Result<(), String> {
        let mut nodes: Vec<&String> = self.store.nodes.keys().collect();
        let wrong = |what: String| Err(what);
        let live = || self.clients.iter().enumerate().filter(|(_, client)| !client.crashed);
        // With leases nobody has a node of its own.
        let own = live().filter(|(_, client)| client.recipe.node().is_some()).count();
        for (number, client) in live() {
            if client.wanted == client.stopped {
                return wrong(format!("candidate {} should have stopped, or not", name(number)));
            }
            if let Some(own) = client.recipe.node() {
                let Some(at) = nodes.iter().position(|name| *name == own) else {
                    return wrong(format!("candidate {} believes in {own}", name(number)));
                };
                nodes.swap_remove(at);
            } else if client.wanted && own > 0 {
                return wrong(format!("candidate {} has no node", name(number)));
            }
            let waits = self.store.watches_on(client.link) || client.recipe.deadline().is_some();
            if client.wanted && !waits {
                return wrong(format!("candidate {} waits for nothing", name(number)));
            }
        }
        let keys = usize::from(own == 0);
        if nodes.len() > keys {
            return wrong(format!("left behind: {nodes:?}"));
        }
        let leaders = live().filter(|(_, client)| client.recipe.leads().is_some()).count();
        if leaders != 1 {
            return wrong(format!("{leaders} lead"));
        }
        let (waiting, idle) = self.store.watches();
        if idle > 0 || waiting > 6 * self.clients.len() {
            return wrong(format!("{waiting} watches, {idle} on what is not there"));
        }
        Ok(())
    }

    // --- time ---

    fn plan_at(&mut self, at: u64, happens: Happens) {
        self.order += 1;
        self.agenda.insert((at, self.order), happens);
    }

    /// What a client's clock shows.
    fn clock(&self, client: usize) -> Instant {
        let Client { offset, rate, .. } = self.clients[client];
        Instant(offset + self.now / 1_000 * rate)
    }

    /// When a client's clock shows this.
    fn when(&self, client: usize, instant: Instant) -> u64 {
        let Client { offset, rate, .. } = self.clients[client];
        (instant.0.saturating_sub(offset) / rate + 1) * 1_000
    }

    fn delay(&mut self) -> u64 {
        if !self.quiet && self.rng.below(25) == 0 {
            return self.chance(4 * SECOND);
        }
        MS + self.chance(20 * MS)
    }

    /// A number below this one; the first of them where a story leaves nothing to chance.
    fn chance(&mut self, below: u64) -> u64 {
        let even = self.script.as_ref().is_some_and(Script::is_even);
        if even { 0 } else { self.rng.below(below) }
    }

    fn say(&mut self, line: impl FnOnce() -> String) {
        if let Some(history) = &mut self.history {
            history.push(format!("{:>9.3}  {}", self.now as f64 / SECOND as f64, line()));
        }
    }

    fn happen(&mut self, happens: Happens) -> Result<(), String> {
        match happens {
            Happens::AtServer(request) => self.at_server(request),
            Happens::AtLeader(request, again) => self.at_leader(request, again),
            Happens::AtServerAgain(request, result, end) => {
                self.at_server_again(request, result, end)
            }
            Happens::AtClient(client, link, message) => {
                return self.at_client(client, link, message);
            }
            Happens::CatchUp(server) => {
                let (from, to) = (self.store.servers[server].applied, self.store.log.len());
                let more = if self.quiet { to - from } else { pick(&mut self.rng, to - from + 1) };
                if self.store.servers[server].cut_until <= self.now {
                    let fired = self.store.apply(server, from + more);
                    self.fire(fired);
                }
                if self.script.is_some() {
                    // It comes again when there is something to catch up with.
                    return Ok(());
                }
                let next = if self.quiet { 10 } else { 5 + self.rng.below(400) };
                self.plan_at(self.now + next * MS, Happens::CatchUp(server));
            }
            Happens::Wake(client) => return self.wake(client),
            Happens::Ping(client) => {
                let Client { link, session, paused, crashed, .. } = self.clients[client];
                if link != 0 && session.is_some() && !paused && !crashed {
                    self.send(client, None, Op::Ping);
                }
                let next = nanos(self.plan.timeout) / 4;
                self.plan_at(self.now + next, Happens::Ping(client));
            }
            Happens::Beat(client, link) => {
                let Client { link: present, paused, crashed, .. } = self.clients[client];
                if link == present && paused {
                    self.plan_at(self.now + SECOND, Happens::Beat(client, link));
                } else if link == present && !crashed {
                    self.send(client, None, Op::Ping);
                }
            }
            Happens::Touch(server) => {
                let Server { cut_until, heard, .. } = &mut self.store.servers[server];
                if *cut_until <= self.now {
                    for (session, link) in std::mem::take(heard) {
                        self.store.hear(session, link, self.now);
                    }
                }
                self.plan_at(self.now + nanos(self.plan.timeout) / 5, Happens::Touch(server));
            }
            Happens::Dial(client) => self.dial(client),
            Happens::Break(client, link) => {
                if self.clients[client].link == link {
                    self.lose_connection(client);
                }
            }
            Happens::Resume(client) => return self.resume(client),
            Happens::GiveUp(server) => self.give_up(server),
            Happens::GuardsGone(client, token) => {
                if self.clients[client].paused {
                    self.plan_at(self.now + SECOND, Happens::GuardsGone(client, token));
                } else if self.clients[client].guards.is_some_and(|(_, of)| of == token) {
                    self.clients[client].guards = None;
                    self.tell(client, || Candidacy::Released);
                    return self.deliver(client, Happening::Released);
                }
            }
            Happens::Expire => {
                self.store.expire(self.now);
                self.plan_at(self.now + 20 * MS, Happens::Expire);
            }
            Happens::Accident => {
                let next = 100 * MS + self.rng.below(3 * SECOND);
                self.plan_at(self.now + next, Happens::Accident);
                if !self.quiet {
                    return self.accident();
                }
            }
        }
        Ok(())
    }
}

/// A candidate as people count them.
const fn name(client: usize) -> usize {
    client + 1
}

fn nanos(duration: Duration) -> u64 {
    Instant::from_origin(duration).0
}

/// A number below this one.
fn pick(rng: &mut Rng, below: usize) -> usize {
    usize::try_from(rng.below(below as u64)).unwrap_or(0)
}

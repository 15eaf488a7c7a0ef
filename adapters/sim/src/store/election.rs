//! Candidates that elect through the store: clocks, connections, pauses, and what must hold.
//!
//! Everything comes from the seed of the [`Plan`]. Whenever somebody is told that it leads, or still does:
//!
//! - nobody else leads, each by its own clock; the clocks run up to a twenty-fifth apart from true time;
//! - its token is greater than those of all terms before;
//! - nobody works for an earlier term whose session the store still keeps;
//! - and nobody makes a second offer without a reason: a start, a new session, a term that is over, an answer
//!   that has not come, a node that is gone.
//!
//! At the end, when no accident has happened for a while: one leads, each candidate that has not stopped has one
//! node, there is no other node, and nobody waits for what is not there.
//!
//! Where somebody deletes nodes by hand their owner may learn of it after the next has begun: what it does
//! until then is between it and the token.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use quorate_core::recipe::{Attempt, Failure, Loss, Seat, SessionId, Token};
use quorate_core::rng::Rng;
use quorate_core::time::Instant;

use super::{Fired, Happening, Op, Recipe, Reply, Store, Wish};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

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
    /// Listings of the children that the store was asked for.
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
    quiet: bool,
    standing: Standing,
    /// What happened, for people; only if it is asked for.
    history: Option<Vec<String>>,
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
    /// The session in which guarded work began that still runs.
    guards: Option<(Option<SessionId>, Token)>,
    wake_at: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Term {
    token: Token,
    until: Instant,
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
    Dial(usize),
    Resume(usize),
    /// Of the term with this token.
    GuardsGone(usize, Token),
    Expire,
    Accident,
}

impl<R: Recipe> Election<R> {
    /// Candidates that are made one by one, each from its number and a seed; all of them start.
    pub fn new(plan: Plan, candidate: impl Fn(usize, u64) -> R) -> Self {
        let mut rng = Rng::new(plan.seed);
        let nanos = nanos(plan.timeout);
        let rate = |rng: &mut Rng| 1_000 - plan.drift + rng.below(2 * plan.drift + 1);
        let clients = (0..plan.candidates).map(|number| Client {
            recipe: candidate(number, rng.next_u64()),
            offset: rng.below(1_000 * SECOND),
            rate: rate(&mut rng),
            link: 0,
            session: None,
            seen: 0,
            in_flight: Vec::new(),
            paused: false,
            backlog: VecDeque::new(),
            wanted: true,
            stopped: false,
            crashed: false,
            term: None,
            may_offer: false,
            offering: None,
            guards: None,
            wake_at: None,
        });
        let clients: Vec<_> = clients.collect();
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
            quiet: false,
            standing: Standing::default(),
            history: None,
            rng,
            plan,
        };
        for client in 0..election.clients.len() {
            let at = election.rng.below(SECOND);
            election.plan_at(at, Happens::Dial(client));
            election.plan_at(at, Happens::Ping(client));
        }
        for server in 0..3 {
            election.plan_at(0, Happens::CatchUp(server));
        }
        election.plan_at(0, Happens::Expire);
        election.plan_at(SECOND, Happens::Accident);
        election
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
        self.clients[client].crashed = true;
        self.clients[client].term = None;
        self.clients[client].guards = None;
        if let Some(session) = self.clients[client].session {
            self.store.end(session);
        }
        let link = self.clients[client].link;
        self.hang_up(link, true);
        self.run_for(Duration::from_secs(5))
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
        }
        self.now = end;
        Ok(())
    }

    /// Ends all accidents, and waits until nothing is under way.
    fn settle(&mut self) -> Result<(), String> {
        self.quiet = true;
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
    fn at_rest(&mut self) -> Result<(), String> {
        let mut nodes: Vec<&String> = self.store.nodes.keys().collect();
        let wrong = |what: String| Err(what);
        for (number, client) in self.clients.iter().enumerate() {
            if client.wanted == client.stopped {
                return wrong(format!("candidate {number} should have stopped, or not"));
            }
            if let Some(own) = client.recipe.node() {
                let Some(at) = nodes.iter().position(|name| *name == own) else {
                    return wrong(format!("candidate {number} believes in {own}"));
                };
                nodes.swap_remove(at);
            } else if client.wanted && client.recipe.node().is_none() && nodes.len() > 1 {
                return wrong(format!("candidate {number} has no node"));
            }
        }
        let own = self.clients.iter().filter(|client| client.recipe.node().is_some()).count();
        let keys = usize::from(own == 0);
        if nodes.len() > keys {
            return wrong(format!("left behind: {nodes:?}"));
        }
        let leaders = self.clients.iter().filter(|client| client.recipe.leads().is_some()).count();
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
            return self.rng.below(4 * SECOND);
        }
        MS + self.rng.below(20 * MS)
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
                let fired = self.store.apply(server, from + more);
                self.fire(fired);
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
            Happens::Dial(client) => self.dial(client),
            Happens::Resume(client) => return self.resume(client),
            Happens::GuardsGone(client, token) => {
                if self.clients[client].paused {
                    self.plan_at(self.now + SECOND, Happens::GuardsGone(client, token));
                } else if self.clients[client].guards.is_some_and(|(_, of)| of == token) {
                    self.clients[client].guards = None;
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

    // --- the network ---

    fn send(&mut self, client: usize, attempt: Option<Attempt>, op: Op) {
        let sent = self.clock(client);
        let Client { link, session, .. } = self.clients[client];
        let request = Request { link, session, attempt, sent, op };
        let delay = self.delay();
        match self.links.get_mut(&link) {
            Some(queue) => {
                queue.up = (queue.up + 1).max(self.now + delay);
                let at = queue.up;
                self.clients[client].in_flight.extend(attempt);
                self.plan_at(at, Happens::AtServer(request));
            }
            None => {
                if let Some(attempt) = attempt {
                    self.here(client, Happening::Done(attempt, Err(Failure::Unknown)));
                }
            }
        }
    }

    /// The client's own library says something.
    fn here(&mut self, client: usize, happening: Happening) {
        self.plan_at(self.now, Happens::AtClient(client, 0, Message::Here(happening)));
    }

    fn at_server(&mut self, request: Request) {
        let (to_leader, back) = (self.delay(), self.delay());
        let Some(link) = self.links.get_mut(&request.link).filter(|link| !link.cut) else { return };
        if matches!(request.op, Op::Read { .. } | Op::List { fresh: false }) {
            link.again = (link.again + 1).max(self.now);
            let at = link.again;
            self.plan_at(at, Happens::AtServerAgain(request, Ok(Reply::Done), 0));
        } else {
            link.leader = (link.leader + 1).max(self.now + to_leader);
            link.again = (link.again + 1).max(link.leader + back);
            let Link { leader, again, .. } = *link;
            self.plan_at(leader, Happens::AtLeader(request, again));
        }
    }

    fn at_leader(&mut self, request: Request, again: u64) {
        let Some(session) = request.session else { return };
        let result = if self.store.hear(session, request.link, self.now) {
            self.say(|| format!("leader: {session} {:?}", request.op));
            self.store.write(&request.op)
        } else if self.store.is_alive(session) && self.plan.late {
            self.say(|| format!("leader: late, {session} {:?}", request.op));
            self.store.write(&request.op)
        } else if self.store.is_alive(session) {
            // It has moved to another connection: what comes late from here is refused.
            return;
        } else {
            Err(Failure::Expired)
        };
        let end = self.store.log.len();
        self.plan_at(again, Happens::AtServerAgain(request, result, end));
    }

    fn at_server_again(&mut self, request: Request, result: Result<Reply, Failure>, end: usize) {
        let delay = self.delay();
        let Some(link) = self.links.get(&request.link).copied().filter(|link| link.open) else {
            return;
        };
        let fired = self.store.apply(link.server, end);
        self.fire(fired);
        let result = match (&request.op, request.attempt, result) {
            (Op::Read { .. } | Op::List { .. }, Some(attempt), Ok(_)) => {
                self.store.read(link.server, &request.op, request.link, attempt)
            }
            (_, _, result) => result,
        };
        let seen = self.store.servers[link.server].applied;
        self.post(request.link, delay, Message::Answer(request, result, seen));
    }

    /// Sends something down a connection, behind what was sent before.
    fn post(&mut self, link: u64, delay: u64, message: Message) {
        if let Some(queue) = self.links.get_mut(&link).filter(|link| link.open) {
            queue.down = (queue.down + 1).max(self.now + delay);
            let (client, at) = (queue.client, queue.down);
            self.plan_at(at, Happens::AtClient(client, link, message));
        }
    }

    fn fire(&mut self, fired: Vec<Fired>) {
        for (link, attempt, gone) in fired {
            let delay = self.delay();
            self.post(link, delay, Message::Fired(attempt, gone));
        }
    }

    fn dial(&mut self, client: usize) {
        let Client { seen, session, paused, crashed, link, .. } = self.clients[client];
        if crashed || link != 0 {
            return;
        }
        let server = pick(&mut self.rng, self.store.servers.len());
        if paused || self.store.servers[server].applied < seen {
            self.plan_at(self.now + 50 * MS, Happens::Dial(client));
            return;
        }
        self.last_link += 1;
        let link = self.last_link;
        let (sent, delay) = (self.clock(client), self.delay());
        let now = self.now;
        let queue = Link {
            client,
            server,
            up: now,
            leader: now,
            again: now,
            down: now,
            cut: false,
            open: true,
        };
        self.links.insert(link, queue);
        self.clients[client].link = link;
        self.standing.connections += 1;
        match self.store.attach(session, link, now) {
            Some(session) => self.post(link, delay, Message::Connected(session, sent)),
            None => self.post(link, delay, Message::SessionOver),
        }
    }

    /// A connection ends; what is on its way to the server is lost with it, or is not.
    fn hang_up(&mut self, link: u64, cut: bool) {
        if let Some(link) = self.links.get_mut(&link) {
            (link.open, link.cut) = (false, cut);
        }
        self.store.forget(link);
    }

    fn lose_connection(&mut self, client: usize) {
        let link = self.clients[client].link;
        if link == 0 {
            return;
        }
        self.say(|| format!("{client}: connection lost"));
        let cut = self.rng.below(2) == 0;
        self.hang_up(link, cut);
        self.clients[client].link = 0;
        let suspended_first = self.rng.below(2) == 0;
        if suspended_first {
            self.here(client, Happening::Suspended);
        }
        for attempt in std::mem::take(&mut self.clients[client].in_flight) {
            self.here(client, Happening::Done(attempt, Err(Failure::Unknown)));
        }
        if !suspended_first {
            self.here(client, Happening::Suspended);
        }
        let wait = 10 * MS + self.rng.below(if self.quiet { 100 * MS } else { 6 * SECOND });
        self.plan_at(self.now + wait, Happens::Dial(client));
    }

    // --- clients ---

    fn at_client(&mut self, number: usize, link: u64, message: Message) -> Result<(), String> {
        let client = &mut self.clients[number];
        if client.crashed || (link != 0 && link != client.link) {
            return Ok(());
        }
        if client.paused {
            client.backlog.push_back((link, message));
            return Ok(());
        }
        match message {
            Message::Connected(session, sent) => {
                client.session = Some(session);
                let timeout = self.plan.timeout;
                self.deliver(number, Happening::Connected(session, timeout))?;
                self.deliver(number, Happening::Renewed(session, sent))
            }
            Message::SessionOver => {
                client.session = None;
                self.hang_up(link, true);
                self.clients[number].link = 0;
                self.plan_at(self.now + MS, Happens::Dial(number));
                self.deliver(number, Happening::Expired)
            }
            Message::Answer(request, result, seen) => {
                client.seen = client.seen.max(seen);
                match (request.attempt, request.session, result) {
                    (Some(attempt), _, result) => {
                        client.in_flight.retain(|in_flight| *in_flight != attempt);
                        self.deliver(number, Happening::Done(attempt, result))
                    }
                    (None, Some(session), Ok(_)) => {
                        self.deliver(number, Happening::Renewed(session, request.sent))
                    }
                    (None, _, _) => {
                        self.lose_connection(number);
                        Ok(())
                    }
                }
            }
            Message::Fired(attempt, gone) => {
                self.standing.woken += 1;
                self.deliver(number, Happening::Fired(attempt, gone))
            }
            Message::Here(happening) => self.deliver(number, happening),
        }
    }

    fn wake(&mut self, client: usize) -> Result<(), String> {
        self.clients[client].wake_at = None;
        if self.clients[client].paused || self.clients[client].crashed {
            return Ok(());
        }
        let due = self.clients[client].recipe.deadline();
        if due.is_some_and(|due| due <= self.clock(client)) {
            return self.deliver(client, Happening::Tick);
        }
        self.set_alarm(client);
        Ok(())
    }

    fn set_alarm(&mut self, client: usize) {
        let Some(due) = self.clients[client].recipe.deadline() else { return };
        let at = self.when(client, due).max(self.now + 1_000);
        if self.clients[client].wake_at.is_none_or(|wake_at| at < wake_at) {
            self.clients[client].wake_at = Some(at);
            self.plan_at(at, Happens::Wake(client));
        }
    }

    fn resume(&mut self, client: usize) -> Result<(), String> {
        if !std::mem::take(&mut self.clients[client].paused) {
            return Ok(());
        }
        self.say(|| format!("{client}: goes on"));
        // What it finds first is up to the machine that it runs on.
        if self.rng.below(2) == 0 {
            self.deliver(client, Happening::Tick)?;
        }
        for (link, message) in std::mem::take(&mut self.clients[client].backlog) {
            self.at_client(client, link, message)?;
        }
        self.deliver(client, Happening::Tick)
    }

    fn want(&mut self, client: usize, wanted: bool) -> Result<(), String> {
        if self.clients[client].wanted == wanted {
            return Ok(());
        }
        self.clients[client].wanted = wanted;
        self.clients[client].stopped = false;
        self.deliver(client, if wanted { Happening::Start } else { Happening::Stop })
    }

    /// A candidate is told something, and does what it does about it.
    fn deliver(&mut self, client: usize, happening: Happening) -> Result<(), String> {
        let at = self.clock(client);
        self.say(|| format!("{client}: {happening:?}"));
        self.note(client, &happening);
        for wish in self.clients[client].recipe.step(at, happening) {
            self.say(|| format!("{client}:     {wish:?}"));
            match wish {
                Wish::Op(attempt, op) => {
                    self.standing.lists += u64::from(matches!(op, Op::List { .. }));
                    self.standing.creates += u64::from(matches!(op, Op::Create { .. }));
                    if matches!(op, Op::Create { numbered: true, .. }) {
                        self.on_offer(client, attempt)?;
                    }
                    self.send(client, Some(attempt), op);
                }
                Wish::Seat(seat) => self.on_seat(client, seat)?,
                Wish::Stopped => {
                    let wanted = self.clients[client].wanted;
                    self.clients[client].stopped = !wanted;
                    if let Some(session) =
                        self.clients[client].session.filter(|_| self.plan.late && !wanted)
                    {
                        self.store.end(session);
                    }
                }
            }
        }
        self.set_alarm(client);
        Ok(())
    }

    // --- what must hold ---

    /// Takes note of what may be a reason to make another offer.
    fn note(&mut self, number: usize, happening: &Happening) {
        let client = &mut self.clients[number];
        let nodes = &self.store.nodes;
        client.may_offer |= client.recipe.node().is_some_and(|own| !nodes.contains_key(own));
        match happening {
            Happening::Start | Happening::Expired => client.may_offer = true,
            Happening::Done(attempt, result) if client.offering == Some(*attempt) => {
                client.offering = None;
                client.may_offer |= result.is_err();
            }
            Happening::Done(..)
            | Happening::Tick
            | Happening::Stop
            | Happening::Released
            | Happening::Connected(..)
            | Happening::Suspended
            | Happening::Renewed(..)
            | Happening::Fired(..) => {}
        }
    }

    /// An offer is made once for each reason.
    fn on_offer(&mut self, number: usize, attempt: Attempt) -> Result<(), String> {
        let client = &mut self.clients[number];
        // It may have waited for an answer for long enough.
        let reason = std::mem::take(&mut client.may_offer) || client.offering.is_some();
        client.offering = Some(attempt);
        if reason { Ok(()) } else { Err(format!("{number} makes another offer without a reason")) }
    }

    fn on_seat(&mut self, client: usize, seat: Seat) -> Result<(), String> {
        match seat {
            Seat::Taken { token, until } => {
                self.standing.terms += 1;
                if self.clients[client].guards.is_some() {
                    return Err(format!(
                        "{client} leads again while guards of its last term are there"
                    ));
                }
                let by_hand = self.deleted.contains(&token.0);
                if self.last_token.is_some_and(|last| last >= token) && !by_hand {
                    return Err(format!("{client} leads with {token} after {:?}", self.last_token));
                }
                self.last_token = self.last_token.max(Some(token));
                self.clients[client].term = Some(Term { token, until });
                self.clients[client].guards = Some((self.clients[client].session, token));
                self.alone(client)?;
            }
            Seat::Confirmed { until } => {
                let Some(term) = &mut self.clients[client].term else {
                    return Err(format!("{client} is confirmed and does not lead"));
                };
                term.until = until;
                self.alone(client)?;
            }
            Seat::Suspended => {}
            Seat::Release => self.send_guards_away(client),
            Seat::Lost(loss) => {
                self.clients[client].may_offer = true;
                if self.clients[client].term.take().is_none() {
                    return Err(format!("{client} loses what it does not have"));
                }
                let stopped = loss == Loss::Stopped;
                if stopped && self.clients[client].guards.is_some() {
                    return Err(format!("{client} gave up its seat and guards are there"));
                }
                if !stopped {
                    self.send_guards_away(client);
                }
            }
        }
        Ok(())
    }

    fn send_guards_away(&mut self, client: usize) {
        let most = if !self.quiet && self.rng.below(5) == 0 { 30 } else { 1 };
        let wait = self.rng.below(most * SECOND);
        if let Some((_, token)) = self.clients[client].guards {
            self.plan_at(self.now + wait, Happens::GuardsGone(client, token));
        }
    }

    /// Nobody else leads by its own clock, or works though the store still keeps what its term rested on.
    fn alone(&self, client: usize) -> Result<(), String> {
        let by_hand = |token: Token| self.deleted.contains(&token.0);
        if self.clients[client].term.is_some_and(|term| by_hand(term.token)) {
            return Ok(());
        }
        for (number, other) in self.clients.iter().enumerate().filter(|(n, _)| *n != client) {
            let term = other.term.filter(|term| !by_hand(term.token));
            if term.is_some_and(|term| self.clock(number) < term.until) {
                return Err(format!("{client} and {number} lead"));
            }
            let Some((Some(session), token)) = other.guards.filter(|(_, token)| !by_hand(*token))
            else {
                continue;
            };
            if other.recipe.goes_with_its_session() && self.store.is_alive(session) {
                return Err(format!("{client} leads while {number} works with {token}"));
            }
        }
        Ok(())
    }

    // --- accidents ---

    fn accident(&mut self) -> Result<(), String> {
        let anybody = pick(&mut self.rng, self.clients.len());
        // The leader is who matters.
        let client = self.leader().filter(|_| self.rng.below(3) == 0).unwrap_or(anybody);
        match self.rng.below(10) {
            0..4 => self.lose_connection(client),
            4..6 => {
                if !self.clients[client].paused {
                    self.say(|| format!("{client}: paused"));
                    self.clients[client].paused = true;
                    let most = 2 * nanos(self.plan.timeout);
                    let wait = self.rng.below(most);
                    self.plan_at(self.now + wait, Happens::Resume(client));
                }
            }
            6..8 => {
                let wanted = !self.clients[client].wanted;
                if !self.clients[client].paused {
                    return self.want(client, wanted);
                }
            }
            8 => {
                for client in 0..self.clients.len() {
                    self.lose_connection(client);
                }
            }
            _ => self.delete_something(),
        }
        Ok(())
    }

    /// An operator deletes a node.
    fn delete_something(&mut self) {
        if !self.plan.deletions || self.store.nodes.is_empty() {
            return;
        }
        let at = pick(&mut self.rng, self.store.nodes.len());
        let Some((name, node)) = self.store.nodes.iter().nth(at) else { return };
        let (name, created, owner) = (name.clone(), node.created, node.owner);
        self.say(|| format!("operator: deletes {name}"));
        self.deleted.insert(created);
        for client in self.clients.iter_mut().filter(|client| client.session == owner) {
            client.may_offer = true;
        }
        self.store.change(name, None);
    }
}

fn nanos(duration: Duration) -> u64 {
    Instant::from_origin(duration).0
}

/// A number below this one.
fn pick(rng: &mut Rng, below: usize) -> usize {
    usize::try_from(rng.below(below as u64)).unwrap_or(0)
}

//! Connections between candidates and the store: queues in order, calls on their way, what a break loses.

use quorate_core::recipe::{Attempt, Failure, SessionId};
use quorate_core::time::Instant;

use super::agenda::Happens;
use super::call_faults::{CallFault, Leg};
use super::candidates::{Happening, Recipe};
use super::client::Client;
use super::servers::{Fired, Server};
use super::world::{Election, MS, SECOND, name};
use crate::call::{Op, Reply};
use crate::record::Candidacy;

/// A connection, and until when its queues are taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) client: usize,
    pub(super) server: usize,
    pub(super) up: u64,
    pub(super) leader: u64,
    pub(super) again: u64,
    pub(super) down: u64,
    /// Until when an answer of the leader is waited for that does not come through, and all behind it.
    pub(super) held: u64,
    /// A story has delayed something that is on its way to the server: that arrives, even if the connection is lost.
    pub(super) delayed: bool,
    /// What is on its way to the server does not arrive.
    pub(super) cut: bool,
    pub(super) open: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) link: u64,
    pub(super) session: Option<SessionId>,
    pub(super) attempt: Option<Attempt>,
    pub(super) sent: Instant,
    pub(super) op: Op,
}

#[derive(Clone, Debug)]
pub(super) enum Message {
    Connected(SessionId, Instant),
    SessionOver,
    Answer(Request, Result<Reply, Failure>, usize),
    Fired(Attempt, bool),
    /// What the client's own library says.
    Here(Happening),
}

impl<R: Recipe> Election<R> {
    pub(super) fn send(&mut self, client: usize, attempt: Option<Attempt>, op: Op) {
        let sent = self.clock(client);
        let Client { link, session, .. } = self.clients[client];
        // What is not sent has no fault on its way.
        let fault = if link == 0 { None } else { self.fault(client, Leg::Request, &op) };
        let request = Request { link, session, attempt, sent, op };
        let delay = self.delay() + fault.map_or(0, CallFault::nanos);
        match self.links.get_mut(&link) {
            Some(queue) => {
                queue.up = (queue.up + 1).max(self.now + delay);
                queue.delayed |= matches!(fault, Some(CallFault::Late(_)));
                let at = queue.up;
                self.clients[client].in_flight.extend(attempt);
                let lost = matches!(fault, Some(CallFault::Lost));
                let happens =
                    if lost { Happens::Break(client, link) } else { Happens::AtServer(request) };
                self.plan_at(at, happens);
            }
            None => {
                if let Some(attempt) = attempt {
                    self.here(client, Happening::Done(attempt, Err(Failure::Unknown)));
                }
            }
        }
    }

    /// The client's own library says something.
    pub(super) fn here(&mut self, client: usize, happening: Happening) {
        self.plan_at(self.now, Happens::AtClient(client, 0, Message::Here(happening)));
    }

    pub(super) fn at_server(&mut self, request: Request) {
        let (to_leader, back) = (self.delay(), self.delay());
        let Some(link) = self.links.get_mut(&request.link).filter(|link| !link.cut) else { return };
        let Server { cut_until, heard, .. } = &mut self.store.servers[link.server];
        let cut_until = *cut_until;
        if self.plan.touches {
            heard.extend(request.session.map(|session| (session, request.link)));
        }
        if matches!(request.op, Op::Read { .. } | Op::List { fresh: false }) {
            link.again = (link.again + 1).max(self.now);
            let at = link.again;
            self.plan_at(at, Happens::AtServerAgain(request, Ok(Reply::Done), 0));
        } else {
            link.leader = (link.leader + 1).max(self.now + to_leader).max(cut_until);
            link.again = (link.again + 1).max(link.leader + back);
            let Link { leader, again, .. } = *link;
            self.plan_at(leader, Happens::AtLeader(request, again));
        }
    }

    pub(super) fn at_leader(&mut self, request: Request, again: u64) {
        let Some(session) = request.session else { return };
        let is_on = if self.plan.touches {
            self.store.is_on(session, request.link)
        } else {
            self.store.hear(session, request.link, self.now)
        };
        let result = if is_on {
            self.say(|| format!("leader: {session} {:?}", request.op));
            self.store.write(&request.op)
        } else if self.store.is_alive(session) && self.plan.late {
            self.say(|| format!("leader: late, {session} {:?}", request.op));
            let result = self.store.write(&request.op);
            if let Some(client) = self.links.get(&request.link).map(|link| link.client) {
                self.tell(client, || Candidacy::Late(request.op.clone(), result.clone()));
            }
            result
        } else if self.store.is_alive(session) {
            // It has moved to another connection: what comes late from here is refused.
            return;
        } else {
            Err(Failure::Expired)
        };
        if let (Ok(Reply::Made(_, node)), Some(link)) = (&result, self.links.get(&request.link)) {
            self.authors.insert(node.version, link.client);
        }
        let end = self.store.log.len();
        self.plan_at(again, Happens::AtServerAgain(request, result, end));
    }

    pub(super) fn at_server_again(
        &mut self,
        request: Request,
        result: Result<Reply, Failure>,
        end: usize,
    ) {
        let delay = self.delay();
        let Some(link) = self.links.get_mut(&request.link).filter(|link| link.open) else {
            return;
        };
        if end > 0 {
            link.held = link.held.max(self.store.servers[link.server].cut_until);
        }
        let link = *link;
        if link.held > self.now {
            return self.plan_at(link.held, Happens::AtServerAgain(request, result, end));
        }
        let fired = self.store.apply(link.server, end);
        self.fire(fired);
        let result = match (&request.op, request.attempt, result) {
            (Op::Read { .. } | Op::List { .. }, Some(attempt), Ok(_)) => {
                self.store.read(link.server, &request.op, request.link, attempt)
            }
            (_, _, result) => result,
        };
        let seen = self.store.servers[link.server].applied;
        let client = link.client;
        match self.fault(client, Leg::Answer, &request.op) {
            Some(CallFault::Lost) => {
                self.plan_at(self.now + delay, Happens::Break(client, request.link));
            }
            Some(late @ CallFault::Late(_)) => {
                let its = |attempt: &Attempt| Some(*attempt) == request.attempt;
                self.clients[client].in_flight.retain(|attempt| !its(attempt));
                let message = Message::Answer(request, result, seen);
                self.plan_at(
                    self.now + delay + late.nanos(),
                    Happens::AtClient(client, 0, message),
                );
            }
            None => self.post(request.link, delay, Message::Answer(request, result, seen)),
        }
    }

    /// Sends something down a connection, behind what was sent before.
    pub(super) fn post(&mut self, link: u64, delay: u64, message: Message) {
        if let Some(queue) = self.links.get_mut(&link).filter(|link| link.open) {
            queue.down = (queue.down + 1).max(self.now + delay);
            let (client, at) = (queue.client, queue.down);
            self.plan_at(at, Happens::AtClient(client, link, message));
        }
    }

    pub(super) fn fire(&mut self, fired: Vec<Fired>) {
        for (link, attempt, gone) in fired {
            let delay = self.delay();
            self.post(link, delay, Message::Fired(attempt, gone));
        }
    }

    pub(super) fn dial(&mut self, client: usize) {
        let Client { seen, session, paused, crashed, link, .. } = self.clients[client];
        if crashed || link != 0 {
            return;
        }
        let servers = self.store.servers.len() as u64;
        let server = usize::try_from(self.chance(servers)).unwrap_or(0);
        let Server { applied, cut_until, .. } = self.store.servers[server];
        if paused || applied < seen || cut_until > self.now || self.is_away(client) {
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
            held: 0,
            delayed: false,
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
    pub(super) fn hang_up(&mut self, link: u64, cut: bool) {
        if let Some(link) = self.links.get_mut(&link) {
            (link.open, link.cut) = (false, cut && !link.delayed);
        }
        self.store.forget(link);
    }

    pub(super) fn lose_connection(&mut self, client: usize) {
        let link = self.clients[client].link;
        if link == 0 {
            return;
        }
        self.say(|| format!("{}: connection lost", name(client)));
        let cut = self.chance(2) == 0;
        self.hang_up(link, cut);
        self.clients[client].link = 0;
        let suspended_first = self.chance(2) == 0;
        if suspended_first {
            self.here(client, Happening::Suspended);
        }
        for attempt in std::mem::take(&mut self.clients[client].in_flight) {
            self.here(client, Happening::Done(attempt, Err(Failure::Unknown)));
        }
        if !suspended_first {
            self.here(client, Happening::Suspended);
        }
        let wait = 10 * MS + self.chance(if self.quiet { 100 * MS } else { 6 * SECOND });
        self.plan_at(self.now + wait, Happens::Dial(client));
    }
}

//! The clients of a world: their connections end at the fronts of servers.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_application::clients::{ClientId, Clients, Event as Told, Frame, Framing, Transport};
use quorate_core::id::ServerId;
use quorate_core::time::Instant;

use crate::clients::{Crowd, Judge, News, Said};
use crate::faults::{Coverage, FaultClass};
use crate::rule::{Rule, Violation, broken};
use crate::world::front::{Front, Order};
use crate::world::{What, World};

/// Where clients come from.
const REMOTE: ([u8; 4], u16) = ([10, 0, 0, 7], 4711);

impl Front {
    /// Whether a connection has not ended.
    pub(super) fn has(&self, client: ClientId) -> bool {
        self.open.contains_key(&client)
    }

    /// A connection begins.
    pub(super) fn open(&mut self, client: ClientId) {
        self.open.insert(client, self.service.framing());
    }

    /// A connection has ended; whether it had not been closed.
    pub(super) fn close(&mut self, client: ClientId) -> bool {
        self.held.remove(&client);
        self.open.remove(&client).is_some()
    }

    /// What there is of a connection, in the order in which it comes.
    pub(super) fn frames(&mut self, client: ClientId, bytes: Bytes) -> Option<Vec<Frame>> {
        let framing = self.open.get_mut(&client)?;
        let (mut bytes, mut frames) = (BytesMut::from(bytes), Vec::new());
        while let Some(frame) = framing.take(&mut bytes) {
            frames.push(frame);
        }
        match self.held.get_mut(&client) {
            Some(held) => {
                held.extend(frames);
                None
            }
            None => Some(frames),
        }
    }
}

impl World {
    /// Something happens to clients.
    pub(super) fn on_client(&mut self, news: News) -> Result<(), Violation> {
        let now = self.agenda.now();
        let Some(crowd) = &mut self.crowd else { return Ok(()) };
        match news {
            News::ToServer(link, said) => {
                if let Some(server) = crowd.arrives(link, &said) {
                    self.reaches(server, link, said);
                }
            }
            News::Reads(client) => {
                if let Some((server, bytes)) = crowd.reads(client, now) {
                    self.is_written(server, client, bytes);
                }
            }
            News::Act(_) | News::ToClient(..) => crowd.on_news(news, now)?,
        }
        self.enter_clients();
        Ok(())
    }

    /// What a client says comes to a server.
    fn reaches(&mut self, id: ServerId, client: ClientId, said: Said) {
        let now = self.agenda.now();
        let (Some(server), Some(crowd)) = (self.servers.get_mut(&id), &mut self.crowd) else {
            return;
        };
        let up = server.peer.is_some();
        let Some(front) = server.front.as_mut().filter(|_| up) else {
            return crowd.on_closed(client, now);
        };
        let told = match said {
            Said::Up => {
                let remote = REMOTE.into();
                front.open(client);
                Told::Connected { client, remote, over: Transport::Plain }
            }
            Said::Bytes(bytes) => match front.frames(client, bytes) {
                Some(frames) => Told::Received { client, frames },
                None => return,
            },
            Said::End => {
                if !front.close(client) {
                    return;
                }
                Told::Disconnected(client)
            }
        };
        self.order(id, Order::Tell(told));
    }

    /// What a client had not read is written, where the connection has not ended.
    fn is_written(&mut self, id: ServerId, client: ClientId, bytes: usize) {
        let server = self.servers.get(&id);
        let front = server.and_then(|server| server.front.as_ref());
        if front.is_some_and(|front| front.has(client)) {
            self.order(id, Order::Tell(Told::Written { client, bytes }));
        }
    }

    /// A client says nothing for a while; which, and for how long its session may be silent. None if none has a session.
    pub(crate) fn silence_a_client(&mut self, picked: u64) -> Option<(usize, Duration)> {
        let now = self.agenda.now();
        self.crowd.as_mut().and_then(|crowd| crowd.silence(now, picked))
    }

    /// Such a client goes on.
    pub(crate) fn client_speaks(&mut self, at: usize) {
        let now = self.agenda.now();
        if let Some(crowd) = &mut self.crowd {
            crowd.speak(at, now);
        }
    }

    /// Counts a fault that meets clients, if there are any.
    pub(crate) fn hits_clients(&mut self, class: FaultClass) {
        self.coverage.hits(class, u64::from(self.crowd.is_some()));
    }

    /// What happened to clients, counted.
    pub(super) fn count_clients(&self, all: &mut Coverage) {
        let Some(crowd) = &self.crowd else { return };
        let (judge, sessions, kept) = (&crowd.judge, &crowd.judge.sessions, &crowd.judge.kept);
        for (class, count) in [
            (FaultClass::SilentClient, crowd.silenced),
            (FaultClass::UnreadReplies, crowd.unread),
            (FaultClass::RepliesHeldBack, crowd.held_back),
            (FaultClass::EventsWhileHeldBack, crowd.heard_unread),
            (FaultClass::SessionExpired, sessions.expired),
            (FaultClass::SessionClosed, sessions.asked_to_end),
            (FaultClass::SessionMoved, sessions.moved),
            (FaultClass::MovedWriteRefused, sessions.stale_writes),
            (FaultClass::WatchesSetAgain, judge.set_again),
            (FaultClass::PoisonScreened, judge.screened),
            (FaultClass::EventHidden, judge.hidden),
            (FaultClass::PermissionMissing, judge.denied),
            (FaultClass::QuotaCounted, kept.counted),
            (FaultClass::ContainerRemoved, kept.containers),
            (FaultClass::TtlNodeRemoved, kept.ttls),
            (FaultClass::RemovalRefused, kept.refused),
        ] {
            all.hits(class, count);
        }
    }

    /// Enters what is to happen to clients.
    pub(super) fn enter_clients(&mut self) {
        let Some(crowd) = &mut self.crowd else { return };
        for (at, news) in crowd.scheduled.drain(..) {
            self.agenda.at(at, What::Client(news));
        }
    }

    /// What clients were told so far, if there are any.
    pub(crate) fn judge(&self) -> Option<&Judge> {
        self.crowd.as_ref().map(|crowd| &crowd.judge)
    }

    /// Every client vanishes for good, some without a word.
    pub(crate) fn clients_vanish(&mut self) {
        let now = self.agenda.now();
        if let Some(crowd) = &mut self.crowd {
            crowd.vanish(now);
        }
        self.enter_clients();
    }

    /// Whether all clients have been served since then.
    pub(crate) fn clients_are_served(&self, since: Instant) -> bool {
        self.crowd.as_ref().is_none_or(|crowd| crowd.is_served(since))
    }

    /// Where the clients stand; empty if there are none.
    pub(crate) fn clients_state(&self) -> String {
        self.crowd.as_ref().map(|crowd| crowd.state()).unwrap_or_default()
    }

    /// Whether each of these servers that runs has what is committed, the same tree and the same sessions.
    pub(crate) fn trees_are_level(&self, mut ids: impl Iterator<Item = ServerId>) -> bool {
        let Some(judge) = self.judge() else { return true };
        let front = |id| self.servers.get(&id).and_then(|server| server.front.as_ref());
        ids.all(|id| front(id).is_none_or(|front| front.tree().last_zxid() >= judge.last()))
    }

    /// Whether one order explains all that clients were told; of how many operations.
    ///
    /// # Errors
    ///
    /// If none does.
    pub(crate) fn explain_clients(&self) -> Result<usize, Violation> {
        self.crowd.as_ref().map_or(Ok(0), |crowd| crowd.explain())
    }

    /// At the end, long after the last client has vanished: all servers have the same, and no session is left.
    ///
    /// # Errors
    ///
    /// If it is not so.
    pub(crate) fn check_clients(&self) -> Result<(), Violation> {
        let Some(judge) = self.judge() else { return Ok(()) };
        for (id, server) in &self.servers {
            if let Some(front) = &server.front {
                judge.same(*id, front.tree())?;
            }
        }
        if let Some(id) = self.network.has_forwarded_in_vain() {
            return broken(Rule::Paired, id, "waits for what it has forwarded".to_owned());
        }
        let mut left = judge.tree().sessions();
        match left.next() {
            None => Ok(()),
            Some((session, timeout)) => {
                let detail = format!("session {session:x} of {timeout} ms lives, long unheard");
                broken(Rule::Silence, ServerId::NONE, detail)
            }
        }
    }
}

/// The clients of a world, if it has any.
pub(super) fn crowd_of(
    seed: u64,
    count: usize,
    tick: Duration,
    servers: Vec<ServerId>,
    beside_java: bool,
    is_ours_alone: bool,
) -> Option<Box<Crowd>> {
    (count > 0).then(|| {
        let mut crowd = Crowd::new(seed ^ 0xc11e_4754, count, tick, servers);
        crowd.judge.beside_java = beside_java;
        crowd.judge.is_ours_alone = is_ours_alone;
        Box::new(crowd)
    })
}

//! The clients of a world: their connections end at the fronts of servers.

use std::time::Duration;

use quorate_application::clients::{ClientId, Event as Told};
use quorate_core::id::ServerId;
use quorate_core::time::Instant;

use crate::clients::{Crowd, Judge, News, Said};
use crate::rule::{Rule, Violation, broken};
use crate::world::front::Order;
use crate::world::{What, World};

/// Where clients come from.
const REMOTE: ([u8; 4], u16) = ([10, 0, 0, 7], 4711);

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
                Told::Connected { client, remote }
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

    /// Whether every server that runs has what is committed, the same tree and the same sessions.
    pub(crate) fn trees_are_level(&self) -> bool {
        let Some(judge) = self.judge() else { return true };
        let fronts = self.servers.values().filter_map(|server| server.front.as_ref());
        fronts.filter(|front| front.tree().last_zxid() < judge.last()).count() == 0
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
) -> Option<Box<Crowd>> {
    (count > 0).then(|| Box::new(Crowd::new(seed ^ 0xc11e_4754, count, tick, servers)))
}

//! Clients of ZooKeeper servers, modelled, and the oracle that judges what they are told.
//!
//! ```text
//!   Crowd ── client    a session: what it asks, what it waits for, where it is connected
//!         │   └─ watching   what it watches, and which events it must hear
//!         ├─ link      a connection: late, cut, or half open
//!         ├─ asking    what clients ask for
//!         └─ Judge     the committed history in one tree
//!             ├─ replies    whether a reply is so
//!             └─ sessions   who was heard when, who is connected where, who has ended
//! ```
//!
//! The servers that they talk to are the shipped service, tree and core; see `world::front`.

mod asking;
mod client;
mod judge;
mod link;
mod replies;
mod sessions;
mod watching;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use quorate_application::clients::ClientId;
use quorate_core::id::ServerId;
use quorate_core::rng::Rng;
use quorate_core::time::Instant;

use crate::clients::client::Client;
pub(crate) use crate::clients::judge::Judge;
use crate::clients::link::Link;
pub(crate) use crate::clients::link::{News, Said};
use crate::network::up_to;
use crate::rule::Violation;

/// All clients of a world.
#[derive(Debug)]
pub(crate) struct Crowd {
    rng: Rng,
    tick: Duration,
    servers: Vec<ServerId>,
    clients: Vec<Client>,
    links: BTreeMap<ClientId, Link>,
    /// What is to happen, for the world's agenda.
    pub(crate) scheduled: Vec<(Instant, News)>,
    pub(crate) judge: Judge,
    /// Nothing goes wrong any more.
    calm: bool,
    /// Clients have vanished for good.
    over: bool,
}

impl Crowd {
    /// So many clients of these servers, which begin at once.
    pub(crate) fn new(seed: u64, count: usize, tick: Duration, servers: Vec<ServerId>) -> Self {
        let mut rng = Rng::new(seed);
        let clients = (0..count).map(|_| Client::new(Rng::new(rng.next_u64()), tick)).collect();
        let scheduled = (0..count).map(|at| (Instant::from_origin(tick), News::Act(at))).collect();
        Self {
            rng,
            tick,
            servers,
            clients,
            links: BTreeMap::new(),
            scheduled,
            judge: Judge::default(),
            calm: false,
            over: false,
        }
    }

    // ---- what the world does ----

    /// Nothing goes wrong from here on: nothing is late, no connection breaks.
    pub(crate) fn calm(&mut self) {
        self.calm = true;
    }

    /// Every client vanishes, half of them without a word.
    pub(crate) fn vanish(&mut self, now: Instant) {
        self.over = true;
        let ids: Vec<_> = self.links.keys().copied().collect();
        for id in ids {
            if self.rng.below(2) == 0 {
                self.say_up(id, Said::End, now);
            }
            if let Some(link) = self.links.get_mut(&id) {
                (link.cut, link.at_client) = (true, false);
            }
        }
    }

    /// Whether every client has a session, and nothing that it waits for.
    pub(crate) fn is_served(&self, since: Instant) -> bool {
        self.clients.iter().all(|client| client.served >= since && client.is_open())
    }

    /// Where the clients stand.
    pub(crate) fn state(&self) -> String {
        self.clients.iter().map(|client| format!("  {}\n", client.state())).collect()
    }

    /// A server has ended; with its machine if it says nothing more.
    pub(crate) fn on_crash(&mut self, server: ServerId, silent: bool, now: Instant) {
        let of_it: Vec<_> = self
            .links
            .iter()
            .filter(|(_, link)| link.server == server)
            .map(|(id, _)| *id)
            .collect();
        for id in of_it {
            if silent {
                self.cut(id);
            } else {
                self.say_down(id, Said::End, now);
            }
            if let Some(link) = self.links.get_mut(&id) {
                link.at_server = false;
            }
        }
    }

    /// What comes to a server on a connection: whether it does.
    pub(crate) fn arrives(&mut self, id: ClientId, said: &Said) -> Option<ServerId> {
        let link = self.links.get_mut(&id).filter(|link| link.at_server)?;
        // Of what was cut the ends only are noticed, each at its time.
        if link.cut && *said != Said::End {
            return None;
        }
        link.at_server &= *said != Said::End;
        Some(link.server)
    }

    /// Whether something was sent on a connection: all behind has a header.
    pub(crate) fn is_answered(&self, id: ClientId) -> bool {
        self.links.get(&id).is_some_and(|link| link.answered)
    }

    /// A server sends bytes on a connection. Returns the session if it is its welcome: 0, if it is refused.
    pub(crate) fn on_sent(&mut self, id: ClientId, bytes: Bytes, now: Instant) -> Option<i64> {
        let link = self.links.get_mut(&id)?;
        let first = !std::mem::replace(&mut link.answered, true);
        let session = bytes.get(12..20).and_then(|session| session.try_into().ok());
        let session = session.map(i64::from_be_bytes).filter(|_| first);
        self.say_down(id, Said::Bytes(bytes), now);
        session
    }

    /// A server ends a connection.
    pub(crate) fn on_closed(&mut self, id: ClientId, now: Instant) {
        self.say_down(id, Said::End, now);
        if let Some(link) = self.links.get_mut(&id) {
            link.at_server = false;
        }
    }

    /// The session that the client of a connection asks for; of one that it has given up, none.
    pub(crate) fn session_of(&self, id: ClientId) -> Option<i64> {
        let client = self.clients.get(self.links.get(&id)?.client)?;
        (client.link == Some(id)).then_some(client.session)
    }

    /// The session of a connection that was told that it has it.
    pub(crate) fn open_session_of(&self, id: ClientId) -> Option<i64> {
        let link = self.links.get(&id)?;
        let client = self.clients.get(link.client)?;
        (client.is_open() && client.link == Some(id)).then_some(client.session)
    }

    /// Something happens to a client.
    pub(crate) fn on_news(&mut self, news: News, now: Instant) -> Result<(), Violation> {
        match news {
            News::Act(at) => self.act(at, now),
            News::ToClient(id, said) => {
                let Some(link) = self.links.get_mut(&id).filter(|link| link.at_client) else {
                    return Ok(());
                };
                if link.cut && said != Said::End {
                    return Ok(());
                }
                let at = link.client;
                self.hears(at, id, said, now)
            }
            // The servers' are the world's.
            News::ToServer(..) => Ok(()),
        }
    }

    // ---- inside ----

    /// A client connects to any server.
    fn open_link(&mut self, at: usize, now: Instant) -> ClientId {
        let picked = usize::try_from(self.rng.below(self.servers.len() as u64)).unwrap_or(0);
        let id = ClientId(self.judge.links);
        self.judge.links += 1;
        self.links.insert(id, Link::new(at, self.servers[picked], now));
        self.say_up(id, Said::Up, now);
        id
    }

    fn server_of(&self, id: ClientId) -> ServerId {
        self.links.get(&id).map_or(ServerId::NONE, |link| link.server)
    }

    fn say_up(&mut self, id: ClientId, said: Said, now: Instant) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let at = link.up(now, &mut self.rng, self.calm);
        self.scheduled.push((at, News::ToServer(id, said)));
    }

    fn say_down(&mut self, id: ClientId, said: Said, now: Instant) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let at = link.down(now, &mut self.rng, self.calm);
        self.scheduled.push((at, News::ToClient(id, said)));
    }

    /// A connection that was cut: the server hears of it late.
    fn cut(&mut self, id: ClientId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.cut = true;
        }
    }

    /// The client gives up its connection: the server hears of it soon, late, or behind what is still on its way.
    fn leave(&mut self, id: ClientId, now: Instant) {
        if let Some(link) = self.links.get_mut(&id) {
            link.at_client = false;
        }
        match self.rng.below(3) {
            0 => self.say_up(id, Said::End, now),
            1 => {
                self.cut(id);
                let late = now + up_to(&mut self.rng, 12 * self.tick);
                self.scheduled.push((late, News::ToServer(id, Said::End)));
            }
            // What was sent arrives, the end much later.
            _ => {
                let late = now + up_to(&mut self.rng, 12 * self.tick);
                self.scheduled.push((late, News::ToServer(id, Said::End)));
            }
        }
    }
}

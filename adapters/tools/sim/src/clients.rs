//! Clients of ZooKeeper servers, modelled, and the oracle that judges what they are told.
//!
//! ```text
//!   Crowd ── client    a session: what it asks, what it waits for, where it is connected
//!         │   └─ watching   what it watches, and which events it must hear
//!         ├─ link      a connection: late, cut, or half open
//!         ├─ asking    what clients ask for
//!         ├─ history   that one order explains what they are told
//!         ├─ access    who they are, and what they may do
//!         └─ Judge     the committed history in one tree
//!             ├─ replies    whether a reply is so
//!             ├─ keeping    whether quotas count what is there, and what is removed was due
//!             └─ sessions   who was heard when, who is connected where, who has ended
//! ```
//!
//! The servers that they talk to are the shipped service, tree and core; see `world::front`.

mod access;
mod asking;
mod client;
mod history;
mod judge;
mod keeping;
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
use quorate_service::wire::NOTIFICATION_XID;

use crate::clients::client::Client;
pub(crate) use crate::clients::judge::Judge;
use crate::clients::link::Link;
pub(crate) use crate::clients::link::{News, Said};
use crate::network::up_to;
use crate::rule::Violation;

/// While more bytes than this wait to be written to a client, it is sent events alone.
pub(crate) const UNWRITTEN_MAX: usize = 1 << 20;

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
    /// How often a client did not read, was held back for it, and heard events meanwhile.
    pub(crate) unread: u64,
    pub(crate) held_back: u64,
    pub(crate) heard_unread: u64,
    /// How often a client was silenced.
    pub(crate) silenced: u64,
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
            unread: 0,
            held_back: 0,
            heard_unread: 0,
            silenced: 0,
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
            self.stop_waiting(id);
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
        // Replies wait at the server, and what they show is older than this event.
        let ahead = bytes.get(4..8) == Some(&NOTIFICATION_XID.to_be_bytes()[..]);
        let ahead = ahead && !first && link.unwritten > UNWRITTEN_MAX;
        self.heard_unread += u64::from(ahead);
        let client = self.clients.get_mut(link.client).filter(|c| c.link == Some(id));
        if let (Some(client), true) = (client, ahead) {
            client.ahead = Some(now);
        }
        link.unwritten += bytes.len();
        if let Some(unread) = &mut link.unread {
            link.waiting += bytes.len();
            unread.push(bytes);
        } else {
            self.say_down(id, Said::Bytes(bytes), now);
        }
        session
    }

    /// A server is told that this is written.
    pub(crate) fn on_written(&mut self, id: ClientId, bytes: usize) {
        if let Some(link) = self.links.get_mut(&id) {
            link.unwritten = link.unwritten.saturating_sub(bytes);
        }
    }

    /// How many bytes a client has not read, if it does not read.
    pub(crate) fn waiting(&self, id: ClientId) -> Option<usize> {
        let link = self.links.get(&id)?;
        link.unread.as_ref().map(|_| link.waiting)
    }

    /// A client reads again: its server, and how many bytes can be written now.
    pub(crate) fn reads(&mut self, id: ClientId, now: Instant) -> Option<(ServerId, usize)> {
        let link = self.links.get_mut(&id)?;
        let (unread, waiting) = (link.unread.take()?, std::mem::take(&mut link.waiting));
        let server = link.server;
        for bytes in unread {
            self.say_down(id, Said::Bytes(bytes), now);
        }
        Some((server, waiting))
    }

    /// What a client has not read is lost with its server's end of the connection.
    fn stop_waiting(&mut self, id: ClientId) {
        if let Some(link) = self.links.get_mut(&id) {
            (link.unread, link.waiting) = (None, 0);
        }
    }

    /// A client that has a session says nothing from now on, for twice its time-out at most; which it is, and how long
    /// its session may be silent.
    pub(crate) fn silence(&mut self, now: Instant, picked: u64) -> Option<(usize, Duration)> {
        let open: Vec<usize> =
            (0..self.clients.len()).filter(|at| self.clients[*at].is_open()).collect();
        let at = *open.get(usize::try_from(picked % open.len().max(1) as u64).unwrap_or(0))?;
        let client = &mut self.clients[at];
        client.paused = Some(now + client.timeout * 2);
        self.silenced += 1;
        Some((at, client.timeout))
    }

    /// It goes on.
    pub(crate) fn speak(&mut self, at: usize, now: Instant) {
        if let Some(paused) = self.clients.get_mut(at).and_then(|client| client.paused.as_mut()) {
            *paused = now;
        }
    }

    /// A server ends a connection.
    pub(crate) fn on_closed(&mut self, id: ClientId, now: Instant) {
        self.stop_waiting(id);
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

    /// Whether its client has no other connection, and none has ended lately: what came by that may be under way yet.
    pub(crate) fn is_the_only(&self, id: ClientId, now: Instant) -> bool {
        let Some(own) = self.links.get(&id) else { return true };
        let mut of_it = self.links.iter().filter(|(_, link)| link.client == own.client);
        of_it.all(|(other, link)| *other == id || link.has_long_ended(now))
    }

    /// Whether two connections are of one client.
    pub(crate) fn have_one_client(&self, one: ClientId, other: ClientId) -> bool {
        let client = |id| self.links.get(&id).map(|link| link.client);
        client(one).is_some() && client(one) == client(other)
    }

    /// The session of a client that is connected to a server.
    pub(crate) fn session_at(&self, server: ServerId) -> Option<i64> {
        let mut of_it =
            self.links.iter().filter(|(_, link)| link.server == server && link.at_server);
        of_it.find_map(|(id, _)| self.open_session_of(*id))
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
            News::ToServer(..) | News::Reads(_) => Ok(()),
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

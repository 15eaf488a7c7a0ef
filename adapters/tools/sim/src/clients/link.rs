//! The connection of a client to a server: what is said on it arrives in order, a while later or never.

use std::time::Duration;

use bytes::Bytes;
use quorate_application::clients::ClientId;
use quorate_core::id::ServerId;
use quorate_core::rng::Rng;
use quorate_core::time::Instant;

use crate::network::up_to;

/// What is said on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It begins.
    Up,
    /// Bytes, in frames.
    Bytes(Bytes),
    /// It has ended.
    End,
}

/// What happens to clients.
#[derive(Debug)]
pub(crate) enum News {
    /// A client may do something.
    Act(usize),
    /// Something comes to a server.
    ToServer(ClientId, Said),
    /// Something comes to a client.
    ToClient(ClientId, Said),
    /// A client reads again.
    Reads(ClientId),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) client: usize,
    pub(crate) server: ServerId,
    /// Nothing passes any more, and neither end knows.
    pub(crate) cut: bool,
    /// The server has not ended it, nor heard of its end.
    pub(crate) at_server: bool,
    /// The same of the client.
    pub(crate) at_client: bool,
    /// The server has said something: behind the first frame all have headers.
    pub(crate) answered: bool,
    /// What the client has not read, while it does not read.
    pub(crate) unread: Option<Vec<Bytes>>,
    /// How many bytes that are.
    pub(crate) waiting: usize,
    /// How many bytes its server takes for unwritten.
    pub(crate) unwritten: usize,
    /// When what was said last arrives, by the end at which it does.
    to_server: Instant,
    to_client: Instant,
}

impl Link {
    pub(crate) const fn new(client: usize, server: ServerId, now: Instant) -> Self {
        Self {
            client,
            server,
            cut: false,
            at_server: true,
            at_client: true,
            answered: false,
            unread: None,
            waiting: 0,
            unwritten: 0,
            to_server: now,
            to_client: now,
        }
    }

    /// Whether the server knows for a while that it has ended.
    pub(crate) fn has_long_ended(&self, now: Instant) -> bool {
        !self.at_server && self.to_server + A_WHILE < now
    }

    /// When something that the client says now is there.
    pub(crate) fn up(&mut self, now: Instant, rng: &mut Rng, calm: bool) -> Instant {
        self.to_server = self.to_server.max(now + latency(rng, calm));
        self.to_server
    }

    /// When something that the server says now is there.
    pub(crate) fn down(&mut self, now: Instant, rng: &mut Rng, calm: bool) -> Instant {
        self.to_client = self.to_client.max(now + latency(rng, calm));
        self.to_client
    }
}

/// By then a server has carried out, or refused, what came before an end.
const A_WHILE: Duration = Duration::from_secs(1);

/// Some messages are late.
fn latency(rng: &mut Rng, calm: bool) -> Duration {
    let spike = !calm && rng.below(40) == 0;
    let most = if spike { 400 } else { 3 };
    Duration::from_micros(50) + up_to(rng, Duration::from_millis(most))
}

//! What the connections of clients tell the loop, and what they share.
//!
//! They have a channel of their own, which the loop empties as far as the service keeps up: while it does not, clients wait
//! and peers do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_channel::{Receiver, Sender, bounded};
use quorate_application::clients::{ClientId, Event};

use crate::config::ServerConfig;
use crate::inbox::Inbox;
use crate::net::client_outbound::ClientOutbound;
use crate::net::events::Shared;
use crate::permits::Permits;
use crate::turns::{Held, Turns};

/// What the connections of clients tell the loop.
#[derive(Debug)]
pub(crate) enum ClientNews {
    /// A client has connected, and this is how to write to it.
    Up(Event, ClientId, ClientOutbound),
    /// Something that the service understands as it is, of this client. What takes much memory holds its place until the
    /// service has heard of it.
    Event(Event, ClientId, Held),
    /// A client has sent a word, and says nothing else.
    Word(ClientId, [u8; 4]),
}

/// Where the loop hears of clients.
#[derive(Debug)]
pub(crate) struct News {
    /// What they send. A connection [arrives](Self::arrived) before.
    pub(crate) heard: Receiver<ClientNews>,
    pub(crate) arrived: Receiver<ClientNews>,
}

/// What all connections of clients share.
#[derive(Debug)]
pub(crate) struct SharedByClients {
    pub(super) server: Arc<Shared>,
    pub(super) events: Sender<ClientNews>,
    /// For new connections and words, which the loop takes also while the service is behind.
    pub(super) arrivals: Sender<ClientNews>,
    /// Clients to which something was written.
    pub(crate) written: Inbox<ClientId>,
    pub(super) long: Permits,
    /// How long a connection may take to its first whole frame.
    pub(super) first_frame_timeout: Duration,
    /// For frames that are longer than a little.
    pub(super) unfinished: Arc<Turns>,
    /// For those that are longer than others may be.
    pub(super) longest: Arc<Turns>,
    /// How long those may be.
    pub(super) frame_bytes_max: usize,
    next: AtomicU64,
}

impl SharedByClients {
    /// And where the loop hears of them.
    pub(crate) fn new(
        server: Arc<Shared>,
        config: &ServerConfig,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> (Self, News) {
        let (events, heard) = bounded(EVENTS_MAX);
        let (arrivals, arrived) = bounded(EVENTS_MAX);
        let shared = Self {
            server,
            events,
            arrivals,
            written: Inbox::new(wake),
            long: Permits::new(LONG_EVENTS_MAX),
            first_frame_timeout: config.first_frame_timeout,
            unfinished: Turns::new(UNFINISHED_MAX),
            longest: Turns::new(config.long_frame_bytes),
            frame_bytes_max: config.core.limits.request_bytes,
            next: AtomicU64::new(1),
        };
        (shared, News { heard, arrived })
    }

    /// A number that was never used.
    pub(super) fn next_client(&self) -> ClientId {
        ClientId(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// How many events may wait for the loop; beyond, readers wait.
const EVENTS_MAX: usize = 256;
/// How many long events may wait for the loop or for the service.
const LONG_EVENTS_MAX: usize = 32;
/// How many bytes the long frames of all clients may have together that have not fully arrived, or wait for the service;
/// beyond, connections wait for their turn.
const UNFINISHED_MAX: usize = 256 << 20;

//! Clients: what the loop hears from their connections, and what their service has it do there.
//!
//! Peers come first: of clients a bounded number of events is taken in a turn, and none while the service is behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_channel::Sender;
use quorate_application::Application;
use quorate_application::clients::{ClientId, Clients, Close, Event, Output};
use quorate_core::address::HostPort;
use quorate_core::membership::Member;

use crate::audit::AuditQueue;
use crate::drive::Driver;
use crate::net::address_limit::AddressLimit;
use crate::net::client_events::{ClientNews, News, SharedByClients};
use crate::net::client_listeners::ClientAddrs;
use crate::net::client_outbound::ClientOutbound;
use crate::runtime::Runtime;
use crate::status::Counters;

/// The loop's ends of the connections of clients.
pub(crate) struct ClientLinks {
    pub(crate) shared: Arc<SharedByClients>,
    pub(crate) news: News,
    pub(crate) place: Place,
    /// The service waits for no client any more: the server may stop.
    pub(super) is_vacated: bool,
    /// Where it is written what clients have changed.
    audit: Option<AuditQueue>,
    /// Where numbers go that are to be kept.
    remember: Sender<i64>,
    open: BTreeMap<ClientId, ClientOutbound>,
    /// From when on the loop asks what was written, also if no client connects.
    written_due: Option<Instant>,
    /// Kept for their memory.
    written: Vec<ClientId>,
    queued: Vec<ClientId>,
}

/// Where clients connect.
pub(crate) struct Place {
    pub(crate) addrs: ClientAddrs,
    /// What our own line says, if it says something.
    pub(crate) line: Option<HostPort>,
    /// Where the listening sockets hear of another one.
    pub(crate) moves: Sender<HostPort>,
    /// Where clients connect with TLS alone: those sockets never move, and close when their sender does.
    pub(crate) secure: Option<(ClientAddrs, Sender<HostPort>)>,
    /// How many connections there may be.
    pub(crate) limit: Arc<AddressLimit>,
}

impl Place {
    /// Where clients connect with TLS alone.
    pub(crate) fn secure_addrs(&self) -> Option<ClientAddrs> {
        self.secure.as_ref().map(|(addrs, _)| Arc::clone(addrs))
    }
}

impl ClientLinks {
    pub(crate) fn new(
        shared: Arc<SharedByClients>,
        news: News,
        place: Place,
        remember: Sender<i64>,
        audit: Option<AuditQueue>,
    ) -> Self {
        let (open, written, queued) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self {
            shared,
            news,
            place,
            is_vacated: false,
            audit,
            remember,
            open,
            written_due: None,
            written,
            queued,
        }
    }

    /// Closes the listening sockets. Connections stay.
    pub(super) fn stop_listening(&mut self) {
        self.place.moves.close();
        if let Some((_, moves)) = &self.place.secure {
            moves.close();
        }
    }

    /// Our line is another: listens where it says, if it says so. Connections stay.
    pub(super) fn move_to(&mut self, own: &Member) {
        let Place { line, moves, .. } = &mut self.place;
        if own.client.is_some() && own.client != *line {
            line.clone_from(&own.client);
            // Closed: the server ends. An older one that was not taken yet is of no use any more.
            drop(own.client.clone().map(|to| moves.force_send(to)));
        }
    }
}

impl<R: Runtime, A: Application> Driver<R, A> {
    /// Takes what clients have sent, as far as the service keeps up, and what was written to them.
    pub(super) fn hear_clients(&mut self) {
        if !A::Clients::SERVES {
            return;
        }
        self.hear_arrivals();
        // Before they say more: it is no sign of a client that reads nothing that we have not asked yet.
        self.hear_written();
        for _ in 0..BATCH_MAX {
            if !self.hears_clients() {
                break;
            }
            let Ok(news) = self.clients.news.heard.try_recv() else { break };
            self.register_client(news);
        }
    }

    /// Whether what clients send is taken: the service keeps up, and what they change can be told.
    pub(super) fn hears_clients(&self) -> bool {
        let audit = self.clients.audit.as_ref();
        self.replica.hears_clients() && !audit.is_some_and(AuditQueue::holds_clients)
    }

    /// Takes what was written: at once where it is much, else a few times a second. It is little beside what the service
    /// lets wait, and a step for each reply would cost as much as the reply.
    fn hear_written(&mut self) {
        let now = self.runtime.now();
        let mut written = std::mem::take(&mut self.clients.written);
        if self.clients.written_due.is_none_or(|due| due <= now) {
            self.clients.written_due = Some(now + WRITTEN_TIME);
            self.clients.shared.written.take(&mut written);
        } else {
            self.clients.shared.written.take_if_woken(&mut written);
        }
        for client in written.drain(..) {
            let bytes = self.clients.open.get(&client).map_or(0, ClientOutbound::take_written);
            if bytes > 0 {
                self.replica.tell_service(Event::Written { client, bytes });
            }
        }
        self.clients.written = written;
    }

    /// Takes new connections, and words.
    fn hear_arrivals(&mut self) {
        for _ in 0..ARRIVALS_MAX {
            let Ok(news) = self.clients.news.arrived.try_recv() else { break };
            self.register_client(news);
        }
    }

    /// Remembers connections that are new and forgets those that have ended; passes over what comes from those that the
    /// service has closed.
    pub(super) fn register_client(&mut self, news: ClientNews) {
        let (event, client, held) = match news {
            ClientNews::Up(event, client, outbound) => {
                self.clients.open.insert(client, outbound);
                return self.replica.tell_service(event);
            }
            ClientNews::Word(client, word) => {
                if self.clients.open.contains_key(&client) {
                    self.replica.tell_word(client, word);
                }
                return;
            }
            ClientNews::Event(event, client, held) => (event, client, held),
        };
        if !self.clients.open.contains_key(&client) {
            // It may have arrived since that was looked for.
            self.hear_arrivals();
        }
        let open = &mut self.clients.open;
        let is_open = if matches!(event, Event::Disconnected(_)) {
            open.remove(&client).is_some()
        } else {
            open.contains_key(&client)
        };
        if is_open {
            self.replica.tell_service_holding(event, held);
        }
    }

    /// Does what the service wants at the connections of its clients; each is woken once.
    pub(super) fn serve_clients(&mut self, outputs: &mut Vec<Output>) {
        let mut queued = std::mem::take(&mut self.clients.queued);
        for output in outputs.drain(..) {
            let open = &mut self.clients.open;
            match output {
                Output::Send { client, bytes } => {
                    let sent = open.get_mut(&client).map(|outbound| outbound.send(bytes));
                    match sent {
                        Some(Ok(true)) => queued.push(client),
                        Some(Ok(false)) | None => {}
                        Some(Err(_)) => self.give_up_client(client),
                    }
                }
                Output::Close { client, how } => {
                    let outbound = open.remove(&client);
                    match how {
                        Close::Reset => drop(outbound.map(ClientOutbound::reset)),
                        Close::AfterWriting => drop(outbound),
                    }
                }
                Output::Pause(client) => drop(open.get(&client).map(ClientOutbound::pause)),
                Output::Resume(client) => drop(open.get(&client).map(ClientOutbound::resume)),
                Output::Audit(line) => {
                    // None: it is not to be known.
                    if let Some(audit) = &self.clients.audit {
                        audit.put(line);
                    }
                }
                Output::Vacated => self.clients.is_vacated = true,
                // Closed: the server ends. An older one that was not taken yet is of no use any more.
                Output::Remember(number) => drop(self.clients.remember.force_send(number)),
                // These are the core's, and the loop's.
                Output::Submit { .. }
                | Output::Halt(_)
                | Output::Sync(_)
                | Output::Touch(_)
                | Output::Revalidate(_)
                | Output::Revalidated { .. } => debug_assert!(false, "{output:?}"),
            }
        }
        for client in queued.drain(..) {
            if let Some(outbound) = self.clients.open.get_mut(&client) {
                outbound.wake();
            }
        }
        self.clients.queued = queued;
    }

    /// More is to be written to a client than is kept for one that does not read.
    fn give_up_client(&mut self, client: ClientId) {
        let Some(outbound) = self.clients.open.remove(&client) else { return };
        outbound.reset();
        Counters::add(&self.shared.counters.overflowed_clients);
        let (event, sid, now) = ("client.closed", self.shared.id.0, self.runtime.now());
        if let Some(suppressed) = self.shared.warnings.permit(event, None, now) {
            tracing::warn!(
                event,
                sid,
                client = client.0,
                suppressed,
                "client does not read: closed"
            );
        }
        self.replica.tell_service(Event::Disconnected(client));
    }
}

/// How many events of clients are taken in a turn.
const BATCH_MAX: usize = 64;
/// And of new connections: as many as may have come before something else that one of them says.
const ARRIVALS_MAX: usize = 256;
/// How often the loop asks what was written.
const WRITTEN_TIME: Duration = Duration::from_millis(100);

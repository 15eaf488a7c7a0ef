//! Gathering: what the loop waits for, and what of it the core hears.

use std::time::Instant;

use futures_lite::future::{or, pending};
use quorate_application::{Application, clients};
use quorate_core::input::Event;
use quorate_core::reasons::TransferRefused;

use crate::disk::DiskNews;
use crate::drive::outage::Progress;
use crate::drive::{Driver, Quit};
use crate::error::ServerError;
use crate::host::callers::Ask;
use crate::net::client_events::ClientNews;
use crate::net::events::LoopEvent;
use crate::runtime::Runtime;

/// What the loop waits for.
enum Woken<A: Application> {
    Quit(Quit),
    Disk(Result<DiskNews, ServerError>),
    Outage(Progress<A>),
    Event(LoopEvent),
    Client(ClientNews),
    Deadline,
}

impl<R: Runtime, A: Application> Driver<R, A> {
    /// Waits for one event or the deadline, then takes what is there.
    pub(super) async fn gather(
        &mut self,
        batch: &mut Vec<Event>,
    ) -> Result<Option<Quit>, ServerError> {
        let waited = self.outage.is_some();
        self.attend_outage(batch)?;
        let due = self.due();
        if batch.is_empty() {
            let first = {
                // Not the whole of us: what is lent to a task that waits must be shareable.
                let Self { quit, disk, outage, events, clients, runtime, ending, .. } = &*self;
                let wait = due.map(|due| due.saturating_duration_since(self.runtime.now()));
                // The handle is dropped: that is a way to shut down, too.
                let quit = async {
                    match quit.recv().await {
                        Ok(quit) => Woken::Quit(quit),
                        Err(_) if *ending => pending().await,
                        Err(_) => Woken::Quit(Quit::Gracefully),
                    }
                };
                let back = outage.as_ref().map(|outage| outage.progress(runtime));
                let disk = async {
                    match back {
                        None => Woken::Disk(disk.news().await),
                        Some(progress) => Woken::Outage(progress.await),
                    }
                };
                let event = async {
                    match events.recv().await {
                        Ok(event) => Woken::Event(event),
                        Err(_) => pending().await,
                    }
                };
                let hears = self.hears_clients();
                let client = async {
                    let heard = async {
                        match hears {
                            true => clients.news.heard.recv().await,
                            false => pending().await,
                        }
                    };
                    match or(clients.news.arrived.recv(), heard).await {
                        Ok(news) => Woken::Client(news),
                        Err(_) => pending().await,
                    }
                };
                let deadline = async {
                    match wait {
                        Some(wait) => runtime.sleep(wait).await,
                        None => pending().await,
                    }
                    Woken::Deadline
                };
                or(or(quit, disk), or(event, or(client, deadline))).await
            };
            match first {
                Woken::Quit(Quit::Gracefully) if self.ending => {}
                Woken::Quit(quit) => return Ok(Some(quit)),
                Woken::Disk(Ok(DiskNews::Durable(ticket))) => batch.push(Event::Persisted(ticket)),
                Woken::Disk(Ok(DiskNews::Low(low))) => batch.push(Event::DiskLow(low)),
                Woken::Disk(Err(error)) => self.lose_disk(error, batch)?,
                Woken::Outage(progress) => self.on_progress(progress)?,
                Woken::Event(event) => batch.extend(self.register(event)),
                Woken::Client(news) => self.register_client(news),
                Woken::Deadline => {}
            }
        }
        // While it waits for its disk nothing is done in time, and nothing is held up.
        self.note_lateness(due.filter(|_| !waited && self.outage.is_none()));
        while batch.len() < BATCH_MAX {
            let Ok(event) = self.events.try_recv() else { break };
            batch.extend(self.register(event));
        }
        // After the events: the request of a caller that found the channel full is taken here.
        self.hear(batch);
        self.hear_clients();
        Ok(None)
    }

    /// Says so where what was due comes late: an application that holds the loop up, a machine that has too much to do, or
    /// one that was suspended. It explains elections that nothing else explains.
    fn note_lateness(&self, due: Option<Instant>) {
        let Some(due) = due else { return };
        let late = self.runtime.now().saturating_duration_since(due);
        if late <= self.peer.config().timing.tick / 2 {
            return;
        }
        self.published.measures.stalled(late);
        let now = self.runtime.now();
        if let Some(suppressed) = self.shared.warnings.permit("loop.stalled", None, now) {
            tracing::warn!(
                event = "loop.stalled",
                sid = self.shared.id.0,
                ?late,
                suppressed,
                "the loop was held up"
            );
        }
    }

    /// Takes what people ask for.
    fn hear(&mut self, batch: &mut Vec<Event>) {
        let mut taken = std::mem::take(&mut self.asks.taken);
        self.asks.inbox.take(&mut taken);
        for ask in taken.drain(..) {
            let Some(ask) = self.refuse_for_disk(ask) else { continue };
            match ask {
                Ask::Propose { request, answer, permit } => {
                    self.replica.requests.asked(request.id, answer, permit);
                    batch.push(Event::Propose(request));
                }
                Ask::Read(read) => {
                    batch.push(Event::Read(self.replica.queue_read(read)));
                }
                Ask::ReadLocal(read) => self.replica.read_local(read),
                Ask::Look(look) => self.replica.look(look),
                Ask::Pulse(answer) => {
                    let _ = answer.try_send(());
                }
                Ask::TakeSnapshot(answer) => {
                    batch
                        .extend(self.replica.await_snapshot(answer).then_some(Event::TakeSnapshot));
                }
                Ask::Shed { percent, within } => {
                    self.replica.tell_service(clients::Event::Shed { percent, within });
                }
                Ask::Note(note) => self.replica.tell_service(clients::Event::Noted(note)),
                Ask::TransferLeadership { answer, .. } if self.transfer.is_some() => {
                    let _ = answer.try_send(Err(TransferRefused::Underway));
                }
                Ask::TransferLeadership { to, answer } => {
                    self.transfer = Some(answer);
                    batch.push(Event::TransferLeadership(to));
                }
            }
        }
        self.asks.taken = taken;
    }

    /// Remembers new links and marks those that ended; passes over what comes from links that have ended or that the
    /// core has hung up.
    fn register(&mut self, event: LoopEvent) -> Option<Event> {
        match event {
            // It closes: whom we talk to counts on a disk.
            LoopEvent::Up(..) if self.outage.is_some() => None,
            LoopEvent::Up(up, outbound) => {
                tracing::debug!(
                    event = "link.up", sid = self.shared.id.0, link = up.link.0, plane = ?up.plane,
                    peer = up.peer.map(|peer| peer.0), remote = %outbound.remote,
                    dialled = up.dialled, "link up"
                );
                self.links.insert(up.link, outbound);
                Some(Event::LinkUp(up))
            }
            LoopEvent::Event(Event::LinkDown { link, cause }) => {
                let outbound = self.links.get_mut(&link).filter(|outbound| !outbound.ended)?;
                outbound.ended = true;
                tracing::debug!(
                    event = "link.down", sid = self.shared.id.0, link = link.0, plane = ?outbound.plane,
                    peer = outbound.peer.map(|peer| peer.0), remote = %outbound.remote, ?cause,
                    "link down"
                );
                Some(Event::LinkDown { link, cause })
            }
            LoopEvent::Event(
                Event::Received { link, .. }
                | Event::Drained(link)
                | Event::Progress(link)
                | Event::Located { link, .. }
                | Event::Streamed { link, .. }
                | Event::Restored { link, .. }
                | Event::Resolved { link, .. },
            )
            | LoopEvent::Long { event: Event::Received { link, .. }, .. }
                if self.links.get(&link).is_none_or(|outbound| outbound.ended) =>
            {
                None
            }
            LoopEvent::Event(Event::Oracle(yes)) => {
                self.oracle = Some(yes);
                Some(Event::Oracle(yes))
            }
            LoopEvent::Event(event) | LoopEvent::Long { event, .. } => Some(event),
            LoopEvent::Noted(note) => {
                self.replica.tell_service(clients::Event::Noted(note));
                None
            }
            LoopEvent::Wake => None,
            LoopEvent::Ports(plane) => self.shared.ports.news(plane),
        }
    }
}

/// How many events are taken before outputs are carried out.
const BATCH_MAX: usize = 64;

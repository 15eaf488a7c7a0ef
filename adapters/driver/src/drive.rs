//! The loop: wait for something to happen, step, carry out.
//!
//! One task owns the `Peer`, and all that happens to a server passes through here one after another.
//! The loop never waits for the network and, unless a disk has failed to answer a thousand writes,
//! never for the disk. It takes what has gathered in one go before it writes, so that a burst of votes
//! costs one notification to each peer.
//!
//! What it does not do: decide. Every `match` arm below hands something on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_channel::Receiver;
use bytes::Bytes;
use futures_lite::future::{or, pending};
use quorate_core::id::{LinkId, Ticket};
use quorate_core::input::{Cause, Event, Input, Plane};
use quorate_core::message::{Introduction, Message};
use quorate_core::output::{Hangup, Output};
use quorate_core::peer::Peer;
use quorate_core::report::Report;
use quorate_core::time::Instant as CoreInstant;
use quorate_core::wire;

use crate::dial::Dialler;
use crate::disk::Disk;
use crate::link::{Full, Happened, Outbound, Shared};
use crate::runtime::Runtime;
use crate::server::ServerError;
use crate::status::{Counters, Published};

/// One server, assembled.
#[derive(Debug)]
pub(crate) struct Driver<R: Runtime> {
    pub(crate) runtime: R,
    pub(crate) peer: Peer,
    /// The origin of the core's time.
    pub(crate) origin: Instant,
    pub(crate) shared: Arc<Shared>,
    pub(crate) events: Receiver<Happened>,
    pub(crate) quit: Receiver<Quit>,
    pub(crate) disk: Disk,
    pub(crate) dialler: Dialler<R>,
    pub(crate) links: BTreeMap<LinkId, Outbound>,
    pub(crate) published: Arc<Published>,
    /// When to complain next that an election lasts.
    pub(crate) complain_at: Option<Instant>,
}

/// How a server is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quit {
    /// Say goodbye, write what is under way, close.
    Gracefully,
    /// At once, as if the process had been killed.
    AtOnce,
}

/// What the loop waits for.
enum Woken {
    Quit(Quit),
    Disk(Result<Ticket, ServerError>),
    Happened(Happened),
    Deadline,
}

impl<R: Runtime> Driver<R> {
    /// Runs the server until it is told to quit, or has to.
    pub(crate) async fn drive(&mut self) -> Result<Quit, ServerError> {
        let (mut batch, mut outputs) = (Vec::new(), Vec::new());
        loop {
            if let Some(quit) = self.gather(&mut batch).await? {
                return Ok(quit);
            }
            self.step(&mut batch, &mut outputs).await?;
        }
    }

    /// Takes what has happened, and does what the core says; leaves in `batch` what has happened
    /// thereby.
    async fn step(
        &mut self,
        batch: &mut Vec<Event>,
        outputs: &mut Vec<Output>,
    ) -> Result<(), ServerError> {
        let now = self.runtime.now();
        let at = CoreInstant::from_origin(now.saturating_duration_since(self.origin));
        let notable =
            batch.is_empty() || batch.iter().any(|e| !matches!(e, Event::Received { .. }));
        for event in batch.drain(..) {
            self.peer.step_into(Input { at, event }, outputs);
        }
        if self.peer.deadline().is_some_and(|(due, _)| due <= at) {
            self.peer.step_into(Input { at, event: Event::Tick }, outputs);
        }

        let mut reports = Vec::new();
        for output in outputs.drain(..) {
            match output {
                Output::Send { link, message } => batch.extend(self.send(link, message)),
                Output::Persist { ticket, write } => self.disk.write(ticket, write).await,
                Output::Dial { plane, peer, addresses } => {
                    let introduction = (plane == Plane::Election).then(|| introduction(&self.peer));
                    self.dialler.dial(plane, peer, addresses, introduction);
                }
                Output::Hangup { link, reason } => self.hang_up(link, reason),
                Output::Report(report) => reports.push(report),
                Output::Halt(fault) => return Err(ServerError::Halted(fault)),
            }
        }
        if notable || !reports.is_empty() {
            self.publish(reports, now);
        }
        Ok(())
    }

    /// Hangs up every link, in order.
    pub(crate) async fn say_goodbye(&mut self) {
        // It ends in any case.
        drop(self.step(&mut vec![Event::Shutdown], &mut Vec::new()).await);
    }

    /// Waits for one event or the deadline, then takes what is there.
    async fn gather(&mut self, batch: &mut Vec<Event>) -> Result<Option<Quit>, ServerError> {
        if batch.is_empty() {
            let first = {
                // The handle is dropped: that is a way to shut down, too.
                let quit =
                    async { Woken::Quit(self.quit.recv().await.unwrap_or(Quit::Gracefully)) };
                let disk = async { Woken::Disk(self.disk.durable().await) };
                let event = async {
                    match self.events.recv().await {
                        Ok(happened) => Woken::Happened(happened),
                        Err(_) => pending().await,
                    }
                };
                let deadline = async {
                    match self.wait_time() {
                        Some(wait) => self.runtime.sleep(wait).await,
                        None => pending().await,
                    }
                    Woken::Deadline
                };
                or(or(quit, disk), or(event, deadline)).await
            };
            match first {
                Woken::Quit(quit) => return Ok(Some(quit)),
                Woken::Disk(ticket) => batch.push(Event::Persisted(ticket?)),
                Woken::Happened(happened) => batch.extend(self.register(happened)),
                Woken::Deadline => {}
            }
        }
        while batch.len() < BATCH_MAX {
            let Ok(happened) = self.events.try_recv() else { break };
            batch.extend(self.register(happened));
        }
        Ok(None)
    }

    /// How long until something is due; none if nothing is.
    fn wait_time(&self) -> Option<Duration> {
        let core = self.peer.deadline().map(|(at, _)| self.origin + at.since_origin());
        let due = [core, self.complain_at].into_iter().flatten().min()?;
        Some(due.saturating_duration_since(self.runtime.now()))
    }

    /// Remembers new links and forgets those that ended; passes over what comes from links that are
    /// no longer ours.
    fn register(&mut self, happened: Happened) -> Option<Event> {
        match happened {
            Happened::Up(up, outbound) => {
                tracing::debug!(
                    sid = self.shared.id.0, link = up.link.0, plane = ?up.plane,
                    peer = up.peer.map(|peer| peer.0), remote = %outbound.remote,
                    dialled = up.dialled, "link up"
                );
                self.links.insert(up.link, outbound);
                Some(Event::LinkUp(up))
            }
            Happened::Event(Event::LinkDown { link, cause }) => {
                let outbound = self.links.remove(&link)?;
                tracing::debug!(
                    sid = self.shared.id.0, link = link.0, plane = ?outbound.plane,
                    peer = outbound.peer.map(|peer| peer.0), remote = %outbound.remote, ?cause,
                    "link down"
                );
                Some(Event::LinkDown { link, cause })
            }
            Happened::Event(Event::Received { link, .. })
            | Happened::Long { event: Event::Received { link, .. }, .. }
                if !self.links.contains_key(&link) =>
            {
                None
            }
            Happened::Event(event) | Happened::Long { event, .. } => Some(event),
        }
    }

    /// Hands a message to its link; ends the link of a peer that does not read.
    fn send(&mut self, link: LinkId, message: Message) -> Option<Event> {
        let Err(Full) = self.links.get(&link)?.send(message) else { return None };
        let outbound = self.links.remove(&link)?;
        Counters::add(&self.shared.counters.overflowed_links);
        if let Some(suppressed) = self.shared.warnings.speak(self.runtime.now()) {
            tracing::warn!(
                sid = self.shared.id.0, peer = %outbound.remote, suppressed,
                "link ended: the peer does not read"
            );
        }
        Some(Event::LinkDown { link, cause: Cause::Silent })
    }

    fn hang_up(&mut self, link: LinkId, reason: Hangup) {
        let Some(outbound) = self.links.remove(&link) else { return };
        let (sid, remote) = (self.shared.id.0, outbound.remote);
        let peer = outbound.peer.map(|peer| peer.0);
        if !is_misbehaviour(reason) {
            tracing::debug!(sid, link = link.0, peer, %remote, %reason, "link hung up");
        } else if let Some(suppressed) = self.shared.warnings.speak(self.runtime.now()) {
            tracing::warn!(sid, link = link.0, peer, %remote, %reason, suppressed, "link hung up");
        }
    }

    /// Tells people how things stand.
    fn publish(&mut self, reports: Vec<Report>, now: Instant) {
        let status = self.peer.status();
        for Report { change, reason } in &reports {
            tracing::info!(
                sid = status.id.0, round = status.round.0, epoch = status.current_epoch.0, %reason,
                "{change}"
            );
        }
        self.published.publish(status, reports, now);
        let Some(since) = self.published.looking_since() else {
            self.complain_at = None;
            return;
        };
        let due = self.complain_at.get_or_insert(since + COMPLAIN_AFTER);
        if *due <= now {
            *due = now + COMPLAIN_AFTER;
            let looking_for = now.saturating_duration_since(since);
            let status = self.peer.status();
            tracing::warn!(
                sid = status.id.0, round = status.round.0, ?looking_for,
                linked = ?status.linked.iter().map(|id| id.0).collect::<Vec<_>>(),
                voters = status.voters,
                "leader election failed so far: fewer than a quorum of voters can be heard, or the \
                 election port is not reachable in both directions"
            );
        }
    }
}

/// What we say first on an election link: who we are and where we listen.
fn introduction(peer: &Peer) -> Bytes {
    let config = peer.config();
    let own = config.membership.member(config.id);
    wire::encode_introduction(&Introduction {
        id: config.id,
        addresses: own.map(|own| own.election_address().clone()).into_iter().collect(),
    })
}

/// Whether an operator should hear of it: the peer did what it must not, or is one of too many.
fn is_misbehaviour(reason: Hangup) -> bool {
    match reason {
        Hangup::OwnId(_)
        | Hangup::ReservedId(_)
        | Hangup::TooManyStrangers
        | Hangup::TooManyUnintroduced
        | Hangup::TooManyLearners
        | Hangup::OutOfTurn(_)
        | Hangup::EpochOutOfRange(_)
        | Hangup::NewerConfiguration { .. }
        | Hangup::OldProtocol(_)
        | Hangup::NewerHistory(_)
        | Hangup::HistoryUnsupported(_)
        | Hangup::HistoryOffered
        | Hangup::OldEpoch(_) => true,
        Hangup::PeerDials(_)
        | Hangup::WeDial(_)
        | Hangup::Replaced(_)
        | Hangup::NotLeading
        | Hangup::RoleEnded
        | Hangup::Unwanted
        | Hangup::Silent
        | Hangup::Shutdown => false,
    }
}

/// How many events are taken before outputs are carried out.
const BATCH_MAX: usize = 64;
/// After how long an election is worth a warning, and how often.
const COMPLAIN_AFTER: Duration = Duration::from_secs(30);

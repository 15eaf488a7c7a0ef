//! The loop: wait for something to happen, step, carry out.
//!
//! One task owns the `Peer`, and all that happens to a server passes through here one after another.
//! The loop never waits for the network, for the disk or for an application that is slow. It takes what
//! has gathered in one go, and wakes each task that has something to do once: a burst of votes costs one
//! notification to each peer, and a burst of requests one write to each socket.
//!
//! What it does not do: decide. Every `match` arm below hands something on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender, bounded};
use futures_lite::future::{or, pending};
use quorate_application::Application;
use quorate_core::address::HostPort;
use quorate_core::id::{LinkId, ReadId, ReleaseId, ServerId, Ticket};
use quorate_core::input::{Cause, Event, Input, Plane, Unreadable};
use quorate_core::membership::Member;
use quorate_core::message::{Introduction, Message};
use quorate_core::output::{Output, Write};
use quorate_core::peer::Peer;
use quorate_core::reasons::{Fault, Hangup, Kept};
use quorate_core::recorder::Recorder;
use quorate_core::report::Report;
use quorate_core::time::Instant as CoreInstant;
use quorate_core::zxid::{Epoch, Zxid};
use quorate_leadership::{FencingToken, LeadershipGate};

use crate::disk::{self as stream, Disk, Pieces};
use crate::error::ServerError;
use crate::net::dial::Dialler;
use crate::net::events::{Happened, Shared};
use crate::net::listen::Doors;
use crate::net::outbound::{Full, Outbound};
use crate::replica::{Consequences, Replica};
use crate::requests::{Ask, ProposeError, Tray};
use crate::runtime::Runtime;
use crate::status::{Counters, Published};

/// One server, assembled.
pub(crate) struct Driver<R: Runtime, A: Application> {
    pub(crate) runtime: R,
    pub(crate) peer: Peer,
    /// Who listens to it, if anybody does.
    pub(crate) recorder: Option<Box<dyn Recorder>>,
    /// The origin of the core's time.
    pub(crate) origin: Instant,
    pub(crate) shared: Arc<Shared>,
    pub(crate) events: Receiver<Happened>,
    pub(crate) quit: Receiver<Quit>,
    pub(crate) disk: Disk,
    pub(crate) dialler: Dialler<R>,
    pub(crate) links: BTreeMap<LinkId, Outbound>,
    /// Links that have ended, until the core knows.
    pub(crate) lost: Vec<Outbound>,
    pub(crate) replica: Replica<A>,
    pub(crate) asks: Asks<A>,
    pub(crate) published: Arc<Published>,
    pub(crate) seat: Arc<LeadershipGate>,
    /// The core waits for the guards to go, and asks with this.
    pub(crate) releasing: Option<ReleaseId>,
    /// Who wants to know how handing the seat over ends.
    pub(crate) handing: Option<Sender<Result<ServerId, Kept>>>,
    /// When to complain next that an election lasts.
    pub(crate) complain_at: Option<Instant>,
    /// When to publish what has changed since it was published last.
    pub(crate) publish_at: Option<Instant>,
    /// It ends, after what it is about.
    pub(crate) ending: bool,
    /// What listens.
    pub(crate) doors: Doors<R>,
    /// Where its introductions say that it listens for elections.
    pub(crate) elections_at: Vec<HostPort>,
    /// Whether they say all of it.
    pub(crate) multi_address: bool,
}

/// Where a server with this line is said to listen for elections.
pub(crate) fn elections_at(own: &Member, all: bool) -> Vec<HostPort> {
    let said = if all { usize::MAX } else { 1 };
    own.addresses.iter().take(said).map(|address| address.election.clone()).collect()
}

/// The loop's end of what people ask for. Dropping it tells them that the server has ended.
pub(crate) struct Asks<A> {
    pub(crate) tray: Arc<Tray<Ask<A>>>,
    pub(crate) taken: Vec<Ask<A>>,
    pub(crate) reads: u64,
}

impl<A> Drop for Asks<A> {
    fn drop(&mut self) {
        for ask in self.tray.close() {
            if let Ask::Propose { answer, .. } = ask {
                drop(answer.send(Err(ProposeError::Ended)));
            }
        }
    }
}

/// What has gathered for one turn of the loop, and what comes of it.
#[derive(Default)]
struct Turn {
    /// For the core, in order.
    events: Vec<Event>,
    outputs: Vec<Output>,
    reports: Vec<Report>,
    /// Links that have something to write.
    queued: Vec<LinkId>,
    consequences: Consequences,
    /// What became of the seat that was to be handed over.
    handed: Option<Result<ServerId, Kept>>,
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

impl<R: Runtime, A: Application> Driver<R, A> {
    /// Runs the server until it is told to quit, or has to.
    pub(crate) async fn drive(&mut self) -> Result<Quit, ServerError> {
        let mut turn = Turn::default();
        loop {
            if let Some(quit) = self.gather(&mut turn.events).await? {
                return Ok(quit);
            }
            self.step(&mut turn)?;
        }
    }

    /// Hands the core what has happened, and does what it says; leaves what happens thereby for the
    /// next turn.
    fn step(&mut self, turn: &mut Turn) -> Result<(), ServerError> {
        let now = self.runtime.now();
        let at = CoreInstant::from_origin(now.saturating_duration_since(self.origin));
        for event in turn.events.drain(..) {
            self.advance(Input { at, event }, &mut turn.outputs);
        }
        if self.peer.deadline().is_some_and(|(due, _)| due <= at) {
            self.advance(Input { at, event: Event::Tick }, &mut turn.outputs);
        }
        let mut outputs = std::mem::take(&mut turn.outputs);
        for output in outputs.drain(..) {
            self.carry_out(output, turn)?;
        }
        turn.outputs = outputs;
        // A lost link closes only when the core no longer counts on the peer at its other end, and the guards know.
        self.lost.clear();
        if let Some(release) = self.releasing.take_if(|_| self.seat.is_released()) {
            turn.events.push(Event::Released(release));
        }
        // The others first: they have further to go.
        self.wake_links(&mut turn.queued);
        self.run_application(turn)?;
        self.wake_links(&mut turn.queued);
        self.publish_in_time(&mut turn.reports, now);
        // A caller that is told that another server leads finds nothing here that says otherwise.
        if let (Some(outcome), Some(answer)) = (turn.handed.take(), self.handing.as_ref()) {
            // The caller may have stopped waiting.
            let _ = answer.try_send(outcome);
            self.handing = None;
        }
        Ok(())
    }

    /// One step of the core; the recorder, if there is one, is given all of them.
    fn advance(&mut self, input: Input, outputs: &mut Vec<Output>) {
        let Some(recorder) = &mut self.recorder else {
            return self.peer.step_into(input, outputs);
        };
        let said = outputs.len();
        recorder.hears(&input);
        self.peer.step_into(input, outputs);
        recorder.does(&outputs[said..]);
    }

    fn carry_out(&mut self, output: Output, turn: &mut Turn) -> Result<(), ServerError> {
        let replica = &mut self.replica;
        match output {
            Output::Send { link, message } => self.send(link, message, turn),
            Output::Pace(link) => self.queue(link, turn, Outbound::pace),
            Output::Persist { ticket, write } => {
                if let Write::Install { label, .. } = &write {
                    replica.install(*label);
                }
                let moves = matches!(write, Write::Membership(_));
                self.disk.write(ticket, write);
                if moves {
                    self.move_doors();
                }
            }
            Output::Deliver(txn) => replica.deliver(txn),
            Output::Adopt { label } => replica.adopt(label),
            Output::Replay { after, through } => replica.replay(after, through),
            Output::Prepare { epoch, request, .. } => replica.prepare(epoch, request),
            Output::Accepted(id) => replica.requests.accepted(id),
            Output::Lost(id) => replica.requests.lost(id),
            Output::Unknown { id, doubt } => replica.requests.unknown(id, doubt),
            Output::Refused { id, reason } => replica.requests.refused(id, reason),
            Output::Answer(read) => replica.answer(read),
            Output::ReadRefused { read, reason } => replica.refuse(read, reason.into()),
            Output::Dial { plane, peer, addresses } => {
                let introduction = (plane == Plane::Election).then(|| {
                    let (id, addresses) = (self.shared.id, self.elections_at.clone());
                    self.shared.tongue.introduce(&Introduction { id, addresses })
                });
                self.dialler.dial(plane, peer, addresses, introduction);
            }
            Output::CallOff { plane, peer } => self.dialler.call_off(plane, peer),
            Output::Resolve { link, hosts } => self.dialler.look_up(link, hosts),
            Output::Hangup { link, reason } => self.hang_up(link, reason),
            Output::Locate { link, zxid } => self.locate(link, zxid),
            Output::StreamLog { link, after, through, form } => {
                let pieces = stream::send_log(self.disk.handle(), after, through, form);
                self.stream(link, pieces.map_err(|_| Unreadable), turn);
            }
            Output::SendSnapshot { link, label, memberships, apart: false } => {
                replica.send_snapshot(link, label, memberships);
            }
            Output::SendSnapshot { link, label, memberships, apart: true } => {
                let pieces = replica.send_staged(label, memberships);
                self.stream(link, pieces, turn);
            }
            Output::ReceiveSnapshot { link, label } => self.receive_snapshot(link, label, turn),
            Output::TakeSnapshot(label) => replica.take_snapshot(label),
            Output::Abandon => replica.abandon(),
            Output::Discard => replica.discard(),
            Output::Leadership(leadership) => {
                let lease = leadership.and_then(|leadership| leadership.lease);
                let lease = lease.map(|until| self.time(until));
                self.seat.set(leadership.map(|leadership| token(leadership.epoch)), lease);
            }
            Output::Serving { membership, .. } => replica.serving(&membership),
            Output::Retired => {}
            Output::Release(release) => {
                self.releasing = Some(release);
                self.seat.revoke();
            }
            Output::Keep => {
                self.releasing = None;
                self.seat.reopen();
            }
            Output::HandedOver(outcome) => turn.handed = Some(outcome),
            Output::Report(report) => turn.reports.push(report),
            Output::Halt(fault) => return Err(self.halted(fault)),
        }
        Ok(())
    }

    /// Why the core cannot go on; of the log, what is in the way.
    fn halted(&mut self, fault: Fault) -> ServerError {
        match (fault, self.replica.unreadable()) {
            (Fault::Unreadable { after }, Some(source)) => {
                ServerError::Unreadable { after, source }
            }
            (fault, _) => ServerError::Halted(fault),
        }
    }

    /// Another membership is in force: listens where our line says, if there is one. Who was removed stays
    /// where it is.
    fn move_doors(&mut self) {
        let config = self.peer.config();
        if let Some(own) = config.membership.member(config.id) {
            self.doors.move_to(own);
            self.elections_at = elections_at(own, self.multi_address);
        }
    }

    /// Lets the application do what it can do at once.
    fn run_application(&mut self, turn: &mut Turn) -> Result<(), ServerError> {
        self.replica.run(&mut turn.consequences)?;
        turn.events.append(&mut turn.consequences.events);
        for (link, pieces) in std::mem::take(&mut turn.consequences.streams) {
            self.stream(link, pieces, turn);
        }
        let counters = &self.shared.counters;
        counters.set(self.replica.applied(), self.replica.requests.len());
        Ok(())
    }

    /// Lets another server lead, if this one does and another can, before it ends. Returns early if it
    /// is to end at once.
    pub(crate) async fn give_way(&mut self) -> Result<Quit, ServerError> {
        let mut turn = Turn::default();
        // A caller may be waiting for another transfer; the outcome of that one will do.
        if self.handing.is_none() {
            self.handing = Some(bounded(1).0);
            turn.events.push(Event::HandOver(None));
        }
        self.ending = true;
        loop {
            self.step(&mut turn)?;
            if self.handing.is_none() {
                return Ok(Quit::Gracefully);
            }
            if let Some(quit) = self.gather(&mut turn.events).await? {
                return Ok(quit);
            }
        }
    }

    /// Hangs up every link, in order.
    pub(crate) async fn say_goodbye(&mut self) {
        // It ends in any case.
        let mut turn = Turn { events: vec![Event::Shutdown], ..Turn::default() };
        drop(self.step(&mut turn));
    }

    /// Waits for one event or the deadline, then takes what is there.
    async fn gather(&mut self, batch: &mut Vec<Event>) -> Result<Option<Quit>, ServerError> {
        if batch.is_empty() {
            let first = {
                // Not the whole of us: what is lent to a task that waits must be shareable.
                let Self { quit, disk, events, runtime, ending, .. } = &*self;
                let wait = self.wait_time();
                // The handle is dropped: that is a way to shut down, too.
                let quit = async {
                    match quit.recv().await {
                        Ok(quit) => Woken::Quit(quit),
                        Err(_) if *ending => pending().await,
                        Err(_) => Woken::Quit(Quit::Gracefully),
                    }
                };
                let disk = async { Woken::Disk(disk.durable().await) };
                let event = async {
                    match events.recv().await {
                        Ok(happened) => Woken::Happened(happened),
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
                or(or(quit, disk), or(event, deadline)).await
            };
            match first {
                Woken::Quit(Quit::Gracefully) if self.ending => {}
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
        // After the events: the request of a caller that found the channel full is taken here.
        self.hear(batch);
        Ok(None)
    }

    /// Takes what people ask for.
    fn hear(&mut self, batch: &mut Vec<Event>) {
        let mut taken = std::mem::take(&mut self.asks.taken);
        self.asks.tray.take(&mut taken);
        for ask in taken.drain(..) {
            match ask {
                Ask::Propose { request, answer, permit } => {
                    self.replica.requests.asked(request.id, answer, permit);
                    batch.push(Event::Propose(request));
                }
                Ask::Read(look) => {
                    let read = ReadId(self.asks.reads);
                    self.asks.reads += 1;
                    self.replica.expect(read, look);
                    batch.push(Event::Read(read));
                }
                Ask::Peek(look) => self.replica.look(look),
                Ask::Pulse(answer) => {
                    let _ = answer.try_send(());
                }
                Ask::HandOver { answer, .. } if self.handing.is_some() => {
                    let _ = answer.try_send(Err(Kept::Underway));
                }
                Ask::HandOver { to, answer } => {
                    self.handing = Some(answer);
                    batch.push(Event::HandOver(to));
                }
            }
        }
        self.asks.taken = taken;
    }

    /// A time of the core's.
    fn time(&self, at: CoreInstant) -> Instant {
        self.origin + at.since_origin()
    }

    /// How long until something is due; none if nothing is.
    fn wait_time(&self) -> Option<Duration> {
        let core = self.peer.deadline().map(|(at, _)| self.time(at));
        let due = [core, self.complain_at, self.publish_at].into_iter().flatten().min()?;
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
                self.lost.push(outbound);
                Some(Event::LinkDown { link, cause })
            }
            Happened::Event(
                Event::Received { link, .. }
                | Event::Drained(link)
                | Event::Progress(link)
                | Event::Located { link, .. }
                | Event::Streamed { link, .. }
                | Event::Restored { link, .. }
                | Event::Resolved { link, .. },
            )
            | Happened::Long { event: Event::Received { link, .. }, .. }
                if !self.links.contains_key(&link) =>
            {
                None
            }
            Happened::Event(event) | Happened::Long { event, .. } => Some(event),
            Happened::Rung => None,
            Happened::Ports(plane) => self.shared.ports.news(plane),
        }
    }

    /// Queues a message on its link; ends the link of a peer that does not read.
    fn send(&mut self, link: LinkId, message: Message, turn: &mut Turn) {
        let Some(outbound) = self.links.get_mut(&link) else { return };
        match outbound.send(message) {
            Ok(true) => turn.queued.push(link),
            Ok(false) => {}
            Err(Full) => {
                let remote = outbound.remote;
                Counters::add(&self.shared.counters.overflowed_links);
                if let Some(suppressed) = self.shared.warnings.speak(self.runtime.now()) {
                    tracing::warn!(
                        sid = self.shared.id.0, peer = %remote, suppressed,
                        "link ended: the peer does not read"
                    );
                }
                self.lose(link, Cause::Silent, turn);
            }
        }
    }

    /// Queues something else on a link.
    fn queue(&mut self, link: LinkId, turn: &mut Turn, act: impl FnOnce(&mut Outbound) -> bool) {
        if self.links.get_mut(&link).is_some_and(act) {
            turn.queued.push(link);
        }
    }

    /// Queues a stream, if there is one.
    fn stream(&mut self, link: LinkId, pieces: Result<Pieces, Unreadable>, turn: &mut Turn) {
        match pieces {
            Ok(pieces) => self.queue(link, turn, |outbound| outbound.stream(pieces)),
            Err(unreadable) if self.links.contains_key(&link) => {
                turn.events.push(Event::Streamed { link, outcome: Err(unreadable) });
            }
            Err(_) => {}
        }
    }

    /// Lets every link that has something to write do so.
    fn wake_links(&mut self, queued: &mut Vec<LinkId>) {
        for link in queued.drain(..) {
            if let Some(outbound) = self.links.get_mut(&link) {
                outbound.wake();
            }
        }
    }

    /// Ends a link ourselves, and tells the core.
    fn lose(&mut self, link: LinkId, cause: Cause, turn: &mut Turn) {
        if let Some(outbound) = self.links.remove(&link) {
            self.lost.push(outbound);
            turn.events.push(Event::LinkDown { link, cause });
        }
    }

    /// Asks the disk where a zxid stands.
    fn locate(&self, link: LinkId, zxid: Zxid) {
        let (disk, shared) = (self.disk.handle(), Arc::clone(&self.shared));
        self.dialler.doors.spawn(async move {
            // The disk answers unless the server ends.
            let Ok(located) = disk.locate(zxid).await else { return };
            // No receiver is left: the server ends.
            drop(shared.events.send(Happened::Event(Event::Located { link, located })).await);
        });
    }

    fn receive_snapshot(&mut self, link: LinkId, label: Zxid, turn: &mut Turn) {
        let Some(outbound) = self.links.get(&link) else { return };
        match self.replica.receive(label) {
            Ok(intake) => outbound.receive(intake),
            Err(error) => {
                tracing::warn!(
                    sid = self.shared.id.0, peer = %outbound.remote, %label, %error,
                    "cannot receive a snapshot"
                );
                self.lose(link, Cause::Garbled, turn);
            }
        }
    }

    fn hang_up(&mut self, link: LinkId, reason: Hangup) {
        let Some(outbound) = self.links.remove(&link) else { return };
        let (sid, remote) = (self.shared.id.0, outbound.remote);
        let peer = outbound.peer.map(|peer| peer.0);
        if !is_remarkable(reason) {
            tracing::debug!(sid, link = link.0, peer, %remote, %reason, "link hung up");
        } else if let Some(suppressed) = self.shared.warnings.speak(self.runtime.now()) {
            tracing::warn!(sid, link = link.0, peer, %remote, %reason, suppressed, "link hung up");
        }
    }

    /// Tells people how things stand: at once if there is something to tell, otherwise now and then.
    fn publish_in_time(&mut self, reports: &mut Vec<Report>, now: Instant) {
        let due = *self.publish_at.get_or_insert(now + PUBLISH_AFTER);
        if !reports.is_empty() || due <= now || self.complain_at.is_some_and(|at| at <= now) {
            self.publish_at = None;
            self.publish(std::mem::take(reports), now);
        }
    }

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

/// No two reigns have the same epoch.
fn token(epoch: Epoch) -> FencingToken {
    FencingToken::elected(u64::try_from(epoch.0).unwrap_or(0))
}

/// Whether an operator should hear of it: the peer did what it must not or not what it should, is one
/// of too many, or fits ours in no ordinary way.
fn is_remarkable(reason: Hangup) -> bool {
    match reason {
        Hangup::OwnId(_)
        | Hangup::ReservedId(_)
        | Hangup::NotAtHome(_)
        | Hangup::TooManyStrangers
        | Hangup::TooManyUnintroduced
        | Hangup::TooManyLearners
        | Hangup::OutOfTurn(_)
        | Hangup::EpochOutOfRange(_)
        | Hangup::NewerConfiguration { .. }
        | Hangup::OlderMembership { .. }
        | Hangup::Untold { .. }
        | Hangup::OldProtocol(_)
        | Hangup::NewerHistory(_)
        | Hangup::OtherApplication(_)
        | Hangup::Unreadable
        | Hangup::Unacknowledged(_)
        | Hangup::TooManyRequests
        | Hangup::Hole { .. }
        | Hangup::Differs(_)
        | Hangup::CannotCut(_)
        | Hangup::Silent(_)
        | Hangup::Unintroduced
        | Hangup::DiskBehind { .. }
        | Hangup::OldEpoch(_) => true,
        Hangup::PeerDials(_)
        | Hangup::WeDial(_)
        | Hangup::Replaced(_)
        | Hangup::ClaimedAgain(_)
        | Hangup::NotLeading
        | Hangup::RoleEnded
        | Hangup::Unwanted
        | Hangup::Shutdown => false,
    }
}

/// How many events are taken before outputs are carried out.
const BATCH_MAX: usize = 64;
/// How long people may be told what was a moment ago, while nothing notable happens.
const PUBLISH_AFTER: Duration = Duration::from_millis(50);
/// After how long an election is worth a warning, and how often.
const COMPLAIN_AFTER: Duration = Duration::from_secs(30);

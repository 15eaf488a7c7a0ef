//! One connection, one task: a reader and a writer that end together.
//!
//! ```text
//!            loop ── Outbound::send ──► queue ── encode all ──► one write ──► Drained, Streamed
//!            loop ◄── bounded channel ◄── decode ◄── one buffer ◄── read ──► a snapshot's thread
//! ```
//!
//! What goes out on an election link is the core's `Mailbox`: a peer that reads slowly gets the newest
//! vote, or letter of each kind, not all of them. What goes out on a quorum link is a sequence of packets, of marks that tell
//! the core how far the learner has read, and of [streams](crate::stream) that are too long to wait in
//! a queue; the core sends no more than a learner reads, and one that stops reading all the same ends
//! its own link and never the loop. What comes in passes one bounded channel for all links; while it is
//! full, the readers wait and TCP tells the senders. Behind SNAP come bytes that are no packets: they go
//! to the thread that restores them, until that says where they end.
//!
//! Java's names: `SendWorker` and `RecvWorker` are the two directions, `queueSendMap` holds the
//! queues, `recvQueue` is the channel. What this module does not do: it knows no rule of the protocol,
//! only where a message ends.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender, bounded};
use bytes::{Buf, Bytes, BytesMut};
use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::future::{or, pending};
use futures_lite::io::{AsyncReadExt, AsyncWriteExt, split};
use quorate_core::config::Election;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, LinkUp, Plane, Unreadable};
use quorate_core::links::Mailbox;
use quorate_core::message::{Introduction, Message, Packet, Request};
use quorate_core::txn::Txn;
use quorate_core::wire::{self, DecodeError};

use crate::guests::Guest;
use crate::permits::{Permit, Permits};
use crate::ports::Ports;
use crate::quiet::Quiet;
use crate::runtime::Runtime;
use crate::scope::{Scope, closed};
use crate::status::Counters;
use crate::stream::{Intake, Piece, Pieces, Received, SnapshotFault};

/// What the tasks around the loop tell it.
#[derive(Debug)]
pub(crate) enum Happened {
    /// A link is up, and this is how to write to it.
    Up(LinkUp, Outbound),
    /// Something that the core understands as it is.
    Event(Event),
    /// A message that takes much memory.
    Long { event: Event, _permit: Permit },
    /// Something lies in one of the loop's [trays](crate::requests::Tray).
    Rung,
    /// Something has changed about whether this port accepts connections.
    Ports(Plane),
}

/// How many bytes of messages that have not fully arrived all accepted links hold together, beyond a
/// little that each may. Anybody may connect, and announce a long message that never ends.
#[derive(Debug, Default)]
struct Unfinished(AtomicUsize);

/// One link's part of it, given back when dropped.
#[derive(Debug)]
struct Share<'a> {
    of: &'a Unfinished,
    bytes: usize,
}

impl Share<'_> {
    /// Holds `bytes` from now on, of which `free` are the link's own affair; returns whether there is
    /// room for them.
    fn hold(&mut self, bytes: usize, free: usize) -> bool {
        let bytes = bytes.saturating_sub(free);
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            let before = self.of.0.fetch_add(more, Ordering::Relaxed);
            self.bytes = bytes;
            before.saturating_add(more) <= UNFINISHED_MAX
        } else {
            self.of.0.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
            true
        }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What all tasks of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: ServerId,
    pub(crate) events: Sender<Happened>,
    pub(crate) counters: Counters,
    pub(crate) warnings: Quiet,
    pub(crate) ports: Ports,
    permits: Permits,
    unfinished: Unfinished,
    next_link: AtomicU64,
    /// How long a snapshot may pause on its way to us.
    patience: Duration,
    /// What is said on the election port.
    pub(crate) tongue: Tongue,
}

/// What is said on the election port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tongue {
    /// Notifications.
    Fast,
    /// Letters.
    Generation,
}

impl Tongue {
    /// That of a server with this configuration.
    pub(crate) const fn of(election: &Election) -> Self {
        match election {
            Election::Fast => Self::Fast,
            Election::Generation(_) => Self::Generation,
        }
    }

    /// An introduction in it.
    pub(crate) fn introduce(self, introduction: &Introduction) -> Bytes {
        match self {
            Self::Fast => wire::encode_introduction(introduction),
            Self::Generation => wire::encode_letter_introduction(introduction),
        }
    }

    /// Takes an introduction in it off the front of `buf`.
    pub(crate) fn hear(self, buf: &mut BytesMut) -> Result<Option<Introduction>, DecodeError> {
        match self {
            Self::Fast => wire::decode_introduction(buf),
            Self::Generation => wire::decode_letter_introduction(buf),
        }
    }

    /// Takes a message in it off the front of `buf`.
    fn take(self, buf: &mut BytesMut) -> Result<Option<Message>, DecodeError> {
        if let Some(probe) = wire::take_probe(buf) {
            return Ok(Some(Message::Probe(probe)));
        }
        match self {
            Self::Fast => wire::take_notification(buf).map(|m| m.map(Message::Notification)),
            Self::Generation => wire::take_letter(buf).map(|m| m.map(Message::Letter)),
        }
    }
}

impl Shared {
    pub(crate) fn new(
        id: ServerId,
        events: Sender<Happened>,
        patience: Duration,
        tongue: Tongue,
    ) -> Self {
        let (counters, warnings) = (Counters::default(), Quiet::new());
        Self {
            id,
            events,
            counters,
            warnings,
            ports: Ports::default(),
            permits: Permits::new(LONG_MESSAGES_MAX),
            unfinished: Unfinished::default(),
            next_link: AtomicU64::new(1),
            patience,
            tongue,
        }
    }

    /// A link number that was never used.
    pub(crate) fn next_link(&self) -> LinkId {
        LinkId(self.next_link.fetch_add(1, Ordering::Relaxed))
    }
}

/// The loop's end of a link. Dropping it lets the link write what it has, for a second at most, and
/// close.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) plane: Plane,
    pub(crate) peer: Option<ServerId>,
    pub(crate) remote: SocketAddr,
    queue: Arc<Mutex<Queue>>,
    /// Something was queued since the writer was woken last.
    queued: bool,
    wake: Sender<()>,
    /// Where the reader gets what takes a snapshot.
    intakes: Sender<Intake>,
    known: Arc<AtomicBool>,
    _open: Sender<Infallible>,
}

/// What waits to be written.
#[derive(Debug)]
enum Queue {
    Newest(Mailbox),
    All(Packets),
}

/// What waits to be written to a learner or its leader, in order.
#[derive(Debug, Default)]
struct Packets {
    items: VecDeque<Item>,
    bytes: usize,
}

#[derive(Debug)]
enum Item {
    Packet(Packet),
    /// The core is to be told when everything before it is written.
    Pace,
    Stream(Pieces),
}

/// The peer does not read: more waits to be written than is allowed.
#[derive(Debug)]
pub(crate) struct Full;

impl Outbound {
    /// Queues a message; never waits. Nothing is written before [`Outbound::wake`]. Returns whether
    /// this is the first since then.
    pub(crate) fn send(&mut self, message: Message) -> Result<bool, Full> {
        match (&mut *locked(&self.queue), message) {
            (Queue::Newest(mailbox), Message::Notification(notification)) => {
                mailbox.put(notification);
            }
            (Queue::All(packets), Message::Packet(packet)) => {
                if packets.bytes >= QUEUE_BYTES_MAX {
                    return Err(Full);
                }
                if packet == Packet::UpToDate {
                    // Whoever has come so far has proved to be a learner of this ensemble.
                    self.known.store(true, Ordering::Relaxed);
                }
                packets.bytes += cost(&packet);
                packets.items.push_back(Item::Packet(packet));
            }
            (Queue::Newest(mailbox), Message::Letter(letter)) => {
                mailbox.post(letter);
            }
            (Queue::Newest(mailbox), Message::Probe(probe)) => {
                mailbox.put_probe(probe);
            }
            (Queue::Newest(_), Message::Packet(_))
            | (Queue::All(_), Message::Notification(_) | Message::Letter(_) | Message::Probe(_)) => {
                debug_assert!(false, "a message on the wrong plane");
            }
        }
        Ok(self.queue_first())
    }

    /// Queues a mark: when everything before it is written, the core is told.
    pub(crate) fn pace(&mut self) -> bool {
        self.push(Item::Pace)
    }

    /// Queues a stream: when it is written, the core is told.
    pub(crate) fn stream(&mut self, pieces: Pieces) -> bool {
        self.push(Item::Stream(pieces))
    }

    fn push(&mut self, item: Item) -> bool {
        match &mut *locked(&self.queue) {
            Queue::All(packets) => packets.items.push_back(item),
            Queue::Newest(_) => debug_assert!(false, "a stream of votes"),
        }
        self.queue_first()
    }

    fn queue_first(&mut self) -> bool {
        !std::mem::replace(&mut self.queued, true)
    }

    /// Lets the link write what is queued.
    pub(crate) fn wake(&mut self) {
        self.queued = false;
        // Full: the writer has been woken already.
        let _ = self.wake.try_send(());
    }

    /// Hands the bytes behind SNAP to what takes them.
    pub(crate) fn receive(&self, intake: Intake) {
        // Full: a snapshot is coming already; the core asks for one after the other.
        drop(self.intakes.try_send(intake));
    }
}

/// What a queued packet costs, about.
fn cost(packet: &Packet) -> usize {
    let payload = match packet {
        Packet::Proposal(txn) | Packet::Inform(txn) | Packet::InformAndActivate { txn, .. } => {
            txn.len()
        }
        Packet::Proposals(txns) => txns.iter().map(|txn| txn.len() + BARE_BYTES).sum(),
        Packet::NewLeader { config, .. } => config.len(),
        Packet::Snap { memberships, .. } => memberships.len(),
        Packet::Commits(run) | Packet::Acks(run) => {
            BARE_BYTES * usize::try_from(run.last.0 - run.first.0).unwrap_or(0)
        }
        Packet::FollowerInfo(_)
        | Packet::ObserverInfo(_)
        | Packet::LeaderInfo { .. }
        | Packet::AckEpoch { .. }
        | Packet::Diff(_)
        | Packet::Trunc(_)
        | Packet::UpToDate
        | Packet::Ack(_)
        | Packet::Ping { .. }
        | Packet::Commit(_)
        | Packet::CommitAndActivate { .. }
        | Packet::Revalidate(_)
        // Held by whoever asks, and bounded there.
        | Packet::Request(_)
        | Packet::HandOver { .. }
        | Packet::Lease { .. }
        | Packet::MayLead(_)
        | Packet::Sync => 0,
    };
    payload + size_of::<Item>()
}

/// Whether a packet is copied into one buffer with others.
fn is_short(packet: &Packet) -> bool {
    let payload = if let Packet::Request(Request { body, .. })
    | Packet::Proposal(Txn { body, .. })
    | Packet::Inform(Txn { body, .. }) = packet
    {
        body.len()
    } else {
        0
    };
    payload < PAYLOAD_COPIED_MAX
}

/// A connection that is about to become a link.
#[derive(Debug)]
pub(crate) struct Opened<S> {
    pub(crate) stream: S,
    pub(crate) plane: Plane,
    pub(crate) dialled: bool,
    pub(crate) remote: SocketAddr,
    pub(crate) peer: Option<ServerId>,
    pub(crate) advertised: Option<quorate_core::address::HostPort>,
    /// What has been read already, behind the introduction.
    pub(crate) received: BytesMut,
    /// Its place among those of its address; none if we dialled.
    pub(crate) guest: Option<Guest>,
}

/// Makes a connection a link, in a task of its own.
pub(crate) fn open<R: Runtime>(scope: &Scope<R>, shared: &Arc<Shared>, opened: Opened<R::Stream>) {
    let (runtime, shared) = (scope.runtime.clone(), Arc::clone(shared));
    scope.spawn(async move { run(runtime, &shared, opened).await });
}

async fn run<R: Runtime>(runtime: R, shared: &Shared, opened: Opened<R::Stream>) {
    let Opened { stream, plane, dialled, remote, peer, advertised, received, guest: _guest } =
        opened;
    let link = shared.next_link();
    let queue = Arc::new(Mutex::new(match plane {
        Plane::Election => Queue::Newest(Mailbox::default()),
        Plane::Quorum => Queue::All(Packets::default()),
    }));
    let (wake, woken) = bounded(1);
    let (open, hung_up) = bounded(1);
    let (intakes, intake) = bounded(1);
    let known = Arc::new(AtomicBool::new(false));
    let outbound = Outbound {
        plane,
        peer,
        remote,
        queue: Arc::clone(&queue),
        queued: false,
        wake,
        intakes,
        known: Arc::clone(&known),
        _open: open,
    };
    let up = LinkUp { link, plane, dialled, peer, advertised, remote: Some(remote.ip()) };
    if shared.events.send(Happened::Up(up, outbound)).await.is_err() {
        return;
    }

    let (input, mut output) = split(stream);
    // What an accepted quorum link says first is a few numbers, and we do not know yet who says it.
    let first_bytes_max = (plane == Plane::Quorum && !dialled).then_some(FIRST_PACKET_BYTES_MAX);
    let share = (!dialled).then_some(Share { of: &shared.unfinished, bytes: 0 });
    let reader = Reader {
        shared,
        runtime: &runtime,
        link,
        plane,
        remote,
        first_bytes_max,
        share,
        known: &known,
        intake,
    };
    let mut writer = Writer {
        shared,
        runtime: &runtime,
        link,
        queue: &queue,
        progress: Progress::new(runtime.now()),
        output: &mut output,
    };
    let flushed = or(writer.write(&woken), async {
        closed(&hung_up).await;
        runtime.sleep(FLUSH_TIME).await;
        None
    });
    let ended = or(async { Some(reader.read(input, received).await) }, flushed).await;
    if let Some(cause) = ended {
        drop(shared.events.send(Happened::Event(Event::LinkDown { link, cause })).await);
        // Whoever is at the other end may be free of a promise when it sees us close: not before the core
        // does without that.
        closed(&hung_up).await;
    }
    drop(output);
}

/// The reading direction.
struct Reader<'a, R> {
    shared: &'a Shared,
    runtime: &'a R,
    link: LinkId,
    plane: Plane,
    remote: SocketAddr,
    first_bytes_max: Option<usize>,
    /// None on a link that we dialled ourselves.
    share: Option<Share<'a>>,
    /// Whether the other end is a learner that we have brought up.
    known: &'a AtomicBool,
    intake: Receiver<Intake>,
}

impl<R: Runtime> Reader<'_, R> {
    /// Reads until the link ends.
    async fn read(mut self, mut input: impl AsyncRead + Unpin, mut buf: BytesMut) -> Cause {
        let mut most = READ_BYTES;
        loop {
            let held = buf.len();
            let decoded = match self.plane {
                Plane::Election => self.shared.tongue.take(&mut buf),
                Plane::Quorum => wire::take_packet(&mut buf).map(|m| m.map(Message::Packet)),
            };
            match decoded {
                Ok(Some(message)) => {
                    self.first_bytes_max = None;
                    let snapshot = matches!(message, Message::Packet(Packet::Snap { .. }));
                    let event = Event::Received { link: self.link, message };
                    let happened = if held - buf.len() > LONG_MESSAGE_BYTES {
                        Happened::Long { event, _permit: self.shared.permits.take().await }
                    } else {
                        Happened::Event(event)
                    };
                    if self.shared.events.send(happened).await.is_err() {
                        // The server ends. The writer ends the link.
                        return pending().await;
                    }
                    if snapshot {
                        match self.take_snapshot(&mut input, buf).await {
                            Ok(unread) => buf = unread,
                            Err(error) => {
                                Counters::add(&self.shared.counters.garbled_links);
                                self.warn(&error, "link closed: no snapshot");
                                return Cause::Garbled;
                            }
                        }
                    }
                    continue;
                }
                Ok(None) if self.first_bytes_max.is_some_and(|max| buf.len() > max) => {
                    self.warn(&"the first packet is too long", "link closed");
                    return Cause::Garbled;
                }
                Ok(None) => {}
                Err(error) if error.is_fatal() => {
                    Counters::add(&self.shared.counters.garbled_links);
                    self.warn(&error, "link closed");
                    return Cause::Garbled;
                }
                Err(error) => {
                    Counters::add(&self.shared.counters.dropped_messages);
                    self.warn(&error, "message dropped");
                    continue;
                }
            }
            if buf.is_empty() && buf.capacity() > BUFFER_KEPT_MAX {
                buf = BytesMut::new();
            }
            let free = match self.known.load(Ordering::Relaxed) {
                true => UNFINISHED_KNOWN,
                false => UNFINISHED_FREE,
            };
            if !self.share.as_mut().is_none_or(|share| share.hold(buf.len(), free)) {
                self.warn(&"too many bytes of messages that do not end", "link closed");
                return Cause::Garbled;
            }
            match read_some(&mut input, &mut buf, most).await {
                Ok(0) => return Cause::Closed,
                // More at a time while more is there.
                Ok(read) if read == most => most = (most * 2).min(READ_BYTES_MAX),
                Ok(read) if read < most / 4 => most = (most / 2).max(READ_BYTES),
                Ok(_) => {}
                Err(error) => return cause_of(&error),
            }
        }
    }

    /// Hands everything that comes to what takes a snapshot, until that says where it ends. Returns
    /// what belongs to the packets behind it.
    async fn take_snapshot(
        &self,
        input: &mut (impl AsyncRead + Unpin),
        ahead: BytesMut,
    ) -> Result<BytesMut, SnapshotFault> {
        let Ok(intake) = self.intake.recv().await else { return pending().await };
        let mut progress = Progress::new(self.runtime.now());
        intake.put(&ahead);
        drop(ahead);
        let mut spare = intake.spare();
        let Received { unread, membership } = loop {
            let mut moved = 0;
            let read = async {
                let Some(chunk) = &mut spare else {
                    intake.room().await;
                    return Incoming::Room;
                };
                let late = async {
                    self.runtime.sleep(self.shared.patience).await;
                    Err(io::ErrorKind::TimedOut.into())
                };
                Incoming::Read(or(input.read(chunk.memory()), late).await)
            };
            let done = async { Incoming::Done(intake.done().await) };
            match or(done, read).await {
                Incoming::Done(done) => break done?,
                Incoming::Room => spare = intake.spare(),
                Incoming::Read(Ok(0)) => {
                    intake.close();
                    break intake.done().await?;
                }
                Incoming::Read(Ok(read)) => {
                    moved = read;
                    if let Some(chunk) = spare {
                        intake.pass(chunk, read);
                    }
                    spare = intake.spare();
                }
                Incoming::Read(Err(error)) => return Err(error.into()),
            }
            if progress.is_due(moved, self.runtime.now()) {
                drop(self.shared.events.send(event(Event::Progress(self.link))).await);
            }
        };
        let restored = Event::Restored { link: self.link, membership };
        drop(self.shared.events.send(event(restored)).await);
        Ok(unread)
    }

    fn warn(&self, error: &dyn std::fmt::Display, consequence: &str) {
        if let Some(suppressed) = self.shared.warnings.speak(self.runtime.now()) {
            tracing::warn!(
                sid = self.shared.id.0,
                peer = %self.remote,
                plane = ?self.plane,
                %error,
                suppressed,
                "unreadable bytes, {consequence}"
            );
        }
    }
}

/// What happens while a snapshot comes in.
enum Incoming {
    Done(Result<Received, SnapshotFault>),
    Room,
    Read(io::Result<usize>),
}

fn event(event: Event) -> Happened {
    Happened::Event(event)
}

/// Bounds how often the core hears that something moves.
/// One that only trickles does not move: whoever waits for it would wait for ever.
struct Progress {
    last: Instant,
    bytes: usize,
}

impl Progress {
    const fn new(now: Instant) -> Self {
        Self { last: now, bytes: 0 }
    }

    /// So many more bytes have moved; returns whether the core is to hear of it.
    fn is_due(&mut self, bytes: usize, now: Instant) -> bool {
        self.bytes += bytes;
        let due = now.saturating_duration_since(self.last) >= PROGRESS_INTERVAL
            && self.bytes >= PROGRESS_BYTES;
        if due {
            *self = Self::new(now);
        }
        due
    }
}

/// The writing direction.
struct Writer<'a, R, W> {
    shared: &'a Shared,
    runtime: &'a R,
    link: LinkId,
    queue: &'a Mutex<Queue>,
    progress: Progress,
    output: &'a mut W,
}

/// What is to be done when the bytes gathered so far are written.
enum Then {
    /// Nothing more is queued.
    Wait,
    /// Go on.
    GoOn,
    /// A payload too long to be copied belongs at this place.
    Payload(usize, Bytes),
    Drained,
    Stream(Pieces),
}

impl<R: Runtime, W: AsyncWrite + Unpin> Writer<'_, R, W> {
    /// Writes until the loop has let go of the link and all is written; then returns none.
    async fn write(&mut self, woken: &Receiver<()>) -> Option<Cause> {
        let mut buf = BytesMut::new();
        loop {
            let open = woken.recv().await.is_ok();
            if let Err(error) = self.write_queued(&mut buf).await {
                return Some(cause_of(&error));
            }
            if !open {
                drop(self.output.close().await);
                return None;
            }
        }
    }

    async fn write_queued(&mut self, buf: &mut BytesMut) -> io::Result<()> {
        loop {
            let then = gather(self.queue, buf);
            if let Then::Payload(place, payload) = &then {
                self.output.write_all(&buf[..*place]).await?;
                self.output.write_all(payload).await?;
                buf.advance(*place);
                // What is behind the payload goes with what comes next.
                continue;
            }
            if !buf.is_empty() {
                self.output.write_all(buf).await?;
                self.output.flush().await?;
                buf.clear();
                if buf.capacity() > BUFFER_KEPT_MAX {
                    *buf = BytesMut::new();
                }
            }
            match then {
                Then::Wait => return Ok(()),
                Then::GoOn | Then::Payload(..) => {}
                Then::Drained => self.tell(Event::Drained(self.link)).await,
                Then::Stream(pieces) => {
                    let outcome = self.write_stream(&pieces).await?;
                    self.tell(Event::Streamed { link: self.link, outcome }).await;
                }
            }
        }
    }

    async fn write_stream(&mut self, pieces: &Pieces) -> io::Result<Result<(), Unreadable>> {
        loop {
            match pieces.recv().await {
                Ok(Piece::Bytes(bytes)) => {
                    self.output.write_all(&bytes).await?;
                    if self.progress.is_due(bytes.len(), self.runtime.now()) {
                        self.tell(Event::Progress(self.link)).await;
                    }
                }
                Ok(Piece::End(outcome)) => {
                    self.output.flush().await?;
                    return Ok(outcome);
                }
                Err(_) => return Ok(Err(Unreadable)),
            }
        }
    }

    async fn tell(&self, what: Event) {
        // Nobody listens: the server ends.
        drop(self.shared.events.send(event(what)).await);
    }
}

/// Encodes what is queued, up to a bound or to what is more than bytes.
fn gather(queue: &Mutex<Queue>, buf: &mut BytesMut) -> Then {
    match &mut *locked(queue) {
        Queue::Newest(mailbox) => {
            if let Some(notification) = mailbox.take() {
                wire::encode_notification(&notification, buf);
            }
            while let Some(letter) = mailbox.take_letter() {
                wire::encode_letter(&letter, buf);
            }
            if let Some(probe) = mailbox.take_probe() {
                wire::encode_probe(&probe, buf);
            }
            Then::Wait
        }
        Queue::All(packets) => {
            buf.reserve(packets.bytes.min(WRITE_BYTES).saturating_sub(buf.len()));
            loop {
                if packets.items.front().is_some_and(|item| !fits(item, buf.len())) {
                    return Then::GoOn;
                }
                match packets.items.pop_front() {
                    Some(Item::Packet(packet)) => {
                        packets.bytes -= cost(&packet);
                        if is_short(&packet) {
                            wire::encode_packet(&packet, buf);
                        } else if let Some((place, payload)) =
                            wire::encode_around_payload(&packet, buf)
                        {
                            return Then::Payload(place, payload);
                        }
                    }
                    Some(Item::Pace) => return Then::Drained,
                    Some(Item::Stream(pieces)) => return Then::Stream(pieces),
                    None => {
                        if packets.items.capacity() > QUEUE_KEPT_MAX {
                            packets.items = VecDeque::new();
                        }
                        return Then::Wait;
                    }
                }
            }
        }
    }
}

/// Whether something is gathered with what is in the buffer already.
fn fits(item: &Item, gathered: usize) -> bool {
    match item {
        Item::Packet(packet) if is_short(packet) => {
            gathered == 0 || gathered + cost(packet) <= WRITE_BYTES
        }
        Item::Packet(_) | Item::Pace | Item::Stream(_) => true,
    }
}

/// Reads once, behind what `buf` holds.
pub(crate) async fn read_some(
    input: &mut (impl AsyncRead + Unpin),
    buf: &mut BytesMut,
    most: usize,
) -> io::Result<usize> {
    let held = buf.len();
    buf.resize(held + most, 0);
    let read = input.read(&mut buf[held..]).await;
    buf.truncate(held + read.as_ref().map_or(0, |read| *read));
    read
}

fn cause_of(error: &io::Error) -> Cause {
    if error.kind() == io::ErrorKind::TimedOut { Cause::Silent } else { Cause::Reset }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From this length on, messages that wait for the loop are counted apart.
const LONG_MESSAGE_BYTES: usize = 16 * 1024;
/// How many long messages may wait for the loop.
const LONG_MESSAGES_MAX: usize = 8;
/// How much is read at once, as long as little comes.
const READ_BYTES: usize = 4096;
/// How much is read at once when much comes.
const READ_BYTES_MAX: usize = 256 * 1024;
/// How much is gathered for one write, unless a single message is longer.
const WRITE_BYTES: usize = 64 * 1024;
/// Buffers that have grown beyond this are given back once they are empty.
const BUFFER_KEPT_MAX: usize = 64 * 1024;
/// A queue that has grown beyond this is given back once it is empty.
const QUEUE_KEPT_MAX: usize = 64;
/// How many bytes may wait for a peer that does not read, each packet counted with what keeping it
/// takes. The core sends no more than a part of this before it knows that a learner reads; this is the
/// last defence.
const QUEUE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A packet without data.
const BARE_BYTES: usize = 20;
/// Payloads are copied into one buffer with others up to this length.
const PAYLOAD_COPIED_MAX: usize = 64 * 1024;
/// How often the core hears that a stream moves.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// How much must have moved for that: 50 KiB/s where connecting may take 20 s.
const PROGRESS_BYTES: usize = 1 << 20;
/// The longest first packet of a learner; the real ones take 40 bytes.
const FIRST_PACKET_BYTES_MAX: usize = 4096;
/// What each accepted link may hold of a message that has not fully arrived.
const UNFINISHED_FREE: usize = 16 * 1024;
/// The same of a learner that was brought up: the longest request, with its identities. So strangers
/// who fill what is shared hold up no learner.
const UNFINISHED_KNOWN: usize = 2 * wire::MAX_DATA + READ_BYTES_MAX;
/// What all of them may hold beyond that.
const UNFINISHED_MAX: usize = 16 * 1024 * 1024;
/// How long a link that was hung up may take to write what it has.
const FLUSH_TIME: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use super::*;
    use crate::stream;
    use futures_lite::future::{block_on, poll_once};
    use quorate_core::txn::TxnHeader;
    use quorate_core::zxid::Zxid;

    fn outbound() -> (Outbound, Receiver<()>) {
        let (wake, woken) = bounded(1);
        let (open, _hung_up) = bounded(1);
        let (intakes, _) = bounded(1);
        let link = Outbound {
            plane: Plane::Quorum,
            peer: None,
            remote: SocketAddr::from(([127, 0, 0, 1], 1)),
            queue: Arc::new(Mutex::new(Queue::All(Packets::default()))),
            queued: false,
            wake,
            intakes,
            known: Arc::new(AtomicBool::new(false)),
            _open: open,
        };
        (link, woken)
    }

    fn txn(bytes: usize) -> Txn {
        let header = TxnHeader { client: 1, cxid: 1, time: 1, kind: 5 };
        Txn { zxid: Zxid(1), header, body: vec![7; bytes].into() }
    }

    /// Everything that would be written, and the marks between.
    fn drain(link: &Outbound) -> (Vec<u8>, usize) {
        let (mut written, mut drained, mut buf) = (Vec::new(), 0, BytesMut::new());
        loop {
            let then = gather(&link.queue, &mut buf);
            if let Then::Payload(place, payload) = &then {
                written.extend_from_slice(&buf.split_to(*place));
                written.extend_from_slice(payload);
                continue;
            }
            written.extend_from_slice(&buf.split());
            match then {
                Then::Wait => return (written, drained),
                Then::Drained => drained += 1,
                Then::GoOn | Then::Payload(..) | Then::Stream(_) => {}
            }
        }
    }

    #[test]
    fn a_learner_that_does_not_read_fills_its_own_queue_only() {
        for bytes in [0, 100, 1 << 20] {
            let (mut link, _woken) = outbound();
            let packet = Packet::Proposal(txn(bytes));
            let mut sent = 0;
            while link.send(Message::Packet(packet.clone())).is_ok() {
                sent += 1;
            }
            let most = QUEUE_BYTES_MAX / cost(&packet) + 1;
            assert!((5..=most).contains(&sent), "{sent} of {bytes}, at most {most}");
        }
    }

    #[test]
    fn packets_go_out_in_order_with_long_payloads_and_marks_between() {
        let (mut link, woken) = outbound();
        let lengths = [10, PAYLOAD_COPIED_MAX, 1, 3 * PAYLOAD_COPIED_MAX, 0];
        let mut expected = BytesMut::new();
        for (nth, bytes) in lengths.into_iter().enumerate() {
            let packet = Packet::Proposal(txn(bytes));
            wire::encode_packet(&packet, &mut expected);
            assert_eq!(
                link.send(Message::Packet(packet)).ok(),
                Some(nth == 0),
                "one wake is enough"
            );
            assert!(!link.pace());
        }
        assert!(woken.is_empty(), "nobody is woken before all is queued");
        link.wake();
        assert_eq!(woken.len(), 1);
        let (written, drained) = drain(&link);
        assert!(written == expected, "{} bytes, not {}", written.len(), expected.len());
        assert_eq!(drained, lengths.len());
        let Queue::All(packets) = &*locked(&link.queue) else { panic!("a mailbox") };
        assert_eq!(packets.bytes, 0);
    }

    /// A clock, and no network.
    #[derive(Clone)]
    struct Alone;

    impl Runtime for Alone {
        type Stream = Told;
        type Listener = ();

        fn spawn(&self, _: impl Future<Output = ()> + Send + 'static) {
            unreachable!("nothing is spawned");
        }

        async fn sleep(&self, duration: Duration) {
            let (sleeper, woken) = bounded::<()>(1);
            std::thread::spawn(move || {
                std::thread::sleep(duration);
                drop(sleeper);
            });
            let _ = woken.recv().await;
        }

        async fn listen(&self, _: SocketAddr) -> io::Result<()> {
            unreachable!("nobody listens")
        }

        async fn accept(&self, (): &()) -> io::Result<(Self::Stream, SocketAddr)> {
            unreachable!("nobody listens")
        }

        async fn dial(&self, _: SocketAddr) -> io::Result<Self::Stream> {
            unreachable!("nobody dials")
        }
    }

    /// Bytes in pieces, and then the end or silence.
    struct Trickle {
        bytes: VecDeque<u8>,
        piece: usize,
        ends: bool,
    }

    impl AsyncRead for Trickle {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            if self.bytes.is_empty() && !self.ends {
                return Poll::Pending;
            }
            let most = self.piece.min(buffer.len()).min(self.bytes.len());
            for (to, from) in buffer.iter_mut().zip(self.bytes.drain(..most)) {
                *to = from;
            }
            Poll::Ready(Ok(most))
        }
    }

    /// A connection on which something comes; what `open` belongs to ends when it is closed.
    struct Told {
        incoming: Trickle,
        _open: Sender<Infallible>,
    }

    impl AsyncRead for Told {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.incoming).poll_read(cx, buffer)
        }
    }

    impl AsyncWrite for Told {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// A follower that sees its leader close is free of its promise, so the leader's core comes first.
    #[test]
    fn a_connection_is_closed_when_the_loop_has_let_go_of_it_and_not_before() {
        for (bytes, cause) in [(vec![0x7f; 64], Cause::Garbled), (vec![], Cause::Closed)] {
            let (sender, events) = bounded(8);
            let shared = Shared::new(ServerId(1), sender, Duration::from_secs(1), Tongue::Fast);
            let (open, alive) = bounded(1);
            let incoming = Trickle { bytes: bytes.into(), piece: 64, ends: true };
            let opened = Opened {
                stream: Told { incoming, _open: open },
                plane: Plane::Quorum,
                dialled: false,
                remote: SocketAddr::from(([127, 0, 0, 1], 1)),
                peer: None,
                advertised: None,
                received: BytesMut::new(),
                guest: None,
            };
            let mut life = Box::pin(run(Alone, &shared, opened));
            assert!(block_on(poll_once(&mut life)).is_none());
            let Ok(Happened::Up(up, outbound)) = events.try_recv() else { panic!("not up") };
            let Ok(Happened::Event(ended)) = events.try_recv() else { panic!("not down") };
            assert_eq!(ended, Event::LinkDown { link: up.link, cause });
            assert!(!alive.is_closed(), "{cause:?}");
            drop(outbound);
            block_on(life);
            assert!(alive.is_closed(), "{cause:?}");
        }
    }

    /// SNAP, a state of `length` bytes and what follows, as a leader sends them.
    fn snapshot(length: usize, tail: &[u8]) -> Vec<u8> {
        let mut bytes = BytesMut::new();
        wire::encode_packet(&Packet::snap(Zxid(9)), &mut bytes);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.resize(bytes.len() + length, 0);
        bytes.extend_from_slice(tail);
        bytes.to_vec()
    }

    /// What a learner makes of bytes from its leader: what it restored, what it heard, and how it ended.
    fn learn(bytes: Vec<u8>, piece: usize, ends: bool) -> (Vec<usize>, Vec<Event>, Option<Cause>) {
        let (disk, _dir) = stream::tests::disk();
        let (sender, events) = bounded(64);
        let shared = Shared::new(ServerId(1), sender, Duration::from_millis(50), Tongue::Fast);
        let (link, known) = (LinkId(1), AtomicBool::new(false));
        let (taken, restored) = stream::tests::reception(Zxid(9), &disk);
        let (intakes, intake) = bounded(1);
        intakes.try_send(taken).unwrap();
        let reader = Reader {
            shared: &shared,
            runtime: &Alone,
            link,
            plane: Plane::Quorum,
            remote: SocketAddr::from(([127, 0, 0, 1], 1)),
            first_bytes_max: None,
            share: None,
            known: &known,
            intake,
        };
        let input = Trickle { bytes: bytes.into(), piece, ends };
        let ended =
            block_on(or(async { Some(reader.read(input, BytesMut::new()).await) }, async {
                // Long after everything has come.
                Alone.sleep(Duration::from_secs(2)).await;
                None
            }));
        let heard =
            std::iter::from_fn(|| events.try_recv().ok()).filter_map(|happened| match happened {
                Happened::Event(Event::Progress(_)) => None,
                Happened::Event(event) | Happened::Long { event, .. } => Some(event),
                Happened::Up(..) | Happened::Rung | Happened::Ports(_) => panic!("{happened:?}"),
            });
        let restored = restored.lock().unwrap().clone();
        (restored, heard.collect(), ended)
    }

    #[test]
    fn a_snapshot_is_taken_between_packets() {
        let link = LinkId(1);
        let packet = |packet| Event::Received { link, message: Message::Packet(packet) };
        let mut tail = BytesMut::from(&b"\0\0\0\x0aBenWasHere"[..]);
        wire::encode_packet(&Packet::Commit(Zxid(10)), &mut tail);
        for (length, piece) in [(0, 1), (0, 1000), (5, 3), (100_000, 4096), (3 << 20, 1 << 20)] {
            let (restored, heard, ended) = learn(snapshot(length, &tail), piece, true);
            assert_eq!(restored, [length]);
            let snap = packet(Packet::snap(Zxid(9)));
            let expected = [snap, Event::restored(link), packet(Packet::Commit(Zxid(10)))];
            assert_eq!((&heard[..], ended), (&expected[..], Some(Cause::Closed)), "{length}");
        }
    }

    #[test]
    fn a_snapshot_that_is_short_late_or_wrong_ends_its_link() {
        let whole = snapshot(1000, b"\0\0\0\x0aBenWasHere");
        let mut wrong = whole.clone();
        wrong[100] = 1;
        for (what, bytes, ends) in [
            ("short", whole[..500].to_vec(), true),
            ("without all of its signature", whole[..whole.len() - 1].to_vec(), true),
            ("late", whole[..500].to_vec(), false),
            ("not what the application reads", wrong, false),
            ("signed by somebody else", snapshot(1000, b"\0\0\0\x0aBenWasGone"), false),
        ] {
            let (restored, heard, ended) = learn(bytes, 100, ends);
            assert_eq!((restored, ended), (vec![], Some(Cause::Garbled)), "{what}");
            assert_eq!(heard.len(), 1, "{what}: SNAP alone, not {heard:?}");
        }
    }
}

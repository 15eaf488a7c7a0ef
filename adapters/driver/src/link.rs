//! One connection, one task: a reader and a writer that end together.
//!
//! ```text
//!            loop ── Outbound::send ──► queue ── encode all ──► one write
//!            loop ◄── bounded channel ◄── decode ◄── one buffer ◄── read
//! ```
//!
//! What goes out on an election link is the core's `Mailbox`: a peer that reads slowly gets the newest
//! vote, not all of them. What goes out on a quorum link is a sequence; a learner that stops reading
//! ends its own link and never the loop. What comes in passes one bounded channel for all links; while
//! it is full, the readers wait and TCP tells the senders.
//!
//! Java's names: `SendWorker` and `RecvWorker` are the two directions, `queueSendMap` holds the
//! queues, `recvQueue` is the channel. What this module does not do: it knows no rule of the protocol,
//! only where a message ends.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_channel::{Receiver, Sender, bounded};
use bytes::BytesMut;
use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::future::{or, pending};
use futures_lite::io::{AsyncReadExt, AsyncWriteExt, split};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, LinkUp, Plane};
use quorate_core::links::Mailbox;
use quorate_core::message::{Message, Packet};
use quorate_core::wire;

use crate::quiet::Quiet;
use crate::runtime::Runtime;
use crate::scope::{Scope, closed};
use crate::status::Counters;

/// What the tasks around the loop tell it.
#[derive(Debug)]
pub(crate) enum Happened {
    /// A link is up, and this is how to write to it.
    Up(LinkUp, Outbound),
    /// Something that the core understands as it is.
    Event(Event),
    /// A message that takes much memory.
    Long { event: Event, _permit: Permit },
}

/// Bounds how many long messages wait for the loop, whoever sends them.
#[derive(Debug)]
struct Permits {
    taken: Sender<()>,
    given_back: Receiver<()>,
}

/// Dropping it lets the next long message in.
#[derive(Debug)]
pub(crate) struct Permit {
    given_back: Receiver<()>,
}

impl Permits {
    fn new() -> Self {
        let (taken, given_back) = bounded(LONG_MESSAGES_MAX);
        Self { taken, given_back }
    }

    async fn take(&self) -> Permit {
        // Cannot be closed: the other end is here.
        let _ = self.taken.send(()).await;
        Permit { given_back: self.given_back.clone() }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let _ = self.given_back.try_recv();
    }
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
    /// Holds `bytes` from now on; returns whether there is room for them.
    fn hold(&mut self, bytes: usize) -> bool {
        let bytes = bytes.saturating_sub(UNFINISHED_FREE);
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
    permits: Permits,
    unfinished: Unfinished,
    next_link: AtomicU64,
}

impl Shared {
    pub(crate) fn new(id: ServerId, events: Sender<Happened>) -> Self {
        let (counters, warnings) = (Counters::default(), Quiet::new());
        Self {
            id,
            events,
            counters,
            warnings,
            permits: Permits::new(),
            unfinished: Unfinished::default(),
            next_link: AtomicU64::new(1),
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
    wake: Sender<()>,
    _open: Sender<Infallible>,
}

/// What waits to be written.
#[derive(Debug)]
enum Queue {
    Newest(Mailbox),
    All(VecDeque<Packet>),
}

/// The peer does not read: more waits to be written than is allowed.
#[derive(Debug)]
pub(crate) struct Full;

impl Outbound {
    /// Hands over a message; never waits.
    pub(crate) fn send(&self, message: Message) -> Result<(), Full> {
        match (&mut *locked(&self.queue), message) {
            (Queue::Newest(mailbox), Message::Notification(notification)) => {
                mailbox.put(notification);
            }
            (Queue::All(queue), Message::Packet(packet)) => {
                if queue.len() >= QUEUE_MAX {
                    return Err(Full);
                }
                queue.push_back(packet);
            }
            (Queue::Newest(_), Message::Packet(_)) | (Queue::All(_), Message::Notification(_)) => {
                debug_assert!(false, "a message on the wrong plane");
            }
        }
        // Full: the writer has been woken already.
        let _ = self.wake.try_send(());
        Ok(())
    }
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
}

/// Makes a connection a link, in a task of its own.
pub(crate) fn open<R: Runtime>(scope: &Scope<R>, shared: &Arc<Shared>, opened: Opened<R::Stream>) {
    let (runtime, shared) = (scope.runtime.clone(), Arc::clone(shared));
    scope.spawn(async move { run(runtime, &shared, opened).await });
}

async fn run<R: Runtime>(runtime: R, shared: &Shared, opened: Opened<R::Stream>) {
    let Opened { stream, plane, dialled, remote, peer, advertised, received } = opened;
    let link = shared.next_link();
    let queue = Arc::new(Mutex::new(match plane {
        Plane::Election => Queue::Newest(Mailbox::default()),
        Plane::Quorum => Queue::All(VecDeque::new()),
    }));
    let (wake, woken) = bounded(1);
    let (open, hung_up) = bounded(1);
    let outbound = Outbound { plane, peer, remote, queue: Arc::clone(&queue), wake, _open: open };
    let up = LinkUp { link, plane, dialled, peer, advertised, remote: Some(remote.ip()) };
    if shared.events.send(Happened::Up(up, outbound)).await.is_err() {
        return;
    }

    let (input, mut output) = split(stream);
    // What an accepted quorum link says first is a few numbers, and we do not know yet who says it.
    let first_bytes_max = (plane == Plane::Quorum && !dialled).then_some(FIRST_PACKET_BYTES_MAX);
    let share = (!dialled).then_some(Share { of: &shared.unfinished, bytes: 0 });
    let reader = Reader { shared, runtime: &runtime, link, plane, remote, first_bytes_max, share };
    let flushed = or(write(&mut output, &queue, &woken), async {
        closed(&hung_up).await;
        runtime.sleep(FLUSH_TIME).await;
        None
    });
    let ended = or(async { Some(reader.read(input, received).await) }, flushed).await;
    drop(output);
    if let Some(cause) = ended {
        drop(shared.events.send(Happened::Event(Event::LinkDown { link, cause })).await);
    }
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
}

impl<R: Runtime> Reader<'_, R> {
    /// Reads until the link ends.
    async fn read(mut self, mut input: impl AsyncRead + Unpin, mut buf: BytesMut) -> Cause {
        loop {
            let held = buf.len();
            let decoded = match self.plane {
                Plane::Election => {
                    wire::take_notification(&mut buf).map(|m| m.map(Message::Notification))
                }
                Plane::Quorum => wire::decode_packet(&mut buf).map(|m| m.map(Message::Packet)),
            };
            match decoded {
                Ok(Some(message)) => {
                    self.first_bytes_max = None;
                    let snapshot = matches!(message, Message::Packet(Packet::Snap(_)));
                    let event = Event::Received { link: self.link, message };
                    let happened = if held - buf.len() > LONG_MESSAGE_BYTES {
                        Happened::Long { event, _permit: self.shared.permits.take().await }
                    } else {
                        Happened::Event(event)
                    };
                    let taken = self.shared.events.send(happened).await;
                    if taken.is_err() || snapshot {
                        // The server ends; or no packets follow. The writer ends the link.
                        return pending().await;
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
            if !self.share.as_mut().is_none_or(|share| share.hold(buf.len())) {
                self.warn(&"too many bytes of messages that do not end", "link closed");
                return Cause::Garbled;
            }
            match read_some(&mut input, &mut buf, READ_BYTES).await {
                Ok(0) => return Cause::Closed,
                Ok(_) => {}
                Err(error) => return cause_of(&error),
            }
        }
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

/// The writing direction: returns none when the loop has let go of the link and all is written.
async fn write(
    output: &mut (impl AsyncWrite + Unpin),
    queue: &Mutex<Queue>,
    woken: &Receiver<()>,
) -> Option<Cause> {
    let mut buf = BytesMut::new();
    loop {
        let open = woken.recv().await.is_ok();
        while encode_queued(queue, &mut buf) {
            let written = async {
                output.write_all(&buf).await?;
                output.flush().await
            };
            if let Err(error) = written.await {
                return Some(cause_of(&error));
            }
            buf.clear();
            if buf.capacity() > BUFFER_KEPT_MAX {
                buf = BytesMut::new();
            }
        }
        if !open {
            drop(output.close().await);
            return None;
        }
    }
}

/// Encodes what is queued, up to a bound; returns whether there was anything.
fn encode_queued(queue: &Mutex<Queue>, buf: &mut BytesMut) -> bool {
    match &mut *locked(queue) {
        Queue::Newest(mailbox) => {
            if let Some(notification) = mailbox.take() {
                wire::encode_notification(&notification, buf);
            }
        }
        Queue::All(queue) => {
            while buf.len() < WRITE_BYTES {
                let Some(packet) = queue.pop_front() else { break };
                wire::encode_packet(&packet, buf);
            }
            if queue.is_empty() && queue.capacity() > QUEUE_KEPT_MAX {
                *queue = VecDeque::new();
            }
        }
    }
    !buf.is_empty()
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
/// How much is read at once.
const READ_BYTES: usize = 4096;
/// How much is gathered for one write, unless a single message is longer.
const WRITE_BYTES: usize = 64 * 1024;
/// Buffers that have grown beyond this are given back once they are empty.
const BUFFER_KEPT_MAX: usize = 64 * 1024;
/// A queue that has grown beyond this is given back once it is empty.
const QUEUE_KEPT_MAX: usize = 64;
/// How many packets may wait for a learner that does not read.
const QUEUE_MAX: usize = 4096;
/// The longest first packet of a learner; the real ones take 40 bytes.
const FIRST_PACKET_BYTES_MAX: usize = 4096;
/// What each accepted link may hold of a message that has not fully arrived.
const UNFINISHED_FREE: usize = 16 * 1024;
/// What all of them may hold beyond that.
const UNFINISHED_MAX: usize = 16 * 1024 * 1024;
/// How long a link that was hung up may take to write what it has.
const FLUSH_TIME: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_core::zxid::Zxid;

    #[test]
    fn a_learner_that_does_not_read_fills_its_own_queue_only() {
        let (wake, _woken) = bounded(1);
        let (open, _hung_up) = bounded(1);
        let link = Outbound {
            plane: Plane::Quorum,
            peer: None,
            remote: SocketAddr::from(([127, 0, 0, 1], 1)),
            queue: Arc::new(Mutex::new(Queue::All(VecDeque::new()))),
            wake,
            _open: open,
        };
        for _ in 0..QUEUE_MAX {
            assert!(link.send(Message::Packet(Packet::Ack(Zxid::ZERO))).is_ok());
        }
        assert!(link.send(Message::Packet(Packet::Ack(Zxid::ZERO))).is_err());
    }
}

//! The reading direction of a link.
//!
//! What comes in passes one bounded channel for all links; while it is full, the readers wait and TCP tells the senders.
//! Behind SNAP come bytes that are no packets: they go to the thread that restores them, until that says where they end.
//!
//! Java's names are `RecvWorker` and `recvQueue`. What this module does not do: it knows no rule of the protocol, only
//! where a message ends.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use async_channel::Receiver;
use bytes::BytesMut;
use futures_io::AsyncRead;
use futures_lite::future::{or, pending};
use futures_lite::io::AsyncReadExt;
use quorate_core::id::LinkId;
use quorate_core::input::{Cause, Event, Plane};
use quorate_core::message::{Message, Packet};
use quorate_core::wire::{self, DecodeError};

use crate::disk::{Intake, Received, SnapshotFault};
use crate::net::budget::{BUFFER_KEPT_MAX, Share};
use crate::net::events::{LoopEvent, Shared, cause_of, event};
use crate::net::progress::Progress;
use crate::net::tls_failures::{
    FailedLink, Refusal, Side, is_client_hello, refusal_of, tls_on_plain_port,
};
use crate::runtime::Runtime;
use crate::status::Counters;

/// The reading direction.
pub(super) struct Reader<'a, R> {
    pub(super) shared: &'a Shared,
    pub(super) runtime: &'a R,
    pub(super) link: LinkId,
    pub(super) plane: Plane,
    pub(super) remote: SocketAddr,
    pub(super) first_bytes_max: Option<usize>,
    /// None on a link that we dialled ourselves.
    pub(super) share: Option<Share<'a>>,
    /// Whether the other end is a learner that we have brought up.
    pub(super) known: &'a AtomicBool,
    /// Whether the other end has said anything.
    pub(super) heard: &'a AtomicBool,
    /// Whether there is TLS around it.
    pub(super) secure: bool,
    pub(super) intake: Receiver<Intake>,
}

impl<R: Runtime> Reader<'_, R> {
    /// Reads until the link ends.
    pub(super) async fn read(
        mut self,
        mut input: impl AsyncRead + Unpin,
        mut buf: BytesMut,
    ) -> Cause {
        let mut most = READ_BYTES;
        let mut heard = false;
        loop {
            if !heard && !buf.is_empty() {
                heard = true;
                self.heard.store(true, Ordering::Relaxed);
                if !self.secure && self.first_bytes_max.is_some() && is_client_hello(&buf) {
                    self.refused(&tls_on_plain_port());
                    return Cause::Garbled;
                }
            }
            buf = match self.pass_on(&mut input, buf).await {
                Ok(unfinished) => unfinished,
                Err(cause) => return cause,
            };
            if buf.is_empty() && buf.capacity() > BUFFER_KEPT_MAX {
                buf = BytesMut::new();
            }
            if !self.may_hold(buf.len()) {
                self.warn(&"too many bytes of messages that do not end", "link closed");
                return Cause::Garbled;
            }
            match read_some(&mut input, &mut buf, most).await {
                Ok(0) => return Cause::Closed,
                // More at a time while more is there.
                Ok(read) if read == most => most = (most * 2).min(READ_BYTES_MAX),
                Ok(read) if read < most / 4 => most = (most / 2).max(READ_BYTES),
                Ok(_) => {}
                Err(error) => {
                    if let Some(refusal) = refusal_of(&error) {
                        self.refused(&refusal);
                    }
                    return cause_of(&error);
                }
            }
        }
    }

    /// What the other end says, or does, is a matter of TLS.
    fn refused(&self, refusal: &Refusal) {
        let side = if self.share.is_none() { Side::Dial } else { Side::Accept };
        let (plane, remote) = (self.plane, self.remote);
        let failed = FailedLink { plane, side, remote, peer: None, refusal };
        self.shared.tls_failed(&failed, self.runtime.now());
    }

    /// Gives the loop every message that has come whole; returns the beginning of the next one.
    async fn pass_on(
        &mut self,
        input: &mut (impl AsyncRead + Unpin),
        mut buf: BytesMut,
    ) -> Result<BytesMut, Cause> {
        loop {
            let held = buf.len();
            match self.decode(&mut buf) {
                Ok(Some(message)) => {
                    self.first_bytes_max = None;
                    let snapshot = matches!(message, Message::Packet(Packet::Snap { .. }));
                    self.tell(message, held - buf.len()).await;
                    if snapshot {
                        let taken = self.take_snapshot(input, buf).await;
                        buf = taken
                            .map_err(|error| self.garbled(&error, "link closed: no snapshot"))?;
                    }
                }
                Ok(None) if self.first_bytes_max.is_some_and(|max| buf.len() > max) => {
                    self.warn(&"the first packet is too long", "link closed");
                    return Err(Cause::Garbled);
                }
                Ok(None) => return Ok(buf),
                Err(error) if error.is_fatal() => return Err(self.garbled(&error, "link closed")),
                Err(error) => {
                    Counters::add(&self.shared.counters.dropped_messages);
                    self.warn(&error, "message dropped");
                }
            }
        }
    }

    fn decode(&self, buf: &mut BytesMut) -> Result<Option<Message>, DecodeError> {
        match self.plane {
            Plane::Election => self.shared.codec.take_message(buf),
            Plane::Quorum => wire::take_packet(buf, self.shared.packet_bytes_max)
                .map(|packet| packet.map(Message::Packet)),
        }
    }

    /// Tells the loop of a message; waits while too much waits for it.
    async fn tell(&self, message: Message, length: usize) {
        let event = Event::Received { link: self.link, message };
        let told = if length > LONG_MESSAGE_BYTES {
            LoopEvent::Long { event, _permit: self.shared.permits.take().await }
        } else {
            LoopEvent::Event(event)
        };
        if self.shared.events.send(told).await.is_err() {
            // The server ends. The writer ends the link.
            pending::<()>().await;
        }
    }

    /// Whether so many bytes of a message that has not fully arrived may be kept.
    fn may_hold(&mut self, bytes: usize) -> bool {
        let free = match self.known.load(Ordering::Relaxed) {
            true => self.shared.packet_bytes_max.saturating_mul(2).saturating_add(READ_BYTES_MAX),
            false => UNFINISHED_FREE,
        };
        self.share.as_mut().is_none_or(|share| share.hold(bytes, free))
    }

    /// The link ends: what came cannot be read.
    fn garbled(&self, error: &dyn Display, consequence: &str) -> Cause {
        Counters::add(&self.shared.counters.garbled_links);
        self.warn(error, consequence);
        Cause::Garbled
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

    fn warn(&self, error: &dyn Display, consequence: &str) {
        let (event, from) = ("link.unreadable", Some(self.remote.ip()));
        if let Some(suppressed) = self.shared.warnings.permit(event, from, self.runtime.now()) {
            tracing::warn!(
                event = "link.unreadable",
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

/// From this length on, messages that wait for the loop are counted apart.
const LONG_MESSAGE_BYTES: usize = 16 * 1024;
/// How much is read at once, as long as little comes.
const READ_BYTES: usize = 4096;
/// How much is read at once when much comes.
const READ_BYTES_MAX: usize = 256 * 1024;
/// What each accepted link may hold of a message that has not fully arrived. A learner that was brought up may
/// hold the longest request, with its identities: so non-members that fill what is shared hold up no learner.
const UNFINISHED_FREE: usize = 16 * 1024;

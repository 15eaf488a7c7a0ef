//! The writing direction of a link: what is queued is encoded into one buffer, and written at once.
//!
//! Java's name is `SendWorker`.

use std::collections::VecDeque;
use std::io;
use std::sync::Mutex;

use async_channel::Receiver;
use bytes::{Buf, Bytes, BytesMut};
use futures_io::AsyncWrite;
use futures_lite::io::AsyncWriteExt;
use quorate_core::id::LinkId;
use quorate_core::input::{Cause, Event, Unreadable};
use quorate_core::wire;

use crate::disk::{Piece, Pieces};
use crate::lock::locked;
use crate::net::budget::BUFFER_KEPT_MAX;
use crate::net::events::{Shared, cause_of, event};
use crate::net::outbound::{Item, Queue, cost, is_short};
use crate::net::progress::Progress;
use crate::runtime::Runtime;

/// The writing direction.
pub(super) struct Writer<'a, R, W> {
    pub(super) shared: &'a Shared,
    pub(super) runtime: &'a R,
    pub(super) link: LinkId,
    pub(super) queue: &'a Mutex<Queue>,
    pub(super) progress: Progress,
    pub(super) output: &'a mut W,
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
    pub(super) async fn write(&mut self, woken: &Receiver<()>) -> Option<Cause> {
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
                // What a payload left behind it, in what is around the connection, goes out now.
                Then::Wait => return self.output.flush().await,
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
                    if let Queue::All(packets) = &*locked(self.queue) {
                        packets.goes(bytes.len());
                    }
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
        // No receiver is left: the server ends.
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
            while let Some(message) = mailbox.take_generation() {
                wire::encode_generation(&message, buf);
            }
            if let Some(probe) = mailbox.take_probe() {
                wire::encode_probe(&probe, buf);
            }
            Then::Wait
        }
        Queue::All(packets) => {
            packets.taken();
            buf.reserve(packets.bytes.min(WRITE_BYTES).saturating_sub(buf.len()));
            loop {
                if packets.items.front().is_some_and(|item| !fits(item, buf.len())) {
                    return Then::GoOn;
                }
                match packets.items.pop_front() {
                    Some(Item::Packet(packet)) => {
                        packets.bytes -= cost(&packet);
                        packets.begins(&packet);
                        let before = buf.len();
                        if is_short(&packet) {
                            wire::encode_packet(&packet, buf);
                        } else if let Some((place, payload)) =
                            wire::encode_around_payload(&packet, buf)
                        {
                            packets.goes(buf.len() - before + payload.len());
                            return Then::Payload(place, payload);
                        }
                        packets.goes(buf.len() - before);
                    }
                    Some(Item::NotifyDrained) => return Then::Drained,
                    Some(Item::Stream(pieces)) => {
                        packets.streams();
                        return Then::Stream(pieces);
                    }
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
        Item::Packet(_) | Item::NotifyDrained | Item::Stream(_) => true,
    }
}

/// How much is gathered for one write, unless a single message is longer.
const WRITE_BYTES: usize = 64 * 1024;
/// A queue that has grown beyond this is given back once it is empty.
const QUEUE_KEPT_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use async_channel::bounded;
    use quorate_core::id::ServerId;
    use quorate_core::input::Plane;
    use quorate_core::message::{Message, Packet};
    use quorate_core::report::How;
    use quorate_core::txn::{Txn, TxnHeader};
    use quorate_core::zxid::Zxid;

    use super::*;
    use crate::measures::Measures;
    use crate::net::outbound::{Outbound, PAYLOAD_COPIED_MAX, Packets, QUEUE_BYTES_MAX};

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
            ended: false,
            wake,
            bytes_max: QUEUE_BYTES_MAX,
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
    fn what_a_learner_is_sent_until_it_serves_is_counted_by_how_it_is_brought_up() {
        let (mut link, _woken) = outbound();
        let measured = Measures::default().of_link(ServerId(2));
        let counted = || measured.synced.counted().collect::<Vec<_>>();
        link.measure(measured.clone());
        let mut send = |packet| {
            link.send(Message::Packet(packet)).unwrap();
            drain(&link).0.len() as u64
        };
        send(Packet::Ack(Zxid(1)));
        assert_eq!(counted(), []);
        let diff = send(Packet::Diff(Zxid(1)))
            + send(Packet::Proposal(txn(100)))
            + send(Packet::Proposal(txn(PAYLOAD_COPIED_MAX)));
        assert_eq!(counted(), [(How::Diff, diff)]);
        send(Packet::UpToDate);
        send(Packet::Proposal(txn(100)));
        assert_eq!(counted(), [(How::Diff, diff)], "it serves");
        let trunc = send(Packet::Trunc(Zxid(1))) + send(Packet::Proposal(txn(7)));
        assert_eq!(counted(), [(How::Diff, diff), (How::Trunc, trunc)]);
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
            assert!(!link.notify_drained());
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
}

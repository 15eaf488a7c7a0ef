//! One connection, one task: a reader and a writer that end together.
//!
//! ```text
//!            loop ── Outbound::send ──► queue ── encode all ──► one write ──► Drained, Streamed
//!            loop ◄── bounded channel ◄── decode ◄── one buffer ◄── read ──► a snapshot's thread
//! ```

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_channel::bounded;
use bytes::BytesMut;
use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::future::or;
use futures_lite::io::split;
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::input::{Event, LinkUp, Plane};
use quorate_core::links::Mailbox;

use crate::net::address_limit::AddressShare;
use crate::net::budget::Share;
use crate::net::events::{LoopEvent, Shared};
use crate::net::outbound::{Outbound, Packets, QUEUE_BYTES_MAX, Queue};
use crate::net::progress::Progress;
use crate::net::reader::Reader;
use crate::net::wire::Wire;
use crate::net::writer::Writer;
use crate::runtime::Runtime;
use crate::task_group::{TaskGroup, closed};

/// A connection that is about to become a link.
#[derive(Debug)]
pub(crate) struct Opened<S> {
    pub(crate) stream: S,
    pub(crate) plane: Plane,
    pub(crate) dialled: bool,
    pub(crate) remote: SocketAddr,
    pub(crate) peer: Option<ServerId>,
    pub(crate) advertised: Option<HostPort>,
    /// What has been read already, behind the introduction.
    pub(crate) received: BytesMut,
    /// Its place among those of its address; none if we dialled.
    pub(crate) share: Option<AddressShare>,
}

/// Makes a connection a link, in a task of its own.
pub(crate) fn open<R: Runtime>(
    tasks: &TaskGroup<R>,
    shared: &Arc<Shared>,
    opened: Opened<Wire<R::Stream>>,
) {
    let (runtime, shared) = (tasks.runtime.clone(), Arc::clone(shared));
    let ends = runtime.ends(opened.stream.inner());
    tasks.spawn(async move { run(runtime, &shared, opened, ends).await });
}

async fn run<R: Runtime, S: AsyncRead + AsyncWrite + Unpin>(
    runtime: R,
    shared: &Shared,
    opened: Opened<Wire<S>>,
    ends: Option<(SocketAddr, SocketAddr)>,
) {
    let Opened { stream, plane, dialled, remote, peer, advertised, received, share: _share } =
        opened;
    let secure = stream.is_secure();
    let _counted = shared.open_links.enter(plane, secure);
    let link = shared.next_link();
    #[cfg(feature = "tls")]
    let secure_link = stream.secure_link((plane, dialled, remote), peer);
    #[cfg(feature = "tls")]
    let _is_up = secure_link.map(|up| shared.secure_links.enter(link, up, runtime.now()));
    let queue = Arc::new(Mutex::new(match plane {
        Plane::Election => Queue::Newest(Mailbox::default()),
        Plane::Quorum => Queue::All(Packets::default()),
    }));
    let (wake, woken) = bounded(1);
    let (open, hung_up) = bounded(1);
    let (intakes, intake) = bounded(1);
    let known = Arc::new(AtomicBool::new(false));
    let heard = AtomicBool::new(false);
    let outbound = Outbound {
        plane,
        peer,
        remote,
        queue: Arc::clone(&queue),
        queued: false,
        ended: false,
        wake,
        bytes_max: QUEUE_BYTES_MAX.max(shared.packet_bytes_max.saturating_mul(4)),
        intakes,
        known: Arc::clone(&known),
        _open: open,
    };
    let up = LinkUp { link, plane, dialled, peer, advertised, remote: Some(remote.ip()) };
    if shared.events.send(LoopEvent::Up(up, outbound)).await.is_err() {
        return;
    }

    let (input, mut output) = split(stream);
    let resent = shared.retransmits.enter(link, peer, ends);
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
        heard: &heard,
        secure,
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
    // A larger id on the election port is only asked to dial: it ends that link without a word.
    let asked = plane == Plane::Election && peer.is_some_and(|peer| peer > shared.id);
    if let (true, Some(peer)) = (secure && dialled && !asked, peer) {
        if heard.load(Ordering::Relaxed) {
            shared.held_back.heard(plane, peer);
        } else if ended.is_some() {
            shared.held_back.ended_unheard(plane, peer, runtime.now());
        }
    }
    if let Some(cause) = ended {
        drop(shared.events.send(LoopEvent::Event(Event::LinkDown { link, cause })).await);
        // The peer at the other end may be free of a promise when it sees us close: the link stays open until the
        // core does without that promise.
        closed(&hung_up).await;
    }
    // The system knows it as long as it is open.
    drop(resent);
    drop(output);
}

/// The longest first packet of a learner; the real ones take 40 bytes.
pub(super) const FIRST_PACKET_BYTES_MAX: usize = 4096;
/// How long a link that was hung up may take to write what it has.
const FLUSH_TIME: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::future::Future;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use async_channel::Sender;
    use futures_lite::future::{block_on, poll_once};
    use quorate_core::id::LinkId;
    use quorate_core::input::Cause;
    use quorate_core::message::{Message, Packet};
    use quorate_core::wire;
    use quorate_core::zxid::Zxid;

    use super::*;
    use crate::disk;
    use crate::net::codec::ElectionCodec;

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

        fn local_addr(&self, (): &()) -> io::Result<SocketAddr> {
            unreachable!("nothing listens")
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
            let shared =
                Shared::new(ServerId(1), sender, Duration::from_secs(1), ElectionCodec::Fast);
            let (open, alive) = bounded(1);
            let incoming = Trickle { bytes: bytes.into(), piece: 64, ends: true };
            let opened = Opened {
                stream: Wire::Plain(Told { incoming, _open: open }),
                plane: Plane::Quorum,
                dialled: false,
                remote: SocketAddr::from(([127, 0, 0, 1], 1)),
                peer: None,
                advertised: None,
                received: BytesMut::new(),
                share: None,
            };
            let mut life = Box::pin(run(Alone, &shared, opened, None));
            assert!(block_on(poll_once(&mut life)).is_none());
            let Ok(LoopEvent::Up(up, outbound)) = events.try_recv() else { panic!("not up") };
            let Ok(LoopEvent::Event(ended)) = events.try_recv() else { panic!("not down") };
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
        let (disk, _dir) = disk::tests::disk();
        let (sender, events) = bounded(64);
        // Only one that does not end is waited for in vain.
        let patience = if ends { Duration::from_secs(60) } else { Duration::from_millis(50) };
        let shared = Shared::new(ServerId(1), sender, patience, ElectionCodec::Fast);
        let (link, known) = (LinkId(1), AtomicBool::new(false));
        let (taken, restored) = disk::tests::reception(Zxid(9), &disk);
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
            heard: &AtomicBool::new(false),
            secure: false,
            intake,
        };
        let input = Trickle { bytes: bytes.into(), piece, ends };
        let ended =
            block_on(or(async { Some(reader.read(input, BytesMut::new()).await) }, async {
                // Long after everything has come.
                Alone.sleep(Duration::from_secs(90)).await;
                None
            }));
        let heard = std::iter::from_fn(|| events.try_recv().ok()).filter_map(|event| match event {
            LoopEvent::Event(Event::Progress(_)) => None,
            LoopEvent::Event(event) | LoopEvent::Long { event, .. } => Some(event),
            LoopEvent::Up(..) | LoopEvent::Noted(_) | LoopEvent::Wake | LoopEvent::Ports(_) => {
                panic!("{event:?}")
            }
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

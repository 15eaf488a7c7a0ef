//! One connection of a client, one task: a reader and a writer that end together.
//!
//! ```text
//!       loop ── ClientOutbound::send ──► queue ── gather ──► write ──► how much is written
//!       loop ◄── bounded channel ◄── some frames ◄── Framing::take ◄── what has come ◄── read
//! ```
//!
//! A connection that waits for its client holds a socket and little else: what is read is kept only as long as it is no
//! whole frame, and takes as much memory as has come.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::future::{or, pending, poll_fn};
use quorate_application::clients::{ClientId, Event, Frame, Framing, Transport};

use crate::lock::locked;
use crate::net::address_limit::AddressShare;
use crate::net::client_events::{ClientNews, SharedByClients};
use crate::net::client_handshakes::Among;
use crate::net::client_outbound::{Batch, ClientOutbound, Line, Wrote};
use crate::net::client_tls::{Heard, SecureDoor};
use crate::net::tls_failures::{is_client_hello, tls_from_client_on_plain_port};
use crate::net::wire::Wire;
use crate::runtime::Runtime;
use crate::task_group::closed;
use crate::turns::{Held, Turn};

/// A connection that was admitted.
pub(super) struct Admitted<S, F> {
    pub(super) stream: S,
    pub(super) remote: SocketAddr,
    pub(super) framing: F,
    /// Its place among those of its address.
    pub(super) share: AddressShare,
    /// What it has to go through first, if not only its own words.
    pub(super) door: Option<SecureDoor>,
}

/// How a connection ends.
enum End {
    /// The client, the network, or what the client sends.
    Lost,
    /// All is written, and the loop wants no more.
    Written,
    /// Something is not written, and is not to be.
    GivenUp,
}

/// Serves a connection until it ends.
pub(super) async fn run<R: Runtime, F: Framing>(
    runtime: R,
    shared: Arc<SharedByClients>,
    admitted: Admitted<R::Stream, F>,
) {
    let Admitted { stream, remote, framing, share: _share, door } = admitted;
    let _counted = Among::new(&shared.server.counters.clients);
    let (mut patience, begun) = (shared.first_frame_timeout, runtime.now());
    let Heard { wire, received, over } = match door {
        None => {
            let (wire, received) = (Wire::Plain(stream), BytesMut::new());
            Heard { wire, received, over: Transport::Plain }
        }
        Some(door) => {
            let heard =
                Box::pin(door.hear(&runtime, &shared.server, (stream, remote), patience)).await;
            let Some(heard) = heard else { return };
            patience = patience.saturating_sub(runtime.now() - begun);
            heard
        }
    };
    let handshakes = &shared.server.client_handshakes;
    let _secure = wire.is_secure().then(|| {
        handshakes.made.fetch_add(1, Ordering::Relaxed);
        Among::new(&handshakes.open)
    });
    let client = shared.next_client();
    let line = Arc::new(Line::default());
    let outbound = ClientOutbound::new(&line);
    let up = ClientNews::Up(Event::Connected { client, remote, over }, client, outbound);
    if shared.arrivals.send(up).await.is_err() {
        return;
    }

    let stream = Mutex::new(wire);
    let side = Side { runtime: &runtime, shared: &shared, client, stream: &stream, line: &line };
    let plain = (!locked(&stream).is_secure()).then_some(remote);
    let reader = Reader { side, framing, buf: received, turn: None, begun: false, plain, patience };
    let mut writer = Writer { side, batch: Bytes::new(), much: false, unflushed: false };
    let end = match open(&line, reader.read(), &mut writer).await {
        Some(end) => end,
        // What is still to be written is not the client's to cut short by saying that nothing follows.
        None => {
            or(writer.finish(), async {
                runtime.sleep(FLUSH_TIME).await;
                End::GivenUp
            })
            .await
        }
    };
    match end {
        End::Lost => {
            drop(stream);
            let lost = ClientNews::Event(Event::Disconnected(client), client, Held::default());
            // No receiver is left: the server ends.
            drop(shared.events.send(lost).await);
        }
        End::Written => or(side.finish(), runtime.sleep(FAREWELL_TIME)).await,
        End::GivenUp => {
            if let Ok(stream) = stream.into_inner() {
                runtime.reset(stream.into_inner());
            }
        }
    }
}

/// Reads and writes until the loop has let go of the connection, or it ends in another way: as told.
async fn open<R: Runtime>(
    line: &Line,
    reading: impl Future<Output = ()>,
    writer: &mut Writer<'_, R>,
) -> Option<End> {
    let mut reading = pin!(reading);
    poll_fn(|context| {
        // Before it looks at anything: what changes afterwards wakes it again.
        line.listen(context.waker());
        if line.is_let_go() {
            return Poll::Ready(line.is_reset().then_some(End::GivenUp));
        }
        if let Poll::Ready(Err(_)) = writer.poll_write(context) {
            return Poll::Ready(Some(End::Lost));
        }
        reading.as_mut().poll(context).map(|()| Some(End::Lost))
    })
    .await
}

/// What both directions need.
struct Side<'a, R: Runtime> {
    runtime: &'a R,
    shared: &'a SharedByClients,
    client: ClientId,
    /// Lent for a moment at a time: both directions are in one task.
    stream: &'a Mutex<Wire<R::Stream>>,
    line: &'a Line,
}

impl<R: Runtime> Clone for Side<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Runtime> Copy for Side<'_, R> {}

impl<R: Runtime> Side<'_, R> {
    /// Reads once, and puts what has come behind `buf`. While nothing comes, no memory waits for it.
    async fn read_some(&self, buf: &mut BytesMut) -> io::Result<usize> {
        poll_fn(|context| {
            PIECE.with_borrow_mut(|piece| {
                let read = self.poll(context, |stream, context| stream.poll_read(context, piece));
                read.map_ok(|read| {
                    buf.extend_from_slice(piece.get(..read).unwrap_or_default());
                    read
                })
            })
        })
        .await
    }

    fn poll<T>(
        &self,
        context: &mut Context<'_>,
        act: impl FnOnce(Pin<&mut Wire<R::Stream>>, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        act(Pin::new(&mut *locked(self.stream)), context)
    }

    /// Says that nothing follows, and waits until the client has gone too: a socket that is closed with something unread
    /// in it is reset, and the client may lose what was written last.
    async fn finish(self) {
        let said = poll_fn(|context| self.poll(context, |stream, cx| stream.poll_close(cx))).await;
        let mut unwanted = BytesMut::new();
        while said.is_ok() && matches!(self.read_some(&mut unwanted).await, Ok(1..)) {
            unwanted.clear();
        }
    }
}

/// The reading direction.
struct Reader<'a, R: Runtime, F> {
    side: Side<'a, R>,
    framing: F,
    /// What has come and is not taken.
    buf: BytesMut,
    /// The right to keep a long frame.
    turn: Option<Turn>,
    /// The loop knows that the first frame has begun, or has come.
    begun: bool,
    /// Where it comes from, if without TLS.
    plain: Option<SocketAddr>,
    /// How long its first whole frame may take.
    patience: Duration,
}

/// What is told to the loop at a time.
struct Frames {
    frames: Vec<Frame>,
    bytes: usize,
}

impl<R: Runtime, F: Framing> Reader<'_, R, F> {
    /// Reads until nothing more can come.
    async fn read(mut self) {
        let (runtime, patience) = (self.side.runtime, self.patience);
        let late = async {
            runtime.sleep(patience).await;
            None
        };
        let mut came = or(self.next(), late).await;
        while let Some(frames) = came {
            let last = matches!(frames.frames.last(), Some(Frame::Word(_) | Frame::Garbled));
            self.tell(frames).await;
            if last {
                // Nothing else is heard from it; the service answers, and closes it.
                return runtime.sleep(LAST_FRAME_TIME).await;
            }
            came = self.next().await;
        }
    }

    /// Waits for some frames; none if there will be no more.
    async fn next(&mut self) -> Option<Frames> {
        loop {
            let line = self.side.line;
            poll_fn(|_| if line.is_paused() { Poll::Pending } else { Poll::Ready(()) }).await;
            self.look_for_tls();
            let taken = take(&mut self.framing, &mut self.buf);
            if self.buf.is_empty() {
                // Frames may hold on to what they were cut from.
                self.buf = BytesMut::new();
            }
            if !taken.frames.is_empty() {
                self.begun = true;
                return Some(taken);
            }
            if !self.begun && self.framing.announced(&self.buf).is_some() {
                self.begun = true;
                self.tell_event(Event::Begun(self.side.client)).await;
            }
            self.wait_for_turn().await;
            if !matches!(self.side.read_some(&mut self.buf).await, Ok(1..)) {
                return None;
            }
        }
    }

    /// What begins like TLS is no frame: that is told, once.
    fn look_for_tls(&mut self) {
        let first = !self.begun && is_client_hello(&self.buf);
        if let Some(remote) = self.plain.take_if(|_| first) {
            let Side { shared, runtime, .. } = self.side;
            let refusal = tls_from_client_on_plain_port();
            shared.server.client_refused(remote, &refusal, runtime.now());
        }
    }

    /// Waits until a long frame may be read on.
    async fn wait_for_turn(&mut self) {
        if self.turn.is_some() {
            return;
        }
        let announced = self.framing.announced(&self.buf);
        let Some(bytes) = announced.filter(|bytes| *bytes > UNFINISHED_FREE) else { return };
        let Side { shared, client, .. } = self.side;
        let longest = bytes > shared.frame_bytes_max + LENGTH_BYTES;
        let turns = if longest { &shared.longest } else { &shared.unfinished };
        let (turn, come) = turns.queue_up(bytes);
        if let Some(come) = come {
            // It is we who let it wait: it has been heard now, and again when its turn has come.
            self.tell_event(Event::Heard(client)).await;
            closed(&come).await;
            self.tell_event(Event::Heard(client)).await;
        }
        self.turn = Some(turn);
    }

    async fn tell_event(&self, event: Event) {
        let Side { shared, client, .. } = self.side;
        // No receiver is left: the server ends.
        drop(shared.events.send(ClientNews::Event(event, client, Held::default())).await);
    }

    /// Tells the loop; waits while too much waits for it.
    async fn tell(&mut self, Frames { frames, bytes }: Frames) {
        let Side { shared, client, .. } = self.side;
        if let [Frame::Word(word)] = frames[..] {
            // No receiver is left: the server ends.
            return drop(shared.arrivals.send(ClientNews::Word(client, word)).await);
        }
        let permit = if bytes > LONG_EVENT_BYTES { Some(shared.long.take().await) } else { None };
        let held = Held::new(permit, self.turn.take());
        let event = ClientNews::Event(Event::Received { client, frames }, client, held);
        if shared.events.send(event).await.is_err() {
            // The server ends, and this connection with it.
            pending::<()>().await;
        }
    }
}

/// Takes what has come whole, up to a bound.
fn take(framing: &mut impl Framing, buf: &mut BytesMut) -> Frames {
    let mut taken = Frames { frames: Vec::new(), bytes: 0 };
    while taken.frames.len() < FRAMES_MAX && taken.bytes < FRAMES_BYTES_MAX {
        let Some(frame) = framing.take(buf) else { break };
        let last = match &frame {
            Frame::Whole(body) => {
                taken.bytes += body.len();
                false
            }
            Frame::Word(_) | Frame::Garbled => true,
        };
        taken.frames.push(frame);
        if last {
            break;
        }
    }
    taken
}

/// The writing direction.
struct Writer<'a, R: Runtime> {
    side: Side<'a, R>,
    /// What is being written.
    batch: Bytes,
    /// More than a little waited with it.
    much: bool,
    unflushed: bool,
}

impl<R: Runtime> Writer<'_, R> {
    /// Writes what is queued; ready when nothing is left.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while !self.batch.is_empty() {
                let rest = &self.batch[..];
                let written = self.side.poll(context, |stream, cx| stream.poll_write(cx, rest));
                let written = ready!(written)?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.batch.advance(written);
                self.unflushed = true;
                self.report(written, self.much);
            }
            let Some(Batch { bytes, much }) = self.side.line.gather() else { break };
            (self.batch, self.much) = (bytes, much);
        }
        if self.unflushed {
            ready!(self.side.poll(context, |stream, cx| stream.poll_flush(cx)))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes all that is left.
    async fn finish(&mut self) -> End {
        let written = poll_fn(|context| self.poll_write(context)).await;
        written.map_or(End::Lost, |()| End::Written)
    }

    /// Lets the loop know what was written: at once where much waits, and a reply may be held back for it.
    fn report(&self, bytes: usize, much: bool) {
        let written = &self.side.shared.written;
        let Wrote { first, is_much } = self.side.line.wrote(bytes);
        if first {
            written.put_quietly(self.side.client);
        }
        if much || is_much {
            written.knock();
        }
    }
}

/// How long a connection stays open from which nothing else is heard.
const LAST_FRAME_TIME: Duration = Duration::from_secs(10);
/// How long a connection may take to write what it has when it is to be closed.
const FLUSH_TIME: Duration = Duration::from_secs(5);
/// How long the client may take to close its end then.
const FAREWELL_TIME: Duration = Duration::from_secs(1);
thread_local! {
    /// Where reads put what has come, of all connections of this thread.
    static PIECE: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// How much is read at once.
const READ_BYTES: usize = 64 << 10;
/// How many frames are told to the loop at once.
const FRAMES_MAX: usize = 128;
/// After how many bytes of frames no more are told at once.
const FRAMES_BYTES_MAX: usize = 64 << 10;
/// From here on, what waits for the loop or the service is counted apart.
const LONG_EVENT_BYTES: usize = 16 << 10;
/// A frame up to this length needs no turn.
const UNFINISHED_FREE: usize = 16 << 10;
/// What stands before a frame.
const LENGTH_BYTES: usize = 4;

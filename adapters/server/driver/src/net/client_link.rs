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
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::future::{or, pending, poll_fn};
use quorate_application::clients::{ClientId, Event, Frame, Framing};

use crate::lock::locked;
use crate::net::address_limit::AddressShare;
use crate::net::client_events::{ClientNews, SharedByClients};
use crate::net::client_outbound::{Batch, ClientOutbound, Line, Wrote};
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
    let Admitted { stream, remote, framing, share: _share } = admitted;
    let _counted = Counted::new(&shared.server.counters.clients);
    let client = shared.next_client();
    let line = Arc::new(Line::default());
    let outbound = ClientOutbound::new(&line);
    let up = ClientNews::Up(Event::Connected { client, remote }, client, outbound);
    if shared.arrivals.send(up).await.is_err() {
        return;
    }

    let stream = Mutex::new(stream);
    let side = Side { runtime: &runtime, shared: &shared, client, stream: &stream, line: &line };
    let reader = Reader { side, framing, buf: BytesMut::new(), turn: None };
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
                runtime.reset(stream);
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
    stream: &'a Mutex<R::Stream>,
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
        act: impl FnOnce(Pin<&mut R::Stream>, &mut Context<'_>) -> Poll<T>,
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
}

/// What is told to the loop at a time.
struct Frames {
    frames: Vec<Frame>,
    bytes: usize,
}

impl<R: Runtime, F: Framing> Reader<'_, R, F> {
    /// Reads until nothing more can come.
    async fn read(mut self) {
        let runtime = self.side.runtime;
        let late = async {
            runtime.sleep(self.side.shared.first_frame_timeout).await;
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
            let taken = take(&mut self.framing, &mut self.buf);
            if self.buf.is_empty() {
                // Frames may hold on to what they were cut from.
                self.buf = BytesMut::new();
            }
            if !taken.frames.is_empty() {
                return Some(taken);
            }
            self.wait_for_turn().await;
            if !matches!(self.side.read_some(&mut self.buf).await, Ok(1..)) {
                return None;
            }
        }
    }

    /// Waits until a long frame may be read on.
    async fn wait_for_turn(&mut self) {
        if self.turn.is_some() {
            return;
        }
        let announced = self.framing.announced(&self.buf);
        let Some(bytes) = announced.filter(|bytes| *bytes > UNFINISHED_FREE) else { return };
        let Side { shared, .. } = self.side;
        let longest = bytes > shared.frame_bytes_max + LENGTH_BYTES;
        let turns = if longest { &shared.longest } else { &shared.unfinished };
        let (turn, come) = turns.queue_up(bytes);
        if let Some(come) = come {
            // It is we who let it wait: it has been heard now, and again when its turn has come.
            self.tell_heard().await;
            closed(&come).await;
            self.tell_heard().await;
        }
        self.turn = Some(turn);
    }

    async fn tell_heard(&self) {
        let Side { shared, client, .. } = self.side;
        let heard = ClientNews::Event(Event::Heard(client), client, Held::default());
        // No receiver is left: the server ends.
        drop(shared.events.send(heard).await);
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

/// One of the connections that there are.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(clients: &'a AtomicUsize) -> Self {
        clients.fetch_add(1, Ordering::Relaxed);
        Self(clients)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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

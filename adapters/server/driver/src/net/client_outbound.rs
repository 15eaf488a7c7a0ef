//! What waits to be written to a client, and the loop's end of its connection.
//!
//! The service knows how much waits (it is told what was written), and holds replies back; what is bounded here is the
//! last defence.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use bytes::{Bytes, BytesMut};

use crate::lock::locked;
use crate::net::outbound::Full;

/// The loop's end of a client's connection. Dropping it lets the connection write what it has, for some seconds at most,
/// and close.
#[derive(Debug)]
pub(crate) struct ClientOutbound {
    line: Arc<Line>,
    /// Something was queued since the connection was woken last.
    queued: bool,
}

/// What the loop and the task of a connection share. The task looks at all of it whenever it is woken.
#[derive(Debug, Default)]
pub(super) struct Line {
    queue: Mutex<Queue>,
    paused: AtomicBool,
    /// The loop wants no more than that what is queued be written …
    let_go: AtomicBool,
    /// … and not even that.
    reset: AtomicBool,
    /// How many bytes are written of which the service has not been told.
    written: AtomicUsize,
}

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<Bytes>,
    bytes: usize,
    /// Wakes the task.
    task: Option<Waker>,
}

/// Something was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wrote {
    /// The loop does not know that there is something that it was not told.
    pub(super) first: bool,
    /// It is so much now that the loop is not to wait.
    pub(super) is_much: bool,
}

/// What is written next.
pub(super) struct Batch {
    pub(super) bytes: Bytes,
    /// More than a little waited with it.
    pub(super) much: bool,
}

impl ClientOutbound {
    /// Of a connection that begins.
    pub(super) fn new(line: &Arc<Line>) -> Self {
        Self { line: Arc::clone(line), queued: false }
    }

    /// Queues bytes; never waits. Nothing is written before [`ClientOutbound::wake`]. Returns whether these are the
    /// first since then.
    pub(crate) fn send(&mut self, bytes: Bytes) -> Result<bool, Full> {
        let mut queue = locked(&self.line.queue);
        if queue.bytes >= QUEUE_BYTES_MAX {
            return Err(Full);
        }
        queue.bytes += bytes.len();
        queue.items.push_back(bytes);
        drop(queue);
        Ok(!std::mem::replace(&mut self.queued, true))
    }

    /// Lets the connection write what is queued.
    pub(crate) fn wake(&mut self) {
        self.queued = false;
        self.line.wake();
    }

    /// Lets nothing more be read; what was read and not taken stays where it is.
    pub(crate) fn pause(&self) {
        self.line.paused.store(true, Ordering::Relaxed);
    }

    /// Lets the connection be read again.
    pub(crate) fn resume(&self) {
        self.line.paused.store(false, Ordering::Relaxed);
        self.line.wake();
    }

    /// Ends the connection at once.
    pub(crate) fn reset(self) {
        self.line.reset.store(true, Ordering::Relaxed);
        drop(self);
    }

    /// How many bytes were written since this was asked last.
    pub(crate) fn take_written(&self) -> usize {
        self.line.written.swap(0, Ordering::Relaxed)
    }
}

impl Drop for ClientOutbound {
    fn drop(&mut self) {
        // What was stored before is seen by who sees this.
        self.line.let_go.store(true, Ordering::Release);
        self.line.wake();
    }
}

impl Line {
    /// Lets the task be woken from now on. It looks at what is here after this.
    pub(super) fn listen(&self, task: &Waker) {
        let mut queue = locked(&self.queue);
        if !queue.task.as_ref().is_some_and(|before| before.will_wake(task)) {
            queue.task = Some(task.clone());
        }
    }

    fn wake(&self) {
        let task = locked(&self.queue).task.clone();
        if let Some(task) = task {
            task.wake();
        }
    }

    pub(super) fn is_let_go(&self) -> bool {
        self.let_go.load(Ordering::Acquire)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    pub(super) fn is_reset(&self) -> bool {
        self.reset.load(Ordering::Relaxed)
    }

    /// Takes note of what was written; returns what the loop has to be told.
    pub(super) fn wrote(&self, bytes: usize) -> Wrote {
        let untold = self.written.fetch_add(bytes, Ordering::Relaxed);
        let is_much = untold < UNTOLD_MAX && untold + bytes >= UNTOLD_MAX;
        Wrote { first: untold == 0, is_much }
    }

    /// Takes what is to be written next: what is short together, what is long by itself.
    pub(super) fn gather(&self) -> Option<Batch> {
        let mut queue = locked(&self.queue);
        let much = queue.bytes > WRITE_BYTES;
        let first = queue.items.pop_front()?;
        queue.bytes = queue.bytes.saturating_sub(first.len());
        let room = WRITE_BYTES.saturating_sub(first.len());
        let fits = |next: Option<&Bytes>, room| next.is_some_and(|next| next.len() <= room);
        if !fits(queue.items.front(), room) {
            if queue.items.is_empty() && queue.items.capacity() > QUEUE_KEPT_MAX {
                queue.items = VecDeque::new();
            }
            return Some(Batch { bytes: first, much });
        }
        let mut gathered = BytesMut::with_capacity((first.len() + queue.bytes).min(WRITE_BYTES));
        gathered.extend_from_slice(&first);
        while fits(queue.items.front(), WRITE_BYTES.saturating_sub(gathered.len())) {
            let Some(next) = queue.items.pop_front() else { break };
            queue.bytes = queue.bytes.saturating_sub(next.len());
            gathered.extend_from_slice(&next);
        }
        Some(Batch { bytes: gathered.freeze(), much })
    }
}

/// How many bytes may wait for a client that does not read: one reply may be very long, and the service holds back what
/// comes behind it.
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// How much is gathered for one write, unless one item is longer; what waits beyond it is more than a little.
const WRITE_BYTES: usize = 64 << 10;
/// So much is written before the service hears of it, if nothing else waits: little beside what it lets wait.
const UNTOLD_MAX: usize = 256 << 10;
/// A queue that has grown beyond this is given back once it is empty.
const QUEUE_KEPT_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn outbound() -> ClientOutbound {
        ClientOutbound::new(&Arc::default())
    }

    #[test]
    fn what_is_short_is_gathered_and_what_is_long_goes_by_itself_in_order() {
        let mut client = outbound();
        let mut expected = Vec::new();
        for (nth, length) in [1, 2, 70_000, 3, 65_000, 600, 0, 4].into_iter().enumerate() {
            let bytes = vec![u8::try_from(nth).unwrap(); length];
            expected.extend_from_slice(&bytes);
            assert_eq!(client.send(bytes.into()).ok(), Some(nth == 0), "one wake is enough");
        }
        let batches: Vec<_> = std::iter::from_fn(|| client.line.gather()).collect();
        let lengths: Vec<_> = batches.iter().map(|batch| batch.bytes.len()).collect();
        assert_eq!(lengths, [3, 70_000, 65_003, 604]);
        assert_eq!(batches.iter().map(|b| b.much).collect::<Vec<_>>(), [true, true, true, false]);
        let written: Vec<_> = batches.iter().flat_map(|batch| batch.bytes.to_vec()).collect();
        assert!(written == expected);
        assert_eq!(locked(&client.line.queue).bytes, 0);
    }

    #[test]
    fn what_waits_has_a_bound_and_one_reply_may_exceed_it() {
        let mut client = outbound();
        let long = Bytes::from(vec![0; QUEUE_BYTES_MAX - 1]);
        assert!(client.send(long.clone()).is_ok() && client.send(long.clone()).is_ok());
        assert!(client.send(Bytes::from_static(b"x")).is_err());
        assert!(client.line.gather().is_some_and(|batch| batch.bytes.len() == long.len()));
        assert!(client.send(Bytes::from_static(b"x")).is_ok());
    }

    #[test]
    fn what_was_written_is_told_once() {
        let client = outbound();
        let told = |first, is_much| Wrote { first, is_much };
        assert_eq!([3, 4].map(|n| client.line.wrote(n)), [told(true, false), told(false, false)]);
        assert_eq!((client.take_written(), client.take_written()), (7, 0));
        assert_eq!(client.line.wrote(1), told(true, false));
        let more = [UNTOLD_MAX - 2, 1, 1].map(|bytes| client.line.wrote(bytes));
        assert_eq!(more, [told(false, false), told(false, true), told(false, false)]);
        client.take_written();
        assert_eq!(client.line.wrote(UNTOLD_MAX), told(true, true));
    }
}

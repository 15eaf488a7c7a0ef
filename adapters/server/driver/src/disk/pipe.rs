//! Bytes from a link to the thread that restores a snapshot, at most 1 MiB under way.
//!
//! The link never waits here, the thread does; memory goes to and fro and is used again.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use async_channel::{Receiver, Sender, bounded};

use crate::lock::locked;

/// Memory in which bytes come in, used again and again.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(super) memory: Box<[u8]>,
    /// What is in it and was not read.
    pub(super) unread: Range<usize>,
}

impl Chunk {
    /// Of no use but to hold these bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { memory: bytes.into(), unread: 0..bytes.len() }
    }

    /// Where bytes may be put; whatever is there is of no interest.
    pub(crate) fn memory(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    pub(super) fn unread(&self) -> &[u8] {
        &self.memory[self.unread.clone()]
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> usize {
        let read = buffer.len().min(self.unread.len());
        let end = self.unread.start + read;
        buffer[..read].copy_from_slice(&self.memory[self.unread.start..end]);
        self.unread.start = end;
        read
    }
}

/// Bytes from a link to a thread: the link never waits, the thread does.
#[derive(Debug)]
pub(crate) struct Pipe {
    state: Mutex<PipeState>,
    readable: Condvar,
    /// There is room again.
    room: Sender<()>,
}

#[derive(Debug)]
struct PipeState {
    filled: VecDeque<Chunk>,
    spare: Vec<Chunk>,
    /// How many chunks there are not yet.
    unmade: usize,
    closed: bool,
}

impl Pipe {
    pub(super) fn new() -> (Arc<Self>, Receiver<()>) {
        let (room, roomy) = bounded(1);
        let (filled, spare) = (VecDeque::new(), Vec::new());
        let state = PipeState { filled, spare, unmade: CHUNKS_MAX, closed: false };
        let (state, readable) = (Mutex::new(state), Condvar::new());
        (Arc::new(Self { state, readable, room }), roomy)
    }

    /// Memory to be filled, if there is some.
    pub(super) fn spare(&self) -> Option<Chunk> {
        let mut state = locked(&self.state);
        if let Some(chunk) = state.spare.pop() {
            return Some(chunk);
        }
        state.unmade = state.unmade.checked_sub(1)?;
        drop(state);
        Some(Chunk { memory: vec![0; CHUNK_BYTES].into(), unread: 0..0 })
    }

    pub(super) fn put(&self, chunk: Chunk) {
        if !chunk.unread.is_empty() {
            locked(&self.state).filled.push_back(chunk);
            self.readable.notify_one();
        }
    }

    /// The next bytes; waits for them. None when nothing will come any more.
    pub(super) fn take(&self) -> Option<Chunk> {
        let mut state = locked(&self.state);
        while state.filled.is_empty() && !state.closed {
            state = self.readable.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.filled.pop_front()
    }

    /// What was read may be filled again.
    pub(super) fn give_back(&self, chunk: Chunk) {
        if chunk.memory.len() == CHUNK_BYTES {
            locked(&self.state).spare.push(chunk);
            let _ = self.room.try_send(());
        }
    }

    pub(super) fn close(&self) {
        locked(&self.state).closed = true;
        self.readable.notify_one();
    }

    /// What has not been taken.
    pub(super) fn rest(&self) -> VecDeque<Chunk> {
        std::mem::take(&mut locked(&self.state).filled)
    }
}

/// How much is read from a socket at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// How many chunks may wait to be restored: 1 MiB.
const CHUNKS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_tells_when_it_is_full_and_when_it_is_not() {
        let (pipe, room) = Pipe::new();
        pipe.put(Chunk::of(&[7; 3]));
        for nth in 0..CHUNKS_MAX {
            let chunk = pipe.spare().unwrap();
            pipe.put(Chunk { unread: 0..nth + 1, ..chunk });
        }
        assert!(pipe.spare().is_none() && room.is_empty());
        let mut lengths = Vec::new();
        for _ in 0..=CHUNKS_MAX {
            let chunk = pipe.take().unwrap();
            lengths.push(chunk.unread().len());
            pipe.give_back(chunk);
        }
        assert_eq!((lengths, room.len()), (vec![3, 1, 2, 3, 4], 1));
        assert!((0..CHUNKS_MAX).all(|_| pipe.spare().is_some()) && pipe.spare().is_none());
        pipe.close();
        assert!(pipe.take().is_none());
    }
}

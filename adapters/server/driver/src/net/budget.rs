//! How much memory messages may take that have not fully arrived.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes of messages that have not fully arrived all accepted connections of a kind hold together, beyond a
/// little that each may. Anybody may connect, and announce a long message that never ends.
#[derive(Debug)]
pub(super) struct Unfinished {
    held: AtomicUsize,
    most: usize,
}

impl Unfinished {
    pub(super) const fn new(most: usize) -> Self {
        Self { held: AtomicUsize::new(0), most }
    }
}

/// One connection's part of it, given back when dropped.
#[derive(Debug)]
pub(super) struct Share<'a> {
    pub(super) of: &'a Unfinished,
    pub(super) bytes: usize,
}

impl Share<'_> {
    /// Holds `bytes` from now on, of which `free` are the connection's own affair; returns whether there is
    /// room for them.
    pub(super) fn hold(&mut self, bytes: usize, free: usize) -> bool {
        let bytes = bytes.saturating_sub(free);
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            let before = self.of.held.fetch_add(more, Ordering::Relaxed);
            self.bytes = bytes;
            before.saturating_add(more) <= self.of.most
        } else {
            self.of.held.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
            true
        }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.of.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What all links may hold beyond that.
pub(super) const UNFINISHED_MAX: usize = 16 * 1024 * 1024;
/// Buffers that have grown beyond this are given back once they are empty.
pub(super) const BUFFER_KEPT_MAX: usize = 64 * 1024;

//! Reads that wait until the core says that what is delivered is as new as they want.

use std::collections::VecDeque;

use quorate_application::clients::SyncId;
use quorate_core::id::ReadId;

use crate::host::callers::ReadClosure;

/// Who waits for a read.
pub(super) enum Reader<A> {
    /// A caller at this server.
    Caller(ReadClosure<A>),
    /// The service.
    Service(SyncId),
}

/// Those that wait, in order.
pub(super) struct Reads<A> {
    waiting: VecDeque<(ReadId, Reader<A>)>,
    next: u64,
}

impl<A> Reads<A> {
    pub(super) const fn new() -> Self {
        Self { waiting: VecDeque::new(), next: 0 }
    }

    /// One more; returns its number, which was never used.
    pub(super) fn push(&mut self, reader: Reader<A>) -> ReadId {
        let id = ReadId(self.next);
        self.next += 1;
        self.waiting.push_back((id, reader));
        id
    }

    /// All that wait.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Reader<A>> + use<A> {
        std::mem::take(&mut self.waiting).into_iter().map(|(_, reader)| reader)
    }

    pub(super) fn take(&mut self, id: ReadId) -> Option<Reader<A>> {
        // They are answered in order, but for those refused.
        let at = self.waiting.iter().position(|(waiting, _)| *waiting == id)?;
        self.waiting.remove(at).map(|(_, reader)| reader)
    }
}

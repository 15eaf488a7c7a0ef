//! Outputs on their way out, and what waits for the disk.
//!
//! ```text
//!   persist(write) ──► ticket 7 ──► Output::Persist          … Event::Persisted(7)
//!   send_after(7, link, ACKEPOCH) ──► held ───────────────────────► Output::Send
//!   send(link, PING) ──► Output::Send
//! ```
//!
//! Whatever *promises* something waits for the write that keeps the promise (ZOOKEEPER-3911, -4646:
//! an acknowledgement that overtakes the disk loses data). Promises keep their order among
//! themselves; what promises nothing passes them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::id::{LinkId, ReleaseId, Ticket};
use crate::message::{Message, Packet};
use crate::output::{Output, Write};
use crate::reasons::{Fault, Hangup};
use crate::report::{Change, Reason, Report};

/// Collects the outputs of one step; issues tickets; holds what must wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outbox {
    ready: Vec<Output>,
    held: VecDeque<Held>,
    issued: u64,
    durable: u64,
    /// How often it was asked whether those are gone who do what only a leader may.
    releases: u64,
    /// Writes of transactions that are under way, and how many bytes each takes.
    heavy: VecDeque<(Ticket, usize)>,
    heavy_bytes: usize,
    /// How often the room for them is doubled.
    widened: u32,
    halted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Held {
    until: Ticket,
    link: LinkId,
    message: Message,
}

impl Outbox {
    /// Asks for a write; what depends on it waits for the ticket.
    pub fn persist(&mut self, write: Write) -> Ticket {
        self.persist_with(|| write)
    }

    /// The same, of a write that is put together where it will lie: see [`Outbox::put`].
    #[inline]
    pub fn persist_with(&mut self, write: impl FnOnce() -> Write) -> Ticket {
        self.issued += 1;
        let ticket = Ticket(self.issued);
        self.put(|| Output::Persist { ticket, write: write() });
        ticket
    }

    /// Takes note that a write carries so many bytes of transactions, which are held until it is durable.
    pub fn weigh(&mut self, ticket: Ticket, bytes: usize) {
        self.heavy.push_back((ticket, bytes));
        self.heavy_bytes += bytes;
    }

    /// How many bytes of transactions wait for the disk.
    pub const fn unsynced_bytes(&self) -> usize {
        self.heavy_bytes
    }

    /// How many bytes there is room for, where there is to be room for `most`.
    pub fn room(&self, most: usize) -> usize {
        most.saturating_mul(1 << self.widened.min(16))
    }

    /// Doubles the room, because a synchronization did not finish within the present one.
    pub const fn widen(&mut self) {
        self.widened = self.widened.saturating_add(1);
    }

    /// Restores the ordinary room, because the server serves.
    pub const fn narrow(&mut self) {
        self.widened = 0;
    }

    /// The last write that was asked for.
    pub const fn last(&self) -> Ticket {
        Ticket(self.issued)
    }

    /// Whether a write, and all before it, are durable.
    pub fn is_durable(&self, ticket: Ticket) -> bool {
        ticket.0 <= self.durable
    }

    /// Takes note that a write and all before it are durable, and lets go what waited for them.
    ///
    /// A ticket that was never issued counts as the last one issued: a driver cannot make durable what
    /// does not exist.
    pub fn on_persisted(&mut self, ticket: Ticket) {
        debug_assert!(ticket.0 <= self.issued, "{ticket} was never issued");
        self.durable = self.durable.max(ticket.0.min(self.issued));
        while self.heavy.front().is_some_and(|(ticket, _)| ticket.0 <= self.durable) {
            if let Some((_, bytes)) = self.heavy.pop_front() {
                self.heavy_bytes -= bytes;
            }
        }
        // Tickets rise, but a promise may be handed over with an earlier ticket than the one before
        // it; it still waits for its turn.
        while self.held.front().is_some_and(|held| held.until.0 <= self.durable) {
            if let Some(Held { link, message, .. }) = self.held.pop_front() {
                self.ready.push(Output::Send { link, message });
            }
        }
    }

    /// Sends something that promises nothing.
    pub fn send(&mut self, link: LinkId, message: Message) {
        self.ready.push(Output::Send { link, message });
    }

    /// The same, of a packet that is put together where it will lie: see [`Outbox::put`].
    #[inline]
    pub fn send_packet(&mut self, link: LinkId, packet: impl FnOnce() -> Packet) {
        self.put(|| Output::Send { link, message: Message::Packet(packet()) });
    }

    /// Sends something that promises what the ticket's write keeps: at once if that is durable,
    /// otherwise when it is. Promises leave in the order in which they were handed over.
    pub fn send_after(&mut self, until: Ticket, link: LinkId, message: Message) {
        if self.held.is_empty() && self.is_durable(until) {
            self.send(link, message);
        } else {
            self.held.push_back(Held { until, link, message });
        }
    }

    /// Ends a link; what was held for it is never sent.
    pub fn hangup(&mut self, link: LinkId, reason: Hangup) {
        self.held.retain(|held| held.link != link);
        self.ready.push(Output::Hangup { link, reason });
    }

    /// Says that something has changed, and why.
    pub fn report(&mut self, change: Change, reason: Reason) {
        self.ready.push(Output::Report(Report { change, reason }));
    }

    /// Stops the server.
    pub fn halt(&mut self, fault: Fault) {
        self.halted = true;
        self.ready.push(Output::Halt(fault));
    }

    /// Stops the server, and leaves undone what was said beyond the first `before` outputs.
    #[cold]
    pub fn stop_short(&mut self, before: usize, fault: Fault) {
        self.ready.truncate(before);
        self.halt(fault);
    }

    /// Whether the server was stopped.
    pub const fn is_halted(&self) -> bool {
        self.halted
    }

    /// Whether every write that was asked for is durable.
    pub const fn is_settled(&self) -> bool {
        self.durable == self.issued
    }

    /// Asks those to go who do what only a leader may.
    pub fn release(&mut self) -> ReleaseId {
        self.releases += 1;
        let release = ReleaseId(self.releases);
        self.ready.push(Output::Release(release));
        release
    }

    /// An output that comes before all others of the step, which are those behind the first `before`.
    pub fn push_first(&mut self, before: usize, output: Output) {
        self.ready.insert(before.min(self.ready.len()), output);
    }

    /// Any other output.
    pub fn push(&mut self, output: Output) {
        self.ready.push(output);
    }

    /// The same, of an output that is put together where it will lie. Outputs are large; most say little,
    /// and are not to be carried about.
    #[inline]
    pub fn put(&mut self, output: impl FnOnce() -> Output) {
        // The room is there before the output is.
        self.ready.extend(core::iter::once_with(output));
    }

    /// Trades places with the caller's outputs: before a step, so that what is said in it is written
    /// where the caller wants it; and after it, so that the caller has it.
    pub const fn swap(&mut self, outputs: &mut Vec<Output>) {
        core::mem::swap(&mut self.ready, outputs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zxid::{Epoch, Zxid};

    fn drain(outbox: &mut Outbox) -> Vec<Output> {
        let mut outputs = Vec::new();
        outbox.swap(&mut outputs);
        outputs
    }

    fn ack(n: i64) -> Message {
        Message::Packet(Packet::Ack(Zxid(n)))
    }

    #[test]
    fn a_promise_leaves_after_its_write_and_a_ping_before_it() {
        let (mut outbox, link) = (Outbox::default(), LinkId(1));
        let ticket = outbox.persist(Write::CurrentEpoch(Epoch(1)));
        outbox.send_after(ticket, link, ack(1));
        outbox.send(link, Message::Packet(Packet::Sync { tag: 0 }));
        assert_eq!(drain(&mut outbox).len(), 2, "the write and the unheld message");
        outbox.on_persisted(ticket);
        assert_eq!(drain(&mut outbox), [Output::Send { link, message: ack(1) }]);
        outbox.send_after(ticket, link, ack(2));
        assert_eq!(drain(&mut outbox), [Output::Send { link, message: ack(2) }]);
    }

    #[test]
    fn promises_keep_their_order_and_die_with_their_link() {
        let (mut outbox, a, b) = (Outbox::default(), LinkId(1), LinkId(2));
        let first = outbox.persist(Write::AcceptedEpoch(Epoch(1)));
        let second = outbox.persist(Write::CurrentEpoch(Epoch(1)));
        outbox.send_after(second, a, ack(1));
        outbox.send_after(first, b, ack(2));
        outbox.send_after(second, b, ack(3));
        drain(&mut outbox);
        outbox.on_persisted(first);
        assert_eq!(drain(&mut outbox), [], "the second promise waits for the first");
        outbox.hangup(a, Hangup::RoleEnded);
        outbox.on_persisted(second);
        assert_eq!(
            drain(&mut outbox)[1..],
            [Output::Send { link: b, message: ack(2) }, Output::Send { link: b, message: ack(3) }]
        );
    }
}

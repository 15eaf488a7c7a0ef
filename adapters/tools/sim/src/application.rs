//! The application of every simulated server: cells that are written, and the number of writes so far.
//!
//! ```text
//!   Stage, ReceiveSnapshot + Install ─► staged ─────┐ Adopt, Deliver, Replay
//!                                                   ▼
//!   Prepare ─► counted ahead                     state ─► TakeSnapshot, SendSnapshot
//! ```
//!
//! A transaction carries the number that the leader's application gave it when it prepared it: one more
//! than everything delivered and everything prepared before. Each server that applies it counts for itself. If
//! one preparation was seen out of order, twice, or after it was given up, the numbers disagree; so they do
//! if one that was too long still counts.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_core::id::LinkId;
use quorate_core::membership::Membership;
use quorate_core::message::Request;
use quorate_core::reconfiguration::membership_of;
use quorate_core::txn::{Draft, RequestId, Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::hash::Mix;

/// What an application has made of a prefix of the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The last transaction in it, or a later start of an epoch that had none.
    pub label: Zxid,
    /// How many transactions are in it.
    pub count: u64,
    /// A hash of them all, in their order.
    pub digest: u64,
    /// The last write of each cell.
    pub cells: BTreeMap<u8, Zxid>,
    /// The text of each membership that a change in it has led to. An application need not know of them.
    pub changes: Vec<(Zxid, Bytes)>,
    /// How many of them took the place of one that was too long: no server prepared these.
    pub void: u64,
    /// ZooKeeper's tree, as its snapshots write it; empty but in a snapshot of a server with clients.
    pub tree: Bytes,
    /// The tree is what the transactions up to the label have made, and no later one, for its server says so: there is a digest
    /// behind it on that server's disk. A leader sends none.
    pub whole: bool,
}

/// What ends a snapshot on the wire.
const SEAL: &[u8] = b"sealed";
/// The same, where changes of the membership are in it.
const SEAL_OF_CHANGES: &[u8] = b"change";
/// The same behind those, where a tree is in it.
const SEAL_OF_TREE: &[u8] = b"a tree";

/// What came is no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a snapshot of {length} bytes without its seal")]
pub(crate) struct Unsealed {
    length: usize,
}

impl State {
    /// Applies a transaction; false if its number is not the next.
    pub(crate) fn apply(&mut self, txn: &Txn) -> bool {
        self.label = txn.zxid;
        self.count += 1;
        self.digest = chain(self.digest, txn);
        if let Some(cell) = txn.body.get(8).filter(|_| txn.header.kind == KIND) {
            self.cells.insert(*cell, txn.zxid);
        }
        if let Some(membership) = change(txn) {
            self.changes.push((txn.zxid, membership.text().clone()));
        }
        self.void += u64::from(takes_the_place_of_a_void_one(txn));
        // Changes of the membership carry none, nor does what came of those that were refused.
        let numbered = txn.header.kind == KIND;
        let number = txn.body.first_chunk().map(|number| u64::from_be_bytes(*number));
        !numbered || number == Some(self.count - self.void)
    }

    /// What the last change in it has led to.
    pub(crate) fn membership(&self) -> Option<Membership> {
        self.changes.last().and_then(|(_, text)| Membership::parse(text).ok())
    }

    /// As it goes over the wire: it ends by itself.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_u32(0);
        out.put_i64(self.label.0);
        out.put_u64(self.count);
        out.put_u64(self.digest);
        for (cell, zxid) in &self.cells {
            out.put_u8(*cell);
            out.put_i64(zxid.0);
        }
        if self.void > 0 {
            out.put_u64(self.void);
        }
        let cells = out.len();
        for (zxid, text) in &self.changes {
            out.put_i64(zxid.0);
            out.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
            out.put_slice(text);
        }
        if self.changes.is_empty() {
            out.put_slice(SEAL);
        } else {
            out.put_u32(u32::try_from(out.len() - cells).unwrap_or(u32::MAX));
            out.put_slice(SEAL_OF_CHANGES);
        }
        if !self.tree.is_empty() {
            out.put_slice(&self.tree);
            out.put_u32(u32::try_from(self.tree.len()).unwrap_or(u32::MAX));
            out.put_slice(SEAL_OF_TREE);
        }
        let length = u32::try_from(out.len() - 4).unwrap_or(u32::MAX);
        out[..4].copy_from_slice(&length.to_be_bytes());
        out.freeze()
    }

    /// Takes a state off the front of a stream: none while it is not whole, an error if it is none.
    pub(crate) fn decode(bytes: &mut BytesMut) -> Result<Option<Self>, Unsealed> {
        let Some(length) = bytes.first_chunk().map(|length| u32::from_be_bytes(*length)) else {
            return Ok(None);
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if bytes.len() - 4 < length {
            return Ok(None);
        }
        bytes.advance(4);
        let mut body = bytes.split_to(length).freeze();
        let mut tree = Bytes::new();
        let with_tree = body.strip_suffix(SEAL_OF_TREE).and_then(<[u8]>::split_last_chunk);
        if let Some((before, length)) = with_tree {
            let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
            let rest = before.len().saturating_sub(length);
            tree = body.slice(rest..before.len());
            body.truncate(rest);
        }
        let mut changes = Vec::new();
        let sealed = match body.strip_suffix(SEAL_OF_CHANGES).and_then(|b| b.split_last_chunk()) {
            Some((before, length)) => {
                let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
                let (cells, mut texts) = before.split_at(before.len().saturating_sub(length));
                while texts.remaining() >= 12 {
                    let (zxid, length) = (Zxid(texts.get_i64()), texts.get_u32());
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    changes.push((zxid, texts.copy_to_bytes(length.min(texts.remaining()))));
                }
                Some(cells)
            }
            None => body.strip_suffix(SEAL),
        };
        let Some(mut body) = sealed.filter(|body| body.len() >= 24) else {
            return Err(Unsealed { length });
        };
        let (label, count, digest) = (Zxid(body.get_i64()), body.get_u64(), body.get_u64());
        let mut cells = BTreeMap::new();
        while body.remaining() >= 9 {
            cells.insert(body.get_u8(), Zxid(body.get_i64()));
        }
        let void = if body.remaining() == 8 { body.get_u64() } else { 0 };
        Ok(Some(Self { label, count, digest, cells, changes, void, tree, whole: false }))
    }
}

/// The membership that a transaction leads to, if it is a change of that.
pub(crate) fn change(txn: &Txn) -> Option<Membership> {
    Some(txn).filter(|txn| txn.header.kind == Txn::RECONFIGURATION).and_then(membership_of)
}

/// Whether a transaction is the refusal of a request whose own was too long.
pub(crate) fn takes_the_place_of_a_void_one(txn: &Txn) -> bool {
    txn.header.kind == Txn::REJECTED && txn.body == Txn::TOO_LONG.to_be_bytes()[..]
}

/// The hash of a transaction's bytes.
pub(crate) fn hash_of(txn: &Txn) -> u64 {
    let mut mix = Mix::default();
    txn.hash(&mut mix);
    mix.finish()
}

fn chain(digest: u64, txn: &Txn) -> u64 {
    let mut mix = Mix::default();
    (digest, hash_of(txn)).hash(&mut mix);
    mix.finish()
}

/// The `number`th transaction of a history that was written before the story begins.
pub(crate) fn written_before(zxid: Zxid, number: u64) -> Txn {
    let header = TxnHeader { client: 0, cxid: 0, time: 0, kind: KIND };
    let mut body = BytesMut::new();
    body.put_u64(number);
    body.put_u8(zxid.0.to_be_bytes()[7]);
    Txn { zxid, header, body: body.freeze() }
}

/// The kind of every simulated transaction: ZooKeeper's `setData`.
pub(crate) const KIND: i32 = 5;

/// One server's application, gone after a crash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Application {
    pub(crate) state: State,
    /// The next state, not confirmed yet.
    pub(crate) staged: Option<State>,
    /// A snapshot that has come and is not installed.
    pub(crate) received: Option<State>,
    /// The link on which one is coming.
    pub(crate) receiving: Option<(LinkId, Zxid)>,
    /// How many transactions were prepared and not delivered.
    ahead: u64,
}

impl Application {
    /// One that starts from a snapshot.
    pub(crate) fn new(staged: Option<State>) -> Self {
        Self { staged, ..Self::default() }
    }

    /// The newer of the state and the staged one.
    pub(crate) fn newest(&self) -> &State {
        self.staged.as_ref().filter(|staged| staged.label > self.state.label).unwrap_or(&self.state)
    }

    /// The staged state, or the application's, as a snapshot of this label.
    pub(crate) fn labelled(&self, label: Zxid, staged: bool) -> State {
        let state = self.staged.as_ref().filter(|_| staged).unwrap_or(&self.state);
        State { label, ..state.clone() }
    }

    /// The staged state is the application's from here on; false if none with this label is.
    pub(crate) fn adopt(&mut self, label: Zxid) -> bool {
        let staged = self.staged.take_if(|staged| staged.label == label);
        staged.map(|staged| self.state = staged).is_some()
    }

    /// Whether the application has come further by itself than the staged state, which is of no use then.
    pub(crate) fn overtakes(&mut self) -> bool {
        let label = self.state.label;
        self.staged.take_if(|staged| staged.label <= label).is_some()
    }

    /// What was received is the history now, and its state the next one.
    pub(crate) fn install(&mut self) {
        self.staged = self.received.take();
    }

    /// Makes a transaction of a request: the body with its number before it. If it expands requests, some
    /// become about as long as `expands` allows, and some longer.
    pub(crate) fn prepare(
        &mut self,
        request: &Request,
        time: i64,
        expands: Option<usize>,
    ) -> Draft {
        self.ahead += 1;
        if request.op == Request::RECONFIGURE {
            let RequestId { client, cxid } = request.id;
            let header = TxnHeader { client, cxid, time, kind: Txn::RECONFIGURATION };
            return Draft { header, body: request.body.clone() };
        }
        let mut body = BytesMut::with_capacity(8 + request.body.len());
        body.put_u64(self.state.count - self.state.void + self.ahead);
        body.put_slice(&request.body);
        if let Some(most) = expands {
            let room = most - Txn::HEADER_BYTES;
            let mut mix = Mix::default();
            request.body.hash(&mut mix);
            let length = match mix.finish() % 16 {
                0 => room - 1,
                1 => room,
                2 => room + 1,
                3 => 3 * room,
                _ => 0,
            };
            body.resize(length.max(body.len()), 0);
        }
        let (client, cxid) = (request.id.client, request.id.cxid);
        let header = TxnHeader { client, cxid, time, kind: KIND };
        Draft { header, body: body.freeze() }
    }

    /// What was prepared last does not come to pass.
    pub(crate) fn void(&mut self) {
        self.ahead = self.ahead.saturating_sub(1);
    }

    /// Applies a transaction; false if its number is not the next.
    pub(crate) fn apply(&mut self, txn: &Txn) -> bool {
        if !takes_the_place_of_a_void_one(txn) {
            self.ahead = self.ahead.saturating_sub(1);
        }
        self.state.apply(txn)
    }

    /// What was prepared and is not delivered comes to nothing.
    pub(crate) fn abandon(&mut self) {
        self.ahead = 0;
    }

    /// What is received, or was and is not installed, is not wanted any more. Returns whether there was something.
    pub(crate) fn discard(&mut self) -> bool {
        let receives = self.receiving.is_some() || self.received.is_some();
        (self.received, self.receiving) = (None, None);
        receives
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_core::zxid::{Counter, Epoch};

    #[test]
    fn a_state_goes_over_the_wire_in_pieces_and_ends_by_itself() {
        let mut state = State::default();
        for number in 1..=9 {
            let zxid = Zxid::new(Epoch(1), Counter(number));
            assert!(state.apply(&written_before(zxid, u64::from(number))));
            travels(&state);
        }
        for number in 10..=11 {
            state.changes.push((Zxid(number), Bytes::from(vec![b'x'; 30])));
            travels(&state);
        }
        state.tree = Bytes::from_static(b"nodes");
        travels(&state);
    }

    fn travels(state: &State) {
        let (mut bytes, sent) = (BytesMut::new(), state.encode());
        for byte in &sent[..sent.len() - 1] {
            bytes.put_u8(*byte);
            assert_eq!(State::decode(&mut bytes), Ok(None));
        }
        bytes.put_slice(&[sent[sent.len() - 1], 42]);
        assert_eq!(State::decode(&mut bytes), Ok(Some(state.clone())));
        assert_eq!(bytes[..], [42], "not one byte more than its own");
    }

    #[test]
    fn a_transaction_with_another_number_is_noticed() {
        assert!(!State::default().apply(&written_before(Zxid(1), 2)));
    }
}

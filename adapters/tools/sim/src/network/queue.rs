//! What a server of ZooKeeper has forwarded to its leader: one queue for all its clients, of which only the head is
//! completed.
//!
//! ```text
//!   REQUEST set 1 ─► REQUEST sync ─► REQUEST set 2       sent
//!   COMMIT set 1 ──► SYNC ─────────► COMMIT set 2        heard, with commits of others between them
//! ```
//!
//! A commit of its own, or a SYNC, for which the head does not wait would leave the head, and every client behind it,
//! waiting for ever. So would a REQUEST of which nothing comes.
//!
//! In the Java code: `CommitProcessor.queuedWriteRequests`, `FollowerZooKeeperServer.pendingSyncs`.

use std::collections::{BTreeMap, VecDeque};

use quorate_core::message::{Packet, Request};
use quorate_core::txn::RequestId;
use quorate_core::zxid::Zxid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Write(RequestId),
    Sync,
}

/// The queue on one link to a leader.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    /// Of what the transactions are that are not committed yet.
    proposed: BTreeMap<Zxid, RequestId>,
    /// How many were completed.
    pub(super) paired: u64,
}

impl Queue {
    /// Whether something waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// It forwards a request.
    pub(super) fn forwards(&mut self, request: &Request) {
        let is_sync = request.op == Request::SYNC;
        self.waiting.push_back(if is_sync { Waiting::Sync } else { Waiting::Write(request.id) });
    }

    /// The leader says something; why it cannot be paired, if so.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others complete nothing")]
    pub(super) fn hears(&mut self, packet: &Packet) -> Result<(), String> {
        match packet {
            Packet::Proposal(txn) => {
                self.proposed.insert(txn.zxid, txn.header.request());
            }
            Packet::Commit(zxid) | Packet::CommitAndActivate { zxid, .. } => {
                if let Some(id) = self.proposed.remove(zxid) {
                    return self.commits(*zxid, id);
                }
            }
            Packet::Inform(txn) | Packet::InformAndActivate { txn, .. } => {
                return self.commits(txn.zxid, txn.header.request());
            }
            Packet::Sync { .. } => return self.completes(Waiting::Sync, "SYNC"),
            _ => {}
        }
        Ok(())
    }

    fn commits(&mut self, zxid: Zxid, id: RequestId) -> Result<(), String> {
        let write = Waiting::Write(id);
        if self.waiting.contains(&write) {
            self.completes(write, &format!("{zxid}"))
        } else {
            // Another server's, or one that was forwarded on an earlier link.
            Ok(())
        }
    }

    fn completes(&mut self, what: Waiting, said: &str) -> Result<(), String> {
        match self.waiting.front() {
            Some(head) if *head == what => {
                self.waiting.pop_front();
                self.paired += 1;
                Ok(())
            }
            head => Err(format!("{said} is for {what:?}, and at the head is {head:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quorate_core::txn::{Txn, TxnHeader};
    use quorate_service::wire::op;

    use super::*;

    fn id(cxid: i32) -> RequestId {
        RequestId { client: 7, cxid }
    }

    fn request(op: i32, cxid: i32) -> Request {
        Request { id: id(cxid), op, body: Bytes::new(), identities: None }
    }

    fn proposal(zxid: i64, cxid: i32) -> Packet {
        let header = TxnHeader { client: 7, cxid, time: 0, kind: op::SET_DATA };
        Packet::Proposal(Txn { zxid: Zxid(zxid), header, body: Bytes::new() })
    }

    fn queue() -> Queue {
        let mut queue = Queue::default();
        for (op, cxid) in [(op::SET_DATA, 1), (op::SYNC, 2), (op::SET_DATA, 3)] {
            queue.forwards(&request(op, cxid));
        }
        for (zxid, cxid) in [(1, 1), (2, 9), (3, 3)] {
            queue.hears(&proposal(zxid, cxid)).unwrap();
        }
        queue
    }

    #[test]
    fn the_head_is_completed_and_what_others_asked_for_goes_by() {
        let mut queue = queue();
        for packet in [
            Packet::Commit(Zxid(1)),
            Packet::Sync { tag: 0 },
            Packet::Commit(Zxid(2)),
            Packet::Commit(Zxid(3)),
        ] {
            queue.hears(&packet).unwrap();
        }
        assert!(queue.is_empty());
        assert_eq!(queue.paired, 3);
    }

    #[test]
    fn a_sync_before_its_turn_and_a_commit_before_its_own_are_found() {
        assert!(queue().hears(&Packet::Sync { tag: 0 }).is_err());
        assert!(queue().hears(&Packet::Commit(Zxid(3))).is_err());
        let mut queue = queue();
        queue.hears(&Packet::Commit(Zxid(1))).unwrap();
        queue.hears(&Packet::Sync { tag: 0 }).unwrap();
        assert!(queue.hears(&Packet::Sync { tag: 0 }).is_err());
        assert!(!queue.is_empty());
    }
}

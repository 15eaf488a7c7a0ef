//! Runs: PROPOSALs, ACKs and COMMITs of transactions that follow one another, taken and written together.
//!
//! ```text
//!   ACK 5 │ ACK 6 │ ACK 7 │ ACK 9 …   ─►   Acks(5..=7), then ACK 9
//! ```
//!
//! On the wire a run is a packet for each transaction, as ZooKeeper writes them. A hole ends a run.

use alloc::vec::Vec;

use bytes::{Buf, BufMut, BytesMut};

use super::error::DecodeError;
use super::packet::{HEAD, kind, put_head, take, txn};
use super::primitive::{NULL, i32_at, i32_in, i64_in};
use crate::message::{Packet, Run};
use crate::txn::Txn;
use crate::zxid::Zxid;

/// How many PROPOSALs are taken together.
const PROPOSALS_MAX: usize = 256;

/// Takes off the PROPOSALs that have come whole behind `first` and follow it.
pub(super) fn take_proposals(
    buf: &mut BytesMut,
    first: Txn,
    data_max: usize,
) -> Result<Packet, DecodeError> {
    let mut txns = Vec::new();
    let mut last = first.zxid;
    while txns.len() + 1 < PROPOSALS_MAX {
        let Some(head) = buf.first_chunk::<HEAD>() else { break };
        let (kind, zxid) = (i32_in::<0, _>(head), Zxid(i64_in::<4, _>(head)));
        let length = usize::try_from(i32_in::<12, _>(head)).ok();
        let Some(length) = length.filter(|length| *length <= data_max) else { break };
        let end = HEAD + length;
        let follows = zxid.follows(last);
        if kind != kind::PROPOSAL || !follows || i32_at(buf, end) != Some(NULL) {
            break;
        }
        txns.push(txn("PROPOSAL", zxid, take(buf, HEAD..end, end + 4))?);
        last = zxid;
    }
    if txns.is_empty() {
        return Ok(Packet::Proposal(first));
    }
    txns.insert(0, first);
    Ok(Packet::Proposals(txns.into()))
}

/// Takes off those packets that say the same of the transactions directly after `first`. The start of an
/// epoch is no transaction: its ACK stands for itself.
pub(super) fn take_run(buf: &mut BytesMut, kind: i32, first: Zxid) -> Run {
    const BARE: usize = HEAD + 4;
    let mut run = Run::one(first);
    if first.is_epoch_start() {
        return run;
    }
    while let (Some(packet), Some(next)) = (buf.first_chunk::<BARE>(), run.last.next()) {
        let absent = i32_in::<12, _>(packet) == NULL && i32_in::<16, _>(packet) == NULL;
        if i32_in::<0, _>(packet) != kind || i64_in::<4, _>(packet) != next.0 || !absent {
            break;
        }
        run.last = next;
        buf.advance(BARE);
    }
    run
}

/// Appends a bare packet for each transaction; of the last, all but its identities.
pub(super) fn put_run(out: &mut BytesMut, kind: i32, run: Run) {
    out.reserve((HEAD + 4) * usize::try_from(run.last.0 - run.first.0 + 1).unwrap_or(0));
    for zxid in run.zxids() {
        if zxid != run.first {
            out.put_i32(NULL);
        }
        put_head(out, kind, zxid, NULL);
    }
}

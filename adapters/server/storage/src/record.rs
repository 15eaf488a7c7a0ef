//! The format of a transaction log file: its header and records to bytes and back, as pure functions.
//!
//! ```text
//!   file    ┌ "ZKLG" ┬ version 2 : i32 ┬ dbid 0 : i64 ┬ record … ┬ zero bytes … ┐
//!   record  ┌ Adler-32 of the txn : i64 ┬ length n : i32 ┬ n bytes of txn ┬ 'B' ┐     big-endian
//! ```
//!
//! The checksum covers the transaction only, neither its length nor the trailer. Files are filled up
//! with zero bytes in advance, so a write that a power cut interrupted normally ends in a trailer that
//! is zero, or in a length that is: such a record was never acknowledged and is passed over. A record
//! whose trailer is there and whose checksum is wrong was once complete, and is refused.
//!
//! Since the length is not covered, one wrong bit in it makes an acknowledged record look torn, and all
//! that follow it disappear with it. A Java server loses them without a word; [`trace`] finds out.
//!
//! No function here reads a file or decides what to do about what it found.
//!
//! In the Java code: `FileTxnLog`, `FileHeader`, `Util.readTxnBytes`.

use adler2::adler32_slice;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use thiserror::Error;

/// What every file begins with.
pub const FILE_HEADER: [u8; 16] = *b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0";

/// What a record has before its transaction.
pub const PREFIX_BYTES: usize = 12;

/// What a record has beside its transaction.
pub const OVERHEAD: usize = PREFIX_BYTES + 1;

/// The longest transaction that is read and written unless a server is told otherwise, as in ZooKeeper:
/// `jute.maxbuffer`, and as much again.
pub const TXN_BYTES_MAX: usize = Txn::BYTES_MAX;

const TRAILER: u8 = b'B';
const CHECKSUM_END: usize = 8;

/// What stands at a place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A whole record.
    Record(Record),
    /// The bytes end before one can tell; that many from the same place on would do. Where the file
    /// itself ends there, it ends with a torn record, or well if there is no byte at all.
    Short {
        /// How many bytes it takes.
        needed: usize,
    },
    /// Zero bytes: the end of what was written.
    Padding,
    /// A record that was not written to its end: the end of what can be relied on.
    Torn,
    /// A record that was complete once and no longer says the same.
    Damaged(Damage),
}

/// A whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The number of its transaction.
    pub zxid: Zxid,
    /// How many bytes its transaction has; they stand [`PREFIX_BYTES`] behind its beginning.
    pub txn_bytes: usize,
}

impl Record {
    /// How many bytes the record has.
    pub const fn len(&self) -> usize {
        self.txn_bytes + OVERHEAD
    }

    /// Never.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    /// No record is that long.
    #[error(
        "its length is given as {length}, allowed are {} to {max} (jute.maxbuffer and its extrasize)",
        Txn::HEADER_BYTES
    )]
    Length {
        /// What stands there.
        length: i32,
        /// The longest allowed.
        max: usize,
    },
    /// The transaction is not what was written.
    #[error("its checksum is {found:#x}, its bytes give {computed:#x}")]
    Checksum {
        /// What stands there.
        found: u64,
        /// What the bytes give.
        computed: u32,
    },
    /// The record looks torn, but is whole apart from its length or its trailer.
    #[error("its transaction is whole, but its length or its last byte is wrong")]
    Frame,
    /// Behind a record that looks torn, or behind zero bytes, there are whole records.
    #[error("it is not whole, but {distance} bytes further there is a whole record, {zxid}")]
    Buried {
        /// How much further.
        distance: usize,
        /// The number of the transaction there.
        zxid: Zxid,
    },
    /// The file was synced beyond it, see [`sync_mark`](crate::sync_mark).
    #[error("it is not whole, though the file was synced through offset {through}")]
    Synced {
        /// How far.
        through: u64,
    },
}

/// Appends the record of a transaction to `out`.
///
/// The caller keeps transactions below its limit; one of 2 GiB has no record.
pub fn encode(txn: &Txn, out: &mut Vec<u8>) {
    let length = u32::try_from(txn.len()).unwrap_or(u32::MAX);
    out.reserve(txn.len() + OVERHEAD);
    let start = out.len();
    out.extend_from_slice(&[0; CHECKSUM_END]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&txn.head());
    out.extend_from_slice(&txn.body);
    let checksum = u64::from(adler32_slice(&out[start + PREFIX_BYTES..]));
    out[start..start + CHECKSUM_END].copy_from_slice(&checksum.to_be_bytes());
    out.push(TRAILER);
}

/// Tells what `bytes` begin with. Transactions longer than `max` are refused, before anything is
/// allocated for them.
pub fn decode(bytes: &[u8], max: usize) -> Found {
    let Some((checksum, length)) = prefix(bytes) else {
        return Found::Short { needed: PREFIX_BYTES };
    };
    if length == 0 {
        return if checksum == 0 { Found::Padding } else { Found::Torn };
    }
    let txn_bytes = match usize::try_from(length) {
        Ok(txn_bytes) if txn_bytes <= max => txn_bytes,
        _ => return Found::Damaged(Damage::Length { length, max }),
    };
    let end = PREFIX_BYTES + txn_bytes;
    let Some(trailer) = bytes.get(end) else {
        return Found::Short { needed: end + 1 };
    };
    if *trailer != TRAILER {
        return Found::Torn;
    }
    let txn = &bytes[PREFIX_BYTES..end];
    let computed = adler32_slice(txn);
    if checksum != u64::from(computed) {
        return Found::Damaged(Damage::Checksum { found: checksum, computed });
    }
    match zxid_of(txn) {
        Some(zxid) => Found::Record(Record { zxid, txn_bytes }),
        None => Found::Damaged(Damage::Length { length, max }),
    }
}

/// How long the record is that `bytes` begin with, to judge by its length and its trailer alone; none
/// if they do not fit together.
pub(crate) fn frame(bytes: &[u8], max: usize) -> Option<usize> {
    let (_, length) = prefix(bytes)?;
    let txn_bytes = usize::try_from(length).ok()?;
    let fits = (Txn::HEADER_BYTES..=max).contains(&txn_bytes);
    let whole = fits && bytes.get(PREFIX_BYTES + txn_bytes) == Some(&TRAILER);
    whole.then_some(txn_bytes + OVERHEAD)
}

/// Looks for what should not be there, behind the place where a log seems to end.
///
/// `bytes` begin where [`decode`] found [`Found::Torn`], [`Found::Padding`] or the end of the file, and
/// reach further than a record can be long. If they hold a transaction after `after`, whole in spite of
/// the verdict, then something was damaged that had been written to its end: history must not end here.
pub fn trace(bytes: &[u8], after: Zxid, max: usize) -> Option<Damage> {
    if is_zero(bytes) {
        return None;
    }
    if is_whole_but_for_its_frame(bytes, after, max) {
        return Some(Damage::Frame);
    }
    let mut budget = TRACE_BYTES_MAX;
    for distance in 1..bytes.len().saturating_sub(OVERHEAD + Txn::HEADER_BYTES) {
        let rest = &bytes[distance..];
        // Nearly every place is ruled out by these, long before a checksum is computed.
        let Some((checksum, length)) = prefix(rest) else { break };
        let Ok(txn_bytes) = usize::try_from(length) else { continue };
        if checksum > u64::from(u32::MAX) || !(Txn::HEADER_BYTES..=max).contains(&txn_bytes) {
            continue;
        }
        if rest.get(PREFIX_BYTES + txn_bytes) != Some(&TRAILER) {
            continue;
        }
        let zxid = zxid_of(&rest[PREFIX_BYTES..]).filter(|zxid| is_after(*zxid, after));
        let Some(zxid) = zxid else { continue };
        // A client may have filled a record with what looks like records; that must not take forever,
        // and is suspicious enough.
        let affordable = budget.checked_sub(txn_bytes);
        budget = affordable.unwrap_or(0);
        if affordable.is_none() || matches!(decode(rest, max), Found::Record(_)) {
            return Some(Damage::Buried { distance, zxid });
        }
    }
    None
}

/// Whether the checksum fits to the bytes behind it for some other length than the one given, or for
/// the one given although the trailer is neither there nor missing.
fn is_whole_but_for_its_frame(bytes: &[u8], after: Zxid, max: usize) -> bool {
    let Some((checksum, length)) = prefix(bytes) else { return false };
    let txn = &bytes[PREFIX_BYTES..];
    if checksum == 0 || !zxid_of(txn).is_some_and(|zxid| is_after(zxid, after)) {
        return false;
    }
    let (mut a, mut b) = (1_u32, 0_u32);
    for (index, byte) in txn.iter().take(max).enumerate() {
        a = (a + u32::from(*byte)) % ADLER_MODULUS;
        b = (b + a) % ADLER_MODULUS;
        let txn_bytes = index + 1;
        if txn_bytes < Txn::HEADER_BYTES || u64::from(b << 16 | a) != checksum {
            continue;
        }
        let as_given = usize::try_from(length) == Ok(txn_bytes);
        // A write that ended one byte too early has everything but its trailer.
        return !(as_given && matches!(txn.get(txn_bytes), None | Some(0)));
    }
    false
}

/// Whether there is nothing but zero bytes.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()])
}

/// Whether a log that ends with `after` could go on, then or later, with `zxid`.
fn is_after(zxid: Zxid, after: Zxid) -> bool {
    zxid > after && zxid.epoch().is_valid() && !zxid.is_epoch_start()
}

fn prefix(bytes: &[u8]) -> Option<(u64, i32)> {
    let (checksum, rest) = bytes.split_first_chunk()?;
    let (length, _) = rest.split_first_chunk()?;
    Some((u64::from_be_bytes(*checksum), i32::from_be_bytes(*length)))
}

/// The number that stands in a transaction's header.
fn zxid_of(txn: &[u8]) -> Option<Zxid> {
    let (head, _) = txn.split_first_chunk::<{ Txn::HEADER_BYTES }>()?;
    head[12..].first_chunk().map(|zxid| Zxid(i64::from_be_bytes(*zxid)))
}

const ADLER_MODULUS: u32 = 65_521;
/// How many bytes [`trace`] computes checksums of.
const TRACE_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quorate_core::txn::TxnHeader;

    use super::*;

    fn txn(zxid: i64, body: &'static [u8]) -> Txn {
        let header = TxnHeader { client: 7, cxid: 1, time: 1_700_000_000_000, kind: 5 };
        Txn { zxid: Zxid(zxid), header, body: Bytes::from_static(body) }
    }

    fn record(zxid: i64, body: &'static [u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&txn(zxid, body), &mut out);
        out
    }

    #[test]
    fn a_record_goes_to_bytes_and_back() {
        let bytes = record(0x1_0000_0001, b"hello");
        let Found::Record(found) = decode(&bytes, 100) else { panic!("{:?}", decode(&bytes, 100)) };
        assert_eq!((found.zxid, found.txn_bytes, found.len()), (Zxid(0x1_0000_0001), 37, 50));
        let body = Bytes::copy_from_slice(&bytes[PREFIX_BYTES..PREFIX_BYTES + found.txn_bytes]);
        assert_eq!(Txn::decode(body), Ok(txn(0x1_0000_0001, b"hello")));
    }

    #[test]
    fn a_record_cut_anywhere_asks_for_more() {
        let bytes = record(1, b"hello");
        for length in 0..bytes.len() {
            let needed = if length < PREFIX_BYTES { PREFIX_BYTES } else { bytes.len() };
            assert_eq!(decode(&bytes[..length], 100), Found::Short { needed });
        }
    }

    #[test]
    fn the_table_of_what_is_found() {
        let whole = record(1, b"hello");
        let with = |place: usize, new: &[u8]| {
            let mut bytes = whole.clone();
            bytes[place..place + new.len()].copy_from_slice(new);
            decode(&bytes, 100)
        };
        assert_eq!(decode(&[0; 40], 100), Found::Padding);
        assert_eq!(with(8, &[0; 4]), Found::Torn);
        assert_eq!(with(49, &[0]), Found::Torn);
        assert_eq!(with(49, b"C"), Found::Torn);
        for length in [-1, i32::MIN, 101, i32::MAX] {
            let expected = Found::Damaged(Damage::Length { length, max: 100 });
            assert_eq!(with(8, &length.to_be_bytes()), expected);
        }
        assert!(matches!(with(20, b"!"), Found::Damaged(Damage::Checksum { .. })));
        assert!(matches!(with(0, b"!"), Found::Damaged(Damage::Checksum { .. })));
    }

    #[test]
    fn one_wrong_bit_is_never_taken_for_a_torn_write() {
        let mut whole = record(5, b"a body with a B in it, and \0 too");
        whole.extend_from_slice(&[0; 300]);
        let length = whole.len() - 300;
        for bit in 0..length * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let seen = match decode(&bytes, 256) {
                Found::Damaged(_) => true,
                Found::Torn | Found::Padding => trace(&bytes, Zxid(4), 256).is_some(),
                Found::Record(_) | Found::Short { .. } => false,
            };
            assert!(seen, "bit {bit}");
        }
    }

    #[test]
    fn a_write_that_ended_early_is_no_damage() {
        let whole = record(5, b"body");
        for length in 0..whole.len() {
            let mut bytes = whole[..length].to_vec();
            assert_eq!(trace(&bytes, Zxid(4), 256), None, "ended after {length}");
            bytes.resize(400, 0);
            assert_eq!(trace(&bytes, Zxid(4), 256), None, "zero after {length}");
        }
    }

    #[test]
    fn whole_records_behind_a_hole_are_found() {
        let mut bytes = vec![0; 60];
        bytes.extend(record(6, b"body"));
        let found = Some(Damage::Buried { distance: 60, zxid: Zxid(6) });
        assert_eq!(trace(&bytes, Zxid(4), 256), found);
        assert_eq!(trace(&bytes, Zxid(6), 256), None, "nothing new");
    }
}

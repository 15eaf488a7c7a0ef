//! Sync marks: each batch records in the log file how far the sync before it came; as pure functions.
//!
//! ```text
//!   log file   header │ records …………… │ batch │ zero bytes, 12 at least │ slot │ slot │ (rest of a block)
//!                                     ▲ how far the previous sync came ──► in one of the two, in turn
//! ```
//!
//! Of a batch that was not synced, a power cut leaves any pages and not others: whole records behind a
//! hole, or a record with a hole in it. That looks like damage to what was acknowledged, and only where
//! the last sync ended tells the two apart: what was synced was whole, so what cannot be read *before*
//! that place is damaged, and acknowledged transactions may be missing; what cannot be read *behind* it
//! was never acknowledged, and is cut off.
//!
//! So each batch takes a mark along that says how far the sync before it came: no second sync is needed.
//! Nothing else may overwrite the older mark before the new one has arrived, hence two slots in turn, in
//! blocks of their own at the end of the room that a file has in advance; never directly behind the
//! records, where the next batch would overwrite it. Where room is added, marks are durable in the new slots before
//! a batch may come near the old ones. A file that is cut, or ends with its records, has no mark: what is
//! in it was durable before. ZooKeeper stops at the zero bytes long before, and shortens a file when it
//! cuts it.
//!
//! What is left undecided is as wide as one sync: the mark of the last batch comes with the next one, or when
//! none has come for a while. Damage to that one batch, on a server that lost its power at that very
//! moment, is taken for a torn write; the other servers that acknowledged it have it still.
//!
//! No function here reads a file. [`judge`] is the rule itself; the simulator's disks keep to it, too.

use quorate_core::zxid::Zxid;

/// How many bytes a mark has. It begins where its slot does.
pub const BYTES: usize = 32;

/// How far the slots are apart: no disk writes a larger block, so that none that is torn takes both.
pub const SLOT_BYTES: u64 = 4096;

/// How many zero bytes are behind the records at least: where it finds them, ZooKeeper stops.
pub const ZEROS_MIN: u64 = 12;

/// Where the two slots of a file begin that is `size` bytes long; none if it has no room for them.
pub fn slots(size: u64) -> Option<[u64; 2]> {
    let blocks = size / SLOT_BYTES;
    // The first block has the header of the file.
    (blocks >= 3).then(|| [(blocks - 2) * SLOT_BYTES, (blocks - 1) * SLOT_BYTES])
}

/// The mark of a file that begins with transaction `start`, synced through offset `through`.
pub fn encode(start: Zxid, through: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&start.0.to_be_bytes());
    bytes[16..24].copy_from_slice(&through.to_be_bytes());
    let checksum = checksum(&bytes[..24]);
    bytes[24..].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// How far the file that begins with `start` was synced, by what its slots hold: the higher mark that is
/// valid counts; none if neither is.
pub fn decode(start: Zxid, slots: [&[u8]; 2]) -> Option<u64> {
    let mark = |bytes: &[u8]| {
        let through = u64::from_be_bytes(*bytes.get(16..)?.first_chunk()?);
        (bytes.get(..BYTES)? == encode(start, through)).then_some(through)
    };
    slots.into_iter().filter_map(mark).max()
}

/// What is found at the place where a log file can be read no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The end of the file, or zero bytes and nothing else.
    Clean,
    /// The beginning of a record and nothing whole behind it, as a write leaves that ended early.
    Torn,
    /// Something that was written behind it or around it: a record behind a hole, or one that was complete
    /// and does not say the same.
    Damaged,
}

/// What that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the end of what was written.
    Whole,
    /// What is there was never acknowledged, and is cut off.
    Cut,
    /// Acknowledged transactions may be missing: no server may start as if they had never been.
    Refuse,
}

/// What it means that a file cannot be read on at `offset`, where the `mark` says how far it was synced.
/// Without one, as in files of ZooKeeper, only what a write leaves that ended early is cut off.
pub fn judge(offset: u64, stop: Stop, mark: Option<u64>) -> Verdict {
    match (mark, stop) {
        (Some(mark), _) if offset < mark => Verdict::Refuse,
        (_, Stop::Clean) => Verdict::Whole,
        (Some(_), Stop::Torn | Stop::Damaged) | (None, Stop::Torn) => Verdict::Cut,
        (None, Stop::Damaged) => Verdict::Refuse,
    }
}

/// How much of a log file of `size` bytes is believed by the process that was told that a write to it, or a sync, has failed:
/// what had been `synced` before. More may be read there, and is in memory alone: the system may have given up what it could
/// not write, and says at the next sync that all is well.
pub const fn believed(synced: u64, size: u64) -> u64 {
    if size < synced { size } else { synced }
}

/// FNV-1a: Adler-32, which records have, tells little about so few bytes.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

const MAGIC: [u8; 8] = *b"QUORATE\x01";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slots_are_the_last_two_blocks_and_not_the_first() {
        for (size, expected) in [
            (0, None),
            (8208, None),
            (12_287, None),
            (12_288, Some([4096, 8192])),
            (16_383, Some([4096, 8192])),
            ((4 << 20) + 16, Some([(4 << 20) - 8192, (4 << 20) - 4096])),
        ] {
            assert_eq!(slots(size), expected, "{size}");
        }
    }

    #[test]
    fn the_higher_valid_mark_counts_and_no_other_files() {
        let start = Zxid(0x1_0000_0001);
        let (low, high) = (encode(start, 100), encode(start, 200));
        assert_eq!(decode(start, [&low, &high]), Some(200));
        assert_eq!(decode(start, [&high, &low]), Some(200));
        assert_eq!(decode(start, [&low, &[0; BYTES]]), Some(100));
        assert_eq!(decode(start, [&[], &low]), Some(100));
        assert_eq!(decode(start, [&[0; BYTES], &high[..BYTES - 1]]), None);
        assert_eq!(decode(Zxid(0x1_0000_0002), [&low, &high]), None);
        for bit in 0..BYTES * 8 {
            let mut wrong = high;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(start, [&low, &wrong]), Some(100), "bit {bit}");
        }
        // Half of one and half of the other.
        for place in 17..BYTES {
            let (a, b) = (encode(start, 0x0102_0304), encode(start, 0x0203_0401));
            let torn: Vec<_> = a[..place].iter().chain(&b[place..]).copied().collect();
            let whole = torn == a || torn == b;
            assert_eq!(decode(start, [&low, &torn]).is_some_and(|mark| mark > 100), whole);
        }
    }

    #[test]
    fn what_follows_the_last_sync_is_not_believed_after_a_failure() {
        assert_eq!([believed(100, 100), believed(100, 4096), believed(100, 40)], [100, 100, 40]);
        assert_eq!(believed(0, 16), 0, "a file that was begun and never synced");
    }

    #[test]
    fn the_table_of_what_a_broken_place_means() {
        use {Stop::*, Verdict::*};
        for (offset, stop, mark, verdict) in [
            (100, Clean, None, Whole),
            (100, Torn, None, Cut),
            (100, Damaged, None, Refuse),
            (100, Clean, Some(100), Whole),
            (100, Torn, Some(100), Cut),
            (100, Damaged, Some(100), Cut),
            (100, Damaged, Some(16), Cut),
            (99, Clean, Some(100), Refuse),
            (99, Torn, Some(100), Refuse),
            (99, Damaged, Some(100), Refuse),
        ] {
            assert_eq!(judge(offset, stop, mark), verdict, "{offset} {stop:?} {mark:?}");
        }
    }
}

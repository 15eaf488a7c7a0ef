//! Arbitrary bytes as the records of a transaction log, and as bodies of records that are whole: what is
//! taken for a record is one to the last bit, and no more bytes are asked for than a record may have.

use bytes::Bytes;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use quorate_storage::record::{Damage, Found, OVERHEAD, PREFIX_BYTES, decode, encode, trace};

/// The longest transaction.
const MAX: usize = 256;

/// Feeds these bytes.
pub fn feed(data: &[u8]) {
    records(data);
    // Fuzzers find no checksums: whatever can be a transaction gets a whole record, and then one wrong bit.
    let Some((first, txn)) = data.split_first() else { return };
    let Ok(txn) = Txn::decode(Bytes::copy_from_slice(txn)) else { return };
    let mut bytes = Vec::new();
    encode(&txn, &mut bytes);
    let fits = txn.len() <= MAX;
    assert_eq!(matches!(decode(&bytes, MAX), Found::Record(_)), fits);
    if fits {
        records(&bytes);
        let at = usize::from(*first) * bytes.len() / 256;
        bytes[at] ^= 1 << (first % 8);
        assert!(!matches!(decode(&bytes, MAX), Found::Record(_)), "one bit is wrong");
        records(&bytes);
    }
}

fn records(data: &[u8]) {
    let (mut rest, mut last) = (data, Zxid::ZERO);
    loop {
        match decode(rest, MAX) {
            Found::Record(record) => {
                let (bytes, behind) = rest.split_at(record.len());
                let body = &bytes[PREFIX_BYTES..PREFIX_BYTES + record.txn_bytes];
                let txn = Txn::decode(Bytes::copy_from_slice(body)).expect("a whole transaction");
                assert_eq!(txn.zxid, record.zxid);
                let mut again = Vec::new();
                encode(&txn, &mut again);
                assert_eq!(again, bytes);
                (rest, last) = (behind, record.zxid);
            }
            Found::Short { needed } => {
                assert!(needed > rest.len() && needed <= MAX + OVERHEAD, "{needed}");
                break;
            }
            Found::Padding | Found::Torn | Found::Damaged(_) => break,
        }
    }
    if let Some(Damage::Buried { distance, zxid }) = trace(rest, last, MAX) {
        assert!(zxid > last && distance < rest.len());
    }
}

//! Arbitrary bytes as the beginning of an election link.

use bytes::BytesMut;
use quorate_core::wire::{MAX_ADDRESSES, decode_introduction, encode_introduction};

/// Feeds these bytes.
pub fn feed(data: &[u8]) {
    let mut buf = BytesMut::from(data);
    let Ok(Some(introduction)) = decode_introduction(&mut buf) else { return };
    assert!(buf.len() < data.len());
    let text: usize = introduction.addresses.iter().map(|address| address.host.len()).sum();
    assert!(text <= MAX_ADDRESSES);

    // Written again, it is read as the same; all but the first address go if they are too long.
    let Some(first) = introduction.addresses.first() else { return };
    let mut again = BytesMut::from(encode_introduction(&introduction));
    if first.to_string().len() <= MAX_ADDRESSES {
        let again = decode_introduction(&mut again).ok().flatten().expect("our own bytes");
        assert_eq!(again.id, introduction.id);
        if again.addresses.len() > 1 {
            assert_eq!(again, introduction);
        }
        assert_eq!(again.addresses.first(), Some(first));
    }
}

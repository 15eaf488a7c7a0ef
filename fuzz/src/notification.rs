//! Arbitrary bytes on an election link of either kind, and then a valid notification.

use bytes::{Buf, BytesMut};
use quorate_core::message::Notification;
use quorate_core::wire::{
    decode_frame, decode_generation_introduction, decode_notification, encode_generation,
    encode_generation_introduction, encode_notification, take_generation, take_notification,
};

/// Feeds these bytes.
pub fn feed(data: &[u8]) {
    messages(data);
    let mut buf = BytesMut::from(data);
    let mut framed = BytesMut::from(data);
    loop {
        let before = buf.len();
        let taken = take_notification(&mut buf);
        let decoded = match decode_frame(&mut framed) {
            Ok(frame) => frame.map(decode_notification).transpose(),
            Err(error) => Err(error),
        };
        assert_eq!(taken, decoded, "both ways agree");
        match taken {
            Ok(None) => break,
            Ok(Some(notification)) => round_trip(&notification),
            Err(error) if error.is_fatal() => return,
            Err(_) => {}
        }
        assert!(buf.len() < before, "a whole frame was taken");
    }

    // Whatever came before, complete the frame that is pending; the next notification arrives.
    if let Some(length) = buf.first_chunk().map(|chunk| u32::from_be_bytes(*chunk) as usize) {
        buf.resize(4 + length, 0);
        drop(take_notification(&mut buf));
    } else {
        buf.clear();
    }
    assert!(!buf.has_remaining());
    let good = [&44_u32.to_be_bytes()[..], &[0; 44]].concat();
    buf.extend_from_slice(&good);
    assert!(matches!(take_notification(&mut buf), Ok(Some(_))));
}

/// The same bytes where servers elect by generation.
fn messages(data: &[u8]) {
    let mut introduced = BytesMut::from(data);
    if let Ok(Some(introduction)) = decode_generation_introduction(&mut introduced) {
        let mut again = BytesMut::from(&encode_generation_introduction(&introduction)[..]);
        let again = decode_generation_introduction(&mut again);
        assert_eq!(again.map(|i| i.map(|i| i.id)), Ok(Some(introduction.id)));
    }
    let mut buf = BytesMut::from(data);
    loop {
        let before = buf.len();
        match take_generation(&mut buf) {
            Ok(None) => return,
            Ok(Some(message)) => {
                let mut out = BytesMut::new();
                encode_generation(&message, &mut out);
                assert_eq!(take_generation(&mut out), Ok(Some(message)));
                assert!(out.is_empty());
            }
            Err(error) if error.is_fatal() => return,
            Err(_) => {}
        }
        assert!(buf.len() < before, "a whole frame was taken");
    }
}

fn round_trip(notification: &Notification) {
    let mut out = BytesMut::new();
    encode_notification(notification, &mut out);
    assert_eq!(take_notification(&mut out).as_ref(), Ok(&Some(notification.clone())));
    assert!(out.is_empty());
}

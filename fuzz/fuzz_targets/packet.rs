//! Arbitrary bytes on a link between a leader and a learner.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use quorate_core::message::Packet;
use quorate_core::wire::{decode_packet, encode_around_payload, encode_packet};

fuzz_target!(|data: &[u8]| {
    let mut buf = BytesMut::from(data);
    loop {
        let before = buf.len();
        match decode_packet(&mut buf) {
            Ok(None) => break,
            Ok(Some(packet)) => round_trip(&packet),
            Err(error) if error.is_fatal() => return,
            Err(_) => {}
        }
        assert!(buf.len() < before, "a whole packet was taken");
    }
});

/// Not every packet comes back as it was, because data that are missing are filled in; but what we
/// would send ourselves does, and so does everything that was filled in.
fn round_trip(packet: &Packet) {
    let mut bytes = BytesMut::new();
    encode_packet(packet, &mut bytes);
    let mut around = BytesMut::new();
    if let Some((place, payload)) = encode_around_payload(packet, &mut around) {
        let tail = around.split_off(place);
        around.extend_from_slice(&payload);
        around.extend_from_slice(&tail);
    }
    assert_eq!(around, bytes);
    let again = decode_packet(&mut bytes.clone()).ok().flatten().expect("our own bytes");
    assert_eq!(&again, packet);
}

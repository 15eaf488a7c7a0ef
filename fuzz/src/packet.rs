//! Arbitrary bytes on a link between a leader and a learner: one by one, and in runs.

use bytes::BytesMut;
use quorate_core::message::Packet;
use quorate_core::wire::{
    MAX_DATA, decode_packet, encode_around_payload, encode_packet, take_packet,
};

/// Feeds these bytes.
pub fn feed(data: &[u8]) {
    let mut buf = BytesMut::from(data);
    let mut singles = Vec::new();
    let end = loop {
        let before = buf.len();
        match decode_packet(&mut buf, MAX_DATA) {
            Ok(None) => break None,
            Ok(Some(packet)) => {
                round_trip(&packet);
                singles.push(packet);
            }
            Err(error) if error.is_fatal() => break Some(error),
            Err(_) => {}
        }
        assert!(buf.len() < before, "a whole packet was taken");
    };
    if end.is_none() {
        assert_eq!(in_runs(data, usize::MAX), singles);
    }
    // However the bytes come in.
    let at = data.first().map_or(0, |first| usize::from(*first)) % (data.len() + 1);
    if end.is_none() {
        assert_eq!(in_runs(data, at), singles);
    }
}

/// Everything that is taken in runs, one by one; the bytes come in two parts.
pub(crate) fn in_runs(data: &[u8], at: usize) -> Vec<Packet> {
    let (first, second) = data.split_at(at.min(data.len()));
    let mut buf = BytesMut::from(first);
    let mut singles = Vec::new();
    for part in [second, &[]] {
        loop {
            match take_packet(&mut buf, MAX_DATA) {
                Ok(None) => break,
                Ok(Some(packet)) => {
                    round_trip(&packet);
                    one_by_one(packet, &mut singles);
                }
                Err(error) => assert!(!error.is_fatal(), "{error}"),
            }
        }
        buf.extend_from_slice(part);
    }
    singles
}

pub(crate) fn one_by_one(packet: Packet, singles: &mut Vec<Packet>) {
    if let Packet::Proposals(txns) = packet {
        assert!(txns.len() > 1);
        assert!(txns.windows(2).all(|pair| pair[1].zxid.follows(pair[0].zxid)));
        singles.extend(txns.iter().cloned().map(Packet::Proposal));
    } else if let Packet::Acks(run) = packet {
        assert!(run.first < run.last && run.first.epoch() == run.last.epoch());
        singles.extend(run.zxids().map(Packet::Ack));
    } else if let Packet::Commits(run) = packet {
        assert!(run.first < run.last && run.first.epoch() == run.last.epoch());
        singles.extend(run.zxids().map(Packet::Commit));
    } else {
        singles.push(packet);
    }
}

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
    let again = take_packet(&mut bytes.clone(), MAX_DATA).ok().flatten().expect("our own bytes");
    assert_eq!(&again, packet);
}

//! The election port where servers elect by generation: one introduction, then frames of messages.
//!
//! # The introduction
//!
//! `i64` [`PROTOCOL_GENERATION`], `i64` id, `i32` n, n bytes `host:port` (none if n is 0). ZooKeeper's servers and
//! those of ours that hold its fast leader election refuse that number, and here theirs are refused: the two
//! kinds of election know nothing of one another.
//!
//! # The message
//!
//! | offset | field | |
//! |---|---|---|
//! | 0 | `i32` kind | 0 request, 1 answer, 2 standing; 256 is added to what concerns a pre-vote, 512 to an answer that grants |
//! | 4 | `i64` sender | |
//! | 12 | `i64` generation | |
//! | 20 | `i64` current epoch | |
//! | 28 | `i64` last zxid | |
//! | 36 | `i64` | request, answer: the generation asked for; standing: the leader |
//! | 44 | `i64` | request, answer: the attempt; standing: the beat |
//! | 52 | `i32` config length | |
//! | 56 | config text | |
//! | behind it | the mark, as behind that of a notification | |
//!
//! In front of each stands its length, as `i32`.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::election::{
    FRAME_HEAD, INTRODUCTION_HEAD, PROTOCOL_GENERATION, WHOLE_MARK, bounded, mark_in,
    parse_addresses, put_mark, whole_frame,
};
use super::error::DecodeError;
use super::limits::{MAX_ADDRESSES, MAX_FRAME};
use super::primitive::{i32_at, i32_in, i64_at, i64_in, wire_length};
use crate::address::HostPort;
use crate::generation_message::{Attempt, Body, Claim, Generation, GenerationMessage};
use crate::id::ServerId;
use crate::message::{Introduction, Mark};
use crate::zxid::{Epoch, Zxid};

/// A message without its config text.
const MESSAGE: usize = 56;
/// The same with the length of its frame.
const FRAMED_MESSAGE: usize = FRAME_HEAD + MESSAGE;
/// What is added to the kind of what concerns a pre-vote.
const PRE: i32 = 1 << 8;
/// What is added to the kind of an answer that grants.
const GRANTED: i32 = 1 << 9;

/// An introduction of a server that elects by generation, as bytes, with the first of its addresses.
pub fn encode_generation_introduction(introduction: &Introduction) -> Bytes {
    let address = introduction.addresses.first().map(HostPort::to_string).unwrap_or_default();
    let address = if address.len() <= MAX_ADDRESSES { address.as_bytes() } else { &[] };
    let mut out = BytesMut::with_capacity(INTRODUCTION_HEAD + address.len());
    out.put_i64(PROTOCOL_GENERATION);
    out.put_i64(introduction.id.0);
    out.put_i32(wire_length(address.len()));
    out.put_slice(address);
    out.freeze()
}

/// Takes such an introduction off the front of `buf`; none if more bytes are needed. Every error is fatal.
pub fn decode_generation_introduction(
    buf: &mut BytesMut,
) -> Result<Option<Introduction>, DecodeError> {
    let Some(first) = i64_at(buf, 0) else { return Ok(None) };
    if first != PROTOCOL_GENERATION {
        return Err(DecodeError::ElectsFast(first));
    }
    let (Some(id), Some(announced)) = (i64_at(buf, 8), i32_at(buf, 16)) else { return Ok(None) };
    let length = if announced == 0 {
        0
    } else {
        bounded(announced, MAX_ADDRESSES).ok_or(DecodeError::AddressLength(announced))?
    };
    let end = INTRODUCTION_HEAD + length;
    let Some(text) = buf.get(INTRODUCTION_HEAD..end) else { return Ok(None) };
    let addresses = if text.is_empty() { Vec::new() } else { parse_addresses(text)? };
    buf.advance(end);
    Ok(Some(Introduction { id: ServerId(id), addresses }))
}

/// Appends a message with its frame to `out`; nothing is allocated if `out` has room.
#[inline]
pub fn encode_generation(message: &GenerationMessage, out: &mut BytesMut) {
    let GenerationMessage { from, generation, claim, body, config, knows_probes } = message;
    let length = MESSAGE + config.len() + if *knows_probes { WHOLE_MARK } else { 0 };
    debug_assert!(length <= MAX_FRAME, "config of {} bytes", config.len());
    let attempt = |attempt: &Attempt, kind: i32| {
        let pre = if attempt.pre { PRE } else { 0 };
        (kind + pre, attempt.generation.0, attempt.number as i64)
    };
    let (kind, first, second) = match body {
        Body::VoteRequest(asked) => attempt(asked, 0),
        Body::VoteResponse { attempt: asked, granted } => {
            attempt(asked, 1 + if *granted { GRANTED } else { 0 })
        }
        Body::Heartbeat { leader, beat } => (2, leader.0, *beat as i64),
    };
    let mut fixed = [0; FRAMED_MESSAGE];
    let mut rest = &mut fixed[..];
    rest.put_i32(wire_length(length));
    rest.put_i32(kind);
    rest.put_i64(from.0);
    rest.put_i64(generation.0);
    rest.put_i64(claim.current_epoch.0);
    rest.put_i64(claim.last.0);
    rest.put_i64(first);
    rest.put_i64(second);
    rest.put_i32(wire_length(config.len()));
    out.reserve(FRAME_HEAD + length);
    out.extend_from_slice(&fixed);
    out.extend_from_slice(config);
    if *knows_probes {
        put_mark(Mark::KNOWS_PROBES, out);
    }
}

/// Takes a frame off the front of `buf` and decodes the message in it; none if more bytes are needed.
///
/// An error that is not fatal concerns this frame alone, which is gone then; call again for the next.
#[inline]
pub fn take_generation(buf: &mut BytesMut) -> Result<Option<GenerationMessage>, DecodeError> {
    let Some(length) = whole_frame(buf)? else { return Ok(None) };
    let end = FRAME_HEAD + length;
    match parse(&buf[FRAME_HEAD..end]) {
        Ok((mut message, config)) => {
            if config.is_empty() {
                buf.advance(end);
            } else {
                message.config = buf
                    .split_to(end)
                    .freeze()
                    .slice(config.start + FRAME_HEAD..config.end + FRAME_HEAD);
            }
            Ok(Some(message))
        }
        Err(error) => {
            buf.advance(end);
            Err(error)
        }
    }
}

/// The message without its config text, and where that is.
fn parse(payload: &[u8]) -> Result<(GenerationMessage, Range<usize>), DecodeError> {
    let too_short = DecodeError::GenerationLength(payload.len());
    let fixed = payload.first_chunk::<MESSAGE>().ok_or(too_short)?;
    let kind = i32_in::<0, _>(fixed);
    let (first, second) = (i64_in::<36, _>(fixed), i64_in::<44, _>(fixed) as u64);
    let attempt = Attempt { generation: Generation(first), number: second, pre: kind & PRE != 0 };
    let body = match (kind & !PRE & !GRANTED, kind & PRE != 0, kind & GRANTED != 0) {
        (0, _, false) => Body::VoteRequest(attempt),
        (1, _, granted) => Body::VoteResponse { attempt, granted },
        (2, false, false) => Body::Heartbeat { leader: ServerId(first), beat: second },
        _ => return Err(DecodeError::GenerationKind(kind)),
    };
    let announced = i32_in::<52, _>(fixed);
    let carried = payload.len() - MESSAGE;
    let length = usize::try_from(announced).ok().filter(|length| *length <= carried);
    let length = length.ok_or(DecodeError::ConfigLength { announced, carried })?;
    let claim =
        Claim { current_epoch: Epoch(i64_in::<20, _>(fixed)), last: Zxid(i64_in::<28, _>(fixed)) };
    let (from, generation) = (ServerId(i64_in::<4, _>(fixed)), Generation(i64_in::<12, _>(fixed)));
    let knows_probes = mark_in(&payload[MESSAGE + length..]).says(Mark::KNOWS_PROBES);
    let message =
        GenerationMessage { from, generation, claim, body, config: Bytes::new(), knows_probes };
    Ok((message, MESSAGE..MESSAGE + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: Body, config: &'static [u8]) -> GenerationMessage {
        GenerationMessage {
            from: ServerId(3),
            generation: Generation(6),
            claim: Claim { current_epoch: Epoch(5), last: Zxid(0x5_0000_0028) },
            body,
            config: Bytes::from_static(config),
            knows_probes: false,
        }
    }

    fn bodies() -> [Body; 7] {
        let attempt = |pre| Attempt { generation: Generation(7), number: 9, pre };
        [
            Body::VoteRequest(attempt(false)),
            Body::VoteRequest(attempt(true)),
            Body::VoteResponse { attempt: attempt(false), granted: false },
            Body::VoteResponse { attempt: attempt(false), granted: true },
            Body::VoteResponse { attempt: attempt(true), granted: true },
            Body::Heartbeat { leader: ServerId(3), beat: u64::MAX },
            Body::Heartbeat { leader: ServerId::NONE, beat: 0 },
        ]
    }

    #[test]
    fn the_layout() {
        let mut out = BytesMut::new();
        let attempt = Attempt { generation: Generation(7), number: 9, pre: true };
        encode_generation(
            &message(Body::VoteResponse { attempt, granted: true }, b"text"),
            &mut out,
        );
        let fields: [&[u8]; 10] = [
            &60_i32.to_be_bytes(),
            &(1_i32 + 256 + 512).to_be_bytes(),
            &3_i64.to_be_bytes(),
            &6_i64.to_be_bytes(),
            &5_i64.to_be_bytes(),
            &0x5_0000_0028_i64.to_be_bytes(),
            &7_i64.to_be_bytes(),
            &9_i64.to_be_bytes(),
            &4_i32.to_be_bytes(),
            b"text",
        ];
        assert_eq!(out[..], fields.concat());
    }

    #[test]
    fn what_is_said_is_what_is_heard_however_the_bytes_arrive() {
        for body in bodies() {
            for config in [&b""[..], b"server.1=a:1:2:participant"] {
                let mut whole = BytesMut::new();
                encode_generation(&message(body, config), &mut whole);
                let mut arriving = BytesMut::new();
                for (at, byte) in whole.iter().enumerate() {
                    assert_eq!(take_generation(&mut arriving), Ok(None), "after {at} bytes");
                    arriving.put_u8(*byte);
                }
                assert_eq!(take_generation(&mut arriving), Ok(Some(message(body, config))));
                assert!(arriving.is_empty());
            }
        }
    }

    /// Servers of ours from before there were probes read no further than the text.
    #[test]
    fn whether_probes_are_known_stands_behind_the_text() {
        let knows = GenerationMessage { knows_probes: true, ..message(bodies()[5], b"text") };
        let mut out = BytesMut::new();
        encode_generation(&knows, &mut out);
        let plain = FRAMED_MESSAGE + 4;
        assert_eq!(out[plain..], *b"qrt\x01\0\0\0\x02");
        assert_eq!(take_generation(&mut out), Ok(Some(knows)));
    }

    #[test]
    fn a_message_that_means_nothing_leaves_the_next_one_readable() {
        let good = message(bodies()[1], b"text");
        let bad = |at: usize, field: &[u8]| {
            let mut out = BytesMut::new();
            encode_generation(&good, &mut out);
            out[FRAME_HEAD + at..FRAME_HEAD + at + field.len()].copy_from_slice(field);
            encode_generation(&good, &mut out);
            let error = take_generation(&mut out).unwrap_err();
            assert!(!error.is_fatal(), "{error}");
            assert_eq!(take_generation(&mut out), Ok(Some(good.clone())));
            error
        };
        for kind in [3, -1, 2 + PRE, 2 + GRANTED, GRANTED, i32::MIN] {
            assert_eq!(bad(0, &kind.to_be_bytes()), DecodeError::GenerationKind(kind));
        }
        for announced in [5, -1, i32::MAX] {
            let error = DecodeError::ConfigLength { announced, carried: 4 };
            assert_eq!(bad(52, &announced.to_be_bytes()), error);
        }
        let mut short = BytesMut::from(&[0, 0, 0, 3, 1, 2, 3][..]);
        assert_eq!(take_generation(&mut short), Err(DecodeError::GenerationLength(3)));
    }

    #[test]
    fn servers_of_the_other_kind_are_refused_by_name() {
        use super::super::election::{decode_introduction, encode_introduction};
        let addresses = alloc::vec![HostPort { host: "h".into(), port: 3888 }];
        let mine = Introduction { id: ServerId(2), addresses };
        let mut bytes = BytesMut::from(&encode_generation_introduction(&mine)[..]);
        assert_eq!(decode_generation_introduction(&mut bytes.clone()), Ok(Some(mine.clone())));
        assert_eq!(decode_introduction(&mut bytes), Err(DecodeError::ElectsByGeneration));
        let mut bytes = BytesMut::from(&encode_introduction(&mine)[..]);
        assert_eq!(
            decode_generation_introduction(&mut bytes),
            Err(DecodeError::ElectsFast(-65536))
        );
        let none = Introduction { addresses: Vec::new(), ..mine };
        let mut bytes = BytesMut::from(&encode_generation_introduction(&none)[..]);
        assert_eq!(decode_generation_introduction(&mut bytes), Ok(Some(none)));
    }
}

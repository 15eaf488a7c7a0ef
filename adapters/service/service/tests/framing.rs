//! Frames of a client's connection: however the bytes come in, and lengths at their bounds.

use bytes::{Buf, BufMut, BytesMut};
use quorate_service::wire::{Frame, Framing, Garbled, REWATCH_MAX, WORDS, op};

use crate::support::frames;

/// ZooKeeper's default for `jute.maxbuffer`.
const BYTES_MAX: usize = 1_048_575;

fn all(framing: &mut Framing, buf: &mut BytesMut) -> Result<Vec<Frame>, Garbled> {
    let mut frames = Vec::new();
    while let Some(frame) = framing.take(buf)? {
        frames.push(frame);
    }
    Ok(frames)
}

#[test]
fn frames_are_the_same_wherever_the_bytes_are_split() {
    let (_, stream) = frames("connect + auth + getData in one write").next().unwrap();
    let whole = all(&mut Framing::new(BYTES_MAX), &mut stream.clone().into()).unwrap();
    let lengths: Vec<_> = whole
        .iter()
        .map(|frame| match frame {
            Frame::Frame(bytes) => bytes.len(),
            Frame::Word(word) => panic!("{word:?}"),
        })
        .collect();
    assert_eq!(lengths, [45, 29, 23]);
    for at in 0..=stream.len() {
        let (mut framing, mut buf) = (Framing::new(BYTES_MAX), BytesMut::from(&stream[..at]));
        let mut parts = all(&mut framing, &mut buf).unwrap();
        buf.extend_from_slice(&stream[at..]);
        parts.extend(all(&mut framing, &mut buf).unwrap());
        assert_eq!(parts, whole, "split at {at}");
        assert!(buf.is_empty());
    }
    let (mut framing, mut buf, mut single) = (Framing::new(BYTES_MAX), BytesMut::new(), Vec::new());
    for byte in stream {
        buf.put_u8(byte);
        single.extend(all(&mut framing, &mut buf).unwrap());
    }
    assert_eq!(single, whole);
}

#[test]
fn words_are_found_in_the_first_four_bytes_and_nowhere_else() {
    for word in WORDS {
        let (mut framing, mut buf) = (Framing::new(BYTES_MAX), BytesMut::new());
        for byte in word {
            assert_eq!(framing.take(&mut buf), Ok(None));
            buf.put_u8(byte);
        }
        buf.put_slice(b" and garbage");
        assert_eq!(framing.take(&mut buf), Ok(Some(Frame::Word(word))));
        buf.put_slice(&[0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 11]);
        assert_eq!(framing.take(&mut buf), Ok(None), "the conversation is over");
        assert!(buf.is_empty());
    }
    let mut other = BytesMut::from(&b"help"[..]);
    assert!(matches!(Framing::new(BYTES_MAX).take(&mut other), Err(Garbled::Length { .. })));
    let (mut framing, mut later) = (connected(), BytesMut::from(&b"ruok"[..]));
    assert!(matches!(framing.take(&mut later), Err(Garbled::Length { .. })));
}

/// Behind its connect request.
fn connected() -> Framing {
    let (_, connect) = frames("connect").next().unwrap();
    let mut framing = Framing::new(BYTES_MAX);
    assert!(matches!(framing.take(&mut connect.into()), Ok(Some(Frame::Frame(_)))));
    framing
}

fn taken(framing: &Framing, length: i32, behind: &[u8]) -> Result<Option<Frame>, Garbled> {
    let mut buf = BytesMut::new();
    buf.put_i32(length);
    buf.put_slice(behind);
    framing.clone().take(&mut buf)
}

#[test]
fn lengths_out_of_bounds_are_refused_as_soon_as_they_are_visible() {
    let (first, later) = (Framing::new(BYTES_MAX), connected());
    for framing in [&first, &later] {
        for length in [-1, -5, i32::MIN, i32::MAX] {
            assert!(matches!(taken(framing, length, &[]), Err(Garbled::Length { .. })));
        }
        assert_eq!(taken(framing, 1_048_575, &[]), Ok(None));
    }
    let refused = Garbled::Length { length: 1_048_576, max: BYTES_MAX };
    assert_eq!(taken(&first, 1_048_576, &[]), Err(refused));
    for length in 0..8 {
        let refused = Garbled::NoHeader(usize::try_from(length).unwrap());
        assert_eq!(taken(&later, length, &[]), Err(refused));
    }
}

#[test]
fn setting_watches_again_may_take_a_longer_frame() {
    let (first, later) = (Framing::new(BYTES_MAX), connected());
    let head = |code: i32| [&[255, 255, 255, 248][..], &code.to_be_bytes()].concat();
    let most = i32::try_from(REWATCH_MAX).unwrap();
    for length in [1_048_576, most] {
        for there in 0..8 {
            assert_eq!(taken(&later, length, &head(op::SET_DATA)[..there]), Ok(None));
        }
        for code in [op::SET_WATCHES, op::SET_WATCHES2] {
            assert_eq!(taken(&later, length, &head(code)), Ok(None));
            assert!(taken(&first, length, &head(code)).is_err());
        }
        let refused = Garbled::Length { length, max: BYTES_MAX };
        assert_eq!(taken(&later, length, &head(op::SET_DATA)), Err(refused));
    }
    assert!(taken(&later, most + 1, &[]).is_err());
    let mut body = BytesMut::from(&head(op::SET_WATCHES)[..]);
    body.resize(REWATCH_MAX, 0);
    let Ok(Some(Frame::Frame(frame))) = taken(&later, most, &body) else { panic!("it is whole") };
    assert_eq!(frame.remaining(), REWATCH_MAX);
    let limits = Framing::new(2 * REWATCH_MAX);
    assert_eq!(taken(&limits, most + 1, &[]), Ok(None), "what is allowed to all stays so");
}

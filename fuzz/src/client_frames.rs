//! Arbitrary bytes on the connection of a client: as a stream, as frames, as requests and as replies.

use bytes::{Bytes, BytesMut};
use quorate_service::wire::{
    ConnectRequest, ConnectResponse, Frame, Framing, Garbled, Request, Response, WORDS,
    WatcherEvent, split, split_reply,
};

/// Short, so that lengths lie on both sides of it.
const BYTES_MAX: usize = 256;

/// Feeds these bytes.
pub fn feed(data: &[u8]) {
    let (frames, end) = taken(data, &[]);
    let at = data.first().map_or(0, |first| usize::from(*first)) % (data.len() + 1);
    let (first, second) = data.split_at(at);
    assert_eq!(taken(first, second), (frames.clone(), end), "however the bytes come in");
    for (index, frame) in frames.into_iter().enumerate() {
        match frame {
            Frame::Word(word) => assert!(index == 0 && WORDS.contains(&word)),
            Frame::Frame(frame) if index == 0 => connect(&frame),
            Frame::Frame(frame) => {
                let (header, body) = split(frame).expect("no frame without a header is taken");
                request(header.op, &body);
            }
        }
    }
    // The same as a body, of an operation that its last byte chooses.
    let body = Bytes::copy_from_slice(data);
    let op = data.last().map_or(0, |last| i32::from(*last) - 12);
    connect(&body);
    request(op, &body);
    response(op, &body);
    if let Ok((header, body)) = split_reply(body) {
        event(&body);
        response(header.xid, &body);
    }
}

/// The frames in these bytes, which come in two parts, and what ends them.
fn taken(first: &[u8], second: &[u8]) -> (Vec<Frame>, Option<Garbled>) {
    let (mut framing, mut buf) = (Framing::new(BYTES_MAX), BytesMut::from(first));
    let mut frames = Vec::new();
    for part in [second, &[]] {
        loop {
            let before = buf.len();
            match framing.take(&mut buf) {
                Ok(None) => break,
                Ok(Some(frame)) => frames.push(frame),
                Err(garbled) => return (frames, Some(garbled)),
            }
            assert!(buf.len() < before, "a whole frame was taken");
        }
        buf.extend_from_slice(part);
    }
    (frames, None)
}

/// What is behind the length of a frame of our own.
fn body_of(frame: &Bytes) -> Bytes {
    let length = frame.first_chunk().map(|length| u32::from_be_bytes(*length) as usize);
    assert_eq!(length, Some(frame.len() - 4));
    frame.slice(4..)
}

fn connect(frame: &Bytes) {
    if let Ok(request) = ConnectRequest::decode(frame) {
        assert_eq!(ConnectRequest::decode(&body_of(&request.encode())), Ok(request));
    }
    if let Ok(response) = ConnectResponse::decode(frame) {
        assert_eq!(ConnectResponse::decode(&body_of(&response.encode())), Ok(response));
    }
}

/// Not every body comes back as it was: null may become empty, and U+FFFD is longer than what it replaces. But what
/// was understood is.
fn request(op: i32, body: &Bytes) {
    let Ok(Some(request)) = Request::decode(op, body) else { return };
    assert_eq!(request.op(), op);
    if let Request::Multi(elements) | Request::MultiRead(elements) = &request {
        assert!(elements.len() <= body.len() / 9, "each has a head");
    }
    let (header, again) = split(body_of(&request.frame(1))).expect("our own header");
    assert_eq!((header.xid, header.op), (1, op));
    assert_eq!(Request::decode(op, &again), Ok(Some(request)));
}

fn response(op: i32, body: &Bytes) {
    let Ok(Some(response)) = Response::decode(op, body) else { return };
    let mut again = BytesMut::new();
    response.encode(&mut again);
    assert_eq!(Response::decode(op, &again.freeze()), Ok(Some(response)));
}

fn event(body: &Bytes) {
    let Ok(event) = WatcherEvent::decode(body) else { return };
    let (header, again) =
        split_reply(body_of(&event.encode(quorate_core::zxid::Zxid(7)))).expect("our own header");
    assert_eq!(header.zxid.0, 7);
    assert_eq!(WatcherEvent::decode(&again), Ok(event));
}

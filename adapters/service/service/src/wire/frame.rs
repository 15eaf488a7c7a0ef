//! Taking frames off the bytes of a client's connection.
//!
//! ```text
//!   First ──┬─ four letters of an operator ─► Word, and nothing behind it is looked at
//!           └─ the connect request ─────────► Frame ──► Requests ─► Frame, Frame, …
//! ```

use bytes::{Buf, Bytes, BytesMut};

use super::header::RequestHeader;
use super::op;

/// The commands that an operator can send in place of a connect request.
pub const WORDS: [[u8; 4]; 18] = [
    *b"conf", *b"cons", *b"crst", *b"dirs", *b"dump", *b"envi", *b"gtmk", *b"hash", *b"isro",
    *b"mntr", *b"ruok", *b"srst", *b"srvr", *b"stat", *b"stmk", *b"wchc", *b"wchp", *b"wchs",
];

/// How long a frame of setWatches or setWatches2 may be, in bytes, where others may not be so long.
///
/// The C client sends all its watches in one frame of any length. Refused, it comes back with the same frame, for
/// ever (ZOOKEEPER-706).
pub const REWATCH_MAX: usize = 16 << 20;

/// The bytes of a length.
const LENGTH: usize = 4;

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// One of [`WORDS`]: to be answered with text, then the connection is closed.
    Word([u8; 4]),
    /// The bytes of a frame, without its length: first a connect request, then requests.
    Frame(Bytes),
}

/// Why a connection cannot go on: it is closed without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Garbled {
    /// A length that no frame may have.
    #[error("frame of {length} bytes, not 0 to {max} (jute.maxbuffer)")]
    Length {
        /// The announced length.
        length: i32,
        /// The longest allowed.
        max: usize,
    },
    /// A frame behind the first one that is shorter than the header of a request.
    #[error("request of {0} bytes, without a header")]
    NoHeader(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    First,
    Requests,
    /// A word was taken: the connection has nothing more to say.
    Nothing,
}

/// What a connection's next bytes are.
#[derive(Clone, Debug)]
pub struct Framing {
    awaited: Awaited,
    limit: usize,
}

impl Framing {
    /// Of a new connection. `bytes_max` is the length of the longest frame, ZooKeeper's `jute.maxbuffer`; for
    /// setWatches and setWatches2 it is [`REWATCH_MAX`], if that is more.
    pub const fn new(bytes_max: usize) -> Self {
        Self { awaited: Awaited::First, limit: bytes_max }
    }

    /// Takes the next frame off the front of `buf`; none if more bytes are needed, and then nothing is taken.
    ///
    /// A length that is out of bounds is refused as soon as it can be seen, and nothing is reserved by one that is
    /// not. Words are found in the first 4 bytes of a connection only; what follows one is thrown away.
    ///
    /// # Errors
    ///
    /// If the bytes are not those of a client. What is left of them means nothing.
    pub fn take(&mut self, buf: &mut BytesMut) -> Result<Option<Frame>, Garbled> {
        if self.awaited == Awaited::Nothing {
            buf.clear();
            return Ok(None);
        }
        let Some(head) = buf.first_chunk::<LENGTH>().copied() else { return Ok(None) };
        if self.awaited == Awaited::First && WORDS.contains(&head) {
            self.awaited = Awaited::Nothing;
            buf.clear();
            return Ok(Some(Frame::Word(head)));
        }
        let Some(length) = self.length(i32::from_be_bytes(head), buf)? else { return Ok(None) };
        if buf.len() - LENGTH < length {
            return Ok(None);
        }
        buf.advance(LENGTH);
        self.awaited = Awaited::Requests;
        Ok(Some(Frame::Frame(buf.split_to(length).freeze())))
    }

    /// How many bytes the frame at the front of `buf` has, its length among them; none if that depends on what has not yet
    /// come, or if it cannot be.
    pub fn announced(&self, buf: &[u8]) -> Option<usize> {
        if self.awaited == Awaited::Nothing {
            return None;
        }
        let head = buf.first_chunk::<LENGTH>().copied()?;
        let length = self.length(i32::from_be_bytes(head), buf).ok()??;
        Some(LENGTH + length)
    }

    /// The length of the frame at the front of `buf`; none if it depends on what has not yet come.
    fn length(&self, announced: i32, buf: &[u8]) -> Result<Option<usize>, Garbled> {
        let refused = |max| Garbled::Length { length: announced, max };
        let length = usize::try_from(announced).map_err(|_| refused(self.limit))?;
        if self.awaited == Awaited::First {
            return if length <= self.limit { Ok(Some(length)) } else { Err(refused(self.limit)) };
        }
        if length < RequestHeader::BYTES {
            return Err(Garbled::NoHeader(length));
        }
        if length <= self.limit {
            return Ok(Some(length));
        }
        if length > REWATCH_MAX {
            return Err(refused(self.limit.max(REWATCH_MAX)));
        }
        let Some(code) = buf.get(LENGTH + 4..).and_then(<[u8]>::first_chunk) else {
            return Ok(None);
        };
        match i32::from_be_bytes(*code) {
            op::SET_WATCHES | op::SET_WATCHES2 => Ok(Some(length)),
            _ => Err(refused(self.limit)),
        }
    }
}

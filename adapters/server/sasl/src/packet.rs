//! The packet that carries tokens between servers (`QuorumAuthPacket`): a number that nothing else begins with, a status, a
//! token.
//!
//! ```text
//!   0x5F2435013501EDCC │ status: 0 in progress, 1 success, -1 error │ length of the token, -1 for none │ token
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// What each packet begins with.
pub const MAGIC: u64 = 0x5f24_3501_3501_edcc;
/// The longest token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 64 << 10;

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// How far the login is.
    pub status: Status,
    /// The token; a null one becomes the empty one.
    pub token: Bytes,
}

/// How far the login is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// An answer is waited for.
    InProgress,
    /// It has succeeded.
    Success,
    /// It has failed.
    Error,
}

/// Bytes that are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// They begin with something else: the other side does not log in.
    #[error("no SASL packet begins so")]
    Magic,
    /// There is no such status.
    #[error("{0} is no status of a login")]
    Status(i32),
    /// The token is longer than any is.
    #[error("a token of {0} bytes; up to {TOKEN_BYTES_MAX} are read")]
    Length(i32),
}

impl Status {
    const fn number(self) -> i32 {
        match self {
            Self::InProgress => 0,
            Self::Success => 1,
            Self::Error => -1,
        }
    }
}

impl Packet {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(HEADER_BYTES + self.token.len());
        out.put_u64(MAGIC);
        out.put_i32(self.status.number());
        let length = i32::try_from(self.token.len()).unwrap_or(i32::MAX);
        out.put_i32(length);
        out.put_slice(&self.token);
        out.freeze()
    }

    /// Whether these bytes may begin a packet: as far as they go, they are those of [`MAGIC`].
    #[must_use]
    pub fn may_begin(bytes: &[u8]) -> bool {
        bytes.iter().zip(MAGIC.to_be_bytes()).all(|(byte, magic)| *byte == magic)
    }

    /// Takes a packet off the front, if it has come whole. Nothing is taken otherwise, whatever the bytes are.
    ///
    /// # Errors
    ///
    /// If they are no packet: as soon as that can be told.
    pub fn take(bytes: &mut BytesMut) -> Result<Option<Self>, PacketError> {
        if !Self::may_begin(bytes) {
            return Err(PacketError::Magic);
        }
        let Some((mut header, token)) = bytes.split_at_checked(HEADER_BYTES) else {
            return Ok(None);
        };
        header.advance(8);
        let status = match header.get_i32() {
            0 => Status::InProgress,
            1 => Status::Success,
            -1 => Status::Error,
            other => return Err(PacketError::Status(other)),
        };
        let length = match header.get_i32() {
            -1 => 0,
            length => match usize::try_from(length) {
                Ok(length) if length <= TOKEN_BYTES_MAX => length,
                Ok(_) | Err(_) => return Err(PacketError::Length(length)),
            },
        };
        if token.len() < length {
            return Ok(None);
        }
        bytes.advance(HEADER_BYTES);
        Ok(Some(Self { status, token: bytes.split_to(length).freeze() }))
    }
}

const HEADER_BYTES: usize = 16;

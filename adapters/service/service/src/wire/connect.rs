//! The first frame in each direction, which has no header, and the password of a session.
//!
//! | connect request | | response | |
//! |---|---|---|---|
//! | `i32` | protocol, 0; not looked at | `i32` | protocol, 0 |
//! | `i64` | last zxid seen | `i32` | timeout, ms |
//! | `i32` | timeout, ms | `i64` | session |
//! | `i64` | session, 0 for a new one | buffer | password, 16 bytes |
//! | buffer | password | `u8` | read-only |
//! | `u8` | read-only; clients before 3.4 leave it out | | left out where the request left it out |

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::zxid::Zxid;

use super::primitive::{Malformed, Reader, framed, put_data};

/// The bytes of a session's password.
pub const PASSWORD: usize = 16;

/// With what a client begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// 0; servers do not look at it.
    pub protocol: i32,
    /// The last transaction that the client knows of: a server that has less must not serve it.
    pub last_zxid: Zxid,
    /// How long the session shall live without a sign of the client, in milliseconds.
    pub timeout_ms: i32,
    /// The session that goes on, 0 for a new one.
    pub session: i64,
    /// That of the session, of any length; a null one becomes the empty one. Not looked at for a new session.
    pub password: Bytes,
    /// Whether the client takes a server in read-only mode. None: the byte was missing.
    pub read_only: Option<bool>,
}

impl ConnectRequest {
    /// Reads the first frame of a connection, without its length.
    ///
    /// # Errors
    ///
    /// If it ends too early, as a request does that is sent first; the connection is to be closed without a reply.
    pub fn decode(frame: &Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame);
        Ok(Self {
            protocol: reader.int()?,
            last_zxid: reader.zxid()?,
            timeout_ms: reader.int()?,
            session: reader.long()?,
            password: reader.data()?.unwrap_or_default(),
            read_only: reader.boolean().ok(),
        })
    }

    /// The whole frame, with its length.
    pub fn encode(&self) -> Bytes {
        framed(29 + self.password.len(), |out| {
            out.put_i32(self.protocol);
            out.put_i64(self.last_zxid.0);
            out.put_i32(self.timeout_ms);
            out.put_i64(self.session);
            put_data(out, Some(&self.password));
            put_read_only(out, self.read_only);
        })
    }
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The timeout that was agreed on, in milliseconds; 0 if the session is refused.
    pub timeout_ms: i32,
    /// The session; 0 if it is refused.
    pub session: i64,
    /// Its password; zeros if it is refused.
    pub password: [u8; PASSWORD],
    /// Whether the server is in read-only mode. None where the request left it out.
    pub read_only: Option<bool>,
}

impl ConnectResponse {
    /// To a client whose session is not known or whose password is wrong; the connection is closed behind it.
    pub const fn refused(read_only: Option<bool>) -> Self {
        Self { timeout_ms: 0, session: 0, password: [0; PASSWORD], read_only }
    }

    /// Reads the first frame of a server, without its length.
    ///
    /// # Errors
    ///
    /// If it ends too early, or its password has not 16 bytes.
    pub fn decode(frame: &Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame);
        reader.int()?;
        Ok(Self {
            timeout_ms: reader.int()?,
            session: reader.long()?,
            password: reader
                .data()?
                .and_then(|password| password.as_ref().try_into().ok())
                .ok_or(Malformed::Password)?,
            read_only: reader.boolean().ok(),
        })
    }

    /// The whole frame, with its length.
    pub fn encode(&self) -> Bytes {
        framed(37, |out| {
            out.put_i32(0);
            out.put_i32(self.timeout_ms);
            out.put_i64(self.session);
            put_data(out, Some(&self.password));
            put_read_only(out, self.read_only);
        })
    }
}

fn put_read_only(out: &mut BytesMut, read_only: Option<bool>) {
    if let Some(read_only) = read_only {
        out.put_u8(u8::from(read_only));
    }
}

/// The low 48 bits, all that `java.util.Random` holds.
const RANDOM_MASK: u64 = (1 << 48) - 1;
const RANDOM_FACTOR: u64 = 0x5_deec_e66d;
/// What ZooKeeper mixes into the seed, `SessionTrackerImpl`'s `superSecret`.
const SECRET: u64 = 0xb341_5c00;

/// The password of a session, as every ZooKeeper server computes it.
///
/// It is what `java.util.Random` draws for a seed of the session and a number that is in the source: it keeps
/// sessions apart that were mixed up, and nothing secret. Only the low 48 bits of the session count.
pub fn password(session: i64) -> [u8; PASSWORD] {
    let mut state = (session as u64 ^ SECRET ^ RANDOM_FACTOR) & RANDOM_MASK;
    let mut password = [0; PASSWORD];
    for word in password.chunks_exact_mut(4) {
        state = state.wrapping_mul(RANDOM_FACTOR).wrapping_add(0xb) & RANDOM_MASK;
        // The bits 16 to 47, the lowest byte first.
        for (byte, shift) in word.iter_mut().zip([16, 24, 32, 40]) {
            *byte = (state >> shift).to_le_bytes()[0];
        }
    }
    password
}

//! Why bytes are not a message, and whether the link can stay.
//!
//! ```text
//!   bytes ─┬─► a message
//!          ├─► an error inside a frame whose end is known: it is left out, the link stays
//!          └─► an error that loses the frame: the link ends
//! ```
//!
//! Which length is too long stands in `limits`; what becomes of a link is the caller's business.

use super::limits::{MAX_ADDRESSES, MAX_FRAME, MAX_IDENTITIES};
use crate::zxid::Zxid;

/// Why bytes from a peer are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The first number on an election link is neither a server id nor a known protocol.
    #[error("introduction begins with {0}, which is neither a server id nor a known protocol")]
    UnknownProtocol(i64),
    /// Behind the introduction come messages: the server elects by generation, and we do not.
    #[error("it elects by generation, and this server with ZooKeeper's fast leader election")]
    ElectsByGeneration,
    /// Behind the introduction come notifications, if anything: we elect by generation.
    #[error(
        "introduction begins with {0}: it elects with ZooKeeper's fast leader election, if at all, and this \
         server by generation"
    )]
    ElectsFast(i64),
    /// A message ends before its fields do.
    #[error("message of {0} bytes is too short for its fields")]
    GenerationLength(usize),
    /// A message of a kind that does not exist.
    #[error("message of unknown kind {0}")]
    GenerationKind(i32),
    /// An introduction announces too few or too many bytes of addresses.
    #[error("introduction announces {0} bytes of addresses, not 1 to {MAX_ADDRESSES}")]
    AddressLength(i32),
    /// The addresses of an introduction are not UTF-8.
    #[error("addresses of the introduction are not UTF-8 after byte {0}")]
    AddressText(usize),
    /// An address of an introduction is not a host and a port.
    #[error("address {0} of the introduction is not host:port")]
    Address(usize),
    /// An address of an introduction has a port that does not exist.
    #[error("address {index} of the introduction has port {port}, above 65535")]
    Port {
        /// Which address, from 0.
        index: usize,
        /// The announced port.
        port: u64,
    },
    /// A frame announces a length that no frame may have.
    #[error("frame of {0} bytes, not 1 to {MAX_FRAME}")]
    FrameLength(i32),
    /// A notification ends before the fields of its form do.
    #[error("notification of {0} bytes is too short for its fields")]
    NotificationLength(usize),
    /// The state in a notification does not exist.
    #[error("state {0} in a notification, not 0 to 3")]
    State(i32),
    /// A notification announces more configuration than it carries, or a negative amount.
    #[error("notification announces {announced} bytes of configuration, carries {carried}")]
    ConfigLength {
        /// The announced length.
        announced: i32,
        /// The bytes that are there.
        carried: usize,
    },
    /// A buffer or string in a packet announces a length that none may have.
    #[error(
        "buffer of {length} bytes in a packet, not -1 to {max} (jute.maxbuffer and its extrasize, which have to be \
         the same on all servers)"
    )]
    BufferLength {
        /// The announced length.
        length: i32,
        /// The longest allowed.
        max: usize,
    },
    /// A packet announces a number of identities that none may have.
    #[error("{0} identities in a packet, not -1 to {MAX_IDENTITIES}")]
    IdentityCount(i32),
    /// A string of an identity is absent.
    #[error("identity {0} of a packet lacks its scheme or id")]
    IdentityNull(usize),
    /// The identities of a packet are too long all together.
    #[error("identities of a packet take {length} bytes, more than {max}")]
    IdentitiesLength {
        /// How many they take.
        length: usize,
        /// The most allowed.
        max: usize,
    },
    /// A packet of a type that does not exist (yet).
    #[error("packet of unknown type {0}")]
    UnknownPacket(i32),
    /// A packet lacks the data that its type cannot do without.
    #[error("{0} without data")]
    PacketWithoutData(&'static str),
    /// A packet's data end before the fields of its type do.
    #[error("{packet} with {length} bytes of data, needs {least}")]
    PacketData {
        /// The packet's name.
        packet: &'static str,
        /// The bytes that are there.
        length: usize,
        /// The fewest that its fields take.
        least: usize,
    },
    /// A packet says another zxid than the transaction in it.
    #[error("{packet} of {outside} carries transaction {inside}")]
    TwoZxids {
        /// The packet's name.
        packet: &'static str,
        /// The packet's zxid.
        outside: Zxid,
        /// The transaction's.
        inside: Zxid,
    },
}

impl DecodeError {
    /// Whether the link must be closed.
    ///
    /// If not, the offending message has been taken off the buffer whole, and the next one follows:
    ///
    /// | error | why the link can stay |
    /// |---|---|
    /// | [`NotificationLength`](Self::NotificationLength), [`State`](Self::State), [`ConfigLength`](Self::ConfigLength) | the frame around the notification was in order, and the next vote replaces this one |
    /// | [`GenerationLength`](Self::GenerationLength), [`GenerationKind`](Self::GenerationKind) | the same, of a message |
    /// | [`UnknownPacket`](Self::UnknownPacket) | its length was in order, and ZooKeeper ignores such packets |
    ///
    /// A malformed packet of a known type is fatal although its end is known: packets form a sequence,
    /// and one that is left out is worse than a broken link. After a fatal error the content of the
    /// buffer means nothing.
    pub const fn is_fatal(&self) -> bool {
        !matches!(
            self,
            Self::NotificationLength(_)
                | Self::State(_)
                | Self::ConfigLength { .. }
                | Self::GenerationLength(_)
                | Self::GenerationKind(_)
                | Self::UnknownPacket(_)
        )
    }
}

//! Messages to bytes and back, exactly as Apache ZooKeeper 3.4 to 3.9 lays them out.
//!
//! ```text
//!                  election port                                quorum port
//!
//!   dialler ── Introduction ─────────► acceptor     learner ◄── Packet Packet Packet ──► leader
//!           ◄─ frame frame frame ────►                            └─ after SNAP: the raw
//!              └ i32 length │ Notification                           snapshot, no packets
//! ```
//!
//! Every integer is big-endian. The `decode_…` functions take whole messages off the front of a buffer
//! that the caller fills from the socket; `Ok(None)` means that more bytes are needed, and nothing was
//! taken. They look at announced lengths before anything else: a length out of bounds is refused as
//! soon as it is visible, and nothing is ever allocated by a length whose bytes have not arrived.
//! Payloads are slices of the buffer, not copies, so a payload that is kept keeps its buffer alive.
//!
//! No bytes whatever make a decoder panic. What went wrong is a [`DecodeError`], and
//! [`DecodeError::is_fatal`] says what to do about it: close the link, or go on with the next message.
//! A malformed notification that took the receiver down with it was ZOOKEEPER-3769.
//!
//! After [`Packet::Snap`](crate::message::Packet::Snap) the leader sends a snapshot that is not
//! framed; the link must read that stream to its end before it calls [`decode_packet`] again.

mod election;
mod error;
mod generation;
mod identities;
mod limits;
mod packet;
mod primitive;
mod probe;
mod quorum;
mod runs;

pub use election::{
    PROTOCOL_GENERATION, PROTOCOL_MANY_ADDRESSES, PROTOCOL_ONE_ADDRESS, decode_frame,
    decode_introduction, decode_notification, encode_introduction, encode_notification,
    take_notification,
};
pub use error::DecodeError;
pub use generation::{
    decode_generation_introduction, encode_generation, encode_generation_introduction,
    take_generation,
};
pub use limits::{MAX_ADDRESSES, MAX_DATA, MAX_FRAME, MAX_IDENTITIES};
pub use probe::{encode_probe, take_probe};
pub use quorum::{decode_packet, encode_around_payload, encode_packet, take_packet};

//! The protocol of ZooKeeper's clients: bytes to messages and back, as Apache ZooKeeper 3.3 to 3.9 lays them out.
//!
//! ```text
//!   client                                                            server
//!     ConnectRequest ─────────────────────────────────────────────────►
//!     ◄───────────────────────────────────────────────── ConnectResponse
//!     RequestHeader │ Request ────────────────────────────────────────►
//!     ◄────────────────────────── ReplyHeader │ Response, if err is 0
//!     ◄────────────────────────── ReplyHeader, xid -1 │ WatcherEvent
//!
//!   every one in a frame: i32 length, and so many bytes          all big-endian
//! ```
//!
//! [`Framing`] takes frames off a connection's bytes, [`split`] a request's header off its frame, and
//! [`Request::decode`] reads what is behind it; [`reply`] writes a whole frame, and the `put_…` functions what stands
//! in it. The other way round, which simulators, load generators and tests need, is here as well.
//!
//! No bytes whatever make a decoder panic. Nothing is allocated by a length or a count that was not checked against
//! the bytes that are there; data are slices of the frame, so data that are kept keep the frame's buffer alive. What
//! stands behind the last field is ignored, as ZooKeeper does.
//!
//! What is decoded need not make sense: paths, flags, modes, kinds of watches and versions are as the client wrote
//! them.

pub mod code;
mod connect;
mod decode;
mod encode;
pub mod event;
mod frame;
mod header;
pub mod op;
mod primitive;
mod reply;
mod request;
mod response;

pub use connect::{ConnectRequest, ConnectResponse, PASSWORD, password};
pub use event::WatcherEvent;
pub use frame::{Frame, Framing, Garbled, REWATCH_MAX, WORDS};
pub use header::{
    AUTH_XID, NOTIFICATION_XID, PING_XID, ReplyHeader, RequestHeader, SET_WATCHES_XID, split,
    split_reply,
};
pub use primitive::{Malformed, Reader, put_acl, put_data, put_text, put_vector};
pub use quorate_znode::stat::Stat;
pub use reply::{
    MultiResult, failed_sasl, put_children, put_multi, put_number, put_path, put_stat,
    put_who_am_i, reply,
};
pub use request::Request;
pub use response::Response;

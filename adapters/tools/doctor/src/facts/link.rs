//! A connection between a server on this machine and another member, as the kernel sees it.

use std::net::SocketAddr;

use quorate_core::id::ServerId;

/// A connection for elections or of a quorum, with what the kernel counts of it (`TCP_INFO`).
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The other member.
    pub server: ServerId,
    /// Our end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The smoothed round trip, in milliseconds.
    pub round_trip_ms: Option<f64>,
    /// Segments sent since the connection was made.
    pub segments: u64,
    /// Of those, how many were sent again.
    pub repeated: u64,
    /// Sent, and not acknowledged now.
    pub unacknowledged: u64,
    /// How often in a row the oldest of those was sent again.
    pub backoff: u64,
    /// Bytes that the other end has acknowledged.
    pub acknowledged_bytes: u64,
    /// How long ago something came, in milliseconds.
    pub received_ms_ago: Option<u64>,
    /// The longest segment that is sent, in bytes.
    pub segment_bytes: Option<u64>,
}

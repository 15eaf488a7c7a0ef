//! A transaction: who asked for it, when, what kind it is, and its opaque bytes.
//!
//! ```text
//!   ┌───────────┬────────┬────────┬────────┬────────┬──────────────────────────────┐
//!   │ client 8  │ cxid 4 │ zxid 8 │ time 8 │ kind 4 │ body, and perhaps a digest … │   big-endian
//!   └───────────┴────────┴────────┴────────┴────────┴──────────────────────────────┘
//! ```
//!
//! These bytes are the same in a PROPOSAL, an INFORM, the log and a later DIFF; no server takes them apart
//! on the way. What the body means is the application's business.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use bytes::{Buf, Bytes};
use thiserror::Error;

use crate::zxid::Zxid;

/// A transaction, numbered by the leader that proposed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Txn {
    /// Its number.
    pub zxid: Zxid,
    /// Who, when and what kind.
    pub header: TxnHeader,
    /// Everything after the header, opaque.
    pub body: Bytes,
}

/// Transactions in order without a hole, shared by all who are handed them. A single one takes no memory
/// of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Txns {
    /// One.
    One(Txn),
    /// Any number.
    Many(Arc<[Txn]>),
}

impl Deref for Txns {
    type Target = [Txn];

    fn deref(&self) -> &[Txn] {
        match self {
            Self::One(txn) => core::slice::from_ref(txn),
            Self::Many(txns) => txns,
        }
    }
}

impl From<Txn> for Txns {
    fn from(txn: Txn) -> Self {
        Self::One(txn)
    }
}

impl<const N: usize> From<[Txn; N]> for Txns {
    fn from(txns: [Txn; N]) -> Self {
        Self::Many(txns.into())
    }
}

impl From<Vec<Txn>> for Txns {
    fn from(txns: Vec<Txn>) -> Self {
        Self::Many(txns.into())
    }
}

impl FromIterator<Txn> for Txns {
    fn from_iter<I: IntoIterator<Item = Txn>>(txns: I) -> Self {
        Self::Many(txns.into_iter().collect())
    }
}

/// A transaction before it has a number: what an application makes of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Draft {
    /// Who, when and what kind.
    pub header: TxnHeader,
    /// Everything after the header, opaque.
    pub body: Bytes,
}

impl Draft {
    /// As it is, if it takes at most `most` bytes in a packet or a log record; else, as an error, what is
    /// proposed in its place: the transaction that refuses the request, with [`Txn::TOO_LONG`]. One request
    /// stays one transaction, and the caller that asked is told.
    ///
    /// The maker of drafts asks before the next one is made, and if this one is void lets the application
    /// forget it: what is prepared after it must not count on what never comes.
    ///
    /// A ZooKeeper leader proposes it all the same, and every server that reads it ends the link
    /// (ZOOKEEPER-3496, -4306).
    ///
    /// # Errors
    ///
    /// The refusal, which takes the place of what is too long.
    pub fn fit(self, most: usize) -> Result<Self, Self> {
        if self.fits(most) {
            return Ok(self);
        }
        let header = TxnHeader { kind: Txn::REJECTED, ..self.header };
        let body = Bytes::copy_from_slice(&Txn::TOO_LONG.to_be_bytes());
        let refusal = Self { header, body };
        Err(refusal)
    }

    /// Whether it takes at most `most` bytes in a packet or a log record.
    pub fn fits(&self, most: usize) -> bool {
        Txn::HEADER_BYTES + self.body.len() <= most
    }
}

/// What is said of a transaction beside its number; the leader's application supplies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TxnHeader {
    /// The client's session.
    pub client: i64,
    /// The client's own number of the request.
    pub cxid: i32,
    /// The leader's wall clock, in milliseconds since 1970.
    pub time: i64,
    /// The kind of transaction, ZooKeeper's operation code.
    pub kind: i32,
}

/// A request of a client: the session it came in, and the client's own number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// The client's session.
    pub client: i64,
    /// The client's own number of the request.
    pub cxid: i32,
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}:{}", self.client, self.cxid)
    }
}

impl TxnHeader {
    /// The request that it came of.
    pub const fn request(&self) -> RequestId {
        RequestId { client: self.client, cxid: self.cxid }
    }
}

impl Txn {
    /// The kind of a transaction that brings another membership.
    pub const RECONFIGURATION: i32 = 16;
    /// The kind of a draft, never of a transaction, that asks for another membership and may not: with the number that
    /// says why, and the request behind it. What else is wrong with it is found first, as in ZooKeeper.
    pub const RECONFIGURATION_DENIED: i32 = -16;
    /// The kind of a transaction that says that a request was refused, with a number that says why.
    pub const REJECTED: i32 = -1;
    /// The number with which a request is refused whose transaction is too long: ZooKeeper's marshalling
    /// error, as for whatever cannot be written.
    pub const TOO_LONG: i32 = -5;
    /// How many bytes stand before the body.
    pub const HEADER_BYTES: usize = 32;
    /// The longest that every server reads, in bytes, whatever it is configured to: ZooKeeper's `jute.maxbuffer`
    /// and the extra size for records around it, both at their defaults.
    pub const BYTES_MAX: usize = 2 * 0xf_ffff;

    /// The bytes before the body.
    pub fn head(&self) -> [u8; Self::HEADER_BYTES] {
        let mut head = [0; Self::HEADER_BYTES];
        head[..8].copy_from_slice(&self.header.client.to_be_bytes());
        head[8..12].copy_from_slice(&self.header.cxid.to_be_bytes());
        head[12..20].copy_from_slice(&self.zxid.0.to_be_bytes());
        head[20..28].copy_from_slice(&self.header.time.to_be_bytes());
        head[28..].copy_from_slice(&self.header.kind.to_be_bytes());
        head
    }

    /// How many bytes it takes in a packet or a log record.
    pub const fn len(&self) -> usize {
        Self::HEADER_BYTES + self.body.len()
    }

    /// Never: the header alone takes 32 bytes.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Takes the bytes of a packet or a log record apart, without copying the body.
    ///
    /// # Errors
    ///
    /// If they are fewer than a header has.
    pub fn decode(mut bytes: Bytes) -> Result<Self, ShortTxn> {
        if bytes.len() < Self::HEADER_BYTES {
            return Err(ShortTxn { length: bytes.len() });
        }
        let client = bytes.get_i64();
        let cxid = bytes.get_i32();
        let zxid = Zxid(bytes.get_i64());
        let (time, kind) = (bytes.get_i64(), bytes.get_i32());
        Ok(Self { zxid, header: TxnHeader { client, cxid, time, kind }, body: bytes })
    }
}

/// A transaction that ends within its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a transaction of {length} bytes, its header alone takes 32")]
pub struct ShortTxn {
    /// How many bytes there were.
    pub length: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_goes_to_bytes_and_back() {
        let header = TxnHeader { client: 0x0100_0000_0000_0001, cxid: 7, time: 1_700_000, kind: 5 };
        let txn = Txn { zxid: Zxid(0x5_0000_0010), header, body: Bytes::from_static(b"body") };
        let bytes = [&txn.head()[..], &txn.body].concat();
        assert_eq!(bytes.len(), txn.len());
        assert_eq!(Txn::decode(bytes.into()), Ok(txn));
    }

    #[test]
    fn a_draft_that_is_too_long_gives_way_to_its_refusal() {
        let header = TxnHeader { client: 7, cxid: 8, time: 9, kind: 5 };
        let draft = |length| Draft { header, body: alloc::vec![1; length].into() };
        let most = 1000;
        for length in [0, 1, most - Txn::HEADER_BYTES - 1, most - Txn::HEADER_BYTES] {
            assert_eq!(draft(length).fit(most), Ok(draft(length)));
        }
        let header = TxnHeader { kind: Txn::REJECTED, ..header };
        let body = Bytes::copy_from_slice(&(-5_i32).to_be_bytes());
        for length in [most - Txn::HEADER_BYTES + 1, most, 3 << 20] {
            assert_eq!(draft(length).fit(most), Err(Draft { header, body: body.clone() }));
        }
    }

    #[test]
    fn a_header_cut_short_is_refused() {
        for length in 0..Txn::HEADER_BYTES {
            assert_eq!(Txn::decode(Bytes::from(alloc::vec![0; length])), Err(ShortTxn { length }));
        }
    }
}

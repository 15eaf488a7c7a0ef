//! What a connection speaks, told by its first byte.
//!
//! A TLS handshake begins with 0x16 (RFC 8446, 5.1), an introduction on the election port with 0xff or 0x00, a packet on the
//! quorum port with 0x00, ZooKeeper's SASL with 0x5f: none is taken for another, and bytes may come one at a time.

use std::fmt;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// TLS.
    Tls,
    /// What servers speak without it.
    Plain,
}

impl Speaks {
    /// What begins with this byte.
    pub const fn told_by(first: u8) -> Self {
        if first == HANDSHAKE { Self::Tls } else { Self::Plain }
    }
}

/// The first bytes of a connection that is refused, for people: in hexadecimal, and what they are.
#[derive(Clone, Copy, Debug)]
pub struct FirstBytes<'a>(pub &'a [u8]);

impl fmt::Display for FirstBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(8)];
        for byte in shown {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(match shown {
            [HANDSHAKE, 3, ..] => ": a ClientHello; that peer has sslQuorum=true",
            [0xff, 0xff, ..] => ": an election introduction; that peer has sslQuorum=false",
            [0x5f, 0x24, ..] => ": SASL; that peer has sslQuorum=false",
            [0, ..] => ": a packet or an old introduction; that peer has sslQuorum=false",
            _ => ": nothing that servers speak",
        })
    }
}

/// The same of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientFirstBytes<'a>(pub &'a [u8]);

impl fmt::Display for ClientFirstBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(8)];
        for byte in shown {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(match shown {
            [HANDSHAKE, 3, ..] => ": a ClientHello; that client has been told to use TLS",
            [0, ..] => {
                ": a client without TLS; it has to be told of it (zookeeper.client.secure=true)"
            }
            [b'a'..=b'z', b'a'..=b'z', ..] => {
                ": a word of four letters; they are answered within TLS, too"
            }
            _ => ": nothing that clients speak",
        })
    }
}

/// The content type of a handshake.
const HANDSHAKE: u8 = 0x16;

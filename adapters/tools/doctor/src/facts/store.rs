//! The stores of keys of a server on this machine, and who may read its secrets.

use std::path::PathBuf;

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;

/// The stores for links with other servers, read as their server would.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    /// The server, if it is known.
    pub id: Option<ServerId>,
    /// The zoo.cfg that names them.
    pub file: PathBuf,
    /// Why the server could not use them, each with its file: nothing that comes of time, of names or of uses.
    pub problems: Vec<String>,
    /// What is read here, and would not be by a server in Java; likewise.
    pub java_cannot: Vec<String>,
    /// The server's own certificate, and then those of its issuers; empty if it cannot be read.
    pub own: Vec<Held>,
    /// Those whom it trusts.
    pub trusted: Vec<Held>,
}

/// A certificate in a store.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// For whom it is, as RFC 4514 writes it.
    pub subject: String,
    /// When it begins to hold, in seconds since 1970.
    pub from: i64,
    /// When it ends, likewise.
    pub to: i64,
    /// Whether who dials may prove itself by it, and who accepts.
    pub dials: bool,
    /// Whether who accepts may.
    pub accepts: bool,
    /// The members that it names.
    pub members: Vec<ServerId>,
    /// Those of them that it names by a wildcard alone.
    pub by_wildcard: Vec<ServerId>,
    /// What is too weak about it.
    pub weakness: Option<String>,
    /// It itself, in DER.
    pub der: Vec<u8>,
}

/// What a member showed in a handshake.
#[derive(Clone, Debug)]
pub struct Served {
    /// The member.
    pub id: ServerId,
    /// The port.
    pub address: HostPort,
    /// Its certificate, and then those of its issuers that it showed.
    pub chain: Vec<Held>,
}

/// A member whose certificates another would not trust, by that one's stores here.
#[derive(Clone, Debug)]
pub struct Distrust {
    /// Whose certificates.
    pub of: ServerId,
    /// Where they were seen: a file, or a port.
    pub seen: String,
    /// Who would not trust them.
    pub by: ServerId,
    /// The zoo.cfg that names its stores.
    pub file: PathBuf,
    /// Why.
    pub why: String,
}

/// A file with a secret that others than its owner and its group may read.
#[derive(Clone, Debug)]
pub struct Readable {
    /// The server whose it is, if it is known.
    pub id: Option<ServerId>,
    /// The zoo.cfg that names it.
    pub file: PathBuf,
    /// The key that names it, without `zookeeper.`.
    pub key: String,
    /// The file.
    pub path: PathBuf,
    /// Its mode, the last nine bits.
    pub mode: u32,
}

//! To whom one logs in: what ZooKeeper's servers and clients agree on without a word.

/// A service that is logged in to. Its name is the realm, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The protocol, before the slash of a digest-uri.
    pub protocol: &'static str,
    /// The name of the server, behind it, and the realm of its users.
    pub name: &'static str,
}

/// The service for clients (`ZooKeeperSaslServer`).
pub const CLIENTS: Service = Service { protocol: "zookeeper", name: "zk-sasl-md5" };
/// What servers log in to at each other (`QuorumAuth`).
pub const SERVERS: Service = Service { protocol: "zookeeper-quorum", name: "zk-quorum-sasl-md5" };

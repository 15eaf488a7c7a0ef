//! What an operator says of a service.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use quorate_metrics::Figures;
use quorate_sasl::{Nonces, Users};

/// The settings of a service. The defaults are ZooKeeper's.
#[derive(Clone)]
pub struct Options {
    /// The shortest time-out that a session may have (`minSessionTimeout`): two ticks, unless said otherwise.
    pub session_timeout_min: Option<Duration>,
    /// The longest one (`maxSessionTimeout`): twenty ticks, unless said otherwise.
    pub session_timeout_max: Option<Duration>,
    /// How many writes of its clients a server has under way (`globalOutstandingLimit`); more wait. Where more than two
    /// servers vote, each that does has its part of it: this, divided by one less than they are
    /// (`LeaderZooKeeperServer.getGlobalOutstandingLimit`).
    pub outstanding_max: usize,
    /// Whether a leader serves clients (`leaderServes`). One that is the only voter does either way.
    pub leader_serves: bool,
    /// How many paths one connection may watch (`quorate.maxWatchesPerConnection`), whatever kinds of watches on each. What
    /// would set one more is refused as throttled (-127) and reads nothing; what would set watches again after a
    /// reconnect sets none, and its connection is closed: clients take no notice of a refusal there.
    pub watches_per_client_max: usize,
    /// How many all connections may watch together, each path once for each of them (`quorate.maxWatches`).
    pub watches_max: usize,
    /// `user:` and what stands behind it of the identity that may do everything
    /// (`DigestAuthenticationProvider.superDigest`).
    pub super_digest: Option<String>,
    /// The subject of the certificate whose holder may do everything (`X509AuthenticationProvider.superUser`), as access
    /// lists of the scheme `x509` have it.
    pub x509_super: Option<String>,
    /// Who may log in by SASL (the section `Server` of a JAAS file): without it there is none.
    pub sasl: Option<Arc<Sasl>>,
    /// A connection that has proved an identity by none of these schemes may only do that: anything else ends it
    /// (`sessionRequireClientSASLAuth`, `enforce.auth.schemes`). Where there are none, nothing has to be proved.
    pub required_schemes: Vec<String>,
    /// By what names and passwords become digests (`DigestAuthenticationProvider.digestAlg`): the same on all servers.
    pub digest_algorithm: DigestAlgorithm,
    /// Access lists forbid nothing (`skipACL`).
    pub skip_acl: bool,
    /// What a client may not do according to its own server's tree is refused there, at once, ahead of what it asked for
    /// before (`enableEagerACLCheck`). What that tree permits the leader judges all the same.
    pub eager_acl_check: bool,
    /// Containers and TTL nodes are what their owners say (`extendedTypesEnabled`).
    pub extended_types: bool,
    /// The words of four letters that are answered (`4lw.commands.whitelist`).
    pub words: Words,
    /// How often a leader looks for containers and TTL nodes that are due (`znode.container.checkIntervalMs`).
    pub container_interval: Duration,
    /// How many of those a leader deletes in a minute, at most (`znode.container.maxPerMinute`).
    pub containers_per_minute: u32,
    /// How long a container may have had no child at all (`znode.container.maxNeverUsedIntervalMs`): for ever, if absent.
    pub container_unused_max: Option<Duration>,
    /// How many requests of its clients a server has in process, at most (`request_throttle_max_requests`): any number, if
    /// absent. More wait, each behind those before it.
    pub throttled_requests_max: Option<usize>,
    /// A request that has waited for those longer than the time-out of its session ends its connection, and what stands
    /// behind it is dropped (`request_throttle_drop_stale` together with `request_stale_latency_check`). What was sent by
    /// a client that has gone is dropped either way. To close a session is always carried out.
    pub drop_stale: bool,
    /// Whether events carry the zxid of their transaction, as those of ZooKeeper 3.9 do; -1 otherwise. Those that catch up
    /// after a reconnect have none.
    pub event_zxids: bool,
    /// Whether a create2 within a multi becomes a transaction of its own kind, which Java servers before 3.7.2 and 3.8.2 do
    /// not know there; a create otherwise. Its client is told the same.
    pub create2_in_multi: bool,
    /// Whether transactions carry the digest of the tree (`digest.enabled`), see [`Rules`](quorate_znode::Rules::digest).
    pub tree_digests: bool,
    /// What is told of changes (`audit.enable`); nothing, unless it is said.
    pub audit: Option<Audit>,
    /// What words tell of the server beneath the service.
    pub beneath: Option<Arc<dyn Beneath>>,
}

/// Without the digest of who may do everything: settings are logged.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let super_digest = self.super_digest.as_ref().map(|_| "…");
        f.debug_struct("Options")
            .field("session_timeout_min", &self.session_timeout_min)
            .field("session_timeout_max", &self.session_timeout_max)
            .field("outstanding_max", &self.outstanding_max)
            .field("leader_serves", &self.leader_serves)
            .field("watches_per_client_max", &self.watches_per_client_max)
            .field("watches_max", &self.watches_max)
            .field("super_digest", &super_digest)
            .field("x509_super", &self.x509_super)
            .field("sasl", &self.sasl)
            .field("required_schemes", &self.required_schemes)
            .field("digest_algorithm", &self.digest_algorithm)
            .field("skip_acl", &self.skip_acl)
            .field("eager_acl_check", &self.eager_acl_check)
            .field("extended_types", &self.extended_types)
            .field("words", &self.words)
            .field("container_interval", &self.container_interval)
            .field("containers_per_minute", &self.containers_per_minute)
            .field("container_unused_max", &self.container_unused_max)
            .field("throttled_requests_max", &self.throttled_requests_max)
            .field("drop_stale", &self.drop_stale)
            .field("event_zxids", &self.event_zxids)
            .field("create2_in_multi", &self.create2_in_multi)
            .field("tree_digests", &self.tree_digests)
            .field("audit", &self.audit)
            .field("beneath", &self.beneath)
            .finish()
    }
}

/// What is told of changes (`audit.enable`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// How.
    pub format: AuditFormat,
    /// The name of who runs the server, which is the user of what no client has asked for.
    pub server_user: String,
}

/// How a record of the audit log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditFormat {
    /// As ZooKeeper's logger does: a time, and fields with tabs between them.
    #[default]
    Java,
    /// One JSON object, in which a failed proof of identity is told as well.
    Json,
}

/// What the words of four letters tell of the server beneath the service: its place in the ensemble, its settings.
pub trait Beneath: fmt::Debug + Send + Sync {
    /// The answer to `conf`.
    fn configuration(&self) -> String;

    /// The figures that are not the service's.
    fn figures(&self) -> Figures;

    /// The answer to `dirs`: how much is on disk.
    fn directories(&self) -> String {
        String::new()
    }
}

/// How clients log in by SASL: DIGEST-MD5, as `ZooKeeperSaslServer` speaks it. `Debug` shows no password.
#[derive(Debug)]
pub struct Sasl {
    /// Who may.
    pub users: Users,
    /// A nonce for each login, out of a seed that comes from the operating system's randomness.
    pub nonces: Nonces,
    /// Who of them may do everything (`superUser`, `superUser.*`).
    pub super_users: Vec<String>,
    /// Who has failed may stay, without an identity (`allowSaslFailedClients`); not where one is required.
    pub failed_stay: bool,
}

/// By what a name and a password become a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DigestAlgorithm {
    /// SHA-1, which ZooKeeper's clients and tools reckon with.
    #[default]
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl DigestAlgorithm {
    /// The one of this name, as Java knows it: `SHA1`, `SHA-256`, …
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "SHA1" | "SHA-1" | "SHA" => Self::Sha1,
            "SHA-256" => Self::Sha256,
            "SHA-384" => Self::Sha384,
            "SHA-512" => Self::Sha512,
            _ => return None,
        })
    }
}

/// Which words of four letters are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Words {
    /// All of them (`*`).
    All,
    /// These.
    Some(Vec<String>),
}

impl Words {
    /// Whether this one is.
    pub fn allow(&self, word: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(words) => words.iter().any(|allowed| allowed == word),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            session_timeout_min: None,
            session_timeout_max: None,
            outstanding_max: 1000,
            leader_serves: true,
            watches_per_client_max: 1_000_000,
            watches_max: 10_000_000,
            super_digest: None,
            x509_super: None,
            sasl: None,
            required_schemes: Vec::new(),
            digest_algorithm: DigestAlgorithm::Sha1,
            skip_acl: false,
            eager_acl_check: false,
            extended_types: false,
            words: Words::Some(alloc::vec![String::from("srvr")]),
            container_interval: Duration::from_secs(60),
            containers_per_minute: 10_000,
            container_unused_max: None,
            throttled_requests_max: None,
            drop_stale: false,
            event_zxids: false,
            create2_in_multi: false,
            tree_digests: true,
            audit: None,
            beneath: None,
        }
    }
}

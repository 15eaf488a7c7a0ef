//! What a server is told before it starts, beyond what the core wants to know.
//!
//! Directories, sizes and limits of this machine; the protocol's own are in
//! [`Config`](quorate_core::config::Config), which lies inside. Where it comes from is another matter: a
//! [`ZooCfg`](crate::zoo_cfg::ZooCfg), or a [`ServerConfigBuilder`](crate::ServerConfigBuilder).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use quorate_core::config::Config;
use quorate_core::membership::Member;
use quorate_core::txn::Txn;

use crate::allowed_hosts::AllowedHosts;
use crate::disk_floor::DiskFloor;
use crate::zoo_cfg::{AuditLog, QuorumSasl, ZooCfg};

/// The configuration of a [`Server`](crate::Server).
///
/// [`ServerConfig::new`] sets ZooKeeper's defaults; change a field to differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Who we are, the ensemble, and every duration of the protocol.
    pub core: Config,
    /// Where epochs and snapshots are kept (`dataDir`).
    pub data_dir: PathBuf,
    /// Where the transaction logs are (`dataLogDir`), if not in the data directory.
    pub data_log_dir: Option<PathBuf>,
    /// Whether a server with an empty data directory may vote (`zookeeper.db.autocreate`).
    pub autocreate: bool,
    /// Whether a log without any snapshot is taken for a history from the beginning
    /// (`zookeeper.snapshot.trust.empty`).
    pub trust_empty_snapshot: bool,
    /// How many snapshots are kept, with the log that each of them needs
    /// (`autopurge.snapRetainCount`); 3 at least, all of them if none. Older ones are removed when a
    /// new one has been taken.
    pub snapshots_kept: Option<usize>,
    /// By how many bytes a log file grows at a time (`zookeeper.preAllocSize`).
    pub preallocate: u64,
    /// After how many bytes a new log file is begun, at the latest (`zookeeper.snapSizeLimitInKb`). It
    /// is also begun after [`HistoryLimits::snap_count`](quorate_core::config::HistoryLimits::snap_count)
    /// transactions.
    pub log_bytes: u64,
    /// The file that the membership was read from (`dynamicConfigFile`), if any. A newer one is
    /// written beside it, under a name that ends in its version. Without this and
    /// [`config_file`](Self::config_file) a changed membership is kept in the data directory, and counts
    /// rather than an older one that the program tells after a restart.
    pub dynamic_config_file: Option<PathBuf>,
    /// The file whose `dynamicConfigFile` is to name that newer file, if any (`zoo.cfg`). Where it holds the
    /// membership itself, these lines are moved out of it.
    pub config_file: Option<PathBuf>,
    /// Our own line, if no membership has one for us: where a server listens that is about to join, or was
    /// removed.
    pub own_line: Option<Member>,
    /// Whether this server is its ensemble for good: no port for peers is opened, whatever its line says, and the
    /// configuration that clients can read is empty, as with ZooKeeper's standalone mode. A membership of several servers
    /// does not go with it.
    pub alone: bool,
    /// The file in which an outside arbiter of a two-server ensemble says `1` or something else
    /// (`oraclePath`), if any.
    pub oracle_path: Option<PathBuf>,
    /// Listen on all addresses of the machine rather than on those of our line in the membership
    /// (`quorumListenOnAllIPs`).
    pub listen_on_all_ips: bool,
    /// How often to try to listen, a second apart (`electionPortBindRetry`); 0 means for ever.
    pub bind_tries: u32,
    /// How long connecting to one address may take, and looking a name up (`cnxTimeout`).
    pub connect_timeout: Duration,
    /// How long a connection to the election port may take to introduce itself
    /// (`quorumCnxnTimeoutMs`); `syncLimit` ticks if none.
    pub introduction_timeout: Option<Duration>,
    /// Whether introductions on the election port name all our addresses rather than the first
    /// (`multiAddress.enabled`). ZooKeeper 3.5 does not understand that.
    pub multi_address: bool,
    /// From when on a sync of the log is worth a warning (`fsync.warningthresholdms`; 1 s).
    pub fsync_warning: Duration,
    /// How long after its disk has failed, or could not be opened again, a server that has left service for that tries to
    /// open it; 10 s.
    pub disk_retry: Duration,
    /// How much room is to be left on the disk of a server that leads (`quorate.disk.floor`).
    pub disk_floor: DiskFloor,
    /// How many connections one address may have to our election and quorum ports together
    /// (`quorate.maxPeerCnxns`; 512); 0 for any number. Those that we dial do not count. What has not introduced
    /// itself yet, and non-members, are bounded without it, below this default: it is for those who want less, and for
    /// an address that claims to be many learners.
    pub max_peer_connections: usize,
    /// From where connections to our election and quorum ports are taken (`quorate.quorumAllow`); from everywhere by default.
    /// What members may do that are found elsewhere than where they are configured, and joiners, has to be said then.
    pub allowed_hosts: Option<AllowedHosts>,
    /// Where clients of the application's service connect (`clientPort`, `clientPortAddress`) as long as our own line in
    /// the membership in force says nothing of it (`server.N=…;host:port`, which counts); nowhere by default. Port 0 is one that the system picks, see [`Server::client_addrs`](crate::Server::client_addrs). Without a service
    /// nothing listens there.
    pub client_addresses: Vec<SocketAddr>,
    /// How many connections one address may have to the ports for clients together (`maxClientCnxns`; 60); 0 for any
    /// number.
    pub max_client_connections: usize,
    /// How many connections all clients together may have (`maxCnxns`); 0 for any number. On Linux they leave 64
    /// descriptors of this process to peers and files in any case.
    pub max_connections: usize,
    /// Whether connections of clients that are silent are probed (`clientTcpKeepAlive`); no. A session that is silent ends
    /// either way.
    pub client_keep_alive: bool,
    /// How many connections of clients may wait at one address to be accepted (`clientPortListenBacklog`); as many as the
    /// system allows, if none.
    pub client_backlog: Option<u32>,
    /// How long the connection of a client may take to its first whole frame; 10 s.
    pub first_frame_timeout: Duration,
    /// Within about what time the connections of clients are closed before the server ends in order, a share at a time
    /// (`quorate.shed`); 3 s, in which no other can be opened. One alone goes at once. Zero: all of them when it ends.
    pub client_shed: Duration,
    /// How many bytes of frames all clients may send at a time that are longer than
    /// [`request_bytes`](quorate_core::config::Limits::request_bytes), where the service takes such; 64 MiB. Others wait
    /// for their turn, unread.
    pub long_frame_bytes: usize,
    /// How long [`propose`](crate::Server::propose), [`read`](crate::Server::read) and what rests on them wait
    /// for service, and try again what surely did not happen (`quorate.patience`): 10 s, in which a leader that
    /// is silent is noticed in most ensembles and the election that begins anew has an end. Zero is once.
    pub patience: Duration,
    /// TLS on the connections between servers (`sslQuorum`, `portUnification`, `ssl.quorum.*`); none by default: a host
    /// on the way reads them, and may change them. Read when the server starts.
    #[cfg(feature = "tls")]
    pub tls: Option<quorate_tls::Settings>,
    /// Where the changes that clients make are written (`audit.enable`), if the service tells them; nowhere by default.
    pub audit: Option<AuditLog>,
    /// TLS for clients (`secureClientPort`, `client.portUnification`, `ssl.*`); none by default. Read when the server starts.
    #[cfg(feature = "tls")]
    pub client_tls: Option<SecureClients>,
    /// SASL between servers (`quorum.auth.enableSasl`); none by default. The JAAS file is read when the server starts.
    pub sasl: Option<QuorumSasl>,
    /// How many changes are kept for a reader that does not keep up, see
    /// [`Server::changes`](crate::Server::changes). At least 1.
    pub changes_kept: usize,
}

/// TLS for the clients of a server.
#[cfg(feature = "tls")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecureClients {
    /// Its stores, and what may be spoken.
    pub settings: quorate_tls::ClientSettings,
    /// Where clients connect with TLS alone (`secureClientPort`, `secureClientPortAddress`); port 0 is one that the system
    /// picks, see [`Server::secure_client_addrs`](crate::Server::secure_client_addrs).
    pub addresses: Vec<SocketAddr>,
    /// Whether they may come with TLS at the other port, too, where each is known by its first byte
    /// (`client.portUnification`).
    pub on_plain_port: bool,
}

impl ServerConfig {
    /// ZooKeeper's defaults for this peer and this directory. Jitter comes from `core.seed`, which
    /// [`Config::new`] sets to the id: tests that are to be alike want that. A configuration that was read or built
    /// has its seed from the system.
    pub fn new(core: Config, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            core,
            data_dir: data_dir.into(),
            data_log_dir: None,
            autocreate: true,
            trust_empty_snapshot: false,
            snapshots_kept: Some(3),
            preallocate: 64 << 20,
            log_bytes: 4 << 30,
            dynamic_config_file: None,
            config_file: None,
            own_line: None,
            alone: false,
            oracle_path: None,
            listen_on_all_ips: false,
            bind_tries: 3,
            connect_timeout: Duration::from_secs(5),
            introduction_timeout: None,
            multi_address: false,
            fsync_warning: Duration::from_secs(1),
            disk_retry: Duration::from_secs(10),
            disk_floor: DiskFloor::default(),
            max_peer_connections: 512,
            allowed_hosts: None,
            client_addresses: Vec::new(),
            max_client_connections: 60,
            max_connections: 0,
            client_keep_alive: false,
            client_backlog: None,
            first_frame_timeout: Duration::from_secs(10),
            client_shed: SHED,
            long_frame_bytes: 64 << 20,
            patience: PATIENCE,
            #[cfg(feature = "tls")]
            tls: None,
            audit: None,
            #[cfg(feature = "tls")]
            client_tls: None,
            sasl: None,
            changes_kept: 256,
        }
    }

    /// Where clients connect with TLS alone.
    #[cfg(feature = "tls")]
    pub(crate) fn secure_addresses(&self) -> &[SocketAddr] {
        self.client_tls.as_ref().map_or(&[], |tls| &tls.addresses)
    }

    /// There is no TLS.
    #[cfg(not(feature = "tls"))]
    pub(crate) fn secure_addresses(&self) -> &[SocketAddr] {
        &[]
    }

    pub(crate) fn introduction_time(&self) -> Duration {
        self.introduction_timeout
            .filter(|timeout| !timeout.is_zero())
            .unwrap_or_else(|| self.core.timing.sync_time())
    }
}

impl From<ZooCfg> for ServerConfig {
    fn from(cfg: ZooCfg) -> Self {
        let mut core = Config::new(cfg.my_id, cfg.membership);
        core.seed = entropy();
        core.timing.tick = cfg.tick_time;
        core.timing.init_limit = cfg.init_limit;
        core.timing.sync_limit = cfg.sync_limit;
        core.timing.connect_limit = cfg.connect_limit;
        core.timing.notification_min = cfg.notification_min;
        core.timing.notification_max = cfg.notification_max;
        core.timing.observer_delay = cfg.observer_delay;
        core.finish_when_settled = cfg.finish_when_settled;
        core.reconfig_enabled = cfg.reconfig_enabled;
        core.forgotten = cfg.forgotten;
        core.priority = cfg.priority;
        core.strangers = cfg.exposure.strangers;
        core.lease = cfg.lease;
        core.limits.unsynced_bytes = usize::try_from(cfg.unsynced_bytes).unwrap_or(usize::MAX);
        core.election = cfg.election;
        core.oracle = cfg.oracle_path.is_some();
        core.limits.request_bytes = cfg.request_bytes;
        core.limits.txn_bytes = cfg.txn_bytes;
        if cfg.txn_bytes > Txn::BYTES_MAX {
            // One transaction may be longer than these bounds are by default.
            let several = cfg.txn_bytes.saturating_mul(4);
            core.history.window_bytes = core.history.window_bytes.max(several);
            core.limits.unsynced_bytes = core.limits.unsynced_bytes.max(several);
        }
        core.history.snap_count = cfg.snap_count.into();
        core.history.window_count = cfg.commit_log_count;
        core.history.size_percent = cfg.snapshot_size_percent;
        core.history.observer_snapshots = cfg.observer_snapshots;
        Self {
            data_log_dir: cfg.data_log_dir,
            autocreate: cfg.autocreate,
            trust_empty_snapshot: cfg.trust_empty_snapshot,
            snapshots_kept: cfg.snapshots_kept,
            preallocate: cfg.preallocate,
            log_bytes: cfg.log_bytes,
            dynamic_config_file: cfg.dynamic_config_file,
            config_file: Some(cfg.file),
            own_line: cfg.own_line,
            alone: cfg.alone,
            oracle_path: cfg.oracle_path,
            listen_on_all_ips: cfg.listen_on_all_ips,
            bind_tries: cfg.election_bind_retries,
            connect_timeout: cfg.dial_timeout,
            introduction_timeout: Some(cfg.introduction_timeout),
            patience: cfg.patience.unwrap_or(PATIENCE),
            multi_address: cfg.multi_address,
            fsync_warning: cfg.fsync_warning,
            disk_floor: cfg.disk_floor,
            max_peer_connections: cfg.max_peer_connections,
            allowed_hosts: cfg.exposure.allowed_hosts,
            max_client_connections: cfg.clients.max_per_address,
            max_connections: cfg.clients.max_connections,
            client_keep_alive: cfg.clients.keep_alive,
            client_backlog: cfg.clients.backlog,
            client_shed: cfg.shed.unwrap_or(SHED),
            #[cfg(feature = "tls")]
            tls: cfg.tls,
            audit: cfg.audit.map(|audit| audit.log),
            #[cfg(feature = "tls")]
            client_tls: cfg.client_tls.map(|tls| SecureClients {
                settings: tls.settings,
                addresses: Vec::new(),
                on_plain_port: tls.on_plain_port,
            }),
            sasl: cfg.sasl,
            ..Self::new(core, cfg.data_dir)
        }
    }
}

/// A number from the system's entropy, for what should differ between two runs: whatever else is decided at random
/// comes from it, so a recorded run can be played again.
pub(super) fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// How long clients take to leave unless it is said.
const SHED: Duration = Duration::from_secs(3);
/// How long requests and reads wait for service unless it is said.
const PATIENCE: Duration = Duration::from_secs(10);

//! `zoo.cfg`, `myid` and the dynamic file, as they are.
//!
//! People who run ZooKeeper have these files already, so there is no other format. What they say is
//! turned into a [`ZooCfg`] of typed values, once, at start. A value that is wrong refuses the whole
//! file: a server that takes a default instead is one that behaves otherwise than its operator thinks.
//! A setting of ZooKeeper that has no effect here, or a key that nothing knows, is a [`Warning`] with the reason; one that
//! asks for what would be missed if it were not there (Kerberos, enforced quotas, observer masters,
//! …) refuses the file. Warnings and refusals name file, line, key and value.
//!
//! The rules of properties files and the grammar of `server.N`, `group.G` and `weight.N` are the
//! core's ([`quorate_core::membership`]). As in ZooKeeper, any other key may be written with or without
//! `zookeeper.` before it.
//!
//! [`JvmFlags`] are what the environment says beside the file, as ZooKeeper's start script passes it on.
//!
//! [`Loaded`] compares a file with what a server runs with, when its operator has changed it.
//!
//! Nothing here opens a socket or resolves a name, and nothing is created.
//!
//! # Settings of our own
//!
//! ZooKeeper passes them over with a line in its log.
//!
//! | key | if it is absent | |
//! |---|---|---|
//! | `quorate.priority` | 0 | how much this server is preferred as leader, 0 to 255 |
//! | `quorate.lease` | none | for how many ms voters promise their leader to establish no other; on all voters or none |
//! | `quorate.patience` | 10000 | how many ms a request or read waits for a leader |
//! | `quorate.shed` | 3000 | within how many ms clients leave a server that is told to end, a share at a time; 0: all at its end |
//! | `quorate.disk.floor` | `snapshot` | how much room is to be left in its directories while this server leads, in bytes or as `512m`, `2g`: with less another leads that has more; `snapshot` is as much as the newest has, and 128 MiB; `off` |
//! | `quorate.election` | `fast` | or `generation`, on all servers |
//! | `quorate.election.minTimeout`, `quorate.election.maxTimeout` | 1000, twice the other | by generation: after how many ms of silence a leader is given up |
//! | `quorate.election.preVote` | true | by generation: a server asks whether it would be elected before it raises the generation |
//! | `quorate.election.ties` | `rank` | by generation: of equally new servers the highest id leads, or the `first` that asks |
//! | `quorate.finishWhenSettled` | true | an election ends as soon as nothing outstanding can change it, rather than 200 ms later |
//! | `quorate.maxPeerCnxns` | 512 | how many connections one address may have to the election and quorum ports |
//! | `quorate.quorumAllow` | everywhere | from where connections to the election and quorum ports are taken: `members`, networks such as `10.1.0.0/16`, or both between commas |
//! | `quorate.strangers` | `allow` | what servers may do that are in no configuration: learn, and be believed what they say of their clients but for a superuser; with `ip-only` the address alone is believed; with `refuse` they do not learn, and a server has to be added before it joins |
//! | `quorate.maxWatchesPerConnection` | 1000000 | how many paths one connection of a client may watch |
//! | `quorate.maxWatches` | 10000000 | how many all of them may together, each for itself |
//! | `quorate.jaas.file` | as `-Djava.security.auth.login.config` | the JAAS file with who logs in by SASL, of servers and of clients; of ZooKeeper's login modules that for digests alone |
//! | `quorate.jaas.reloadInterval` | 10000 | every how many ms it is looked whether that file has changed, where ZooKeeper reads it once; with 0 only when an operator asks |
//! | `quorate.log.format` | `text` | or `json`: one flat object a line |
//! | `quorate.log.level` | `info` | what is logged, such as `warn` or `info,quorate_driver=debug` |
//! | `quorate.probe.address` | none | `host:port` where probes are answered over HTTP, and nothing else |
//! | `quorate.java.oldest` | not known | the oldest version of ZooKeeper among servers and clients, or `none`: from 3.9.0 on events carry zxids, from 3.7.2, 3.8.2 and 3.9.0 on a create2 within a multi is one |
//! | `quorate.unsyncedLimitInKb` | 65536 | how much a learner holds that its disk does not have, before it gives up its leader |
//! | `quorate.self` | none | the server's own line while the membership has none for it: before it joins, after it was removed |
//! | `quorate.ssl.identity` | `member` | with TLS between servers, what a certificate has to say about the server that is claimed with it: that it names a host of its line (`member`), `urn:quorate:server:N` (`id`), nothing (`off`), or as `member` and only told (`warn`); `off` if `ssl.quorum.hostnameVerification` is false |
//! | `quorate.ssl.reloadInterval` | 10000 | every how many ms it is looked whether the stores of TLS have changed; where ZooKeeper does so only with `sslQuorumReloadCertFiles=true`, and for clients `client.certReload=true`, here `false` turns it off |
//! | `quorate.ssl.crlFile` | none | a file with lists of revoked certificates of those who sign members', in PEM, several one after the other; a certificate whose authority has no list in it is refused |
//! | `quorate.ssl.crlStrict` | false | whether a list whose next update is overdue says nothing any more, rather than a warning |
//! | `quorate.ssl.client.crlFile`, `quorate.ssl.client.crlStrict` | none, false | the same two of clients' certificates |
//! | `quorate.ssl.closeExpired` | false | whether a link is closed when the certificate of its other side ends |
//! | `quorate.ssl.closeOnReload` | `untrusted` | which links are closed when the stores have changed, one a second: those whose other side would not be let in now, those with a certificate that has ended (`expired`), or `none` |
//! | `quorate.membership.forget` | 0 | the operator's word: changes of the membership up to this version bind this server no more |
//!
//! # Defaults that differ
//!
//! What is not said is as ZooKeeper 3.8 has it (`QuorumPeerConfig`, `zookeeperAdmin`), but for these:
//!
//! | key | ZooKeeper's | here | why |
//! |---|---|---|---|
//! | `4lw.commands.whitelist` | `srvr` | `conf,mntr,ruok,srvr,stat` | they cost nothing and change nothing |
//! | `clientPortListenBacklog` | 50 | as many as the system allows | many clients come at once when a server is back |
//! | `admin.enableServer` | `true` | `false` | nothing listens that was not asked for |
//! | `admin.serverAddress` | `0.0.0.0` | `127.0.0.1` | strangers read nothing unless they are to |
//! | `metricsProvider.httpHost` | `0.0.0.0` | `127.0.0.1` | the same |
//!
//! In the Java code: `QuorumPeerConfig`.

mod alone;
mod audit;
mod client_ports;
#[cfg(feature = "tls")]
mod client_tls;
mod clients;
mod entries;
mod exposed;
mod findings;
mod flags;
mod foreign;
mod http;
#[cfg(feature = "tls")]
mod http_tls;
mod loaded;
mod log;
mod members;
mod parse;
mod refusals;
mod sasl;
#[cfg(feature = "tls")]
mod tls;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::config::Election;
use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Membership};

use crate::disk_floor::DiskFloor;
pub use crate::zoo_cfg::audit::{AuditLog, AuditSettings, AuditTarget, WhenFull};
#[cfg(feature = "tls")]
pub use crate::zoo_cfg::client_tls::ClientTlsSettings;
pub use crate::zoo_cfg::clients::{ClientSettings, JavaVersion};
pub use crate::zoo_cfg::exposed::Exposure;
pub use crate::zoo_cfg::findings::{Caution, ConfigError, Place, Setting, Warning};
pub use crate::zoo_cfg::flags::JvmFlags;
pub use crate::zoo_cfg::http::{AdminSettings, HttpSettings};
#[cfg(feature = "tls")]
pub use crate::zoo_cfg::http_tls::{AdminTls, SecureMetrics};
pub use crate::zoo_cfg::loaded::{FileChanges, Loaded};
pub use crate::zoo_cfg::log::{LogFormat, LogSettings};
pub use crate::zoo_cfg::sasl::{ClientSasl, QuorumLogins, QuorumSasl};

/// What the configuration files of one server say.
///
/// Durations are durations, limits count ticks, addresses are not resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZooCfg {
    /// The file that was read.
    pub file: PathBuf,
    /// Our id, from `myid` in the data directory: 1 to 255, and one of the members.
    pub my_id: ServerId,
    /// Who belongs to the ensemble.
    pub membership: Membership,
    /// The unit of the limits (`tickTime`, 3000 ms if absent).
    pub tick_time: Duration,
    /// How long connecting to a leader and synchronising with it may take, in ticks (`initLimit`).
    pub init_limit: u32,
    /// How long leader and learner may not hear from each other, in ticks (`syncLimit`).
    pub sync_limit: u32,
    /// How long connecting to a leader may take, in ticks (`connectToLearnerMasterLimit`); none if it
    /// is `initLimit`.
    pub connect_limit: Option<u32>,
    /// Where epochs and snapshots are (`dataDir`).
    pub data_dir: PathBuf,
    /// Where transaction logs are, if elsewhere (`dataLogDir`).
    pub data_log_dir: Option<PathBuf>,
    /// Where clients connect: from our own server line, else `clientPort` and `clientPortAddress`. Port 0 is one that the
    /// system picks.
    pub client_address: Option<HostPort>,
    /// The file that holds the membership, if `zoo.cfg` does not (`dynamicConfigFile`).
    pub dynamic_config_file: Option<PathBuf>,
    /// The first wait for a notification (`fastleader.minNotificationInterval`, 200 ms).
    pub notification_min: Duration,
    /// The longest wait for a notification (`fastleader.maxNotificationInterval`, 60 s).
    pub notification_max: Duration,
    /// How long an observer waits at most before it looks for a leader again
    /// (`observer.election.DelayMs`, 200 ms).
    pub observer_delay: Duration,
    /// How long a dial for elections may take (`cnxTimeout`, 5 s).
    pub dial_timeout: Duration,
    /// How long a peer may take to introduce itself (`quorumCnxnTimeoutMs`, `syncLimit` ticks).
    pub introduction_timeout: Duration,
    /// How many connections one address may have to our election and quorum ports together
    /// (`quorate.maxPeerCnxns`, 512; 0 for any number), see
    /// [`ServerConfig::max_peer_connections`](crate::ServerConfig::max_peer_connections).
    pub max_peer_connections: usize,
    /// Who may use the election and the quorum port, and for what.
    pub exposure: Exposure,
    /// How often binding the election port is tried again, a second apart; 0 for ever
    /// (`electionPortBindRetry`, 3).
    pub election_bind_retries: u32,
    /// Whether our ports are opened on all interfaces (`quorumListenOnAllIPs`, false).
    pub listen_on_all_ips: bool,
    /// Whether this server runs alone, with no port for peers: there is no line of any server, `standaloneEnabled` is not
    /// false, and nothing else in the file speaks of an ensemble. The membership has this server alone then, at an address
    /// where nothing listens; a `myid`, `initLimit` and `syncLimit` are not needed. As in ZooKeeper's standalone mode.
    pub alone: bool,
    /// Whether a single server may run without a quorum (`standaloneEnabled`, true): without it, a file needs lines of
    /// servers. One such line makes an ensemble of one, with its ports, either way.
    pub standalone_enabled: bool,
    /// Whether the membership may change at run time (`reconfigEnabled`, false).
    pub reconfig_enabled: bool,
    /// Changes of the membership up to this version bind this server no more, on the operator's word
    /// (`quorate.membership.forget`, hexadecimal as in the text of a configuration; 0), see
    /// [`Config::forgotten`](quorate_core::config::Config::forgotten).
    pub forgotten: i64,
    /// Whether introductions on the election port name all our addresses, as ZooKeeper's do where that is set
    /// (`multiAddress.enabled`, false). All are dialled and listened on either way.
    pub multi_address: bool,
    /// From when on a sync of the log is worth a warning (`fsync.warningthresholdms`, 1 s).
    pub fsync_warning: Duration,
    /// How much room is to be left on the disk of a server that leads (`quorate.disk.floor`: bytes, `snapshot` or `off`).
    pub disk_floor: DiskFloor,
    /// Transactions between snapshots (`snapCount`, 100000).
    pub snap_count: u32,
    /// How many snapshots are kept (`autopurge.snapRetainCount`, 3); all of them, if
    /// `autopurge.purgeInterval` is 0 or absent, as in ZooKeeper. Otherwise older ones go whenever a
    /// new one has been taken, however long the interval.
    pub snapshots_kept: Option<usize>,
    /// By how many bytes a log file grows at a time (`preAllocSize` in KiB, 64 MiB).
    pub preallocate: u64,
    /// After how many bytes a new log file is begun (`snapSizeLimitInKb`, 4 GiB; `txnLogSizeLimitInKb` if that is
    /// less, and not -1).
    pub log_bytes: u64,
    /// How long what is asked for at this server waits for a leader (`quorate.patience`, in ms; 10000), see
    /// [`ServerConfig::patience`](crate::ServerConfig::patience).
    pub patience: Option<Duration>,
    /// Within what time the connections of clients are closed before this server ends in order (`quorate.shed`, in ms;
    /// 3000), see [`ServerConfig::client_shed`](crate::ServerConfig::client_shed).
    pub shed: Option<Duration>,
    /// The longest body of a request, in bytes (`jute.maxbuffer`, 1048575).
    pub request_bytes: usize,
    /// The longest transaction that this server proposes, in bytes: `jute.maxbuffer` and
    /// `jute.maxbuffer.extrasize`, which is as much again unless it is said. Packets and records of so many bytes
    /// are read, and of 2097150 in any case. Both keys have to be the same on all servers of an ensemble; both may
    /// stand with `zookeeper.` before them, as all may.
    pub txn_bytes: usize,
    /// How many committed transactions are kept in memory for learners (`commitLogCount`, 500).
    pub commit_log_count: usize,
    /// Up to how many hundredths of the newest snapshot a learner is sent log files instead
    /// (`snapshotSizeFactor`, 0.33); never, if that is negative.
    pub snapshot_size_percent: Option<u64>,
    /// How many observers are sent snapshots at a time (`leader.maxConcurrentSnapSyncs`, 10).
    pub observer_snapshots: usize,
    /// Whether a log without a snapshot is a history from the beginning (`snapshot.trust.empty`,
    /// false).
    pub trust_empty_snapshot: bool,
    /// The file in which an arbiter of a two-server ensemble answers (`oraclePath`).
    pub oracle_path: Option<PathBuf>,
    /// The service for clients.
    pub clients: ClientSettings,
    /// Where HTTP is spoken.
    pub http: HttpSettings,
    /// What is logged.
    pub log: LogSettings,
    /// The log of what clients change (`audit.enable`); none, unless it is asked for.
    pub audit: Option<AuditSettings>,
    /// Which four-letter words are answered (`4lw.commands.whitelist`); `*` for all. By default the
    /// five that cost nothing and change nothing, where ZooKeeper has `srvr` alone. See
    /// [`ZooCfg::answers`].
    pub four_letter_words: Vec<String>,
    /// Whether an election ends as soon as nothing outstanding can change it
    /// (`quorate.finishWhenSettled`, true), rather than always 200 ms later as with ZooKeeper.
    pub finish_when_settled: bool,
    /// Our own line while the membership has none for us (`quorate.self`): that of a server which is about to
    /// join, or was removed. It is written here when the membership moves to a file of its own.
    pub own_line: Option<Member>,
    /// How much this server is wished to lead (`quorate.priority`, 0 to 255; 0), see
    /// [`Config::priority`](quorate_core::config::Config::priority).
    pub priority: u8,
    /// For how long voters promise their leader to establish no other leader (`quorate.lease`, in ms; not at
    /// all), see [`Config::lease`](quorate_core::config::Config::lease).
    pub lease: Option<Duration>,
    /// How many bytes of transactions a follower or observer holds before its disk has them, until it gives up its
    /// leader (`quorate.unsyncedLimitInKb`, 65536), see
    /// [`Limits::unsynced_bytes`](quorate_core::config::Limits::unsynced_bytes).
    pub unsynced_bytes: u64,
    /// How it is found out who is to lead (`quorate.election`, `fast`), see
    /// [`Config::election`](quorate_core::config::Config::election). For `generation` also the time-outs
    /// `quorate.election.minTimeout` and `quorate.election.maxTimeout` (1000 and twice as many ms),
    /// `quorate.election.preVote` (true) and `quorate.election.ties` (`rank`, or `first`).
    pub election: Election,
    /// Whether a server with an empty data directory may vote (`db.autocreate`, true).
    pub autocreate: bool,
    /// TLS between servers (`sslQuorum`, `portUnification`, `ssl.quorum.*`, `quorate.ssl.identity`); none if both of the first
    /// are false. The stores are read when the server starts, not with the file.
    #[cfg(feature = "tls")]
    pub tls: Option<quorate_tls::Settings>,
    /// TLS for clients (`secureClientPort`, `secureClientPortAddress`, `client.portUnification`, `ssl.*`); none if neither a
    /// secure port nor the unification is set. The stores are read when the server starts, not with the file.
    #[cfg(feature = "tls")]
    pub client_tls: Option<ClientTlsSettings>,
    /// SASL between servers (`quorum.auth.enableSasl`); none if that is false. The JAAS file is read when the server starts.
    pub sasl: Option<QuorumSasl>,
    /// What the operator should know, in the order of lines.
    pub warnings: Vec<Warning>,
}

impl ZooCfg {
    /// Reads the file at `path` and the files that it names.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] that names file, line, key and value.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::read_with(path, &JvmFlags::default())
    }

    /// The same with flags of the JVM that ZooKeeper would run in.
    ///
    /// # Errors
    ///
    /// As [`ZooCfg::read`]; for what a flag says, the variable stands in place of the file.
    pub fn read_with(path: impl AsRef<Path>, flags: &JvmFlags) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { file: path.to_owned(), source })?;
        Self::parse_with(path, &text, flags, |path| fs::read_to_string(path))
    }

    /// Our own line.
    ///
    /// # Panics
    ///
    /// If `my_id` was changed to a server that is no member.
    pub fn own(&self) -> &Member {
        let own = self.membership.member(self.my_id).or(self.own_line.as_ref());
        own.expect("our id was looked up in the membership")
    }

    /// How long connecting to a leader and synchronising with it may take: `initLimit` ticks.
    pub fn init_time(&self) -> Duration {
        self.tick_time.saturating_mul(self.init_limit)
    }

    /// When a peer that is silent counts as dead: `syncLimit` ticks.
    pub fn sync_time(&self) -> Duration {
        self.tick_time.saturating_mul(self.sync_limit)
    }

    /// How often a leader pings: twice per tick.
    pub fn ping_interval(&self) -> Duration {
        self.tick_time / 2
    }

    /// Whether the four-letter word `word` is answered.
    pub fn answers(&self, word: &str) -> bool {
        self.four_letter_words.iter().any(|allowed| allowed == "*" || allowed == word)
    }

    /// What the settings amount to, in a sentence for the operator.
    pub fn derived(&self) -> String {
        if self.alone {
            return format!("server {} alone, without an ensemble", self.my_id);
        }
        let participants = self.membership.participants().count();
        let observers = self.membership.members().len() - participants;
        let observers = match observers {
            0 => String::new(),
            1 => " and 1 observer".to_owned(),
            many => format!(" and {many} observers"),
        };
        let quorum = if self.membership.is_hierarchical() {
            "a majority of the weight in a majority of the groups decides".to_owned()
        } else {
            format!(
                "{} decide and {} may fail",
                participants / 2 + 1,
                participants.saturating_sub(1) / 2
            )
        };
        format!(
            "server {} of {participants} participants{observers}, of which {quorum}; {} to connect and \
             synchronise, {} to notice a dead peer, a ping every {}",
            self.my_id,
            Shown(self.init_time()),
            Shown(self.sync_time()),
            Shown(self.ping_interval()),
        )
    }
}

/// A file that is read for all that stands in the way of a server with it, rather than to start one: a file that was
/// written for ZooKeeper, before ours takes the place of its server.
#[derive(Debug)]
pub struct Survey {
    /// Every line that refuses the file for what it turns on ([`ConfigError::NotSupported`]), and what that is, in the
    /// order of lines. [`ZooCfg::read`] stops at one.
    pub not_supported: Vec<(Setting, &'static str)>,
    /// All settings but the lines of the membership, and the flags, by their names without `zookeeper.`.
    pub settings: BTreeMap<String, Setting>,
    /// What the file says without those lines, or what refuses it still.
    pub rest: Result<ZooCfg, ConfigError>,
}

/// Displays a duration in seconds, or in milliseconds if it is less than one.
struct Shown(Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            duration if duration < Duration::from_secs(1) => {
                write!(f, "{} ms", duration.as_millis())
            }
            duration => write!(f, "{} s", duration.as_secs_f64()),
        }
    }
}

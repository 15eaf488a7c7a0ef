//! `zoo.cfg`, `myid` and the dynamic file, as they are.
//!
//! People who run ZooKeeper have these files already, so there is no other format. What they say is
//! turned into a [`ZooCfg`] of typed values, once, at start. A value that is wrong refuses the whole
//! file: a server that takes a default instead is one that behaves otherwise than its operator thinks.
//! A setting of ZooKeeper that has no effect here, or a key that nothing knows, is a [`Warning`] with the reason; one that
//! asks for what would be missed if it were not there (TLS, SASL, read-only mode, observer masters, compressed snapshots,
//! …) refuses the file. Warnings and refusals name file, line, key and value.
//!
//! The rules of properties files and the grammar of `server.N`, `group.G` and `weight.N` are the
//! core's ([`quorate_core::membership`]). As in ZooKeeper, any other key may be written with or without
//! `zookeeper.` before it.
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
//! | `quorate.election` | `fast` | or `generation`, on all servers |
//! | `quorate.election.minTimeout`, `quorate.election.maxTimeout` | 1000, twice the other | by generation: after how many ms of silence a leader is given up |
//! | `quorate.election.preVote` | true | by generation: a server asks whether it would be elected before it raises the generation |
//! | `quorate.election.ties` | `rank` | by generation: of equally new servers the highest id leads, or the `first` that asks |
//! | `quorate.finishWhenSettled` | true | an election ends as soon as nothing outstanding can change it, rather than 200 ms later |
//! | `quorate.maxPeerCnxns` | 512 | how many connections one address may have to the election and quorum ports |
//! | `quorate.unsyncedLimitInKb` | 65536 | how much a learner holds that its disk does not have, before it gives up its leader |
//! | `quorate.self` | none | the server's own line while the membership has none for it: before it joins, after it was removed |
//! | `quorate.membership.forget` | 0 | the operator's word: changes of the membership up to this version bind this server no more |
//!
//! In the Java code: `QuorumPeerConfig`.

mod entries;
mod findings;
mod foreign;
mod members;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::config::Election;
use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Membership, Role};
use quorate_core::properties::Lines;

use crate::zoo_cfg::entries::{Entries, MAX};
pub use crate::zoo_cfg::findings::{Caution, ConfigError, Place, Setting, Warning};
use crate::zoo_cfg::members::{MemberLines, without_mark};

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
    /// Where clients connect: from our own server line, else `clientPort` and `clientPortAddress`.
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
    /// How often binding the election port is tried again, a second apart; 0 for ever
    /// (`electionPortBindRetry`, 3).
    pub election_bind_retries: u32,
    /// Whether our ports are opened on all interfaces (`quorumListenOnAllIPs`, false).
    pub listen_on_all_ips: bool,
    /// Whether a single server may run without a quorum (`standaloneEnabled`, true). We run one as an
    /// ensemble of one either way.
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
        let path = path.as_ref();
        let text = fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { file: path.to_owned(), source })?;
        Self::parse(path, &text, |path| fs::read_to_string(path))
    }

    /// Reads `text`, which stands in the file `path`; other files come from `read_file`.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] that names file, line, key and value.
    pub fn parse(
        path: impl AsRef<Path>,
        text: &str,
        read_file: impl Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, ConfigError> {
        let file = path.as_ref();
        let mut entries = Entries::new(file);
        let mut members = MemberLines::new(file);
        for line in Lines::new(without_mark(text)) {
            let line =
                line.map_err(|source| ConfigError::Escape { file: file.to_owned(), source })?;
            if !members.take(&line)? {
                entries.add(line);
            }
        }
        entries.refuse_misspellings()?;
        entries.refuse_unsupported()?;

        let dynamic_config_file = entries.path("dynamicConfigFile")?;
        let reconfig_enabled = entries.boolean("reconfigEnabled", false)?;
        if let Some(dynamic) = &dynamic_config_file {
            members = members.replaced_by(dynamic, &read_file)?;
        }
        let forgotten = entries.version("quorate.membership.forget")?.unwrap_or(0);
        let membership = members.finish(reconfig_enabled, forgotten)?;
        let tick_time = entries.millis("tickTime", 1)?.unwrap_or(Duration::from_millis(3000));
        let missing = |key, why| ConfigError::Missing { file: file.to_owned(), key, why };
        let init_limit = entries.number("initLimit", 1, MAX)?;
        let init_limit = init_limit.ok_or_else(|| missing("initLimit", WHY_INIT))?;
        let sync_limit = entries.number("syncLimit", 1, MAX)?;
        let sync_limit = sync_limit.ok_or_else(|| missing("syncLimit", WHY_SYNC))?;
        let data_dir = entries.path("dataDir")?.ok_or_else(|| missing("dataDir", WHY_DATA))?;
        let notification_min = entries.millis("fastleader.minNotificationInterval", 1)?;
        let notification_min = notification_min.unwrap_or(Duration::from_millis(200));
        let longest = entries.peek("fastleader.maxNotificationInterval");
        let notification_max = entries.millis("fastleader.maxNotificationInterval", 1)?;
        let notification_max =
            notification_max.unwrap_or(Duration::from_secs(60).max(notification_min));
        if let Some(entry) = longest.filter(|_| notification_max < notification_min) {
            let least = notification_min.as_millis();
            let expected = format!("at least fastleader.minNotificationInterval, which is {least}");
            return Err(entry.value_error(expected));
        }
        let algorithm = entries.peek("electionAlg");
        if let (Some(entry), true) = (algorithm, entries.number("electionAlg", 0, MAX)? != Some(3))
        {
            return Err(entry.value_error("3, the only algorithm there is".to_owned()));
        }
        let keep_alive = entries.peek("tcpKeepAlive");
        if let (Some(entry), false) = (keep_alive, entries.boolean("tcpKeepAlive", true)?) {
            entries.warn(entry.at, Caution::KeepAliveStays);
        }
        let connect_limit = entries.number("connectToLearnerMasterLimit", 0, MAX)?;
        let introduction = entries.millis_or_off("quorumCnxnTimeoutMs")?;
        let own_line = entries.take("quorate.self");
        let (request_bytes, txn_bytes) = entries.buffers()?;
        let known = |id| membership.member(id).is_some() || own_line.is_some();
        let my_id = read_my_id(&data_dir, &membership, known, &read_file)?;
        let own_line = own_line.filter(|_| membership.member(my_id).is_none());
        let own_line = own_line.map(|entry| {
            let read = Member::parse(my_id, &entry.value);
            read.map_err(|error| entry.value_error(format!("our own line: {error}")))
        });
        let mut cfg = Self {
            file: file.to_owned(),
            my_id,
            own_line: own_line.transpose()?,
            tick_time,
            init_limit,
            sync_limit,
            connect_limit: connect_limit.filter(|limit| *limit > 0),
            data_dir,
            data_log_dir: entries.path("dataLogDir")?,
            client_address: entries.client_address()?,
            dynamic_config_file,
            notification_min,
            notification_max,
            observer_delay: entries
                .millis("observer.election.DelayMs", 0)?
                .unwrap_or(Duration::from_millis(200)),
            dial_timeout: entries.millis("cnxTimeout", 1)?.unwrap_or(Duration::from_secs(5)),
            introduction_timeout: introduction
                .unwrap_or_else(|| tick_time.saturating_mul(sync_limit)),
            max_peer_connections: entries.count_or_none("quorate.maxPeerCnxns", 512)?,
            election_bind_retries: entries.number("electionPortBindRetry", 0, MAX)?.unwrap_or(3),
            listen_on_all_ips: entries.boolean("quorumListenOnAllIPs", false)?,
            standalone_enabled: entries.boolean("standaloneEnabled", true)?,
            reconfig_enabled,
            forgotten,
            multi_address: entries.boolean("multiAddress.enabled", false)?,
            fsync_warning: entries
                .millis("fsync.warningthresholdms", 0)?
                .unwrap_or(Duration::from_secs(1)),
            snap_count: entries.number("snapCount", 2, MAX)?.unwrap_or(100_000),
            snapshots_kept: entries.snapshots_kept()?,
            preallocate: entries.kibibytes("preAllocSize", 64 << 20)?,
            log_bytes: entries.log_bytes()?,
            patience: entries.millis("quorate.patience", 0)?,
            request_bytes,
            txn_bytes,
            commit_log_count: entries.count("commitLogCount", 500)?,
            snapshot_size_percent: entries.size_factor()?,
            observer_snapshots: entries.count("leader.maxConcurrentSnapSyncs", 10)?,
            trust_empty_snapshot: entries.boolean("snapshot.trust.empty", false)?,
            oracle_path: entries.path("oraclePath")?,
            four_letter_words: entries.words("4lw.commands.whitelist", &WORDS),
            finish_when_settled: entries.boolean("quorate.finishWhenSettled", true)?,
            priority: entries
                .number("quorate.priority", 0, 255)?
                .and_then(|priority| u8::try_from(priority).ok())
                .unwrap_or(0),
            lease: entries.millis("quorate.lease", 1)?,
            unsynced_bytes: entries.kibibytes("quorate.unsyncedLimitInKb", 64 << 20)?,
            election: entries.election()?,
            autocreate: entries.boolean("db.autocreate", true)?,
            membership,
            warnings: Vec::new(),
        };
        cfg.check_own_line(&mut entries)?;
        cfg.warnings = entries.finish();
        Ok(cfg)
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

    /// Compares our own line with what the rest of the file says of us, and looks at the whole.
    fn check_own_line(&mut self, entries: &mut Entries<'_>) -> Result<(), ConfigError> {
        let own = self.own().clone();
        if let Some(entry) = entries.take("peerType") {
            let Some(role) = Role::from_name(&entry.value) else {
                return Err(entry.value_error("participant or observer".to_owned()));
            };
            if role != own.role {
                let (id, used) = (own.id, own.role);
                entries.warn(entry.at, Caution::OtherRole { id, used, stated: role });
            }
        }
        if let (Some(line), Some(key)) = (&own.client, &self.client_address) {
            let same = line.port == key.port && (key.is_wildcard() || line.host == key.host);
            if !same {
                let (id, line, key) = (own.id, line.clone().into(), key.clone().into());
                return Err(ConfigError::TwoClientAddresses {
                    file: self.file.clone(),
                    id,
                    line,
                    key,
                });
            }
        }
        if let Some(client) = &self.client_address {
            let shared = own.addresses.iter().find(|address| {
                (client.is_wildcard() || client.host == address.quorum.host)
                    && [address.quorum.port, address.election.port].contains(&client.port)
            });
            if shared.is_some() {
                let (file, id, port) = (self.file.clone(), own.id, client.port);
                return Err(ConfigError::ClientPortTaken { file, id, port });
            }
        }
        self.client_address = own.client.or(self.client_address.take());
        let whole = || Place { file: self.file.clone(), line: 0 };
        let several = self.membership.members().iter().filter(|member| member.addresses.len() > 1);
        for member in several.filter(|_| !self.multi_address) {
            entries.warn(whole(), Caution::SeveralAddresses { id: member.id });
        }
        entries
            .check_extended_types(self.membership.members().iter().map(|m| m.id).chain([own.id]))?;
        let participants = self.membership.participants().count();
        if !self.membership.is_hierarchical() {
            if participants == 1 {
                entries.warn(whole(), Caution::OneParticipant);
            } else if participants == 2 {
                entries.warn(whole(), Caution::TwoParticipants);
            } else if participants % 2 == 0 {
                entries.warn(whole(), Caution::EvenParticipants { participants });
            }
        }
        Ok(())
    }
}

/// The four-letter words that are answered unless the file says otherwise.
const WORDS: [&str; 5] = ["ruok", "srvr", "stat", "conf", "mntr"];
const WHY_INIT: &str = "how many ticks connecting and synchronising may take, for instance 10";
const WHY_SYNC: &str = "how many ticks a peer may be silent, for instance 5";
const WHY_DATA: &str = "the directory with this server's myid and data";

/// The id in `myid`; ZooKeeper reads the first line only, and so do we.
fn read_my_id(
    data_dir: &Path,
    membership: &Membership,
    known: impl Fn(ServerId) -> bool,
    read_file: &impl Fn(&Path) -> io::Result<String>,
) -> Result<ServerId, ConfigError> {
    let file = data_dir.join("myid");
    let text = match read_file(&file) {
        Ok(text) => text,
        Err(source) => return Err(ConfigError::MyIdUnreadable { file, source }),
    };
    let found = text.lines().next().unwrap_or_default().trim();
    let id = found.parse().ok().filter(|id| ServerId::CONFIGURABLE.contains(id)).map(ServerId);
    let Some(id) = id else { return Err(ConfigError::MyId { file, found: found.to_owned() }) };
    if !known(id) {
        let known: Vec<_> = membership.members().iter().map(|m| m.id.to_string()).collect();
        return Err(ConfigError::MyIdNotListed { file, id, known: known.join(", ") });
    }
    Ok(id)
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

//! `zoo.cfg`, `myid` and the dynamic file, as they are.
//!
//! People who run ZooKeeper have these files already, so there is no other format. What they say is
//! turned into a [`ZooCfg`] of typed values, once, at start. A value that is wrong refuses the whole
//! file: a server that takes a default instead is one that behaves otherwise than its operator thinks.
//! A key that means nothing to us is a [`Warning`]. Both name file, line, key and value.
//!
//! The rules of properties files and the grammar of `server.N`, `group.G` and `weight.N` are the
//! core's ([`quorate_core::membership`]). As in ZooKeeper, any other key may be written with or without
//! `zookeeper.` before it.
//!
//! Nothing here opens a socket or resolves a name, and nothing is created.
//!
//! In the Java code: `QuorumPeerConfig`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::membership::{
    LineError, Member, Membership, MembershipBuilder, MembershipError, Role,
};
use quorate_core::properties::{EscapeError, Line, Lines};
use thiserror::Error;

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
    /// How long a leader waits for epochs before it gives up for a voter that looks for a leader again
    /// (`leader.maxTimeToWaitForEpoch`); none if it does not.
    pub epoch_wait_max: Option<Duration>,
    /// Transactions between snapshots (`snapCount`, 100000).
    pub snap_count: u32,
    /// How many snapshots are kept (`autopurge.snapRetainCount`, 3); all of them, if
    /// `autopurge.purgeInterval` is 0 or absent, as in ZooKeeper. Otherwise older ones go whenever a
    /// new one has been taken, however long the interval.
    pub snapshots_kept: Option<usize>,
    /// By how many bytes a log file grows at a time (`preAllocSize` in KiB, 64 MiB).
    pub preallocate: u64,
    /// After how many bytes a new log file is begun (`snapSizeLimitInKb`, 4 GiB).
    pub log_bytes: u64,
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
    /// For how long voters promise their leader to establish nobody else (`quorate.lease`, in ms; not at
    /// all), see [`Config::lease`](quorate_core::config::Config::lease).
    pub lease: Option<Duration>,
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
        let membership = members.finish(reconfig_enabled)?;
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
            election_bind_retries: entries.number("electionPortBindRetry", 0, MAX)?.unwrap_or(3),
            listen_on_all_ips: entries.boolean("quorumListenOnAllIPs", false)?,
            standalone_enabled: entries.boolean("standaloneEnabled", true)?,
            reconfig_enabled,
            epoch_wait_max: entries.millis_or_off("leader.maxTimeToWaitForEpoch")?,
            snap_count: entries.number("snapCount", 2, MAX)?.unwrap_or(100_000),
            snapshots_kept: entries.snapshots_kept()?,
            preallocate: entries.kibibytes("preAllocSize", 64 << 20)?,
            log_bytes: entries.kibibytes("snapSizeLimitInKb", 4 << 30)?,
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
        for member in self.membership.members().iter().filter(|m| m.addresses.len() > 1) {
            let used = member.addresses[0].quorum.host.clone();
            entries.warn(whole(), Caution::SeveralAddresses { id: member.id, used });
        }
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

/// A place in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file.display()),
            line => write!(f, "{}:{line}", self.file.display()),
        }
    }
}

/// A `key=value` and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where it stands.
    pub at: Place,
    /// The key, as written.
    pub key: String,
    /// The value, without blanks at its ends.
    pub value: String,
}

impl Setting {
    fn new(file: &Path, Line { number, key, value }: Line) -> Self {
        Self { at: Place { file: file.to_owned(), line: number }, key, value }
    }

    fn value_error(self, expected: String) -> ConfigError {
        ConfigError::Value { setting: self.into(), expected }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}={}", self.at, self.key, self.value)
    }
}

/// Something in the files that is no error, but that the operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it stands.
    pub at: Place,
    /// What it is.
    pub caution: Caution,
}

impl Warning {
    /// Whether this is only for information: nothing needs to be changed.
    pub fn is_notice(&self) -> bool {
        matches!(self.caution, Caution::NotUsed { .. } | Caution::KeepAliveStays)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.caution)
    }
}

/// What a [`Warning`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caution {
    /// Neither ZooKeeper nor we know the key.
    UnknownKey {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The known key that looks most like it, if one does.
        nearest: Option<&'static str>,
    },
    /// ZooKeeper knows the key; here it has no effect.
    NotUsed {
        /// The key.
        key: String,
        /// Its value.
        value: String,
    },
    /// The key is often written this way, but has another name; it has no effect.
    Misspelt {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What to write instead.
        instead: &'static str,
    },
    /// The key was set before; the later value counts, as in ZooKeeper.
    Repeated {
        /// The key.
        key: String,
        /// The value that counts.
        value: String,
        /// The line of the value that does not.
        first: usize,
    },
    /// `tcpKeepAlive=false`, but dead links must be noticed.
    KeepAliveStays,
    /// `peerType` contradicts our own server line, which counts.
    OtherRole {
        /// Our id.
        id: ServerId,
        /// What the server line says.
        used: Role,
        /// What `peerType` says.
        stated: Role,
    },
    /// A server has several addresses, of which one is used.
    SeveralAddresses {
        /// The server.
        id: ServerId,
        /// The host that is used.
        used: String,
    },
    /// One server decides alone.
    OneParticipant,
    /// Two servers stop when one does.
    TwoParticipants,
    /// An even number of servers tolerates no more failures than one less.
    EvenParticipants {
        /// How many servers vote.
        participants: usize,
    },
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { key, value, nearest: None } => {
                write!(f, "{key}={value}: unknown key, it has no effect")
            }
            Self::UnknownKey { key, value, nearest: Some(nearest) } => {
                write!(f, "{key}={value}: unknown key, it has no effect; did you mean {nearest}?")
            }
            Self::NotUsed { key, value } => {
                write!(f, "{key}={value}: a key of ZooKeeper that has no effect here")
            }
            Self::Misspelt { key, value, instead } => {
                write!(f, "{key}={value}: there is no such key, it has no effect; {instead}")
            }
            Self::Repeated { key, value, first } => {
                write!(f, "{key}={value}: set on line {first} already; this value counts")
            }
            Self::KeepAliveStays => f.write_str(
                "tcpKeepAlive=false: keep-alive stays on, or a dead election link would go unnoticed",
            ),
            Self::OtherRole { id, used, stated } => {
                write!(f, "peerType={stated}: server.{id} says {used}, which counts")
            }
            Self::SeveralAddresses { id, used } => {
                write!(f, "server.{id} has several addresses, of which only {used} is used")
            }
            Self::OneParticipant => {
                f.write_str("one participant: no failure is tolerated, three tolerate one")
            }
            Self::TwoParticipants => f.write_str(
                "two participants: no failure is tolerated, since both are needed; three tolerate one",
            ),
            Self::EvenParticipants { participants } => write!(
                f,
                "{participants} participants tolerate no more failures than {} do",
                participants - 1
            ),
        }
    }
}

/// Why the configuration files cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A file breaks the rules of properties files.
    #[error("{}: {source}", file.display())]
    Escape {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        #[source]
        source: EscapeError,
    },
    /// A value is not of its kind.
    #[error("{setting}: should be {expected}")]
    Value {
        /// The line.
        setting: Box<Setting>,
        /// What it should be.
        expected: String,
    },
    /// A key must be set and is not.
    #[error("{}: {key} is missing: {why}", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
        /// The key.
        key: &'static str,
        /// What it is needed for.
        why: &'static str,
    },
    /// A key that looks like a setting, but is none.
    #[error("{setting}: there is no such key; {instead}")]
    Misspelt {
        /// The line.
        setting: Box<Setting>,
        /// What to write instead.
        instead: &'static str,
    },
    /// The key turns on what we cannot do.
    #[error("{setting}: {what} is not supported yet")]
    NotSupported {
        /// The line.
        setting: Box<Setting>,
        /// What it turns on.
        what: &'static str,
    },
    /// A line of the membership cannot be read.
    #[error("{setting}: {source}")]
    MemberLine {
        /// The line.
        setting: Box<Setting>,
        /// What is wrong with it.
        #[source]
        source: LineError,
    },
    /// The lines of the membership do not fit together.
    #[error("{at}: {source}")]
    Membership {
        /// The line that showed it.
        at: Place,
        /// What is wrong.
        #[source]
        source: Box<MembershipError>,
    },
    /// A server id is too large for the session ids of clients, whose first byte it is.
    #[error("{setting}: the id of a server must be between 1 and 255")]
    IdRange {
        /// The line.
        setting: Box<Setting>,
    },
    /// There is no ensemble.
    #[error(
        "{}: no server.N line: an ensemble is needed, list every server as \
         server.N=host:quorumPort:electionPort", file.display()
    )]
    NoServers {
        /// The file that should list them.
        file: PathBuf,
    },
    /// The membership stands in `zoo.cfg` and in the dynamic file.
    #[error(
        "{setting}: must stand in the dynamic file {}, since dynamicConfigFile is set",
        dynamic.display()
    )]
    TwoMemberships {
        /// The line.
        setting: Box<Setting>,
        /// The dynamic file.
        dynamic: PathBuf,
    },
    /// The dynamic file holds more than members and groups.
    #[error("{setting}: only server, group and weight lines may stand in a dynamic file")]
    NotDynamic {
        /// The line.
        setting: Box<Setting>,
    },
    /// `clientPort` contradicts our own server line.
    #[error("{}: server.{id} says that clients connect to {line}, clientPort says {key}", file.display())]
    TwoClientAddresses {
        /// The file.
        file: PathBuf,
        /// Our id.
        id: ServerId,
        /// What our line says.
        line: Box<HostPort>,
        /// What `clientPort` and `clientPortAddress` say.
        key: Box<HostPort>,
    },
    /// `clientPort` is one of our ports for peers.
    #[error("{}: clientPort={port}: server.{id} uses port {port} for its peers", file.display())]
    ClientPortTaken {
        /// The file.
        file: PathBuf,
        /// Our id.
        id: ServerId,
        /// The port.
        port: u16,
    },
    /// `myid` cannot be read.
    #[error(
        "cannot read {}: {source}; it must hold this server's id, the N of its server.N line",
        file.display()
    )]
    MyIdUnreadable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// `myid` does not hold an id.
    #[error("{}:1: {found:?} is not a server id from 1 to 255", file.display())]
    MyId {
        /// The file.
        file: PathBuf,
        /// What its first line holds.
        found: String,
    },
    /// `myid` holds an id that no server has.
    #[error("{}:1: there is no server.{id} line; the servers are {known}", file.display())]
    MyIdNotListed {
        /// The file.
        file: PathBuf,
        /// The id.
        id: ServerId,
        /// The ids of all members, for people.
        known: String,
    },
}

/// The largest number, as in Java.
/// A text without the mark that some editors put in front of it, which would become part of the first
/// key and lose that line.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

const MAX: u32 = i32::MAX as u32;

/// A factor of more than this is as good as any.
fn hundredths(factor: f64) -> u64 {
    (0..=100_000_u32)
        .find(|percent| f64::from(*percent) >= (factor * 100.0).round())
        .unwrap_or(100_000)
        .into()
}

/// The four-letter words that are answered unless the file says otherwise.
const WORDS: [&str; 5] = ["ruok", "srvr", "stat", "conf", "mntr"];
const WHY_INIT: &str = "how many ticks connecting and synchronising may take, for instance 10";
const WHY_SYNC: &str = "how many ticks a peer may be silent, for instance 5";
const WHY_DATA: &str = "the directory with this server's myid and data";

/// Keys that look like settings; the second part says what to write.
const ELECTION_PORT: &str =
    "the election port is the second port of each server.N=host:quorumPort:electionPort";
const BIND_RETRY: &str = "write electionPortBindRetry instead";

const MEMBER_KINDS: [(&str, &str); 3] = [
    ("server", "a server is written as server.N=host:quorumPort:electionPort"),
    ("group", "a group is written as group.G=1:2:3"),
    ("weight", "a weight is written as weight.N=1"),
];

/// Keys that turn on what we cannot do.
const NOT_SUPPORTED: [(&str, &str); 5] = [
    ("sslQuorum", "TLS between servers"),
    ("portUnification", "TLS between servers"),
    ("quorum.auth.enableSasl", "SASL between servers"),
    ("quorum.auth.learnerRequireSasl", "SASL between servers"),
    ("quorum.auth.serverRequireSasl", "SASL between servers"),
];

/// Keys of ZooKeeper that have no effect here.
const NOT_USED: [&str; 62] = [
    "admin.commandURL",
    "admin.enableServer",
    "admin.idleTimeout",
    "admin.serverAddress",
    "admin.serverPort",
    "audit.enable",
    "client.portUnification",
    "clientPortListenBacklog",
    "closeSessionTxn.enabled",
    "commitLogSize",
    "commitProcessor.maxCommitBatchSize",
    "commitProcessor.maxReadBatchSize",
    "commitProcessor.numWorkerThreads",
    "commitProcessor.shutdownTimeout",
    "connectionMaxTokens",
    "datadir.autocreate",
    "digest.enabled",
    "emulate353TTLNodes",
    "enforceQuota",
    "enableEagerACLCheck",
    "extendedTypesEnabled",
    "flushDelay",
    "follower.nodelay",
    "forceSync",
    "fsync.warningthresholdms",
    "globalOutstandingLimit",
    "jute.maxbuffer",
    "largeRequestMaxBytes",
    "largeRequestThreshold",
    "leader.closeSocketAsync",
    "leader.nodelay",
    "leaderConnectDelayDuringRetryMs",
    "leaderServes",
    "learner.asyncSending",
    "learner.closeSocketAsync",
    "localSessionsEnabled",
    "localSessionsUpgradingEnabled",
    "maxBatchSize",
    "maxClientCnxns",
    "maxCnxns",
    "maxResponseCacheSize",
    "maxGetChildrenResponseCacheSize",
    "maxSessionTimeout",
    "maxWriteQueuePollTime",
    "minSessionTimeout",
    "observer.reconnectDelayMs",
    "observerMasterPort",
    "quorum.cnxn.threads.size",
    "readonlymode.enabled",
    "request_throttler.shutdownTimeout",
    "secureClientPort",
    "secureClientPortAddress",
    "serializeLastProcessedZxid.enabled",
    "serverCnxnFactory",
    "sessionRequireClientSASLAuth",
    "skipACL",
    "sslQuorumReloadCertFiles",
    "syncEnabled",
    "txnLogSizeLimitInKb",
    "warnThreshold",
    "watchManagerName",
    "znode.container.checkIntervalMs",
];

/// Beginnings of keys of ZooKeeper that have no effect here.
const NOT_USED_FAMILIES: [&str; 15] = [
    "authProvider.",
    "connection",
    "DigestAuthenticationProvider.",
    "jute.",
    "kerberos.",
    "metricsProvider.",
    "multiAddress.",
    "netty.",
    "nio",
    "quorum.auth.",
    "sasl",
    "snapshot.",
    "ssl.",
    "watch",
    "znode.container.",
];

/// The lines that are not the membership's. Whoever asks for a key takes its line away; those left at
/// the end are of no use to anyone.
struct Entries<'a> {
    file: &'a Path,
    entries: BTreeMap<String, Setting>,
    /// The keys that were asked for, so that there is no second list of them.
    asked: Vec<&'static str>,
    warnings: Vec<Warning>,
}

impl<'a> Entries<'a> {
    fn new(file: &'a Path) -> Self {
        Self { file, entries: BTreeMap::new(), asked: Vec::new(), warnings: Vec::new() }
    }

    fn add(&mut self, line: Line) {
        let setting = Setting::new(self.file, line);
        let name = match setting.key.strip_prefix("zookeeper.").unwrap_or(&setting.key) {
            "maxTimeToWaitForEpoch" => "leader.maxTimeToWaitForEpoch",
            name => name,
        };
        if let Some(before) = self.entries.insert(name.to_owned(), setting.clone()) {
            let Setting { at, key, value } = setting;
            self.warn(at, Caution::Repeated { key, value, first: before.at.line });
        }
    }

    fn warn(&mut self, at: Place, caution: Caution) {
        self.warnings.push(Warning { at, caution });
    }

    fn peek(&self, key: &'static str) -> Option<Setting> {
        self.entries.get(key).cloned()
    }

    fn take(&mut self, key: &'static str) -> Option<Setting> {
        self.asked.push(key);
        self.entries.remove(key)
    }

    fn number(
        &mut self,
        key: &'static str,
        min: u32,
        max: u32,
    ) -> Result<Option<u32>, ConfigError> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        match entry.value.parse().ok().filter(|number| (min..=max).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(entry.value_error(format!("a whole number from {min} to {max}"))),
        }
    }

    /// A count of at least 1.
    fn count(&mut self, key: &'static str, default: usize) -> Result<usize, ConfigError> {
        let count = self.number(key, 1, MAX)?;
        Ok(count.map_or(default, |count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    fn kibibytes(&mut self, key: &'static str, default: u64) -> Result<u64, ConfigError> {
        Ok(self.number(key, 1, MAX)?.map_or(default, |kibibytes| u64::from(kibibytes) << 10))
    }

    fn snapshots_kept(&mut self) -> Result<Option<usize>, ConfigError> {
        let interval = self.number("autopurge.purgeInterval", 0, MAX)?.unwrap_or(0);
        let kept = self.count("autopurge.snapRetainCount", 3)?.max(3);
        Ok((interval > 0).then_some(kept))
    }

    /// `snapshotSizeFactor` in hundredths.
    fn size_factor(&mut self) -> Result<Option<u64>, ConfigError> {
        let Some(entry) = self.take("snapshotSizeFactor") else { return Ok(Some(33)) };
        match entry.value.parse::<f64>().ok().filter(|factor| factor.is_finite()) {
            None => Err(entry.value_error("a number such as 0.33, negative for never".to_owned())),
            Some(factor) if factor < 0.0 => Ok(None),
            Some(factor) => Ok(Some(hundredths(factor))),
        }
    }

    fn millis(&mut self, key: &'static str, min: u32) -> Result<Option<Duration>, ConfigError> {
        let entry = self.peek(key);
        match (self.number(key, min, MAX), entry) {
            (Err(_), Some(entry)) => {
                let expected = format!("a whole number of milliseconds from {min} to {MAX}");
                Err(entry.value_error(expected))
            }
            (number, _) => Ok(number?.map(|millis| Duration::from_millis(millis.into()))),
        }
    }

    /// -1 stands for "not set".
    fn millis_or_off(&mut self, key: &'static str) -> Result<Option<Duration>, ConfigError> {
        if self.entries.get(key).is_some_and(|entry| entry.value == "-1") {
            self.take(key);
        }
        self.millis(key, 0)
    }

    fn boolean(&mut self, key: &'static str, default: bool) -> Result<bool, ConfigError> {
        let Some(entry) = self.take(key) else { return Ok(default) };
        match entry.value.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(entry.value_error("true or false".to_owned())),
        }
    }

    fn path(&mut self, key: &'static str) -> Result<Option<PathBuf>, ConfigError> {
        match self.take(key) {
            Some(entry) if entry.value.is_empty() => Err(entry.value_error("a path".to_owned())),
            entry => Ok(entry.map(|entry| entry.value.into())),
        }
    }

    fn words(&mut self, key: &'static str, default: &[&str]) -> Vec<String> {
        let Some(entry) = self.take(key) else {
            return default.iter().map(|word| (*word).to_owned()).collect();
        };
        let words = entry.value.split(',').map(|word| word.trim().to_owned());
        words.filter(|word| !word.is_empty()).collect()
    }

    /// `clientPort` and `clientPortAddress`; port 0 is none.
    fn client_address(&mut self) -> Result<Option<HostPort>, ConfigError> {
        let port = self.number("clientPort", 0, u16::MAX.into())?.unwrap_or(0);
        let port = u16::try_from(port).unwrap_or(0);
        let address = self.take("clientPortAddress");
        match (port, address) {
            (0, None) => Ok(None),
            (0, Some(_)) => Err(ConfigError::Missing {
                file: self.file.to_owned(),
                key: "clientPort",
                why: "clientPortAddress is set",
            }),
            (port, None) => Ok(Some(HostPort { host: "0.0.0.0".to_owned(), port })),
            (port, Some(entry)) => {
                let host = entry.value.trim_start_matches('[').trim_end_matches(']').to_owned();
                if host.is_empty() || host.contains(char::is_whitespace) {
                    return Err(entry.value_error("a host".to_owned()));
                }
                Ok(Some(HostPort { host, port }))
            }
        }
    }

    fn refuse_misspellings(&mut self) -> Result<(), ConfigError> {
        if let Some(setting) = self.entries.remove("electionPort") {
            return Err(ConfigError::Misspelt { setting: setting.into(), instead: ELECTION_PORT });
        }
        if let Some(Setting { at, key, value }) = self.entries.remove("electionAddrBindRetry") {
            self.warn(at, Caution::Misspelt { key, value, instead: BIND_RETRY });
        }
        // `server1`, `server_2`: a member that is not one changes what a majority is.
        for (kind, instead) in MEMBER_KINDS {
            let like = |name: &String| {
                name.to_ascii_lowercase()
                    .strip_prefix(kind)
                    .is_some_and(|rest| rest.starts_with(|c: char| !c.is_alphabetic()))
            };
            if let Some(setting) = self.entries.values().find(|setting| like(&setting.key)) {
                let setting = setting.clone().into();
                return Err(ConfigError::Misspelt { setting, instead });
            }
        }
        Ok(())
    }

    fn refuse_unsupported(&mut self) -> Result<(), ConfigError> {
        for (key, what) in NOT_SUPPORTED {
            let entry = self.peek(key);
            if let (Some(setting), true) = (entry, self.boolean(key, false)?) {
                return Err(ConfigError::NotSupported { setting: setting.into(), what });
            }
        }
        Ok(())
    }

    /// Warnings in the order of lines, those about a whole file last.
    fn finish(mut self) -> Vec<Warning> {
        for (name, Setting { at, key, value }) in std::mem::take(&mut self.entries) {
            let known = NOT_USED.contains(&name.as_str())
                || NOT_USED_FAMILIES.iter().any(|family| name.starts_with(family));
            let caution = if known {
                Caution::NotUsed { key, value }
            } else {
                let nearest = nearest(&name, self.asked.iter().chain(&NOT_USED).copied());
                Caution::UnknownKey { key, value, nearest }
            };
            self.warn(at, caution);
        }
        self.warnings.sort_by_key(|warning| (warning.at.line == 0, warning.at.line));
        self.warnings
    }
}

/// The lines of the membership, and where they stand.
struct MemberLines {
    file: PathBuf,
    builder: MembershipBuilder,
    settings: BTreeMap<String, Setting>,
}

impl MemberLines {
    fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), builder: MembershipBuilder::new(), settings: BTreeMap::new() }
    }

    /// Takes a line if it is one of the membership's.
    fn take(&mut self, line: &Line) -> Result<bool, ConfigError> {
        let setting = Setting::new(&self.file, line.clone());
        match self.builder.line(&line.key, &line.value) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(source) => {
                return Err(ConfigError::MemberLine { setting: setting.into(), source });
            }
        }
        // One way to write a number, so that `server.01` is found again as `server.1`.
        let (kind, number) = line.key.split_once('.').unwrap_or((&line.key, ""));
        let number: Option<i64> = number.parse().ok();
        if kind == "server" && !number.is_some_and(|id| ServerId::CONFIGURABLE.contains(&id)) {
            return Err(ConfigError::IdRange { setting: setting.into() });
        }
        let name = number.map_or_else(|| kind.to_owned(), |number| format!("{kind}.{number}"));
        self.settings.insert(name, setting);
        Ok(true)
    }

    fn at(&self, key: Option<&str>) -> Place {
        match key.and_then(|key| self.settings.get(key)) {
            Some(setting) => setting.at.clone(),
            None => Place { file: self.file.clone(), line: 0 },
        }
    }

    /// The lines of the dynamic file instead of these, of which there must be none.
    fn replaced_by(
        self,
        dynamic: &Path,
        read_file: &impl Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, ConfigError> {
        if let Some(first) = self.settings.into_values().min_by_key(|setting| setting.at.line) {
            let (setting, dynamic) = (first.into(), dynamic.to_owned());
            return Err(ConfigError::TwoMemberships { setting, dynamic });
        }
        let text = read_file(dynamic)
            .map_err(|source| ConfigError::Read { file: dynamic.to_owned(), source })?;
        let mut new = Self::new(dynamic);
        for line in Lines::new(without_mark(&text)) {
            let line =
                line.map_err(|source| ConfigError::Escape { file: dynamic.to_owned(), source })?;
            if line.key == "version" || !new.take(&line)? {
                let setting = Setting::new(dynamic, line).into();
                return Err(ConfigError::NotDynamic { setting });
            }
        }
        // The last part of the file's name, as in `zoo.cfg.dynamic.100000000`.
        let version =
            dynamic.extension().and_then(|end| i64::from_str_radix(end.to_str()?, 16).ok());
        new.builder.version(version.unwrap_or(0));
        Ok(new)
    }

    /// Without reconfiguration the version means nothing, and ZooKeeper tells its peers 0.
    fn finish(self, reconfig_enabled: bool) -> Result<Membership, ConfigError> {
        if self.builder.members().next().is_none() {
            return Err(ConfigError::NoServers { file: self.file });
        }
        match self.builder.clone().finish() {
            Ok(membership) if reconfig_enabled => Ok(membership),
            Ok(membership) => Ok(membership.with_version(0)),
            Err(source) => {
                let at = self.at(source.key().as_deref());
                Err(ConfigError::Membership { at, source: source.into() })
            }
        }
    }
}

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

/// The known key that looks most like `name`; none if none really does.
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    known
        .map(|key| (strsim::normalized_damerau_levenshtein(&name, &key.to_ascii_lowercase()), key))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, key)| key)
}

/// Of keys that differ in more than a third of their letters none was meant for the other.
const LIKENESS_MIN: f64 = 0.7;

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

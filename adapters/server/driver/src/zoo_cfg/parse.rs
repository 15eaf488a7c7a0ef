//! Parsing: every setting from its lines, the membership from its own, and what the whole must be.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Membership, Role};
use quorate_core::properties::Lines;

use crate::zoo_cfg::alone::{self, WHY_CLIENTS};
use crate::zoo_cfg::audit::AuditSettings;
use crate::zoo_cfg::clients::ClientSettings;
use crate::zoo_cfg::entries::{Entries, MAX};
use crate::zoo_cfg::exposed::Exposure;
use crate::zoo_cfg::findings::{Caution, ConfigError, Place};
use crate::zoo_cfg::flags::JvmFlags;
use crate::zoo_cfg::http::HttpSettings;
use crate::zoo_cfg::log::LogSettings;
use crate::zoo_cfg::members::{MemberLines, without_mark};
use crate::zoo_cfg::sasl::Sasl;
use crate::zoo_cfg::{Survey, ZooCfg};
#[cfg(feature = "tls")]
use crate::zoo_cfg::{client_tls, tls};

impl ZooCfg {
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
        Self::parse_with(path, text, &JvmFlags::default(), read_file)
    }

    /// The same with flags of the JVM that ZooKeeper would run in.
    ///
    /// # Errors
    ///
    /// As [`ZooCfg::parse`]; for what a flag says, the variable stands in place of the file.
    pub fn parse_with(
        path: impl AsRef<Path>,
        text: &str,
        flags: &JvmFlags,
        read_file: impl Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, ConfigError> {
        let file = path.as_ref();
        let (mut entries, members) = lines(file, text, flags)?;
        entries.refuse_misspellings()?;
        entries.refuse_unsupported()?;
        Self::of_lines(file, entries, members, &read_file)
    }

    fn of_lines(
        file: &Path,
        mut entries: Entries<'_>,
        members: MemberLines,
        read_file: &impl Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, ConfigError> {
        let ensemble = Ensemble::read(&mut entries, members, read_file)?;
        let basics = Basics::read(file, &mut entries, &ensemble, read_file)?;
        let mut cfg = Self::settings(file, &mut entries, ensemble, basics)?;
        cfg.check_own_line(&mut entries)?;
        cfg.warnings = entries.finish();
        Ok(cfg)
    }

    /// Every setting and what it is if it is absent: a table.
    fn settings(
        file: &Path,
        entries: &mut Entries<'_>,
        ensemble: Ensemble,
        basics: Basics,
    ) -> Result<Self, ConfigError> {
        let Basics { tick_time, sync_limit, .. } = basics;
        let members = ensemble.membership.members().iter().map(|member| member.id);
        entries.check_extended_types(members.chain([basics.my_id]))?;
        let (notification_min, notification_max) = basics.notifications;
        // First: it leaves what both have for the other.
        #[cfg(feature = "tls")]
        let client_tls = client_tls::read(entries, ensemble.membership.member(basics.my_id))?;
        #[cfg(feature = "tls")]
        let tls = tls::read(entries)?;
        let (request_bytes, txn_bytes) = basics.buffers;
        let sasl = Sasl::read(entries)?;
        let http = HttpSettings::read(
            entries,
            #[cfg(feature = "tls")]
            tls.as_ref(),
        )?;
        Ok(Self {
            file: file.to_owned(),
            my_id: basics.my_id,
            own_line: basics.own_line,
            tick_time,
            init_limit: basics.init_limit,
            sync_limit,
            connect_limit: basics.connect_limit.filter(|limit| *limit > 0),
            data_dir: basics.data_dir,
            data_log_dir: entries.path("dataLogDir")?,
            client_address: entries.client_address()?,
            dynamic_config_file: ensemble.dynamic_config_file,
            notification_min,
            notification_max,
            observer_delay: entries
                .millis("observer.election.DelayMs", 0)?
                .unwrap_or(Duration::from_millis(200)),
            dial_timeout: entries.millis("cnxTimeout", 1)?.unwrap_or(Duration::from_secs(5)),
            introduction_timeout: basics
                .introduction_timeout
                .unwrap_or_else(|| tick_time.saturating_mul(sync_limit)),
            max_peer_connections: entries.count_or_none("quorate.maxPeerCnxns", 512)?,
            exposure: Exposure::read(entries)?,
            election_bind_retries: entries.number("electionPortBindRetry", 0, MAX)?.unwrap_or(3),
            listen_on_all_ips: entries.boolean("quorumListenOnAllIPs", false)?,
            alone: ensemble.alone,
            standalone_enabled: ensemble.standalone_enabled,
            reconfig_enabled: ensemble.reconfig_enabled,
            forgotten: ensemble.forgotten,
            multi_address: entries.boolean("multiAddress.enabled", false)?,
            fsync_warning: entries
                .millis("fsync.warningthresholdms", 0)?
                .unwrap_or(Duration::from_secs(1)),
            disk_floor: entries.disk_floor()?,
            snap_count: entries.number("snapCount", 2, MAX)?.unwrap_or(100_000),
            snapshots_kept: entries.snapshots_kept()?,
            preallocate: entries.kibibytes("preAllocSize", 64 << 20)?,
            log_bytes: entries.log_bytes()?,
            patience: entries.millis("quorate.patience", 0)?,
            shed: entries.millis("quorate.shed", 0)?,
            request_bytes,
            txn_bytes,
            commit_log_count: entries.count("commitLogCount", 500)?,
            snapshot_size_percent: entries.size_factor()?,
            observer_snapshots: entries.count("leader.maxConcurrentSnapSyncs", 10)?,
            trust_empty_snapshot: entries.boolean("snapshot.trust.empty", false)?,
            oracle_path: entries.path("oraclePath")?,
            clients: ClientSettings {
                sasl: sasl.clients,
                required_schemes: sasl.required_schemes,
                ..ClientSettings::read(entries, tick_time)?
            },
            sasl: sasl.servers,
            http,
            log: LogSettings::read(entries)?,
            audit: AuditSettings::read(entries)?,
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
            #[cfg(feature = "tls")]
            client_tls,
            #[cfg(feature = "tls")]
            tls,
            membership: ensemble.membership,
            warnings: Vec::new(),
        })
    }

    /// Compares our own line with what the rest of the file says of us, and looks at the whole.
    fn check_own_line(&mut self, entries: &mut Entries<'_>) -> Result<(), ConfigError> {
        let own = self.own().clone();
        let whole = || Place { file: self.file.clone(), line: 0 };
        if self.alone {
            if self.client_address.is_none() && self.secure_client_address().is_none() {
                let file = self.file.clone();
                return Err(ConfigError::Missing { file, key: "clientPort", why: WHY_CLIENTS });
            }
            entries.warn(whole(), Caution::Alone);
            return Ok(());
        }
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
            let port = key.port == 0 || line.port == key.port;
            let same = port && (key.is_wildcard() || line.host == key.host);
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
        self.check_client_ports(&own)?;
        self.client_address = own.client.or(self.client_address.take());
        let whole = || Place { file: self.file.clone(), line: 0 };
        let several = self.membership.members().iter().filter(|member| member.addresses.len() > 1);
        for member in several.filter(|_| !self.multi_address) {
            entries.warn(whole(), Caution::SeveralAddresses { id: member.id });
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

impl Survey {
    /// Reads `text`, which stands in the file `path`, as [`ZooCfg::parse_with`] does.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] if no line can be told from another.
    pub fn of(
        path: impl AsRef<Path>,
        text: &str,
        flags: &JvmFlags,
        read_file: impl Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, ConfigError> {
        let file = path.as_ref();
        let (mut entries, members) = lines(file, text, flags)?;
        let settings = entries.all().clone();
        let not_supported = entries.take_unsupported();
        let checked = entries.refuse_misspellings().and_then(|()| entries.refuse_unsupported());
        let rest = checked.and_then(|()| ZooCfg::of_lines(file, entries, members, &read_file));
        Ok(Self { not_supported, settings, rest })
    }
}

/// The lines of a file: those of the membership, and the others with the flags.
fn lines<'a>(
    file: &'a Path,
    text: &str,
    flags: &JvmFlags,
) -> Result<(Entries<'a>, MemberLines), ConfigError> {
    let mut entries = Entries::new(file);
    let mut members = MemberLines::new(file);
    for line in Lines::new(without_mark(text)) {
        let line = line.map_err(|source| ConfigError::Escape { file: file.to_owned(), source })?;
        if !members.take(&line)? {
            entries.add(line);
        }
    }
    entries.add_flags(flags);
    Ok((entries, members))
}

/// The members, and how they may change.
struct Ensemble {
    /// There is none: this server runs alone.
    alone: bool,
    standalone_enabled: bool,
    dynamic_config_file: Option<PathBuf>,
    reconfig_enabled: bool,
    forgotten: i64,
    membership: Membership,
}

impl Ensemble {
    fn read(
        entries: &mut Entries<'_>,
        mut members: MemberLines,
        read_file: &impl Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, ConfigError> {
        let dynamic_config_file = entries.path("dynamicConfigFile")?;
        let standalone_enabled = entries.boolean("standaloneEnabled", true)?;
        let joins = dynamic_config_file.is_some() || entries.peek("quorate.self").is_some();
        let alone = members.are_none() && standalone_enabled && !joins;
        if alone {
            entries.without_effect("reconfigEnabled", WHY_FIXED);
        }
        let reconfig_enabled = entries.boolean("reconfigEnabled", false)? && !alone;
        if let Some(dynamic) = &dynamic_config_file {
            members = members.replaced_by(dynamic, read_file)?;
        }
        let forgotten = entries.version("quorate.membership.forget")?.unwrap_or(0);
        let membership = match alone {
            true => alone::membership(entries, read_file)?,
            false => members.finish(reconfig_enabled, forgotten)?,
        };
        Ok(Self {
            alone,
            standalone_enabled,
            dynamic_config_file,
            reconfig_enabled,
            forgotten,
            membership,
        })
    }
}

/// What no server can do without, and the settings that depend on one another.
struct Basics {
    tick_time: Duration,
    init_limit: u32,
    sync_limit: u32,
    data_dir: PathBuf,
    /// The shortest and the longest wait for a notification.
    notifications: (Duration, Duration),
    connect_limit: Option<u32>,
    introduction_timeout: Option<Duration>,
    /// The longest request and the longest transaction, in bytes.
    buffers: (usize, usize),
    my_id: ServerId,
    own_line: Option<Member>,
}

impl Basics {
    fn read(
        file: &Path,
        entries: &mut Entries<'_>,
        ensemble: &Ensemble,
        read_file: &impl Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, ConfigError> {
        let tick_time = entries.millis("tickTime", 1)?.unwrap_or(Duration::from_millis(3000));
        let missing = |key, why| ConfigError::Missing { file: file.to_owned(), key, why };
        let init_limit = entries.number("initLimit", 1, MAX)?;
        let init_limit = init_limit.or(ensemble.alone.then_some(10));
        let init_limit = init_limit.ok_or_else(|| missing("initLimit", WHY_INIT))?;
        let sync_limit = entries.number("syncLimit", 1, MAX)?;
        let sync_limit = sync_limit.or(ensemble.alone.then_some(5));
        let sync_limit = sync_limit.ok_or_else(|| missing("syncLimit", WHY_SYNC))?;
        let data_dir = entries.path("dataDir")?.ok_or_else(|| missing("dataDir", WHY_DATA))?;
        let notifications = notifications(entries)?;
        check_algorithm(entries)?;
        check_keep_alive(entries)?;
        let connect_limit = entries.number("connectToLearnerMasterLimit", 0, MAX)?;
        let introduction_timeout = entries.millis_or_off("quorumCnxnTimeoutMs")?;
        let buffers = entries.buffers()?;
        let (my_id, own_line) = match ensemble.membership.members() {
            [own] if ensemble.alone => (own.id, None),
            _ => own_id(entries, &data_dir, &ensemble.membership, read_file)?,
        };
        Ok(Self {
            tick_time,
            init_limit,
            sync_limit,
            data_dir,
            notifications,
            connect_limit,
            introduction_timeout,
            buffers,
            my_id,
            own_line,
        })
    }
}

/// The shortest and the longest wait for a notification; the longest is at least the shortest.
fn notifications(entries: &mut Entries<'_>) -> Result<(Duration, Duration), ConfigError> {
    let min = entries.millis("fastleader.minNotificationInterval", 1)?;
    let min = min.unwrap_or(Duration::from_millis(200));
    let longest = entries.peek("fastleader.maxNotificationInterval");
    let max = entries.millis("fastleader.maxNotificationInterval", 1)?;
    let max = max.unwrap_or(Duration::from_secs(60).max(min));
    if let Some(entry) = longest.filter(|_| max < min) {
        let least = min.as_millis();
        let expected = format!("at least fastleader.minNotificationInterval, which is {least}");
        return Err(entry.value_error(expected));
    }
    Ok((min, max))
}

/// ZooKeeper has dropped every election but fast leader election.
fn check_algorithm(entries: &mut Entries<'_>) -> Result<(), ConfigError> {
    let algorithm = entries.peek("electionAlg");
    if let (Some(entry), true) = (algorithm, entries.number("electionAlg", 0, MAX)? != Some(3)) {
        return Err(entry.value_error("3, the only algorithm there is".to_owned()));
    }
    Ok(())
}

/// Keep-alive stays on: a link for elections has no other probe of its own.
fn check_keep_alive(entries: &mut Entries<'_>) -> Result<(), ConfigError> {
    let keep_alive = entries.peek("tcpKeepAlive");
    if let (Some(entry), false) = (keep_alive, entries.boolean("tcpKeepAlive", true)?) {
        entries.warn(entry.at, Caution::KeepAliveStays);
    }
    Ok(())
}

/// Our id, and our own line where the membership has none for us.
fn own_id(
    entries: &mut Entries<'_>,
    data_dir: &Path,
    membership: &Membership,
    read_file: &impl Fn(&Path) -> io::Result<String>,
) -> Result<(ServerId, Option<Member>), ConfigError> {
    let own_line = entries.take("quorate.self");
    let known = |id| membership.member(id).is_some() || own_line.is_some();
    let my_id = read_my_id(data_dir, membership, known, read_file)?;
    let own_line = own_line.filter(|_| membership.member(my_id).is_none());
    let own_line = own_line.map(|entry| {
        let read = Member::parse(my_id, &entry.value);
        read.map_err(|error| entry.value_error(format!("our own line: {error}")))
    });
    Ok((my_id, own_line.transpose()?))
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

/// The four-letter words that are answered unless the file says otherwise.
const WORDS: [&str; 5] = ["ruok", "srvr", "stat", "conf", "mntr"];
const WHY_INIT: &str = "how many ticks connecting and synchronising may take, for instance 10";
const WHY_SYNC: &str = "how many ticks a peer may be silent, for instance 5";
const WHY_FIXED: &str = "a server alone has no ensemble that could change";
const WHY_DATA: &str = "the directory with this server's myid and data";

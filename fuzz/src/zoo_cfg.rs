//! Arbitrary text as `zoo.cfg`, as the dynamic file and as `myid`: it is refused with a reason, or what was
//! read, written as a file, is read as the same.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::time::Duration;

use quorate_core::config::{Election, Generations, Strangers, Ties};
use quorate_driver::DiskFloor;
use quorate_driver::zoo_cfg::{ConfigError, ZooCfg};

/// Feeds these bytes: up to three texts with a zero byte between them. What the first needs at least stands
/// before it, and may be said again.
pub fn feed(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split('\0');
    let cfg = format!(
        "initLimit=10\nsyncLimit=5\ndataDir=/data\n{}",
        parts.next().unwrap_or_default().trim_start_matches('\u{feff}')
    );
    let (dynamic, my_id) = (parts.next().unwrap_or_default(), parts.next().unwrap_or("1"));
    let read = |text: &str, dynamic: &str| -> Result<ZooCfg, ConfigError> {
        ZooCfg::parse("zoo.cfg", text, |path: &Path| {
            let is_id = path.file_name().is_some_and(|name| name == "myid");
            Ok::<_, io::Error>(if is_id { my_id } else { dynamic }.to_owned())
        })
    };
    let first = match read(&cfg, dynamic) {
        Ok(first) => first,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(first.derived().starts_with(&format!("server {}", first.my_id)));
    assert_eq!(first.own().id, first.my_id);
    for warning in &first.warnings {
        assert!(!warning.to_string().is_empty());
    }
    let text = written(&first);
    let members = first.membership.to_string();
    // That of a server alone stands in no file.
    let stands = |line: &&str| !first.alone && !line.starts_with("version=");
    let members = members.lines().filter(stands);
    let members: String = members.map(|line| format!("{line}\n")).collect();
    let again = match first.dynamic_config_file {
        Some(_) => read(&text, &members),
        None => read(&format!("{text}{members}"), ""),
    };
    let again = again.unwrap_or_else(|error| panic!("{error}, in {text}{members}"));
    let warnings = again.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    // What is not written below is not compared.
    let again = ZooCfg {
        warnings: Vec::new(),
        clients: first.clients.clone(),
        patience: first.patience,
        shed: first.shed,
        request_bytes: first.request_bytes,
        txn_bytes: first.txn_bytes,
        unsynced_bytes: first.unsynced_bytes,
        forgotten: first.forgotten,
        ..again
    };
    assert_eq!(again, ZooCfg { warnings: Vec::new(), ..first });
    assert!(!warnings.contains("unknown"), "{warnings}");
}

/// The same settings in another file.
fn written(cfg: &ZooCfg) -> String {
    let ms = |duration: &Duration| duration.as_millis().to_string();
    let mut out = String::new();
    let mut say = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            assert!(writeln!(out, "{key}={}", escaped(&value)).is_ok(), "a string takes it");
        }
    };
    let path = |path: &Path| path.to_str().map(ToOwned::to_owned);
    say("tickTime", Some(ms(&cfg.tick_time)));
    say("initLimit", Some(cfg.init_limit.to_string()));
    say("syncLimit", Some(cfg.sync_limit.to_string()));
    say("connectToLearnerMasterLimit", cfg.connect_limit.map(|limit| limit.to_string()));
    say("dataDir", path(&cfg.data_dir));
    say("dataLogDir", cfg.data_log_dir.as_deref().and_then(path));
    say("dynamicConfigFile", cfg.dynamic_config_file.as_deref().and_then(path));
    say("oraclePath", cfg.oracle_path.as_deref().and_then(path));
    say("fastleader.minNotificationInterval", Some(ms(&cfg.notification_min)));
    say("fastleader.maxNotificationInterval", Some(ms(&cfg.notification_max)));
    say("observer.election.DelayMs", Some(ms(&cfg.observer_delay)));
    say("cnxTimeout", Some(ms(&cfg.dial_timeout)));
    say("electionPortBindRetry", Some(cfg.election_bind_retries.to_string()));
    say("quorumListenOnAllIPs", Some(cfg.listen_on_all_ips.to_string()));
    say("standaloneEnabled", Some(cfg.standalone_enabled.to_string()));
    say("reconfigEnabled", Some(cfg.reconfig_enabled.to_string()));
    say("multiAddress.enabled", Some(cfg.multi_address.to_string()));
    say("fsync.warningthresholdms", Some(ms(&cfg.fsync_warning)));
    let floor = match cfg.disk_floor {
        DiskFloor::Snapshot => "snapshot".to_owned(),
        DiskFloor::Bytes(bytes) => bytes.to_string(),
        DiskFloor::Off => "off".to_owned(),
    };
    say("quorate.disk.floor", Some(floor));
    say("quorate.maxPeerCnxns", Some(cfg.max_peer_connections.to_string()));
    say("quorate.quorumAllow", cfg.exposure.allowed_hosts.as_ref().map(ToString::to_string));
    let strangers = match cfg.exposure.strangers {
        Strangers::Allow => "allow",
        Strangers::IpOnly => "ip-only",
        Strangers::Refuse => "refuse",
    };
    say("quorate.strangers", Some(strangers.to_owned()));
    say("quorumCnxnTimeoutMs", Some(ms(&cfg.introduction_timeout)));
    say("autopurge.purgeInterval", cfg.snapshots_kept.map(|_| "1".to_owned()));
    say("autopurge.snapRetainCount", cfg.snapshots_kept.map(|kept| kept.to_string()));
    say("preAllocSize", Some((cfg.preallocate >> 10).to_string()));
    say("snapSizeLimitInKb", Some((cfg.log_bytes >> 10).to_string()));
    let percent = cfg.snapshot_size_percent;
    let factor = percent.map(|percent| format!("{}.{:02}", percent / 100, percent % 100));
    say("snapshotSizeFactor", Some(factor.unwrap_or_else(|| "-1".to_owned())));
    let client = cfg.client_address.as_ref().filter(|_| cfg.own().client.is_none());
    say("clientPort", client.map(|client| client.port.to_string()));
    say("clientPortAddress", client.map(|client| client.host.clone()));
    say("snapCount", Some(cfg.snap_count.to_string()));
    say("commitLogCount", Some(cfg.commit_log_count.to_string()));
    say("leader.maxConcurrentSnapSyncs", Some(cfg.observer_snapshots.to_string()));
    say("snapshot.trust.empty", Some(cfg.trust_empty_snapshot.to_string()));
    say("4lw.commands.whitelist", Some(cfg.four_letter_words.join(",")));
    say("quorate.finishWhenSettled", Some(cfg.finish_when_settled.to_string()));
    say("quorate.priority", Some(cfg.priority.to_string()));
    say("quorate.lease", cfg.lease.as_ref().map(ms));
    let by_generation = match &cfg.election {
        Election::Fast => None,
        Election::Generation(generations) => Some(generations),
    };
    say("quorate.election", by_generation.map(|_| "generation".to_owned()));
    let timeout = |of: fn(&Generations) -> Duration| by_generation.map(|by| ms(&of(by)));
    say("quorate.election.minTimeout", timeout(|by| by.timeout_min));
    say("quorate.election.maxTimeout", timeout(|by| by.timeout_max));
    say("quorate.election.preVote", by_generation.map(|by| by.pre_vote.to_string()));
    let ties = |by: &Generations| if by.ties == Ties::FirstCome { "first" } else { "rank" };
    say("quorate.election.ties", by_generation.map(|by| ties(by).to_owned()));
    say("db.autocreate", Some(cfg.autocreate.to_string()));
    say("quorate.self", cfg.own_line.as_ref().map(ToString::to_string));
    out
}

/// A value as a properties file has it, whatever it is.
fn escaped(value: &str) -> String {
    let mut out = String::new();
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{c}' => out.push_str("\\f"),
            _ => out.push(c),
        }
    }
    out
}

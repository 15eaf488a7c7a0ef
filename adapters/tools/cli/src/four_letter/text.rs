//! The lines of the answers, as pure functions of the configuration.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_tokio::core::membership::Role;
use quorate_tokio::zoo_cfg::ZooCfg;

/// `conf`; `client_port` is where the server listens for clients now. A server alone has no more to say than ZooKeeper's
/// (`ZooKeeperServer.dumpConf`).
pub(super) fn configuration(cfg: &ZooCfg, client_port: Option<u16>) -> String {
    let [data, log] = directories(cfg);
    let own = cfg.own();
    let mut text = String::new();
    let client_port = client_port.map_or(-1, i32::from);
    line(&mut text, format_args!("clientPort={client_port}"));
    let secure = cfg.secure_client_address().map_or(-1, |client| i32::from(client.port));
    line(&mut text, format_args!("secureClientPort={secure}"));
    line(&mut text, format_args!("dataDir={}", data.display()));
    line(&mut text, format_args!("dataDirSize={}", size(&data)));
    line(&mut text, format_args!("dataLogDir={}", log.display()));
    line(&mut text, format_args!("dataLogSize={}", size(&log)));
    line(&mut text, format_args!("tickTime={}", cfg.tick_time.as_millis()));
    line(&mut text, format_args!("maxClientCnxns={}", cfg.clients.max_per_address));
    let timeout = |set: Option<Duration>, ticks| set.unwrap_or(cfg.tick_time * ticks).as_millis();
    let (min, max) = (cfg.clients.session_timeout_min, cfg.clients.session_timeout_max);
    line(&mut text, format_args!("minSessionTimeout={}", timeout(min, 2)));
    line(&mut text, format_args!("maxSessionTimeout={}", timeout(max, 20)));
    let backlog = cfg.clients.backlog.map_or(-1, i64::from);
    line(&mut text, format_args!("clientPortListenBacklog={backlog}"));
    line(&mut text, format_args!("serverId={}", cfg.my_id));
    if cfg.alone {
        return text;
    }
    line(&mut text, format_args!("initLimit={}", cfg.init_limit));
    line(&mut text, format_args!("syncLimit={}", cfg.sync_limit));
    text.push_str("electionAlg=3\n");
    line(&mut text, format_args!("electionPort={}", own.election_address().port));
    line(&mut text, format_args!("quorumPort={}", own.quorum_address().port));
    line(&mut text, format_args!("peerType={}", i32::from(own.role == Role::Observer)));
    text.push_str("membership: \n");
    // The answer ends without a newline, as ZooKeeper's does.
    let _ = write!(text, "{}", cfg.membership);
    text
}

/// `dirs`.
pub(super) fn sizes(cfg: &ZooCfg) -> String {
    let [data, log] = directories(cfg).map(|dir| size(&dir));
    format!("datadir_size: {data}\nlogdir_size: {log}\n")
}

/// That of the snapshots, and that of the logs.
pub(crate) fn directories(cfg: &ZooCfg) -> [PathBuf; 2] {
    let data = cfg.data_dir.join("version-2");
    let log = cfg.data_log_dir.as_ref().map_or_else(|| data.clone(), |dir| dir.join("version-2"));
    [data, log]
}

/// The sizes of all files in a directory.
pub(crate) fn size(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).filter(|m| m.is_file()).map(|m| m.len()).sum()
}

fn line(text: &mut String, line: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

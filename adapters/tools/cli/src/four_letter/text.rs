//! The lines of the answers, as pure functions of status and configuration.

use std::fmt::{self, Display, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_tokio::core::membership::Role;
use quorate_tokio::core::report::How;
use quorate_tokio::core::status::{Phase, Status};
use quorate_tokio::core::vote::ServerState;
use quorate_tokio::zoo_cfg::ZooCfg;

/// `conf`; `client_port` is where the server listens for clients now. A server alone has no more to say than ZooKeeper's
/// (`ZooKeeperServer.dumpConf`).
pub(super) fn configuration(cfg: &ZooCfg, client_port: Option<u16>) -> String {
    let [data, log] = directories(cfg);
    let own = cfg.own();
    let mut text = String::new();
    let client_port = client_port.map_or(-1, i32::from);
    line(&mut text, format_args!("clientPort={client_port}"));
    let secure = own.secure_client.as_ref().map_or(-1, |client| i32::from(client.port));
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
fn directories(cfg: &ZooCfg) -> [PathBuf; 2] {
    let data = cfg.data_dir.join("version-2");
    let log = cfg.data_log_dir.as_ref().map_or_else(|| data.clone(), |dir| dir.join("version-2"));
    [data, log]
}

/// The sizes of all files in a directory.
fn size(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).filter(|m| m.is_file()).map(|m| m.len()).sum()
}

/// ZooKeeper's words for state and phase, and how a learner is being synchronised.
pub(super) fn peer_state(status: &Status, sync: Option<How>) -> String {
    let state = match status.state {
        ServerState::Looking => return "looking".to_owned(),
        ServerState::Following => "following",
        ServerState::Leading => "leading",
        ServerState::Observing => "observing",
    };
    match status.phase {
        Phase::Election => state.to_owned(),
        phase @ Phase::Synchronization => match sync {
            Some(how) => format!("{state} - {phase} - {how}").to_lowercase(),
            None => format!("{state} - {phase}"),
        },
        phase @ (Phase::Discovery | Phase::Broadcast) => format!("{state} - {phase}"),
    }
}

/// How much of the synchronisation is done, in percent: of a leader's learners, or of this learner.
pub(super) fn sync_progress(status: &Status) -> usize {
    if status.state != ServerState::Leading {
        return if status.serving { 100 } else { 0 };
    }
    let synced = status.learners.iter().filter(|learner| learner.synced).count();
    (100 * synced).checked_div(status.learners.len()).unwrap_or(100)
}

/// Smallest, largest, sum and number of some times.
#[derive(Debug, Default)]
pub(super) struct Spread {
    min: Duration,
    max: Duration,
    sum: Duration,
    count: u32,
}

impl Extend<Duration> for Spread {
    fn extend<T: IntoIterator<Item = Duration>>(&mut self, times: T) {
        for time in times {
            self.min = if self.count == 0 { time } else { self.min.min(time) };
            self.max = self.max.max(time);
            self.sum += time;
            self.count += 1;
        }
    }
}

/// The lines of `mntr`.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) text: String,
}

impl List {
    pub(super) fn add(&mut self, name: &str, value: impl Display) {
        line(&mut self.text, format_args!("zk_{name}\t{value}"));
    }

    /// In milliseconds, under ZooKeeper's five names.
    pub(super) fn spread(&mut self, name: &str, spread: &Spread) {
        let average = match spread.count {
            0 => 0.0,
            count => (spread.sum.as_secs_f64() * 1e7 / f64::from(count)).round() / 1e4,
        };
        // As ZooKeeper writes it: at least one decimal, at most four.
        self.add(&format!("avg_{name}"), format_args!("{average:?}"));
        self.add(&format!("min_{name}"), spread.min.as_millis());
        self.add(&format!("max_{name}"), spread.max.as_millis());
        self.add(&format!("cnt_{name}"), spread.count);
        self.add(&format!("sum_{name}"), spread.sum.as_millis());
    }
}

fn line(text: &mut String, line: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

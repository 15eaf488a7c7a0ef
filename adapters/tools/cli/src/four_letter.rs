//! ZooKeeper's four-letter words, on the client port.
//!
//! Monitoring that knows ZooKeeper works unchanged: same words, same lines, same whitelist
//! (`4lw.commands.whitelist`), same sentence while the server has no leader. Three differences: without
//! a whitelist all five words are answered, not `srvr` alone, since they are all that is behind a port
//! that somebody opened on purpose. Two more, both because monitoring is what matters: `mntr` answers also
//! then, so that a server that looks for a leader can be seen looking; and lines whose value we do not
//! have are left out rather than made up.
//!
//! Clients of ZooKeeper are turned away with a line in the log. A connection may take a few seconds and
//! there may be [`CONNECTIONS_MAX`]; one more is closed at once.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorate_service::ZooKeeper;
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::membership::Role;
use quorate_tokio::core::report::{How, Phase, Status};
use quorate_tokio::core::vote::ServerState;
use quorate_tokio::zoo_cfg::ZooCfg;
use quorate_tokio::{Changes, Server, Status as ServerStatus};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::failure::Failure;

/// The words that are answered, if the whitelist lets them.
const WORDS: [&str; 5] = ["ruok", "srvr", "stat", "conf", "mntr"];
/// Words of ZooKeeper that mean nothing here; they are never on the whitelist.
const FOREIGN_WORDS: [&str; 14] = [
    "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "lead", "srst", "stmk", "wchc",
    "wchp", "wchs",
];

const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-quorate");

/// How many connections there may be at once.
const CONNECTIONS_MAX: usize = 60;
/// How long a connection may take to say its word, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long we wait for the other side to close, so that it gets the answer whole.
const GOODBYE: Duration = Duration::from_secs(1);
/// How often clients that were turned away are worth a line.
const QUIET: Duration = Duration::from_secs(10);

/// The open client port.
#[derive(Debug)]
pub(crate) struct Door {
    listener: TcpListener,
}

impl Door {
    /// Opens it.
    pub(crate) async fn open(at: &HostPort) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::failed(format!("cannot listen at {at} (client port): {error}"))
        };
        let listener = if at.is_wildcard() {
            // For IPv4 too, where the system has both.
            match TcpListener::bind(("::", at.port)).await {
                Ok(listener) => listener,
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    return Err(refused(error));
                }
                Err(_) => TcpListener::bind(("0.0.0.0", at.port)).await.map_err(refused)?,
            }
        } else {
            TcpListener::bind((at.host.as_str(), at.port)).await.map_err(refused)?
        };
        Ok(Self { listener })
    }

    /// Answers until the process ends.
    pub(crate) async fn serve(self, desk: Arc<Desk>) {
        tokio::spawn(Arc::clone(&desk).measure(desk.server.changes()));
        loop {
            match self.listener.accept().await {
                Ok((stream, remote)) => {
                    let Some(visit) = Visit::begin(&desk, remote) else {
                        tracing::debug!(%remote, "too many connections to the client port");
                        continue;
                    };
                    tokio::spawn(async move {
                        if let Err(error) = visit.receive(stream).await {
                            tracing::debug!(%remote, %error, "client port");
                        }
                    });
                }
                Err(error) => {
                    desk.accept_errors.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(%error, "the client port cannot accept; trying again");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}

/// Who knows the answers.
#[derive(Debug)]
pub(crate) struct Desk {
    cfg: ZooCfg,
    server: Server<ZooKeeper>,
    received: AtomicU64,
    sent: AtomicU64,
    accept_errors: AtomicU64,
    board: Mutex<Board>,
}

#[derive(Debug, Default)]
struct Board {
    next: u64,
    visitors: BTreeMap<u64, SocketAddr>,
    turned_away: u64,
    told_of_them: Option<Instant>,
    election_time: Spread,
    unavailable_time: Spread,
    leader_unavailable_time: Spread,
}

impl Desk {
    pub(crate) fn new(cfg: ZooCfg, server: Server<ZooKeeper>) -> Self {
        Self {
            cfg,
            server,
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            accept_errors: AtomicU64::new(0),
            board: Mutex::default(),
        }
    }

    /// The answer to a word; none if it is no word.
    async fn answer(&self, word: &str) -> Option<String> {
        if !WORDS.contains(&word) && !FOREIGN_WORDS.contains(&word) {
            return None;
        }
        self.received.fetch_add(1, Ordering::Relaxed);
        if !WORDS.contains(&word) && self.cfg.answers(word) {
            return Some(format!(
                "{word} is not executed because this server has nothing to say to it.\n"
            ));
        }
        if !self.cfg.answers(word) {
            return Some(format!("{word} is not executed because it is not in the whitelist.\n"));
        }
        let status = self.server.status();
        // ZooKeeper counts the root twice.
        let nodes = self.server.peek(|zookeeper| zookeeper.tree().len() + 1).await.unwrap_or(0);
        Some(match word {
            "ruok" => "imok".to_owned(),
            "mntr" => self.monitor(&status, nodes),
            _ if !status.peer.serving => NOT_SERVING.to_owned(),
            "conf" => configuration(&self.cfg),
            word => self.statistics(&status, word == "stat", nodes),
        })
    }

    /// `srvr`, and `stat` with the connections. Without ZooKeeper's lines about latency, since no request of a client is
    /// served, and about the sizes of proposals, which are not measured.
    fn statistics(&self, status: &ServerStatus, with_clients: bool, nodes: usize) -> String {
        let (metrics, status) = (&status.metrics, &status.peer);
        let mut text = format!("Zookeeper version: {VERSION}\n");
        let board = self.board();
        if with_clients {
            text.push_str("Clients:\n");
            for remote in board.visitors.values() {
                line(&mut text, format_args!(" /{remote}[0](queued=0,recved=1,sent=0)"));
            }
            text.push('\n');
        }
        line(&mut text, format_args!("Received: {}", self.received.load(Ordering::Relaxed)));
        line(&mut text, format_args!("Sent: {}", self.sent.load(Ordering::Relaxed)));
        line(&mut text, format_args!("Connections: {}", board.visitors.len()));
        line(&mut text, format_args!("Outstanding: {}", metrics.outstanding));
        line(&mut text, format_args!("Zxid: {}", status.processed));
        line(&mut text, format_args!("Mode: {}", mode(status.state)));
        line(&mut text, format_args!("Node count: {nodes}"));
        text
    }

    /// `mntr`.
    fn monitor(&self, whole: &ServerStatus, nodes: usize) -> String {
        let (metrics, status) = (&whole.metrics, &whole.peer);
        let board = self.board();
        let mut list = List::default();
        list.add("version", VERSION);
        list.add("server_state", mode(status.state));
        list.add("peer_state", peer_state(status, whole.sync));
        if let Some(how) = whole.sync {
            list.add("sync_mode", how.to_string().to_lowercase());
        }
        list.add("epoch", status.current_epoch);
        list.add("zxid", status.processed);
        list.add("round", status.round);
        if let (ServerState::Observing, Some(leader)) = (status.state, status.leader) {
            list.add("observer_master_id", leader);
        }
        list.add("num_alive_connections", board.visitors.len());
        list.add("packets_received", self.received.load(Ordering::Relaxed));
        list.add("packets_sent", self.sent.load(Ordering::Relaxed));
        list.add("outstanding_requests", metrics.outstanding);
        list.add("znode_count", nodes);
        list.add("uptime", metrics.uptime.as_millis());
        list.add("quorum_size", status.voters);
        list.add("election_links", status.linked.len());
        if status.state == ServerState::Leading {
            let synced = |follower: bool, voter: bool| {
                let seats = status.learners.iter();
                seats.filter(|s| s.synced && s.follower == follower && s.voter == voter).count()
            };
            list.add("learners", status.learners.len());
            list.add("synced_followers", synced(true, true));
            list.add("synced_non_voting_followers", synced(true, false));
            list.add("synced_observers", synced(false, false) + synced(false, true));
        }
        if let Some(since) = metrics.leading_for {
            list.add("leader_uptime", since.as_millis());
        }
        list.add("sync_progress", sync_progress(status));
        list.add("looking_count", metrics.looking_count);
        list.spread("election_time", &board.election_time);
        list.spread("unavailable_time", &board.unavailable_time);
        list.spread("leader_unavailable_time", &board.leader_unavailable_time);
        list.add("dropped_messages", metrics.dropped_messages);
        list.add("garbled_links", metrics.garbled_links);
        list.add("refused_introductions", metrics.refused_introductions);
        list.add("evicted_introductions", metrics.evicted_introductions);
        list.add("overflowed_links", metrics.overflowed_links);
        list.add("failed_dials", metrics.failed_dials);
        list.add("accept_errors", metrics.accept_errors);
        list.add("client_accept_errors", self.accept_errors.load(Ordering::Relaxed));
        list.add("refused_connections", metrics.refused_connections);
        list.text
    }

    /// Notes how long elections and outages took. The server itself keeps the last and the sum.
    async fn measure(self: Arc<Self>, mut changes: Changes) {
        let mut before = (0, false);
        loop {
            before = self.note(before);
            if changes.next().await.is_none() {
                return;
            }
        }
    }

    /// Compares how many elections there were, and whether the server served, with what it is now.
    fn note(&self, (elections, served): (u64, bool)) -> (u64, bool) {
        let status = self.server.status();
        let (peer, metrics) = (&status.peer, &status.metrics);
        let mut board = self.board();
        if metrics.elections > elections {
            board.election_time.extend(metrics.last_election);
        }
        if peer.serving && !served {
            board.unavailable_time.extend(metrics.last_unavailable);
            if peer.state == ServerState::Leading {
                board.leader_unavailable_time.extend(metrics.last_unavailable);
            }
        }
        (metrics.elections, peer.serving)
    }

    /// Somebody said something that is no word: a client's first four bytes are a length.
    fn turn_away(&self, remote: SocketAddr, first: [u8; 4]) {
        let length = i32::from_be_bytes(first);
        if !(0..0x10_0000).contains(&length) {
            tracing::debug!(%remote, ?first, "neither a four-letter word nor a client");
            return;
        }
        let mut board = self.board();
        board.turned_away += 1;
        if board.told_of_them.is_none_or(|told| told.elapsed() >= QUIET) {
            board.told_of_them = Some(Instant::now());
            tracing::info!(
                %remote, so_far = board.turned_away,
                "a ZooKeeper client was turned away: this version serves no clients, \
                 only four-letter words"
            );
        }
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection, counted while it lasts.
#[derive(Debug)]
struct Visit {
    desk: Arc<Desk>,
    number: u64,
    remote: SocketAddr,
}

impl Visit {
    /// None if there are too many.
    fn begin(desk: &Arc<Desk>, remote: SocketAddr) -> Option<Self> {
        let mut board = desk.board();
        if board.visitors.len() >= CONNECTIONS_MAX {
            return None;
        }
        let number = board.next;
        board.next += 1;
        let shown = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        board.visitors.insert(number, shown);
        Some(Self { desk: Arc::clone(desk), number, remote })
    }

    async fn receive(self, mut stream: TcpStream) -> io::Result<()> {
        let mut word = [0; 4];
        timeout(PATIENCE, stream.read_exact(&mut word)).await??;
        let answer = match std::str::from_utf8(&word) {
            Ok(word) => self.desk.answer(word).await,
            Err(_) => None,
        };
        if let Some(answer) = answer {
            timeout(PATIENCE, stream.write_all(answer.as_bytes())).await??;
            self.desk.sent.fetch_add(1, Ordering::Relaxed);
        } else {
            self.desk.turn_away(self.remote, word);
        }
        stream.shutdown().await?;
        // What came behind the word is read, a little of it: closing on unread bytes would reset the
        // connection, and the answer could be lost with it.
        let mut rest = [0; 64];
        let goodbye = async {
            for _ in 0..16 {
                if !stream.read(&mut rest).await.is_ok_and(|read| read > 0) {
                    break;
                }
            }
        };
        // Slow: then it gets what it gets.
        let _ = timeout(GOODBYE, goodbye).await;
        Ok(())
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.desk.board().visitors.remove(&self.number);
    }
}

/// `conf`. Without the lines about sessions, of which there are none.
fn configuration(cfg: &ZooCfg) -> String {
    let data = cfg.data_dir.join("version-2");
    let log = cfg.data_log_dir.as_ref().map_or_else(|| data.clone(), |dir| dir.join("version-2"));
    let own = cfg.own();
    let mut text = String::new();
    let client_port = cfg.client_address.as_ref().map_or(-1, |client| i32::from(client.port));
    line(&mut text, format_args!("clientPort={client_port}"));
    let secure = own.secure_client.as_ref().map_or(-1, |client| i32::from(client.port));
    line(&mut text, format_args!("secureClientPort={secure}"));
    line(&mut text, format_args!("dataDir={}", data.display()));
    line(&mut text, format_args!("dataDirSize={}", size(&data)));
    line(&mut text, format_args!("dataLogDir={}", log.display()));
    line(&mut text, format_args!("dataLogSize={}", size(&log)));
    line(&mut text, format_args!("tickTime={}", cfg.tick_time.as_millis()));
    line(&mut text, format_args!("maxClientCnxns={CONNECTIONS_MAX}"));
    line(&mut text, format_args!("serverId={}", cfg.my_id));
    line(&mut text, format_args!("initLimit={}", cfg.init_limit));
    line(&mut text, format_args!("syncLimit={}", cfg.sync_limit));
    text.push_str("electionAlg=3\n");
    line(&mut text, format_args!("electionPort={}", own.election_address().port));
    line(&mut text, format_args!("quorumPort={}", own.quorum_address().port));
    line(&mut text, format_args!("peerType={}", i32::from(own.role == Role::Observer)));
    text.push_str("membership: \n");
    // The end of the answer has no newline, as with ZooKeeper.
    let _ = write!(text, "{}", cfg.membership);
    text
}

/// The sizes of all files in a directory.
fn size(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).filter(|m| m.is_file()).map(|m| m.len()).sum()
}

fn mode(state: ServerState) -> &'static str {
    match state {
        ServerState::Looking => "looking",
        ServerState::Following => "follower",
        ServerState::Leading => "leader",
        ServerState::Observing => "observer",
    }
}

/// ZooKeeper's words for state and phase, and how a learner is being synchronised.
fn peer_state(status: &Status, sync: Option<How>) -> String {
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
fn sync_progress(status: &Status) -> usize {
    if status.state != ServerState::Leading {
        return if status.serving { 100 } else { 0 };
    }
    let synced = status.learners.iter().filter(|seat| seat.synced).count();
    (100 * synced).checked_div(status.learners.len()).unwrap_or(100)
}

/// Smallest, largest, sum and number of some times.
#[derive(Debug, Default)]
struct Spread {
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
struct List {
    text: String,
}

impl List {
    fn add(&mut self, name: &str, value: impl Display) {
        line(&mut self.text, format_args!("zk_{name}\t{value}"));
    }

    /// In milliseconds, under ZooKeeper's five names.
    fn spread(&mut self, name: &str, spread: &Spread) {
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
    // A string takes everything.
    let _ = writeln!(text, "{line}");
}

//! How fast a server that was away is brought up: real servers, sockets on loopback, files and fsync.
//!
//! `cargo bench -p quorate-benches --bench catch_up`, a minute or two, on an idle machine; `-- diff` and
//! `-- snap` run a part of it. Three servers with ZooKeeper's data tree, each on a thread of its own, and
//! all on one disk.
//!
//! - DIFF: the third was away for 100,000 writes of 100 bytes, which its leader reads from its log, or has
//!   in memory. From the start of the third to its serving, so an election and two epochs' files are in
//!   it, and its application has applied everything.
//! - SNAP: the third has lost its disk; the tree is 200 MB of nodes of 4 KiB. The same from start to
//!   serving: sent, restored, written and durable. Once more while the leader commits one write after
//!   another, for what that costs these; and again with the third's files in memory, where there is such a
//!   place: mostly servers have disks of their own, and then it is the leader's part alone that counts.
//! - Opening: a directory with that snapshot, from nothing to a server that runs.
//!
//! The disk's own rate stands beside it: nothing that is durable can be faster.
#![expect(clippy::unwrap_used, reason = "a bench stops where something is wrong")]
#![expect(clippy::print_stdout, reason = "its result")]
#![expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::config::Config;
use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Membership, Role, ServerAddress};
use quorate_core::report::{Change, How};
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_driver::testing::free_ports;
use quorate_service::ZooKeeper;
use quorate_storage::snapshot::{Parts, SnapshotWriter};
use quorate_storage::{Log, OpenOptions};
use quorate_tokio::{ServerConfig, start_with};
use quorate_znode::{Tree, kind};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, JoinSet};

type Server = quorate_tokio::Server<ZooKeeper>;

/// How much of everything.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Transactions that are missed.
    missed: usize,
    /// Nodes of 4 KiB.
    nodes: usize,
    rounds: usize,
    /// How long commits are timed with nothing beside them.
    usual: Duration,
}

const NODE_BYTES: usize = 4096;
/// What is written to.
const PATH: &str = "/n";
/// ZooKeeper's default: nearly all that was missed is on disk only.
const WINDOW: usize = 500;
const WINDOW_BYTES: usize = 64 << 20;

fn main() {
    let given: Vec<_> = std::env::args().collect();
    let asked = |what: &str| given.iter().any(|argument| argument == what);
    let size = if asked("--test") {
        Size { missed: 1000, nodes: 500, rounds: 1, usual: Duration::from_millis(100) }
    } else {
        Size { missed: 100_000, nodes: 50_000, rounds: 5, usual: Duration::from_secs(3) }
    };
    let all = !["diff", "snap", "disk", "window", "open"].into_iter().any(asked);
    let dir = tempfile::tempdir_in(".").unwrap();
    if all || asked("diff") || asked("disk") {
        diff(dir.path(), "DIFF from the log", WINDOW, size);
    }
    if all || asked("diff") || asked("window") {
        diff(dir.path(), "DIFF from memory", 4 * size.missed, size);
    }
    if all || asked("snap") || asked("open") {
        snap(dir.path(), size, all || asked("snap"));
    }
}

/// Brings a server up that has missed transactions.
fn diff(dir: &Path, what: &str, window: usize, size: Size) {
    let mut ensemble = Ensemble::new(&dir.join(window.to_string()), window);
    begin_with(&ensemble.data_dir(1), 1, 16);
    for id in [2, 3] {
        copy(&ensemble.data_dir(1), &ensemble.data_dir(id));
    }
    let leader = ensemble.establish(&[1, 2, 3]);
    let absent = if leader == 3 { 2 } else { 3 };
    ensemble.write(leader, 1);
    ensemble.caught_up(absent);
    ensemble.kill(absent);
    let aside = dir.join(format!("{window}.aside"));
    copy(&ensemble.data_dir(absent), &aside);
    ensemble.write(leader, size.missed);
    let mut rates = Vec::new();
    for _ in 0..size.rounds {
        fs::remove_dir_all(ensemble.data_dir(absent)).unwrap();
        copy(&aside, &ensemble.data_dir(absent));
        let round = ensemble.bring_up(absent, leader, How::Diff);
        rates.push(round.rate(size.missed as f64 / 1e3));
        ensemble.assert_equal([absent, leader]);
        ensemble.kill(absent);
    }
    tell(what, "thousand txn/s", &rates);
}

/// Brings a server up that has nothing; and lets one open what it has.
fn snap(dir: &Path, size: Size, send: bool) {
    let mut ensemble = Ensemble::new(&dir.join("snap"), WINDOW);
    let bytes = begin_with(&ensemble.data_dir(1), size.nodes, NODE_BYTES);
    let mb = bytes as f64 / 1e6;
    copy(&ensemble.data_dir(1), &ensemble.data_dir(2));
    let disk: Vec<_> = (0..size.rounds).map(|_| disk_rate(dir, bytes)).collect();
    tell("the disk alone", "MB/s", &disk);
    let mut opened = Vec::new();
    for _ in 0..size.rounds {
        let begun = Clock::now();
        ensemble.start(1);
        opened.push(begun.stop().rate(mb));
        ensemble.kill(1);
    }
    tell("opening", "MB/s", &opened);
    if !send {
        return;
    }
    let leader = ensemble.establish(&[1, 2]);
    let writer = ensemble.writer(leader);
    std::thread::sleep(size.usual);
    let usual = writer.end(&ensemble, leader);
    let mut rates = Vec::new();
    for _ in 0..size.rounds {
        rates.push(ensemble.bring_up(3, leader, How::Snap).rate(mb));
        ensemble.assert_equal([3, leader]);
        ensemble.lose(3);
    }
    tell("SNAP", "MB/s", &rates);
    let (rates, beside) = ensemble.snap_beside_commits(leader, mb, size.rounds);
    tell("SNAP beside commits", "MB/s", &rates);
    tell_times("commits, nothing beside them", usual);
    tell_times("commits during SNAP", beside);
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { return };
    ensemble.elsewhere = Some(memory.path().to_owned());
    let (_, beside) = ensemble.snap_beside_commits(leader, mb, size.rounds);
    tell_times("... to another disk", beside);
}

/// Servers of which each has a thread.
struct Ensemble {
    membership: Membership,
    dir: PathBuf,
    /// Where the third has its files, if elsewhere.
    elsewhere: Option<PathBuf>,
    /// How many transactions are kept in memory.
    window: usize,
    servers: BTreeMap<i64, (Runtime, Server)>,
}

impl Ensemble {
    fn new(dir: &Path, window: usize) -> Self {
        let ports = free_ports(6);
        let members = ports.chunks(2).zip(1..).map(|(ports, id)| {
            let address = ServerAddress::new("127.0.0.1", ports[0], ports[1]);
            Member::new(ServerId(id), Role::Participant, address)
        });
        let membership = Membership::build(members, [], [], 0).unwrap();
        let (dir, servers) = (dir.to_owned(), BTreeMap::new());
        Self { membership, dir, elsewhere: None, window, servers }
    }

    fn data_dir(&self, id: i64) -> PathBuf {
        let elsewhere = self.elsewhere.as_ref().filter(|_| id == 3);
        elsewhere.unwrap_or(&self.dir).join(id.to_string())
    }

    /// Brings the third up with a snapshot while the leader commits one write after another; at what rates,
    /// and how long these took.
    fn snap_beside_commits(
        &mut self,
        leader: i64,
        mb: f64,
        rounds: usize,
    ) -> (Vec<(f64, f64)>, Vec<Duration>) {
        let (mut rates, mut times) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let writer = self.writer(leader);
            rates.push(self.bring_up(3, leader, How::Snap).rate(mb));
            times.extend(writer.end(self, leader));
            self.assert_equal([3, leader]);
            self.lose(3);
        }
        (rates, times)
    }

    fn start(&mut self, id: i64) {
        let mut config = ServerConfig::new(
            Config::new(ServerId(id), self.membership.clone()),
            self.data_dir(id),
        );
        // A snapshot that is taken while something else is measured would be measured, too.
        config.core.history.snap_count = u64::MAX / 2;
        config.core.history.window_count = self.window;
        config.core.history.window_bytes = WINDOW_BYTES;
        // Whatever is missing is not in a snapshot.
        config.core.history.size_percent = Some(u64::MAX);
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(start_with(config, ZooKeeper::new())).unwrap();
        self.servers.insert(id, (runtime, server));
    }

    fn server(&self, id: i64) -> &Server {
        &self.servers[&id].1
    }

    fn kill(&mut self, id: i64) {
        let (runtime, server) = self.servers.remove(&id).unwrap();
        runtime.block_on(server.kill());
    }

    /// Takes a server's disk away.
    fn lose(&mut self, id: i64) {
        self.kill(id);
        fs::remove_dir_all(self.data_dir(id)).unwrap();
    }

    /// Waits until a server serves under some leader.
    fn serving(&self, id: i64) -> i64 {
        let (runtime, server) = &self.servers[&id];
        runtime.block_on(server.leaders().led()).unwrap().0.0
    }

    /// Starts servers, and returns the leader.
    fn establish(&mut self, ids: &[i64]) -> i64 {
        ids.iter().for_each(|id| self.start(*id));
        let leaders: Vec<_> = ids.iter().map(|id| self.serving(*id)).collect();
        assert!(leaders.iter().all(|leader| *leader == leaders[0]));
        leaders[0]
    }

    /// Starts a server that lacks something, and waits until it has everything.
    fn bring_up(&mut self, id: i64, leader: i64, expected: How) -> Clock {
        let mut changes = self.server(leader).changes();
        let begun = Clock::now();
        self.start(id);
        self.serving(id);
        self.caught_up(id);
        let round = begun.stop();
        let how = std::iter::from_fn(|| changes.try_next()).find_map(|observed| {
            if let Change::Sync { how, .. } = observed.report.change { Some(how) } else { None }
        });
        assert_eq!(how, Some(expected));
        round
    }

    /// Nothing is fast that is wrong.
    fn assert_equal(&self, ids: [i64; 2]) {
        let digests = ids.map(|id| {
            let (runtime, server) = &self.servers[&id];
            runtime
                .block_on(server.read(|zookeeper: &ZooKeeper| zookeeper.tree().digest()))
                .unwrap()
        });
        assert_eq!(digests[0], digests[1]);
    }

    /// Waits until a server has applied what has been written so far.
    fn caught_up(&self, id: i64) {
        let (runtime, server) = &self.servers[&id];
        runtime.block_on(server.sync()).unwrap();
    }

    /// Writes, a thousand at a time, and returns when all is applied at the leader.
    fn write(&self, leader: i64, count: usize) {
        let (runtime, server) = &self.servers[&leader];
        runtime.block_on(async {
            let mut writers = JoinSet::new();
            for nth in 0..WRITERS {
                let server = server.clone();
                writers.spawn(async move {
                    for _ in (nth..count).step_by(WRITERS) {
                        server.propose(body()).await.unwrap();
                    }
                });
            }
            writers.join_all().await;
        });
    }

    /// Writes, one after the other, until it is told to end.
    fn writer(&self, leader: i64) -> Writer {
        let (runtime, server) = &self.servers[&leader];
        let (server, enough) = (server.clone(), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&enough);
        let times = runtime.spawn(async move {
            let mut times = Vec::new();
            while !told.load(Ordering::Relaxed) {
                let begun = Instant::now();
                server.propose(body()).await.unwrap();
                times.push(begun.elapsed());
            }
            times
        });
        Writer { times, enough }
    }
}

/// A client that writes, and how long each write took.
struct Writer {
    times: JoinHandle<Vec<Duration>>,
    enough: Arc<AtomicBool>,
}

impl Writer {
    fn end(self, of: &Ensemble, leader: i64) -> Vec<Duration> {
        self.enough.store(true, Ordering::Relaxed);
        of.servers[&leader].0.block_on(self.times).unwrap()
    }
}

/// Real time and the processor time of this process.
#[derive(Clone, Copy, Debug)]
struct Clock {
    begun: Instant,
    cpu_begun: Duration,
    took: Duration,
    cpu: Duration,
}

impl Clock {
    fn now() -> Self {
        let (took, cpu) = Default::default();
        Self { begun: Instant::now(), cpu_begun: cpu_time(), took, cpu }
    }

    fn stop(mut self) -> Self {
        (self.took, self.cpu) = (self.begun.elapsed(), cpu_time().saturating_sub(self.cpu_begun));
        self
    }

    /// So much in that time; and the processor time in milliseconds.
    fn rate(self, amount: f64) -> (f64, f64) {
        (amount / self.took.as_secs_f64(), self.cpu.as_secs_f64() * 1e3)
    }
}

/// What this process has used so far. Linux counts in hundredths of a second.
fn cpu_time() -> Duration {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return Duration::ZERO };
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let fields: Vec<_> = rest.split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// The medians, and all rates.
fn tell(what: &str, unit: &str, rounds: &[(f64, f64)]) {
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<_> = rounds.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let all: Vec<_> = rounds.iter().map(|(rate, _)| format!("{rate:.0}")).collect();
    let (rate, cpu) = (median(|round| round.0), median(|round| round.1));
    println!("{what:<20} {rate:>6.0} {unit:<14} CPU {cpu:>5.0} ms   ({})", all.join(" "));
}

fn tell_times(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    let (count, p50, p99) = (times.len(), at(50), at(99));
    println!("{what:<28} p50 {p50:.2} ms, p99 {p99:.2} ms, max {:.2} ms of {count}", at(100));
}

/// setData of 100 bytes, whatever the version.
fn body() -> Bytes {
    let mut body = BytesMut::new();
    put(&mut body, PATH.as_bytes());
    put(&mut body, &[7; 100]);
    body.put_i32(-1);
    body.freeze()
}

fn put(body: &mut BytesMut, bytes: &[u8]) {
    body.put_i32(i32::try_from(bytes.len()).unwrap());
    body.put_slice(bytes);
}

/// Makes a data directory with a snapshot of a tree of so many nodes; tells how long that is.
fn begin_with(dir: &Path, nodes: usize, bytes: usize) -> u64 {
    let mut tree = Tree::new();
    let mut create = |nth: i64, path: &str, data: &[u8]| {
        let mut body = BytesMut::new();
        put(&mut body, path.as_bytes());
        put(&mut body, data);
        body.put_i32(1);
        body.put_i32(31);
        put(&mut body, b"world");
        put(&mut body, b"anyone");
        body.put_u8(0);
        body.put_i32(-1);
        let header = TxnHeader { client: 1, cxid: 1, time: 1_700_000_000_000, kind: kind::CREATE };
        let txn = Txn { zxid: Zxid((1 << 32) + nth), header, body: body.freeze() };
        assert!(tree.apply(&txn).unwrap().outcome.error().is_none());
    };
    create(1, PATH, b"");
    let mut state = 1_u64;
    for nth in 0..nodes {
        // A thousand below each; data that nothing could compress.
        let directory = format!("{PATH}/directory-{:05}", nth / 1000);
        let zxid = 2 + 2 * i64::try_from(nth).unwrap();
        if nth % 1000 == 0 {
            create(zxid, &directory, b"");
        }
        let words = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_be_bytes()
        });
        let data: Vec<u8> = words.take(bytes / 8).flatten().collect();
        create(zxid + 1, &format!("{directory}/node-{nth:010}"), &data);
    }
    let (mut log, _) = Log::open(dir, OpenOptions::default()).unwrap();
    log.write_accepted_epoch(Epoch(1)).unwrap();
    log.write_current_epoch(Epoch(1)).unwrap();
    drop(log);
    let (version, label) = (dir.join("version-2"), tree.last_zxid());
    let mut file = SnapshotWriter::take(quorate_storage::Disk, &version, label).unwrap();
    tree.write_snapshot(&mut file).unwrap();
    drop(file.finish(Parts::default()).unwrap());
    let name = format!("snapshot.{:x}", label.0);
    let entries = fs::read_dir(&version).unwrap().map(|entry| entry.unwrap().path());
    let written = entries.filter(|path| path.to_string_lossy().ends_with(&name));
    let [written] = &written.collect::<Vec<_>>()[..] else { panic!("one file was written") };
    fs::rename(written, version.join(&name)).unwrap();
    fs::metadata(version.join(name)).unwrap().len()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
            // Not while something is measured.
            File::open(&to).unwrap().sync_all().unwrap();
        }
    }
}

/// How fast a file of that length is written one piece after the other, and durable.
fn disk_rate(dir: &Path, bytes: u64) -> (f64, f64) {
    let path = dir.join("sequential");
    let piece = vec![7; 256 << 10];
    let begun = Clock::now();
    let mut file = File::create(&path).unwrap();
    for _ in 0..bytes / piece.len() as u64 {
        file.write_all(&piece).unwrap();
    }
    file.sync_all().unwrap();
    let rate = begun.stop().rate(bytes as f64 / 1e6);
    fs::remove_file(path).unwrap();
    rate
}

/// How many write at a time.
const WRITERS: usize = 1000;

//! Writes through three quorate servers and through three Java servers, in turn, in one run.
//!
//! `cargo bench -p quorate-benches --bench broadcast`, some minutes, on an idle machine with Debian's
//! `zookeeper` package. Both flush to the same disk. The Java servers are warmed up for 35 s; then the
//! two take turns, and the medians of their rounds are compared. quorate is measured by its own command,
//! `quorate bench broadcast`; ZooKeeper by clients with as many requests under way, over all servers or
//! one at a time at the leader. Processor time is that of all three servers, of quorate's with the
//! clients in the same process.
#![expect(clippy::unwrap_used, reason = "a bench stops where something is wrong")]
#![expect(clippy::print_stdout, reason = "its result")]

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quorate_driver::testing::free_ports;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const JAR: &str = "/usr/share/java/zookeeper.jar";
const CLASS_PATH: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";
const PATH: &[u8] = b"/bench";

/// Three Java servers as their package starts them, killed when dropped.
struct Ensemble {
    servers: Vec<Child>,
    ports: Vec<u16>,
    _dir: tempfile::TempDir,
}

impl Ensemble {
    fn start() -> Self {
        let dir = tempfile::tempdir_in(".").unwrap();
        let free = free_ports(9);
        let mut lines = String::new();
        for id in 1..=3 {
            writeln!(lines, "server.{id}=127.0.0.1:{}:{}", free[id - 1], free[id + 2]).unwrap();
        }
        let servers = (1..=3).map(|id| {
            let data = dir.path().join(id.to_string());
            std::fs::create_dir(&data).unwrap();
            std::fs::write(data.join("myid"), id.to_string()).unwrap();
            let mut cfg = format!("tickTime=2000\ninitLimit=10\nsyncLimit=5\n{lines}");
            writeln!(cfg, "dataDir={}\nclientPort={}", data.display(), free[id + 5]).unwrap();
            writeln!(cfg, "clientPortAddress=127.0.0.1\nmaxClientCnxns=0").unwrap();
            writeln!(cfg, "admin.enableServer=false\n4lw.commands.whitelist=*").unwrap();
            let file = data.join("zoo.cfg");
            std::fs::write(&file, cfg).unwrap();
            let mut java = Command::new("java");
            java.args([
                "-cp",
                CLASS_PATH,
                "-Xmx1000m",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            ]);
            java.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain").arg(file);
            java.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            java.spawn().unwrap()
        });
        Self { servers: servers.collect(), ports: free[6..].to_vec(), _dir: dir }
    }

    /// Waits until all serve: where clients connect, where the leader's do, and the processes.
    fn serving(&self) -> (Vec<u16>, u16, [u32; 3]) {
        let mode = |port: u16| {
            let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
            stream.write_all(b"srvr").ok()?;
            let mut said = String::new();
            stream.read_to_string(&mut said).ok()?;
            said.lines().find_map(|line| line.strip_prefix("Mode: ").map(str::to_owned))
        };
        loop {
            let modes: Vec<_> = self.ports.iter().filter_map(|port| mode(*port)).collect();
            if let (3, Some(at)) = (modes.len(), modes.iter().position(|mode| mode == "leader")) {
                let pids = [0, 1, 2].map(|nth| self.servers[nth].id());
                return (self.ports.clone(), self.ports[at], pids);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Ensemble {
    fn drop(&mut self) {
        for server in &mut self.servers {
            drop(server.kill());
            drop(server.wait());
        }
    }
}

/// What one round has shown.
#[derive(Clone, Copy, Debug)]
struct Round {
    writes_per_s: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us: f64,
}

/// What is asked of both.
#[derive(Clone, Copy, Debug)]
struct Load {
    payload: usize,
    clients: usize,
    pipeline: usize,
    /// At the leader only, or spread over all servers.
    at_leader: bool,
}

const LOADS: [(&str, Load); 3] = [
    (
        "100 B, 600 under way over all servers",
        Load { payload: 100, clients: 30, pipeline: 20, at_leader: false },
    ),
    (
        "1 KiB, 600 under way over all servers",
        Load { payload: 1024, clients: 30, pipeline: 20, at_leader: false },
    ),
    (
        "100 B, one at a time at the leader",
        Load { payload: 100, clients: 1, pipeline: 1, at_leader: true },
    ),
];

#[tokio::main]
async fn main() {
    let test = std::env::args().any(|argument| argument == "--test");
    let (warm_up, seconds, rounds) = if test { (1, 1, 1) } else { (35, 6, 5) };
    if !std::path::Path::new(JAR).exists() {
        assert!(std::env::var_os("QUORATE_REQUIRE_PEERS").is_none(), "{JAR} is missing");
        println!("skipped: {JAR} is missing");
        return;
    }
    let ensemble = Ensemble::start();
    let (ports, leader_port, pids) = ensemble.serving();
    let mut client = session(leader_port).await;
    create(&mut client).await;

    for (name, load) in LOADS {
        zookeeper(load, &ports, leader_port, &pids, warm_up).await;
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            theirs.push(zookeeper(load, &ports, leader_port, &pids, seconds).await);
            ours.push(tokio::task::spawn_blocking(move || quorate(load, seconds)).await.unwrap());
        }
        let median = |of: &[Round], value: fn(&Round) -> f64| {
            let mut values: Vec<_> = of.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        println!("{name}, medians of {rounds} rounds in turn");
        for (what, value) in [
            ("writes/s", (|round| round.writes_per_s) as fn(&Round) -> f64),
            ("p50 µs", |round| round.p50_us),
            ("p99 µs", |round| round.p99_us),
            ("CPU µs per write", |round| round.cpu_us),
        ] {
            let (theirs, ours) = (median(&theirs, value), median(&ours, value));
            println!(
                "  {what:<18} ZooKeeper {theirs:>10.1}   quorate {ours:>10.1}   ratio {:.2}",
                ours / theirs
            );
        }
    }
}

/// Runs the command for one round.
fn quorate(load: Load, seconds: u64) -> Round {
    let mut command = if std::env::args().any(|word| word == "--bench") {
        let mut command = Command::new(env!("CARGO"));
        command.args(["run", "--quiet", "--release", "--package", "quorate", "--"]);
        command
    } else {
        // As a test it takes what other tests have built.
        let program = std::env::current_exe().unwrap();
        Command::new(program.ancestors().nth(2).unwrap().join("quorate"))
    };
    command.args(["bench", "broadcast", "--json", "--servers", "3"]);
    for (option, value) in [
        ("--payload", load.payload),
        ("--clients", load.clients),
        ("--pipeline", load.pipeline),
        ("--seconds", usize::try_from(seconds).unwrap()),
    ] {
        command.args([option, &value.to_string()]);
    }
    command.args(["--at", if load.at_leader { "leader" } else { "all" }]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let number = |key: &str| {
        let (_, rest) = text.split_once(&format!("\"{key}\":")).unwrap();
        let end = rest.find([',', '}']).unwrap();
        rest[..end].trim().parse::<f64>().unwrap()
    };
    Round {
        writes_per_s: number("writes_per_s"),
        p50_us: number("p50_us"),
        p99_us: number("p99_us"),
        cpu_us: number("cpu_us_per_write"),
    }
}

/// Lets clients write to the Java servers for one round.
async fn zookeeper(load: Load, ports: &[u16], leader: u16, pids: &[u32; 3], seconds: u64) -> Round {
    let enough = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for nth in 0..load.clients {
        let port = if load.at_leader { leader } else { ports[nth % ports.len()] };
        clients.spawn(write(port, load, Arc::clone(&enough)));
    }
    let (begun, before) = (Instant::now(), cpu(pids));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    enough.store(true, Ordering::Relaxed);
    let (took, used) = (begun.elapsed(), cpu(pids) - before);
    let mut took_each: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    took_each.sort_unstable();
    let at = |percent: usize| took_each[(took_each.len() - 1) * percent / 100].as_secs_f64() * 1e6;
    Round {
        writes_per_s: took_each.len() as f64 / took.as_secs_f64(),
        p50_us: at(50),
        p99_us: at(99),
        cpu_us: used.as_secs_f64() * 1e6 / took_each.len() as f64,
    }
}

/// One client: keeps `pipeline` setData under way until it is enough; how long each took.
async fn write(port: u16, load: Load, enough: Arc<AtomicBool>) -> Vec<Duration> {
    let stream = session(port).await;
    let (mut took, mut under_way, mut xid) = (Vec::new(), VecDeque::new(), 0_i32);
    let (mut input, mut output) = stream.into_split();
    loop {
        let mut batch = Vec::new();
        while under_way.len() < load.pipeline && !enough.load(Ordering::Relaxed) {
            xid += 1;
            let length = 4 + 4 + 4 + PATH.len() + 4 + load.payload + 4;
            batch.extend_from_slice(&i32::try_from(length).unwrap().to_be_bytes());
            batch.extend_from_slice(&xid.to_be_bytes());
            batch.extend_from_slice(&5_i32.to_be_bytes());
            batch.extend_from_slice(&i32::try_from(PATH.len()).unwrap().to_be_bytes());
            batch.extend_from_slice(PATH);
            batch.extend_from_slice(&i32::try_from(load.payload).unwrap().to_be_bytes());
            batch.extend(std::iter::repeat_n(7, load.payload));
            batch.extend_from_slice(&(-1_i32).to_be_bytes());
            under_way.push_back(Instant::now());
        }
        if under_way.is_empty() {
            return took;
        }
        output.write_all(&batch).await.unwrap();
        let reply = receive(&mut input).await;
        assert_eq!(reply[12..16], [0; 4], "an error code");
        took.push(under_way.pop_front().unwrap().elapsed());
    }
}

/// Opens a session.
async fn session(port: u16) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut hello = Vec::new();
    hello.extend_from_slice(&0_i32.to_be_bytes());
    hello.extend_from_slice(&0_i64.to_be_bytes());
    hello.extend_from_slice(&30_000_i32.to_be_bytes());
    hello.extend_from_slice(&0_i64.to_be_bytes());
    hello.extend_from_slice(&16_i32.to_be_bytes());
    hello.extend_from_slice(&[0; 17]);
    send(&mut stream, &hello).await;
    receive(&mut stream).await;
    stream
}

/// Creates the node that all clients write to.
async fn create(stream: &mut TcpStream) {
    let mut body = Vec::new();
    let string = |body: &mut Vec<u8>, text: &[u8]| {
        body.extend_from_slice(&i32::try_from(text.len()).unwrap().to_be_bytes());
        body.extend_from_slice(text);
    };
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    string(&mut body, PATH);
    string(&mut body, b"");
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(&31_i32.to_be_bytes());
    string(&mut body, b"world");
    string(&mut body, b"anyone");
    body.extend_from_slice(&0_i32.to_be_bytes());
    send(stream, &body).await;
    assert_eq!(receive(stream).await[12..16], [0; 4], "an error code");
}

async fn send(stream: &mut TcpStream, body: &[u8]) {
    stream.write_all(&i32::try_from(body.len()).unwrap().to_be_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
}

async fn receive(from: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let length = from.read_i32().await.unwrap();
    let mut body = vec![0; usize::try_from(length).unwrap()];
    from.read_exact(&mut body).await.unwrap();
    body
}

/// The processor time that processes have used so far.
fn cpu(pids: &[u32; 3]) -> Duration {
    let ticks = pids.iter().map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, rest) = stat.rsplit_once(')').unwrap();
        let fields: Vec<_> = rest.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    });
    // Linux counts in hundredths of a second.
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

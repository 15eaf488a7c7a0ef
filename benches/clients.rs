//! What clients of a ZooKeeper server cost: three servers in processes of their own, real sockets, real fsync, and a load of
//! bytes that are written once.
//!
//! ```text
//! cargo build --release -p quorate && cargo bench -p quorate-benches --bench clients [-- --seconds 5] [--java]
//! ```
//!
//! `--java` measures ZooKeeper's servers (Debian's package) before and after ours, A B A, warmed up. What a server costs is
//! its processor time, from `/proc`, for each request; rates depend on what else this machine does, on the load's own
//! threads first of all.
#![expect(clippy::print_stdout, reason = "its result")]

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_core::zxid::Zxid;
use quorate_service::wire::{ConnectRequest, Request, op};
use quorate_znode::acl::Acl;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let words: Vec<_> = std::env::args().collect();
    // Without `--bench` this is a test that it runs: once, and briefly.
    let measured = words.iter().any(|word| word == "--bench");
    let seconds = words.iter().position(|word| word == "--seconds");
    let seconds = seconds.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(5.0);
    let seconds = Duration::from_secs_f64(if measured { seconds } else { 0.2 });
    if !quorate().exists() {
        println!("left out: there is no {}; cargo build --release -p quorate", quorate().display());
        return Ok(());
    }
    let java = words.iter().any(|word| word == "--java");
    let kinds: &[Kind] =
        if java { &[Kind::Java, Kind::Quorate, Kind::Java] } else { &[Kind::Quorate] };
    for kind in kinds {
        let ensemble = Ensemble::start(*kind)?;
        println!("{kind:?}");
        if *kind == Kind::Java {
            for load in LOADS {
                run(&ensemble, load, seconds)?;
            }
        }
        for load in LOADS {
            let told = run(&ensemble, load, seconds)?;
            println!("  {told}");
        }
    }
    Ok(())
}

/// The kind of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Quorate,
    Java,
}

/// What the connections of a load do: each always has so many requests under way.
#[derive(Clone, Copy, Debug)]
struct Load {
    name: &'static str,
    readers: (usize, usize),
    writers: (usize, usize),
}

const LOADS: [Load; 5] = [
    Load { name: "setData 100 B, 3 × 200", readers: (0, 0), writers: (3, 200) },
    Load { name: "setData 100 B, one", readers: (0, 0), writers: (1, 1) },
    Load { name: "getData 100 B, 64 × 16", readers: (64, 16), writers: (0, 0) },
    Load { name: "getData 100 B, 256 × 1", readers: (256, 1), writers: (0, 0) },
    Load { name: "90 % reads, 54 × 16 and 6 × 16", readers: (54, 16), writers: (6, 16) },
];

/// Runs a load; what came of it, in a line.
fn run(ensemble: &Ensemble, load: Load, seconds: Duration) -> Outcome<String> {
    let over = AtomicBool::new(false);
    let before = ensemble.cpu()?;
    let begun = Instant::now();
    let (reads, writes) = thread::scope(|scope| -> Outcome<_> {
        let mut threads = (Vec::new(), Vec::new());
        for n in 0..load.readers.0 {
            let port = ensemble.ports[n % 3];
            let over = &over;
            threads.0.push(
                scope.spawn(move || Client::connect(port)?.load(&read(), load.readers.1, over)),
            );
        }
        for n in 0..load.writers.0 {
            let port = ensemble.ports[n % 3];
            let over = &over;
            threads.1.push(
                scope.spawn(move || Client::connect(port)?.load(&write(), load.writers.1, over)),
            );
        }
        thread::sleep(seconds);
        over.store(true, Ordering::Relaxed);
        let gather = |threads: Vec<thread::ScopedJoinHandle<'_, Outcome<Vec<u64>>>>| {
            let mut all = Vec::new();
            for thread in threads {
                let done = thread.join().map_err(|_| "a thread of the load has panicked")??;
                all.extend(done);
            }
            all.sort_unstable();
            Outcome::Ok(all)
        };
        Ok((gather(threads.0)?, gather(threads.1)?))
    })?;
    let took = begun.elapsed();
    let cpu = ensemble.cpu()?.saturating_sub(before);
    let count = reads.len() + writes.len();
    let rate = count as f64 / took.as_secs_f64();
    let each = cpu.as_secs_f64() * 1e6 / (count.max(1)) as f64;
    let at = |all: &[u64], hundredths: usize| all.get(all.len() * hundredths / 100).copied();
    let spread = |name: &str, all: &[u64]| match (at(all, 50), at(all, 99)) {
        (Some(half), Some(most)) => format!(", {name} p50 {half} µs, p99 {most} µs"),
        _ => String::new(),
    };
    Ok(format!(
        "{:32} {rate:9.0}/s, {each:6.2} µs of the servers' processors each{}{}",
        load.name,
        spread("reads", &reads),
        spread("writes", &writes)
    ))
}

fn read() -> Request {
    Request::GetData { path: NODE.into(), watch: false }
}

fn write() -> Request {
    Request::SetData { path: NODE.into(), data: Some(Bytes::from(vec![7; 100])), version: -1 }
}

/// A client's connection, with a session.
struct Client {
    stream: TcpStream,
    held: Vec<u8>,
}

impl Client {
    fn connect(port: u16) -> Outcome<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut client = Self { stream, held: Vec::new() };
        let request = ConnectRequest {
            protocol: 0,
            last_zxid: Zxid::ZERO,
            timeout_ms: 30_000,
            session: 0,
            password: Bytes::from(vec![0; 16]),
            read_only: Some(false),
        };
        client.stream.write_all(&request.encode())?;
        client.replies(1)?;
        Ok(client)
    }

    /// So many requests under way, until it is over; how long each took, in microseconds.
    fn load(mut self, request: &Request, depth: usize, over: &AtomicBool) -> Outcome<Vec<u64>> {
        let frame = request.frame(1);
        let mut took = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let all: Vec<u8> = (0..depth).flat_map(|_| frame.iter().copied()).collect();
            self.stream.write_all(&all)?;
            let mut left = depth;
            while left > 0 {
                let came = self.replies(1)?;
                let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                took.extend(std::iter::repeat_n(micros, came));
                left = left.saturating_sub(came);
            }
        }
        Ok(took)
    }

    /// Waits for so many frames at least; how many there were.
    fn replies(&mut self, least: usize) -> Outcome<usize> {
        let mut chunk = [0; 64 << 10];
        let mut count = 0;
        loop {
            let mut at = 0;
            while let Some(length) = self.held.get(at..at + 4).and_then(<[u8]>::first_chunk) {
                let whole = 4 + usize::try_from(u32::from_be_bytes(*length))?;
                if self.held.len() - at < whole {
                    break;
                }
                at += whole;
                count += 1;
            }
            self.held.drain(..at);
            if count >= least {
                return Ok(count);
            }
            let read = self.stream.read(&mut chunk)?;
            if read == 0 {
                return Err("the server has closed the connection".into());
            }
            self.held.extend_from_slice(&chunk[..read]);
        }
    }
}

/// Three servers in processes of their own.
struct Ensemble {
    servers: Vec<Child>,
    ports: Vec<u16>,
    _dir: tempfile::TempDir,
}

impl Ensemble {
    fn start(kind: Kind) -> Outcome<Self> {
        // The disk that this tree is on, not whatever is behind /tmp.
        let dir = tempfile::tempdir_in(target())?;
        let mut ports = Vec::new();
        let free = || -> Outcome<u16> {
            let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            Ok(port)
        };
        let mut members = String::new();
        for id in 1..=3 {
            let (quorum, election, client) = (free()?, free()?, free()?);
            ports.push(client);
            members += &format!("server.{id}=127.0.0.1:{quorum}:{election};127.0.0.1:{client}\n");
        }
        let mut servers = Vec::new();
        for id in 1..=3 {
            let data = dir.path().join(id.to_string());
            fs::create_dir(&data)?;
            fs::write(data.join("myid"), id.to_string())?;
            let file = dir.path().join(format!("{id}.cfg"));
            let text = format!(
                "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={}\nmaxClientCnxns=0\n\
                 4lw.commands.whitelist=*\nadmin.enableServer=false\n{members}",
                data.display()
            );
            fs::write(&file, text)?;
            let mut command = match kind {
                Kind::Quorate => Command::new(quorate()),
                Kind::Java => java(),
            };
            if kind == Kind::Quorate {
                command.arg("serve");
            }
            command.arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
            servers.push(command.spawn()?);
        }
        let ensemble = Self { servers, ports, _dir: dir };
        for port in &ensemble.ports {
            until_serving(*port)?;
        }
        let acl = Some(vec![Acl::world(31)]);
        let data = Some(Bytes::from(vec![7; 100]));
        let path = NODE.to_owned();
        let create = Request::Create { op: op::CREATE, path, data, acl, flags: 0, ttl: None };
        let mut client = Client::connect(ensemble.ports[0])?;
        client.stream.write_all(&create.frame(1))?;
        client.replies(1)?;
        Ok(ensemble)
    }

    /// The processor time of all servers so far.
    fn cpu(&self) -> Outcome<Duration> {
        let mut ticks = 0;
        for server in &self.servers {
            let stat = fs::read_to_string(format!("/proc/{}/stat", server.id()))?;
            let behind = stat.rsplit(')').next().unwrap_or_default();
            let times = behind.split_whitespace().skip(11).take(2);
            ticks += times.filter_map(|time| time.parse::<u64>().ok()).sum::<u64>();
        }
        // A hundred a second, on every Linux that we know.
        Ok(Duration::from_millis(ticks * 10))
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

fn until_serving(port: u16) -> Outcome<()> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        let asked = || -> Outcome<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.write_all(b"srvr")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        if asked().is_ok_and(|text| text.contains("Mode: ")) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err("the servers do not serve".into())
}

fn java() -> Command {
    let jars = ["zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "netty-all"];
    let jars = jars.iter().chain(&["metrics-core", "snappy-java"]);
    let jars: Vec<_> = jars.map(|jar| format!("/usr/share/java/{jar}.jar")).collect();
    let mut command = Command::new("java");
    command
        .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
        .args(["-cp", &jars.join(":")])
        .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain");
    command
}

/// Where cargo builds.
fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.ancestors().nth(3).unwrap_or(Path::new(".")).to_owned()
}

fn quorate() -> PathBuf {
    target().join("release/quorate")
}

/// The node that is read and written.
const NODE: &str = "/load";

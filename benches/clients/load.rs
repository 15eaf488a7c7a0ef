//! What many connections do at once, from one thread: each always has so many requests under way.

use std::collections::VecDeque;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use quorate_service::wire::Request;

use crate::Outcome;
use crate::client::{Client, code, set, whole};
use crate::ensemble::Ensemble;

/// What the connections of a load do: how many there are, and how many requests each has under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    readers: (usize, usize),
    writers: (usize, usize),
    /// How many bytes a write has.
    size: usize,
}

impl Load {
    const fn of_100(name: &'static str, readers: (usize, usize), writers: (usize, usize)) -> Self {
        Self { name, readers, writers, size: 100 }
    }
}

pub(crate) const LOADS: [Load; 6] = [
    Load::of_100("setData 100 B, 3 × 200", (0, 0), (3, 200)),
    Load::of_100("setData 100 B, one", (0, 0), (1, 1)),
    Load::of_100("getData 100 B, 64 × 16", (64, 16), (0, 0)),
    Load::of_100("getData 100 B, 256 × 1", (256, 1), (0, 0)),
    Load::of_100("getData 100 B, 54 × 16", (54, 16), (0, 0)),
    Load::of_100("… and setData, 6 × 16", (54, 16), (6, 16)),
];

/// The node that is read and written.
pub(crate) const NODE: &str = "/load";

/// What came of a load.
pub(crate) struct Ran {
    name: &'static str,
    took: Duration,
    cpu: Duration,
    /// How long each took, in microseconds, the shortest first.
    reads: Vec<u32>,
    writes: Vec<u32>,
    /// By server, where it can be known.
    syncs: Option<Vec<u64>>,
    pub(crate) acknowledged: u64,
}

impl Load {
    /// The same, with writes of another size.
    pub(crate) const fn of_size(self, name: &'static str, size: usize) -> Self {
        Self { name, size, ..self }
    }

    /// Whether each write waits for the one before.
    pub(crate) fn is_one_write(self) -> bool {
        self.writers == (1, 1)
    }

    /// Runs for so long.
    pub(crate) fn run(self, ensemble: &Ensemble, lasts: Duration) -> Outcome<Ran> {
        let mut poll = Poll::new()?;
        let read = Request::GetData { path: NODE.into(), watch: false };
        let write = set(NODE, self.size);
        let plans = [(self.readers, &read, false), (self.writers, &write, true)];
        let mut all = Vec::new();
        for ((many, depth), request, writes) in plans {
            for n in 0..many {
                let stream = Client::connect(ensemble.ports[n % 3])?.stream;
                stream.set_nonblocking(true)?;
                let mut stream = TcpStream::from_std(stream);
                let interest = Interest::READABLE | Interest::WRITABLE;
                poll.registry().register(&mut stream, Token(all.len()), interest)?;
                all.push(Connection::new(stream, request, depth, writes));
            }
        }
        let syncs = ensemble.count_syncs();
        let before = ensemble.cpu()?;
        let begun = Instant::now();
        let mut events = Events::with_capacity(1024);
        for connection in &mut all {
            connection.go_on(begun)?;
        }
        while begun.elapsed() < lasts {
            poll.poll(&mut events, Some(lasts))?;
            let now = Instant::now();
            for event in &events {
                if let Some(connection) = all.get_mut(event.token().0) {
                    connection.go_on(now)?;
                }
            }
        }
        let (took, cpu) = (begun.elapsed(), ensemble.cpu()?.saturating_sub(before));
        let syncs = syncs.map(crate::ensemble::Syncs::end).transpose()?;
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for connection in all {
            if connection.writes { &mut writes } else { &mut reads }.extend(connection.done);
        }
        reads.sort_unstable();
        writes.sort_unstable();
        let acknowledged = u64::try_from(writes.len())?;
        Ok(Ran { name: self.name, took, cpu, reads, writes, syncs, acknowledged })
    }
}

impl Ran {
    /// How many writes a second.
    pub(crate) fn writes_a_second(&self) -> f64 {
        self.writes.len() as f64 / self.took.as_secs_f64()
    }

    /// The servers' processor time of each request, in microseconds.
    pub(crate) fn cpu_micros_each(&self) -> f64 {
        let count = self.reads.len() + self.writes.len();
        self.cpu.as_secs_f64() * 1e6 / count.max(1) as f64
    }

    /// How long the one in the middle took, in microseconds.
    pub(crate) fn write_p50(&self) -> f64 {
        self.write_at(50)
    }

    /// How long one took that so many of a hundred did not exceed, in microseconds.
    pub(crate) fn write_at(&self, hundredths: usize) -> f64 {
        self.writes.get(self.writes.len() * hundredths / 100).copied().map_or(0.0, f64::from)
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.reads.len() + self.writes.len();
        let rate = count as f64 / self.took.as_secs_f64();
        let each = self.cpu_micros_each();
        let busy = self.cpu.as_secs_f64() / self.took.as_secs_f64();
        write!(f, "{:24} {rate:9.0}/s, {each:6.2} µs each ({busy:.2} busy)", self.name)?;
        for (name, all) in [("reads", &self.reads), ("writes", &self.writes)] {
            let at = |hundredths: usize| all.get(all.len() * hundredths / 100);
            if let (Some(half), Some(most)) = (at(50), at(99)) {
                let rate = all.len() as f64 / self.took.as_secs_f64();
                write!(f, ", {name} {rate:.0}/s p50 {half} µs p99 {most} µs")?;
            }
        }
        match &self.syncs {
            Some(syncs) if !self.writes.is_empty() => write!(f, ", fdatasync {syncs:?}"),
            _ => Ok(()),
        }
    }
}

/// One connection, and what it has under way.
struct Connection {
    stream: TcpStream,
    frame: Vec<u8>,
    depth: usize,
    writes: bool,
    held: Vec<u8>,
    unsent: Vec<u8>,
    begun: VecDeque<Instant>,
    done: Vec<u32>,
}

impl Connection {
    fn new(stream: TcpStream, request: &Request, depth: usize, writes: bool) -> Self {
        let frame = request.frame(1).to_vec();
        let (held, unsent, begun) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { stream, frame, depth, writes, held, unsent, begun, done: Vec::new() }
    }

    /// Takes what has come, and asks as often anew.
    fn go_on(&mut self, now: Instant) -> Outcome<()> {
        let mut chunk = [0; 64 << 10];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err("the server has closed a connection".into()),
                Ok(read) => {
                    self.held.extend_from_slice(&chunk[..read]);
                    if read < chunk.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        let mut at = 0;
        while let Some(length) = self.held.get(at..).and_then(whole) {
            let code = code(&self.held[at..]);
            if code != 0 {
                return Err(format!("refused: {code}").into());
            }
            at += length;
            let begun = self.begun.pop_front().ok_or("a reply to nothing")?;
            self.done.push(u32::try_from((now - begun).as_micros()).unwrap_or(u32::MAX));
        }
        self.held.drain(..at);
        while self.begun.len() < self.depth {
            self.begun.push_back(now);
            self.unsent.extend_from_slice(&self.frame);
        }
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

//! The bare rounds, the least that a write can take: send, append, flush, acknowledge, and nothing else.
//!
//! ```text
//!   leader    ── 160 bytes ──► followers        then appends and flushes, then waits
//!   follower                   appends, flushes ── 8 bytes ──► leader
//! ```
//!
//! A round is over when a majority has flushed, the leader among them. Plain blocking threads and
//! sockets; the files are written in advance, so that a flush is a flush and no work on a file system's
//! journal.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, poll};

use super::measure::{histogram, micros};
use crate::cpu::cpu_time;

/// What is sent and written, about as much as a write of 100 bytes takes.
const BYTES: usize = 160;
/// How much of each file is written in advance, and used again and again.
const FILE_BYTES: usize = 4 << 20;
const WARM_UP: u64 = 20;

/// What such rounds take.
#[derive(Debug)]
pub struct Rounds {
    /// In microseconds.
    pub times: Histogram<u64>,
    /// What they cost the processors, all together.
    cpu: Duration,
}

impl Rounds {
    /// Adds those of another time.
    pub fn add(&mut self, more: &Self) {
        // Both are made the same way.
        let _ = self.times.add(&more.times);
        self.cpu += more.cpu;
    }

    /// What one costs the processors.
    pub fn cpu_each(&self) -> Duration {
        self.cpu / u32::try_from(self.times.len()).unwrap_or(u32::MAX).max(1)
    }
}

/// Measures such rounds for a while, with files below `dir`, which is made.
///
/// # Errors
///
/// If files, sockets or threads are not to be had, or one of them fails.
pub fn rounds(dir: &Path, servers: usize, time: Duration) -> io::Result<Rounds> {
    fs::create_dir(dir)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (mut streams, mut followers) = (Vec::new(), Vec::new());
    for number in 1..servers {
        let file = Appended::create(&dir.join(format!("bare.{number}")))?;
        let stream = TcpStream::connect(listener.local_addr()?)?;
        followers.push(std::thread::Builder::new().spawn(move || follow(stream, file))?);
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let file = Appended::create(&dir.join("bare.0"))?;
    let cpu = cpu_time();
    let times = lead(&mut streams, file, time);
    let cpu = cpu_time().saturating_sub(cpu);
    drop(streams);
    for follower in followers {
        joined(follower)?;
    }
    Ok(Rounds { times: times?, cpu })
}

fn joined(follower: JoinHandle<io::Result<()>>) -> io::Result<()> {
    follower.join().unwrap_or_else(|_| Err(io::Error::other("a follower panicked")))
}

fn lead(
    streams: &mut [TcpStream],
    mut file: Appended,
    time: Duration,
) -> io::Result<Histogram<u64>> {
    let mut times = histogram();
    let mut acknowledged = vec![0_u64; streams.len()];
    let needed = streams.len().div_ceil(2);
    let begun = Instant::now();
    for round in 1.. {
        let start = Instant::now();
        if begun.elapsed() > time {
            break;
        }
        for stream in &mut *streams {
            stream.write_all(&[7; BYTES])?;
        }
        file.append()?;
        while acknowledged.iter().filter(|last| **last >= round).count() < needed {
            let mut polled: Vec<_> =
                streams.iter().map(|stream| PollFd::new(stream, PollFlags::IN)).collect();
            poll(&mut polled, None)?;
            let ready: Vec<_> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
            for ((stream, last), _) in
                streams.iter_mut().zip(&mut acknowledged).zip(ready).filter(|(_, ready)| *ready)
            {
                let mut number = [0; 8];
                stream.read_exact(&mut number)?;
                *last = u64::from_be_bytes(number);
            }
        }
        if round > WARM_UP {
            times.saturating_record(micros(start.elapsed()));
        }
    }
    Ok(times)
}

fn follow(mut stream: TcpStream, mut file: Appended) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = [0; BYTES];
    for round in 1_u64.. {
        // The leader closes its end when it has seen enough, which may be before the last answers.
        if stream.read_exact(&mut bytes).is_err() {
            break;
        }
        file.append()?;
        if stream.write_all(&round.to_be_bytes()).is_err() {
            break;
        }
    }
    Ok(())
}

/// A file that has its length already.
struct Appended {
    file: File,
    offset: usize,
}

impl Appended {
    fn create(path: &Path) -> io::Result<Self> {
        let file = File::create_new(path)?;
        file.write_all_at(&vec![0; FILE_BYTES], 0)?;
        file.sync_all()?;
        Ok(Self { file, offset: 0 })
    }

    fn append(&mut self) -> io::Result<()> {
        self.file.write_all_at(&[7; BYTES], self.offset as u64)?;
        self.offset = (self.offset + BYTES) % (FILE_BYTES - BYTES);
        self.file.sync_data()
    }
}

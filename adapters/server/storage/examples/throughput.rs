//! How fast a log takes transactions, by how many are synced together, and how fast it is read again.
//!
//! `cargo run --release -p quorate-storage --example throughput -- [DIR]`; without a directory it works in
//! a new one in the current directory and removes it afterwards.
#![allow(clippy::print_stdout, reason = "it is what a command does")]

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_storage::Disk;
use quorate_storage::segments::{Dirs, SegmentOptions, Segments};

const BODY_BYTES: usize = 100;
const TIME_EACH: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    let temporary;
    let dir = match std::env::args().nth(1) {
        Some(dir) => PathBuf::from(dir),
        None => {
            temporary = tempfile::tempdir_in(".")?;
            temporary.path().to_owned()
        }
    };
    let body = Bytes::from(vec![7; BODY_BYTES]);
    let txn = |zxid| Txn {
        zxid: Zxid(zxid),
        header: TxnHeader { client: 1, cxid: 1, time: 1, kind: 5 },
        body: body.clone(),
    };
    println!(
        "{:>12} {:>8} {:>12} {:>10} {:>10}",
        "preallocate", "batch", "txn/s", "p50 µs", "p99 µs"
    );
    for preallocate in [64 << 20, 0] {
        for batch in [1, 8, 64, 512] {
            let dir = dir.join(format!("{preallocate}-{batch}"));
            std::fs::create_dir(&dir)?;
            let options = SegmentOptions { preallocate, ..SegmentOptions::default() };
            let (mut history, _) = Segments::open(Disk, Dirs::one(&dir), options)?;
            let (mut next, mut times, start) = (1, Vec::new(), Instant::now());
            let mut txns = Vec::new();
            while start.elapsed() < TIME_EACH {
                txns.clear();
                txns.extend((next..next + batch).map(txn));
                next += batch;
                let start = Instant::now();
                history.append(&txns)?;
                history.sync()?;
                times.push(start.elapsed().as_micros());
            }
            let rate = u128::try_from(next)? * 1_000_000 / start.elapsed().as_micros();
            times.sort_unstable();
            let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
            println!("{preallocate:>12} {batch:>8} {rate:>12} {p50:>10} {p99:>10}");
            let last = history.durable();
            drop(history);
            if batch == 512 {
                reopen(&dir, last)?;
            }
        }
    }
    Ok(())
}

fn reopen(dir: &std::path::Path, last: Zxid) -> Result<(), Box<dyn Error>> {
    let options = SegmentOptions { trust_empty_snapshot: true, ..SegmentOptions::default() };
    let start = Instant::now();
    let (mut history, _) = Segments::open(Disk, Dirs::one(dir), options)?;
    println!("opened {} transactions in {:?}", last.0, start.elapsed());
    let start = Instant::now();
    let mut reader = history.read(Zxid::ZERO, last)?;
    let (mut txns, mut bytes) = (0, 0);
    while let Some(chunk) = reader.next_chunk(256 << 10)? {
        txns += chunk.payloads().count();
        bytes += chunk.records().len();
    }
    println!("read {txns} transactions, {bytes} bytes, in {:?}", start.elapsed());
    Ok(())
}

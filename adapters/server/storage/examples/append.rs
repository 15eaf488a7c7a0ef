//! How long batches of transactions take to be durable, for comparing two builds: `append DIR BATCH COUNT`
//! writes so many batches and tells the median, the 90th percentile and the mean, in microseconds.
//!
//! A disk is never the same from one second to the next: run both builds in turn, many times, for a short
//! while each, and compare the medians.
#![allow(clippy::print_stdout, reason = "it is what a command does")]

use std::error::Error;
use std::time::Instant;

use bytes::Bytes;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_storage::Disk;
use quorate_storage::segments::{Dirs, SegmentOptions, Segments};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or(format!("{what} is missing"));
    let dir = next("a directory")?;
    let (batch, count) = (next("a batch")?.parse::<i64>()?, next("a count")?.parse::<usize>()?);
    let dir = tempfile::tempdir_in(dir)?;
    let body = Bytes::from(vec![7; 100]);
    let header = TxnHeader { client: 1, cxid: 1, time: 1, kind: 5 };
    let (mut history, _) = Segments::open(Disk, Dirs::one(dir.path()), SegmentOptions::default())?;
    let mut times = Vec::with_capacity(count);
    for first in (0..).step_by(usize::try_from(batch)?).take(count) {
        let txn = |zxid| Txn { zxid: Zxid(zxid), header, body: body.clone() };
        let txns: Vec<_> = (first + 1..=first + batch).map(txn).collect();
        let start = Instant::now();
        history.append(&txns)?;
        history.sync()?;
        times.push(start.elapsed().as_micros());
    }
    times.sort_unstable();
    let mean = times.iter().sum::<u128>() / times.len() as u128;
    println!("{} {} {mean}", times[count / 2], times[count * 9 / 10]);
    Ok(())
}

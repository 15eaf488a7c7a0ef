//! What servers hold in memory: idle, and with 100,000 nodes of 100 bytes at paths of 40.

use std::thread;
use std::time::Duration;

use crate::Outcome;
use crate::client::{Client, create};
use crate::ensemble::{Ensemble, Kind};

/// Prints what each server takes, in MiB.
pub(crate) fn measure(kind: Kind) -> Outcome<()> {
    let ensemble = Ensemble::start(kind)?;
    tell(&ensemble, "idle")?;
    let mut client = Client::connect(ensemble.ports[0])?;
    client.create("/some-directory", 0)?;
    for first in (0..NODES).step_by(UNDER_WAY) {
        for n in first..first + UNDER_WAY {
            let path = format!("/some-directory/{n:024}");
            debug_assert_eq!(path.len(), 40);
            client.send(&create(&path, 100))?;
        }
        for _ in 0..UNDER_WAY {
            client.answer()?;
        }
    }
    // The others may be a little behind.
    thread::sleep(Duration::from_secs(2));
    tell(&ensemble, "100,000 nodes")
}

fn tell(ensemble: &Ensemble, what: &str) -> Outcome<()> {
    let taken: Outcome<Vec<_>> = (0..3).map(|index| ensemble.resident(index)).collect();
    let taken: Vec<_> = taken?.into_iter().map(|kib| kib as f64 / 1024.0).collect();
    println!("  {what}: {taken:.1?} MiB");
    Ok(())
}

const NODES: usize = 100_000;
const UNDER_WAY: usize = 500;

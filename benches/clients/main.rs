//! What clients of a ZooKeeper server cost: three servers in processes of their own, real sockets, real fsync, and a load of
//! bytes that are written once.
//!
//! ```text
//! cargo build --release -p quorate && cargo bench -p quorate-benches --bench clients [-- OPTIONS]
//!     --seconds 5      how long each load lasts
//!     --java           ZooKeeper's servers (Debian's package) before and after ours: A B A, warmed up
//!     --only TEXT      the loads with this in their names
//!     --failover 50    instead: the leader is killed so often, and a client's write waits for the next one
//!     --memory         instead: what an idle server takes, and 100,000 nodes
//!     --scrape 7       instead: writes with and without a scrape each second, in turn, so often; scrapes and probes
//!     --tls 15         instead: writes and failovers with TLS between the servers and without, in turn, so often
//!     --mixed 15       instead: writes to Java's servers, and to those with one of ours among them, in turn, so often
//! ```
//!
//! The servers have one core, the load the other one. What a server costs is its processor time, from `/proc`, for each
//! request. Beside one write at a time stands what the disks and sockets of this run take that send, flush and acknowledge and do
//! nothing else, on the servers' core. In the end all servers are killed at once and started again: each write that was acknowledged must be there.
#![expect(clippy::print_stdout, reason = "its result")]

mod bare;
mod client;
mod ensemble;
mod failover;
mod load;
mod memory;
mod mixed;
mod scrape;
mod tls;

use std::error::Error;
use std::time::Duration;

use crate::client::Client;
use crate::ensemble::{Ensemble, Kind, quorate};
use crate::load::{LOADS, Load};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let words: Vec<_> = std::env::args().collect();
    let said = |word: &str| words.iter().any(|other| other == word);
    let value = |word: &str| words.get(words.iter().position(|other| other == word)? + 1).cloned();
    // Without `--bench` this is a test that it runs: once, and briefly.
    let measured = said("--bench");
    let seconds = value("--seconds").and_then(|text| text.parse().ok()).unwrap_or(5.0);
    let seconds = Duration::from_secs_f64(if measured { seconds } else { 0.2 });
    if !quorate().exists() {
        println!("left out: there is no {}; cargo build --release -p quorate", quorate().display());
        return Ok(());
    }
    ensemble::pin();
    let kinds: &[Kind] =
        if said("--java") { &[Kind::Java, Kind::Quorate, Kind::Java] } else { &[Kind::Quorate] };
    let only = value("--only");
    if let Some(rounds) = value("--mixed") {
        return mixed::measure(rounds.parse()?, seconds, only.as_deref());
    }
    if let Some(rounds) = value("--scrape") {
        return scrape::measure(rounds.parse()?, seconds);
    }
    if let Some(rounds) = value("--tls") {
        return tls::measure(rounds.parse()?, seconds, only.as_deref());
    }
    let only = only.unwrap_or_default();
    let loads: Vec<_> = LOADS.into_iter().filter(|load| load.name.contains(&only)).collect();
    for kind in kinds {
        println!("{kind:?}");
        if let Some(kills) = value("--failover") {
            failover::measure(*kind, kills.parse()?)?;
        } else if said("--memory") {
            memory::measure(*kind)?;
        } else {
            costs(*kind, &loads, seconds)?;
        }
    }
    Ok(())
}

/// What each load costs; and what was acknowledged is there when all servers were killed.
fn costs(kind: Kind, loads: &[Load], seconds: Duration) -> Outcome<()> {
    let mut ensemble = Ensemble::start(kind)?;
    let mut acknowledged = 0;
    if kind == Kind::Java {
        for load in loads {
            acknowledged += load.run(&ensemble, seconds)?.acknowledged;
        }
    }
    for load in loads {
        let ran = load.run(&ensemble, seconds)?;
        acknowledged += ran.acknowledged;
        println!("  {ran}");
        if load.is_one_write() {
            println!("  {}", bare::rounds(seconds)?);
        }
    }
    ensemble.kill_all()?;
    ensemble.start_all()?;
    // Each write has raised the version by one.
    let there = u64::try_from(Client::connect(ensemble.ports[0])?.version(load::NODE)?)?;
    println!("  all killed: {acknowledged} writes were acknowledged, {there} are there");
    if there < acknowledged { Err("an acknowledged write is lost".into()) } else { Ok(()) }
}

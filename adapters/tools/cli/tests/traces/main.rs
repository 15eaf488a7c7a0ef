//! Traces of real servers, the same story on each runtime: sockets on loopback, files, the machine's clock.
//! What the servers recorded of themselves is gone through again: the same peers, told the same, say the
//! same, and all rules of the simulator hold over them together.
//!
//! It is here because nobody else has all runtimes and the simulator. With a mistake in the servers, the
//! tape is refused:
//!
//! ```text
//! RUSTFLAGS="--cfg quorate_planted" \
//!   cargo test -p quorate --features runtimes --test traces --target-dir target/planted -- --nocapture
//! ```

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

mod cells;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
#[cfg(not(quorate_planted))]
use std::time::Instant;

use bytes::Bytes;
use quorate_driver::core::id::ServerId;
#[cfg(not(quorate_planted))]
use quorate_driver::core::input::Event;
#[cfg(quorate_planted)]
use quorate_driver::core::planted::{Mistake, plant};
use quorate_driver::core::zxid::Zxid;
use quorate_driver::testing::{Ensemble, Gate, Gated, Stage, Task};
use quorate_driver::{Proposal, Runtime, Server, ServerConfig};
#[cfg(not(quorate_planted))]
use quorate_sim::audit::What;
use quorate_sim::audit::{Audit, Entry, Objection, Tape};

use cells::Cells;

/// How many entries a tape has at least.
const ENTRIES: usize = 10_000;

fn adjust(config: &mut ServerConfig) {
    // A leader that is cut off is given up after a fifth of a second.
    config.core.timing.tick = Duration::from_millis(50);
    (config.core.timing.init_limit, config.core.timing.sync_limit) = (100, 4);
    // Snapshots are taken and sent, and old logs go.
    (config.core.history.snap_count, config.core.history.window_count) = (200, 50);
    config.preallocate = 1 << 16;
}

/// Clients of one server: they write and read until they are through or it has ended.
fn load<R: Runtime>(stage: &Stage<R>, server: &Server<R, Cells>) -> Vec<Task<()>> {
    let client = |cell: u8| {
        let server = server.clone();
        stage.spawn(async move {
            for number in 0..20_u8 {
                let body = Bytes::copy_from_slice(&[cell, number]);
                let proposal = Proposal { op: 5, body, identities: None };
                // Whoever loses its leader is told; what is true of that is for the audit.
                drop(server.propose(proposal).await);
                if number % 4 == 0 {
                    let _ = server.read(|cells| cells.count).await;
                }
            }
        })
    };
    (0..4).map(client).collect()
}

/// What servers recorded, and what they had applied in the end.
#[cfg_attr(quorate_planted, expect(dead_code, reason = "whose mistakes show on the tape alone"))]
struct Recorded {
    tape: Vec<Entry>,
    rounds: usize,
    states: BTreeMap<i64, (u64, BTreeMap<u8, Zxid>)>,
}

/// The ways of one server, which are closed until this is dropped: its connections stay, and nothing passes.
struct Cut(Arc<Gate>);

impl Cut {
    fn off<R: Runtime>(stage: &Stage<Gated<R>>, ServerId(id): ServerId) -> Self {
        let gate = Arc::clone(&stage.runtime(usize::try_from(id).unwrap() - 1).gate);
        gate.hold();
        Self(gate)
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Waits until somebody else serves as the leader, and the old one, which hears nothing of that, has given up.
async fn replaced<R: Runtime>(stage: &Stage<R>, ensemble: &Ensemble<R, Cells>, old: ServerId) {
    let leads = |(id, server): (ServerId, &Server<R, Cells>)| {
        id != old && server.leader().is_some_and(|leader| leader.0 == id)
    };
    stage.until("another leader", || ensemble.running().any(leads)).await;
    let cut_off = ensemble.server(old);
    stage.until("its end", || cut_off.leader().is_none_or(|leader| leader.0 != old)).await;
}

/// Leaders are killed, end in order, hand their seats over and are cut off, followers are killed, and everybody
/// comes back, while clients write and read everywhere.
async fn recorded<R: Runtime>(runtime: R, voters: i64, entries: usize) -> Recorded {
    let (tape, mut rounds) = (Tape::default(), 0);
    let servers = usize::try_from(voters).unwrap();
    let stage = &Stage::new([runtime]).gated(servers);
    let mut ensemble = Ensemble::new(stage, "127.0.0.1", [servers, 0], |_| Cells::default());
    ensemble.adjust = adjust;
    let recorders = tape.clone();
    ensemble.record(move |id| recorders.recorder(id));
    ensemble.start_all().await;
    while tape.len() < entries {
        let leader = ensemble.agreed().await.0;
        let follower = ensemble.other_than(&[leader]);
        let clients = ensemble.running().flat_map(|(_, server)| load(stage, server)).collect();
        match rounds % 5 {
            0 => ensemble.kill(leader).await,
            1 => {
                let _cut = Cut::off(stage, leader);
                replaced(stage, &ensemble, leader).await;
            }
            // It may have been deposed meanwhile, or not come to it; that is no matter here.
            2 => {
                let handed = ensemble.server(leader).hand_over(follower);
                let _ = stage.within("a hand-over", handed).await;
            }
            3 => stage.within("an end", ensemble.take(leader).shutdown()).await.unwrap(),
            _ => ensemble.kill(follower).await,
        }
        ensemble.agreed().await;
        ensemble.start_all().await;
        stage.join_all("clients", clients).await;
        rounds += 1;
    }
    ensemble.agreed().await;
    let mut states = BTreeMap::new();
    for (ServerId(id), server) in ensemble.running() {
        let state = server.read(|cells| (cells.count, cells.cells.clone()));
        states.insert(id, stage.within("a read", state).await.unwrap());
    }
    for id in ensemble.ids() {
        ensemble.kill(id).await;
    }
    Recorded { tape: tape.take(), rounds, states }
}

fn audited(voters: i64, tape: &[Entry]) -> Result<Audit, Objection> {
    Audit::of(quorate_sim::Ensemble::majority(voters), tape)
}

#[cfg(not(quorate_planted))]
async fn story<R: Runtime>(runtime: R, voters: i64) {
    let begun = Instant::now();
    let Recorded { tape, rounds, states } = recorded(runtime, voters, ENTRIES).await;
    let (took, begun) = (begun.elapsed(), Instant::now());
    let audit = match audited(voters, &tape) {
        Ok(audit) => audit,
        Err(objection) => panic!("{objection}"),
    };
    // What the core told is what the real applications did.
    for (id, state) in states {
        let told = audit.state(id).unwrap();
        assert_eq!(state, (told.count, told.cells.clone()), "what server {id} has applied");
    }
    let heard = |is: fn(&Event) -> bool| {
        let is =
            |entry: &&Entry| matches!(&entry.what, What::Step { input, .. } if is(&input.event));
        tape.iter().filter(is).count()
    };
    let (checker, lives) = (audit.checker(), audit.lives());
    let taken = heard(|event| matches!(event, Event::SnapshotTaken(_)));
    let received = heard(|event| matches!(event, Event::Restored { .. }));
    println!(
        "{voters} servers: {} entries in {took:.2?}: {lives} lives, {} leaders, {} commits, {} reads, \
         {taken} snapshots taken and {received} received; gone through in {:.2?}",
        tape.len(),
        checker.leaders().len(),
        checker.commits(),
        checker.reads_answered(),
        begun.elapsed(),
    );
    assert!(checker.leaders().len() > rounds / 2, "{rounds} rounds");
    assert!(checker.acknowledged() > 500 && checker.reads_answered() > 100 && taken > 0);
}

/// Three servers and five, on each runtime.
#[cfg(not(quorate_planted))]
mod sound {
    use super::*;

    async fn stories<R: Runtime>(runtime: R) {
        for voters in [3, 5] {
            story(runtime.clone(), voters).await;
        }
    }

    /// How long it takes until somebody else leads when the ways of a leader are closed, again and again; the
    /// old one comes back each time.
    async fn cuts<R: Runtime>(runtime: R, count: usize) {
        let (tape, mut times) = (Tape::default(), Vec::new());
        let stage = Stage::new([runtime]).gated(5);
        let mut ensemble = Ensemble::new(&stage, "127.0.0.1", [5, 0], |_| Cells::default());
        ensemble.adjust = adjust;
        let recorders = tape.clone();
        ensemble.record(move |id| recorders.recorder(id));
        ensemble.start_all().await;
        for _ in 0..count {
            let leader = ensemble.agreed().await.0;
            let (_cut, begun) = (Cut::off(&stage, leader), Instant::now());
            replaced(&stage, &ensemble, leader).await;
            times.push(begun.elapsed());
        }
        ensemble.agreed().await;
        for id in ensemble.ids() {
            ensemble.kill(id).await;
        }
        if let Err(objection) = audited(5, &tape.take()) {
            panic!("{objection}");
        }
        times.sort();
        let (median, p99, worst) =
            (times[count / 2], times[count * 99 / 100 - 1], times[count - 1]);
        println!("led again after {median:.1?} (median), {p99:.1?} (p99), {worst:.1?} (worst)");
    }

    fn cuts_on_tokio(count: usize) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(cuts(quorate_tokio::Tokio, count));
    }

    #[test]
    fn leaders_on_each_runtime_are_cut_off_and_replaced() {
        cuts_on_tokio(8);
        smol::block_on(cuts(quorate_smol::Smol, 8));
    }

    #[test]
    #[ignore = "a minute on each runtime"]
    fn leaders_on_tokio_are_cut_off_two_hundred_times() {
        cuts_on_tokio(200);
    }

    #[test]
    #[ignore = "a minute on each runtime"]
    fn leaders_on_smol_are_cut_off_two_hundred_times() {
        smol::block_on(cuts(quorate_smol::Smol, 200));
    }

    #[test]
    fn servers_on_tokio_do_what_the_rules_allow() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(stories(quorate_tokio::Tokio));
    }

    #[test]
    fn servers_on_smol_do_what_the_rules_allow() {
        smol::block_on(stories(quorate_smol::Smol));
    }

    /// The same on async-std; it goes with that runtime.
    #[cfg(feature = "async-std")]
    mod async_std {
        use quorate_async_std::{AsyncStd, block_on};

        use super::*;

        #[test]
        fn leaders_are_cut_off_and_replaced() {
            block_on(cuts(AsyncStd, 8));
        }

        #[test]
        #[ignore = "a minute on each runtime"]
        fn leaders_are_cut_off_two_hundred_times() {
            block_on(cuts(AsyncStd, 200));
        }

        #[test]
        fn servers_do_what_the_rules_allow() {
            block_on(stories(AsyncStd));
        }
    }
}

/// A rule that is broken by real servers is broken on their tape.
#[cfg(quorate_planted)]
#[test]
fn tapes_of_servers_that_make_a_mistake_are_refused() {
    for mistake in [
        Mistake::AckBeforeDisk,
        Mistake::AckEpochBeforeDisk,
        Mistake::HistoryAckBeforeDisk,
        Mistake::LeaderInfoBeforeDisk,
        Mistake::OwnCopyBeforeDisk,
        Mistake::CommitToldEarly,
    ] {
        plant(Some(mistake));
        let Recorded { tape, .. } = smol::block_on(recorded(quorate_smol::Smol, 3, ENTRIES / 10));
        match audited(3, &tape) {
            Ok(_) => panic!("{mistake:?}: the tape is accepted"),
            Err(objection) => println!("{mistake:?}: {objection}"),
        }
    }
    plant(None);
}

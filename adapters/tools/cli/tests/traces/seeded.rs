//! What real servers with a seeded bug record of themselves is refused.
//!
//! ```text
//! cargo run -p quorate-seeded -- test -p quorate --features runtimes --test seeded_traces -- --nocapture
//! ```
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

mod cells;
#[expect(dead_code, reason = "what else a sound run tells")]
mod servers;

use quorate_driver::core::seeded::{Bug, switch_to};

use servers::{ENTRIES, Recorded, audited, recorded};

/// A rule that is broken by real servers is broken on their tape.
#[test]
fn tapes_of_servers_with_a_bug_are_refused() {
    for bug in [
        Bug::AckBeforeDisk,
        Bug::AckEpochBeforeDisk,
        Bug::HistoryAckBeforeDisk,
        Bug::LeaderInfoBeforeDisk,
        Bug::OwnCopyBeforeDisk,
        Bug::CommitToldEarly,
    ] {
        switch_to(Some(bug));
        // Real disks may be faster than real links: what nobody could see has broken nothing.
        let objection = (0..TAPES_MAX).find_map(|_| {
            let recording = recorded(quorate_smol::Smol, 3, ENTRIES / 10);
            let Recorded { tape, .. } = quorate_smol::block_on(recording);
            audited(3, &tape).err()
        });
        match objection {
            None => panic!("{bug:?}: all tapes are accepted"),
            Some(objection) => println!("{bug:?}: {objection}"),
        }
    }
    switch_to(None);
}

/// Among how many tapes one has to be refused.
const TAPES_MAX: usize = 10;

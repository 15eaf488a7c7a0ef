//! Whether a mixed ensemble elects as fast as an all-Java one.
//!
//! `cargo bench -p quorate-benches --bench mixed`, some minutes, on an idle machine with Debian's
//! `zookeeper` package. Three servers, the leader is killed; the two that are left are Java and Java, or
//! Java and quorate, in turn. Taken is how long the Java server that is left looked for a leader, by its
//! own log. What follows the election is left out: synchronisation is not what differs here.
#![expect(clippy::unwrap_used, reason = "a bench stops where something is wrong")]
#![expect(clippy::print_stdout, reason = "its result")]

#[path = "../adapters/runtimes/tokio/tests/common/mod.rs"]
mod common;
#[path = "../adapters/runtimes/tokio/tests/java/mod.rs"]
mod java;
#[path = "../adapters/runtimes/tokio/tests/mixed/mod.rs"]
mod mixed;

use std::time::Duration;

use mixed::{Java, Kind, POLL, Quorate, established};
use quorate_core::id::ServerId;

const KINDS: [[Kind; 3]; 2] = [[Java, Java, Java], [Quorate, Java, Java]];

#[tokio::main]
async fn main() {
    let runs = if std::env::args().any(|argument| argument == "--test") { 1 } else { 20 };
    if !java::available() {
        return;
    }
    let mut took = [Vec::new(), Vec::new()];
    for run in 1..=runs {
        for (kinds, took) in KINDS.into_iter().zip(&mut took) {
            took.push(election(kinds).await);
        }
        let last = took.each_ref().map(|took| took[took.len() - 1]);
        println!("{run} of {runs}: all Java {:?}, mixed {:?}", last[0], last[1]);
    }
    let [java, mixed] = took.map(median);
    let ratio = mixed.as_secs_f64() / java.as_secs_f64();
    println!("medians: all Java {java:?}, mixed {mixed:?}, ratio {ratio:.3}");
}

/// Kills the Java leader, 3, of three servers, of which 2 is Java; how long 2 looks for another.
async fn election(kinds: [Kind; 3]) -> Duration {
    let (dead, asked) = (ServerId(3), ServerId(2));
    let (mut mixed, leader) = established(kinds, [3, 1, 2]).await;
    assert_eq!(leader, dead);
    let before = mixed.java(asked).elections().len();
    mixed.kill(dead).await;
    let over = async {
        while mixed.java(asked).elections().len() == before {
            tokio::time::sleep(POLL).await;
        }
    };
    mixed.patiently("an election without the leader", over).await;
    mixed.java(asked).elections()[before]
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    (times[(times.len() - 1) / 2] + times[times.len() / 2]) / 2
}

//! Why it is not enough that reads and writes each ask a quorum: two reads whose values no order explains, and the same
//! operations through a leader.
//!
//! ```text
//!   cargo run -p quorate-sim --example quorum_reads
//! ```
//!
//! Both halves are judged by one checker. The first is a register on three servers, of a few lines; the second are the
//! crate's servers, which run the shipped core, and whose leader crashes at each moment of the write.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use quorate_sim::{
    Answer, CrashKind, Ensemble, History, Outcome, Unexplained, Violation, World, WorldConfig,
};

const X: u8 = 1;
const SECOND: Duration = Duration::from_secs(1);
/// The seed of the simulated world, and so each of its delays.
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", story()?);
    Ok(())
}

/// What the example prints.
///
/// # Errors
///
/// If the plain quorums have an order, or the leader has none.
pub(crate) fn story() -> Result<String, Box<dyn Error>> {
    let mut text =
        "Three servers, x = 1. A client writes x = 2; two others read, one after the other.\n\n\
                    A quorum for each: a read asks two servers, and the newest value counts\n"
            .to_owned();
    match plain_quorums(&mut text) {
        Ok(operations) => return Err(format!("one order explains {operations} operations").into()),
        Err(why) => writeln!(text, "no order explains it: {why}\n")?,
    }
    text.push_str("Through a leader, which crashes while it writes\n");
    let operations = through_a_leader(&mut text)?;
    writeln!(text, "one order explains each run, {operations} operations in all")?;
    Ok(text)
}

/// The write reaches one server. The first read asks that one and another, the second read the two others.
fn plain_quorums(text: &mut String) -> Result<usize, Unexplained> {
    let mut servers = [0_u32; 3];
    let mut history = History::default();
    let mut line = |who, what: &str| text.push_str(&format!("  {who:<9} {what}\n"));

    let write = history.call(X, Some(1));
    servers.fill(1);
    history.wrote(Some(write));

    // Its client is never told that it is done, since it is not.
    history.call(X, Some(2));
    servers[0] = 2;
    line("writer", "server 1 takes x = 2; it stalls before servers 2 and 3 have it");

    for (who, asked) in [("reader 1", [0, 1]), ("reader 2", [1, 2])] {
        let read = history.call(X, None);
        let newest = asked.map(|server| servers[server]).into_iter().max();
        history.read(read, newest);
        let value = newest.unwrap_or_default();
        let asked = asked.map(|server| format!("{} has {}", server + 1, servers[server]));
        line(who, &format!("server {}, so x = {value}", asked.join(", server ")));
    }
    history.check()
}

/// What came of a run: whether the writer was told that it is done, and what the readers read.
type Run = (bool, [u32; 3]);

/// The leader crashes after its first output of the write, after the second, and so on until it is done with it.
fn through_a_leader(text: &mut String) -> Result<usize, Box<dyn Error>> {
    let (mut explained, mut from) = (0, 1);
    let (mut before, operations) = crashes_after(1)?;
    explained += operations;
    for outputs in 2.. {
        let (run, operations) = crashes_after(outputs)?;
        explained += operations;
        if run != before {
            tell(text, from, outputs - 1, before);
            (from, before) = (outputs, run);
        }
        // Two more than are needed until the writer is told.
        if run.0 && outputs > from + 1 {
            tell(text, from, outputs, run);
            break;
        }
    }
    Ok(explained)
}

fn tell(text: &mut String, from: u64, to: u64, (told, values): Run) {
    let told = if told { "writer: done" } else { "writer: no answer" };
    let [first, second, third] = values;
    text.push_str(&format!(
        "  after output {from:>2} to {to:>2}  {told:<17}  reader 1: {first}  reader 2: {second}  the old leader, back: {third}\n"
    ));
}

/// A run in which the leader crashes after so many outputs of the write, and how many operations one order explains.
fn crashes_after(outputs: u64) -> Result<(Run, usize), Box<dyn Error>> {
    let mut world = World::new(SEED, WorldConfig::new(Ensemble::majority(3)));
    world.start_all([1, 2, 3]);
    until(&mut world, "three servers serve", World::is_settled)?;
    let leader = world.leader().ok_or("no leader")?.0;
    let first = world.propose(leader, X)?.ok_or("the leader is down")?;
    let applied =
        |world: &World| matches!(world.checker().outcome(first), Some(Outcome::Applied(_)));
    until(&mut world, "x = 1 is everywhere", |world| applied(world) && world.is_level())?;
    let Some(Outcome::Applied(one)) = world.checker().outcome(first) else {
        return Err("no x".into());
    };

    world.crash_after_outputs(leader, outputs, None);
    let second = world.propose(leader, X)?.ok_or("the leader is down")?;
    world.run_for(SECOND)?;
    let told = matches!(world.checker().outcome(second), Some(Outcome::Applied(_)));
    if world.is_up(leader) {
        world.crash(leader, CrashKind::Power)?;
    }
    // Once is enough.
    world.crash_after_outputs(leader, u64::MAX, None);
    let others: Vec<_> = world.servers().filter(|id| id.0 != leader).collect();
    let two = others.clone();
    until(&mut world, "two serve", move |world| world.is_settled_among(two.iter().copied()))?;
    let mut values = [0; 3];
    for (value, server) in values.iter_mut().zip(others.iter().map(|id| id.0).chain([leader])) {
        if server == leader {
            world.start(leader);
            until(&mut world, "three serve again", World::is_settled)?;
        }
        let read = world.read_cell(server, X)?.ok_or("it is down")?;
        let answered = move |world: &World| {
            matches!(world.checker().answer(server, read), Some(Answer::Read(_)))
        };
        until(&mut world, "a read is answered", answered)?;
        let cell = world.applied(server).and_then(|state| state.cells.get(&X).copied());
        *value = if cell == Some(one) { 1 } else { 2 };
    }
    Ok(((told, values), world.check_history()?))
}

fn until(
    world: &mut World,
    what: &str,
    done: impl Fn(&World) -> bool,
) -> Result<(), Box<dyn Error>> {
    let took: Result<_, Violation> = world.run_until(done, 30 * SECOND);
    took?.ok_or_else(|| format!("not in time: {what}"))?;
    Ok(())
}

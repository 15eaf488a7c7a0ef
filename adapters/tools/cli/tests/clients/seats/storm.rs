//! Servers of either kind that are killed again and again, while clients count on all of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use quorate_service::wire::{Request, Response};
use quorate_tokio::core::zxid::Zxid;

use super::Random;
use super::kept::Kept;
use super::tree::the_tree;
use crate::common::until;
use crate::ensemble::{Kind, PARTICIPANT, Servers, java_is_here};
use crate::raw::{Client, Connected, ephemeral, exists, get, plain, set};

const LONG: i32 = 20_000;
const CLIENTS: usize = 6;

/// A client that counts in a node of its own, wherever its session lives.
struct Counter {
    ports: Vec<u16>,
    random: Random,
    client: Client,
    node: String,
    own: String,
    /// What was acknowledged last, and by which transaction.
    count: i32,
    acknowledged: Zxid,
    /// How often its connection was lost.
    lost: usize,
}

impl Counter {
    fn begin(ports: Vec<u16>, seed: u64, nth: usize) -> Self {
        let mut client = Client::open(ports[nth % ports.len()], LONG);
        let (node, own) = (format!("/count-{nth}"), format!("/own-{nth}"));
        client.ask(&plain(&node)).unwrap();
        client.ask(&ephemeral(&own)).unwrap();
        let random = Random(seed.wrapping_mul(31).wrapping_add(nth as u64));
        let acknowledged = client.seen;
        Self { ports, random, client, node, own, count: 0, acknowledged, lost: 0 }
    }

    /// Comes back to any server, or is told to stop. What was under way is done, or is not, and the session lives.
    fn again(&mut self, stop: &AtomicBool) {
        self.lost += 1;
        while !stop.load(Ordering::Relaxed) {
            let port = self.ports[self.random.below(self.ports.len())];
            match Client::connect(port, &self.client.ticket, self.client.seen) {
                Connected::Yes(client) => self.client = client,
                Connected::Closed => {
                    thread::sleep(std::time::Duration::from_millis(20));
                    continue;
                }
                Connected::Refused => panic!("{}: its session has ended", self.node),
            }
            // Behind this write is what was under way; behind a sync at a Java leader it need not be.
            if self.client.try_ask(&set(&self.own, "again")).is_none() {
                continue;
            }
            let Some(Ok(Response::Data { stat, .. })) = self.client.try_ask(&get(&self.node))
            else {
                continue;
            };
            let legal = [self.count, self.count + 1];
            assert!(
                legal.contains(&stat.version),
                "{} at port {port}: {} of {legal:?}, changed by {:x}, acknowledged {:x}",
                self.node,
                stat.version,
                stat.mzxid.0,
                self.acknowledged.0
            );
            (self.count, self.acknowledged) = (stat.version, stat.mzxid);
            let Some(answer) = self.client.try_ask(&exists(&self.own)) else { continue };
            let Ok(Response::Stat(stat)) = answer else { panic!("{}: {answer:?}", self.own) };
            assert_eq!(stat.ephemeral_owner, self.client.ticket.session);
            return;
        }
    }

    fn count(mut self, stop: &AtomicBool) -> (i32, usize) {
        while !stop.load(Ordering::Relaxed) {
            if self.random.below(200) == 0 {
                self.again(stop);
                continue;
            }
            let (path, data) = (self.node.clone(), None);
            let request = Request::SetData { path, data, version: self.count };
            match self.client.try_ask(&request) {
                Some(Ok(Response::Stat(stat))) => {
                    (self.count, self.acknowledged) = (self.count + 1, stat.mzxid);
                    assert_eq!(stat.version, self.count, "{}", self.node);
                }
                None => self.again(stop),
                other => panic!("{}: {other:?}", self.node),
            }
        }
        (self.count, self.lost)
    }
}

/// Waits until all serve. A server of ZooKeeper since 3.9.4 may end, whoever the others are, when it loses its
/// leader: while a transaction is in its tree and not yet among those that it keeps for learners, another thread brings
/// the tree up to the log's end, puts the next one there, and takes the gap for a loss of data (`CommitProcessor.shutdown`
/// waits for no thread, ZOOKEEPER-3598; `ZKDatabase.addCommittedProposal`, ZOOKEEPER-4925). Such a one is started again, as
/// an operator's supervisor would.
fn a_leader(servers: &mut Servers, kept: &mut Kept) -> usize {
    until("a leader whom all follow", || {
        for id in servers.ids() {
            if servers.has_ended(id)
                && servers.log(id).contains("Committed proposal cached out of order")
            {
                println!("server {id} has ended: a committed proposal out of order");
                kept.copy(servers, id);
                servers.kill(id);
                servers.launch(id);
            }
        }
        servers.followed()
    })
}

/// By hand, since servers of ZooKeeper 3.8.0 may lose what they have acknowledged, whoever the others are:
///
/// 1. One that comes back gets DIFF, puts what came into the queue of its log's thread, writes its current epoch and
///    acknowledges NEWLEADER (ZOOKEEPER-4646, -4643): neither its disk nor its tree has it yet. A COMMIT before UPTODATE of
///    what came before NEWLEADER ends that synchronisation with a null pointer (ZOOKEEPER-4394).
/// 2. The thread lives on and writes (ZOOKEEPER-4712), while the server elects with the old zxid, gets the same DIFF
///    again, and a second thread logs it behind the first copy. This was seen in nearly every run.
/// 3. Killed while the second copy is written, it replays the first copy and a part of the second at its next start: its
///    tree is older than what it has acknowledged, its last zxid is not, and no leader sends it what is missing.
///
/// With `QUORATE_KEEP=PLACE` directories and logs are kept there and it is told who led, and whose log goes back;
/// `JAVA_TOOL_OPTIONS=-Dzookeeper.flushDelay=60` makes step 3 likelier.
#[test]
#[ignore = "servers of ZooKeeper 3.8.0 may lose writes when they are killed; by hand"]
fn clients_of_a_mixed_ensemble_lose_no_session_and_no_write_while_servers_are_killed() {
    if !java_is_here() {
        return;
    }
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed = number("QUORATE_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let rounds = number("QUORATE_ROUNDS").unwrap_or(4);
    println!("QUORATE_SEED={seed} QUORATE_ROUNDS={rounds}");
    let mut random = Random(seed);
    let mut seats = [(Kind::Quorate, PARTICIPANT); 3];
    seats[random.below(3)] = (Kind::Java, PARTICIPANT);
    if random.below(2) == 0 {
        seats[random.below(3)] = (Kind::Java, PARTICIPANT);
    }
    let kinds = std::env::var("QUORATE_KINDS").unwrap_or_default();
    for ((kind, _), letter) in seats.iter_mut().zip(kinds.chars()) {
        *kind = if letter == 'j' { Kind::Java } else { Kind::Quorate };
    }
    let mut servers = Servers::mixed(&seats);
    let mut kept = Kept::new();
    let ports: Vec<_> = servers.ids().map(|id| servers.port(id)).collect();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let counters: Vec<_> = (0..CLIENTS)
            .map(|nth| {
                let counter = Counter::begin(ports.clone(), seed, nth);
                scope.spawn(|| counter.count(&stop))
            })
            .collect();
        // Whatever fails: those who count are told to stop.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..rounds {
                let leader = a_leader(&mut servers, &mut kept);
                if counters.iter().any(thread::ScopedJoinHandle::is_finished) {
                    // One has found something: what the disks hold now is of use.
                    break;
                }
                let doomed = if random.below(3) == 0 { 1 + random.below(3) } else { leader };
                println!(
                    "{:?} {doomed} of {:?} {leader}",
                    servers.kind(doomed),
                    servers.kind(leader)
                );
                servers.kill(doomed);
                kept.tell(&mut servers);
                kept.copy(&servers, doomed);
                if random.below(2) == 0 {
                    a_leader(&mut servers, &mut kept);
                    kept.tell(&mut servers);
                }
                servers.launch(doomed);
            }
            a_leader(&mut servers, &mut kept);
        }));
        stop.store(true, Ordering::Relaxed);
        let counted: Vec<_> = counters.into_iter().map(thread::ScopedJoinHandle::join).collect();
        kept.tell(&mut servers);
        for id in servers.ids() {
            kept.copy(&servers, id);
        }
        for (count, lost) in counted.into_iter().map(Result::unwrap) {
            println!("counted to {count}, lost {lost} connections");
        }
        outcome.unwrap();
    });
    // Not the digests: those of servers of ZooKeeper 3.8.0 drift from their trees where leaders are killed under load, also
    // where there are no others (QUORATE_KINDS=jjj).
    the_tree(&servers);
}

//! A Java follower that comes back to a leader of ours while clients write.

use std::sync::atomic::{AtomicBool, Ordering};

use quorate_service::wire::Request;

use super::digests::{differed, digests_agree};
use crate::ensemble::{Kind, PARTICIPANT, Servers, java_is_here};
use crate::raw::{Client, plain, set};

const WRITERS: usize = 8;
/// What each has under way.
const AHEAD: usize = 64;
const ROUNDS: usize = 12;
/// So many nodes that their snapshot takes a while.
const NODES: usize = 20_000;
/// How many of them one multi makes.
const TOGETHER: usize = 500;

/// Writes, as fast as it is answered.
fn write(port: u16, nth: usize, ends: &AtomicBool) {
    let mut client = Client::open(port, 20_000);
    let path = format!("/w-{nth}");
    client.ask(&plain(&path)).unwrap();
    let request = set(&path, "x");
    while !ends.load(Ordering::Relaxed) {
        for _ in 0..AHEAD {
            client.send(&request);
        }
        for _ in 0..AHEAD {
            client.answer(request.op()).unwrap().unwrap();
        }
    }
}

/// The writers end with it, whatever the test comes to.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// ZooKeeper's followers before 3.9.3 end where a COMMIT comes between NEWLEADER and UPTODATE, and what it is of came before
/// NEWLEADER (ZOOKEEPER-4394).
#[test]
fn a_java_follower_comes_back_to_quorates_leader_under_load_again_and_again_and_never_fails() {
    if !java_is_here() {
        return;
    }
    let kinds = [Kind::Java, Kind::Quorate, Kind::Quorate];
    let mut servers = Servers::mixed(&kinds.map(|kind| (kind, PARTICIPANT)));
    assert_eq!(servers.leader(), 3);
    let (port, ends) = (servers.port(3), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (ends, ending) = (&ends, Ending(&ends));
        for nth in 0..WRITERS {
            scope.spawn(move || write(port, nth, ends));
        }
        let failed: Vec<_> = (0..ROUNDS)
            .filter(|_| {
                servers.restart(1);
                let log = servers.log(1);
                log.contains("NullPointerException") || log.matches("Getting a ").count() > 1
            })
            .collect();
        drop(ending);
        assert!(failed.is_empty(), "it began again in the rounds {failed:?}");
    });
    assert_eq!(servers.leader(), 3);
}

/// A Java server writes a snapshot for a learner while it applies: the snapshot has effects of transactions that follow it.
#[test]
fn a_server_of_ours_that_gets_the_whole_tree_from_javas_leader_under_load_finds_no_difference() {
    if !java_is_here() {
        return;
    }
    let kinds = [Kind::Quorate, Kind::Java, Kind::Java];
    let mut servers = Servers::mixed(&kinds.map(|kind| (kind, PARTICIPANT)));
    assert_eq!(servers.leader(), 3);
    let (port, ends) = (servers.port(3), AtomicBool::new(false));
    let mut client = Client::open(port, 20_000);
    for first in (0..NODES).step_by(TOGETHER) {
        let creates = first..first + TOGETHER;
        let creates = creates.map(|nth| plain(&format!("/node-{nth:08}"))).collect();
        client.ask(&Request::Multi(creates)).unwrap();
    }
    std::thread::scope(|scope| {
        let (ends, ending) = (&ends, Ending(&ends));
        for nth in 0..WRITERS {
            scope.spawn(move || write(port, nth, ends));
        }
        for _ in 0..ROUNDS / 3 {
            servers.kill(1);
            std::fs::remove_dir_all(servers.data(1)).unwrap();
            servers.restart(1);
            let log = servers.log(1);
            assert!(log.contains("is brought up by SNAP"), "{log}");
            assert_eq!(differed(&servers, 1), 0, "{log}");
            // From that snapshot on its own disk, and what it has logged behind it.
            servers.restart(1);
            assert_eq!(differed(&servers, 1), 0, "{}", servers.log(1));
        }
        drop(ending);
    });
    digests_agree(&servers);
}

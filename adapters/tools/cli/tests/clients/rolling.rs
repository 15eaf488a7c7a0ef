//! Servers of an ensemble that are replaced one at a time under load: Apache ZooKeeper's by ours, and back, each in its
//! directory. No session, no ephemeral node, no watch and no acknowledged write may be lost.
//!
//! In the surroundings: `QUORATE_ROLLING_SERVERS` (3), `_SESSIONS` (60), `_WRITES` a second (300), and
//! `_BOUNDS=1`, with which a client may wait for 2 s where a leader of Java's ends and for 200 ms where one of ours does
//! that can transfer its leadership.

mod audit;
mod load;
mod session;

use std::time::{Duration, Instant};

use self::audit::audit;
use self::load::{Load, Size, Watch};
use self::session::Session;
use crate::common::until;
use crate::ensemble::{Kind, PARTICIPANT, Servers, java_is_here};

/// One server's turn.
struct Turn {
    id: usize,
    to: Kind,
}

#[test]
fn servers_are_replaced_one_at_a_time_and_back_under_load_and_clients_lose_nothing() {
    if !java_is_here() {
        return;
    }
    let count = setting("SERVERS", 3);
    let mut servers = Servers::mixed(&vec![(Kind::Java, PARTICIPANT); count]);
    // All go, the leader of ours is started again, all come back, and a watch for everything behind that.
    let turns = 2 * count + 1;
    let size = Size {
        sessions: setting("SESSIONS", 60),
        writes: setting("WRITES", 300),
        rounds: turns + 1,
        timeout: Duration::from_secs(8),
    };
    let ports: Vec<_> = servers.ids().map(|id| servers.port(id)).collect();
    let load = Load::start(&size, &ports, turns);
    let mut admin = Session::open(&ports, 0, size.timeout, Duration::from_millis(5));

    let mut round = 0;
    for to in [Kind::Quorate, Kind::Java] {
        if to == Kind::Java {
            let id = servers.leader();
            take_turn(&mut servers, &load, round, &Turn { id, to: Kind::Quorate });
            fire(&mut admin, &load, &size, round);
            round += 1;
        }
        let leader = servers.leader();
        let followers: Vec<_> = servers.ids().filter(|id| *id != leader).collect();
        for id in followers.into_iter().chain([leader]) {
            take_turn(&mut servers, &load, round, &Turn { id, to });
            fire(&mut admin, &load, &size, round);
            round += 1;
        }
    }
    fire(&mut admin, &load, &size, round);
    let records = load.hold();
    println!("{} writes acknowledged", load.acknowledged());
    for port in ports {
        audit(port, &records);
    }
    for round in 0..=turns {
        let (missed, twice) = load.told(round);
        assert!(missed.is_empty() && twice.is_empty(), "round {round}: told twice {twice:?}");
    }
    load.end();
}

/// Replaces one server, and sees that clients write at the same pace behind it.
fn take_turn(servers: &mut Servers, load: &Load, part: usize, turn: &Turn) {
    let Turn { id, to } = *turn;
    let (led, from) = (servers.leader() == id, servers.kind(id));
    let others_are_ours =
        servers.ids().any(|other| other != id && servers.kind(other) == Kind::Quorate);
    load.begin_part(part);
    let begun = Instant::now();
    servers.replace(id, to);
    let before = load.acknowledged();
    until("clients that write", || (load.acknowledged() > before + 100).then_some(()));
    assert!(!load.has_failed(), "a session has failed");
    let wait = load.longest_wait(part);
    println!(
        "server {id}{}, {from:?} -> {to:?}: {:.1?}; longest wait of a client {wait:.1?}",
        if led { " (led)" } else { "" },
        begun.elapsed(),
    );
    if setting("BOUNDS", 0) == 1 && led {
        let transfers = from == Kind::Quorate && others_are_ours;
        let bound = Duration::from_millis(if transfers { 200 } else { 2000 });
        assert!(wait <= bound, "a client has waited for {wait:?}");
    }
}

/// Changes what the sessions watch for this round, and waits until all are told.
fn fire(admin: &mut Session, load: &Load, size: &Size, round: usize) {
    for nth in 0..size.sessions {
        let path = format!("/w/{nth}/{round}");
        let watch = Watch::of(nth, round, size.rounds);
        let (answer, lost) = admin.ask(&watch.change(&path));
        assert!(answer.is_ok() || lost, "{path}: {answer:?}");
    }
    let told = || {
        assert!(!load.has_failed(), "a session has failed");
        load.told(round).0.is_empty().then_some(())
    };
    until("the watches of a round", told);
}

/// A number in the surroundings.
fn setting(name: &str, default: usize) -> usize {
    let set = std::env::var(format!("QUORATE_ROLLING_{name}"));
    set.map_or(default, |text| text.parse().unwrap())
}

//! Many seats in one session.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::collections::BTreeSet;

use quorate_zookeeper::{Candidate, Config, Session};

use crate::peers::ours::{Ours, connect};
use crate::peers::{SESSION, Wire, standing, within};

const SEATS: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seats_of_one_session_cost_a_node_and_a_watch_each_and_are_lost_one_by_one_or_together() {
    let ours = Ours::start().await;
    let wire = Wire::to(ours.port).await;
    let client = connect(wire.port, SESSION).await;
    let session = Session::of(&client);
    let mut seats = Vec::new();
    for number in 0..SEATS {
        let config = Config::on(&session, format!("/seats/{number}"), "me");
        seats.push(Candidate::start(config).await.unwrap());
    }
    let mut guards = Vec::new();
    for seat in &seats {
        guards.push(within("leadership", seat.leadership()).await.unwrap());
    }
    let tokens: BTreeSet<_> = guards.iter().map(|guard| guard.token()).collect();
    assert_eq!(tokens.len(), SEATS);
    assert_eq!(client.list_ephemerals("/seats").await.unwrap().len(), SEATS);
    ours.keeps_watches(SEATS).await;

    // One seat is given up, and the others know nothing of it.
    drop(guards.pop());
    within("the end", seats.pop().unwrap().stop()).await;
    assert!(guards.iter().all(|guard| guard.check().is_ok()));
    ours.keeps_watches(SEATS - 1).await;

    wire.cut();
    within("the end of the session", wire.end_session(ours.port)).await;
    wire.mend();
    for guard in &guards {
        within("the loss", guard.lost()).await;
    }
    guards.clear();
    for seat in &seats {
        standing(seat, "the end", |status| status.ended).await;
    }
}

//! Who leads, and how that ends.

use std::time::Duration;

use quorate_core::config::{Election, Generations};
use quorate_core::vote::{Round, ServerState};

use super::{Ensemble, Stage};
use crate::{NoApplication, Runtime, ServerConfig};

pub async fn three_servers_establish_a_leader<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    // Usually 3; 2 if it has won with 1 before 3 had opened its ports.
    assert!(leader.0 >= 2 && epoch.0 == 1, "{leader} in {epoch}");
    let status = ensemble.server(leader).status();
    assert_eq!(status.peer.state, ServerState::Leading);
    assert!(status.metrics.leading_for.is_some());
    assert_eq!(status.metrics.looking_count, 1);
    assert_eq!(status.metrics.elections, 1);
    assert!(status.metrics.last_election.is_some());
}

pub async fn a_killed_leader_is_replaced_and_comes_back<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(5, 0);
    ensemble.start_all().await;
    let (mut leader, mut epoch) = ensemble.agreed().await;
    for _ in 0..3 {
        ensemble.kill(leader).await;
        let (next, later) = ensemble.agreed().await;
        assert_ne!(next, leader);
        assert!(later > epoch, "{later} after {epoch}");

        // It comes back as a follower of the new leader, not as a usurper.
        ensemble.start(leader).await;
        let again = ensemble.agreed().await;
        assert_eq!(again, (next, later));
        (leader, epoch) = again;
    }
}

/// Two of three are a quorum only together, so each election needs the server that came back last.
pub async fn leader_after_leader_is_killed<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let (_, mut epoch) = ensemble.agreed().await;
    for _ in 0..7 {
        let (leader, _) = ensemble.agreed().await;
        ensemble.kill(leader).await;
        let (_, later) = ensemble.agreed().await;
        assert!(later > epoch, "{later} after {epoch}");
        epoch = later;
        ensemble.start(leader).await;
    }
}

pub async fn an_ensemble_that_stops_as_a_whole_starts_again<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 1);
    let mut before = None;
    for round in 0..3 {
        ensemble.start_all().await;
        let (_, epoch) = ensemble.agreed().await;
        assert!(Some(epoch) > before, "{epoch} after {before:?}: it remembers");
        before = Some(epoch);
        for id in ensemble.ids() {
            if round == 1 {
                ensemble.kill(id).await;
            } else {
                stage.within("shutdown", ensemble.take(id).shutdown()).await.unwrap();
            }
        }
    }
}

pub async fn shutdown_says_goodbye_and_frees_everything<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    let server = ensemble.take(leader);
    let mut leaders = server.leaders();
    let mut changes = server.changes();
    stage.within("shutdown", server.shutdown()).await.unwrap();
    // The others have noticed without any timeout.
    let (_, later) = ensemble.agreed().await;
    assert!(later > epoch);
    assert_eq!(server.leader(), None);
    // Readers are told that it is over.
    while stage.within("leaders", leaders.next()).await.is_some() {}
    while stage.within("changes", changes.next()).await.is_some() {}
    stage.within("finished", server.finished()).await.unwrap();
    stage.within("shutdown again", server.shutdown()).await.unwrap();
    // Same ports, same directory, while the old handle is still there.
    ensemble.start(leader).await;
    ensemble.agreed().await;
}

pub async fn a_server_that_looks_for_a_leader_shuts_down<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    let first = ensemble.ids()[0];
    ensemble.start(first).await;
    let server = ensemble.take(first);
    stage.until("looking", || server.status().peer.round > Round(0)).await;
    stage.within("shutdown", server.shutdown()).await.unwrap();
}

pub async fn dropping_the_handle_shuts_down<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    let server = ensemble.take(leader);
    let mut leaders = server.leaders();
    drop(server);
    while stage.within("leaders", leaders.next()).await.is_some() {}
    assert!(ensemble.agreed().await.1 > epoch);
}

pub async fn observers_follow_and_do_not_count<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 2);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    for id in ensemble.observers() {
        assert_ne!(leader, id);
        assert_eq!(ensemble.server(id).status().peer.state, ServerState::Observing);
    }
    ensemble.kill(leader).await;
    let (next, epoch) = ensemble.agreed().await;
    assert!(!ensemble.observers().contains(&next));
    // Two observers and one voter are no quorum.
    let mut leaders = ensemble.server(ensemble.observers()[0]).leaders();
    ensemble.kill(next).await;
    let lost = async { while leaders.next().await.unwrap().is_some() {} };
    stage.within("losing the leader", lost).await;
    ensemble.start(next).await;
    assert!(ensemble.agreed().await.1 > epoch);
}

pub async fn a_leader_steps_down_when_asked<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    let mut leaders = ensemble.server(leader).leaders();
    stage.within("the present one", leaders.next()).await;
    ensemble.server(leader).step_down().await;
    let lost = async { while leaders.next().await.unwrap().is_some() {} };
    stage.within("stepping down", lost).await;
    stage.within("a successor", leaders.led()).await.unwrap();
    assert!(ensemble.agreed().await.1 > epoch);
}

pub async fn hosts_have_names_and_machines_have_interfaces<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = Ensemble::new(&stage, "localhost", [3, 0], |_| NoApplication);
    ensemble.start_all().await;
    let (leader, epoch) = ensemble.agreed().await;
    ensemble.kill(leader).await;
    assert!(ensemble.agreed().await.1 > epoch);
    ensemble.adjust = |config| config.listen_on_all_ips = true;
    ensemble.start(leader).await;
    ensemble.agreed().await;
}

pub async fn one_server_is_an_ensemble<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(1, 0);
    ensemble.start_all().await;
    assert_eq!(ensemble.agreed().await.0.0, 1);
}

pub async fn changes_tell_the_story_and_do_not_hold_up_the_server<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.adjust = |config| config.changes_kept = 2;
    ensemble.start_all().await;
    let first = ensemble.ids()[0];
    let mut changes = ensemble.server(first).changes();
    let (leader, _) = ensemble.agreed().await;
    ensemble.kill(leader).await;
    ensemble.agreed().await;
    // The changes have not been read so far: two are left, the newest ones, and the others are counted.
    assert!(changes.lost() > 0);
    let (one, two) = (changes.try_next().unwrap(), changes.try_next().unwrap());
    assert!(one.at <= two.at);
    assert!(two.status.serving, "{}", two.report);
    assert_eq!(changes.try_next(), None);
}

/// One vote for each server and generation, and heartbeats; else everything is as above.
pub async fn servers_elect_by_generation_and_remember_their_votes<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 1);
    ensemble.adjust = by_generation;
    ensemble.start_all().await;
    let (mut leader, mut epoch) = ensemble.agreed().await;
    let mut round = ensemble.server(leader).status().peer.round;
    for _ in 0..3 {
        ensemble.kill(leader).await;
        let (next, later) = ensemble.agreed().await;
        assert!(next != leader && later > epoch, "{next} in {later} after {leader} in {epoch}");
        let generation = ensemble.server(next).status().peer.round;
        assert!(generation > round, "{generation} after {round}");
        ensemble.start(leader).await;
        assert_eq!(ensemble.agreed().await, (next, later), "it comes back to follow");
        (leader, epoch, round) = (next, later, generation);
    }
    for id in ensemble.ids() {
        stage.within("shutdown", ensemble.take(id).shutdown()).await.unwrap();
        let vote = ensemble.data_dir(id).join("version-2/grantedVote");
        std::fs::remove_file(vote).unwrap();
        let refused = ensemble.try_start(ensemble.config(id)).await.unwrap_err().to_string();
        assert!(refused.contains("would vote twice"), "{refused}");
    }
}

/// A server of one kind cannot take part in the elections of the other, and its operator is told.
pub async fn the_two_kinds_of_election_keep_apart<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.adjust = by_generation;
    let ids = ensemble.ids();
    ensemble.start(ids[0]).await;
    ensemble.start(ids[1]).await;
    let before = ensemble.agreed().await;
    ensemble.adjust = |_| {};
    ensemble.start(ids[2]).await;
    let refused = |id| ensemble.server(id).status().metrics.refused_introductions;
    stage.until("refused", || refused(ids[0]) + refused(ids[1]) > 0).await;
    assert_eq!(ensemble.agreed_but_for(&[ids[2]]).await, before);
    assert_eq!(ensemble.server(ids[2]).status().peer.state, ServerState::Looking);
}

fn by_generation(config: &mut ServerConfig) {
    let (min, max) = (Duration::from_millis(400), Duration::from_millis(800));
    config.core.election = Election::Generation(Generations::within(min, max));
}

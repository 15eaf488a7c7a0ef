//! Ports that accept nothing any more, for a while or for good.

use std::sync::Arc;
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::vote::ServerState;

use super::{Deaf, Deafness, Ears, Echo, Ensemble, Stage};
use crate::Runtime;

/// Three servers that lose patience soon, and lead in this order of preference: 3, 2, 1.
async fn three<R: Runtime>(stage: &Stage<Deaf<R>>) -> Ensemble<Deaf<R>> {
    let mut ensemble = stage.electors(3, 0);
    ensemble.adjust = |config| config.core.timing.tick = Duration::from_millis(100);
    ensemble.start_all().await;
    ensemble
}

fn ears<R: Runtime>(stage: &Stage<Deaf<R>>, ServerId(id): ServerId) -> Arc<Ears> {
    Arc::clone(&stage.runtime(usize::try_from(id - 1).unwrap()).ears)
}

/// Its links live, its history and its id are the best: left to the election it would lead again and again, and
/// no server that lost the link could come back.
pub async fn a_leader_whose_port_accepts_nothing_is_replaced_and_not_elected_until_it_does<
    R: Runtime,
>(
    stage: Stage<R>,
) {
    let stage = stage.deaf(3);
    let mut ensemble = three(&stage).await;
    let (deaf, _) = ensemble.agreed().await;
    let port = ensemble.port(deaf, Plane::Quorum).port;
    ears(&stage, deaf).stop(port, Deafness::OutOfDescriptors);
    stage
        .until("another leader", || ensemble.server(deaf).leader().is_some_and(|l| l.0 != deaf))
        .await;
    let (second, _) = ensemble.agreed().await;
    assert_ne!(second, deaf);

    // Of the two that are left it is the one that cannot be followed.
    ensemble.kill(second).await;
    let (third, _) = ensemble.agreed().await;
    assert!(third != deaf && third != second);

    ears(&stage, deaf).open(port);
    ensemble.start(second).await;
    ensemble.agreed().await;
    ensemble.kill(third).await;
    ensemble.agreed().await;
    let looking = |id| ensemble.server(id).status().peer.state == ServerState::Looking;
    assert!(!looking(deaf) && !looking(second));
}

/// Out of descriptors it may be for a while; what is broken is opened anew.
pub async fn a_socket_that_is_broken_is_opened_anew_and_the_leader_stays<R: Runtime>(
    stage: Stage<R>,
) {
    let stage = stage.deaf(3);
    let mut ensemble = three(&stage).await;
    let leader = ensemble.agreed().await;
    for plane in [Plane::Quorum, Plane::Election] {
        let port = ensemble.port(leader.0, plane).port;
        let errors = || ensemble.server(leader.0).status().metrics.accept_errors;
        let before = errors();
        ears(&stage, leader.0).stop(port, Deafness::Broken);
        stage.until("an error", || errors() > before).await;
        let follower = ensemble.other_than(&[leader.0]);
        ensemble.kill(follower).await;
        ensemble.start(follower).await;
        assert_eq!(ensemble.agreed().await, leader, "{plane:?}");
    }
}

/// The servers that are connected vote, and the others can be dialled.
pub async fn an_election_port_that_accepts_nothing_costs_no_leadership<R: Runtime>(
    stage: Stage<R>,
) {
    let stage = stage.deaf(3);
    let mut ensemble = three(&stage).await;
    let leader = ensemble.agreed().await;
    let errors = || ensemble.server(leader.0).status().metrics.accept_errors;
    let port = ensemble.port(leader.0, Plane::Election).port;
    ears(&stage, leader.0).stop(port, Deafness::OutOfDescriptors);
    // Longer than a quorum port may fail.
    stage.until("errors", || errors() >= 9).await;
    assert_eq!(ensemble.agreed().await, leader);
    // The larger server dials.
    let follower = ensemble.other_than(&[leader.0]);
    ensemble.kill(follower).await;
    ensemble.start(follower).await;
    assert_eq!(ensemble.agreed().await.0, leader.0);
}

/// The servers among themselves do not need it.
pub async fn a_port_for_clients_that_accepts_nothing_costs_no_leadership<R: Runtime>(
    stage: Stage<R>,
) {
    let stage = stage.deaf(3);
    let mut ensemble = Ensemble::new(&stage, "127.0.0.1", [3, 0], |_| Echo::default());
    ensemble.adjust = |config| {
        config.core.timing.tick = Duration::from_millis(100);
        config.client_addresses = vec![([127, 0, 0, 1], 0).into()];
    };
    ensemble.start_all().await;
    let leader = ensemble.agreed().await;
    let metrics = || ensemble.server(leader.0).status().metrics;
    // As it was asked for.
    ears(&stage, leader.0).stop(0, Deafness::OutOfDescriptors);
    // Longer than a quorum port may fail.
    stage.until("errors", || metrics().client_accept_errors >= 8).await;
    assert_eq!(metrics().accept_errors, 0);
    assert_eq!(ensemble.agreed().await, leader);
    ears(&stage, leader.0).open(0);
    let at = ensemble.server(leader.0).client_addrs()[0];
    let client = stage.within("a connection", stage.runtime(0).dial(at)).await.unwrap();
    stage.until("a client", || metrics().clients == 1).await;
    drop(client);
}

/// Nor behind a port that was opened anew, and of servers as many as ever.
pub async fn no_more_clients_wait_to_be_accepted_than_an_operator_says<R: Runtime>(
    stage: Stage<R>,
) {
    let stage = stage.deaf(1);
    let mut ensemble = Ensemble::new(&stage, "127.0.0.1", [1, 0], |_| Echo::default());
    ensemble.adjust = |config| {
        config.client_addresses = vec![([127, 0, 0, 1], 0).into()];
        config.client_backlog = Some(7);
    };
    ensemble.start_all().await;
    let id = ensemble.agreed().await.0;
    stage.until("a limit", || !ears(&stage, id).limits().is_empty()).await;
    assert_eq!(ears(&stage, id).limits(), [(0, 7)]);
    ears(&stage, id).stop(0, Deafness::Broken);
    stage.until("another", || ears(&stage, id).limits().len() > 1).await;
    assert!(ears(&stage, id).limits().iter().skip(1).all(|(_, most)| *most == 7));
}

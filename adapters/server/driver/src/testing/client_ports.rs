//! Ports for clients that follow the membership.

use std::net::{SocketAddr, TcpListener};

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::membership::Member;
use quorate_core::reconfiguration::Reconfiguration;

use super::caller::{Caller, HERE, Servers, running, serve_clients};
use super::ensemble::insist;
use super::{Stage, free_ports};
use crate::{Runtime, ServerConfig};

fn reconfigurable(config: &mut ServerConfig) {
    serve_clients(config);
    config.core.reconfig_enabled = true;
}

/// Gives a server that address for its clients, or none.
async fn give<R: Runtime>(
    stage: &Stage<R>,
    ensemble: &Servers<R>,
    id: ServerId,
    at: Option<SocketAddr>,
) {
    let client = at.map(|at| HostPort { host: at.ip().to_string(), port: at.port() });
    let line = Member { client, ..ensemble.membership.member(id).unwrap().clone() };
    let asked = Reconfiguration::change([line], []);
    stage.within("a new line", insist(ensemble.server(id), asked)).await;
}

fn free() -> SocketAddr {
    SocketAddr::new(HERE.ip(), free_ports(1)[0])
}

pub async fn the_port_for_clients_moves_with_the_membership_and_connections_stay<R: Runtime>(
    stage: Stage<R>,
) {
    let (mut ensemble, leader) = running(&stage, 3, reconfigurable).await;
    let id = ensemble.other_than(&[leader]);
    let mut old = Caller::served(&stage, &ensemble, id).await;
    for (nth, at) in [free(), free()].into_iter().enumerate() {
        let before = ensemble.server(id).client_addrs();
        give(&stage, &ensemble, id, Some(at)).await;
        stage.until("another port", || ensemble.server(id).client_addrs() == [at]).await;
        assert!(stage.within("a refusal", stage.runtime(0).dial(before[0])).await.is_err());
        Caller::served(&stage, &ensemble, id).await;
        old.ask(b"px").await;
        assert_eq!(old.number(b'p').await, nth as u64 + 1, "it has not lost its connection");
    }
    // A line that says nothing of clients changes nothing; where it listens is remembered.
    let at = ensemble.server(id).client_addrs();
    give(&stage, &ensemble, leader, None).await;
    ensemble.kill(id).await;
    ensemble.start(id).await;
    ensemble.agreed().await;
    assert_eq!(ensemble.server(id).client_addrs(), at);
    let mut new = Caller::served(&stage, &ensemble, id).await;
    give(&stage, &ensemble, id, None).await;
    new.ask(b"g").await;
    assert_eq!(new.number(b'g').await, 2);
    assert_eq!(ensemble.server(id).client_addrs(), at);
}

pub async fn an_address_for_clients_that_cannot_be_had_is_tried_again_and_costs_nothing<
    R: Runtime,
>(
    stage: Stage<R>,
) {
    let (ensemble, id) = running(&stage, 2, reconfigurable).await;
    let before = ensemble.server(id).client_addrs();
    let taken = TcpListener::bind(HERE).unwrap();
    let at = taken.local_addr().unwrap();
    give(&stage, &ensemble, id, Some(at)).await;
    let errors = || ensemble.server(id).status().metrics.client_accept_errors;
    stage.until("an error", || errors() > 0).await;
    assert_eq!(ensemble.server(id).client_addrs(), before);
    let mut caller = Caller::served(&stage, &ensemble, id).await;
    drop(taken);
    stage.until("another port", || ensemble.server(id).client_addrs() == [at]).await;
    Caller::served(&stage, &ensemble, id).await;
    caller.ask(b"px").await;
    assert_eq!(caller.number(b'p').await, 1);
}

/// The new address cannot be had before the old one is given up.
pub async fn a_port_for_clients_moves_from_one_interface_to_all<R: Runtime>(stage: Stage<R>) {
    let (ensemble, id) = running(&stage, 2, reconfigurable).await;
    let at = free();
    let everywhere: SocketAddr = ([0, 0, 0, 0], at.port()).into();
    for to in [at, everywhere, at] {
        give(&stage, &ensemble, id, Some(to)).await;
        let all = to.ip().is_unspecified();
        let there = |now: SocketAddr| now.ip().is_unspecified() == all && now.port() == to.port();
        stage.until("another address", || there(ensemble.server(id).client_addrs()[0])).await;
        let mut caller = Caller::at(&stage, at).await.expect("a connection");
        caller.ask(b"g").await;
        assert_eq!(caller.number(b'g').await, 0);
    }
    assert_eq!(ensemble.server(id).client_addrs(), [at]);
}

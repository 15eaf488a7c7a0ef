//! The membership changes while the ensemble serves.

use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Membership, ServerAddress};
use quorate_core::reasons::Refusal;
use quorate_core::reconfiguration::{Reconfiguration, Unchanged};

use super::ensemble::insist;
use super::journal::numbered;
use super::{App, Ensemble, Stage, free_ports};
use crate::{ProposeError, ReconfigureError, Runtime, Server, ServerConfig};

/// Each server is told of the first three and of itself.
fn of_three(config: &mut ServerConfig) {
    let core = &mut config.core;
    let known = core.membership.members().iter().filter(|m| m.id.0 <= 3 || m.id == core.id);
    core.membership = Membership::build(known.cloned(), [], [], 0).unwrap();
    core.reconfig_enabled = true;
}

/// Three servers of an ensemble that serves, and room for two more.
async fn three_of_five<R: Runtime>(stage: &Stage<R>) -> Ensemble<R, App> {
    let mut ensemble = stage.journals(5, 0);
    ensemble.adjust = of_three;
    for id in [1, 2, 3].map(ServerId) {
        ensemble.start(id).await;
    }
    ensemble.agreed().await;
    ensemble
}

fn member<R: Runtime>(ensemble: &Ensemble<R, App>, id: ServerId) -> Member {
    ensemble.membership.member(id).unwrap().clone()
}

/// How many servers have a vote, everywhere.
async fn voters<R: Runtime>(stage: &Stage<R>, ensemble: &Ensemble<R, App>, expected: usize) {
    stage
        .until("the same voters everywhere", || {
            ensemble.running().all(|(_, server)| server.status().peer.voters == expected)
        })
        .await;
}

/// Proposes so many, each until it is known what became of it.
async fn write<R: Runtime>(server: Server<R, App>, numbers: std::ops::Range<usize>) -> Vec<usize> {
    let mut done = Vec::new();
    for number in numbers {
        loop {
            match server.propose(numbered(number, 8)).await {
                Ok(_) => {
                    done.push(number);
                    break;
                }
                Err(ProposeError::Refused(Refusal::NotServing)) => {
                    // Whether it may read or not: some time has passed.
                    let _ = server.sync().await;
                }
                Err(error) if !error.may_have_happened() => {}
                Err(_) => break,
            }
        }
    }
    done
}

pub async fn an_ensemble_grows_and_shrinks_while_everybody_writes<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = three_of_five(&stage).await;
    let (leader, _) = ensemble.agreed().await;
    let survivor = if leader == ServerId(1) { ServerId(2) } else { ServerId(1) };
    let writer = stage.spawn(write(ensemble.server(survivor).clone(), 0..300));

    for (many, id) in [(4, ServerId(4)), (5, ServerId(5))] {
        ensemble.start(id).await;
        ensemble.agreed().await;
        assert!(!ensemble.server(id).status().peer.voter, "it follows, and has no vote yet");
        let asked = Reconfiguration::change([member(&ensemble, id)], []);
        stage.within("a server joins", insist(ensemble.server(id), asked)).await;
        voters(&stage, &ensemble, many).await;
    }

    // The leader goes, and another one leads without an election.
    let third = ensemble.other_than(&[leader, survivor]);
    for gone in [leader, third] {
        let asked = Reconfiguration::change([], [gone]);
        stage.within("a server leaves", insist(ensemble.server(survivor), asked)).await;
    }
    voters(&stage, &ensemble, 3).await;
    let (now, _) = ensemble.agreed().await;
    assert!(now != leader && now != third, "{now} leads");
    for gone in [leader, third] {
        let server = ensemble.take(gone);
        stage.within("its end", server.shutdown()).await.unwrap();
    }

    // What they know survives a restart, whatever they are told.
    let done = stage.within("all writes", writer.join()).await;
    for id in [survivor, ServerId(4), ServerId(5)] {
        ensemble.kill(id).await;
        ensemble.agreed().await;
        ensemble.start(id).await;
        ensemble.agreed().await;
    }
    voters(&stage, &ensemble, 3).await;
    let entries = stage.all_entries(ensemble.server(survivor)).await;
    for (id, server) in ensemble.running() {
        assert_eq!(stage.all_entries(server).await, entries, "server {id}");
    }
    for number in done {
        let times = entries.iter().filter(|(_, entry)| *entry == numbered(number, 8)).count();
        assert_eq!(times, 1, "{number} is there once");
    }
}

/// Its addresses are a matter of the membership, too: it listens at the new ones, and no more at the old.
pub async fn a_server_moves_to_other_ports<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = three_of_five(&stage).await;
    let [one, two, three] = [1, 2, 3].map(ServerId);
    let before = member(&ensemble, one).addresses[0].clone();
    let ports = free_ports(2);
    let address = ServerAddress::new("127.0.0.1", ports[0], ports[1]);
    let moved = Member { addresses: [address].into(), ..member(&ensemble, one) };
    stage
        .within("it moves", insist(ensemble.server(two), Reconfiguration::change([moved], [])))
        .await;
    for port in [before.quorum.port, before.election.port] {
        let is_free = || std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
        stage.until("a port that nobody uses", is_free).await;
    }
    // One that has to dial it, and then only these two are left.
    ensemble.agreed().await;
    ensemble.kill(two).await;
    ensemble.start(two).await;
    ensemble.agreed().await;
    ensemble.kill(three).await;
    ensemble.agreed().await;
    // It comes back there.
    ensemble.kill(one).await;
    ensemble.start(one).await;
    ensemble.agreed().await;
}

pub async fn a_membership_that_cannot_be_is_refused_and_says_why<R: Runtime>(stage: Stage<R>) {
    let ensemble = three_of_five(&stage).await;
    let ask = async |asked: Reconfiguration| {
        let asked = ensemble.server(ServerId(2)).reconfigure(&asked).await;
        asked.map_err(|error| match error {
            ReconfigureError::Unchanged(unchanged) => unchanged,
            ReconfigureError::Propose(error) => panic!("{error}"),
        })
    };
    let gone = Reconfiguration::change([], [ServerId(1), ServerId(2)]);
    assert_eq!(ask(gone).await, Err(Unchanged::Unsuitable));
    let non_members = ensemble.membership.members().iter().filter(|m| m.id.0 >= 3).cloned();
    let non_members = Membership::build(non_members, [], [], 0).unwrap();
    assert_eq!(ask(Reconfiguration::whole(non_members)).await, Err(Unchanged::NoQuorum));
    let same = Reconfiguration::change([], []);
    let version = ask(same.clone()).await.unwrap();
    assert_eq!(ask(same.clone().if_version(version - 1)).await, Err(Unchanged::Version));
    assert!(ask(same.if_version(version)).await.unwrap() > version);
}

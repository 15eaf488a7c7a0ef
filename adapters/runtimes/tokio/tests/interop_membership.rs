//! The membership changes while quorate and Java ZooKeeper servers serve together.
//!
//! Whoever leads, and whoever is asked: in the end all have the same text in force, and go on. Needs Debian's
//! `zookeeper` and a Java runtime; skipped without, see [`java::available`].
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]
#![allow(clippy::print_stdout, reason = "why a test was skipped")]

use crate::java;
use crate::java::client::SUPER;
use crate::mixed::{Java, Kind, Mixed, Quorate};
use crate::superuser::reconfigure;
use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Role};
use quorate_core::reconfiguration::{Reconfiguration, Unchanged};

const ONE: ServerId = ServerId(1);
const TWO: ServerId = ServerId(2);
const THREE: ServerId = ServerId(3);
const FOUR: ServerId = ServerId(4);

/// 1, 2 and 3 vote, 4 observes; all run, and 3 leads.
async fn ensemble(kinds: [Kind; 4]) -> Mixed {
    let mut mixed = Mixed::with_observers(&kinds, &[FOUR]);
    mixed.java_properties = vec!["reconfigEnabled=true", SUPER];
    mixed.adjust = |config| config.core.reconfig_enabled = true;
    mixed.start(THREE).await;
    mixed.up(THREE).await;
    for id in [ONE, TWO, FOUR] {
        mixed.start(id).await;
    }
    assert_eq!(mixed.agreed("four servers").await, THREE);
    mixed
}

/// The line of a server, with a client address, without which Java's servers take nobody in.
fn member(mixed: &Mixed, id: ServerId, role: Role) -> Member {
    let text = format!("{};21{:02}", mixed.membership.member(id).unwrap(), id.0);
    Member { role, ..Member::parse(id, &text).unwrap() }
}

/// A client of a Java server changes the membership; all that run have it in force then, and serve under
/// `leader`.
async fn change(mixed: &mut Mixed, at: ServerId, asked: Reconfiguration, leader: ServerId) {
    let story = format!("{asked:?}");
    let mut client = mixed.client(at).await;
    client.rise().await;
    let text = client.reconfigure(&asked).await.unwrap();
    let agreement = async { while mixed.agreed(&story).await != leader {} };
    tokio::time::timeout(std::time::Duration::from_secs(60), agreement).await.unwrap();
    let mut client = mixed.client(at).await;
    let path = format!("/{}", text.len() + usize::try_from(leader.0).unwrap());
    client.create(&path, text.as_bytes(), java::client::SEQUENTIAL).await.unwrap();
    let nodes = mixed.same(&story).await;
    let config = nodes["/zookeeper/config"].data.clone().unwrap();
    assert_eq!(String::from_utf8(config).unwrap(), text);
}

#[tokio::test]
async fn a_java_client_changes_the_membership_under_a_quorate_leader() {
    if !java::available() {
        return;
    }
    let mut mixed = ensemble([Java, Java, Quorate, Quorate]).await;
    let votes = member(&mixed, FOUR, Role::Participant);
    change(&mut mixed, ONE, Reconfiguration::change([votes], []), THREE).await;
    assert_eq!(mixed.quorate(THREE).status().peer.voters, 4);
    change(&mut mixed, TWO, Reconfiguration::change([], [ONE]), THREE).await;

    let mut client = mixed.client(TWO).await;
    let four = Reconfiguration::change([], [FOUR]);
    assert_eq!(client.reconfigure(&four).await, Err(-102), "it has not said who it is");
    client.rise().await;
    let strange = four.if_version(1);
    assert_eq!(client.reconfigure(&strange).await, Err(Unchanged::Version.code()));
    let lonely = Reconfiguration::change([], [FOUR, TWO]);
    assert_eq!(client.reconfigure(&lonely).await, Err(Unchanged::Unsuitable.code()));
}

#[tokio::test]
async fn a_quorate_leader_that_leaves_names_a_java_server() {
    if !java::available() {
        return;
    }
    let mut mixed = ensemble([Java, Java, Quorate, Quorate]).await;
    let votes = member(&mixed, FOUR, Role::Participant);
    change(&mut mixed, ONE, Reconfiguration::change([votes], []), THREE).await;
    let mut client = mixed.client(ONE).await;
    client.rise().await;
    client.send_reconfigure(&Reconfiguration::change([], [THREE])).await.unwrap();
    // The connection goes with the role of that server, and the answer perhaps with it.
    drop(client.answer().await);
    let leader = mixed.agreed("the leader has left").await;
    assert_ne!(leader, THREE);
    let mut client = mixed.client(TWO).await;
    client.create("/after", b"", 0).await.unwrap();
    let nodes = mixed.same("after that").await;
    let config = String::from_utf8(nodes["/zookeeper/config"].data.clone().unwrap()).unwrap();
    assert!(!config.contains("server.3="), "{config}");
}

#[tokio::test]
async fn quorate_servers_follow_a_java_leader_through_changes() {
    if !java::available() {
        return;
    }
    let mut mixed = ensemble([Quorate, Java, Java, Quorate]).await;
    let observes = member(&mixed, ONE, Role::Observer);
    let votes = member(&mixed, FOUR, Role::Participant);
    change(&mut mixed, TWO, Reconfiguration::change([votes], []), THREE).await;
    change(&mut mixed, TWO, Reconfiguration::change([observes], []), THREE).await;
    for (id, voter) in [(ONE, false), (FOUR, true)] {
        assert_eq!(mixed.quorate(id).status().peer.voter, voter, "{id}");
    }
    change(&mut mixed, TWO, Reconfiguration::change([], [ONE]), THREE).await;

    // The operator of a quorate server asks there, and needs no password.
    let back = Reconfiguration::change([member(&mixed, ONE, Role::Participant)], []);
    let version = reconfigure(mixed.quorate(FOUR), &back).await.unwrap();
    assert_eq!(mixed.agreed("the operator has asked").await, THREE);
    let config = mixed.same("the operator has asked").await["/zookeeper/config"].data.clone();
    let config = String::from_utf8(config.unwrap()).unwrap();
    let ends = format!("version={version:x}");
    assert!(config.contains("server.1=") && config.ends_with(&ends), "{config}");
    let again = back.if_version(version - 1);
    let refused = reconfigure(mixed.quorate(FOUR), &again).await;
    assert_eq!(refused, Err(Unchanged::Version.into()));
}

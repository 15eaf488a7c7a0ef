//! Changes of the membership that a client asks for.

use quorate_service::wire::{Request, Response};

use super::digests::digests_agree;
use super::tree::the_tree;
use super::{JAVA_LEADS, QUORATE_LEADS};
use crate::common::until;
use crate::ensemble::{Kind, OBSERVER, PARTICIPANT, Servers, java_is_here};
use crate::raw::{Client, Connected, auth, ephemeral, plain, set};

/// Longer than an observer needs to become a follower.
const LONG: i32 = 10_000;

/// Has server 3 in another role; the client that asks is connected to this one.
fn becomes(servers: &mut Servers, at: usize, role: &str) {
    let mut client = Client::open(servers.port(at), LONG);
    client.ask(&auth("super:test")).unwrap();
    let line = servers.member(3).replace(OBSERVER, role).replace(PARTICIPANT, role);
    let change = Request::Reconfig {
        joining: Some(line.clone()),
        leaving: None,
        members: None,
        version: -1,
    };
    let Ok(Response::Data { data, .. }) = client.ask(&change) else { panic!("{role}") };
    let text = String::from_utf8(data.unwrap().to_vec()).unwrap();
    assert!(text.contains(&line), "{text}");
    let mode = if role == OBSERVER { "observer" } else { "follower" };
    until(mode, || (servers.mode(3).as_deref() == Some(mode)).then_some(()));
}

/// An observer becomes a participant and an observer again. Its clients come back, and others notice nothing.
fn an_observer_votes_for_a_while(seats: &[(Kind, &str)]) {
    if !java_is_here() {
        return;
    }
    let mut servers = Servers::mixed(seats);
    let leader = servers.leader();
    let mut others: Vec<_> = [1, 2].map(|id| Client::open(servers.port(id), LONG)).into();
    let mut own = Client::open(servers.port(3), LONG);
    own.ask(&ephemeral("/own")).unwrap();
    others[0].ask(&plain("/other")).unwrap();
    for (at, role) in [(1, PARTICIPANT), (2, OBSERVER)] {
        becomes(&mut servers, at, role);
        assert_eq!(servers.leader(), leader);
        for client in &mut others {
            client.ask(&set("/other", role)).unwrap();
        }
        own = until("the session at the server in its new role", || {
            match Client::connect(servers.port(3), &own.ticket, own.seen) {
                Connected::Yes(client) => Some(client),
                Connected::Closed => None,
                Connected::Refused => panic!("the session has ended"),
            }
        });
        own.ask(&set("/own", role)).unwrap();
    }
    digests_agree(&servers);
    the_tree(&servers);
}

#[test]
fn an_observer_of_ours_becomes_a_participant_and_an_observer_again_under_a_java_leader() {
    an_observer_votes_for_a_while(&JAVA_LEADS);
}

#[test]
fn a_java_observer_becomes_a_participant_and_an_observer_again_under_our_leader() {
    an_observer_votes_for_a_while(&QUORATE_LEADS);
}

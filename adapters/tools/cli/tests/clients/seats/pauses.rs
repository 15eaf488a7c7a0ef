//! A leader of ours that stands still, with clients on Java servers meanwhile.

use std::thread;
use std::time::Duration;

use quorate_service::wire::Request;

use super::QUORATE_LEADS;
use super::digests::digests_agree;
use crate::ensemble::{Servers, java_is_here};
use crate::raw::{Client, ephemeral, set};

/// The time-out of the clients, in milliseconds.
const TIMEOUT: i32 = 3000;
/// How long the leader stands still, in pings, each a tenth of a second behind the other: for longer than deadlines are put
/// off to the next tick, less than its followers have patience for, and less than twice the time-out, which is as far as a
/// pause may put a deadline off.
const PINGS: usize = 38;

/// The pings of its clients are in the answers of its learners, which it has not read yet.
#[test]
fn a_leader_that_stood_still_for_longer_than_a_time_out_expires_no_client_of_a_java_server() {
    if !java_is_here() {
        return;
    }
    let servers = Servers::mixed(&QUORATE_LEADS);
    let leader = servers.leader();
    let mut clients: Vec<_> = [1, 3].map(|id| Client::open(servers.port(id), TIMEOUT)).into();
    for (client, path) in clients.iter_mut().zip(["/at-1", "/at-3"]) {
        client.ask(&ephemeral(path)).unwrap();
    }
    servers.freeze(leader);
    for _ in 0..PINGS {
        for client in &mut clients {
            client.ask(&Request::Ping).unwrap();
        }
        thread::sleep(Duration::from_millis(100));
    }
    servers.thaw(leader);
    for (client, path) in clients.iter_mut().zip(["/at-1", "/at-3"]) {
        client.ask(&set(path, "still")).unwrap();
    }
    assert_eq!(servers.leader(), leader);
    digests_agree(&servers);
}

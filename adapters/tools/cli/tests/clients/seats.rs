//! Servers of the command and of Apache ZooKeeper in one ensemble, under leaders of either kind.

mod death;
pub(crate) mod digests;
mod membership;
mod operations;
mod poison;
mod sessions;

use crate::ensemble::{Kind, OBSERVER, PARTICIPANT, Servers, java_is_here};
use digests::digests_agree;

/// Under a Java leader, a server that votes and one that does not.
const JAVA_LEADS: [(Kind, &str); 3] =
    [(Kind::Quorate, PARTICIPANT), (Kind::Java, PARTICIPANT), (Kind::Quorate, OBSERVER)];
/// And the other way round.
const QUORATE_LEADS: [(Kind, &str); 3] =
    [(Kind::Java, PARTICIPANT), (Kind::Quorate, PARTICIPANT), (Kind::Java, OBSERVER)];

#[test]
fn a_directory_goes_from_one_kind_to_the_other_and_back_and_either_kind_leads() {
    if !java_is_here() {
        return;
    }
    let seats =
        [(Kind::Quorate, PARTICIPANT), (Kind::Java, PARTICIPANT), (Kind::Quorate, OBSERVER)];
    let mut servers = Servers::mixed(&seats);
    assert_eq!(servers.mode(3).as_deref(), Some("observer"));
    servers.replace(2, Kind::Quorate);
    servers.replace(1, Kind::Java);
    servers.replace(3, Kind::Java);
    assert_eq!(servers.last_leads(), 2);
    digests_agree(&servers);
    servers.replace(2, Kind::Java);
    servers.replace(1, Kind::Quorate);
    assert_eq!(servers.last_leads(), 2);
    digests_agree(&servers);
}

//! Servers of the command and of Apache ZooKeeper in one ensemble, under leaders of either kind.

mod death;
pub(crate) mod digests;
mod inherited;
mod joins;
mod kept;
mod membership;
mod operations;
mod pauses;
mod poison;
mod sessions;
mod storm;
mod tree;

use crate::ensemble::{Kind, OBSERVER, PARTICIPANT, Servers, java_is_here};
use digests::digests_agree;

/// Under a Java leader, a server that votes and one that does not.
const JAVA_LEADS: [(Kind, &str); 3] =
    [(Kind::Quorate, PARTICIPANT), (Kind::Java, PARTICIPANT), (Kind::Quorate, OBSERVER)];
/// And the other way round.
const QUORATE_LEADS: [(Kind, &str); 3] =
    [(Kind::Java, PARTICIPANT), (Kind::Quorate, PARTICIPANT), (Kind::Java, OBSERVER)];

/// Numbers that look random, and are the same each time.
struct Random(u64);

impl Random {
    const fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

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

//! The tests of this directory in one program, which is linked in a fraction of the time of two dozen.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "acknowledgements.rs"]
mod acknowledgements;
#[path = "allocations.rs"]
mod allocations;
#[path = "claims.rs"]
mod claims;
#[path = "cursors.rs"]
mod cursors;
#[path = "deliveries.rs"]
mod deliveries;
#[path = "differential.rs"]
mod differential;
#[path = "disk_low.rs"]
mod disk_low;
#[path = "elector.rs"]
mod elector;
#[path = "first_page.rs"]
mod first_page;
#[path = "generation.rs"]
mod generation;
#[path = "leader.rs"]
mod leader;
#[path = "leader_broadcast.rs"]
mod leader_broadcast;
#[path = "learner.rs"]
mod learner;
#[path = "learner_broadcast.rs"]
mod learner_broadcast;
#[path = "learner_synchronisation.rs"]
mod learner_synchronisation;
#[path = "links.rs"]
mod links;
#[path = "membership_held.rs"]
mod membership_held;
#[path = "membership_history.rs"]
mod membership_history;
#[path = "peer.rs"]
mod peer;
#[path = "reads.rs"]
mod reads;
#[path = "recipes_lease.rs"]
mod recipes_lease;
#[path = "recipes_offer.rs"]
mod recipes_offer;
#[path = "reconfiguration.rs"]
mod reconfiguration;
#[path = "reconfiguration_at_random.rs"]
mod reconfiguration_at_random;
#[path = "reconfiguration_leases.rs"]
mod reconfiguration_leases;
#[path = "reconfiguration_packets.rs"]
mod reconfiguration_packets;
#[path = "requests.rs"]
mod requests;
#[path = "rounds.rs"]
mod rounds;
#[path = "sessions.rs"]
mod sessions;
#[path = "small_widths.rs"]
mod small_widths;
#[path = "synchronisation.rs"]
mod synchronisation;
#[path = "three_servers.rs"]
mod three_servers;
#[path = "transfer.rs"]
mod transfer;

#[path = "unreachable.rs"]
mod unreachable;

/// `floors` is about what the sources look like, whatever they do.
#[test]
#[cfg_attr(miri, ignore = "reads a directory")]
fn every_file_of_tests_is_here() {
    let here = include_str!("all.rs");
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let known = name == "all.rs"
            || ["floors.rs", "golden.rs"].contains(&name.as_str())
            || here.contains(&format!("#[path = \"{name}\"]"));
        assert!(known || !name.ends_with(".rs"), "{name} is not in all.rs");
    }
}
mod support;
#[path = "support/world.rs"]
mod world;

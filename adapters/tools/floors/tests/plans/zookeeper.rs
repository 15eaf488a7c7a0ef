//! The plan of `quorate-zookeeper`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("store", Floor(6)),
    ("lease_calls", Floor(5)),
    ("offer_calls", Floor(5)),
    ("nodes", Floor(4)),
    ("config", Floor(3)),
    ("session", Floor(2)),
    ("error", Floor(1)),
    ("heartbeats", Floor(1)),
];

//! The plan of `quorate-zookeeper`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("store", Floor(4)),
    ("keys", Floor(3)),
    ("calls", Floor(2)),
    ("beats", Floor(1)),
    ("config", Floor(1)),
    ("error", Floor(1)),
];

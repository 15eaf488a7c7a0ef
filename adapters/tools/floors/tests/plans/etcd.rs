//! The plan of `quorate-etcd`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("store", Floor(4)),
    ("lease_calls", Floor(3)),
    ("offer_calls", Floor(3)),
    ("session", Floor(2)),
    ("config", Floor(1)),
    ("error", Floor(1)),
    ("revision", Floor(1)),
    ("watches", Floor(1)),
];

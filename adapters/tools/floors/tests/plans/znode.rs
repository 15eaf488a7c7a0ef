//! The plan of `quorate-znode`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("apply", Floor(5)),
    ("prepare", Floor(5)),
    ("quota", Floor(5)),
    ("pieces", Floor(6)),
    ("restore", Floor(6)),
    ("snapshot", Floor(5)),
    ("walk", Floor(4)),
    ("tree", Floor(4)),
    ("txn", Floor(4)),
    ("jute", Floor(3)),
    ("node", Floor(3)),
    ("outstanding", Floor(3)),
    ("acl", Floor(2)),
    ("digest", Floor(2)),
    ("outcome", Floor(2)),
    ("map", Floor(1)),
    ("path", Floor(1)),
    ("stat", Floor(1)),
];

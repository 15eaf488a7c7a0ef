//! The plan of `quorate-znode`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("prepare", Floor(9)),
    ("multi", Floor(8)),
    ("closing", Floor(8)),
    ("judge", Floor(7)),
    ("pieces", Floor(6)),
    ("restore", Floor(6)),
    ("request", Floor(6)),
    ("apply", Floor(5)),
    ("due", Floor(5)),
    ("quota", Floor(5)),
    ("rules", Floor(5)),
    ("snapshot", Floor(5)),
    ("access", Floor(4)),
    ("walk", Floor(4)),
    ("tree", Floor(4)),
    ("txn", Floor(4)),
    ("jute", Floor(3)),
    ("node", Floor(3)),
    ("outstanding", Floor(3)),
    ("encode", Floor(3)),
    ("acl", Floor(2)),
    ("digest", Floor(2)),
    ("outcome", Floor(3)),
    ("owners", Floor(2)),
    ("map", Floor(1)),
    ("path", Floor(1)),
    ("refusal", Floor(1)),
    ("stat", Floor(1)),
];

//! The plan of `quorate-sasl`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("quorum", Floor(6)),
    ("acceptor", Floor(5)),
    ("dialler", Floor(5)),
    ("tokens", Floor(4)),
    ("proof", Floor(3)),
    ("jaas", Floor(3)),
    ("jaas::words", Floor(2)),
    ("jaas::reason", Floor(1)),
    ("directives", Floor(2)),
    ("users", Floor(2)),
    ("nonces", Floor(1)),
    ("packet", Floor(1)),
    ("password", Floor(1)),
    ("refused", Floor(1)),
    ("service", Floor(1)),
];

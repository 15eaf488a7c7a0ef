//! The plan of `quorate-recipes`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("candidate", Floor(8)),
    ("run", Floor(7)),
    ("recipe", Floor(6)),
    ("news", Floor(5)),
    ("store", Floor(4)),
    ("settings", Floor(3)),
    ("designation", Floor(2)),
    ("contender", Floor(1)),
];

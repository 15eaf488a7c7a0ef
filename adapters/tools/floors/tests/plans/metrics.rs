//! The plan of `quorate-metrics`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("page", Floor(3)),
    ("words", Floor(3)),
    ("figures", Floor(2)),
    ("shared", Floor(2)),
    ("summary", Floor(1)),
];

//! The plan of `quorate-leadership`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("guard", Floor(3)),
    ("gate", Floor(2)),
    ("boot_time", Floor(1)),
    ("clock", Floor(1)),
    ("error", Floor(1)),
    ("token", Floor(1)),
];

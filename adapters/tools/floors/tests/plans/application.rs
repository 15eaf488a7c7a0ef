//! The plan of `quorate-application`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("none", Floor(2)),
    ("state_machine", Floor(2)),
    ("application", Floor(1)),
    ("framing", Floor(1)),
];

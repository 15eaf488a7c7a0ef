//! The plan of `quorate-application`.

use quorate_floors::Place::{self, Floor, Page};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("none", Floor(3)),
    ("state_machine", Floor(3)),
    ("framing", Floor(2)),
    ("application", Floor(1)),
    ("application::clients", Page),
];

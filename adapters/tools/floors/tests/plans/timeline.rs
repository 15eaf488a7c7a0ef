//! The plan of the timelines.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("page", Floor(12)),
    ("json", Floor(11)),
    ("picture", Floor(11)),
    ("report", Floor(11)),
    ("words", Floor(10)),
    ("view", Floor(10)),
    ("elections", Floor(9)),
    ("order", Floor(8)),
    ("clocks", Floor(7)),
    ("causes", Floor(6)),
    ("terms", Floor(5)),
    ("lanes", Floor(4)),
    ("log", Floor(3)),
    ("java", Floor(2)),
    ("ours", Floor(2)),
    ("votes", Floor(2)),
    ("event", Floor(1)),
    ("stamp", Floor(1)),
];

//! The plan of backups and recoveries.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("restore", Floor(7)),
    ("carry_out", Floor(7)),
    ("verdict", Floor(7)),
    ("verdict::reason", Floor(1)),
    ("survivor", Floor(6)),
    ("backup", Floor(5)),
    ("archive", Floor(4)),
    ("archive::error", Floor(1)),
    ("archive::window", Floor(1)),
    ("recovered", Floor(4)),
    ("durable", Floor(3)),
    ("manifest", Floor(2)),
    ("history", Floor(1)),
    ("source", Floor(1)),
];

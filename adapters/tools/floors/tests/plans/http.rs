//! The plan of `quorate-http`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("port", Floor(5)),
    ("pages", Floor(4)),
    ("status", Floor(3)),
    ("probes", Floor(2)),
    ("exchange", Floor(1)),
    ("secure", Floor(1)),
    ("stream", Floor(1)),
];

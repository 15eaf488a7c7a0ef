//! The plan of the doctor.

use quorate_floors::Place::{self, Floor, Page};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("diagnosis", Floor(7)),
    ("rules", Floor(6)),
    ("rules::addresses", Page),
    ("rules::alike", Page),
    ("rules::disk", Page),
    ("rules::identity", Page),
    ("rules::links", Page),
    ("rules::live", Page),
    ("rules::load", Page),
    ("rules::logs", Page),
    ("rules::machine", Page),
    ("rules::settings", Page),
    ("rules::versions", Page),
    ("rules::voters", Page),
    ("rule", Floor(5)),
    ("page", Floor(4)),
    ("facts", Floor(4)),
    ("facts::disk", Page),
    ("facts::link", Page),
    ("facts::log", Page),
    ("facts::member", Page),
    ("report", Floor(3)),
    ("meaning", Floor(3)),
    ("words", Floor(3)),
    ("java", Floor(2)),
    ("finding", Floor(1)),
    ("file", Floor(1)),
];

//! The plan of `quorate-recipes`.

use quorate_floors::Place::{self, Floor, Outside};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("testing", Outside),
    ("candidate", Floor(7)),
    ("members", Floor(6)),
    ("run", Floor(6)),
    ("machine", Floor(5)),
    ("outage", Floor(5)),
    ("publisher", Floor(5)),
    ("store", Floor(4)),
    ("events", Floor(3)),
    ("reporter", Floor(3)),
    ("settings", Floor(3)),
    ("designation", Floor(2)),
    ("backoff", Floor(1)),
    ("clock", Floor(1)),
    ("contender", Floor(1)),
    ("error", Floor(1)),
];

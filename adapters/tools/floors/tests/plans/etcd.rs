//! The plan of `quorate-etcd`.

use quorate_floors::Place::{self, Floor, Outside};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("peers", Outside),
    ("store", Floor(5)),
    ("keys", Floor(4)),
    ("calls", Floor(3)),
    ("session", Floor(2)),
    ("config", Floor(1)),
    ("error", Floor(1)),
    ("watches", Floor(1)),
];

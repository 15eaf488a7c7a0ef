//! The plan of `quorate-storage`.

use quorate_floors::Place::{self, Floor, Page};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("check", Floor(7)),
    ("log", Floor(6)),
    ("history", Floor(5)),
    ("history::append", Page),
    ("history::cut", Page),
    ("history::read", Page),
    ("history::scan", Page),
    ("dump", Floor(4)),
    ("install", Floor(4)),
    ("reader", Floor(4)),
    ("vote", Floor(4)),
    ("dirs", Floor(3)),
    ("epochs", Floor(3)),
    ("retention", Floor(3)),
    ("segment", Floor(3)),
    ("snapshot", Floor(3)),
    ("error", Floor(2)),
    ("files", Floor(1)),
    ("names", Floor(1)),
    ("planted", Floor(1)),
    ("record", Floor(1)),
    ("sync_mark", Floor(1)),
];

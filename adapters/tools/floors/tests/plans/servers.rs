//! The plan of `quorate-servers`.

use quorate_floors::Place::{self, Floor, Page};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("bench", Floor(2)),
    ("bench::ensemble", Page),
    ("bench::clients", Floor(2)),
    ("bench::bare", Floor(2)),
    ("bench::measure", Floor(1)),
    ("bench::sink", Floor(1)),
    ("cpu", Floor(1)),
    ("runtime", Floor(1)),
    ("zookeeper", Floor(1)),
];

//! The plan of `quorate-service`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("zookeeper", Floor(2)),
    ("wire", Floor(1)),
    ("wire::decode", Floor(4)),
    ("wire::encode", Floor(4)),
    ("wire::event", Floor(4)),
    ("wire::response", Floor(4)),
    ("wire::frame", Floor(3)),
    ("wire::reply", Floor(3)),
    ("wire::connect", Floor(2)),
    ("wire::header", Floor(2)),
    ("wire::request", Floor(2)),
    ("wire::code", Floor(1)),
    ("wire::op", Floor(1)),
    ("wire::primitive", Floor(1)),
];

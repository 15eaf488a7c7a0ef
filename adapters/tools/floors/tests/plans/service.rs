//! The plan of `quorate-service`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    // One step, and what a server runs.
    ("application", Floor(5)),
    ("step", Floor(5)),
    // What clients ask for and are told.
    ("applied", Floor(4)),
    ("between", Floor(4)),
    ("handshake", Floor(4)),
    ("identities", Floor(4)),
    ("order", Floor(4)),
    ("reads", Floor(4)),
    ("requests", Floor(4)),
    ("rewatches", Floor(4)),
    ("stopping", Floor(4)),
    ("words", Floor(4)),
    // One server's clients.
    ("service", Floor(3)),
    ("connection", Floor(2)),
    ("screen", Floor(2)),
    ("zookeeper", Floor(2)),
    ("containers", Floor(2)),
    ("digests", Floor(1)),
    ("latencies", Floor(1)),
    ("log_limit", Floor(1)),
    ("options", Floor(1)),
    ("pauses", Floor(1)),
    ("sessions", Floor(1)),
    ("shares", Floor(1)),
    ("tracker", Floor(1)),
    ("unwritten", Floor(1)),
    ("watches", Floor(1)),
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

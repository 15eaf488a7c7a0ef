//! The plan of `quorate-tls`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("client_port", Floor(7)),
    ("client_settings", Floor(4)),
    ("tls", Floor(6)),
    ("verifier", Floor(5)),
    ("trust", Floor(4)),
    ("provider", Floor(4)),
    ("marks", Floor(4)),
    ("stores", Floor(4)),
    ("certificate", Floor(3)),
    ("distinguished", Floor(2)),
    ("error", Floor(1)),
    ("records", Floor(1)),
    ("renewal", Floor(1)),
    ("revoked", Floor(3)),
    ("settings", Floor(3)),
    ("identity", Floor(2)),
    ("names", Floor(1)),
    ("reason", Floor(1)),
    ("first_bytes", Floor(1)),
];

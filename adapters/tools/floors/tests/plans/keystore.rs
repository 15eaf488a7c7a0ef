//! The plan of `quorate-keystore`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[
    ("usable", Floor(7)),
    ("store", Floor(6)),
    ("pem", Floor(5)),
    ("pkcs12", Floor(5)),
    ("pkcs12::bags", Floor(2)),
    ("pkcs12::opener", Floor(1)),
    ("jks", Floor(4)),
    ("private_key", Floor(4)),
    ("unseal", Floor(4)),
    ("budget", Floor(3)),
    ("entries", Floor(3)),
    ("settle", Floor(3)),
    ("certificate", Floor(2)),
    ("certificate::distinguished_name", Floor(1)),
    ("certificate::hosts", Floor(1)),
    ("certificate::extensions", Floor(1)),
    ("certificate::time", Floor(1)),
    ("digests", Floor(2)),
    ("notice", Floor(2)),
    ("reason", Floor(2)),
    ("der", Floor(1)),
    ("kind", Floor(1)),
    ("oid", Floor(1)),
    ("password", Floor(1)),
];

//! Fuzz targets: what is fed with arbitrary bytes, and the properties that must hold for all of them.
//!
//! ```text
//!   cargo fuzz run NAME    bytes that reach new code ──┐
//!                                                      ├──► NAME::feed ──► returns, or panics
//!   cargo test             the files in seeds/NAME ────┘
//! ```
//!
//! Each module has one function, which panics if something does not hold. The binaries in `fuzz_targets`
//! pass it to libFuzzer, which needs a C++ compiler; the test in `tests` replays the inputs that are kept in
//! `seeds`, and needs none.

pub mod certificate;
pub mod client_frames;
pub mod ensemble;
pub mod garbage;
pub mod generation;
mod guards;
pub mod handshake;
pub mod jaas;
pub mod key_store;
pub mod leases;
pub mod log_files;
pub mod login;
pub mod membership;
pub mod messages;
pub mod notification;
pub mod offers;
pub mod packet;
pub mod play;
pub mod record;
pub mod snapshot;
pub mod step;
pub mod synchronisation;
pub mod timeline;
pub mod tree;
pub mod zoo_cfg;

/// The name of what is fed, and how.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 24] = [
    ("certificate", certificate::feed),
    ("client_frames", client_frames::feed),
    ("ensemble", ensemble::feed),
    ("garbage", garbage::feed),
    ("generation", generation::feed),
    ("handshake", handshake::feed),
    ("jaas", jaas::feed),
    ("key_store", key_store::feed),
    ("leases", leases::feed),
    ("log_files", log_files::feed),
    ("login", login::feed),
    ("membership", membership::feed),
    ("messages", messages::feed),
    ("notification", notification::feed),
    ("offers", offers::feed),
    ("packet", packet::feed),
    ("play", play::feed),
    ("record", record::feed),
    ("snapshot", snapshot::feed),
    ("step", step::feed),
    ("synchronisation", synchronisation::feed),
    ("timeline", timeline::feed),
    ("tree", tree::feed),
    ("zoo_cfg", zoo_cfg::feed),
];

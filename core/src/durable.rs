//! What a server has on disk, as far as the protocol cares.
//!
//! Three numbers decide what a server may say after a restart: the epoch it promised, the epoch whose
//! history it holds, and where that history ends. They are read once, at start; from then on the core
//! knows them from the writes that were reported durable. How they lie on disk is not said here.

use crate::zxid::{Epoch, Zxid};

/// What a server has durably; the default is a server that has nothing.
///
/// Always `current_epoch <= accepted_epoch` and `last_zxid.epoch() <= accepted_epoch`: a server enters
/// no epoch that it did not promise to, and logs nothing of one before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Durable {
    /// The highest epoch that it promised a prospective leader to follow (`acceptedEpoch`).
    pub accepted_epoch: Epoch,
    /// The epoch of the last leader whose history it took over (`currentEpoch`).
    pub current_epoch: Epoch,
    /// Its last transaction, be it committed or not; zero if it has none.
    pub last_zxid: Zxid,
}

impl Default for Durable {
    fn default() -> Self {
        Self { accepted_epoch: Epoch::ZERO, current_epoch: Epoch::ZERO, last_zxid: Zxid::ZERO }
    }
}

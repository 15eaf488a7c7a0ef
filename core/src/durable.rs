//! What a server has on disk, as far as the protocol cares.
//!
//! A few numbers decide what a server may say after a restart: the epoch it promised, the epoch whose
//! history it holds, and where that history begins and ends. They are read once, at start; from then on
//! the core knows them from the writes that were reported durable. How they lie on disk is not said
//! here.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::generation_message::GrantedVote;
use crate::membership::Membership;
use crate::txn::Txn;
use crate::zxid::{Epoch, Zxid};

/// What a server has durably; the default is a server that has nothing.
///
/// Always `current_epoch <= accepted_epoch` and `last_zxid.epoch() <= accepted_epoch`: a server enters
/// no epoch that it did not promise to, and logs nothing of one before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Durable {
    /// The highest epoch that it promised a prospective leader to follow (`acceptedEpoch`).
    pub accepted_epoch: Epoch,
    /// The epoch of the last leader whose history it took over (`currentEpoch`). Below that of
    /// `last_zxid` only where a synchronisation was interrupted.
    pub current_epoch: Epoch,
    /// Its last transaction, be it committed or not; zero if it has none.
    pub last_zxid: Zxid,
    /// From here to the last transaction its log has no hole; what is before cannot be read from it.
    pub floor: Zxid,
    /// The label of the snapshot from which its application starts; zero if it has none.
    pub snapshot: Zxid,
    /// The longest lease that it may ever have promised ([`Config::lease`](crate::config::Config::lease)); zero if
    /// none.
    pub lease: Duration,
    /// The last vote that it gave, where servers elect [by generation](crate::generation).
    pub granted_vote: GrantedVote,
    /// The memberships that its history holds changes to, in any order: those that transactions of the log behind the
    /// snapshot brought, and the one in the snapshot's state, if the application keeps it there (see
    /// [`Restored`](crate::input::Event::Restored)). Where one of them was not seen when it was written, as by a
    /// ZooKeeper server with `reconfigEnabled=false`, it is seen before the first vote. Those that stand in the
    /// [window](Self::window) need not be repeated.
    pub changes: Vec<Membership>,
    /// Its last transactions, ascending, without a hole, up to the last one; as many as there is
    /// memory for.
    pub window: VecDeque<Txn>,
    /// Whether the window has all that the log has behind its [floor](Self::floor).
    pub window_is_whole: bool,
}

impl Default for Durable {
    fn default() -> Self {
        Self {
            accepted_epoch: Epoch::ZERO,
            current_epoch: Epoch::ZERO,
            last_zxid: Zxid::ZERO,
            floor: Zxid::ZERO,
            snapshot: Zxid::ZERO,
            lease: Duration::ZERO,
            granted_vote: GrantedVote::NONE,
            changes: Vec::new(),
            window: VecDeque::new(),
            window_is_whole: false,
        }
    }
}

/// The two epochs of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epochs {
    /// See [`Durable::accepted_epoch`].
    pub accepted_epoch: Epoch,
    /// See [`Durable::current_epoch`].
    pub current_epoch: Epoch,
}

//! How far a quorum has acknowledged.
//!
//! ```text
//!   S3 ── 5.9 ─┐
//!   S1 ── 5.7 ─┴─► of three, a quorum has 5.7
//!   S2 ── 5.4
//! ```
//!
//! What counts as acknowledged is decided by the [`broadcast`](crate::leader::broadcast); here it is counted.

use alloc::vec::Vec;

use crate::id::ServerId;
use crate::quorum::{Quorum, Support};
use crate::zxid::Zxid;

/// How far each voter has acknowledged, and so how far a quorum has.
///
/// Voters stand in order of what they have acknowledged, so an acknowledgement moves one of them a
/// little, and the watermark of a quorum is found from the front. No map of transactions: what is
/// committed is a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tally {
    /// Descending; a position in the quorum each.
    ranked: Vec<(Zxid, usize)>,
    /// Kept for its memory.
    support: Support,
}

impl Tally {
    /// No voter has acknowledged anything.
    pub fn new(quorum: &Quorum) -> Self {
        Self { ranked: Vec::with_capacity(quorum.voters().len()), support: quorum.support() }
    }

    /// A voter has acknowledged everything through `zxid`.
    pub fn set(&mut self, quorum: &Quorum, voter: ServerId, zxid: Zxid) {
        let Some(position) = quorum.position(voter) else { return };
        let mut at = match self.ranked.iter().position(|(_, p)| *p == position) {
            Some(at) => at,
            None => {
                self.ranked.push((zxid, position));
                self.ranked.len() - 1
            }
        };
        self.ranked[at].0 = zxid;
        while at > 0 && self.ranked[at - 1].0 < zxid {
            self.ranked.swap(at - 1, at);
            at -= 1;
        }
    }

    /// Its acknowledgements are withdrawn: its link has ended.
    pub fn withdraw(&mut self, quorum: &Quorum, voter: ServerId) {
        let position = quorum.position(voter);
        self.ranked.retain(|(_, p)| Some(*p) != position);
    }

    /// What a quorum has acknowledged; none if it has acknowledged nothing.
    pub fn quorum(&mut self, quorum: &Quorum) -> Option<Zxid> {
        if let Some(needed) = quorum.plain_majority() {
            return self.ranked.get(needed - 1).map(|(zxid, _)| *zxid);
        }
        self.support.clear();
        self.ranked.iter().find_map(|(zxid, position)| {
            self.support.add_at(quorum, *position);
            self.support.is_enough(quorum).then_some(*zxid)
        })
    }
}

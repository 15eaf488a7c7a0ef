//! Which memberships bind a server, given the changes that its history holds.
//!
//! ```text
//!   history:  … change 2.4 … change 2.7 …        in force: 2.4, and next: 2.7
//! ```
//!
//! **The newest change in a history is seen or in force, every older one is in force.** A change is proposed only
//! when the one before it is committed, so a server that has the later one knows that much. With less a server could be
//! elected, or help to elect, by the voters of a membership that is over: two leaders of one epoch.

use alloc::collections::BTreeMap;

use crate::membership::Membership;
use crate::zxid::{Counter, Zxid};

impl Membership {
    /// Whether a reconfiguration brought it: its version is that transaction's zxid. Any other version is 0, or
    /// the start of an epoch, which a leader gives that knows of no change.
    pub fn is_change(&self) -> bool {
        is_change(self.version())
    }
}

/// Whether a reconfiguration brought the membership of this version.
pub fn is_change(version: i64) -> bool {
    let zxid = Zxid(version);
    zxid > Zxid::ZERO && zxid.counter() != Counter(0)
}

/// Whether a version is later than another: one that a leader gave is older than every change, whatever its number.
pub fn is_later(version: i64, than: i64) -> bool {
    (is_change(version), version) > (is_change(than), than)
}

/// What is in force, and what was seen, where `present` is known to be in force and the history holds what `held`
/// brought.
pub fn bind(
    present: Membership,
    held: impl IntoIterator<Item = Membership>,
) -> (Membership, Option<Membership>) {
    let later = held.into_iter().filter(|held| held.version() > present.version());
    let mut later: BTreeMap<_, _> = later.map(|held| (held.version(), held)).collect();
    let newest = later.pop_last().map(|(_, newest)| newest);
    (later.pop_last().map_or(present, |(_, older)| older), newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: i64) -> Membership {
        let text = "server.1=a:1:2\nserver.2=b:1:2";
        Membership::parse(text).expect("two servers").with_version(version)
    }

    #[test]
    fn the_newest_that_is_held_is_seen_and_the_one_before_it_in_force() {
        let bound = |held: &[i64]| {
            let (present, next) = bind(of(7), held.iter().map(|version| of(*version)));
            (present.version(), next.map(|next| next.version()))
        };
        assert_eq!(bound(&[]), (7, None));
        assert_eq!(bound(&[7, 3]), (7, None), "these are over");
        assert_eq!(bound(&[9]), (7, Some(9)));
        assert_eq!(bound(&[9, 12, 8, 9]), (9, Some(12)));
    }

    #[test]
    fn a_version_that_a_leader_gave_is_older_than_every_change() {
        let (given, change, later) = (0x3_0000_0000, 0x1_0000_0004, 0x1_0000_0005);
        assert!(is_later(change, given) && !is_later(given, change));
        assert!(is_later(later, change) && !is_later(change, change));
        assert!(is_later(given, 0) && is_later(change, 0) && !is_later(0, 0));
    }

    #[test]
    fn the_start_of_an_epoch_is_no_change() {
        assert!(!of(0).is_change());
        assert!(!of(0x3_0000_0000).is_change());
        assert!(of(0x3_0000_0001).is_change());
    }
}

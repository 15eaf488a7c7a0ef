//! Which transaction numbers may follow one another in a log.

use quorate_core::zxid::Zxid;

/// Whether `next` can stand in a log directly behind `after`: the counter goes on, or a later epoch
/// begins with counter 1.
pub(crate) fn follows(after: Zxid, next: Zxid) -> bool {
    let goes_on = after.0.checked_add(1) == Some(next.0)
        || (next.counter().0 == 1 && next.epoch() > after.epoch());
    is_number(next) && goes_on
}

/// Whether a leader can have given a transaction this number: the start of an epoch is none, nor is what
/// is beyond the last epoch.
pub(crate) fn is_number(zxid: Zxid) -> bool {
    zxid.epoch().is_valid() && !zxid.is_epoch_start()
}

/// Whether nothing can be between two transactions.
pub(crate) fn is_successor(zxid: Zxid, next: Zxid) -> bool {
    zxid.0.checked_add(1) == Some(next.0)
}

/// The highest number behind which `zxid` comes next for sure.
pub(crate) fn before(zxid: Zxid) -> Zxid {
    if zxid.counter().0 > 1 { Zxid(zxid.0 - 1) } else { zxid }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_goes_on_with_the_next_counter_or_a_later_epoch() {
        let follows = |after, next| follows(Zxid(after), Zxid(next));
        assert!(follows(0x1_0000_0005, 0x1_0000_0006));
        assert!(follows(0x1_0000_0005, 0x2_0000_0001));
        assert!(follows(0x1_0000_0005, 0x9_0000_0001));
        assert!(follows(0x2_0000_0000, 0x2_0000_0001));
        assert!(follows(0, 1) && follows(0, 0x1_0000_0001));
        for next in [0x1_0000_0005, 0x1_0000_0004, 0x1_0000_0007, 0x2_0000_0000, 0x2_0000_0002] {
            assert!(!follows(0x1_0000_0005, next), "{next:x}");
        }
        assert!(!follows(0x1_ffff_ffff, 0x2_0000_0000));
        assert!(!follows(-2, -1) && !follows(i64::MIN, -1) && !follows(i64::MAX, i64::MIN));
    }
}

//! The switches of the bugs that are seeded here. Only in the copy that `quorate-seeded` makes.
//!
//! ```text
//!   switch_to(Some(Bug::CommitToldEarly)) ─► seeded!(CommitToldEarly), at the place of the rule, is true
//! ```
//!
//! One bug at a time is switched on, in the whole process: a hunt is alone in its own.

use core::sync::atomic::{AtomicU8, Ordering};

/// Whether a bug is switched on, at the place of the rule that it breaks.
#[macro_export]
macro_rules! seeded {
    ($bug:ident) => {
        $crate::seeded::is($crate::seeded::Bug::$bug)
    };
}

static SWITCHED_ON: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = u8::MAX;

/// Switches on a bug in the place of another, or none.
pub fn switch_to(bug: Option<Bug>) {
    SWITCHED_ON.store(bug.map_or(NONE, |bug| bug as u8), Ordering::Relaxed);
}

/// Whether this one is switched on.
#[inline]
pub fn is(bug: Bug) -> bool {
    SWITCHED_ON.load(Ordering::Relaxed) == bug as u8
}

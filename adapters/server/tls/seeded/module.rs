//! The switches of the bugs that are seeded here. Only in the copy that `quorate-seeded` makes.
//!
//! Which one is on is said in the environment, `QUORATE_SEEDED=<name>`, since a whole run of the tests is to fail.

use std::sync::OnceLock;

/// Whether a bug is switched on, at the place of the rule that it breaks.
macro_rules! seeded {
    ($bug:ident) => {
        $crate::seeded::is($crate::seeded::Bug::$bug)
    };
}

/// Whether this one is switched on.
pub(crate) fn is(bug: Bug) -> bool {
    static SWITCHED_ON: OnceLock<Option<Bug>> = OnceLock::new();
    let find = || {
        let name = std::env::var("QUORATE_SEEDED").ok()?;
        Bug::ALL.iter().copied().find(|bug| format!("{bug:?}") == name)
    };
    *SWITCHED_ON.get_or_init(find) == Some(bug)
}

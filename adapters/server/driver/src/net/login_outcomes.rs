//! How logins between servers have gone, and how often.

use std::collections::BTreeMap;
use std::sync::Mutex;

use quorate_core::input::Plane;

use crate::lock::locked;

/// By plane, whether this server has dialled, and a word that stays: `ok`, `without` (there was none, and none is required),
/// `allowed` (it has failed, and none is required), or why there is no link.
#[derive(Debug, Default)]
pub(crate) struct LoginOutcomes(Mutex<BTreeMap<(Plane, bool, &'static str), u64>>);

impl LoginOutcomes {
    pub(super) fn count(&self, plane: Plane, dialled: bool, word: &'static str) {
        *locked(&self.0).entry((plane, dialled, word)).or_insert(0) += 1;
    }

    pub(crate) fn all(&self) -> Vec<((Plane, bool, &'static str), u64)> {
        locked(&self.0).iter().map(|(of, count)| (*of, *count)).collect()
    }
}

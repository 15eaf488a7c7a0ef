//! Dials that are held back, since the last ones led to links that ended before their peer had said anything.
//!
//! A server that looks at a certificate refuses it when its dialler holds the link to be up already. Each such link ends a
//! round of the protocol; without a wait that would go on as fast as the machine can.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use quorate_core::id::ServerId;
use quorate_core::input::Plane;

use crate::lock::locked;

/// Who has ended so many links without a word, the last of them when.
#[derive(Debug, Default)]
pub(crate) struct HeldBack(Mutex<BTreeMap<(Plane, ServerId), (u32, Instant)>>);

impl HeldBack {
    /// One more has.
    pub(super) fn ended_unheard(&self, plane: Plane, peer: ServerId, now: Instant) {
        let mut silent = locked(&self.0);
        if silent.len() < PEERS_MAX || silent.contains_key(&(plane, peer)) {
            let (count, last) = silent.entry((plane, peer)).or_insert((0, now));
            (*count, *last) = (count.saturating_add(1), now);
        }
    }

    /// It has said something.
    pub(super) fn heard(&self, plane: Plane, peer: ServerId) {
        locked(&self.0).remove(&(plane, peer));
    }

    /// How long to wait before it is dialled: as long as after a dial that was refused.
    pub(super) fn wait(&self, plane: Plane, peer: ServerId, now: Instant) -> Duration {
        let silent = locked(&self.0);
        let Some((count, last)) = silent.get(&(plane, peer)) else { return Duration::ZERO };
        let wait = WAIT_MIN.saturating_mul(1 << count.saturating_sub(1).min(16)).min(WAIT_MAX);
        wait.saturating_sub(now.saturating_duration_since(*last))
    }
}

const WAIT_MIN: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(1);
/// For twice as many as there can be members.
const PEERS_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_ends_links_without_a_word_is_dialled_ever_later_until_it_speaks() {
        let (held_back, now) = (HeldBack::default(), Instant::now());
        let (plane, peer) = (Plane::Quorum, ServerId(1));
        let wait = |held_back: &HeldBack| held_back.wait(plane, peer, now).as_millis();
        let mut waits = vec![wait(&held_back)];
        for _ in 0..40 {
            held_back.ended_unheard(plane, peer, now);
            waits.push(wait(&held_back));
        }
        assert_eq!(waits[..9], [0, 10, 20, 40, 80, 160, 320, 640, 1000]);
        assert_eq!(waits[40], 1000);
        assert_eq!(held_back.wait(Plane::Election, peer, now), Duration::ZERO);
        assert_eq!(held_back.wait(plane, peer, now + WAIT_MAX), Duration::ZERO);
        held_back.heard(plane, peer);
        assert_eq!(wait(&held_back), 0);
    }
}

//! Which server was seen to lead which epoch, and when elections got how far.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::event::{ChangeLine, What};

/// A leader that serves, its epoch, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leadership {
    pub(super) leader: i64,
    pub(super) epoch: i64,
    pub(super) at: Instant,
}

/// The established leaders of each epoch, as seen by themselves and by the servers that serve under them.
#[derive(Debug, Default)]
pub(super) struct Leaders {
    pub(super) epochs: BTreeMap<i64, BTreeSet<i64>>,
}

impl Leaders {
    pub(super) fn note(&mut self, line: &ChangeLine) {
        if let (true, Some(leader)) = (line.serving, line.leader) {
            self.epochs.entry(line.current_epoch).or_default().insert(leader);
        }
    }

    /// How many epochs had more than one leader. Whatever happens, it must be none.
    pub(super) fn twice(&self) -> usize {
        self.epochs.values().filter(|leaders| leaders.len() > 1).count()
    }
}

/// When the stages on the way to a leader were reached.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The first server looks for a leader.
    pub(super) looking: Option<Instant>,
    /// A server was elected, the last time.
    pub(super) leading: BTreeMap<i64, Instant>,
}

impl Marks {
    pub(super) fn note(&mut self, at: Instant, line: &ChangeLine) {
        if line.change != What::State {
            return;
        }
        if line.to == "LOOKING" {
            self.looking.get_or_insert(at);
        } else if line.to == "LEADING" {
            self.leading.insert(line.server, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Stage, State, VoteLine};

    fn serving(server: i64, leader: i64, epoch: i64) -> ChangeLine {
        ChangeLine {
            at_ms: 0.0,
            server,
            change: What::Phase,
            from: None,
            to: "broadcast".to_owned(),
            reason: "started".to_owned(),
            state: if server == leader { State::Leading } else { State::Following },
            phase: Stage::Broadcast,
            round: 1,
            vote: VoteLine { leader: Some(leader), peer_epoch: Some(epoch), zxid: None },
            leader: Some(leader),
            accepted_epoch: epoch,
            current_epoch: epoch,
            serving: true,
        }
    }

    #[test]
    fn two_leaders_of_one_epoch_are_noticed() {
        let mut leaders = Leaders::default();
        for line in [serving(1, 3, 1), serving(3, 3, 1), serving(2, 2, 2), serving(1, 2, 2)] {
            leaders.note(&line);
            assert_eq!(leaders.twice(), 0);
        }
        // A leader that does not serve yet is none.
        let mut unestablished = serving(1, 1, 2);
        unestablished.serving = false;
        leaders.note(&unestablished);
        assert_eq!(leaders.twice(), 0);
        leaders.note(&serving(1, 1, 2));
        assert_eq!(leaders.twice(), 1);
    }
}

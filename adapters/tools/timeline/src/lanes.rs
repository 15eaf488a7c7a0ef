//! A lane for each server: what all logs tell of it, in the order of its lines.

use std::collections::BTreeMap;
use std::ops::Range;

use quorate_core::id::ServerId;

use crate::event::Event;
use crate::log::Log;
use crate::votes::with_votes;

/// The events of all servers, each server's together and in the order of its lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    pub(crate) events: Vec<Event>,
    pub(crate) lanes: Vec<Lane>,
    /// Servers beyond [`LANES_MAX`], which are not shown.
    pub(crate) beyond: usize,
}

/// A server's part of the events.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) id: ServerId,
    pub(crate) range: Range<usize>,
}

/// As many servers are shown: offsets take the cube of it, and more columns cannot be read.
const LANES_MAX: usize = 32;

impl Lanes {
    /// The lanes of these logs. Those of one server follow one another as their first times do.
    pub(crate) fn of(logs: &mut [Log]) -> Self {
        let mut parts: BTreeMap<ServerId, Vec<Vec<Event>>> = BTreeMap::new();
        for log in logs {
            let mut of_log: BTreeMap<ServerId, Vec<Event>> = BTreeMap::new();
            for event in std::mem::take(&mut log.events) {
                if let Some(own) = event.own {
                    of_log.entry(own).or_default().push(event);
                }
            }
            for (own, events) in of_log {
                parts.entry(own).or_default().push(events);
            }
        }
        let mut all = Self { beyond: parts.len().saturating_sub(LANES_MAX), ..Self::default() };
        for (id, mut logs) in parts.into_iter().take(LANES_MAX) {
            logs.sort_by_key(|events| events.first().map(|event| event.at));
            let start = all.events.len();
            all.events.extend(with_votes(id, logs.into_iter().flatten()));
            all.lanes.push(Lane { id, range: start..all.events.len() });
        }
        all
    }

    /// The place among the lanes of the server with this id.
    pub(crate) fn lane(&self, id: ServerId) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.id == id)
    }

    /// The lane of each event.
    pub(crate) fn lane_of_each(&self) -> Vec<usize> {
        let mut of = vec![0; self.events.len()];
        for (at, lane) in self.lanes.iter().enumerate() {
            of[lane.range.clone()].fill(at);
        }
        of
    }
}

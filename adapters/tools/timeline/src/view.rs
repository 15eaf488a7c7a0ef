//! What is to be seen of a timeline: a span of its events, what is known before it, and where each claim is found.

use quorate_core::vote::ServerState;

use crate::causes::Link;
use crate::clocks::Clocks;
use crate::elections::Election;
use crate::event::What;
use crate::lanes::Lanes;
use crate::log::Log;
use crate::order::Order;
use crate::stamp::span;

/// A part of a timeline.
pub(crate) struct View<'a> {
    pub(crate) logs: &'a [Log],
    pub(crate) lanes: &'a Lanes,
    pub(crate) clocks: &'a Clocks,
    /// The events, in order.
    pub(crate) events: Vec<usize>,
    pub(crate) times: &'a [i64],
    /// Matches between them.
    pub(crate) links: Vec<Link>,
    pub(crate) elections: Vec<(usize, &'a Election)>,
    /// The state of each lane before the first of them, and its last event then.
    pub(crate) before: Vec<(Option<ServerState>, Option<usize>)>,
}

impl<'a> View<'a> {
    /// What lies between two times, both included, by the clock of the reference.
    pub(crate) fn between(
        logs: &'a [Log],
        lanes: &'a Lanes,
        clocks: &'a Clocks,
        order: &'a Order,
        elections: &'a [Election],
        (from, to): (i64, i64),
    ) -> Self {
        let inside = |at: &usize| (from..=to).contains(&order.times[*at]);
        let events: Vec<usize> = order.events.iter().copied().filter(inside).collect();
        let links = order
            .links
            .iter()
            .copied()
            .filter(|link| inside(&link.cause) && inside(&link.effect))
            .collect();
        let overlaps =
            |(_, election): &(usize, &Election)| election.from <= to && election.to >= from;
        let elections = (1..).zip(elections).filter(overlaps).collect();
        let before = lanes
            .lanes
            .iter()
            .map(|lane| {
                let (mut state, mut last) = (None, None);
                for at in lane.range.clone().take_while(|at| order.times[*at] < from) {
                    last = Some(at);
                    match &lanes.events[at].what {
                        What::State { to, .. } => state = Some(*to),
                        What::Started | What::Stopped => state = None,
                        _ => {}
                    }
                }
                (state, last)
            })
            .collect();
        Self { logs, lanes, clocks, events, times: &order.times, links, elections, before }
    }

    /// Where an event stands, as `2.log:118`.
    pub(crate) fn place(&self, at: usize) -> String {
        let event = &self.lanes.events[at];
        let name = self.logs.get(event.log).map_or("", |log| log.name.as_str());
        format!("{name}:{}", event.line)
    }

    /// How a lane's clock is corrected; empty if it is not.
    pub(crate) fn offset(&self, lane: usize) -> String {
        match self.clocks.offsets[lane] {
            0 => String::new(),
            offset if offset > 0 => format!("+{}", span(offset)),
            offset => format!("-{}", span(-offset)),
        }
    }
}

//! Logs of several servers, Java's and quorate's, as one timeline: who voted for whom and why, what each phase of an
//! election took, who waited for whom.
//!
//! ```text
//!   bytes ──► log ──► lanes ──► causes ──► clocks ──► order ──► elections ──► words, picture, page, JSON
//!             what a  a lane    what was   an offset  one       who lost whom,
//!             line    for each  before     for each   order     what it took
//!             says    server    what       server
//! ```
//!
//! No clock is trusted: events of different servers are matched by what they carry (sender, round and vote of a
//! notification; the epoch and the learner of what follows), and the clocks are corrected so that every cause is before
//! its effect. Everything here is a pure function of the bytes; the command reads and writes files.
#![forbid(unsafe_code)]
#![expect(clippy::wildcard_enum_match_arm, reason = "each place looks for some kinds of events")]

mod causes;
mod clocks;
mod elections;
mod event;
mod java;
mod json;
mod lanes;
mod log;
mod order;
mod ours;
mod page;
mod picture;
mod report;
mod stamp;
mod terms;
mod view;
mod votes;
mod words;

use std::fmt;

use crate::clocks::Clocks;
use crate::elections::Election;
use crate::lanes::Lanes;
use crate::log::Log;
pub use crate::log::Source;
use crate::order::Order;
use crate::view::View;

/// The timeline of some logs. Its `Display` is the text for people.
#[derive(Clone, Debug)]
pub struct Timeline {
    logs: Vec<Log>,
    lanes: Lanes,
    clocks: Clocks,
    order: Order,
    elections: Vec<Election>,
    /// What is shown, by the clock of the reference.
    shown: (i64, i64),
}

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;

/// So much is shown before and after an election that was asked for, in microseconds.
const AROUND: i64 = 100_000;

impl Timeline {
    /// Reads logs and orders what they tell. Whatever the bytes are, this ends, and says what could not be read.
    pub fn of(sources: &[Source<'_>]) -> Self {
        let mut logs: Vec<Log> =
            sources.iter().enumerate().map(|(at, source)| log::read(source, at)).collect();
        let lanes = Lanes::of(&mut logs);
        let links = causes::links(&lanes);
        let mut clocks = clocks::clocks(&lanes, &links);
        let order = order::order(&lanes, &links, &mut clocks);
        let elections = elections::elections(&lanes, &order);
        Self { logs, lanes, clocks, order, elections, shown: (i64::MIN, i64::MAX) }
    }

    /// Only what lies between two times: whole ones, or such as `13:19:47.112` of the day on which the logs begin.
    /// None if one is no time.
    #[must_use]
    pub fn between(mut self, from: Option<&str>, to: Option<&str>) -> Option<Self> {
        let first = self.order.events.first().map_or(0, |at| self.order.times[*at]);
        if let Some(from) = from {
            self.shown.0 = stamp::asked(from, first)?;
        }
        if let Some(to) = to {
            self.shown.1 = stamp::asked(to, first)?;
        }
        Some(self)
    }

    /// Only this election, counted from 1. None if there are not so many.
    #[must_use]
    pub fn election(mut self, number: usize) -> Option<Self> {
        let election = self.elections.get(number.checked_sub(1)?)?;
        self.shown = (election.from - AROUND, election.to + AROUND);
        Some(self)
    }

    /// How many elections there are.
    pub fn elections(&self) -> usize {
        self.elections.len()
    }

    /// Who was elected, and when it was decided: microseconds since 1970 by the clock of the reference, in order.
    pub fn elected(&self) -> Vec<(i64, i64)> {
        let elected = self.elections.iter().filter(|election| election.elects);
        elected.filter_map(|election| Some((election.to, election.leader?.0))).collect()
    }

    /// Whether the logs tell of any server.
    pub fn is_empty(&self) -> bool {
        self.lanes.events.is_empty()
    }

    /// By how much each server's clock is put forward, in microseconds; 0 for that of the reference and for those that
    /// need nothing.
    pub fn offsets(&self) -> Vec<(i64, i64)> {
        self.lanes
            .lanes
            .iter()
            .zip(&self.clocks.offsets)
            .map(|(lane, offset)| (lane.id.0, *offset))
            .collect()
    }

    /// How many matches contradict the others.
    pub fn conflicts(&self) -> usize {
        self.clocks.conflicts.len()
    }

    /// For each match: the server, the time and the place in the whole order of its cause, then the same of its effect.
    pub fn matches(&self) -> Vec<[(i64, i64, usize); 2]> {
        let lane_of = self.lanes.lane_of_each();
        let mut place = vec![0; self.lanes.events.len()];
        self.order.events.iter().enumerate().for_each(|(nth, at)| place[*at] = nth);
        let end = |at: usize| (self.lanes.lanes[lane_of[at]].id.0, self.order.times[at], place[at]);
        self.order.links.iter().map(|link| [end(link.cause), end(link.effect)]).collect()
    }

    /// The picture: an SVG that needs nothing beside itself.
    pub fn svg(&self) -> String {
        picture::draw(&self.view(), &self.title(), false)
    }

    /// Words, measures, picture and lines: one HTML file without a script, for light and dark.
    pub fn html(&self) -> String {
        page::page(&self.view(), &self.order, &self.title(), self.lanes.beyond)
    }

    /// Everything, as one JSON object.
    pub fn json(&self) -> String {
        json::json(&self.view(), &self.order).to_string()
    }

    fn title(&self) -> String {
        let names: Vec<_> = self.lanes.lanes.iter().map(|lane| lane.id).collect();
        format!("Timeline of servers {}", words::list(&names))
    }

    fn view(&self) -> View<'_> {
        View::between(
            &self.logs,
            &self.lanes,
            &self.clocks,
            &self.order,
            &self.elections,
            self.shown,
        )
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&report::text(&self.view(), &self.order, self.lanes.beyond))
    }
}

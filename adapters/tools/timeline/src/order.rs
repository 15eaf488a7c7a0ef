//! One order for the events of all servers, and a time for each in it: after its cause, and after the line before it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::causes::Link;
use crate::clocks::{Clocks, Conflict};
use crate::lanes::Lanes;

/// The events in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    /// All events, each behind its causes.
    pub(crate) events: Vec<usize>,
    /// For each event, microseconds since 1970 by the clock of the reference.
    pub(crate) times: Vec<i64>,
    /// The matches that hold in it.
    pub(crate) links: Vec<Link>,
}

/// Orders events. Matches that would close a circle are added to the conflicts.
pub(crate) fn order(lanes: &Lanes, links: &[Link], clocks: &mut Clocks) -> Order {
    let taken_out: BTreeSet<Link> = clocks.conflicts.iter().map(|conflict| conflict.link).collect();
    let links: Vec<Link> = links.iter().filter(|link| !taken_out.contains(link)).copied().collect();
    let all = lanes.events.len();
    let lane_of = lanes.lane_of_each();
    let corrected = |at: usize| lanes.events[at].at.saturating_add(clocks.offsets[lane_of[at]]);
    let mut causes: Vec<Vec<usize>> = vec![Vec::new(); all];
    let mut effects: Vec<Vec<usize>> = vec![Vec::new(); all];
    for link in &links {
        causes[link.effect].push(link.cause);
        effects[link.cause].push(link.effect);
    }
    let mut waits: Vec<usize> = causes.iter().map(Vec::len).collect();
    // The next event of each lane.
    let mut front: Vec<usize> = lanes.lanes.iter().map(|lane| lane.range.start).collect();
    let mut ready: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    let mut times: Vec<i64> = (0..all).map(corrected).collect();
    let mut done = Order { events: Vec::with_capacity(all), ..Order::default() };
    let mut dropped = BTreeSet::new();
    let is_next = |at: usize, front: &[usize]| front[lane_of[at]] == at;
    let heads =
        lanes.lanes.iter().filter(|lane| !lane.range.is_empty()).map(|lane| lane.range.start);
    ready.extend(heads.filter(|at| waits[*at] == 0).map(|at| Reverse((times[at], at))));
    while done.events.len() < all {
        let Some(Reverse((time, at))) = ready.pop() else {
            // A circle: the first of those that wait no longer does.
            let stuck =
                lanes.lanes.iter().enumerate().filter(|(lane, of)| front[*lane] < of.range.end);
            let Some(at) = stuck.map(|(lane, _)| front[lane]).min_by_key(|at| times[*at]) else {
                break;
            };
            dropped.extend(causes[at].iter().map(|cause| (*cause, at)));
            waits[at] = 0;
            ready.push(Reverse((times[at], at)));
            continue;
        };
        done.events.push(at);
        times[at] = time;
        for effect in &effects[at] {
            if dropped.contains(&(at, *effect)) {
                continue;
            }
            times[*effect] = times[*effect].max(time);
            waits[*effect] -= 1;
            if waits[*effect] == 0 && is_next(*effect, &front) {
                ready.push(Reverse((times[*effect], *effect)));
            }
        }
        let (lane, next) = (lane_of[at], at + 1);
        front[lane] = next;
        if next < lanes.lanes[lane].range.end {
            times[next] = times[next].max(time);
            if waits[next] == 0 {
                ready.push(Reverse((times[next], next)));
            }
        }
    }
    let mut place = vec![0; all];
    done.events.iter().enumerate().for_each(|(nth, at)| place[*at] = nth);
    for link in links {
        let waited =
            !dropped.contains(&(link.cause, link.effect)) || place[link.cause] < place[link.effect];
        if waited {
            done.links.push(link);
        } else {
            let by = times[link.cause].saturating_sub(times[link.effect]);
            clocks.conflicts.push(Conflict { link, by });
        }
    }
    done.times = times;
    done
}

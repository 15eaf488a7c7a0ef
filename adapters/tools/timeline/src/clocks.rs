//! One offset for each server, so that every cause is before its effect.
//!
//! A match says that the effect's clock may be behind by so much at most: a difference constraint. Longest paths over all
//! of them give, for every pair, the least and the most by which their clocks differ. A clock that needs no correction
//! gets none; one that does is put into the middle of what is possible. Matches that contradict each other are taken out,
//! the most outlying first, and told.

use crate::causes::Link;
use crate::lanes::Lanes;

/// The offsets, and the matches that no offset can satisfy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks {
    /// For each lane, what is added to its times, in microseconds.
    pub(crate) offsets: Vec<i64>,
    /// For each lane, whether something ties it to the reference.
    pub(crate) tied: Vec<bool>,
    /// The lane whose clock is taken as it is.
    pub(crate) reference: usize,
    /// Matches that contradict the others.
    pub(crate) conflicts: Vec<Conflict>,
}

/// A match that was taken out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    pub(crate) link: Link,
    /// By how much it fails with all the others satisfied, in microseconds.
    pub(crate) by: i64,
}

/// No path.
const NEVER: i64 = i64::MIN / 4;
/// As many contradictions are looked for one by one.
const ROUNDS: usize = 200;

/// Matches from one lane to another, that which demands most last.
type Demands = Vec<Vec<Vec<(i64, Link)>>>;

/// Offsets for these lanes.
pub(crate) fn clocks(lanes: &Lanes, links: &[Link]) -> Clocks {
    let n = lanes.lanes.len();
    let mut demands: Demands = vec![vec![Vec::new(); n]; n];
    let lane_of = lanes.lane_of_each();
    for link in links {
        let (cause, effect) = (&lanes.events[link.cause], &lanes.events[link.effect]);
        // What the effect's clock has to be put forward by, at least.
        let least = cause
            .at
            .saturating_sub(cause.late)
            .saturating_sub(effect.at.saturating_add(effect.fine - 1));
        demands[lane_of[link.cause]][lane_of[link.effect]].push((least, *link));
    }
    for row in &mut demands {
        row.iter_mut().for_each(|all| all.sort_unstable());
    }
    let mut conflicts = Vec::new();
    let mut round = 0;
    let longest = loop {
        let (longest, next) = closure(&demands);
        let Some(at) = (0..n).find(|at| longest[*at][*at] > 0) else { break longest };
        let mut cycle = cycle(at, &next);
        if cycle.is_empty() {
            cycle = (0..n).flat_map(|from| (0..n).map(move |to| (from, to))).collect();
        }
        let by = longest[at][at];
        if round < ROUNDS {
            take_out_one(&mut demands, &cycle, by, &mut conflicts);
        } else {
            for (from, to) in cycle {
                conflicts
                    .extend(demands[from][to].drain(..).map(|(_, link)| Conflict { link, by }));
            }
        }
        round += 1;
    };
    conflicts.sort_by_key(|conflict| conflict.link);
    let (reference, offsets, tied) = choose(&longest);
    Clocks { offsets, tied, reference, conflicts }
}

/// Longest paths between all pairs, and the next lane on each.
fn closure(demands: &Demands) -> (Vec<Vec<i64>>, Vec<Vec<usize>>) {
    let n = demands.len();
    let mut longest = vec![vec![NEVER; n]; n];
    let mut next = vec![vec![usize::MAX; n]; n];
    for (from, row) in demands.iter().enumerate() {
        for (to, all) in row.iter().enumerate() {
            if let Some((least, _)) = all.last() {
                (longest[from][to], next[from][to]) = ((*least).max(NEVER + 1), to);
            }
        }
    }
    for over in 0..n {
        // A cycle is found before it is walked a second time: what it would add up to grows without end.
        if longest[over][over] > 0 {
            break;
        }
        for from in 0..n {
            for to in 0..n {
                let (first, second) = (longest[from][over], longest[over][to]);
                if first == NEVER || second == NEVER {
                    continue;
                }
                let path = first.saturating_add(second);
                if path > longest[from][to] {
                    (longest[from][to], next[from][to]) = (path, next[from][over]);
                }
            }
        }
        if (0..n).any(|at| longest[at][at] > 0) {
            break;
        }
    }
    (longest, next)
}

/// The steps of the way from a lane back to it.
fn cycle(at: usize, next: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let (mut steps, mut here) = (Vec::new(), at);
    while let Some(to) =
        next.get(here).and_then(|row| row.get(at)).copied().filter(|to| *to < next.len())
    {
        steps.push((here, to));
        here = to;
        if here == at || steps.len() > next.len() {
            break;
        }
    }
    steps
}

/// Takes out the match that is farthest beyond the others of its direction.
fn take_out_one(
    demands: &mut Demands,
    cycle: &[(usize, usize)],
    by: i64,
    conflicts: &mut Vec<Conflict>,
) {
    // One bad line may be the end of several matches: the middle one is what the direction says.
    let beyond = |(from, to): &(usize, usize)| {
        let all = &demands[*from][*to];
        let middle = all.get(all.len().saturating_sub(1) / 2);
        all.last().zip(middle).map_or(0, |((most, _), (middle, _))| most - middle)
    };
    let most = cycle.iter().copied().max_by_key(|step| beyond(step));
    if let Some((from, to)) = most {
        conflicts.extend(demands[from][to].pop().map(|(_, link)| Conflict { link, by }));
    }
}

/// The lane that agrees with most others, and an offset for each, without which no demand is met.
fn choose(longest: &[Vec<i64>]) -> (usize, Vec<i64>, Vec<bool>) {
    let n = longest.len();
    let bounds = |from: usize, to: usize| {
        let least = (longest[from][to] != NEVER).then(|| longest[from][to]);
        let most = (longest[to][from] != NEVER).then(|| -longest[to][from]);
        (least, most)
    };
    let needs_none = |from: usize, to: usize| {
        let (least, most) = bounds(from, to);
        least.is_none_or(|least| least <= 0) && most.is_none_or(|most| most >= 0)
    };
    let agree = |at: usize| (0..n).filter(|other| needs_none(at, *other)).count();
    let reference = (0..n).max_by_key(|at| (agree(*at), std::cmp::Reverse(*at))).unwrap_or(0);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|at| (*at != reference, !needs_none(reference, *at), *at));
    let mut offsets = vec![0; n];
    let mut tied = vec![false; n];
    for (done, at) in order.iter().copied().enumerate() {
        let before = order[..done].iter().copied();
        let least =
            before.clone().filter_map(|from| Some(offsets[from] + bounds(from, at).0?)).max();
        let most = before.filter_map(|from| Some(offsets[from] + bounds(from, at).1?)).min();
        tied[at] = at == reference || least.is_some() || most.is_some();
        offsets[at] = match (least, most) {
            (Some(least), _) if least > 0 => most.map_or(least, |most| least + (most - least) / 2),
            (_, Some(most)) if most < 0 => least.map_or(most, |least| least + (most - least) / 2),
            _ => 0,
        };
    }
    (reference, offsets, tied)
}

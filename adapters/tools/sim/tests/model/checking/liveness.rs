//! Whether an ensemble can go on for ever without a leader, though nothing is withheld from it.
//!
//! ```text
//!   all states within the bounds ─► those without a leader ─► components that can be run through for ever
//!        ─► in each: is an action possible in every state, and does it always lead out?  yes: nobody stays there
//!                                                                                       no:  a fair cycle
//! ```
//!
//! Fairness is weak: what stays possible happens some day. Faults are nobody's duty and happen only so often, so
//! a cycle does without them; they may lead to it. A state in which nothing is possible any more is a cycle of
//! itself.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use stateright::Model;

use super::Scope;
use super::ensemble::Ensemble;
use super::state::{Action, State};
use super::tables::Quick;

/// What came of the search.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// How many states were looked at.
    pub states: usize,
    /// How many of them have no leader.
    pub leaderless: usize,
    /// How many components of those can be run through for ever.
    pub cycles: usize,
    /// Whether every state within the bounds was looked at.
    pub exhausted: bool,
    /// How to get into a cycle that is fair, and what happens there.
    pub violation: Option<Vec<String>>,
}

impl fmt::Display for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, leaderless, cycles, .. } = self;
        let exhausted = if self.exhausted { "yes" } else { "no" };
        write!(
            f,
            "{states} states, {leaderless} without a leader, {cycles} of their components can be run through \
             for ever; exhausted: {exhausted}"
        )?;
        let Some(way) = &self.violation else {
            return write!(f, "; no fair cycle without a leader");
        };
        write!(f, "\nVIOLATION: a fair cycle without a leader, after")?;
        way.iter().try_for_each(|step| write!(f, "\n  {step}"))
    }
}

struct Node {
    parent: u32,
    by: Option<Action>,
    good: bool,
    /// Where the actions lead that are somebody's duty: number of the action, next state.
    next: Vec<(u16, u32)>,
}

/// Looks for a cycle without a state that is `good`; gives up beyond so many states. What leads out of the
/// bounds of `scope` counts as leading out of every cycle.
pub fn search(scope: Scope, most: usize, good: fn(&Ensemble, &State) -> bool) -> Liveness {
    let model = Ensemble::new(scope);
    let mut numbers: HashMap<State, u32, Quick> = HashMap::default();
    let mut duties: HashMap<Action, u16> = HashMap::new();
    let (mut nodes, mut states) = (Vec::new(), Vec::new());
    for state in model.init_states() {
        let good = good(&model, &state);
        numbers.insert(state.clone(), number(numbers.len()));
        nodes.push(Node { parent: u32::MAX, by: None, good, next: Vec::new() });
        states.push(state);
    }
    let (mut at, mut actions) = (0, Vec::new());
    while at < states.len() && states.len() < most {
        let state = states[at].clone();
        model.actions(&state, &mut actions);
        for action in actions.drain(..) {
            let next = model.next_state(&state, action);
            let number = next.map_or(OUTSIDE, |next| {
                *numbers.entry(next).or_insert_with_key(|next| {
                    let good = good(&model, next);
                    nodes.push(Node {
                        parent: number(at),
                        by: Some(action),
                        good,
                        next: Vec::new(),
                    });
                    states.push(next.clone());
                    number(states.len() - 1)
                })
            });
            if !action.is_fault() {
                let duty = u16::try_from(duties.len()).expect("few duties");
                let duty = *duties.entry(action).or_insert(duty);
                nodes[at].next.push((duty, number));
            }
        }
        at += 1;
    }
    let exhausted = at == states.len();
    nodes[at..].iter_mut().for_each(|node| node.next.push((u16::MAX, OUTSIDE)));
    let components = components(&nodes);
    let mut cycles = 0;
    let mut found = None;
    for component in &components {
        let inside: BTreeSet<u32> = component.iter().copied().collect();
        let mut taken = BTreeSet::new();
        let mut always: Option<BTreeSet<u16>> = None;
        for at in component {
            let next = &nodes[*at as usize].next;
            taken.extend(next.iter().filter(|(_, to)| inside.contains(to)).map(|(duty, _)| *duty));
            let possible: BTreeSet<u16> = next.iter().map(|(duty, _)| *duty).collect();
            always = Some(always.map_or(possible.clone(), |always| &always & &possible));
        }
        let always = always.unwrap_or_default();
        if taken.is_empty() && !always.is_empty() {
            continue;
        }
        cycles += 1;
        if always.is_subset(&taken) && found.is_none() {
            found = component.iter().copied().min();
        }
    }
    let violation = found.map(|at| {
        let mut way = Vec::new();
        let mut at = at;
        while let Some(action) = nodes[at as usize].by {
            at = nodes[at as usize].parent;
            way.push(model.tell(&states[at as usize], &action));
        }
        way.reverse();
        way
    });
    let leaderless = nodes.iter().filter(|node| !node.good).count();
    Liveness { states: states.len(), leaderless, cycles, exhausted, violation }
}

fn number(of: usize) -> u32 {
    u32::try_from(of).expect("fewer than 2^32 states")
}

/// Where the bounds end.
const OUTSIDE: u32 = u32::MAX;

/// The strongly connected components of the states that are not good (Tarjan, without recursion).
fn components(nodes: &[Node]) -> Vec<Vec<u32>> {
    let (mut index, mut low) = (vec![0u32; nodes.len()], vec![0u32; nodes.len()]);
    let (mut on_stack, mut stack) = (vec![false; nodes.len()], Vec::new());
    let (mut issued, mut components) = (0, Vec::new());
    for root in 0..nodes.len() {
        if nodes[root].good || index[root] != 0 {
            continue;
        }
        let mut calls = vec![(root, 0)];
        while let Some((at, edge)) = calls.pop() {
            if edge == 0 {
                issued += 1;
                (index[at], low[at], on_stack[at]) = (issued, issued, true);
                stack.push(number(at));
            }
            if let Some((_, to)) = nodes[at].next.get(edge) {
                calls.push((at, edge + 1));
                let to = *to as usize;
                if to < nodes.len() && !nodes[to].good {
                    if index[to] == 0 {
                        calls.push((to, 0));
                    } else if on_stack[to] {
                        low[at] = low[at].min(index[to]);
                    }
                }
                continue;
            }
            if low[at] == index[at] {
                let mut component = Vec::new();
                while let Some(top) = stack.pop() {
                    on_stack[top as usize] = false;
                    component.push(top);
                    if top as usize == at {
                        break;
                    }
                }
                components.push(component);
            }
            if let Some((caller, _)) = calls.last() {
                low[*caller] = low[*caller].min(low[at]);
            }
        }
    }
    components
}

//! The plan of a crate: where each module stands, and which uses that allows.

use std::collections::{BTreeMap, BTreeSet};

use Place::{Floor, Outside, Page, Wing};

/// Where a module stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this floor. It may use the floors below.
    Floor(u8),
    /// Beside the house, as high as this floor. It may use the floors below; no floor may use it.
    Wing(u8),
    /// Looks at the crate from outside, as a program does that uses it: a macro that is written out there, or tests for
    /// others to run. It may name everything, the root as well; no other may use it.
    Outside,
    /// One more page of the module above: more of the same type. What it uses, that module uses.
    Page,
}

pub(crate) fn place(plan: &[(&str, Place)], name: &str) -> Option<Place> {
    plan.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// The module that a page belongs to, or a page of a page; any other is its own.
pub(crate) fn book<'a>(plan: &[(&str, Place)], mut name: &'a str) -> &'a str {
    while place(plan, name) == Some(Page) {
        let Some((above, _)) = name.rsplit_once("::") else { break };
        name = above;
    }
    name
}

/// The module in which a path ends: as much of it as the plan knows.
pub(crate) fn planned(plan: &[(&str, Place)], path: &[String]) -> String {
    let known = (0..=path.len()).rev().map(|length| path[..length].join("::"));
    known.into_iter().find(|name| place(plan, name).is_some()).unwrap_or_default()
}

/// Whether one module may use another.
pub(crate) fn judge(plan: &[(&str, Place)], from: &str, to: &str) -> Result<(), String> {
    let outermost = from.split("::").next().unwrap_or_default();
    let outside = place(plan, outermost) == Some(Outside);
    if to.is_empty() && outside {
        return Ok(());
    }
    if to.is_empty() {
        return Err("ends in the root, or in a module without a place in the plan".to_owned());
    }
    let (ours, theirs): (Vec<_>, Vec<_>) = (from.split("::").collect(), to.split("::").collect());
    let common = ours.iter().zip(&theirs).take_while(|(ours, theirs)| ours == theirs).count();
    if common == ours.len() {
        // Itself, or something in its own folder.
        return Ok(());
    }
    if common == theirs.len() {
        return Err(format!("{to} stands above its folder"));
    }
    let (ours, theirs) = (ours[..=common].join("::"), theirs[..=common].join("::"));
    let (Some(own), Some(other)) = (place(plan, &ours), place(plan, &theirs)) else {
        return Err(format!("{ours} or {theirs} has no place in the plan"));
    };
    match (own, other) {
        (_, Outside) => Err(format!("{theirs} stands outside")),
        (Outside, Floor(_) | Wing(_)) => Ok(()),
        (_, Wing(_)) => Err(format!("{theirs} stands apart")),
        (Page, _) | (_, Page) => Err(format!("{ours} or {theirs} is a page of another module")),
        (Floor(own) | Wing(own), Floor(other)) if other < own => Ok(()),
        (Floor(own) | Wing(own), Floor(other)) if other == own => {
            Err(format!("sideways, both stand on floor {own}"))
        }
        (Floor(own) | Wing(own), Floor(other)) => {
            Err(format!("up, from floor {own} to floor {other}"))
        }
    }
}

/// A way from a module back to itself, if there is one.
pub(crate) fn circle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<&str>> {
    fn visit<'a>(
        edges: &'a BTreeMap<String, BTreeSet<String>>,
        at: &'a str,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> bool {
        if let Some(start) = way.iter().position(|passed| *passed == at) {
            way.drain(..start);
            way.push(at);
            return true;
        }
        if done.contains(at) {
            return false;
        }
        way.push(at);
        if edges.get(at).into_iter().flatten().any(|next| visit(edges, next, way, done)) {
            return true;
        }
        way.pop();
        done.insert(at);
        false
    }

    let (mut way, mut done) = (Vec::new(), BTreeSet::new());
    edges.keys().any(|from| visit(edges, from, &mut way, &mut done)).then_some(way)
}

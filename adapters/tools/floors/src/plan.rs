//! The plan of a crate: where each module stands, and which uses that allows.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

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

/// Why one module may not use another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Forbidden {
    /// The root is used, or a module that the plan does not have.
    #[error("ends in the root, or in a module without a place in the plan")]
    Root,
    /// A module in a folder uses the module of that folder.
    #[error("{0} stands above its folder")]
    AboveItsFolder(String),
    /// One of the two is not in the plan.
    #[error("{0} or {1} has no place in the plan")]
    Unplanned(String, String),
    /// What stands outside may not be used.
    #[error("{0} stands outside")]
    Outside(String),
    /// A wing may not be used.
    #[error("{0} stands apart")]
    Wing(String),
    /// A page belongs to its own module.
    #[error("{0} or {1} is a page of another module")]
    Page(String, String),
    /// Both stand on this floor.
    #[error("sideways, both stand on floor {0}")]
    Sideways(u8),
    /// The used module stands higher.
    #[error("up, from floor {0} to floor {1}")]
    Up(u8, u8),
}

/// Whether one module may use another.
pub(crate) fn judge(plan: &[(&str, Place)], from: &str, to: &str) -> Result<(), Forbidden> {
    let outermost = from.split("::").next().unwrap_or_default();
    let outside = place(plan, outermost) == Some(Outside);
    if to.is_empty() && outside {
        return Ok(());
    }
    if to.is_empty() {
        return Err(Forbidden::Root);
    }
    let (ours, theirs): (Vec<_>, Vec<_>) = (from.split("::").collect(), to.split("::").collect());
    let common = ours.iter().zip(&theirs).take_while(|(ours, theirs)| ours == theirs).count();
    if common == ours.len() {
        // Itself, or something in its own folder.
        return Ok(());
    }
    if common == theirs.len() {
        return Err(Forbidden::AboveItsFolder(to.to_owned()));
    }
    let (ours, theirs) = (ours[..=common].join("::"), theirs[..=common].join("::"));
    let (Some(own), Some(other)) = (place(plan, &ours), place(plan, &theirs)) else {
        return Err(Forbidden::Unplanned(ours, theirs));
    };
    match (own, other) {
        (_, Outside) => Err(Forbidden::Outside(theirs)),
        (Outside, Floor(_) | Wing(_)) => Ok(()),
        (_, Wing(_)) => Err(Forbidden::Wing(theirs)),
        (Page, _) | (_, Page) => Err(Forbidden::Page(ours, theirs)),
        (Floor(own) | Wing(own), Floor(other)) if other < own => Ok(()),
        (Floor(own) | Wing(own), Floor(other)) if other == own => Err(Forbidden::Sideways(own)),
        (Floor(own) | Wing(own), Floor(other)) => Err(Forbidden::Up(own, other)),
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

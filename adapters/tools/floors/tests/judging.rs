//! What is against a plan is found however it is written, and nothing else is.
#![cfg(not(miri))] // what sources look like is no matter of how they run

mod plans;

use quorate_floors::survey;

use crate::plans::core::PLAN;

/// The complaints about a house of a few modules, all others being empty.
fn complaints(sources: &[(&str, &str)]) -> Vec<String> {
    let module =
        |name: &str| name.split("::").filter(|s| !s.is_empty()).map(str::to_owned).collect();
    let sources = sources.iter().map(|(name, text)| (module(name), (*text).to_owned())).collect();
    survey(&sources, PLAN, &[]).complaints
}

fn caught(name: &str, source: &str, wanted: &str) {
    let complaints = complaints(&[(name, source)]);
    assert!(complaints.iter().any(|c| c.contains(wanted)), "{source}\n{complaints:?}");
}

fn fine(name: &str, source: &str) {
    assert_eq!(complaints(&[(name, source)]), Vec::<String>::new(), "{source}");
}

#[test]
fn a_use_that_runs_up_is_caught_wherever_it_stands() {
    for source in [
        "use crate::peer::Peer;",
        "use crate::{id::ServerId, peer::Peer};",
        "use crate::{\n    peer::{Peer},\n};",
        "pub use crate::peer::Peer as Server;",
        "fn f() { let peer = crate::peer::Peer::new(); }",
        "fn f() { { if true { crate::peer::Peer::default() } } }",
        "fn f(peer: &crate::peer::Peer) {}",
        "struct S(pub crate::peer::Peer);",
        "struct S(pub (crate::peer::Peer, u8));",
        "impl From<crate::peer::Peer> for u8 {}",
        "fn f() -> impl Iterator<Item = <crate::peer::Peer as Iterator>::Item> {}",
        "fn f() { assert_eq!(1, crate::peer::Peer::N); }",
        "macro_rules! m { () => { $crate::peer::Peer::new() }; }",
        "macro_rules! m { () => { use $crate::{peer::Peer}; }; }",
        "#[derive(Debug)] #[cfg_attr(a, b(crate::peer::Peer))] struct S;",
        "#[cfg(test)] mod tests { use crate::peer::Peer; }",
    ] {
        caught("election", source, "peer::Peer");
        caught("election", source, "up, from floor 10 to floor 12");
    }
    caught("election", "\n\nfn f() { crate::peer::Peer::new() }", "election, line 3");
    caught("election", "use super::peer::Peer;", "up, from floor 10 to floor 12");
    caught("election", "mod tests { use super::super::peer::Peer; }", "up, from");
    caught("election", "mod tests { use super::{super::peer::Peer}; }", "up, from");
    caught("leader::discovery", "use super::super::peer::Peer;", "up, from floor 11 to floor 12");
    caught("zxid", "use crate::vote::Vote;", "up, from floor 1 to floor 2");
}

#[test]
fn a_use_that_runs_sideways_is_caught() {
    caught("leader", "use crate::learner::Learner;", "sideways");
    caught("leader", "fn f() { crate::learner::discovery::f() }", "sideways");
    caught("leader::discovery", "use crate::learner::discovery::Announced;", "sideways");
    caught("leader::discovery", "use crate::leader::synchronization::f;", "sideways");
    caught("leader::discovery", "use super::synchronization::f;", "sideways");
    caught("vote", "use crate::quorum::Quorum;", "sideways");
}

#[test]
fn a_folder_does_not_know_what_stands_on_it() {
    caught("leader::discovery", "use crate::leader::Leader;", "leader stands above its folder");
    caught("leader::discovery", "use super::Leader;", "leader stands above its folder");
    caught("leader::discovery", "use super::*;", "leader stands above its folder");
    caught("leader::discovery", "use super::{Leader, progress::send};", "above its folder");
}

#[test]
fn a_page_is_what_it_belongs_to() {
    fine("peer::turns", "use crate::peer::Peer; use crate::leader::Leader; use super::role::Role;");
    caught("election", "use crate::peer::turns::T;", "up, from floor 10 to floor 12");
    caught("peer::role", "use crate::peer::turns::T;", "peer stands above its folder");
    caught("peer::turns", "use crate::wire::decode_packet;", "wire stands apart");
}

#[test]
fn a_wing_is_not_entered() {
    caught("peer", "fn f() { crate::wire::decode_packet() }", "wire stands apart");
    caught("peer", "use crate::wire::{self};", "wire stands apart");
    caught("leader", "use crate::recipe::lease::Lease;", "recipe stands apart");
    caught("wire", "use crate::recipe::offer::Offer;", "recipe stands apart");
    caught("recipe::lease", "use crate::vote::Vote;", "sideways");
    caught("wire::quorum", "use crate::output::Output;", "up, from floor 4 to floor 6");
}

#[test]
fn the_root_is_no_way_round() {
    caught("election", "use crate::Peer;", "ends in the root");
    caught("election", "use super::*;", "ends in the root");
    caught("election", "use crate::*;", "ends in the root");
    caught("election", "use crate::{self as house};", "ends in the root");
    caught("election", "use crate as house; fn f() { house::peer::f() }", "under another name");
    caught("election", "use super as house; fn f() { house::peer::f() }", "under another name");
    caught("election", "use self as house;", "under another name");
    caught("", "extern crate self as house;", "names itself");
    caught("", "#[path = \"peer.rs\"] mod election;", "`#[path]`");
    caught("election", "include!(\"peer.rs\");", "`include!`");
    caught("cellar", "fn f() {}", "cellar has no place in the plan");
    caught("election", "use crate::cellar::Wine;", "without a place");
}

#[test]
fn a_circle_is_caught() {
    let complaints = complaints(&[
        ("vote", "use crate::message::Message;"),
        ("message", "fn f() { crate::report::g() }"),
        ("report", "macro_rules! m { () => { $crate::vote::Vote }; }"),
    ]);
    assert!(
        complaints.iter().any(|c| c == "a circle: message → report → vote → message"),
        "{complaints:?}"
    );

    let complaints = self::complaints(&[
        ("leader", "use self::progress::P;"),
        ("leader::progress", "use super::L;"),
    ]);
    assert!(complaints.iter().any(|c| c.starts_with("a circle: leader → ")), "{complaints:?}");
}

#[test]
fn what_runs_down_is_fine() {
    fine("peer", "use crate::leader::Leader; use crate::{id::{LinkId, ServerId}, zxid::*};");
    fine("leader", "use crate::leader::{discovery::{self, Discovery}, progress}; mod progress;");
    fine("leader", "fn f(&self) { self.g(); self::progress::f(); match self { _ => {} } }");
    fine("leader::discovery", "use super::progress::send; use crate::vote::Vote;");
    fine("wire::quorum", "use super::primitive::i32_at; use crate::message::Packet;");
    fine("recipe::lease", "use crate::zxid::Epoch;");
    fine("election", "pub(crate) struct S { pub(super) a: u8, pub(in crate::peer) b: u8 }");
    fine(
        "election",
        "//! [`Peer`](crate::peer::Peer)\n/// [`f`](crate::peer::f)\n// crate::peer\nfn f() {}",
    );
    fine("election", "fn f() { g(\"crate::peer::Peer\") }");
    fine("election", "#[cfg(test)] mod tests { use super::*; use super::super::vote::Vote; }");
    fine("", "extern crate alloc; pub mod peer; pub use crate::peer::Peer; pub use self::peer::*;");
}

#[test]
fn an_allowance_that_nobody_needs_is_struck_out() {
    let sources = [(vec!["vote".to_owned()], "use crate::zxid::Zxid;".to_owned())].into();
    let complaints = survey(&sources, PLAN, &[("vote", "peer")]).complaints;
    assert_eq!(complaints, ["vote no longer uses peer: strike it out"]);
}

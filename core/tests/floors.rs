//! Holds the floors of the core: a module uses what stands below it, and nothing else.
//!
//! The plan is one table, [`PLAN`]. The test reads the sources themselves, token by token, so that no
//! way of naming a module escapes it: `use` declarations, types, expressions, patterns, the inside of
//! macros, test modules. Comments and documentation may point anywhere.
//!
//! It does not look at what a module does with what it uses; that is what reviews are for.
#![cfg(not(miri))] // what the sources look like is no matter of how they run
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Where a module stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On this floor. It may use the floors below.
    Floor(u8),
    /// Beside the house, as high as this floor. It may use the floors below; no floor may use it.
    Wing(u8),
    /// One more page of the module above: more of the same type. What it uses, that module uses.
    Page,
}

use Place::{Floor, Page, Wing};

/// The plan of the house. Moving a wall is one line here.
///
/// Floors inside a folder are its own and are counted from 1; a module stands above all that is in its
/// folder, and its folder does not know it.
const PLAN: &[(&str, Place)] = &[
    // One server.
    ("peer", Floor(11)),
    ("peer::checks", Page),
    ("peer::events", Page),
    ("peer::linking", Page),
    ("peer::turns", Page),
    ("peer::unreachable", Page),
    ("peer::listening", Floor(1)),
    ("peer::letters", Floor(3)),
    ("peer::voting", Floor(3)),
    ("peer::instruments", Floor(2)),
    ("peer::electing", Floor(1)),
    ("peer::early", Floor(1)),
    ("peer::rest", Floor(1)),
    ("peer::role", Floor(1)),
    // Zab, from each side.
    ("leader", Floor(10)),
    ("leader::packets", Page),
    ("leader::introductions", Floor(6)),
    ("leader::office", Floor(5)),
    ("leader::succession", Floor(5)),
    ("leader::reconfiguration", Floor(5)),
    ("leader::broadcast", Floor(4)),
    ("leader::hand_over", Floor(3)),
    ("leader::synchronization", Floor(2)),
    ("leader::discovery", Floor(2)),
    ("leader::learners", Floor(2)),
    ("leader::tally", Floor(1)),
    ("leader::progress", Floor(1)),
    ("leader::progress::acks", Floor(1)),
    ("leader::progress::beats", Floor(1)),
    ("learner", Floor(10)),
    ("learner::packets", Page),
    ("learner::broadcast", Floor(3)),
    ("learner::synchronization", Floor(2)),
    ("learner::reconfiguration", Floor(1)),
    ("learner::discovery", Floor(1)),
    // Who leads.
    ("election", Floor(9)),
    ("election::back", Page),
    ("election::boundary", Floor(1)),
    ("election::edge", Page),
    ("election::proposal", Page),
    ("election::votes", Floor(1)),
    ("generation", Floor(9)),
    ("generation::heartbeats", Floor(3)),
    ("generation::campaign", Floor(4)),
    ("generation::granting", Floor(5)),
    ("generation::clock", Floor(2)),
    ("generation::boundary", Floor(1)),
    // What a machine may touch.
    ("context", Floor(8)),
    // Who is connected.
    ("links", Floor(7)),
    ("links::claims", Page),
    ("links::mailbox", Floor(1)),
    ("links::neighbour", Floor(2)),
    ("links::strangers", Floor(2)),
    ("links::answers", Floor(1)),
    // What leaves, and what is remembered.
    ("outbox", Floor(6)),
    ("history", Floor(7)),
    // The boundary.
    ("recorder", Floor(6)),
    ("output", Floor(5)),
    ("timers", Floor(5)),
    ("input", Floor(4)),
    ("config", Floor(4)),
    ("reconfiguration", Floor(4)),
    // What servers say, what they are told, and why they do what they do.
    ("durable", Floor(4)),
    ("membership", Floor(3)),
    ("membership::binding", Page),
    ("membership::error", Floor(2)),
    ("membership::member", Floor(1)),
    ("message", Floor(3)),
    ("report", Floor(3)),
    // Values made of values.
    ("lease", Floor(2)),
    ("quorum", Floor(2)),
    ("txn", Floor(2)),
    ("vote", Floor(2)),
    ("ballot", Floor(2)),
    // Values.
    ("address", Floor(1)),
    ("id", Floor(1)),
    ("planted", Floor(1)),
    ("properties", Floor(1)),
    ("rng", Floor(1)),
    ("time", Floor(1)),
    ("zxid", Floor(1)),
    // Bytes: machines never enter.
    ("wire", Wing(4)),
    ("wire::letter", Floor(4)),
    ("wire::probe", Floor(5)),
    ("wire::election", Floor(3)),
    ("wire::quorum", Floor(3)),
    ("wire::error", Floor(2)),
    ("wire::limits", Floor(1)),
    ("wire::primitive", Floor(1)),
    // Elections on an external ensemble: they know values, and no ensemble of ours.
    ("recipe", Wing(2)),
    ("recipe::lease", Floor(3)),
    ("recipe::lease::answers", Page),
    ("recipe::lease::boundary", Floor(2)),
    ("recipe::lease::record", Floor(1)),
    ("recipe::offer", Floor(3)),
    ("recipe::offer::answers", Page),
    ("recipe::offer::boundary", Floor(2)),
    ("recipe::offer::row", Floor(2)),
    ("recipe::offer::names", Floor(1)),
    ("recipe::pace", Floor(1)),
    ("recipe::tenure", Floor(2)),
    ("recipe::terms", Floor(1)),
];

/// Uses that the plan forbids and that stand for now. One that is no longer there fails the test.
const STANDING: &[(&str, &str)] = &[];

#[test]
fn the_core_keeps_its_floors() {
    let sources = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(sources.len() > 30, "only {} sources found", sources.len());
    let survey = survey(&sources, PLAN, STANDING);
    assert!(survey.uses > 200, "only {} uses found", survey.uses);
    assert!(survey.complaints.is_empty(), "\n{}\n", survey.complaints.join("\n"));
}

/// One use of a module by another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    line: usize,
    /// As written.
    text: String,
    /// As a path from the root.
    path: Vec<String>,
}

#[derive(Debug, Default)]
struct Survey {
    uses: usize,
    complaints: Vec<String>,
}

/// A module as a path from the root; the root is empty.
type Module = Vec<String>;

/// All sources under a folder, by module.
fn read(root: &Path) -> BTreeMap<Module, String> {
    let mut sources = BTreeMap::new();
    let mut folders = vec![(root.to_owned(), Module::new())];
    while let Some((folder, module)) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let mut module = module.clone();
            if path.is_dir() {
                module.push(stem.to_owned());
                folders.push((path, module));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                if !["lib", "mod"].contains(&stem) {
                    module.push(stem.to_owned());
                }
                let before = sources.insert(module, fs::read_to_string(&path).unwrap());
                assert!(before.is_none(), "{} is a second source of its module", path.display());
            }
        }
    }
    sources
}

/// Everything that is wrong with these sources.
fn survey(
    sources: &BTreeMap<Module, String>,
    plan: &[(&str, Place)],
    standing: &[(&str, &str)],
) -> Survey {
    let mut survey = Survey::default();
    let mut edges = BTreeMap::<String, BTreeSet<String>>::new();
    let mut idle = standing.to_vec();
    for (module, source) in sources {
        let name = module.join("::");
        if !module.is_empty() && place(plan, &name).is_none() {
            survey.complaints.push(format!("{name} has no place in the plan"));
            continue;
        }
        let (uses, tricks) = uses(module, source);
        survey.uses += uses.len();
        let at = |line: usize, what: &str| {
            format!("{}, line {line}: {what}", if name.is_empty() { "the root" } else { &name })
        };
        let own = book(plan, &name);
        survey.complaints.extend(tricks.iter().map(|(line, what)| at(*line, what)));
        // The root documents and re-exports; it may name everything.
        if module.is_empty() {
            continue;
        }
        for Use { line, text, path } in uses {
            let planned = planned(plan, &path);
            let target = book(plan, &planned);
            if standing.contains(&(own, target)) {
                idle.retain(|allowed| *allowed != (own, target));
                continue;
            }
            if target != own && !target.is_empty() {
                edges.entry(own.to_owned()).or_default().insert(target.to_owned());
            }
            if let Err(why) = judge(plan, own, target) {
                survey.complaints.push(at(line, &format!("`{text}`: {why}")));
            }
        }
    }
    survey
        .complaints
        .extend(circle(&edges).map(|names| format!("a circle: {}", names.join(" → "))));
    let idle = idle.iter().map(|(from, to)| format!("{from} no longer uses {to}: strike it out"));
    survey.complaints.extend(idle);
    survey
}

fn place(plan: &[(&str, Place)], name: &str) -> Option<Place> {
    plan.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// The module that a page belongs to; any other is its own.
fn book<'a>(plan: &[(&str, Place)], name: &'a str) -> &'a str {
    match place(plan, name) {
        Some(Page) => name.rsplit_once("::").map_or(name, |(above, _)| above),
        Some(Floor(_) | Wing(_)) | None => name,
    }
}

/// The module in which a path ends: as much of it as the plan knows.
fn planned(plan: &[(&str, Place)], path: &[String]) -> String {
    let known = (0..=path.len()).rev().map(|length| path[..length].join("::"));
    known.into_iter().find(|name| place(plan, name).is_some()).unwrap_or_default()
}

/// Whether one module may use another.
fn judge(plan: &[(&str, Place)], from: &str, to: &str) -> Result<(), String> {
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
fn circle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<&str>> {
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

/// Every path of a source that begins with `crate`, `super` or `self`, and what would hide one.
fn uses(module: &[String], source: &str) -> (Vec<Use>, Vec<(usize, &'static str)>) {
    let tokens: TokenStream = source.parse().unwrap();
    let mut reader = Reader { module: module.to_vec(), ..Reader::default() };
    reader.read(tokens);
    (reader.uses, reader.tricks)
}

#[derive(Debug, Default)]
struct Reader {
    /// The file, and the modules inside it around the present token.
    module: Module,
    uses: Vec<Use>,
    tricks: Vec<(usize, &'static str)>,
}

impl Reader {
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut i = 0;
        while i < tokens.len() {
            let rest = &tokens[i..];
            let line = rest[0].span().start().line;
            i += match rest {
                // Whom an item is visible to says nothing about what it uses.
                [TokenTree::Ident(word), TokenTree::Group(group), ..]
                    if word == "pub" && group.delimiter() == Delimiter::Parenthesis =>
                {
                    let names: Vec<_> = group.stream().into_iter().collect();
                    // `pub (crate::a::B)`, the field of a tuple, is a type like any other.
                    let restricts = names.len() == 1
                        || matches!(names.first(), Some(TokenTree::Ident(word)) if word == "in");
                    if restricts { 2 } else { 1 }
                }
                [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Group(body), ..]
                    if word == "mod" && body.delimiter() == Delimiter::Brace =>
                {
                    self.module.push(name.to_string());
                    self.read(body.stream());
                    self.module.pop();
                    3
                }
                [TokenTree::Ident(word), TokenTree::Punct(bang), ..]
                    if word == "include" && bang.as_char() == '!' =>
                {
                    self.tricks.push((line, "`include!` hides what it names"));
                    2
                }
                [TokenTree::Ident(word), TokenTree::Ident(_), ..] if word == "extern" => 2,
                [TokenTree::Punct(hash), TokenTree::Group(group), ..]
                    if hash.as_char() == '#' && names_a_file(&group.stream()) =>
                {
                    self.tricks.push((line, "`#[path]` hides where a module stands"));
                    2
                }
                [TokenTree::Ident(first), ..] => match self.begin(&first.to_string()) {
                    Some(start) if is_path(&rest[1..]) => {
                        1 + self.path(line, first.to_string(), start, &rest[1..])
                    }
                    // `use crate as house` or `use super as upstairs`; `self` alone is a value.
                    Some(_) if first == "crate" || first == "super" => {
                        self.tricks.push((line, "a module under another name hides what it names"));
                        1
                    }
                    Some(_) if is_word(rest.get(1), "as") && is_item(&tokens[..i], "use") => {
                        self.tricks.push((line, "a module under another name hides what it names"));
                        1
                    }
                    Some(_) if is_item(&tokens[..i], "crate") => {
                        self.tricks.push((line, "a crate that names itself hides what it names"));
                        1
                    }
                    _ => 1,
                },
                [TokenTree::Group(group), ..] => {
                    self.read(group.stream());
                    1
                }
                _ => 1,
            };
        }
    }

    /// Where a path goes that begins with this word.
    fn begin(&self, word: &str) -> Option<Module> {
        match word {
            "crate" => Some(Module::new()),
            "self" => Some(self.module.clone()),
            "super" => Some(up(self.module.clone())),
            _ => None,
        }
    }

    /// Reads on after the beginning of a path, at its `::`; tells how many tokens it took.
    fn path(&mut self, line: usize, text: String, path: Module, tokens: &[TokenTree]) -> usize {
        let (mut text, mut path, mut taken) = (text, path, 0);
        while is_path(&tokens[taken..]) {
            text.push_str("::");
            match &tokens[taken + 2..] {
                [TokenTree::Ident(name), ..] => {
                    let name = name.to_string();
                    text.push_str(&name);
                    match &*name {
                        "super" => path = up(path),
                        "self" => {}
                        _ => path.push(name),
                    }
                    taken += 3;
                }
                [TokenTree::Group(branches), ..] if branches.delimiter() == Delimiter::Brace => {
                    let branches: Vec<_> = branches.stream().into_iter().collect();
                    for branch in branches.split(|token| is_punct(Some(token), ',')) {
                        let [first, rest @ ..] = branch else { continue };
                        let word = first.to_string();
                        let mut path = path.clone();
                        match &*word {
                            "self" | "*" => {}
                            "super" => path = up(path),
                            _ => path.push(word.clone()),
                        }
                        self.path(first.span().start().line, format!("{text}{word}"), path, rest);
                    }
                    return taken + 3;
                }
                // `*`, or generics of a macro's making: the path is known as far as it matters.
                _ => {
                    text.push('*');
                    taken += 2;
                    break;
                }
            }
        }
        self.uses.push(Use { line, text, path });
        taken
    }
}

/// The module above; above the root there is none, and the compiler says so.
fn up(mut module: Module) -> Module {
    module.pop();
    module
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_word(token: Option<&TokenTree>, wanted: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(word)) if word == wanted)
}

/// Whether the last token before this one is that keyword.
fn is_item(before: &[TokenTree], keyword: &str) -> bool {
    is_word(before.last(), keyword)
}

/// Whether `::` comes next.
fn is_path(tokens: &[TokenTree]) -> bool {
    matches!(
        tokens,
        [TokenTree::Punct(first), TokenTree::Punct(second), ..]
            if first.as_char() == ':' && first.spacing() == Spacing::Joint && second.as_char() == ':'
    )
}

fn names_a_file(attribute: &TokenStream) -> bool {
    let mut tokens = attribute.clone().into_iter();
    is_word(tokens.next().as_ref(), "path") && is_punct(tokens.next().as_ref(), '=')
}

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
        caught("election", source, "up, from floor 9 to floor 11");
    }
    caught("election", "\n\nfn f() { crate::peer::Peer::new() }", "election, line 3");
    caught("election", "use super::peer::Peer;", "up, from floor 9 to floor 11");
    caught("election", "mod tests { use super::super::peer::Peer; }", "up, from");
    caught("election", "mod tests { use super::{super::peer::Peer}; }", "up, from");
    caught("leader::discovery", "use super::super::peer::Peer;", "up, from floor 10 to floor 11");
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
    caught("election", "use crate::peer::turns::T;", "up, from floor 9 to floor 11");
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
    caught("wire::quorum", "use crate::output::Output;", "up, from floor 4 to floor 5");
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

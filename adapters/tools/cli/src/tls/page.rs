//! What was found in stores, as text and as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::check::{Found, Shown};
use super::settings::{Peers, Settings, Store, Stores};
use crate::utc::utc_of_seconds;

/// Stores, and what was found in them.
pub(super) type Looked<'a> = (&'a Stores, Found);

/// Prints it; `now` in seconds since 1970.
pub(super) fn print(settings: &Settings, all: &[Looked<'_>], now: i64, as_json: bool) {
    let text =
        if as_json { format!("{}\n", json(settings, all)) } else { text(settings, all, now) };
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(text.as_bytes()));
}

fn text(settings: &Settings, all: &[Looked<'_>], now: i64) -> String {
    let mut out = format!("{}", settings.file.display());
    if let Some(id) = settings.own {
        out += &format!(", server.{}", id.0);
    }
    out += "\n";
    for (stores, found) in all {
        out += &stores_text(settings, stores, found, now);
    }
    out += "\n";
    for notice in all.iter().flat_map(|(_, found)| &found.notices) {
        out += &format!("notice: {notice}\n");
    }
    for problem in all.iter().flat_map(|(_, found)| &found.problems) {
        out += &format!("error: {problem}\n");
    }
    out += match is_well(all) {
        true => "the server can use these stores\n",
        false => "the server cannot use these stores as they are\n",
    };
    out
}

/// Whether all can be used.
pub(super) fn is_well(all: &[Looked<'_>]) -> bool {
    all.iter().all(|(_, found)| found.is_well())
}

fn stores_text(settings: &Settings, stores: &Stores, found: &Found, now: i64) -> String {
    let whom = match stores.peers {
        Peers::Servers => "",
        Peers::Clients => " for clients",
        Peers::Scrapers => " for scrapers",
    };
    let mut out = String::new();
    if let (Some(store), Some((alias, chain))) = (&stores.key_store, &found.own) {
        let alias = alias.as_ref().map(|alias| format!(", key \"{alias}\"")).unwrap_or_default();
        out += &format!("\nkey store{whom} {}{alias}\n", store.file.display());
        for certificate in chain {
            out += &certificate_text(settings, certificate, now);
        }
    }
    if let (Some(store), false) = (&stores.trust_store, found.trusted.is_empty()) {
        out += &format!("\ntrust store{whom} {}\n", store.file.display());
        for certificate in &found.trusted {
            out += &certificate_text(settings, certificate, now);
        }
    }
    out
}

fn certificate_text(settings: &Settings, shown: &Shown, now: i64) -> String {
    let mut out =
        format!("  {}\n", if shown.subject.is_empty() { "(no subject)" } else { &shown.subject });
    // Where there are others, the common name is passed over; of an authority it is not asked for.
    let counts = shown.dns_names.is_empty() && shown.addresses.is_empty() && !shown.uses.issue;
    let mut say = |what: &str, value: String| {
        if !value.is_empty() {
            out += &format!("    {what:8} {value}\n");
        }
    };
    say("names", names(shown).join(", "));
    if let Some(name) = shown.common_name.as_ref().filter(|_| counts) {
        say("names", format!("{name} (its common name)"));
    }
    let own = shown.issuer == shown.subject;
    say("issuer", if own { "itself".to_owned() } else { shown.issuer.clone() });
    let days = (shown.to - now).div_euclid(86_400);
    let left = match days {
        i64::MIN..=-1 => "has ended".to_owned(),
        0 => "within a day".to_owned(),
        1 => "in 1 day".to_owned(),
        days => format!("in {days} days"),
    };
    say("ends", format!("{}, {left}", utc_of_seconds(shown.to)));
    say("key", shown.key.clone());
    say("uses", uses(shown).join(", "));
    let members: Vec<_> = shown
        .members
        .iter()
        .map(|id| {
            let own = if settings.own == Some(*id) { " (this server)" } else { "" };
            format!("server.{}{own}", id.0)
        })
        .collect();
    say("for", members.join(", "));
    out
}

fn names(shown: &Shown) -> Vec<String> {
    let addresses = shown.addresses.iter().map(ToString::to_string);
    shown.dns_names.iter().cloned().chain(addresses).chain(shown.uris.iter().cloned()).collect()
}

fn uses(shown: &Shown) -> Vec<&'static str> {
    let uses = shown.uses;
    // An authority that says nothing might do all; it is not for links.
    if uses.issue && !uses.sign {
        return vec!["issue"];
    }
    let all =
        [("accept", uses.accept), ("dial", uses.dial), ("sign", uses.sign), ("issue", uses.issue)];
    all.into_iter().filter(|(_, may)| *may).map(|(name, _)| name).collect()
}

fn json(settings: &Settings, all: &[Looked<'_>]) -> Value {
    let strings = |of: fn(&Found) -> &Vec<String>| -> Vec<&String> {
        all.iter().flat_map(|(_, found)| of(found)).collect()
    };
    let mut whole = json!({
        "file": settings.file.display().to_string(),
        "server": settings.own.map(|id| id.0),
        "key_store": Value::Null,
        "trust_store": Value::Null,
        "notices": strings(|found| &found.notices),
        "errors": strings(|found| &found.problems),
        "ok": is_well(all),
    });
    for (stores, found) in all {
        let both = stores_json(stores, found);
        match stores.peers {
            Peers::Servers => both.into_iter().for_each(|(key, value)| whole[key] = value),
            Peers::Clients => whole["clients"] = both.into_iter().collect(),
            Peers::Scrapers => whole["metrics"] = both.into_iter().collect(),
        }
    }
    whole
}

fn stores_json(stores: &Stores, found: &Found) -> [(&'static str, Value); 2] {
    let store =
        |store: &Option<Store>| store.as_ref().map(|store| store.file.display().to_string());
    let (alias, chain) = match &found.own {
        Some((alias, chain)) => (alias.clone(), chain.iter().map(certificate_json).collect()),
        None => (None, Vec::new()),
    };
    let trusted = found.trusted.iter().map(certificate_json).collect::<Vec<_>>();
    [
        ("key_store", json!({ "file": store(&stores.key_store), "alias": alias, "chain": chain })),
        ("trust_store", json!({ "file": store(&stores.trust_store), "certificates": trusted })),
    ]
}

fn certificate_json(shown: &Shown) -> Value {
    json!({
        "subject": shown.subject,
        "issuer": shown.issuer,
        "dns_names": shown.dns_names,
        "addresses": shown.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "uris": shown.uris,
        "key": shown.key,
        "not_before": utc_of_seconds(shown.from),
        "not_after": utc_of_seconds(shown.to),
        "uses": uses(shown),
        "members": shown.members.iter().map(|id| id.0).collect::<Vec<_>>(),
    })
}

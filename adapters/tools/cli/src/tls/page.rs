//! What was found in stores, as text and as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::check::{Found, Shown};
use super::settings::{Settings, Store};
use crate::utc::utc_of_seconds;

/// Prints it; `now` in seconds since 1970.
pub(super) fn print(settings: &Settings, found: &Found, now: i64, as_json: bool) {
    let text =
        if as_json { format!("{}\n", json(settings, found)) } else { text(settings, found, now) };
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(text.as_bytes()));
}

fn text(settings: &Settings, found: &Found, now: i64) -> String {
    let mut out = format!("{}", settings.file.display());
    if let Some(id) = settings.own {
        out += &format!(", server.{}", id.0);
    }
    out += "\n";
    if let (Some(store), Some((alias, chain))) = (&settings.key_store, &found.own) {
        let alias = alias.as_ref().map(|alias| format!(", key \"{alias}\"")).unwrap_or_default();
        out += &format!("\nkey store {}{alias}\n", store.file.display());
        for certificate in chain {
            out += &certificate_text(settings, certificate, now);
        }
    }
    if let (Some(store), false) = (&settings.trust_store, found.trusted.is_empty()) {
        out += &format!("\ntrust store {}\n", store.file.display());
        for certificate in &found.trusted {
            out += &certificate_text(settings, certificate, now);
        }
    }
    out += "\n";
    for notice in &found.notices {
        out += &format!("notice: {notice}\n");
    }
    for problem in &found.problems {
        out += &format!("error: {problem}\n");
    }
    out += match found.is_well() {
        true => "the server can use these stores\n",
        false => "the server cannot use these stores as they are\n",
    };
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

fn json(settings: &Settings, found: &Found) -> Value {
    let store =
        |store: &Option<Store>| store.as_ref().map(|store| store.file.display().to_string());
    let (alias, chain) = match &found.own {
        Some((alias, chain)) => (alias.clone(), chain.iter().map(certificate_json).collect()),
        None => (None, Vec::new()),
    };
    json!({
        "file": settings.file.display().to_string(),
        "server": settings.own.map(|id| id.0),
        "key_store": { "file": store(&settings.key_store), "alias": alias, "chain": chain },
        "trust_store": {
            "file": store(&settings.trust_store),
            "certificates": found.trusted.iter().map(certificate_json).collect::<Vec<_>>(),
        },
        "notices": found.notices,
        "errors": found.problems,
        "ok": found.is_well(),
    })
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

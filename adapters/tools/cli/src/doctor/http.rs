//! Admin servers, asked by HTTP: ZooKeeper's commands, and what servers of ours tell of whom they cannot dial.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use quorate_doctor::{Silence, Told, Wearing, Words};
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::id::ServerId;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;
use tokio::time::timeout;

use crate::address::{AddressError, address};
use crate::peer_tls::PeerTls;
use crate::word::{self, WordError};

/// An admin server, and the path that its commands stand below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Admin {
    pub(super) at: HostPort,
    pub(super) commands: String,
    /// Whether it speaks within TLS alone.
    pub(super) secure: bool,
}

/// `2=http://zk2:8080` or `2=https://zk2:8080`, or with the path of its commands behind it.
pub(super) fn member(text: &str) -> Result<(ServerId, Admin), MemberError> {
    let (id, url) = text.split_once('=').ok_or(MemberError::Form)?;
    let id = id.parse().ok().filter(|id| ServerId::CONFIGURABLE.contains(id));
    let id = ServerId(id.ok_or(MemberError::Form)?);
    let secure = url.starts_with("https://");
    let rest = url.strip_prefix(if secure { "https://" } else { "http://" });
    let rest = rest.ok_or(MemberError::Form)?;
    let (host, path) = match rest.split_once('/') {
        Some((host, path)) if !path.is_empty() => (host, format!("/{path}")),
        Some((host, _)) => (host, COMMANDS.to_owned()),
        None => (rest, COMMANDS.to_owned()),
    };
    if path.contains(|character: char| character.is_whitespace() || character.is_control()) {
        return Err(MemberError::Form);
    }
    let commands = path.trim_end_matches('/').to_owned();
    Ok((id, Admin { at: address(host)?, commands, secure }))
}

/// A member's admin server that is none.
#[derive(Debug, Error)]
pub(super) enum MemberError {
    #[error("write ID=http://HOST:PORT or ID=https://HOST:PORT, with an id from 1 to 255")]
    Form,
    #[error(transparent)]
    Address(#[from] AddressError),
}

/// What it tells of its server, and which address it has if that came without TLS.
pub(super) async fn ask(
    of: Admin,
    patience: Duration,
    tls: Option<PeerTls>,
) -> Result<(Told, Option<IpAddr>), Silence> {
    let Admin { at, commands, secure } = of;
    let tls = tls.filter(|_| secure);
    if secure && tls.is_none() {
        return Err(Silence::Tls);
    }
    let pages = [
        format!("{commands}/monitor"),
        format!("{commands}/server_stats"),
        format!("{commands}/system_properties"),
        "/quorate/reach".to_owned(),
        "/quorate/status".to_owned(),
    ];
    let [monitor, stats, properties, reach, status] = pages.map(|path| {
        let (at, tls) = (at.clone(), tls.clone());
        tokio::spawn(async move { page(&at, &path, patience, tls.as_ref()).await })
    });
    let ended = |error: tokio::task::JoinError| Silence::Other(error.to_string());
    let monitor = monitor.await.map_err(ended)?;
    let stats = stats.await.map_err(ended)?;
    let properties = properties.await.map_err(ended)?.map(|(page, _)| page).unwrap_or_default();
    // Java has no such pages.
    let reach = reach.await.map_err(ended)?.map(|(page, _)| page).unwrap_or_default();
    let status = status.await.map_err(ended)?.map(|(page, _)| page).unwrap_or_default();
    let (monitor, stats, from) = match (monitor, stats) {
        (Err(silence), Err(_)) => return Err(silence),
        (Ok((monitor, from)), stats) => {
            (monitor, stats.map(|(page, _)| page).unwrap_or_default(), from)
        }
        (Err(_), Ok((stats, from))) => (Vec::new(), stats, from),
    };
    let words = Words::of_commands(&monitor, &stats);
    match words.strange {
        Some(strange) => Err(Silence::Strange(format!("{strange:?}"))),
        None => {
            let (unreached, wearing) = (unreached(&reach), wearing(&status));
            let secrets = secrets(&properties);
            Ok((Told { words, unreached, wearing, secrets }, from))
        }
    }
}

/// The body of a page, and which address it came from if it came without TLS.
async fn page(
    at: &HostPort,
    path: &str,
    patience: Duration,
    tls: Option<&PeerTls>,
) -> Result<(Vec<u8>, Option<IpAddr>), Silence> {
    // As long as HTTP is of version 1.0, an answer ends with its connection.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {at}\r\nAccept: application/json\r\n\r\n");
    let (answer, from) = match tls {
        Some(tls) => {
            let answer = timeout(patience, through(at, &request, tls)).await;
            (answer.unwrap_or(Err(Silence::NoAnswer))?, None)
        }
        None => {
            let answer = word::ask_from(at, &request, patience).await;
            let (answer, from) = answer.map_err(|error| silence_of(&error))?;
            (answer, Some(from))
        }
    };
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(head) = head.filter(|_| answer.starts_with(b"HTTP/1.")) else {
        let begin = String::from_utf8_lossy(answer.get(..80).unwrap_or(&answer)).into_owned();
        return Err(match begin.as_str() {
            "" => Silence::HungUp,
            begin => Silence::Strange(format!("{begin:?}")),
        });
    };
    Ok((answer.get(head + 4..).unwrap_or_default().to_vec(), from))
}

/// Asks through TLS, and only if who answers is trusted.
async fn through(at: &HostPort, request: &str, tls: &PeerTls) -> Result<Vec<u8>, Silence> {
    let stream = word::connect(at).await.map_err(|error| silence_of(&error))?;
    let (stream, shown) = tls.shake(stream).await.map_err(Silence::Shut)?;
    tls.judge(&shown).map_err(Silence::Shut)?;
    word::say(stream, request).await.map_err(|error| Silence::of(&error))
}

/// The names of the secrets that a page of properties shows. Their values end here.
fn secrets(page: &[u8]) -> Vec<String> {
    let Ok(properties) = serde_json::from_slice::<BTreeMap<String, Value>>(page) else {
        return Vec::new();
    };
    let is_secret = |name: &str, value: &Value| {
        let name = name.to_ascii_lowercase();
        let names_one =
            ["password", "passwd", "secret", "token"].iter().any(|part| name.contains(part));
        let says_it = value.as_str().is_some_and(|value| !value.is_empty() && value != REDACTED);
        names_one && says_it && !name.ends_with("path") && !name.ends_with("file")
    };
    let names = properties.iter().filter(|(name, value)| is_secret(name, value));
    names.map(|(name, _)| name.chars().take(NAME_MAX).collect()).take(SECRETS_MAX).collect()
}

/// What servers of ours show in the place of a secret.
const REDACTED: &str = "***";
/// So many secrets are named, by so many characters.
const SECRETS_MAX: usize = 10;
const NAME_MAX: usize = 80;

/// Why a connection said nothing.
pub(super) fn silence_of(error: &WordError) -> Silence {
    match error {
        WordError::Resolve { source, .. } => Silence::Unresolved(source.to_string()),
        WordError::Connect(error) | WordError::Broken(error) => Silence::of(error),
        WordError::ConnectLate(_) => Silence::Filtered,
        WordError::Late(_) => Silence::NoAnswer,
    }
}

/// To whom a server has no link for elections, and why its last dial to each came to nothing.
fn unreached(page: &[u8]) -> Vec<(ServerId, String)> {
    let Ok(reach) = serde_json::from_slice::<Reach>(page) else { return Vec::new() };
    let members = reach.members.into_iter().filter(|member| !member.linked).filter_map(|member| {
        let dials = member.dials.into_iter().filter(|dial| dial.plane == "election");
        let failure = dials.filter_map(|dial| dial.failure).next_back()?;
        Some((ServerId(member.id), failure))
    });
    members.collect()
}

/// The links whose keys wear.
fn wearing(page: &[u8]) -> Vec<Wearing> {
    let Ok(status) = serde_json::from_slice::<Status>(page) else { return Vec::new() };
    let links = status.wearing_links.into_iter().take(LINKS_MAX).filter_map(|link| {
        let plane = ["election", "quorum"].into_iter().find(|plane| *plane == link.plane)?;
        Some(Wearing {
            peer: ServerId(link.peer?),
            plane,
            records: link.records,
            records_max: link.records_max,
            age: Duration::from_millis(link.up_for_ms),
        })
    });
    links.collect()
}

/// So many links are looked at: two with each member there may be.
const LINKS_MAX: usize = 512;

/// `/quorate/status`, as far as it is read here.
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    wearing_links: Vec<WearingLink>,
}

#[derive(Deserialize)]
struct WearingLink {
    plane: String,
    peer: Option<i64>,
    records: u64,
    records_max: u64,
    up_for_ms: u64,
}

/// `/quorate/reach`, as far as it is read here.
#[derive(Deserialize)]
struct Reach {
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    id: i64,
    linked: bool,
    #[serde(default)]
    dials: Vec<Dial>,
}

#[derive(Deserialize)]
struct Dial {
    plane: String,
    failure: Option<String>,
}

/// Where commands are unless `admin.commandURL` says otherwise.
const COMMANDS: &str = "/commands";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_an_id_and_where_its_admin_server_is() {
        let (id, admin) = member("2=http://zk2:8080").unwrap();
        assert_eq!((id, admin.at.port, &*admin.commands), (ServerId(2), 8080, "/commands"));
        let (_, admin) = member("255=http://[::1]:80/zk/").unwrap();
        assert_eq!((&*admin.at.host, &*admin.commands), ("::1", "/zk"));
        assert!(!admin.secure && member("1=https://a:1").unwrap().1.secure);
        for wrong in [
            "zk2:8080",
            "0=http://a:1",
            "256=http://a:1",
            "1=ftp://a:1",
            "1=http://a",
            "1=http://a:1/b c",
        ] {
            assert!(member(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn of_properties_the_names_of_secrets_are_kept_and_no_value() {
        let page = br#"{"java.version":"17","zookeeper.ssl.keyStore.password":"hunter2","ssl.passwordPath":"/p",
            "a.secret":"***","b.token":"","command":"system_properties","error":null}"#;
        assert_eq!(secrets(page), ["zookeeper.ssl.keyStore.password"]);
        assert_eq!(secrets(b"<html>"), [""; 0]);
    }

    #[test]
    fn links_that_wear_are_read_where_it_is_said_with_whom() {
        let page = br#"{"schema":1,"id":1,"wearing_links":[
            {"plane":"quorum","peer":3,"records":7,"records_max":16777216,"up_for_ms":61000},
            {"plane":"quorum","records":7,"records_max":16777216,"up_for_ms":61000},
            {"plane":"other","peer":3,"records":7,"records_max":16777216,"up_for_ms":61000}]}"#;
        let [link] = &wearing(page)[..] else { panic!() };
        assert_eq!((link.peer, link.plane, link.records), (ServerId(3), "quorum", 7));
        assert_eq!((link.records_max, link.age.as_secs()), (1 << 24, 61));
        assert_eq!(wearing(br#"{"schema":1,"id":1}"#), []);
        assert_eq!(wearing(b"<html>"), []);
    }

    #[test]
    fn who_is_linked_or_was_dialled_is_reached() {
        let page = br#"{"schema":1,"members":[
            {"id":1,"linked":true,"dials":[{"plane":"election","address":"a:1","ms_ago":1,"connected":false,"failure":"x"}]},
            {"id":2,"linked":false,"dials":[{"plane":"election","address":"a:1","ms_ago":1,"connected":false,"failure":"refused"}]},
            {"id":3,"linked":false,"dials":[{"plane":"quorum","address":"a:1","ms_ago":1,"connected":false,"failure":"x"},
                {"plane":"election","address":"a:1","ms_ago":1,"connected":true}]},
            {"id":4,"linked":false}]}"#;
        assert_eq!(unreached(page), [(ServerId(2), "refused".to_owned())]);
        assert_eq!(unreached(b"<html>"), []);
    }
}

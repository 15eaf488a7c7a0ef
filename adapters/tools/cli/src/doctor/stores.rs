//! The stores of keys that the files of this machine name, read as their servers would, and who may read their secrets.
//!
//! What is in a store goes nowhere: of a certificate its subject, its times and its names are taken, of a secret nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use quorate_doctor::{ConfigFile, Distrust, Held, Readable, Served, Stores};
use quorate_keystore::rustls_pki_types::CertificateDer;
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::Membership;

use crate::peer_tls::distrust;
use crate::tls::{self, Found, Shown};

/// A file of this machine, and what it names.
pub(super) struct Named {
    file: PathBuf,
    id: Option<ServerId>,
    links: bool,
    secrets: Vec<(String, PathBuf)>,
}

/// What the files of servers of this machine name.
pub(super) fn named(files: &[ConfigFile]) -> Vec<Named> {
    let here = files.iter().filter(|file| file.is_at_home);
    here.map(|file| {
        let value = |key: &str| file.setting(key).map(|setting| setting.value.trim().to_owned());
        let is_true = |key| value(key).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let secrets =
            SECRETS.iter().filter_map(|key| Some(((*key).to_owned(), value(key)?.into())));
        Named {
            file: file.path.clone(),
            id: file.id,
            links: is_true("sslQuorum") || is_true("portUnification"),
            secrets: secrets.collect(),
        }
    })
    .collect()
}

/// Reads them; `now` in seconds since 1970. Blocks.
pub(super) fn look(named: &[Named], now: i64) -> (Vec<Stores>, Vec<Readable>) {
    let links = named.iter().filter(|named| named.links);
    let stores = links.map(|named| stores(&named.file, named.id, now)).collect();
    let readable = named.iter().flat_map(|Named { file, id, secrets, .. }| {
        secrets.iter().filter_map(move |(key, path)| {
            let mode = fs::metadata(path).ok()?.mode() & 0o777;
            let (file, key, path) = (file.clone(), key.clone(), path.clone());
            (mode & 0o004 != 0).then_some(Readable { id: *id, file, key, path, mode })
        })
    });
    (stores, readable.collect())
}

fn stores(file: &Path, id: Option<ServerId>, now: i64) -> Stores {
    let stores = Stores { id, file: file.to_owned(), ..Stores::default() };
    match tls::read(file) {
        // That the file cannot be read is said of the file.
        Err(_) => stores,
        Ok(settings) => {
            let Found { own, trusted, unread, java_cannot, .. } = Found::of(&settings, now);
            let own = own.map_or(Vec::new(), |(_, chain)| held(chain));
            Stores { problems: unread, java_cannot, own, trusted: held(trusted), ..stores }
        }
    }
}

fn held(shown: Vec<Shown>) -> Vec<Held> {
    let held = |Shown { subject, from, to, uses, members, by_wildcard, weakness, der, .. }| Held {
        subject,
        from,
        to,
        dials: uses.dial,
        accepts: uses.accept,
        members,
        by_wildcard,
        weakness,
        der,
    };
    shown.into_iter().map(held).collect()
}

/// A member, the port at which it showed certificates, and these, in DER.
pub(super) type Handshake = (ServerId, HostPort, Vec<Vec<u8>>);

/// What members showed in handshakes, read for the members that there are.
pub(super) fn served(shown: Vec<Handshake>, membership: Option<&Membership>) -> Vec<Served> {
    let members = membership.map_or(&[] as &[_], |membership| membership.members());
    let served = shown.into_iter().map(|(id, address, chain)| {
        let chain: Vec<_> = chain.into_iter().map(CertificateDer::from).collect();
        Served { id, address, chain: held(tls::shown(&chain, members)) }
    });
    served.collect()
}

/// Which certificates of members, in their stores and as they showed them, would not be trusted by which stores here.
pub(super) fn distrusted(stores: &[Stores], served: &[Served]) -> Vec<Distrust> {
    let ders =
        |held: &[Held]| -> Vec<Vec<u8>> { held.iter().map(|held| held.der.clone()).collect() };
    let kept =
        stores.iter().filter_map(|of| Some((of.id?, of.file.display().to_string(), &of.own)));
    let mut chains: Vec<_> = kept.filter(|(_, _, own)| !own.is_empty()).collect();
    for served in served {
        let is_kept = |(id, _, own): &(ServerId, String, &Vec<Held>)| {
            *id == served.id && ders(own).first() == ders(&served.chain).first()
        };
        if !chains.iter().any(is_kept) {
            chains.push((served.id, served.address.to_string(), &served.chain));
        }
    }
    let mut distrusted = Vec::new();
    for (of, seen, chain) in chains {
        for by in stores.iter().filter(|by| by.id != Some(of) && !by.trusted.is_empty()) {
            let Some(id) = by.id else { continue };
            if let Some(why) = distrust(&ders(&by.trusted), &ders(chain)) {
                let (seen, file) = (seen.clone(), by.file.clone());
                distrusted.push(Distrust { of, seen, by: id, file, why });
            }
        }
    }
    distrusted
}

/// Settings that name a file with a secret.
const SECRETS: [&str; 8] = [
    "ssl.quorum.keyStore.location",
    "ssl.quorum.keyStore.passwordPath",
    "ssl.quorum.trustStore.passwordPath",
    "ssl.keyStore.location",
    "ssl.keyStore.passwordPath",
    "ssl.trustStore.passwordPath",
    "quorate.jaas.file",
    "java.security.auth.login.config",
];

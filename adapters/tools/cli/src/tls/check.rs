//! What the stores of a server hold, and what is wrong with it.

use std::fs;
use std::net::IpAddr;

use quorate_keystore::rustls_pki_types::CertificateDer;
use quorate_keystore::{
    Certificate, KeyStore, Kind, Named, Notice, Password, StoreError, TrustStore, Uses, key_store,
    trust_store, usable_by_a_member,
};
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::Member;
use thiserror::Error;

use super::settings::{Peers, Settings, Store, Stores};

/// All that was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its alias, and the certificates, that of the key first.
    pub(crate) own: Option<(Option<String>, Vec<Shown>)>,
    pub(crate) trusted: Vec<Shown>,
    /// With the file that they are about.
    pub(super) notices: Vec<String>,
    pub(super) problems: Vec<String>,
    /// Those for which a store could not be read at all.
    pub(crate) unread: Vec<String>,
    /// Those notices that say that a server in Java could not read it.
    pub(crate) java_cannot: Vec<String>,
}

/// One certificate.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) subject: String,
    pub(super) issuer: String,
    pub(super) common_name: Option<String>,
    pub(super) dns_names: Vec<String>,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) uris: Vec<String>,
    pub(super) key: String,
    /// In seconds since 1970.
    pub(crate) from: i64,
    /// In seconds since 1970.
    pub(crate) to: i64,
    pub(crate) uses: Uses,
    /// The members that it names.
    pub(crate) members: Vec<ServerId>,
    /// Those of them that it names by a wildcard alone.
    pub(crate) by_wildcard: Vec<ServerId>,
    /// What is too weak about it.
    pub(crate) weakness: Option<String>,
    /// It itself.
    pub(crate) der: Vec<u8>,
}

/// What reads a store: its name, its bytes, its kind, and its password.
type Reader<T> = fn(&str, &[u8], Option<Kind>, Option<&Password>) -> Result<T, StoreError>;

/// Why a store could not be read.
#[derive(Debug, Error)]
enum Unread {
    #[error("{file}: {source}")]
    Read { file: String, source: std::io::Error },
    #[error("{file}: {why}")]
    Password { file: String, why: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Found {
    /// Reads both stores of links between servers; `now` in seconds since 1970.
    pub(crate) fn of(settings: &Settings, now: i64) -> Self {
        Self::in_stores(settings, &settings.servers, now)
    }

    /// Reads these.
    pub(super) fn in_stores(settings: &Settings, stores: &Stores, now: i64) -> Self {
        let mut found = Self {
            own: None,
            trusted: Vec::new(),
            notices: Vec::new(),
            problems: Vec::new(),
            unread: Vec::new(),
            java_cannot: Vec::new(),
        };
        let (key, trust) = (stores.key_store.as_ref(), stores.trust_store.as_ref());
        let own = match key {
            Some(store) => found.open(store, key_store),
            None => found.unset(stores.peers, "keyStore"),
        };
        let trusted = match trust {
            Some(store) => found.open(store, trust_store),
            None if !stores.asks => None,
            None => found.unset(stores.peers, "trustStore"),
        };
        if let Some(TrustStore { certificates, notices, .. }) = &trusted {
            found.tell(trust, notices);
            found.trusted = shown(certificates, &settings.members);
            found.times(trust, now, false);
        }
        if let Some(own) = own {
            found.tell(key, &own.notices);
            found.own = Some((own.alias.clone(), shown(&own.chain, &settings.members)));
            found.times(key, now, true);
            match stores.peers {
                Peers::Servers => found.judge(settings, key, &own, trusted.as_ref()),
                Peers::Clients | Peers::Scrapers => found.judge_for_others(key),
            }
        }
        found
    }

    pub(super) fn is_well(&self) -> bool {
        self.problems.is_empty()
    }

    fn unset<T>(&mut self, peers: Peers, which: &str) -> Option<T> {
        let what = format!("{}.{which}.location is not set", peers.prefix());
        self.problems.push(what.clone());
        self.unread.push(what);
        None
    }

    fn open<T>(&mut self, store: &Store, read: Reader<T>) -> Option<T> {
        let file = store.file.display().to_string();
        let opened = || -> Result<T, Unread> {
            let kind =
                store.parsed().map_err(|reason| StoreError { file: file.clone(), reason })?;
            let password = store
                .password
                .as_ref()
                .map_err(|error| Unread::Password { file: file.clone(), why: error.to_string() })?;
            let bytes = fs::read(&store.file)
                .map_err(|source| Unread::Read { file: file.clone(), source })?;
            Ok(read(&file, &bytes, kind, password.as_ref())?)
        };
        let said = opened().map_err(|error| error.to_string());
        said.map_err(|error| {
            self.problems.push(error.clone());
            self.unread.push(error);
        })
        .ok()
    }

    fn tell(&mut self, store: Option<&Store>, notices: &[Notice]) {
        for notice in notices {
            let told = format!("{}: {notice}", named(store));
            let is_javas = matches!(
                notice,
                Notice::JavaCannotRead(_)
                    | Notice::SameSubject(_)
                    | Notice::Kind { java_looks_too: false, .. }
            );
            self.java_cannot.extend(is_javas.then(|| told.clone()));
            self.notices.push(told);
        }
    }

    /// Certificates that do not hold now: in the own store the server cannot use them, in the other it trusts no peer
    /// by them.
    fn times(&mut self, store: Option<&Store>, now: i64, own: bool) {
        let certificates = match (own, &self.own) {
            (true, Some((_, chain))) => chain,
            _ => &self.trusted,
        };
        let mut said = Vec::new();
        for certificate in certificates {
            let what = match () {
                () if now < certificate.from => "does not hold yet",
                () if now > certificate.to => "has ended",
                () => continue,
            };
            said.push(format!(
                "{}: the certificate of {} {what}",
                named(store),
                certificate.subject
            ));
        }
        self.problems.extend(said);
    }

    /// What a peer would say of the own certificate.
    fn judge(
        &mut self,
        settings: &Settings,
        store: Option<&Store>,
        own: &KeyStore,
        trusted: Option<&TrustStore>,
    ) {
        let file = named(store);
        if let Err(error) = usable_by_a_member(own) {
            self.problems.push(format!("{file}: {error}"));
        }
        let Some((_, chain)) = &self.own else { return };
        let Some(leaf) = chain.first() else { return };
        let members = &settings.members;
        let own_id = settings.own.filter(|id| members.iter().any(|member| member.id == *id));
        let unnamed = match own_id {
            Some(id) if !leaf.members.contains(&id) => {
                format!("server.{}, which myid says this is: its peers would refuse it", id.0)
            }
            None if leaf.members.is_empty() && !members.is_empty() => "any member".to_owned(),
            _ => String::new(),
        };
        if !unnamed.is_empty() {
            self.problems.push(format!("{file}: the certificate names no host of {unnamed}"));
        }
        if leaf.members.len() > 1 {
            let notice = format!(
                "{file}: the certificate is for several members, so that it tells none of them from another"
            );
            self.notices.push(notice);
        }
        if let Some(trusted) = trusted.filter(|trusted| !leads_to(&own.chain, trusted)) {
            let last = own.chain.last().and_then(|last| Certificate::read(last).ok());
            let issuer = last.map(|last| last.issuer()).unwrap_or_default();
            let notice = format!(
                "{file}: the {} certificates that this server trusts have none of its own issuer, {issuer}: a peer with \
                 the same trust store would refuse it",
                trusted.certificates.len()
            );
            self.notices.push(notice);
        }
    }

    /// What one who only dials would say of it. What name he knows this server by is not known here.
    fn judge_for_others(&mut self, store: Option<&Store>) {
        let leaf = self.own.as_ref().and_then(|(_, chain)| chain.first());
        let add = match leaf.map(|leaf| leaf.uses) {
            Some(uses) if !uses.accept => "serverAuth to its extended key usage",
            Some(uses) if !uses.sign => "digitalSignature to its key usage",
            _ => return,
        };
        let file = named(store);
        self.problems.push(format!("{file}: the certificate may not accept: add {add}"));
    }
}

/// Whether the own certificate is trusted, or one of the chain is, or the issuer of its last: by name, no signature is
/// looked at.
fn leads_to(chain: &[CertificateDer<'_>], trusted: &TrustStore) -> bool {
    let issued = |by: &CertificateDer<'_>| {
        let last = chain.last().and_then(|last| Certificate::read(last).ok());
        let by = Certificate::read(by).ok();
        last.zip(by).is_some_and(|(last, by)| last.names_as_issuer(&by))
    };
    trusted.certificates.iter().any(|known| chain.contains(known) || issued(known))
}

fn named(store: Option<&Store>) -> String {
    store.map(|store| store.file.display().to_string()).unwrap_or_default()
}

/// What is in those of them that can be read, for these members.
pub(crate) fn shown(certificates: &[CertificateDer<'_>], members: &[Member]) -> Vec<Shown> {
    let read = |der| Some((der, Certificate::read(der).ok()?));
    let read = certificates.iter().filter_map(read);
    let ids = |certificate: &Certificate<'_>, names: fn(&Certificate<'_>, &Member) -> bool| {
        let named = members.iter().filter(|member| names(certificate, member));
        named.map(|member| member.id).collect()
    };
    read.map(|(der, certificate)| Shown {
        subject: clean(&certificate.subject()),
        issuer: clean(&certificate.issuer()),
        common_name: certificate.common_name().map(|name| clean(&name)),
        dns_names: certificate.dns_names().iter().map(|name| clean(name)).collect(),
        addresses: certificate.addresses().to_vec(),
        uris: certificate.uris().iter().map(|uri| clean(uri)).collect(),
        key: certificate.key(),
        from: certificate.not_before(),
        to: certificate.not_after(),
        uses: certificate.uses(),
        members: ids(&certificate, names),
        by_wildcard: ids(&certificate, names_by_wildcard),
        weakness: certificate.weakness(),
        der: der.to_vec(),
    })
    .collect()
}

/// None of its hosts stands there by itself.
fn names_by_wildcard(certificate: &Certificate<'_>, member: &Member) -> bool {
    let mut named = hosts(member).filter_map(|host| certificate.names_host(host)).peekable();
    named.peek().is_some() && named.all(|named| named == Named::ByWildcard)
}

fn hosts(member: &Member) -> impl Iterator<Item = &String> {
    member.addresses.iter().flat_map(|at| [&at.quorum.host, &at.election.host])
}

/// Any of its hosts, on either port.
fn names(certificate: &Certificate<'_>, member: &Member) -> bool {
    hosts(member).any(|host| certificate.names_host(host).is_some())
}

/// What an issuer wrote, fit for a terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

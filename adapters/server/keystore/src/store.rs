//! A key store and a trust store, as a server takes them.

use std::fmt;

use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};

use crate::budget::Budget;
use crate::certificate::{Certificate, PublicKey};
use crate::entries::{Entries, KeyEntry, TrustEntry};
use crate::kind::Kind;
use crate::notice::{JavaCannot, Notice};
use crate::password::Password;
use crate::private_key::public_half;
use crate::reason::{Reason, StoreError};
use crate::settle::settle;
use crate::{jks, pem, pkcs12};

/// The longest store that is read, in bytes: far more than all authorities that browsers trust.
pub const MOST_BYTES: usize = 4 << 20;
/// The longest chain of a key, in certificates: what a server takes in a handshake.
pub const MOST_CHAIN: usize = 10;
/// How many rounds of key derivation one file may ask for, if nothing else is said. keytool asks for 10,000 for each part,
/// openssl for 2,048.
pub const MOST_ROUNDS: u32 = 5_000_000;

/// The private key of a server, and the certificates that it shows.
pub struct KeyStore {
    /// The key. Dropping it wipes it.
    pub key: PrivateKeyDer<'static>,
    /// The certificate of the key, and then those of its issuers; not empty, and at most [`MOST_CHAIN`] long.
    pub chain: Vec<CertificateDer<'static>>,
    /// The name of the entry; PEM has none.
    pub alias: Option<String>,
    /// What is worth knowing.
    pub notices: Vec<Notice>,
}

/// The certificates that a server trusts.
#[derive(Clone, Debug)]
pub struct TrustStore {
    /// Authorities, and certificates of others that are trusted for themselves; not empty.
    pub certificates: Vec<CertificateDer<'static>>,
    /// What is worth knowing.
    pub notices: Vec<Notice>,
}

/// How a store is read, beyond what [`key_store`] and [`trust_store`] need to know.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Which of several keys is taken. Unless it is said, the one whose certificate is valid now and ends last.
    pub alias: Option<&'a str>,
    /// The time by which a certificate is valid.
    pub now: UnixTime,
    /// How many rounds of key derivation the file may ask for.
    pub rounds: u32,
}

impl Default for Options<'_> {
    /// Any key, the system's clock, [`MOST_ROUNDS`].
    fn default() -> Self {
        Self { alias: None, now: UnixTime::now(), rounds: MOST_ROUNDS }
    }
}

/// Reads a key store: exactly one private key with its certificates is taken out of it.
///
/// `name` is the file, for texts and for its ending; `kind` is what `ssl.*.keyStore.type` says. An empty password is
/// none, as for ZooKeeper.
///
/// # Errors
///
/// [`StoreError`], with the file and what is wrong with it: it cannot be read, holds no key, or one that is too weak or
/// that its certificate is not for.
pub fn key_store(
    name: &str,
    bytes: &[u8],
    kind: Option<Kind>,
    password: Option<&Password>,
) -> Result<KeyStore, StoreError> {
    key_store_with(name, bytes, kind, password, &Options::default())
}

/// The same, with more said.
///
/// # Errors
///
/// As [`key_store`]; and if no key has the alias that is asked for.
pub fn key_store_with(
    name: &str,
    bytes: &[u8],
    kind: Option<Kind>,
    password: Option<&Password>,
    options: &Options<'_>,
) -> Result<KeyStore, StoreError> {
    let refused = |reason| StoreError { file: name.to_owned(), reason };
    let read = Asked { name, bytes, kind, password, rounds: options.rounds, keys: true };
    let entries = read.entries().map_err(refused)?;
    taken(entries, options).map_err(refused)
}

/// Reads a trust store: all certificates that it marks as trusted; of a PEM file, all.
///
/// `name` is the file, for texts and for its ending; `kind` is what `ssl.*.trustStore.type` says. An empty password is
/// none, as for ZooKeeper.
///
/// # Errors
///
/// [`StoreError`], with the file and what is wrong with it: it cannot be read, holds nothing that is trusted, or trusts a
/// key that is too weak.
pub fn trust_store(
    name: &str,
    bytes: &[u8],
    kind: Option<Kind>,
    password: Option<&Password>,
) -> Result<TrustStore, StoreError> {
    trust_store_with(name, bytes, kind, password, &Options::default())
}

/// The same, with more said.
///
/// # Errors
///
/// As [`trust_store`].
pub fn trust_store_with(
    name: &str,
    bytes: &[u8],
    kind: Option<Kind>,
    password: Option<&Password>,
    options: &Options<'_>,
) -> Result<TrustStore, StoreError> {
    let refused = |reason| StoreError { file: name.to_owned(), reason };
    let read = Asked { name, bytes, kind, password, rounds: options.rounds, keys: false };
    let entries = read.entries().map_err(refused)?;
    trusted(entries).map_err(refused)
}

/// A file, and what is said of it.
struct Asked<'a> {
    name: &'a str,
    bytes: &'a [u8],
    kind: Option<Kind>,
    password: Option<&'a Password>,
    rounds: u32,
    /// Whether keys are taken.
    keys: bool,
}

impl Asked<'_> {
    fn entries(&self) -> Result<Entries, Reason> {
        if self.bytes.len() > MOST_BYTES {
            return Err(Reason::Length { length: self.bytes.len(), most: MOST_BYTES });
        }
        let (kind, notice) = settle(self.name, self.bytes, self.kind)?;
        let password = self.password.filter(|password| !password.is_empty());
        let mut budget = Budget::new(self.rounds);
        let mut entries = match kind {
            Kind::Jks => jks::read(self.bytes, password)?,
            Kind::Pkcs12 => pkcs12::read(self.bytes, password, &mut budget, self.keys)?,
            Kind::Pem => pem::read(self.bytes, password, &mut budget, self.keys)?,
        };
        if kind == Kind::Pem && entries.keys.len() > 1 {
            return Err(Reason::SeveralKeys(entries.keys.len()));
        }
        entries.notices.splice(0..0, notice);
        Ok(entries)
    }
}

/// What stands for the alias of a certificate, where there is none.
fn named(alias: Option<&String>, place: usize) -> String {
    alias.cloned().unwrap_or_else(|| format!("certificate {}", place + 1))
}

/// Takes one key out of a store.
fn taken(entries: Entries, options: &Options<'_>) -> Result<KeyStore, Reason> {
    let Entries { keys, locked, mut notices, .. } = entries;
    if keys.is_empty() && locked > 0 {
        return Err(Reason::NoPassword);
    }
    let KeyEntry { alias, key, chain } = chosen(keys, options, &mut notices)?;
    let shown = alias.clone().unwrap_or_else(|| "key".to_owned());
    if chain.len() > MOST_CHAIN {
        return Err(Reason::Chain { alias: shown, length: chain.len(), most: MOST_CHAIN });
    }
    for (place, der) in chain.iter().enumerate() {
        let name =
            if place == 0 { shown.clone() } else { format!("{shown}, certificate {}", place + 1) };
        let (certificate, public) = fit(der, &name)?;
        // What an authority says of itself is believed for being trusted, not for its signature.
        let rests_on_it = place == 0 || !certificate.names_as_issuer(&certificate);
        if let Some(algorithm) = certificate.broken_signature().filter(|_| rests_on_it) {
            return Err(Reason::Signature { alias: name, algorithm });
        }
        if place == 0 {
            let own = public_half(&key).map_err(|_| Reason::Mismatch {
                alias: shown.clone(),
                what: "the key is damaged",
            })?;
            if let Some(what) = differ(own, public) {
                return Err(Reason::Mismatch { alias: shown, what });
            }
            if matches!(public, PublicKey::Ed25519(_)) {
                notices.push(Notice::JavaCannotRead(JavaCannot::Ed25519));
            }
        }
    }
    if chain.is_empty() {
        return Err(Reason::NoCertificate { alias: shown });
    }
    let key = key.into_key();
    Ok(KeyStore { key, chain, alias, notices })
}

/// A certificate and its key, if neither is damaged and the key is strong enough.
fn fit<'a>(
    der: &'a CertificateDer<'_>,
    name: &str,
) -> Result<(Certificate<'a>, PublicKey<'a>), Reason> {
    let damaged = || Reason::Certificate { alias: name.to_owned() };
    let certificate = Certificate::read(der).map_err(|_| damaged())?;
    let public = certificate.public_key().map_err(|_| damaged())?;
    if !public.is_fit() {
        return Err(Reason::Unfit { alias: name.to_owned(), what: public.to_string() });
    }
    Ok((certificate, public))
}

/// The one key, or the one with the alias; else the one whose certificate is valid now, and ends last.
fn chosen(
    mut keys: Vec<KeyEntry>,
    options: &Options<'_>,
    notices: &mut Vec<Notice>,
) -> Result<KeyEntry, Reason> {
    let names = |keys: &[KeyEntry]| -> Vec<String> {
        keys.iter().map(|key| key.alias.clone().unwrap_or_else(|| "key".to_owned())).collect()
    };
    let now = i64::try_from(options.now.as_secs()).unwrap_or(i64::MAX);
    let found = match options.alias {
        // Java compares the names of entries without case.
        Some(alias) => {
            let same = |key: &KeyEntry| {
                key.alias.as_ref().is_some_and(|known| known.to_lowercase() == alias.to_lowercase())
            };
            let there = names(&keys);
            let missing = || Reason::Alias { alias: alias.to_owned(), there };
            keys.iter().position(same).ok_or_else(missing)?
        }
        None => {
            let rank = |key: &KeyEntry| {
                let certificate = key.chain.first().and_then(|leaf| Certificate::read(leaf).ok());
                let (from, to) = certificate
                    .map_or((i64::MAX, i64::MIN), |known| (known.not_before(), known.not_after()));
                (from <= now && now <= to, to)
            };
            let last = keys.iter().enumerate().max_by_key(|(_, key)| rank(key));
            last.map(|(place, _)| place).ok_or(Reason::NoKey)?
        }
    };
    let key = keys.swap_remove(found);
    if !keys.is_empty() && options.alias.is_none() {
        let taken = key.alias.clone().unwrap_or_else(|| "key".to_owned());
        notices.push(Notice::Several { taken, others: names(&keys) });
    }
    Ok(key)
}

/// What differs between a private key and the public key of its certificate, as far as the private key says it.
fn differ(own: PublicKey<'_>, certified: PublicKey<'_>) -> Option<&'static str> {
    let differ = match (own, certified) {
        (PublicKey::Rsa { .. }, PublicKey::Rsa { .. }) => own != certified,
        (PublicKey::Ec { curve, point }, PublicKey::Ec { curve: other, point: there }) => {
            if curve != other {
                return Some("they are on different curves");
            }
            point.is_some() && point != there
        }
        (PublicKey::Ed25519(point), PublicKey::Ed25519(there)) => point.is_some() && point != there,
        _ => return Some("they are of different algorithms"),
    };
    differ.then_some("the certificate is for another key")
}

/// Takes what is trusted out of a store.
fn trusted(entries: Entries) -> Result<TrustStore, Reason> {
    let Entries { trusted, unmarked, mut notices, .. } = entries;
    if trusted.is_empty() {
        return Err(Reason::NothingTrusted { unmarked });
    }
    let mut read = Vec::with_capacity(trusted.len());
    for (place, TrustEntry { alias, certificate }) in trusted.iter().enumerate() {
        read.push(fit(certificate, &named(alias.as_ref(), place))?.0);
    }
    if unmarked > 0 {
        notices.push(Notice::NotMarked { certificates: unmarked });
    }
    let mut told: Vec<String> = Vec::new();
    for (place, certificate) in read.iter().enumerate() {
        let before = read.iter().take(place).zip(&trusted);
        let same = before.filter(|(other, _)| certificate.has_subject_of(other));
        let differs = |other: &TrustEntry| {
            trusted
                .get(place)
                .is_some_and(|own| own.certificate != other.certificate && own.alias.is_none())
        };
        let subject = certificate.subject();
        if same.into_iter().any(|(_, other)| differs(other)) && !told.contains(&subject) {
            told.push(subject);
        }
    }
    notices.extend(told.into_iter().map(Notice::SameSubject));
    drop(read);
    let certificates = trusted.into_iter().map(|entry| entry.certificate).collect();
    Ok(TrustStore { certificates, notices })
}

impl fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key: _, chain, alias, notices } = self;
        let mut shown = f.debug_struct("KeyStore");
        shown.field("chain", chain).field("alias", alias).field("notices", notices);
        shown.finish_non_exhaustive()
    }
}

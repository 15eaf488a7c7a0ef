//! Reads PKCS12 (RFC 7292), as keytool and openssl write it.
//!
//! ```text
//!   3, safes, seal
//!       └─ each plain or sealed by the password: bags
//!            ├─ a key, plain or sealed      name, id
//!            └─ a certificate               name, id, Java's mark of what is trusted
//! ```
//!
//! A certificate with the id of a key is that key's; the certificates of its issuers are found by their names. In the
//! Java code: `sun.security.pkcs12.PKCS12KeyStore`.

mod bags;
mod opener;

use rustls_pki_types::CertificateDer;
use zeroize::Zeroizing;

use self::bags::{Bags, Held};
use self::opener::{Opener, damaged};
use crate::budget::Budget;
use crate::certificate::Certificate;
use crate::der::{Der, OBJECT_IDENTIFIER, OCTET_STRING, context};
use crate::digests::{Hash, Purpose};
use crate::entries::{Entries, Form, KeyEntry, SecretKey, TrustEntry};
use crate::kind::Kind;
use crate::notice::{JavaCannot, Notice};
use crate::oid;
use crate::password::Password;
use crate::reason::{Reason, Remedy};

/// The longest chain that is put together, in certificates: more than [a key store](crate::key_store) takes.
const MOST_CHAIN: usize = 16;

/// All that is in the store. Its seal is checked before anything else is opened. Without a password neither the seal is
/// checked nor what is sealed opened.
pub(crate) fn read(
    bytes: &[u8],
    password: Option<&Password>,
    budget: &mut Budget,
    keys: bool,
) -> Result<Entries, Reason> {
    let mut outer = Der::new(bytes);
    let mut store = outer.sequence().map_err(damaged)?;
    outer.end().map_err(damaged)?;
    if store.number().map_err(damaged)? != 3 {
        return Err(Reason::Damaged { kind: Kind::Pkcs12, what: "its version is not 3" });
    }
    let (kind, mut content) = content_info(&mut store)?;
    if kind != oid::DATA {
        let what = "it is sealed by a signature instead of a password";
        return Err(Reason::Variant { what, remedy: Remedy::Keytool });
    }
    let safes = content.take(OCTET_STRING).map_err(damaged)?;
    let mut entries = Entries::default();
    match password {
        None => entries.notices.push(Notice::Unchecked),
        Some(_) if store.is_empty() => entries.notices.push(Notice::Unsealed),
        Some(password) => check_seal(store, safes, password, budget)?,
    }
    let mut opened = Opener { password, budget, keys };
    let mut bags = Bags::default();
    let mut safes = Der::new(safes).sequence().map_err(damaged)?;
    while !safes.is_empty() {
        let (kind, mut content) = content_info(&mut safes)?;
        match kind {
            oid::DATA => {
                let plain = content.take(OCTET_STRING).map_err(damaged)?;
                bags.read(plain, &mut opened)?;
            }
            oid::ENCRYPTED_DATA => {
                let plain = opened.content(&mut content)?;
                bags.read(&plain, &mut opened)?;
            }
            _ => {
                let what = "a part of it is sealed for a certificate instead of by a password";
                return Err(Reason::Variant { what, remedy: Remedy::Keytool });
            }
        }
    }
    if password.is_none() {
        entries.notices.push(Notice::JavaCannotRead(JavaCannot::NoPassword));
    }
    Ok(sorted(bags, entries))
}

/// What PKCS7 says of what is in it, and that.
fn content_info<'a>(der: &mut Der<'a>) -> Result<(&'a [u8], Der<'a>), Reason> {
    let mut info = der.sequence().map_err(damaged)?;
    let kind = info.take(OBJECT_IDENTIFIER).map_err(damaged)?;
    let content = info.open(context(0)).map_err(damaged)?;
    Ok((kind, content))
}

/// The seal over all that is in the store.
fn check_seal(
    mut store: Der<'_>,
    safes: &[u8],
    password: &Password,
    budget: &mut Budget,
) -> Result<(), Reason> {
    let mut data = store.sequence().map_err(damaged)?;
    store.end().map_err(damaged)?;
    let mut digest = data.sequence().map_err(damaged)?;
    let (algorithm, _) = digest.algorithm().map_err(damaged)?;
    let seal = digest.take(OCTET_STRING).map_err(damaged)?;
    let salt = data.take(OCTET_STRING).map_err(damaged)?;
    let rounds = if data.is_empty() { 1 } else { data.number().map_err(damaged)? };
    data.end().map_err(damaged)?;
    let Some(hash) = Hash::of_digest(algorithm) else {
        return Err(Reason::Sealed { algorithm: oid::name(algorithm), remedy: Remedy::Keytool });
    };
    if salt.len() > 1024 {
        let what = "a salt is longer than 1024 bytes";
        return Err(Reason::Damaged { kind: Kind::Pkcs12, what });
    }
    let rounds = budget.spend(rounds)?;
    let mut key = Zeroizing::new([0_u8; 64]);
    let key = key.get_mut(..hash.length()).unwrap_or_default();
    hash.pkcs12(Purpose::Seal, &password.terminated(), salt, rounds, key);
    if hash.seals(key, safes, seal) { Ok(()) } else { Err(Reason::WrongPassword) }
}

/// Puts keys and certificates together.
fn sorted(bags: Bags, mut entries: Entries) -> Entries {
    let Bags { keys, certificates, locked } = bags;
    entries.locked = locked;
    let mut used = vec![false; certificates.len()];
    for Held { name, id, value } in keys {
        let own = certificates.iter().position(|held| id.is_some() && held.id == id);
        let chain = own.map_or_else(Vec::new, |own| chain(own, &certificates));
        for index in &chain {
            if let Some(used) = used.get_mut(*index) {
                *used = true;
            }
        }
        let chain = chain.into_iter().filter_map(|index| certificates.get(index));
        let chain = chain.map(|held| held.value.0.clone()).collect();
        let key = SecretKey::new(Form::Pkcs8, value);
        entries.keys.push(KeyEntry { alias: name, key, chain });
    }
    for (Held { name, value: (certificate, trusted), .. }, used) in
        certificates.into_iter().zip(used)
    {
        if trusted {
            entries.trusted.push(TrustEntry { alias: name, certificate });
        } else if !used {
            entries.unmarked += 1;
        }
    }
    entries
}

/// The certificate and those of its issuers, by their places.
fn chain(own: usize, all: &[Held<(CertificateDer<'static>, bool)>]) -> Vec<usize> {
    let read: Vec<_> = all.iter().map(|held| Certificate::read(&held.value.0).ok()).collect();
    let mut chain = vec![own];
    let mut last = read.get(own).and_then(Option::as_ref);
    while let Some(certificate) = last {
        if certificate.names_as_issuer(certificate) || chain.len() == MOST_CHAIN {
            break;
        }
        let issuer = read.iter().enumerate().find(|(index, other)| {
            let issuer = other.as_ref().is_some_and(|other| certificate.names_as_issuer(other));
            issuer && !chain.contains(index)
        });
        chain.extend(issuer.map(|(index, _)| index));
        last = issuer.and_then(|(_, certificate)| certificate.as_ref());
    }
    chain
}

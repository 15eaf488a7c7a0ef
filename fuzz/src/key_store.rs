//! Arbitrary bytes as a key store and as a trust store of any kind: they are refused with a reason, or what is sealed
//! opens to no other password, and all certificates of a PEM file are taken.

use quorate_keystore::{
    Certificate, Kind, Notice, Options, Password, StoreError, TrustStore, key_store_with,
    trust_store_with, usable_by_a_member,
};

/// More is not computed: what a store asks for beyond that is refused as it is beyond the usual limit.
const ROUNDS: u32 = 64;

/// Feeds these bytes, whose password is that of the stores that Java's documentation makes.
pub fn feed(data: &[u8]) {
    let password = Password::new("changeit");
    keys(data, &password);
    let Some(store) = taken(trust(data, Some(&password))) else { return };
    for der in &store.certificates {
        assert!(Certificate::read(der).is_ok(), "what is trusted can be read");
    }
    let is_text = || Kind::Pem == kind(data);
    let sealed = !store.notices.contains(&Notice::Unsealed) && !is_text();
    if sealed {
        let other = taken(trust(data, Some(&Password::new("changed"))));
        assert!(other.is_none(), "another password opens it");
    }
    if is_text() {
        let twice = [data, b"\n", data].concat();
        let twice = taken(trust(&twice, Some(&password))).map(|store| store.certificates.len());
        assert_eq!(twice, Some(store.certificates.len() * 2), "all of a file are taken");
    }
}

/// As a key store, with the password and without.
fn keys(data: &[u8], password: &Password) {
    for password in [Some(password), None] {
        let read = key_store_with("a.jks", data, None, password, &options());
        let Some(store) = taken(read) else { continue };
        assert!(!store.chain.is_empty(), "a key without a certificate");
        let _usable = usable_by_a_member(&store);
        assert!(!format!("{store:?}").is_empty());
        for der in &store.chain {
            let read = Certificate::read(der);
            let read = read.unwrap_or_else(|error| panic!("{error} in {store:?}"));
            assert!(!read.key().is_empty() && read.subject().len() < data.len() * 8);
        }
    }
}

fn options() -> Options<'static> {
    Options { rounds: ROUNDS, ..Options::default() }
}

fn trust(data: &[u8], password: Option<&Password>) -> Result<TrustStore, StoreError> {
    trust_store_with("a.jks", data, None, password, &options())
}

/// What was read; a refusal has a text.
fn taken<T>(read: Result<T, StoreError>) -> Option<T> {
    read.map_err(|error| assert!(error.to_string().starts_with("a.jks: "), "{error}")).ok()
}

/// Of which kind the reader says it is; text needs no password to be read as what is trusted.
fn kind(data: &[u8]) -> Kind {
    let read = trust_store_with("a.jks", data, None, None, &options());
    let notices = match read {
        Ok(store) => store.notices,
        Err(_) => Vec::new(),
    };
    let said = notices.iter().find_map(|notice| {
        if let Notice::Kind { found, .. } = notice { Some(*found) } else { None }
    });
    said.unwrap_or(Kind::Jks)
}

//! Stores that are cut short, changed, or ask for more than any store needs.

use quorate_keystore::{
    MOST_BYTES, Options, Reason, key_store, key_store_with, trust_store, trust_store_with,
};

use crate::fixtures::{all, bytes, password};

/// Read both ways, with few rounds of key derivation: those that are called quick get by with them.
fn read(name: &str, bytes: &[u8]) -> bool {
    let options = Options { rounds: 30, ..Options::default() };
    let password = password();
    let mut good = false;
    for password in [None, Some(&password)] {
        let keys = key_store_with(name, bytes, None, password, &options);
        let trust = trust_store_with(name, bytes, None, password, &options);
        good |= keys.is_ok() || trust.is_ok();
        for error in [keys.err(), trust.err()].into_iter().flatten() {
            assert!(error.to_string().starts_with(&format!("{name}: ")));
        }
    }
    good
}

#[test]
fn a_store_that_is_cut_short_anywhere_is_refused() {
    let mut cut = 0;
    for name in all() {
        let whole = bytes(&name);
        // Beyond its last part, a PEM file may end anywhere.
        let end = whole.trim_ascii_end().len();
        let text = name.ends_with(".pem");
        for length in (0..end).filter(|length| !text || length % 7 == 0) {
            let good = read(&name, &whole[..length]);
            // Of a PEM file, the first certificates may be whole.
            assert!(text || !good, "{name}, of {length} bytes");
            cut += 1;
        }
        let quick = name.starts_with("quick") || ["keytool-ec.jks", "trust.jks"].contains(&&*name);
        assert!(!quick || read(&name, &whole), "{name} is good");
    }
    assert!(cut > 10_000, "{cut}");
}

/// The seal covers all of it but itself; where there is none, what is read is read.
#[test]
fn a_store_with_any_bit_changed_does_not_panic() {
    let few = |name: &&String| name.starts_with("quick") || name.ends_with("ec.jks");
    for name in all().iter().filter(few) {
        let mut changed = bytes(name);
        for place in 0..changed.len() {
            let bit = 1 << (place % 8);
            changed[place] ^= bit;
            read(name, &changed);
            changed[place] ^= bit;
        }
    }
}

/// The count of rounds in a store that `openssl` made, replaced by one with as many bytes.
fn asking(name: &str, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes(name);
    let places: Vec<_> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, seen)| *seen == from)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    for place in places {
        bytes[place..place + to.len()].copy_from_slice(to);
    }
    bytes
}

#[test]
fn absurd_rounds_of_key_derivation_are_not_done() {
    let password = password();
    // The seal of a store that keytool made asks for 10,000 rounds in two bytes; room for more is taken from the number
    // itself: a limit below it is the same as a number above it.
    let name = "keytool-ec.p12";
    let options = Options { rounds: 9_999, ..Options::default() };
    let refused = key_store_with(name, &bytes(name), None, Some(&password), &options).unwrap_err();
    assert_eq!(refused.reason, Reason::Rounds { asked: 10_000, most: 9_999 });
    // All parts of one file together.
    let options = Options { rounds: 29_999, ..Options::default() };
    let refused = key_store_with(name, &bytes(name), None, Some(&password), &options).unwrap_err();
    assert_eq!(refused.reason, Reason::Rounds { asked: 30_000, most: 29_999 });
    let options = Options { rounds: 30_000, ..Options::default() };
    assert!(key_store_with(name, &bytes(name), None, Some(&password), &options).is_ok());
}

#[test]
fn absurd_memory_for_scrypt_is_not_taken() {
    let pem = String::from_utf8(bytes("scrypt.pem")).unwrap();
    let (head, rest) = pem.split_once("-----BEGIN ENCRYPTED PRIVATE KEY-----\n").unwrap();
    let (body, tail) = rest.split_once("\n-----END").unwrap();
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let mut der = engine.decode(body.replace('\n', "")).unwrap();
    // N = 16384, r = 8, p = 1.
    let costs = b"\x02\x02\x40\x00\x02\x01\x08\x02\x01\x01";
    let place = der.windows(costs.len()).position(|window| window == costs).unwrap();
    for (at, value, asked) in [(2, 0x7f, 0x7f00 * 8 * 128_u64), (6, 0x7f, 0x4000 * 0x7f * 128)] {
        let before = der[place + at];
        der[place + at] = value;
        let body = engine.encode(&der);
        let pem = format!("{head}-----BEGIN ENCRYPTED PRIVATE KEY-----\n{body}\n-----END{tail}");
        let refused = key_store("a.pem", pem.as_bytes(), None, Some(&password())).unwrap_err();
        let most = 32 << 20;
        if asked > most {
            assert_eq!(refused.reason, Reason::Memory { asked, most });
        } else {
            assert!(matches!(refused.reason, Reason::Damaged { .. }), "{refused}");
        }
        der[place + at] = before;
    }
}

#[test]
fn absurd_lengths_and_counts_end_at_once() {
    let long = vec![b'-'; MOST_BYTES + 1];
    let (length, most) = (long.len(), MOST_BYTES);
    let refused = trust_store("a.pem", &long, None, None).unwrap_err();
    assert_eq!(refused.reason, Reason::Length { length, most });
    // Four thousand million entries, of which none is there.
    let jks = b"\xfe\xed\xfe\xed\0\0\0\x02\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    assert!(matches!(
        trust_store("a.jks", jks, None, None).unwrap_err().reason,
        Reason::Damaged { .. }
    ));
    let p12 = b"\x30\x84\xff\xff\xff\xff\x02\x01\x03";
    assert!(trust_store("a.p12", p12, None, None).is_err());
    let most = asking("keytool-ec.p12", b"\x02\x02\x27\x10", b"\x02\x02\x7f\xff");
    assert!(key_store("a.p12", &most, None, Some(&password())).is_err());
}

//! Trust stores of all kinds: what is trusted, and what is not.

use quorate_keystore::{JavaCannot, Notice, Password, Reason, trust_store};

use crate::fixtures::{bytes, keys, trust};

#[test]
fn what_is_trusted_comes_out_of_every_format() {
    let root = trust("trust.pem").unwrap().certificates;
    assert_eq!(root.len(), 1);
    for name in ["trust.jks", "trust.p12"] {
        let store = trust(name).unwrap();
        assert_eq!(store.certificates.len(), 2, "{name}");
        assert!(store.certificates.contains(&root[0]), "{name}");
        assert_eq!(store.notices, [], "{name}");
    }
    assert_eq!(trust("passwordless.p12").unwrap().certificates, root);
}

/// As in Java, where a key's own chain is not what a server trusts.
#[test]
fn a_key_beside_it_is_passed_over() {
    let root = trust("trust.pem").unwrap().certificates;
    for name in ["key-and-trust.jks", "key-and-trust.p12"] {
        let store = trust(name).unwrap();
        assert_eq!(store.certificates, root, "{name}");
    }
    for name in ["keytool-ec.jks", "keytool-ec.p12"] {
        let refused = trust(name).unwrap_err().reason;
        assert!(matches!(refused, Reason::NothingTrusted { .. }), "{name}: {refused}");
    }
    // A PEM file with a key and its chain: all certificates, as in Java.
    assert_eq!(trust("pkcs8-ec.pem").unwrap().certificates, keys("pkcs8-ec.pem").unwrap().chain);
}

#[test]
fn certificates_without_javas_mark_are_not_trusted() {
    let refused = trust("openssl-trust.p12").unwrap_err();
    assert_eq!(refused.reason, Reason::NothingTrusted { unmarked: 1 });
    assert_eq!(
        refused.to_string(),
        "openssl-trust.p12: it holds no trusted certificate; those in it lack Java's mark, which \
         `keytool -importcert` sets"
    );
}

#[test]
fn authorities_of_one_name_stand_side_by_side() {
    let store = trust("trust-same-subject.pem").unwrap();
    assert_eq!(store.certificates.len(), 2);
    assert_eq!(store.notices, [Notice::SameSubject("CN=Test authority".to_owned())]);
    // The same one twice is no other.
    let twice = bytes("trust.pem").repeat(2);
    assert_eq!(trust_store("a.pem", &twice, None, None).unwrap().notices, []);
}

#[test]
fn a_weak_authority_is_refused_with_its_place() {
    let (alias, what) = ("certificate 2".to_owned(), "RSA of 1024 bits".to_owned());
    assert_eq!(trust("trust-weak.pem").unwrap_err().reason, Reason::Unfit { alias, what });
    let refused = trust_store(
        "a.pem",
        b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----",
        None,
        None,
    );
    let alias = "certificate 1".to_owned();
    assert_eq!(refused.unwrap_err().reason, Reason::Certificate { alias });
    let none = trust_store("a.pem", &bytes("key-alone.pem"), None, None).unwrap_err().reason;
    assert_eq!(none, Reason::NothingTrusted { unmarked: 0 });
}

#[test]
fn without_a_password_what_is_not_sealed_is_read() {
    let read = |name: &str| trust_store(name, &bytes(name), None, None);
    let store = read("trust.jks").unwrap();
    assert_eq!((store.certificates.len(), &*store.notices), (2, &[Notice::Unchecked][..]));
    let store = read("passwordless.p12").unwrap();
    let java = Notice::JavaCannotRead(JavaCannot::NoPassword);
    assert_eq!((store.certificates.len(), &*store.notices), (1, &[Notice::Unchecked, java][..]));
    assert_eq!(read("trust.p12").unwrap_err().reason, Reason::NoPassword);
    // What a PEM file trusts is never sealed.
    assert_eq!(read("trust.pem").unwrap().notices, []);
}

#[test]
fn a_changed_store_and_a_wrong_password_are_refused() {
    for name in ["trust.jks", "trust.p12"] {
        let wrong = trust_store(name, &bytes(name), None, Some(&Password::new("other")));
        assert_eq!(wrong.unwrap_err().reason, Reason::WrongPassword, "{name}");
    }
    let mut changed = bytes("trust.jks");
    let subject = changed.windows(9).position(|window| window == b"authority").unwrap();
    changed[subject] ^= 1;
    let refused = trust_store("a.jks", &changed, None, Some(&crate::fixtures::password()));
    assert_eq!(refused.unwrap_err().reason, Reason::WrongPassword);
}

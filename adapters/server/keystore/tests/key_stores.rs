//! Key stores of all kinds: what is taken out of them, and what is refused.

use quorate_keystore::rustls_pki_types::{PrivateKeyDer, UnixTime};
use quorate_keystore::{
    JavaCannot, Kind, Notice, Options, Password, Reason, Remedy, key_store, key_store_with,
};

use crate::fixtures::{bytes, keys, password, refusal};

/// The same key and chain, out of whatever they stand in.
fn holds(name: &str, model: &str, alias: Option<&str>, notices: &[Notice]) {
    let (found, model) = (keys(name).unwrap(), keys(model).unwrap());
    assert_eq!(found.chain, model.chain, "{name}");
    assert_eq!(found.chain.len(), 2, "{name}: its certificate and its authority's");
    assert_eq!(found.alias.as_deref(), alias, "{name}");
    assert_eq!(found.notices, notices, "{name}");
}

const PBES2: Notice = Notice::JavaCannotRead(JavaCannot::Pbes2);
const TRADITIONAL: Notice = Notice::JavaCannotRead(JavaCannot::Traditional);

#[test]
fn the_same_key_and_chain_come_out_of_every_format() {
    for name in ["keytool-ec.jks", "keytool-ec.p12", "openssl-ec.p12", "openssl-3des.p12"] {
        holds(name, "pkcs8-ec.pem", Some("ec1"), &[]);
    }
    holds("openssl-sha512.p12", "pkcs8-ec.pem", Some("ec1"), &[]);
    holds("openssl-plain.p12", "pkcs8-ec.pem", Some("ec1"), &[]);
    holds("key-and-trust.p12", "pkcs8-ec.pem", Some("ec1"), &[]);
    holds("key-and-trust.jks", "pkcs8-ec.pem", Some("ec1"), &[]);
    holds("openssl-nomac.p12", "pkcs8-ec.pem", Some("ec1"), &[Notice::Unsealed]);
    for name in ["keytool-rsa.jks", "keytool-rsa.p12", "openssl-rsa.p12"] {
        holds(name, "pkcs8-rsa.pem", Some("rsa1"), &[]);
    }
    holds("key-last.pem", "pkcs8-rsa.pem", None, &[Notice::JavaCannotRead(JavaCannot::Open)]);
    let unlocked = key_store("key-last.pem", &bytes("key-last.pem"), None, None).unwrap();
    assert_eq!(unlocked.notices, [], "a key that is not sealed, without a password");
    holds("pkcs1.pem", "pkcs8-rsa.pem", None, &[TRADITIONAL]);
    holds("sec1.pem", "pkcs8-ec.pem", None, &[TRADITIONAL]);
    for name in ["pbes2.pem", "pbes2-aes128-sha512.pem", "scrypt.pem"] {
        holds(name, "pkcs8-ec.pem", None, &[PBES2]);
    }
    holds("pbe-3des.pem", "pkcs8-ec.pem", None, &[]);
    let pem = bytes("pkcs8-ed25519.pem");
    let ed25519 = key_store("pkcs8-ed25519.pem", &pem, None, None).unwrap();
    assert_eq!(ed25519.notices, [Notice::JavaCannotRead(JavaCannot::Ed25519)]);
}

/// What was sealed is the key itself, to the byte.
#[test]
fn the_key_is_what_was_sealed() {
    let plain = |name| keys(name).unwrap().key.secret_der().to_vec();
    for name in ["pbes2.pem", "pbes2-aes128-sha512.pem", "scrypt.pem", "pbe-3des.pem"] {
        assert_eq!(plain(name), plain("pkcs8-ec.pem"), "{name}");
    }
    for name in ["openssl-ec.p12", "openssl-3des.p12", "openssl-plain.p12", "openssl-nomac.p12"] {
        assert_eq!(plain(name), plain("pkcs8-ec.pem"), "{name}");
    }
    for name in ["keytool-rsa.jks", "keytool-rsa.p12", "openssl-rsa.p12"] {
        assert_eq!(plain(name), plain("pkcs8-rsa.pem"), "{name}");
    }
    assert_eq!(plain("keytool-ec.jks"), plain("keytool-ec.p12"));
    let key = |name| keys(name).unwrap().key;
    assert!(matches!(key("pkcs1.pem"), PrivateKeyDer::Pkcs1(_)));
    assert!(matches!(key("sec1.pem"), PrivateKeyDer::Sec1(_)));
    assert!(matches!(key("keytool-rsa.jks"), PrivateKeyDer::Pkcs8(_)));
}

#[test]
fn self_signed_stores_of_the_guide_are_read() {
    for name in ["self-signed.jks", "self-signed.p12", "keytool-own-ec.jks", "keytool-own-ec.p12"] {
        let store = keys(name).unwrap();
        assert_eq!(store.chain.len(), 1, "{name}");
        assert_eq!(store.notices, [], "{name}");
    }
    assert_eq!(keys("self-signed.jks").unwrap().alias.as_deref(), Some("zk1.test"));
}

#[test]
fn a_password_and_an_alias_that_are_no_ascii() {
    let password = Password::new("pä ßwörd€");
    let store = key_store("a.p12", &bytes("unicode.p12"), None, Some(&password)).unwrap();
    assert_eq!(store.alias.as_deref(), Some("zwölf"));
}

#[test]
fn of_several_keys_the_one_that_ends_last_is_taken_or_the_one_that_is_named() {
    for name in ["several.jks", "several.p12"] {
        let (bytes, password) = (bytes(name), password());
        let read = |alias| {
            let options = Options { alias, ..Options::default() };
            key_store_with(name, &bytes, None, Some(&password), &options)
        };
        let rsa = read(Some("RSA1")).unwrap();
        assert_eq!((rsa.alias.as_deref(), &*rsa.notices), (Some("rsa1"), &[][..]), "{name}");
        let none = read(Some("zk9")).unwrap_err().reason;
        let Reason::Alias { alias, mut there } = none else { panic!("{none}") };
        there.sort();
        assert_eq!((alias, there), ("zk9".to_owned(), vec!["ec1".to_owned(), "rsa1".to_owned()]));
        // Made a moment later.
        let any = read(None).unwrap();
        let (taken, others) = ("rsa1".to_owned(), vec!["ec1".to_owned()]);
        assert_eq!(any.notices, [Notice::Several { taken, others }], "{name}");
    }
}

#[test]
fn a_key_whose_time_has_not_come_is_taken_only_for_want_of_another() {
    let (bytes, password) = (bytes("keytool-ec.jks"), password());
    let options = Options {
        now: UnixTime::since_unix_epoch(core::time::Duration::ZERO),
        ..Options::default()
    };
    assert!(key_store_with("a.jks", &bytes, None, Some(&password), &options).is_ok());
}

#[test]
fn the_kind_is_that_of_the_content_with_a_notice() {
    let password = password();
    let p12 = bytes("keytool-ec.p12");
    let found = key_store("zk1.jks", &p12, None, Some(&password)).unwrap();
    let notice = Notice::Kind { said: Kind::Jks, found: Kind::Pkcs12, java_looks_too: true };
    assert_eq!(found.notices, [notice]);
    let found = key_store("zk1", &p12, Some(Kind::Pem), Some(&password)).unwrap();
    let notice = Notice::Kind { said: Kind::Pem, found: Kind::Pkcs12, java_looks_too: false };
    assert_eq!(found.notices, [notice]);
    let found = key_store("zk1", &p12, Some(Kind::Pkcs12), Some(&password)).unwrap();
    assert_eq!(found.notices, []);
    assert_eq!(key_store("zk1", &p12, None, Some(&password)).unwrap_err().reason, Reason::Ending);
    assert_eq!(
        key_store("a.bcfks", &p12, None, Some(&password)).unwrap_err().reason,
        Reason::Bcfks
    );
    assert_eq!("pkcs12".parse(), Ok(Kind::Pkcs12));
    assert_eq!("bcfks".parse::<Kind>(), Err(Reason::Bcfks));
    assert_eq!("P12".parse::<Kind>(), Err(Reason::Type("P12".to_owned())));
    let error = key_store("a.jks", b"nothing", None, None).unwrap_err();
    assert_eq!(error.reason, Reason::NotThis(Kind::Jks));
    assert_eq!(error.to_string(), "a.jks: it is no JKS store, nor one of another kind");
}

#[test]
fn other_formats_are_refused_by_name_with_what_converts_them() {
    assert_eq!(refusal("jceks.jks"), Reason::Jceks);
    assert!(Reason::Jceks.to_string().contains("keytool -importkeystore"));
    let der = key_store("a.pem", &bytes("certificate.der"), None, None).unwrap_err().reason;
    assert_eq!(der, Reason::Der);
    let sealed =
        |algorithm: &str, remedy| Reason::Sealed { algorithm: algorithm.to_owned(), remedy };
    assert_eq!(refusal("openssl-rc2.p12"), sealed("40-bit RC2", Remedy::Keytool));
    assert_eq!(refusal("pbe-md5-des.pem"), sealed("MD5 and DES", Remedy::OpenSsl));
    let old = "openssl's old way (Proc-Type: 4,ENCRYPTED)";
    assert_eq!(refusal("old-encryption.pem"), sealed(old, Remedy::OpenSsl));
}

#[test]
fn a_wrong_password_is_one_sentence_and_none_another() {
    let wrong = Password::new("changeit ");
    for name in [
        "keytool-ec.jks",
        "keytool-ec.p12",
        "openssl-ec.p12",
        "openssl-3des.p12",
        "openssl-nomac.p12",
        "pbes2.pem",
        "scrypt.pem",
        "pbe-3des.pem",
    ] {
        let bytes = bytes(name);
        let read = |password| key_store(name, &bytes, None, password).unwrap_err();
        let error = read(Some(&wrong));
        assert_eq!(error.reason, Reason::WrongPassword, "{name}");
        assert_eq!(
            error.to_string(),
            format!("{name}: the password is wrong, or the file was changed")
        );
        assert_eq!(read(None).reason, Reason::NoPassword, "{name}");
        assert_eq!(read(Some(&Password::new(""))).reason, Reason::NoPassword, "{name}");
    }
}

#[test]
fn a_certificate_of_another_key_is_refused() {
    let mismatch = |alias: &str, what| Reason::Mismatch { alias: alias.to_owned(), what };
    assert_eq!(refusal("mismatch-kind.pem"), mismatch("key", "they are of different algorithms"));
    assert_eq!(refusal("mismatch-rsa.pem"), mismatch("key", "the certificate is for another key"));
    assert_eq!(refusal("mismatch-ec.pem"), mismatch("key", "the certificate is for another key"));
}

#[test]
fn weak_keys_and_signatures_are_refused_with_their_alias() {
    let unfit =
        |alias: &str, what: &str| Reason::Unfit { alias: alias.to_owned(), what: what.to_owned() };
    assert_eq!(refusal("weak-rsa.pem"), unfit("key", "RSA of 1024 bits"));
    assert_eq!(refusal("dsa.jks"), unfit("old", "DSA"));
    assert_eq!(refusal("dsa.p12"), unfit("old", "DSA"));
    assert_eq!(refusal("curve.pem"), unfit("key", "secp256k1"));
    let (alias, algorithm) = ("key".to_owned(), "SHA-1 with ECDSA");
    assert_eq!(refusal("sha1-signed.pem"), Reason::Signature { alias, algorithm });
}

#[test]
fn a_store_without_a_key_or_without_its_certificate_is_refused() {
    for name in ["trust.jks", "trust.p12", "trust.pem", "openssl-trust.p12"] {
        assert_eq!(refusal(name), Reason::NoKey, "{name}");
    }
    assert_eq!(refusal("key-alone.pem"), Reason::NoCertificate { alias: "key".to_owned() });
    let two = [bytes("pkcs8-ec.pem"), bytes("pkcs8-rsa.pem")].concat();
    assert_eq!(key_store("a.pem", &two, None, None).unwrap_err().reason, Reason::SeveralKeys(2));
    let long: Vec<u8> = bytes("trust.pem").repeat(10);
    let long = [bytes("pkcs8-ec.pem"), long].concat();
    let (alias, length, most) = ("key".to_owned(), 12, 10);
    let refused = key_store("a.pem", &long, None, None).unwrap_err().reason;
    assert_eq!(refused, Reason::Chain { alias, length, most });
}

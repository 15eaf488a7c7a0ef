//! Stores that are not good stop the start, with file and remedy.

use quorate_tls::{StoreFile, Tls, Versions};

use crate::made::{Authority, Dir, but, params};

#[test]
fn a_store_that_is_not_good_is_named_with_what_is_wrong() {
    let dir = Dir::new("stores");
    let authority = Authority::new("ours");
    let (leaf, other) = (authority.sign(&params(&["zk1.test"])), authority.sign(&params(&["b"])));
    let good = dir.settings("good", &leaf, &[&authority.pem()]);
    assert_eq!(Tls::open(good.clone()).unwrap().notices(), []);
    let wrong = |key_store: StoreFile| {
        Tls::open(but(&good, |good| good.key_store = key_store)).unwrap_err().to_string()
    };
    let mixed = dir.file("mixed.pem", &format!("{}{}", leaf.certificate, other.key));
    assert!(wrong(mixed).contains("mixed.pem: the private key is not that of the certificate"));
    assert!(
        wrong(dir.file("cert.pem", &leaf.certificate)).contains("there is no private key in it")
    );
    assert!(wrong(dir.file("key.pem", &leaf.key)).contains("there is no certificate in it"));
    assert!(wrong(dir.file("store", &leaf.key)).contains("let the name end in .jks, .p12 or .pem"));
    assert!(wrong(StoreFile::new("/nowhere/x.pem")).starts_with("cannot read /nowhere/x.pem: "));
    let broken = leaf.certificate.replacen('A', "!", 3) + &leaf.key;
    assert!(wrong(dir.file("broken.pem", &broken)).contains("broken.pem: "));
    let trust_store = dir.file("empty.pem", "");
    let error =
        Tls::open(but(&good, |good| good.trust_store = trust_store)).unwrap_err().to_string();
    assert!(error.contains("empty.pem: there is no certificate in it"), "{error}");
    let versions = Versions { tls12: false, tls13: false };
    let error = Tls::open(but(&good, |good| good.versions = versions)).unwrap_err().to_string();
    assert!(error.contains("TLS_AES_128_GCM_SHA256"), "{error}");
}

#[test]
fn a_certificate_that_has_ended_is_told_and_its_server_starts() {
    let dir = Dir::new("ended");
    let authority = Authority::new("ours");
    let mut params = params(&["zk1.test"]);
    params.not_before = rcgen::date_time_ymd(2001, 1, 1);
    params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let leaf = authority.sign(&params);
    let tls = Tls::open(dir.settings("1", &leaf, &[&authority.pem()])).unwrap();
    assert!(tls.notices()[0].to_string().contains("ended"), "{:?}", tls.notices());
}

//! Stores that are not good stop the start, with file and remedy.

use quorate_tls::{Marks, StoreFile, StorePassword, Tls, Versions};

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
    let broken = leaf.certificate.replacen('A', "!", 3) + &leaf.key;
    let own = |name: &str, text: &str| dir.file(name, text);
    for (store, said) in [
        (own("mixed.pem", &format!("{}{}", leaf.certificate, other.key)), "mixed.pem: "),
        (own("cert.pem", &leaf.certificate), "cert.pem: "),
        (own("key.pem", &leaf.key), "key.pem: "),
        (StoreFile::new("/nowhere/x.pem"), "cannot read /nowhere/x.pem: "),
        (own("broken.pem", &broken), "broken.pem: "),
    ] {
        let error = wrong(store);
        println!("{error}");
        assert!(error.contains(said) && error.len() > said.len(), "{error}");
    }
    let trust_store = dir.file("empty.pem", "");
    let error = Tls::open(but(&good, |good| good.trust_store = trust_store)).unwrap_err();
    assert!(error.to_string().contains("empty.pem: "), "{error}");
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

/// A store that cannot be opened with what stands there now is told before the next start finds it.
#[test]
fn another_password_in_its_file_is_another_content_of_its_store() {
    let dir = Dir::new("marks");
    let authority = Authority::new("ours");
    let leaf = authority.sign(&params(&["zk1.test"]));
    let mut settings = dir.settings("1", &leaf, &[&authority.pem()]);
    for store in [&mut settings.key_store, &mut settings.trust_store] {
        let password = store.path.with_extension("password");
        store.password = Some(StorePassword::File(password));
    }
    let marks = [("1.password", "one"), ("1.password", "another"), ("1-trust.password", "one")]
        .map(|(name, text)| {
            dir.file(name, text);
            Marks::of(&settings)
        });
    assert!(marks[0] != marks[1] && marks[1] != marks[2]);
    assert_eq!(Marks::of(&settings), marks[2]);
}

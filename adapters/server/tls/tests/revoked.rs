//! Certificates that their authority has taken back.

use std::path::Path;

use quorate_tls::{Reason, RevokedFile, Settings, Tls, lists_in};
use rcgen::{CertificateParams, SerialNumber};

use crate::handshakes::{any, connect};
use crate::made::{Authority, Dir, Leaf, but, params, self_signed};

const FAR: i32 = 2200;
const PAST: i32 = 2002;

fn numbered(serial: u8) -> CertificateParams {
    let mut params = params(&["zk.test"]);
    params.serial_number = Some(SerialNumber::from(vec![serial]));
    params
}

fn with_lists(dir: &Dir, settings: &Settings, lists: &[String], strict: bool) -> Settings {
    let path = dir.file("lists.pem", &lists.concat()).path;
    but(settings, |settings| settings.revoked = Some(RevokedFile { path, strict }))
}

/// Why a server with these lists does not let one with this certificate in, as it dials and as it is dialled.
fn refusals(dir: &Dir, own: &Tls, leaf: &Leaf, trusted: &[&str]) -> [Option<Reason>; 2] {
    let other = Tls::open(dir.settings("other", leaf, trusted)).unwrap();
    let accepts = connect(&other, own, any()).0.1;
    let dials = connect(own, &other, any()).0.0;
    [accepts, dials]
}

#[test]
fn what_is_wrong_with_a_file_of_lists_is_said_in_a_short_line_without_what_stands_in_it() {
    let long = "k".repeat(4_000);
    for (text, what) in [
        (format!("-----BEGIN X509 CRL-----{long}\n"), "begins its section of PEM is broken"),
        (format!("-----BEGIN X509 CRL-----\n{long}\n"), "has no end"),
        (format!("-----BEGIN X509 CRL-----\n?{long}\n-----END X509 CRL-----\n"), "cannot be read"),
        (long, "holds no list"),
    ] {
        let told = lists_in(Path::new("lists.pem"), text.as_bytes()).unwrap_err().to_string();
        assert!(told.contains(what) && told.len() < 200, "{told}");
        assert!(!told.contains("kkk") && !told.contains("107, 107"), "{told}");
    }
}

#[test]
fn what_an_authority_has_taken_back_is_refused_on_either_side() {
    let dir = Dir::new("revoked");
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let trusted = &[&*ours.pem(), &*theirs.pem()];
    let leaf = |of: &Authority, serial| of.sign(&numbered(serial));
    let settings = dir.settings("own", &leaf(&ours, 9), trusted);
    let opened =
        |lists: &[String], strict| Tls::open(with_lists(&dir, &settings, lists, strict)).unwrap();
    let [good, bad] = [1, 2].map(|serial| leaf(&ours, serial));
    let foreign = leaf(&theirs, 2);
    let unlisted = Tls::open(settings.clone()).unwrap();
    let revoked = [Some(Reason::Revoked); 2];
    assert_eq!(refusals(&dir, &unlisted, &bad, trusted), [None; 2]);

    let own = opened(&[ours.list(&[2], FAR)], false);
    assert_eq!(own.overdue(), <[String; 0]>::default());
    assert_eq!(refusals(&dir, &own, &good, trusted), [None; 2]);
    assert_eq!(refusals(&dir, &own, &bad, trusted), revoked);
    assert_eq!(
        refusals(&dir, &own, &foreign, trusted),
        revoked,
        "there is no list of its authority"
    );

    let own = opened(&[ours.list(&[2], FAR), theirs.list(&[7, 8], FAR)], false);
    assert_eq!(refusals(&dir, &own, &bad, trusted), revoked);
    assert_eq!(refusals(&dir, &own, &foreign, trusted), [None; 2], "2 is ours of that number");

    // A list that another has signed says nothing of ours.
    let forger = Authority::new("ours");
    let own = opened(&[forger.list(&[], FAR)], false);
    assert_ne!(refusals(&dir, &own, &good, trusted), [None; 2]);
}

#[test]
fn a_list_that_is_overdue_counts_unless_lists_have_to_be_new() {
    let dir = Dir::new("overdue");
    let ours = Authority::new("ours");
    let trusted = &[&*ours.pem()];
    let settings = dir.settings("own", &ours.sign(&numbered(9)), trusted);
    let [good, bad] = [1, 2].map(|serial| ours.sign(&numbered(serial)));
    let revoked = [Some(Reason::Revoked); 2];
    for (strict, of_good) in [(false, [None; 2]), (true, revoked)] {
        let lists = with_lists(&dir, &settings, &[ours.list(&[2], PAST)], strict);
        let own = Tls::open(lists).unwrap();
        let overdue = own.overdue();
        assert!(overdue[0].contains("CN=ours") && overdue.len() == 1, "{overdue:?}");
        assert_eq!(refusals(&dir, &own, &good, trusted), of_good, "{strict}");
        assert_eq!(refusals(&dir, &own, &bad, trusted), revoked);
    }
}

#[test]
fn one_that_is_trusted_by_itself_is_refused_if_a_list_names_it_and_needs_none() {
    let dir = Dir::new("revoked-itself");
    let ours = Authority::new("ours");
    let [listed, other] = [2, 3].map(|serial| ours.sign(&numbered(serial)));
    let alone = self_signed(params(&["zk.test"]), false);
    let trusted = &[&*listed.certificate, &*other.certificate, &*alone.certificate, &*ours.pem()];
    let settings = dir.settings("own", &ours.sign(&numbered(9)), trusted);
    let own = Tls::open(with_lists(&dir, &settings, &[ours.list(&[2], FAR)], false)).unwrap();
    let all = &[&*ours.pem()];
    assert_eq!(refusals(&dir, &own, &listed, all), [Some(Reason::Revoked); 2]);
    assert_eq!(refusals(&dir, &own, &other, all), [None; 2]);
    assert_eq!(refusals(&dir, &own, &alone, all), [None; 2]);
}

#[test]
fn lists_that_cannot_be_read_stop_the_start() {
    let dir = Dir::new("unreadable-lists");
    let ours = Authority::new("ours");
    let settings = dir.settings("own", &ours.sign(&numbered(9)), &[&ours.pem()]);
    let list = ours.list(&[2], FAR);
    let cut = list.replacen("CRL-----\n", "CRL-----\nAAAA", 1);
    for (text, said) in [
        (String::new(), "it holds no list"),
        (ours.pem(), "it holds no list"),
        (cut, "list 1: "),
        (format!("{list}-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"), "list 2: "),
    ] {
        let error = Tls::open(with_lists(&dir, &settings, &[text], false)).unwrap_err().to_string();
        assert!(error.contains("lists.pem: ") && error.contains(said), "{error}");
    }
    let path = "/nowhere/lists.pem".into();
    let missing = but(&settings, |s| s.revoked = Some(RevokedFile { path, strict: false }));
    assert!(Tls::open(missing).unwrap_err().to_string().contains("/nowhere/lists.pem"));
}

/// Whether a link may stay when the stores have changed.
#[test]
fn a_certificate_is_looked_at_again_with_the_stores_of_now() {
    let dir = Dir::new("again");
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let leaf = old.sign(&numbered(2));
    let both = &[&*old.pem(), &*new.pem()];
    let settings = dir.settings("own", &new.sign(&numbered(9)), both);
    let own = Tls::open(settings).unwrap();
    let other = Tls::open(dir.settings("other", &leaf, both)).unwrap();
    let (_, client) = connect(&own, &other, any());
    let shown = client.peer_certificates().unwrap().to_vec();
    assert_eq!(own.still_trusts(&shown, true), Ok(()));
    assert_eq!(own.still_trusts(&shown, false), Ok(()));
    let without = dir.settings("own", &new.sign(&numbered(9)), &[&new.pem()]);
    let refused = Tls::open(without).unwrap().still_trusts(&shown, true).unwrap_err();
    assert_eq!(refused.reason, Reason::UnknownAuthority);
    let settings = dir.settings("own", &new.sign(&numbered(9)), both);
    let listed = with_lists(&dir, &settings, &[old.list(&[2], FAR), new.list(&[], FAR)], false);
    let refused = Tls::open(listed).unwrap().still_trusts(&shown, true).unwrap_err();
    assert_eq!(refused.reason, Reason::Revoked);
}

//! Handshakes in memory: who is let in, and what each side learns.

use std::io::{Read, Write};
use std::sync::Arc;

use quorate_tls::rustls::pki_types::CertificateDer;
use quorate_tls::rustls::pki_types::pem::PemObject;
use quorate_tls::rustls::{ClientConfig, ClientConnection, Connection, ServerConnection};
use quorate_tls::{Check, Failure, Reason, Tls, Versions, names_of, trusted_by};

use crate::made::{Authority, Dir, Leaf, accepting_only, but, params, self_signed, with_id};

/// What came of a handshake: at who dialled and at who accepted, in a word each; none if it was good.
pub(crate) type Outcome = (Option<Reason>, Option<Reason>);

pub(crate) fn connect(dials: &Tls, accepts: &Tls, check: Check) -> (Outcome, ClientConnection) {
    connect_by(dials.dialler(check).unwrap(), accepts)
}

fn connect_by(dialler: Arc<ClientConfig>, accepts: &Tls) -> (Outcome, ClientConnection) {
    let dummy = "quorate.invalid".try_into().unwrap();
    let mut client = ClientConnection::new(dialler, dummy).unwrap();
    let mut server = ServerConnection::new(accepts.acceptor()).unwrap();
    let mut outcome = (None, None);
    for _ in 0..10 {
        let client_failed = carry(&mut client, &mut server);
        outcome.1 = outcome.1.or(client_failed);
        let mut connection = Connection::Server(server);
        let mut other = Connection::Client(client);
        let failed = carry_connection(&mut connection, &mut other);
        outcome.0 = outcome.0.or(failed);
        let (Connection::Server(back), Connection::Client(other)) = (connection, other) else {
            panic!("they have changed sides")
        };
        (server, client) = (back, other);
    }
    if outcome == (None, None) {
        let shown = server.peer_certificates().unwrap();
        names_of(&shown[0]).unwrap();
    }
    (outcome, client)
}

fn carry(from: &mut ClientConnection, to: &mut ServerConnection) -> Option<Reason> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut bytes = &bytes[..];
    while !bytes.is_empty() {
        to.read_tls(&mut bytes).unwrap();
        if let Err(error) = to.process_new_packets() {
            return Some(Failure::of(&std::io::Error::other(error)).reason);
        }
    }
    None
}

fn carry_connection(from: &mut Connection, to: &mut Connection) -> Option<Reason> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut bytes = &bytes[..];
    while !bytes.is_empty() {
        to.read_tls(&mut bytes).unwrap();
        if let Err(error) = to.process_new_packets() {
            return Some(Failure::of(&std::io::Error::other(error)).reason);
        }
    }
    None
}

pub(crate) fn any() -> Check {
    Arc::new(|_| Ok(()))
}

fn opened(dir: &Dir, name: &str, leaf: &Leaf, trusted: &[&str]) -> Tls {
    Tls::open(dir.settings(name, leaf, trusted)).unwrap()
}

#[test]
fn servers_of_one_authority_link_and_whoever_dialled_gets_a_receipt() {
    let dir = Dir::new("receipt");
    let authority = Authority::new("ours");
    let leaf = authority.sign(&params(&["zk1.test"]));
    let tls = opened(&dir, "1", &leaf, &[&authority.pem()]);
    let names: Check = Arc::new(|names| match names.hosts == ["zk1.test"] {
        true => Ok(()),
        false => Err(Failure::new(Reason::Name, names.to_string())),
    });
    let (outcome, mut client) = connect(&tls, &tls, names);
    assert_eq!(outcome, (None, None));
    assert_eq!(client.tls13_tickets_received(), 1);
    client.writer().write_all(b"x").unwrap();
    assert!(client.reader().read(&mut [0; 1]).is_err(), "nothing was said yet");

    let wrong: Check = Arc::new(|_| Err(Failure::new(Reason::Name, "another")));
    let (outcome, client) = connect(&tls, &tls, wrong);
    assert_eq!(outcome, (Some(Reason::Name), Some(Reason::RefusedByPeer)));
    assert_eq!(client.tls13_tickets_received(), 0);
}

/// As ZooKeeper's guide makes them, and as `openssl req -x509` does; in either version of TLS.
#[test]
fn a_certificate_that_stands_in_the_trust_store_is_trusted_whatever_it_says_of_itself() {
    let dir = Dir::new("self-signed");
    for says_authority in [false, true] {
        let [first, second, third] =
            [(), (), ()].map(|()| self_signed(params(&[]), says_authority));
        let both = [first.certificate.as_str(), second.certificate.as_str()];
        for tls13 in [false, true] {
            let open = |name: &str, leaf: &Leaf, trusted: &[&str]| {
                let settings = dir.settings(name, leaf, trusted);
                let versions = Versions { tls12: !tls13, tls13 };
                Tls::open(but(&settings, |settings| settings.versions = versions)).unwrap()
            };
            let (one, two) = (open("1", &first, &both), open("2", &second, &both));
            assert_eq!(connect(&one, &two, any()).0, (None, None), "{says_authority}, {tls13}");
            let three = open("3", &third, &both);
            let (outcome, _) = connect(&three, &one, any());
            let refused = (Some(Reason::RefusedByPeer), Some(Reason::UnknownAuthority));
            assert_eq!(outcome, refused, "{says_authority}, {tls13}");
            // It is trusted for itself alone where it does not say that it may sign.
            if !says_authority {
                let (outcome, _) = connect(&one, &three, any());
                assert_eq!(outcome.0, Some(Reason::UnknownAuthority));
            }
        }
    }
}

/// It is trusted for itself: neither for ever, nor for what it does not say, nor for others.
#[test]
fn a_certificate_of_the_trust_store_is_looked_at_and_signs_for_no_other() {
    let dir = Dir::new("known");
    let good = self_signed(params(&["zk1.test"]), false);
    let mut ended = params(&["zk2.test"]);
    ended.not_before = rcgen::date_time_ymd(2001, 1, 1);
    ended.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let ended = self_signed(ended, false);
    let member = Authority::that_is_none("zk3.test");
    let signed = member.sign(&params(&["zk1.test"]));
    let (known, trusted) = (member.pem(), [good.certificate.as_str(), &ended.certificate]);
    let one = opened(&dir, "1", &good, &[trusted[0], trusted[1], &known]);
    let two = opened(&dir, "2", &ended, &trusted);
    let reason = |outcome: (Outcome, ClientConnection)| outcome.0;
    let refused = (Some(Reason::RefusedByPeer), Some(Reason::Expired));
    assert_eq!(reason(connect(&two, &one, any())), refused);
    let three = opened(&dir, "3", &signed, &trusted);
    let refused = (Some(Reason::RefusedByPeer), Some(Reason::UnknownAuthority));
    assert_eq!(reason(connect(&three, &one, any())), refused);
}

#[test]
fn who_is_not_trusted_is_refused_and_the_reason_said() {
    let dir = Dir::new("refused");
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (ours_pem, theirs_pem) = (ours.pem(), theirs.pem());
    let good = opened(&dir, "good", &ours.sign(&params(&["zk1.test"])), &[&ours_pem]);
    let mut expired = params(&["zk1.test"]);
    expired.not_before = rcgen::date_time_ymd(2001, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let mut early = params(&["zk1.test"]);
    early.not_before = rcgen::date_time_ymd(2200, 1, 1);
    early.not_after = rcgen::date_time_ymd(2201, 1, 1);
    for (what, leaf, reason) in [
        ("another authority", theirs.sign(&params(&["zk1.test"])), Reason::UnknownAuthority),
        ("expired", ours.sign(&expired), Reason::Expired),
        ("too early", ours.sign(&early), Reason::NotYetValid),
    ] {
        let trusted = [ours_pem.as_str(), theirs_pem.as_str()];
        let other = opened(&dir, "other", &leaf, &trusted);
        let (outcome, client) = connect(&other, &good, any());
        assert_eq!(outcome, (Some(Reason::RefusedByPeer), Some(reason)), "{what} dials");
        assert_eq!(client.tls13_tickets_received(), 0, "{what}");
        let (outcome, _) = connect(&good, &other, any());
        assert_eq!(outcome, (Some(reason), Some(Reason::RefusedByPeer)), "{what} accepts");
    }
}

#[test]
fn versions_and_suites_that_do_not_meet_are_named() {
    let dir = Dir::new("versions");
    let authority = Authority::new("ours");
    let leaf = authority.sign(&params(&["zk1.test"]));
    let settings = dir.settings("1", &leaf, &[&authority.pem()]);
    let open = |tls12, tls13| {
        let versions = Versions { tls12, tls13 };
        Tls::open(but(&settings, |settings| settings.versions = versions)).unwrap()
    };
    let (old, new, both) = (open(true, false), open(false, true), open(true, true));
    assert_eq!(connect(&old, &both, any()).0, (None, None));
    assert_eq!(connect(&both, &old, any()).0, (None, None));
    assert_eq!(connect(&new, &both, any()).0, (None, None));
    assert_eq!(connect(&old, &new, any()).0.1, Some(Reason::Version));
    assert_eq!(connect(&new, &old, any()).0.1, Some(Reason::Version));
}

#[test]
fn a_certificate_that_may_only_accept_is_refused_at_start_and_by_others() {
    let dir = Dir::new("usage");
    let authority = Authority::new("ours");
    let leaf = authority.sign(&accepting_only(&["zk1.test"]));
    let error = Tls::open(dir.settings("1", &leaf, &[&authority.pem()])).unwrap_err();
    assert!(error.to_string().contains("add clientAuth"), "{error}");
}

#[test]
fn a_certificate_may_be_for_a_server_by_its_id() {
    let dir = Dir::new("id");
    let authority = Authority::new("ours");
    let tls = opened(&dir, "1", &authority.sign(&with_id(7)), &[&authority.pem()]);
    let seven: Check = Arc::new(|names| match names.ids[..] {
        [quorate_core::id::ServerId(7)] => Ok(()),
        _ => Err(Failure::new(Reason::Identity, names.to_string())),
    });
    assert_eq!(connect(&tls, &tls, seven).0, (None, None));
}

#[test]
fn an_onlooker_sees_whoever_answers_and_may_then_ask_who_would_trust_it() {
    let dir = Dir::new("onlooker");
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let looks = opened(&dir, "1", &ours.sign(&params(&["zk1.test"])), &[&ours.pem()]);
    let both = [ours.pem(), theirs.pem()];
    let both: Vec<_> = both.iter().map(String::as_str).collect();
    let answers = opened(&dir, "2", &theirs.sign(&params(&["zk2.test"])), &both);
    let (outcome, client) = connect_by(looks.onlooker().unwrap(), &answers);
    assert_eq!(outcome, (None, None));
    let shown = client.peer_certificates().unwrap();
    assert_eq!(names_of(&shown[0]).unwrap().hosts, ["zk2.test"]);
    let unknown = Reason::UnknownAuthority;
    assert_eq!(looks.still_trusts(shown, true).unwrap_err().reason, unknown);
    let der = |of: &Authority| CertificateDer::from_pem_slice(of.pem().as_bytes()).unwrap();
    assert_eq!(trusted_by(&[der(&ours)], shown, true).unwrap_err().reason, unknown);
    assert_eq!(trusted_by(&[der(&ours), der(&theirs)], shown, true), Ok(()));
    // Of the same name, and not the same.
    let other = der(&Authority::new("theirs"));
    assert_eq!(trusted_by(&[other], shown, true).unwrap_err().reason, unknown);
}

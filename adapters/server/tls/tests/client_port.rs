//! Clients at the port of a server: who is let in, and who each is.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use quorate_tls::rustls::{ClientConnection, ServerConnection};
use quorate_tls::{
    ClientAuth, ClientSettings, ClientTls, Failure, Reason, RevokedFile, Tls, holder_of,
};
use rcgen::{DnType, SerialNumber};

use crate::made::{Authority, Dir, Leaf, accepting_only, params};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The settings of a server with this certificate, and of whom it trusts.
fn settings(dir: &Dir, leaf: &Leaf, trusted: Option<&str>) -> ClientSettings {
    let own = dir.file("server.pem", &format!("{}{}", leaf.certificate, leaf.key));
    ClientSettings::new(own, trusted.map(|trusted| dir.file("clients.pem", trusted)))
}

/// A handshake in memory; why the server refuses, if it does.
fn connect(client: &Tls, server: &ClientTls) -> Result<ServerConnection, Reason> {
    let any = Arc::new(|_: &_| Ok(()));
    let dummy = "quorate.invalid".try_into().unwrap();
    let mut client = ClientConnection::new(client.dialler(any).unwrap(), dummy).unwrap();
    let mut server = ServerConnection::new(server.acceptor()).unwrap();
    for _ in 0..10 {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut bytes = &bytes[..];
        while !bytes.is_empty() {
            server.read_tls(&mut bytes).unwrap();
            let read = server.process_new_packets();
            read.map_err(|error| Failure::of(&std::io::Error::other(error)).reason)?;
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut bytes = &bytes[..];
        while !bytes.is_empty() {
            client.read_tls(&mut bytes).unwrap();
            client.process_new_packets().unwrap();
        }
    }
    assert!(!server.is_handshaking());
    Ok(server)
}

#[test]
fn a_client_is_who_its_certificate_says_and_the_server_need_not_dial() {
    let dir = Dir::new("client-port");
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (ours_pem, both) = (ours.pem(), ours.pem() + &theirs.pem());
    let server = ours.sign(&accepting_only(&["zk1.test"]));
    let server = ClientTls::open(settings(&dir, &server, Some(&ours_pem))).unwrap();
    let mut subject = params(&["client.test"]);
    subject.distinguished_name.push(DnType::OrganizationalUnitName, "ops, and more");
    let good = Tls::open(dir.settings("good", &ours.sign(&subject), &[&both])).unwrap();
    let connected = connect(&good, &server).unwrap();
    let certificate = &connected.peer_certificates().unwrap()[0];
    let holder = server.holder(certificate, HERE).unwrap();
    assert!(holder.subject.contains("OU=ops\\, and more"), "{}", holder.subject);
    assert_eq!(holder_of(certificate).unwrap(), holder);
    let other = theirs.sign(&params(&["client.test"]));
    let other = Tls::open(dir.settings("other", &other, &[&both])).unwrap();
    assert_eq!(connect(&other, &server).map(drop), Err(Reason::UnknownAuthority));
}

#[test]
fn a_client_whose_certificate_was_taken_back_is_refused_and_a_list_that_is_overdue_is_told() {
    let dir = Dir::new("client-revoked");
    let authority = Authority::new("ours");
    let server = authority.sign(&params(&["zk1.test"]));
    let mut settings = settings(&dir, &server, Some(&authority.pem()));
    let client = |serial| {
        let mut params = params(&["client.test"]);
        params.serial_number = Some(SerialNumber::from(vec![serial]));
        Tls::open(dir.settings("c", &authority.sign(&params), &[&authority.pem()])).unwrap()
    };
    let [good, bad] = [1, 2].map(client);
    for (ends, strict, of_good) in
        [(2200, false, None), (2002, false, None), (2002, true, Some(Reason::Revoked))]
    {
        let path = dir.file("lists.pem", &authority.list(&[2], ends)).path;
        settings.revoked = Some(RevokedFile { path, strict });
        let server = ClientTls::open(settings.clone()).unwrap();
        assert_eq!(connect(&good, &server).err(), of_good, "{ends}, {strict}");
        assert_eq!(connect(&bad, &server).err(), Some(Reason::Revoked));
        assert_eq!(server.overdue().len(), usize::from(ends == 2002));
    }
    // Another list is another content of its files.
    let before = ClientTls::marks_of(&settings);
    dir.file("lists.pem", &authority.list(&[2, 3], 2200));
    assert_ne!(ClientTls::marks_of(&settings), before);
    dir.file("lists.pem", "nothing");
    let error = ClientTls::open(settings).unwrap_err().to_string();
    assert!(error.contains("lists.pem"), "{error}");
}

#[test]
fn a_certificate_has_to_name_the_address_only_where_that_is_wanted() {
    let dir = Dir::new("client-names");
    let authority = Authority::new("ours");
    let server = authority.sign(&params(&["zk1.test"]));
    let mut settings = settings(&dir, &server, Some(&authority.pem()));
    let here = authority.sign(&params(&["127.0.0.1"]));
    let named = authority.sign(&params(&["client.test"]));
    for verify_names in [false, true] {
        settings.verify_names = verify_names;
        let server = ClientTls::open(settings.clone()).unwrap();
        for (leaf, good) in [(&here, true), (&named, !verify_names)] {
            let client = Tls::open(dir.settings("c", leaf, &[&authority.pem()])).unwrap();
            let connected = connect(&client, &server).unwrap();
            let certificate = &connected.peer_certificates().unwrap()[0];
            let held = server.holder(certificate, HERE).map_err(|failure| failure.reason);
            assert_eq!(held.map(drop), if good { Ok(()) } else { Err(Reason::Name) });
        }
    }
}

#[test]
fn without_a_trust_store_no_client_is_asked_who_it_is() {
    let dir = Dir::new("client-none");
    let authority = Authority::new("ours");
    let leaf = authority.sign(&params(&["zk1.test"]));
    let mut settings = settings(&dir, &leaf, None);
    assert_eq!(settings.client_auth, ClientAuth::None);
    settings.client_auth = ClientAuth::Need;
    let server = ClientTls::open(settings).unwrap();
    let client = Tls::open(dir.settings("c", &leaf, &[&authority.pem()])).unwrap();
    assert!(connect(&client, &server).unwrap().peer_certificates().is_none());
}

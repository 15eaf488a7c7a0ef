//! Ports with TLS around them: who is heard, and who is not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_driver::Runtime;
use quorate_driver::testing::member_stores;
use quorate_http::{Limits, NoMore, Pages, Port, Secure};
use quorate_smol::Smol;
use quorate_tls::{ClientAuth, ClientSettings, ClientTls, StoreFile};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{get, on, parts, until};

const ASKED: &str = "GET /healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// Pages of a server that is yet to start, over TLS with the stores of server 1.
struct Site {
    at: SocketAddr,
    secure: Arc<Secure>,
    dir: tempfile::TempDir,
    stranger: Arc<ClientConfig>,
}

impl Site {
    fn open(accepts_plain: bool, adjust: impl FnOnce(&mut ClientSettings)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stranger = stores(dir.path());
        let file = |name: &str| StoreFile::new(dir.path().join("1").join(name));
        let mut settings = ClientSettings::new(file("own.pem"), Some(file("trusted.pem")));
        adjust(&mut settings);
        let secure = Arc::new(Secure::new(ClientTls::open(settings).unwrap(), accepts_plain));
        let at_port = Arc::clone(&secure);
        let at = on(&Smol, async move {
            let port = Port::open(Smol, "127.0.0.1:0".parse().unwrap()).await.unwrap();
            let at = port.local_addr();
            let limits = Limits { connections: 4, ..Limits::default() };
            let site = Arc::new(Pages::<Smol>::with(NoMore, Duration::from_secs(2)));
            Smol.spawn(port.secured(at_port).serve(site, limits));
            at
        });
        Self { at, secure, dir, stranger }
    }

    /// Those that it refuses may know it before it has counted them.
    fn has_refused(&self, counts: &[(&str, u64)]) {
        until("its counts", || (self.secure.refused() == counts).then_some(()));
    }

    /// The status of an answer through a handshake; none if it fails.
    fn status(&self, client: &Arc<ClientConfig>) -> Option<u16> {
        let stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let name = "127.0.0.1".try_into().unwrap();
        let shaken = ClientConnection::new(Arc::clone(client), name).unwrap();
        let mut stream = StreamOwned::new(shaken, stream);
        stream.write_all(ASKED.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(parts(&answer).0)
    }
}

/// Writes those of servers 1 and 2, of an authority of its own; how one dials them without a certificate.
fn stores(dir: &Path) -> Arc<ClientConfig> {
    member_stores(dir, [1, 2].map(ServerId))
}

/// One that shows the certificate of server 2.
fn holder(dir: &Path) -> Arc<ClientConfig> {
    let file = |name: &str| dir.join("2").join(name);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("trusted.pem")).unwrap()).unwrap();
    let own = CertificateDer::from_pem_file(file("own.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("own.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    Arc::new(config.with_client_auth_cert(vec![own], key).unwrap())
}

#[test]
fn requests_are_answered_within_tls_and_without_it_nothing_is() {
    let site = Site::open(false, |settings| settings.client_auth = ClientAuth::None);
    assert_eq!(site.status(&site.stranger), Some(200));
    assert_eq!(get(site.at, "/healthy").0, 0);
    assert_eq!(site.status(&site.stranger), Some(200));
    site.has_refused(&[("plain-on-tls-port", 1)]);
}

#[test]
fn a_port_for_both_answers_both() {
    let site = Site::open(true, |settings| settings.client_auth = ClientAuth::None);
    assert_eq!(site.status(&site.stranger), Some(200));
    assert_eq!(get(site.at, "/healthy").0, 200);
}

#[test]
fn where_a_certificate_is_asked_for_who_has_none_or_anothers_is_refused() {
    let site = Site::open(false, |settings| settings.client_auth = ClientAuth::Need);
    assert_eq!(site.status(&holder(site.dir.path())), Some(200));
    assert_eq!(site.status(&site.stranger), None);
    // Of another authority; it trusts this one.
    let other = tempfile::tempdir().unwrap();
    stores(other.path());
    let trusted = site.dir.path().join("2/trusted.pem");
    std::fs::copy(trusted, other.path().join("2/trusted.pem")).unwrap();
    assert_eq!(site.status(&holder(other.path())), None);
    site.has_refused(&[("no-certificate", 1), ("unknown-authority", 1)]);
}

#[test]
fn new_certificates_are_shown_to_who_comes_then() {
    let site = Site::open(false, |settings| {
        settings.client_auth = ClientAuth::Need;
        settings.reload = Some(Duration::from_millis(20));
    });
    let before = holder(site.dir.path());
    assert_eq!(site.status(&before), Some(200));
    stores(site.dir.path());
    let after = holder(site.dir.path());
    until("the new certificate", || (site.status(&after) == Some(200)).then_some(()));
    assert_eq!(site.status(&before), None);
}

#[test]
fn handshakes_that_do_not_go_on_leave_room() {
    let site = Site::open(false, |settings| {
        settings.client_auth = ClientAuth::None;
        settings.handshake_time = Duration::from_millis(300);
    });
    let half = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(site.at).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    let rounds = [[&b""[..]; 4], [b"\x16", b"\x16\x03\x01\x40\0", b"\x16\x03", b"\x16\x03\x01"]];
    for round in rounds {
        let _held = round.map(half);
        until("room", || (site.status(&site.stranger) == Some(200)).then_some(()));
    }
}

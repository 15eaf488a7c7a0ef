//! What a zoo.cfg says of TLS for clients.
#![cfg(feature = "tls")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io;
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_driver::zoo_cfg::{ConfigError, ZooCfg};
use quorate_tls::{ClientAuth, Password, RevokedFile, StoreKind, StorePassword, Suite, Versions};

const BASE: &str = "dataDir=/data\ninitLimit=10\nsyncLimit=5\n\
                    server.1=zk1:2888:3888\nserver.2=zk2:2888:3888\nserver.3=zk3:2888:3888\n";
const STORES: &str = "ssl.keyStore.location=/etc/zk/own.jks\nssl.keyStore.passwordPath=/etc/zk/pw\n\
                      ssl.trustStore.location=/etc/zk/trust\nssl.trustStore.type=pkcs12\n\
                      ssl.trustStore.password=letmein\n";

fn parse(text: &str) -> Result<ZooCfg, ConfigError> {
    ZooCfg::parse("zoo.cfg", text, |path| match path.to_str() {
        Some("/data/myid") => Ok("2".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    })
}

fn with(lines: &str) -> ZooCfg {
    parse(&format!("{BASE}{STORES}{lines}")).unwrap()
}

#[test]
fn what_is_said_of_tls_for_clients_is_taken_as_zookeeper_means_it() {
    let factory = "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n";
    let cfg = with(&format!("clientPort=2181\nsecureClientPort=2281\n{factory}"));
    assert_eq!(cfg.warnings, []);
    let tls = cfg.client_tls.as_ref().unwrap();
    assert_eq!(tls.address, Some(HostPort { host: "0.0.0.0".to_owned(), port: 2281 }));
    assert_eq!((tls.on_plain_port, tls.settings.client_auth), (false, ClientAuth::Need));
    assert_eq!(tls.settings.versions, Versions { tls12: true, tls13: true });
    assert!(!tls.settings.verify_names);
    assert_eq!(tls.settings.handshake_time, Duration::from_secs(5));
    assert_eq!(tls.settings.reload, Some(Duration::from_secs(10)));
    assert_eq!(tls.settings.key_store.password, Some(StorePassword::File("/etc/zk/pw".into())));
    let trust = tls.settings.trust_store.as_ref().unwrap();
    assert_eq!(trust.kind, Some(StoreKind::Pkcs12));
    assert_eq!(trust.password, Some(StorePassword::Inline(Password::new("letmein"))));
    assert!(!format!("{cfg:?}").contains("letmein"));

    let cfg = with(
        "clientPort=2181\nclient.portUnification=true\nssl.protocol=TLSv1.2\nssl.clientAuth=want\n\
         ssl.clientHostnameVerification=true\nssl.handshakeDetectionTimeoutMillis=700\n\
         ssl.ciphersuites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\nssl.sslProvider=OPENSSL\n\
         client.certReload=false\nssl.hostnameVerification=true\nssl.authProvider=x509\n\
         X509AuthenticationProvider.superUser=CN=admin,O=ours\n",
    );
    assert_eq!(cfg.clients.x509_super.as_deref(), Some("CN=admin,O=ours"));
    let told: Vec<_> = cfg.warnings.iter().map(ToString::to_string).collect();
    for part in ["clientAuth=want: clients", "sslProvider=OPENSSL", "ssl.hostnameVerification=true"]
    {
        assert!(told.iter().any(|told| told.contains(part)), "{part}: {told:?}");
    }
    assert_eq!(told.len(), 3, "{told:?}");
    let tls = cfg.client_tls.unwrap();
    assert_eq!((tls.address, tls.on_plain_port), (None, true));
    let settings = tls.settings;
    assert_eq!((settings.client_auth, settings.verify_names), (ClientAuth::Want, true));
    assert_eq!(settings.versions, Versions { tls12: true, tls13: false });
    assert_eq!(settings.suites, [Suite::EcdheRsaAes128]);
    assert_eq!((settings.handshake_time, settings.reload), (Duration::from_millis(700), None));
    assert_eq!(settings.revoked, None);
    let lists = "secureClientPort=2281\nquorate.ssl.client.crlFile=/lists.pem\n";
    for (more, strict) in [("", false), ("quorate.ssl.client.crlStrict=true\n", true)] {
        let cfg = with(&format!("{lists}{more}"));
        let revoked = RevokedFile { path: "/lists.pem".into(), strict };
        assert_eq!(cfg.client_tls.unwrap().settings.revoked, Some(revoked));
    }
}

#[test]
fn the_interval_of_looks_counts_for_both_kinds_of_stores() {
    let stores = STORES.replace("ssl.", "ssl.quorum.");
    let lines =
        format!("{stores}sslQuorum=true\nsecureClientPort=2281\nquorate.ssl.reloadInterval=70\n");
    let cfg = with(&lines);
    let every = Some(Duration::from_millis(70));
    assert_eq!(cfg.tls.unwrap().reload, every);
    assert_eq!(cfg.client_tls.unwrap().settings.reload, every);
    let cfg = with("secureClientPort=2281\nquorate.ssl.reloadInterval=70\n");
    assert_eq!((cfg.client_tls.unwrap().settings.reload, cfg.warnings), (every, vec![]));
}

#[test]
fn without_a_port_for_it_each_key_is_told_to_be_of_no_use() {
    for off in ["", "secureClientPort=0\n", "secureClientPort=-1\nclient.portUnification=false\n"] {
        let cfg = with(&format!("clientPort=2181\n{off}"));
        assert_eq!(cfg.client_tls, None);
        assert_eq!(cfg.warnings.len(), 5, "{:?}", cfg.warnings);
    }
}

#[test]
fn clients_that_are_not_asked_who_they_are_need_no_trust_store() {
    let own = "ssl.keyStore.location=/own.pem\nssl.clientAuth=none\nsecureClientPort=2281\n";
    let settings = parse(&format!("{BASE}{own}")).unwrap().client_tls.unwrap().settings;
    assert_eq!((settings.trust_store, settings.client_auth), (None, ClientAuth::None));
}

#[test]
fn the_line_of_a_server_may_have_its_secure_port() {
    let line = "server.2=zk2:2888:3888;2181;2282";
    let text = BASE.replace("server.2=zk2:2888:3888", line);
    let port = |text: &str| parse(text).unwrap().secure_client_address().map(|at| at.port);
    assert_eq!(port(&format!("{text}{STORES}")), Some(2282));
    assert_eq!(port(&format!("{text}{STORES}secureClientPort=2283\n")), Some(2283));
    assert_eq!(port(&text), None);
}

#[test]
fn a_server_alone_may_have_a_secure_port_alone() {
    let alone = "dataDir=/data\nsecureClientPort=2281\nsecureClientPortAddress=127.0.0.1\n";
    let cfg = parse(&format!("{alone}{STORES}")).unwrap();
    assert!(cfg.alone && cfg.client_address.is_none());
    assert_eq!(cfg.secure_client_address().unwrap().to_string(), "127.0.0.1:2281");
}

#[test]
fn what_cannot_be_meant_refuses_the_file() {
    for (lines, expected) in [
        ("ssl.keyStore.type=BCFKS", "should be JKS, PKCS12 or PEM"),
        ("ssl.protocol=SSLv3", "should be TLSv1.2 or TLSv1.3"),
        ("ssl.enabledProtocols=TLSv1.1", "should be a list with TLSv1.2, TLSv1.3 or both"),
        ("ssl.ciphersuites=TLS_NULL", "should be some of TLS_AES_128_GCM_SHA256"),
        ("ssl.clientAuth=perhaps", "should be none, want or need"),
        ("ssl.authProvider=digest", "should be x509"),
        ("ssl.crl=true", "quorate.ssl.client.crlFile names, is not supported"),
        ("ssl.ocsp=true", "asking an authority whether a certificate is revoked, in place of"),
        ("ssl.context.supplier.class=org.X", "a supplier of TLS contexts of its own is not"),
        ("clientPort=2281", "2281"),
        ("clientPort=2888", "2888"),
    ] {
        let text = format!("{BASE}{STORES}secureClientPort=2281\n{lines}\n");
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{lines}: {error}");
    }
    for (lines, expected) in [
        ("secureClientPort=2281\n", "ssl.keyStore.location is missing"),
        (
            "secureClientPort=2281\nssl.keyStore.location=/k.pem\n",
            "ssl.trustStore.location is missing",
        ),
        ("secureClientPortAddress=::1\n", "secureClientPort is missing"),
        ("secureClientPort=3888\nssl.keyStore.location=/k.pem\nssl.clientAuth=none\n", "3888"),
        ("secureClientPort=70000\n", "secureClientPort=70000"),
    ] {
        let error = parse(&format!("{BASE}{lines}")).unwrap_err().to_string();
        assert!(error.contains(expected), "{lines}: {error}");
    }
}

//! What a zoo.cfg says of TLS around HTTP.
#![cfg(feature = "tls")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io;
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_driver::zoo_cfg::{AdminTls, ConfigError, HttpSettings, ZooCfg};
use quorate_tls::{ClientAuth, Suite, Versions};

const BASE: &str = "dataDir=/data\ninitLimit=10\nsyncLimit=5\nclientPort=2181\n\
                    server.1=zk1:2888:3888\nserver.2=zk2:2888:3888\nserver.3=zk3:2888:3888\n";
const STORES: &str =
    "ssl.quorum.keyStore.location=/own.pem\nssl.quorum.trustStore.location=/trusted.pem\n";
const ADMIN: &str = "admin.enableServer=true\n";
const PROMETHEUS: &str =
    "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n";
const METRICS: &str = "metricsProvider.httpsPort=7443\nmetricsProvider.ssl.keyStore.location=/scraped.p12\n\
                       metricsProvider.ssl.trustStore.location=/scrapers.pem\n";

fn parse(lines: &str) -> Result<ZooCfg, ConfigError> {
    ZooCfg::parse("zoo.cfg", &format!("{BASE}{lines}"), |path| match path.to_str() {
        Some("/data/myid") => Ok("2".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    })
}

/// What is read, and what is told of it.
fn http(lines: &str) -> (HttpSettings, Vec<String>) {
    let cfg = parse(lines).unwrap();
    (cfg.http, cfg.warnings.iter().map(ToString::to_string).collect())
}

fn admin(lines: &str) -> (Option<AdminTls>, Vec<String>) {
    let (http, told) = http(&format!("{ADMIN}{lines}"));
    (http.admin.unwrap().tls, told)
}

#[test]
fn the_admin_server_has_the_stores_of_links_between_servers() {
    assert_eq!(admin("").0, None);
    // With TLS between servers, and without.
    for (servers, handshake) in
        [("sslQuorum=true\nssl.quorum.handshakeDetectionTimeoutMillis=700\n", 700), ("", 5000)]
    {
        let lines = format!("{servers}{STORES}ssl.quorum.protocol=TLSv1.2\n");
        let (tls, told) = admin(&format!("{lines}admin.forceHttps=true\n"));
        let AdminTls { settings, accepts_plain } = tls.unwrap();
        assert_eq!(told, [""; 0], "{servers}");
        assert!(!accepts_plain);
        assert_eq!(settings.key_store.path.to_str(), Some("/own.pem"));
        assert_eq!(settings.client_auth, ClientAuth::None);
        assert_eq!(settings.versions, Versions { tls12: true, tls13: false });
        assert_eq!(settings.handshake_time, Duration::from_millis(handshake));

        let (tls, told) =
            admin(&format!("{lines}admin.portUnification=true\nadmin.needClientAuth=true\n"));
        let AdminTls { settings, accepts_plain } = tls.unwrap();
        assert!(accepts_plain && told.len() == 1, "{told:?}");
        assert!(told[0].contains("admin.needClientAuth=true: requests without TLS"), "{told:?}");
        assert_eq!(settings.client_auth, ClientAuth::Need);
        assert_eq!(settings.trust_store.unwrap().path.to_str(), Some("/trusted.pem"));
    }
    // Where both are set there is TLS alone.
    let both = admin(&format!("{STORES}admin.portUnification=true\nadmin.forceHttps=true\n")).0;
    assert!(!both.unwrap().accepts_plain);
    // It is asked for where nothing listens.
    assert_eq!(
        http("admin.forceHttps=true\nadmin.needClientAuth=true\n").0,
        HttpSettings::default()
    );
}

#[test]
fn metrics_have_stores_of_their_own_and_a_scraper_shows_a_certificate() {
    let (read, told) = http(&format!("{PROMETHEUS}{METRICS}metricsProvider.httpHost=zk2\n"));
    assert_eq!((read.metrics, told), (None, Vec::new()));
    let metrics = read.secure_metrics.unwrap();
    assert_eq!(metrics.address, HostPort { host: "zk2".to_owned(), port: 7443 });
    assert_eq!(metrics.settings.key_store.path.to_str(), Some("/scraped.p12"));
    assert_eq!(metrics.settings.trust_store.unwrap().path.to_str(), Some("/scrapers.pem"));
    assert_eq!(metrics.settings.client_auth, ClientAuth::Need);

    // Both ports where both are set.
    let (read, _) = http(&format!("{PROMETHEUS}{METRICS}metricsProvider.httpPort=7000\n"));
    assert_eq!(read.metrics.unwrap().port, 7000);
    assert_eq!(read.secure_metrics.unwrap().address.host, "127.0.0.1");

    let auth = |lines: &str| {
        let (read, told) = http(&format!("{PROMETHEUS}{METRICS}{lines}"));
        assert_eq!(told, [""; 0], "{lines}");
        read.secure_metrics.unwrap().settings
    };
    let (need, want) =
        ("metricsProvider.ssl.need.client.auth", "metricsProvider.ssl.want.client.auth");
    assert_eq!(auth(&format!("{need}=false\n")).client_auth, ClientAuth::Want);
    assert_eq!(auth(&format!("{need}=false\n{want}=false\n")).client_auth, ClientAuth::None);
    let spoken = auth(
        "metricsProvider.ssl.enabledProtocols=TLSv1.2\n\
         metricsProvider.ssl.ciphersuites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\n",
    );
    assert_eq!(spoken.versions, Versions { tls12: true, tls13: false });
    let one = Suite::from_name("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256").unwrap();
    assert_eq!(spoken.suites, [one]);

    // Without a provider that listens it is of no use, and each line says so.
    let (read, told) = http(METRICS);
    assert_eq!((read, told.len()), (HttpSettings::default(), 3), "{METRICS}");
}

#[test]
fn what_is_missing_is_named() {
    let missing = |lines: &str| match parse(lines) {
        Err(ConfigError::Missing { key, .. }) => key,
        other => panic!("{lines}: {other:?}"),
    };
    let own = "ssl.quorum.keyStore.location";
    assert_eq!(missing(&format!("{ADMIN}admin.forceHttps=true\n")), own);
    assert_eq!(missing(&format!("{ADMIN}admin.portUnification=true\n")), own);
    let needed =
        format!("{ADMIN}admin.forceHttps=true\nadmin.needClientAuth=true\n{own}=/own.pem\n");
    assert_eq!(missing(&needed), "ssl.quorum.trustStore.location");
    // Who asks for certificates does not mean that whoever reaches the port is heard.
    let alone = format!("{ADMIN}{STORES}admin.needClientAuth=true\n");
    assert_eq!(missing(&alone), "admin.forceHttps");
    let port = format!("{PROMETHEUS}metricsProvider.httpsPort=7443\n");
    assert_eq!(missing(&port), "metricsProvider.ssl.keyStore.location");
    let without = format!("{port}metricsProvider.ssl.keyStore.location=/k\n");
    assert_eq!(missing(&without), "metricsProvider.ssl.trustStore.location");
    assert!(parse(&format!("{without}metricsProvider.ssl.need.client.auth=false\n")).is_ok());
}

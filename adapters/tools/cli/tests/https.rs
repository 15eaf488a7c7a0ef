//! HTTP of `quorate serve` within TLS: the admin server, and metrics for Prometheus.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::common::{self, Ensemble, free_port, stderr, stdout, until};

/// The status and body of an answer; none if the server closes.
fn ask(client: &Arc<ClientConfig>, port: u16, path: &str) -> Option<(u16, String)> {
    let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let shaken = ClientConnection::new(Arc::clone(client), "127.0.0.1".try_into().unwrap());
    let mut stream = StreamOwned::new(shaken.unwrap(), stream);
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

#[test]
fn the_admin_server_and_metrics_are_read_within_tls_by_whom_the_file_means() {
    let ensemble = Ensemble::new(&["participant"], "");
    let dir = ensemble.dir.path();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    fs::write(dir.join("own.pem"), certificate.clone() + &key.serialize_pem()).unwrap();
    fs::write(dir.join("trusted.pem"), &certificate).unwrap();
    let [admin, metrics] = [free_port(), free_port()];
    let at = dir.display();
    let lines = format!(
        "\nssl.quorum.keyStore.location={at}/own.pem\nssl.quorum.trustStore.location={at}/trusted.pem\n\
         admin.enableServer=true\n\
         admin.serverPort={admin}\nadmin.forceHttps=true\n\
         metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n\
         metricsProvider.httpsPort={metrics}\nmetricsProvider.ssl.keyStore.location={at}/own.pem\n\
         metricsProvider.ssl.trustStore.location={at}/trusted.pem\n"
    );
    let mut file = OpenOptions::new().append(true).open(ensemble.cfg(1)).unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    let _server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);

    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let client = client.with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(roots);
    let stranger = Arc::new(client.clone().with_no_client_auth());
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let scraper = Arc::new(client.with_client_auth_cert(vec![certificate], key).unwrap());

    let (status, said) = ask(&stranger, admin, "/commands/ruok").unwrap();
    assert!(status == 200 && said.contains("\"command\" : \"ruok\""), "{said}");
    let page =
        || ask(&scraper, metrics, "/metrics").filter(|(_, page)| page.contains("znode_count"));
    until("what a server that serves shows", || page().filter(|(status, _)| *status == 200));
    // A scraper has to show a certificate, and neither port says a word without TLS.
    assert_eq!(ask(&stranger, metrics, "/metrics"), None);
    for port in [admin, metrics] {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        assert!(answer.is_empty(), "{answer:?}");
    }
    let said = common::read(&ensemble.log(1));
    assert!(said.contains("no TLS for HTTP"), "{said}");

    // `quorate doctor` reads it with the stores of servers, and says what it lacks without them.
    let cfg = ensemble.cfg(1);
    let tls = ["--tls".as_ref(), cfg.as_os_str()];
    for (more, is_read) in [(&[][..], false), (&tls[..], true)] {
        let told = common::quorate(
            ["doctor".as_ref(), cfg.as_os_str(), "--json".as_ref()].iter().chain(more),
        );
        let told: Value = serde_json::from_str(stdout(&told)).unwrap();
        let names = |list: &str| {
            let list = told[list].as_array().unwrap().iter();
            list.map(|entry| entry["what"].as_str().unwrap()).any(|what| what == "admin server")
        };
        assert_eq!((names("looked_at"), names("not_looked_at")), (is_read, !is_read), "{told}");
    }

    // Stores that cannot be used are told before anything listens.
    fs::write(dir.join("own.pem"), "nothing").unwrap();
    let refused = common::quorate(["serve".as_ref(), ensemble.cfg(1).as_os_str()]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("TLS for HTTP"), "{}", stderr(&refused));
}

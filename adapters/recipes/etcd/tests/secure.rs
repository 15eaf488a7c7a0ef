//! A cluster at https, which asks for certificates. Needs openssl.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use quorate_etcd::{Candidate, Config};

use crate::peers::{available, free_port, settings, standing, within};

/// It ends with this.
struct Etcd(Child);

impl Drop for Etcd {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Words between blanks.
fn openssl(dir: &Path, line: &str) -> bool {
    let mut openssl = Command::new("openssl");
    openssl.args(line.split_whitespace()).current_dir(dir);
    openssl.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    openssl.status().is_ok_and(|status| status.success())
}

/// An authority, and a certificate of it for both sides.
fn stores(dir: &Path) -> bool {
    let ec = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    fs::write(dir.join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    openssl(dir, &format!("req -x509 {ec} -subj /CN=authority -days 99 -keyout ca.key -out ca.pem"))
        && openssl(dir, &format!("req {ec} -subj /CN=one -keyout one.key -out one.csr"))
        && openssl(
            dir,
            "x509 -req -in one.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 99 -extfile names \
             -out one.pem",
        )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_stands_at_a_cluster_that_asks_for_its_certificate() {
    let dir = tempfile::tempdir().unwrap();
    if !available() {
        return;
    }
    assert!(stores(dir.path()), "openssl");
    let path = |name: &str| dir.path().join(name);
    let own = format!("https://127.0.0.1:{}", free_port());
    let peer = format!("http://127.0.0.1:{}", free_port());
    let log = File::create(path("log")).unwrap();
    let mut etcd = Command::new("etcd");
    etcd.arg("--data-dir").arg(path("data"));
    etcd.args(["--name", "one", "--initial-cluster", &format!("one={peer}")]);
    etcd.args(["--listen-client-urls", &own, "--advertise-client-urls", &own]);
    etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    etcd.arg("--cert-file").arg(path("one.pem")).arg("--key-file").arg(path("one.key"));
    etcd.arg("--client-cert-auth").arg("--trusted-ca-file").arg(path("ca.pem"));
    etcd.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    let _etcd = Etcd(etcd.spawn().unwrap());
    let text = |name: &str| fs::read_to_string(path(name)).unwrap();
    let config = |name: &str| Config::new([own.clone()], "job", settings(name));
    let trusting = |name: &str| config(name).authorities(text("ca.pem"));
    let good = trusting("good").identity(text("one.pem"), text("one.key"));
    let good = Candidate::start(good).await.unwrap();
    drop(within("leadership", good.leadership()).await.unwrap());
    // Nor does one without a certificate, or who trusts no one.
    for other in [trusting("other"), config("other")] {
        let other = Candidate::start(other).await.unwrap();
        standing(&other, "a failure", |status| !status.connected && status.trouble.is_some()).await;
    }
}

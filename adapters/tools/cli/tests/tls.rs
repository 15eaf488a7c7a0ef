//! `quorate tls check` on stores that keytool and openssl made.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::common::{quorate, stderr, stdout};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../server/keystore/tests/fixtures");
const SECRET: &str = "changeit";

/// A configuration of server 1 with these stores; the password stands in a file.
fn check(key_store: &str, trust_store: &str, more: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("myid"), "1\n").unwrap();
    fs::write(path("password"), format!("{SECRET}\n")).unwrap();
    let cfg = format!(
        "dataDir={dir}\nssl.quorum.keyStore.location={FIXTURES}/{key_store}\n\
         ssl.quorum.keyStore.passwordPath={dir}/password\nssl.quorum.keyStore.password=wrong\n\
         zookeeper.ssl.quorum.trustStore.location={FIXTURES}/{trust_store}\n\
         ssl.quorum.trustStore.password={SECRET}\n\
         server.1=ec1.test:2888:3888\nserver.2=10.0.0.2:2888:3888\n",
        dir = dir.path().display()
    );
    fs::write(path("zoo.cfg"), cfg).unwrap();
    let cfg: &Path = &path("zoo.cfg");
    let output = quorate(["tls", "check", cfg.to_str().unwrap()].iter().chain(more));
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert!(!said.contains(SECRET), "{said}");
    output
}

#[test]
fn stores_that_a_server_can_use_are_shown_with_the_members_that_they_are_for() {
    let output = check("keytool-ec.jks", "trust.p12", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let text = stdout(&output);
    for part in ["key \"ec1\"", "CN=ec1.test", "server.1 (this server)", "CN=Another authority"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let output = check("keytool-ec.jks", "trust.p12", &["--json"]);
    let found: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(found["ok"], true);
    assert_eq!(found["key_store"]["chain"][0]["members"], serde_json::json!([1]));
    assert_eq!(found["trust_store"]["certificates"].as_array().unwrap().len(), 2);
}

#[test]
fn what_a_server_could_not_use_is_told_all_at_once() {
    let output = check("accepts-only.pem", "openssl-trust.p12", &[]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let text = stdout(&output);
    for part in ["add clientAuth", "lack Java's mark", "names no host of server.1"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let output = check("keytool-ec.jks", "nothing.p12", &["--json"]);
    let found: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!((output.status.code(), &found["ok"]), (Some(1), &false.into()));
}

/// A configuration of a server that has no TLS with the others.
fn of_others(lines: &str) -> (Option<i32>, Value) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), format!("server.1=zk1.test:2888:3888\n{lines}")).unwrap();
    let output = quorate(["tls", "check", "--json", file.path().to_str().unwrap()]);
    (output.status.code(), serde_json::from_str(stdout(&output)).unwrap())
}

#[test]
fn stores_for_clients_and_for_scrapers_are_read_where_they_come_with_tls() {
    let of = |prefix: &str, key: &str, trust: &str| {
        format!(
            "{prefix}.keyStore.location={FIXTURES}/{key}\n{prefix}.keyStore.password={SECRET}\n\
             {prefix}.trustStore.location={FIXTURES}/{trust}\n{prefix}.trustStore.password={SECRET}\n"
        )
    };
    let clients = of("ssl", "accepts-only.pem", "trust.p12");
    let scrapers = of("metricsProvider.ssl", "keytool-ec.jks", "trust.p12");
    let ports = "secureClientPort=2281\nmetricsProvider.httpsPort=7443\n";
    let (code, found) = of_others(&format!("{ports}{clients}{scrapers}"));
    assert_eq!((code, &found["ok"]), (Some(0), &true.into()), "{found}");
    assert_eq!(found["key_store"], Value::Null, "nobody asks for it");
    assert_eq!(found["clients"]["key_store"]["chain"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(found["metrics"]["key_store"]["alias"], "ec1");

    let (code, found) = of_others(&format!("{ports}{clients}"));
    let errors = &found["errors"];
    assert_eq!(code, Some(1), "{found}");
    assert_eq!(errors[0], "metricsProvider.ssl.keyStore.location is not set");
    assert_eq!(errors[1], "metricsProvider.ssl.trustStore.location is not set");
    let asked_nothing = "metricsProvider.ssl.need.client.auth=false\n";
    let (_, found) = of_others(&format!("{ports}{clients}{asked_nothing}"));
    assert_eq!(found["errors"].as_array().unwrap().len(), 1, "{found}");

    let (code, found) = of_others(&format!("sslQuorum=true\n{ports}{clients}{scrapers}"));
    assert_eq!(code, Some(1), "{found}");
    assert_eq!(found["errors"][0], "ssl.quorum.keyStore.location is not set");
    let (code, _) = of_others(&of("ssl", "nothing.p12", "nothing.p12"));
    assert_eq!(code, Some(1), "no port has TLS, and no store between servers is there");
}

#[test]
fn a_file_that_is_not_there_is_a_wrong_argument() {
    let output = quorate(["tls", "check", "/nowhere/zoo.cfg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/nowhere/zoo.cfg"));
}

#[test]
fn the_script_of_a_sample_is_written_for_names_of_hosts_alone() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("sample");
    let sample =
        |members: &str| quorate(["tls", "sample", into.to_str().unwrap(), "--members", members]);
    for members in ["zk1,$(id)", "zk1,zk1", "-x", "a b", ""] {
        assert_eq!(sample(members).status.code(), Some(2), "{members}");
    }
    let made = sample("zk1.test,10.0.0.2");
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    assert!(stdout(&made).contains("NEVER FOR PRODUCTION"));
    let script = fs::read_to_string(into.join("make.sh")).unwrap();
    assert!(
        script.contains("\nmember zk1.test DNS:zk1.test\nmember 10.0.0.2 IP:10.0.0.2\n"),
        "{script}"
    );
    assert_eq!(sample("zk1.test").status.code(), Some(1), "it is not empty");
}

//! Quorate beside Java ZooKeeper servers with TLS between all of them, with stores that `openssl` and `keytool` make: those of
//! an authority, and the self-signed ones of ZooKeeper's guide.
//!
//! Needs Debian's `zookeeper`, a JDK and openssl; skipped without, see [`java::available`].
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]
#![allow(clippy::print_stdout, reason = "why a test was skipped")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_tls::{Password, Settings, StoreFile, StorePassword};
use quorate_tokio::ServerConfig;

use crate::java;
use crate::mixed::{Java, Kind, Mixed, Quorate};

const PASSWORD: &str = "changeit";

/// What a Java server is told of it. That it dials and accepts with TLS alone.
const PROPERTIES: [&str; 5] = [
    "sslQuorum=true",
    "ssl.quorum.keyStore.location=@DIR@/own.p12",
    "ssl.quorum.keyStore.password=changeit",
    "ssl.quorum.trustStore.location=@DIR@/trust.jks",
    "ssl.quorum.trustStore.password=changeit",
];

/// The same stores, at a quorate server.
fn secure(config: &mut ServerConfig) {
    let store = |name: &str| {
        let mut file = StoreFile::new(config.data_dir.join(name));
        file.password = Some(StorePassword::Inline(Password::new(PASSWORD)));
        file
    };
    config.tls = Some(Settings::new(store("own.p12"), store("trust.jks")));
}

/// Runs a tool that makes stores in a directory, words between spaces.
fn run(dir: &Path, line: &str) {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).current_dir(dir).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

fn can_make_stores() -> bool {
    let runs = |program: &str, argument: &str| {
        let mut command = Command::new(program);
        command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    match java::available() {
        false => false,
        true if !runs("openssl", "version") => java::skipped("openssl", "openssl"),
        true if !runs("keytool", "-help") => java::skipped("keytool", "default-jdk-headless"),
        true => true,
    }
}

/// One authority, which all trust, in JKS; each server's key in PKCS #12.
fn of_an_authority(mixed: &Mixed) {
    let ids: Vec<_> = mixed.kinds.keys().copied().collect();
    let first = mixed.data_dir(ids[0]);
    fs::create_dir_all(&first).unwrap();
    run(
        &first,
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=authority \
                 -days 3650 -keyout authority.key -out authority.pem",
    );
    run(
        &first,
        "keytool -importcert -noprompt -alias authority -file authority.pem -keystore trust.jks \
                 -storetype JKS -storepass changeit",
    );
    fs::write(first.join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    for id in ids {
        let own = format!("own{id}");
        run(
            &first,
            &format!(
                "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={own} -keyout {own}.key \
             -out {own}.csr"
            ),
        );
        run(
            &first,
            &format!(
                "openssl x509 -req -in {own}.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 3650 \
             -extfile names -out {own}.pem"
            ),
        );
        run(
            &first,
            &format!(
                "openssl pkcs12 -export -in {own}.pem -inkey {own}.key -name {own} -passout pass:changeit -out {own}.p12"
            ),
        );
        let dir = mixed.data_dir(id);
        fs::create_dir_all(&dir).unwrap();
        fs::copy(first.join(format!("{own}.p12")), dir.join("own.p12")).unwrap();
        if dir != first {
            fs::copy(first.join("trust.jks"), dir.join("trust.jks")).unwrap();
        }
    }
}

/// As ZooKeeper's guide makes them: one self-signed certificate for each server, with a common name alone, and each in
/// the trust store of all.
fn self_signed(mixed: &mut Mixed) {
    let text = String::from_utf8(mixed.membership.text().to_vec()).unwrap();
    mixed.membership = Membership::parse(text.replace("127.0.0.1", "localhost")).unwrap();
    let ids: Vec<_> = mixed.kinds.keys().copied().collect();
    let first = mixed.data_dir(ids[0]);
    for id in &ids {
        let dir = mixed.data_dir(*id);
        fs::create_dir_all(&dir).unwrap();
        run(
            &dir,
            &format!(
                "keytool -genkeypair -alias own{id} -keyalg RSA -keysize 2048 -dname cn=localhost -storetype PKCS12 \
             -keystore own.p12 -storepass changeit -validity 3650"
            ),
        );
        run(
            &dir,
            &format!(
                "keytool -exportcert -alias own{id} -keystore own.p12 -storepass changeit -file own.cer"
            ),
        );
        run(
            &dir,
            &format!(
                "keytool -importcert -noprompt -alias own{id} -file own.cer -keystore {}/trust.jks -storetype JKS \
             -storepass changeit",
                first.display()
            ),
        );
    }
    for id in &ids[1..] {
        fs::copy(first.join("trust.jks"), mixed.data_dir(*id).join("trust.jks")).unwrap();
    }
}

/// Makes a node, as a client of a Java server where one runs: a Java leader takes writes of sessions alone.
async fn write(mixed: &Mixed, down: Option<ServerId>, path: &str) {
    let mut up = mixed.kinds.iter().filter(|(id, _)| Some(**id) != down);
    match up.clone().find(|(_, kind)| **kind == Java) {
        None => drop(mixed.propose(*up.next().unwrap().0, path).await),
        Some((id, _)) => {
            let mut client = mixed.client(*id).await;
            client.create(path, b"", 0).await.unwrap();
            client.close().await;
        }
    }
}

/// Forms, writes, goes on without its leader, has it back, and all hold the same.
async fn lives(kinds: [Kind; 3], make: fn(&mut Mixed)) {
    if !can_make_stores() {
        return;
    }
    let mut mixed = Mixed::new(&kinds);
    make(&mut mixed);
    mixed.secure = true;
    mixed.java_properties = PROPERTIES.to_vec();
    mixed.adjust = secure;
    for id in 1..=3 {
        mixed.start(ServerId(id)).await;
    }
    let leader = mixed.agreed(&format!("{kinds:?} with TLS")).await;
    write(&mixed, None, "/first").await;
    mixed.same("with all").await;
    mixed.kill(leader).await;
    let next = mixed.agreed("without the first leader").await;
    assert_ne!(next, leader);
    write(&mixed, Some(leader), "/second").await;
    mixed.start(leader).await;
    assert_eq!(mixed.agreed("with the first leader back").await, next);
    write(&mixed, None, "/third").await;
    let znodes = mixed.same("with the first leader back").await;
    let made = ["/first", "/second", "/third"];
    assert!(made.iter().all(|path| znodes.contains_key(*path)));
}

#[tokio::test]
async fn two_java_servers_and_a_quorate_one_link_with_certificates_of_an_authority() {
    lives([Java, Java, Quorate], |mixed| of_an_authority(mixed)).await;
}

#[tokio::test]
async fn two_quorate_servers_and_a_java_one_link_with_certificates_of_an_authority() {
    lives([Quorate, Quorate, Java], |mixed| of_an_authority(mixed)).await;
}

#[tokio::test]
async fn servers_link_with_the_self_signed_certificates_of_zookeepers_guide() {
    lives([Java, Quorate, Java], self_signed).await;
}

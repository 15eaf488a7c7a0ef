//! Quorate beside Java ZooKeeper servers that log in to each other by SASL, and have to.
//!
//! Needs Debian's `zookeeper`; skipped without, see [`java::available`].
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

use std::fs;

use quorate_core::id::ServerId;
use quorate_tokio::ServerConfig;
use quorate_tokio::zoo_cfg::QuorumSasl;

use crate::java;
use crate::mixed::{Java, Kind, Mixed, POLL, Quorate};
use crate::stores::{self, Format, Origin};

/// What a Java server is told: that no one is let in without. Newer ones have no MD5 unless the last is said.
const REQUIRED: [&str; 4] = [
    "quorum.auth.enableSasl=true",
    "quorum.auth.learnerRequireSasl=true",
    "quorum.auth.serverRequireSasl=true",
    "fips-mode=false",
];

/// The same, at a quorate server.
fn required(config: &mut ServerConfig) {
    config.sasl = Some(QuorumSasl {
        file: config.data_dir.join("jaas.conf"),
        server_section: "QuorumServer".into(),
        learner_section: "QuorumLearner".into(),
        dials: true,
        required: true,
        reload: None,
    });
}

/// The JAAS file of a server, with the password that it logs in with and the one that it wants.
fn jaas(mixed: &Mixed, id: ServerId, own: &str, wanted: &str) {
    let module = "org.apache.zookeeper.server.auth.DigestLoginModule required";
    let text = format!(
        "QuorumServer {{\n  {module}\n  user_zk=\"{wanted}\";\n}};\n\
         QuorumLearner {{\n  {module}\n  username=\"zk\"\n  password=\"{own}\";\n}};\n"
    );
    let dir = mixed.data_dir(id);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("jaas.conf"), text).unwrap();
}

fn ensemble(kinds: &[Kind]) -> Mixed {
    let mut mixed = Mixed::new(kinds);
    for id in mixed.kinds.keys() {
        jaas(&mixed, *id, "right", "right");
    }
    mixed.secure = true;
    mixed.java_properties = REQUIRED.to_vec();
    mixed.adjust = required;
    mixed
}

/// How many logins have gone so at a quorate server, on a plane and a side.
fn logins(mixed: &Mixed, id: ServerId, plane: &str, side: &str, outcome: &str) -> u64 {
    let page = mixed.quorate(id).figures().page(&[]);
    let name = format!(
        "quorate_sasl_logins_total{{plane=\"{plane}\",side=\"{side}\",outcome=\"{outcome}\"}} "
    );
    let count = page.lines().find_map(|line| line.strip_prefix(&name)?.parse::<f64>().ok());
    count.map_or(0, |count| format!("{count:.0}").parse().unwrap())
}

/// The same with TLS around all of it, with certificates of an authority.
fn ensemble_within_tls(kinds: &[Kind]) -> Mixed {
    let mut mixed = ensemble(kinds);
    stores::make(&mut mixed, Origin::Authority, Format::Pkcs12);
    mixed.java_properties.extend(stores::properties(Format::Pkcs12));
    mixed.java_properties.push("sslQuorum=true");
    mixed.adjust = |config| {
        required(config);
        stores::secure(config);
    };
    mixed
}

/// Forms, goes on without its leader, and has it back.
async fn lives(kinds: [Kind; 3], mut mixed: Mixed) {
    for id in 1..=3 {
        mixed.start(ServerId(id)).await;
    }
    let leader = mixed.agreed(&format!("{kinds:?} with SASL")).await;
    mixed.kill(leader).await;
    let next = mixed.agreed("without the first leader").await;
    assert_ne!(next, leader);
    mixed.start(leader).await;
    assert_eq!(mixed.agreed("with the first leader back").await, next);
    let quorate: Vec<_> = mixed.kinds.iter().filter(|(_, kind)| **kind == Quorate).collect();
    for (id, _) in quorate {
        let all = ["accept", "dial"]
            .map(|side| ["election", "quorum"].map(|plane| logins(&mixed, *id, plane, side, "ok")));
        assert!(all.iter().flatten().sum::<u64>() > 0, "{id}: {all:?}");
        assert_eq!(logins(&mixed, *id, "quorum", "accept", "without"), 0);
    }
}

#[tokio::test]
async fn two_java_servers_and_a_quorate_one_log_in_to_each_other() {
    if java::available() {
        let kinds = [Java, Java, Quorate];
        lives(kinds, ensemble(&kinds)).await;
    }
}

#[tokio::test]
async fn two_quorate_servers_and_a_java_one_log_in_to_each_other() {
    if java::available() {
        let kinds = [Quorate, Java, Quorate];
        lives(kinds, ensemble(&kinds)).await;
    }
}

#[tokio::test]
async fn two_java_servers_and_a_quorate_one_log_in_to_each_other_within_tls() {
    if stores::can_be_made() {
        let kinds = [Java, Java, Quorate];
        lives(kinds, ensemble_within_tls(&kinds)).await;
    }
}

#[tokio::test]
async fn two_quorate_servers_and_a_java_one_log_in_to_each_other_within_tls() {
    if stores::can_be_made() {
        let kinds = [Quorate, Java, Quorate];
        lives(kinds, ensemble_within_tls(&kinds)).await;
    }
}

/// Waits until a quorate server has refused a login, or was refused, on a plane and a side.
async fn refused(mixed: &Mixed, id: ServerId, plane: &str, side: &str, outcome: &str) {
    let refusing = async {
        while logins(mixed, id, plane, side, outcome) == 0 {
            tokio::time::sleep(POLL).await;
        }
    };
    mixed.patiently(&format!("{id} {plane} {side} {outcome}"), refusing).await;
}

/// A Java server is the third, and has another password.
async fn stays_out(mut mixed: Mixed) {
    jaas(&mixed, ServerId(3), "wrong", "another");
    for id in 1..=3 {
        mixed.start(ServerId(id)).await;
    }
    // It dials ours, whose ids are smaller, and is dialled by them.
    refused(&mixed, ServerId(1), "election", "accept", "credentials").await;
    refused(&mixed, ServerId(1), "election", "dial", "refused-by-peer").await;
    for id in [1, 2] {
        let leader = mixed.quorate(ServerId(id)).leader();
        assert_ne!(leader.map(|(leader, _)| leader), Some(ServerId(3)));
    }
}

#[tokio::test]
async fn a_java_server_with_another_password_is_refused_and_refuses() {
    if java::available() {
        stays_out(ensemble(&[Quorate, Quorate, Java])).await;
    }
}

/// Its certificate is good, and does not stand in for a login.
#[tokio::test]
async fn a_java_server_with_another_password_is_refused_within_tls_and_refuses() {
    if stores::can_be_made() {
        stays_out(ensemble_within_tls(&[Quorate, Quorate, Java])).await;
    }
}

#[tokio::test]
async fn a_java_server_without_sasl_is_refused_where_it_is_required_and_told_apart() {
    if !java::available() {
        return;
    }
    let mut mixed = ensemble(&[Quorate, Quorate, Java]);
    mixed.java_properties.clear();
    for id in 1..=3 {
        mixed.start(ServerId(id)).await;
    }
    refused(&mixed, ServerId(1), "election", "accept", "absent").await;
    refused(&mixed, ServerId(1), "election", "dial", "absent").await;
}

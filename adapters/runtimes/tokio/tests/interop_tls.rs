//! Quorate beside Java ZooKeeper servers with TLS between all of them, with stores that `openssl` and `keytool` make: those of
//! an authority, and the self-signed ones of ZooKeeper's guide.
//!
//! Needs Debian's `zookeeper`, a JDK and openssl; skipped without, see [`stores::can_be_made`].
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]
#![allow(clippy::print_stdout, reason = "what is tried, by hand")]

use quorate_core::id::ServerId;

use crate::mixed::{Java, Kind, Mixed, Quorate};
use crate::stores::{self, Format, Origin};

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
async fn lives(kinds: [Kind; 3], origin: Origin, format: Format) {
    if !stores::can_be_made() {
        return;
    }
    let mut mixed = Mixed::new(&kinds);
    stores::make(&mut mixed, origin, format);
    mixed.secure = true;
    mixed.java_properties = stores::properties(format);
    mixed.java_properties.push("sslQuorum=true");
    mixed.adjust = stores::secure;
    for id in 1..=3 {
        mixed.start(ServerId(id)).await;
    }
    let leader = mixed.agreed(&format!("{kinds:?} with TLS, {origin:?}, {format:?}")).await;
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
    lives([Java, Java, Quorate], Origin::Authority, Format::Pkcs12).await;
}

#[tokio::test]
async fn two_quorate_servers_and_a_java_one_link_with_certificates_of_an_authority() {
    lives([Quorate, Quorate, Java], Origin::Authority, Format::Pem).await;
}

#[tokio::test]
async fn servers_link_with_the_self_signed_certificates_of_zookeepers_guide() {
    lives([Java, Quorate, Java], Origin::Guide, Format::Jks).await;
}

/// With servers of another version: `QUORATE_ZOOKEEPER` names the folder of its jars.
#[tokio::test]
#[ignore = "by hand: some minutes"]
async fn servers_of_every_mix_link_with_every_kind_of_stores() {
    let mixes = [
        [Java, Java, Quorate],
        [Quorate, Quorate, Java],
        [Quorate, Java, Quorate],
        [Quorate, Quorate, Quorate],
    ];
    for origin in [Origin::Authority, Origin::Guide, Origin::SelfSigned] {
        for format in [Format::Jks, Format::Pkcs12, Format::Pem] {
            for kinds in mixes {
                println!("{origin:?}, {format:?}, {kinds:?}");
                lives(kinds, origin, format).await;
            }
        }
    }
}

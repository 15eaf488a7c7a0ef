//! Who dials a server with TLS and may not: each is refused, told apart from others, and counted.

use std::io::ErrorKind;
use std::time::Duration;

use futures_lite::io::{AsyncReadExt, AsyncWriteExt};
use futures_rustls::TlsConnector;
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::membership::Membership;

use super::answers::{Answer, Impersonator};
use super::certificates::{Authority, Flaw, Holder};
use super::line::{Line, hello};
use super::tls::{failures, secure};
use super::{Ensemble, Stage};
use crate::{Runtime, ServerConfig};

/// Whose certificate its authority has taken back.
const TAKEN_BACK: ServerId = ServerId(199);

/// Who dials with a certificate that will not do, and why; with its own id, or another.
fn strangers(ours: &Authority) -> Vec<(&'static str, Option<Holder>, ServerId)> {
    let (theirs, claimed) = (Authority::new("theirs"), ServerId(200));
    let flawed = |flaw| Some(ours.with_flaw(claimed, Some(flaw)));
    vec![
        ("no-certificate", None, claimed),
        ("unknown-authority", Some(theirs.for_server(claimed)), claimed),
        ("expired", flawed(Flaw::Ended), claimed),
        ("not-yet-valid", flawed(Flaw::NotBegun), claimed),
        ("usage", flawed(Flaw::AcceptsOnly), claimed),
        ("revoked", Some(ours.for_server(TAKEN_BACK)), TAKEN_BACK),
        ("identity", Some(ours.for_server(ServerId(2))), ServerId(3)),
        ("identity", Some(ours.for_server(ServerId(2))), claimed),
    ]
}

pub async fn who_may_not_is_refused_at_both_ports_and_nothing_else_happens<R: Runtime>(
    stage: Stage<R>,
) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.electors(3, 0);
    for id in ensemble.ids() {
        let mut config = secure(&ensemble, &authority, id);
        let settings = config.tls.as_mut().unwrap();
        settings.handshake_time = Duration::from_secs(3);
        settings.revoked = Some(authority.takes_back(settings, &[TAKEN_BACK]));
        ensemble.start_as(config).await;
    }
    let agreed = ensemble.agreed().await;
    let all = ensemble.ids().len() - 1;
    let linked = || ensemble.running().all(|(_, server)| server.status().peer.linked.len() == all);
    stage.until("links between all", linked).await;
    let target = ensemble.server(agreed.0);
    let round = || target.status().peer.round;
    let before = round();
    for (plane, name) in [(Plane::Election, "election"), (Plane::Quorum, "quorum")] {
        let refused = async |reason: &'static str, count| {
            let what = format!("{reason} at the {name} port");
            let counted = || failures(target, name, "accept", reason) >= count;
            stage.until(&what, counted).await;
        };
        let mut identities = 0;
        for (reason, holder, claimed) in strangers(&authority) {
            let connector = TlsConnector::from(authority.stranger(holder.as_ref()));
            let stream = ensemble.connect(agreed.0, plane).await;
            let shaken = connector.connect("127.0.0.1".try_into().unwrap(), stream);
            let mut stream = stage.within("a handshake", shaken).await.unwrap();
            // In TLS 1.3 it is not refused before it speaks; perhaps it is already.
            drop(stage.within("a word", stream.write_all(&hello(plane, claimed))).await);
            let end = stage.within("the end", stream.read_to_end(&mut Vec::new())).await;
            let told = end.err().map(|error| error.kind());
            let ends = [
                None,
                Some(ErrorKind::InvalidData),
                Some(ErrorKind::UnexpectedEof),
                Some(ErrorKind::ConnectionReset),
            ];
            assert!(ends.contains(&told), "{reason}: {told:?}");
            identities += u64::from(reason == "identity");
            refused(reason, if reason == "identity" { identities } else { 1 }).await;
        }
        // What is no TLS, and what only begins like it.
        let mut silent = Line::to(&stage, &ensemble, agreed.0, plane).await;
        silent.write(&[0x16, 3, 1]).await;
        let mut plain = Line::to(&stage, &ensemble, agreed.0, plane).await;
        plain.write(&hello(plane, ServerId(200))).await;
        plain.until_closed("a plain introduction").await;
        refused("plain-on-tls-port", 1).await;
        for (reason, hello) in old_hellos() {
            let mut old = Line::to(&stage, &ensemble, agreed.0, plane).await;
            old.write(&hello).await;
            old.until_closed(reason).await;
            refused(reason, 1).await;
        }
        drop(Line::to(&stage, &ensemble, agreed.0, plane).await);
        refused("reset", 1).await;
        let mut garbage = Line::to(&stage, &ensemble, agreed.0, plane).await;
        garbage.write(&[0x16, 3, 1, 0, 4, 9, 9, 9, 9, 9, 9, 9, 9]).await;
        garbage.until_closed("garbage").await;
        refused("malformed", 1).await;
        silent.until_closed("silence").await;
        refused("timeout", 1).await;
    }
    assert_eq!((ensemble.agreed().await, round()), (agreed, before), "no new election");
    assert!(linked());
}

/// Why a client or a server whose TLS is too old is refused, and what it says.
pub(super) fn old_hellos() -> [(&'static str, Vec<u8>); 2] {
    [("version", client_hello([3, 2])), ("no-common-suite", client_hello([3, 3]))]
}

/// A ClientHello (RFC 5246, 7.4.1.2) of one that has suites with CBC alone.
fn client_hello(version: [u8; 2]) -> Vec<u8> {
    let suites: [u16; 4] = [0xc013, 0xc014, 0xc009, 0x002f];
    // Groups, signatures: x25519 and P-256; ECDSA with P-256 and RSA, both with SHA-256.
    let extensions = [
        &[0, 10, 0, 6, 0, 4, 0, 29, 0, 23][..],
        &[0, 11, 0, 2, 1, 0],
        &[0, 13, 0, 6, 0, 4, 4, 3, 4, 1],
    ];
    let extensions = extensions.concat();
    let mut body = version.to_vec();
    body.extend([7; 32]);
    body.push(0);
    body.extend(length(2 * suites.len()));
    body.extend(suites.iter().flat_map(|suite| suite.to_be_bytes()));
    body.extend([1, 0]);
    body.extend(length(extensions.len()));
    body.extend(extensions);
    record(1, &body)
}

/// A ServerHello (RFC 5246, 7.4.1.3) that settles on TLS 1.1.
fn old_server_hello() -> Vec<u8> {
    let mut body = vec![3, 2];
    body.extend([7; 32]);
    body.extend([0, 0xc0, 0x13, 0]);
    record(2, &body)
}

/// A record with one message of a handshake.
fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let (message, all) = (length(body.len()), length(body.len() + 4));
    [&[0x16, 3, 1][..], &all, &[kind, 0], &message, body].concat()
}

fn length(of: usize) -> [u8; 2] {
    u16::try_from(of).unwrap().to_be_bytes()
}

/// What answers in the place of a member, and why it is refused.
fn answers(ours: &Authority, member: ServerId) -> Vec<(&'static str, Answer)> {
    let shows = |holder: &Holder| Answer::Handshake(holder.impersonates());
    let flawed = |flaw| shows(&ours.with_flaw(member, Some(flaw)));
    vec![
        ("unknown-authority", shows(&Authority::new("theirs").for_server(member))),
        ("expired", flawed(Flaw::Ended)),
        ("not-yet-valid", flawed(Flaw::NotBegun)),
        ("usage", flawed(Flaw::DialsOnly)),
        ("identity", shows(&ours.for_server(ServerId(1)))),
        ("revoked", shows(&ours.for_server(TAKEN_BACK))),
        ("version", Answer::Bytes(old_server_hello())),
        ("malformed", Answer::Bytes(vec![0x16, 3, 3, 0, 4, 9, 9, 9, 9])),
        // handshake_failure, as of one that has suites with CBC alone.
        ("refused-by-peer", Answer::Bytes(vec![0x15, 3, 3, 0, 2, 2, 40])),
        // A server without TLS takes the hello for an absurd id.
        ("reset", Answer::Bytes(Vec::new())),
        ("timeout", Answer::Silence),
    ]
}

/// With a list of what was taken back, and little patience.
fn impatient<R: Runtime>(
    ensemble: &Ensemble<R>,
    authority: &Authority,
    id: ServerId,
) -> ServerConfig {
    let mut config = secure(ensemble, authority, id);
    let settings = config.tls.as_mut().unwrap();
    settings.handshake_time = Duration::from_secs(1);
    settings.revoked = Some(authority.takes_back(settings, &[TAKEN_BACK]));
    config
}

pub async fn who_answers_a_dial_and_may_not_is_refused_on_both_planes<R: Runtime>(stage: Stage<R>) {
    let authority = Authority::new("ours");
    // Each of the others is one that may not.
    let count = answers(&authority, ServerId(1)).len();
    let mut ensemble = stage.electors(1 + count, 0);
    let ids = ensemble.ids();
    let mut held = Vec::new();
    let mut reasons = Vec::new();
    for (nth, id) in ids[1..].iter().enumerate() {
        let (reason, answer) = answers(&authority, *id).swap_remove(nth);
        held.push(Impersonator::at(ensemble.port(*id, Plane::Election).port, answer));
        reasons.push(reason);
    }
    ensemble.start_as(impatient(&ensemble, &authority, ids[0])).await;
    let server = ensemble.server(ids[0]);
    for reason in reasons {
        let refused = || failures(server, "election", "dial", reason) > 0;
        stage.until(&format!("{reason} where one is dialled"), refused).await;
    }
    assert_eq!(server.status().peer.linked, []);
    drop(held);

    // One server finds others in the place of a leader; the leader and its follower go on.
    let mut ensemble = stage.electors(3, 0);
    let [first, second, third] = ensemble.ids()[..] else { panic!("three") };
    for id in [second, third] {
        ensemble.start_as(impatient(&ensemble, &authority, id)).await;
    }
    let agreed = ensemble.agreed().await;
    let true_text = ensemble.membership.text().clone();
    let port = super::free_ports(1)[0];
    let mut config = impatient(&ensemble, &authority, first);
    config.core.membership = elsewhere(&true_text, &ensemble.port(agreed.0, Plane::Quorum), port);
    let mut answers = answers(&authority, agreed.0).into_iter();
    let (mut reason, answer) = answers.next().unwrap();
    let impersonator = Impersonator::at(port, answer);
    ensemble.start_as(config).await;
    let server = ensemble.server(first);
    loop {
        let refused = || failures(server, "quorum", "dial", reason) > 0;
        stage.until(&format!("{reason} in the place of a leader"), refused).await;
        let Some((next, answer)) = answers.next() else { break };
        reason = next;
        impersonator.answers(answer);
    }
    assert_eq!(server.leader(), None);
    assert_eq!(ensemble.agreed_but_for(&[first]).await, agreed);
}

/// The same membership with another port in the place of this one.
fn elsewhere(text: &[u8], quorum: &HostPort, port: u16) -> Membership {
    let text = std::str::from_utf8(text).unwrap();
    let (there, here) = (format!("{quorum}:"), format!("{}:{port}:", quorum.host));
    assert!(text.contains(&there), "{text}");
    Membership::parse(text.replace(&there, &here)).unwrap()
}

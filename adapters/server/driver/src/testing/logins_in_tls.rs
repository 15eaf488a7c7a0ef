//! Servers that log in to each other within TLS: both are wanted, on both planes, and neither stands in for the other.

use bytes::BytesMut;
use futures_lite::io::{AsyncReadExt, AsyncWriteExt};
use futures_rustls::TlsConnector;
use futures_rustls::client::TlsStream;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::wire;
use quorate_sasl::quorum::Failure;
use quorate_tls::Versions;

use super::certificates::{Authority, Holder};
use super::line::{Line, NON_MEMBER, hello, introduction, question};
use super::sasl::{log_in, logins, with_logins};
use super::tls::{failures, links, settings};
use super::{Ensemble, Stage};
use crate::{Application, Runtime, ServerConfig};

/// The configuration of a server that wants both, and has both.
fn with_both<R: Runtime, A: Application>(
    ensemble: &Ensemble<R, A>,
    authority: &Authority,
    id: ServerId,
) -> ServerConfig {
    let mut config = with_logins(ensemble, id, "right", (true, true));
    config.tls = Some(settings(ensemble, authority, &authority.for_server(id), id));
    config
}

pub async fn servers_log_in_within_tls_and_go_on_without_their_leader<R: Runtime>(stage: Stage<R>) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.electors(3, 1);
    // As a ZooKeeper 3.8 has it, one speaks TLS 1.2, in which who dials has the last word of a handshake.
    let old = ensemble.ids()[1];
    let config = |ensemble: &Ensemble<R>, id| {
        let mut config = with_both(ensemble, &authority, id);
        let versions = Versions { tls12: true, tls13: id != old };
        config.tls.as_mut().unwrap().versions = versions;
        config
    };
    for id in ensemble.ids() {
        ensemble.start_as(config(&ensemble, id)).await;
    }
    let (leader, epoch) = ensemble.agreed().await;
    ensemble.kill(leader).await;
    assert!(ensemble.agreed().await.1 > epoch);
    ensemble.start_as(config(&ensemble, leader)).await;
    let (next, _) = ensemble.agreed().await;
    for (id, server) in ensemble.running() {
        for plane in ["election", "quorum"] {
            assert_eq!(logins(server, plane, "accept", "without"), 0, "{id} {plane}");
        }
        assert!(links(server, false) < 0.5 && links(server, true) > 1.5, "{id}");
    }
    assert!(logins(ensemble.server(next), "quorum", "accept", "ok") >= 2);
}

/// A connection within TLS.
type Within<S> = (TlsStream<S>, BytesMut);

/// One who is no member, with this certificate and within TLS, as far as it goes before it logs in.
async fn within<R: Runtime>(
    stage: &Stage<R>,
    (ensemble, id): (&Ensemble<R>, ServerId),
    plane: Plane,
    (authority, holder): (&Authority, &Holder),
) -> Within<R::Stream> {
    let connector = TlsConnector::from(authority.stranger(Some(holder)));
    let stream = ensemble.connect(id, plane).await;
    let shaken = connector.connect("127.0.0.1".try_into().unwrap(), stream);
    let mut stream = stage.within("a handshake", shaken).await.unwrap();
    if plane == Plane::Election {
        // In TLS 1.3 it is not refused before it speaks; perhaps it is already.
        drop(stage.within("a word", stream.write_all(&introduction(NON_MEMBER))).await);
    }
    (stream, BytesMut::new())
}

/// Waits until a server has closed a connection.
async fn closed<R: Runtime>(stage: &Stage<R>, (stream, _): &mut Within<R::Stream>) {
    // However: within TLS a reset is an end, too.
    drop(stage.within("the end", stream.read_to_end(&mut Vec::new())).await);
}

pub async fn within_tls_who_lacks_a_login_or_a_certificate_is_refused_on_both_planes<R: Runtime>(
    stage: Stage<R>,
) {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let mut ensemble = stage.electors(3, 0);
    for id in ensemble.ids() {
        ensemble.start_as(with_both(&ensemble, &ours, id)).await;
    }
    let agreed = ensemble.agreed().await;
    let target = ensemble.server(agreed.0);
    let round = target.status().peer.round;
    let (good, bad) = (ours.for_server(NON_MEMBER), theirs.for_server(NON_MEMBER));
    for (plane, name) in [(Plane::Election, "election"), (Plane::Quorum, "quorum")] {
        let to = (&ensemble, agreed.0);
        let counted = async |outcome: &'static str| {
            let what = format!("{outcome} at the {name} port");
            stage.until(&what, || logins(target, name, "accept", outcome) > 0).await;
        };
        let word = match plane {
            Plane::Election => question(1).freeze(),
            Plane::Quorum => hello(plane, NON_MEMBER),
        };
        // A certificate alone.
        let mut line = within(&stage, to, plane, (&ours, &good)).await;
        stage.within("a word", line.0.write_all(&word)).await.unwrap();
        stage.within("a word", line.0.flush()).await.unwrap();
        closed(&stage, &mut line).await;
        counted("absent").await;
        let mut line = within(&stage, to, plane, (&ours, &good)).await;
        let refused = log_in(&stage, &mut line.0, &mut line.1, "wrong").await;
        assert_eq!(refused, Err(Failure::ByPeer), "{name}");
        counted("credentials").await;
        // A password alone: in another's TLS, and in none.
        let mut line = within(&stage, to, plane, (&ours, &bad)).await;
        assert!(log_in(&stage, &mut line.0, &mut line.1, "right").await.is_err(), "{name}");
        let refused = || failures(target, name, "accept", "unknown-authority") > 0;
        stage.until("a certificate that is refused", refused).await;
        let mut bare = Line::to(&stage, &ensemble, agreed.0, plane).await;
        let Line { stream, received, .. } = &mut bare;
        assert!(log_in(&stage, stream, received, "right").await.is_err(), "{name}");
        let refused = || failures(target, name, "accept", "plain-on-tls-port") > 0;
        stage.until("a login without TLS", refused).await;
        // Both.
        let (mut stream, mut received) = within(&stage, to, plane, (&ours, &good)).await;
        assert_eq!(log_in(&stage, &mut stream, &mut received, "right").await, Ok(()), "{name}");
        stage.within("a word", stream.write_all(&word)).await.unwrap();
        stage.within("a word", stream.flush()).await.unwrap();
        if plane == Plane::Election {
            let answer = async {
                loop {
                    if let Some(answer) = wire::take_notification(&mut received).unwrap() {
                        return answer;
                    }
                    let mut piece = [0; 4096];
                    let count = stream.read(&mut piece).await.unwrap();
                    assert_ne!(count, 0, "closed instead of answering");
                    received.extend_from_slice(&piece[..count]);
                }
            };
            let answer = stage.within("an answer", answer).await;
            assert_eq!(answer.standing.vote.leader, agreed.0);
        }
    }
    assert_eq!((ensemble.agreed().await, target.status().peer.round), (agreed, round));
}

/// What is read to tell TLS from none is the login's, where there is none.
pub async fn an_ensemble_with_logins_comes_to_tls_one_server_at_a_time<R: Runtime>(
    stage: Stage<R>,
) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.electors(3, 0);
    for id in ensemble.ids() {
        ensemble.start_as(with_logins(&ensemble, id, "right", (true, true))).await;
    }
    ensemble.agreed().await;
    for (dials_tls, accepts_plain) in [(false, true), (true, true), (true, false)] {
        for id in ensemble.ids() {
            ensemble.kill(id).await;
            ensemble.agreed().await;
            let mut config = with_both(&ensemble, &authority, id);
            let settings = config.tls.as_mut().unwrap();
            (settings.dials_tls, settings.accepts_plain) = (dials_tls, accepts_plain);
            ensemble.start_as(config).await;
            ensemble.agreed().await;
        }
    }
    let none_is_plain = || ensemble.running().all(|(_, server)| links(server, false) < 0.5);
    stage.until("no plain link", none_is_plain).await;
    let (leader, _) = ensemble.agreed().await;
    assert!(logins(ensemble.server(leader), "quorum", "accept", "ok") >= 2);
}

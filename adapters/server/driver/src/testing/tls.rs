//! Links with TLS around them: who is let in, who is not, and that nothing else changes.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_lite::io::AsyncWriteExt;
use futures_rustls::TlsConnector;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::zxid::Zxid;
use quorate_tls::Settings;

use super::certificates::{Authority, Holder};
use super::journal::numbered;
use super::line::{Line, hello};
use super::{Ensemble, Stage};
use crate::{Application, Dialled, Runtime, Server, ServerConfig};

/// The configuration of a server with a certificate of its own.
pub(super) fn secure<R: Runtime, A: Application>(
    ensemble: &Ensemble<R, A>,
    authority: &Authority,
    id: ServerId,
) -> ServerConfig {
    with_settings(ensemble, id, settings(ensemble, authority, &authority.for_server(id), id))
}

fn with_settings<R: Runtime, A: Application>(
    ensemble: &Ensemble<R, A>,
    id: ServerId,
    settings: Settings,
) -> ServerConfig {
    let mut config = ensemble.config(id);
    config.tls = Some(settings);
    config
}

pub(super) fn settings<R: Runtime, A: Application>(
    ensemble: &Ensemble<R, A>,
    authority: &Authority,
    holder: &Holder,
    id: ServerId,
) -> Settings {
    authority.settings(&ensemble.data_dir(id).with_extension("stores"), holder)
}

/// How often links of a server failed so.
pub(super) fn failures<R: Runtime, A: Application>(
    server: &Server<R, A>,
    plane: &str,
    side: &str,
    reason: &str,
) -> u64 {
    let of = format!(
        "quorate_tls_failures_total{{plane=\"{plane}\",side=\"{side}\",reason=\"{reason}\"}} "
    );
    let page = server.figures().page(&[]);
    let count = page.lines().find_map(|line| line.strip_prefix(&of)?.parse::<f64>().ok());
    count.map_or(0, |count| format!("{count:.0}").parse().unwrap())
}

/// The sum of the figures of a server whose line begins so.
pub(super) fn figure<R: Runtime, A: Application>(server: &Server<R, A>, begins: &str) -> f64 {
    let page = server.figures().page(&[]);
    let lines = page.lines().filter(|line| line.starts_with(begins));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

/// How many links of a server are open, with TLS or without.
pub(super) fn links<R: Runtime, A: Application>(server: &Server<R, A>, secure: bool) -> f64 {
    let page = server.figures().page(&[]);
    let counted = page.lines().filter_map(|line| {
        let rest = line.strip_prefix("quorate_links{plane=")?;
        rest.split_once(&format!("tls=\"{secure}\"}} "))?.1.parse::<f64>().ok()
    });
    counted.sum()
}

pub async fn servers_form_with_tls_and_go_on_without_their_leader<R: Runtime>(stage: Stage<R>) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.journals(3, 0);
    for id in ensemble.ids() {
        ensemble.start_as(secure(&ensemble, &authority, id)).await;
    }
    let (leader, epoch) = ensemble.agreed().await;
    for number in 0..20 {
        // Longer than a record, and than what is copied into one buffer with others.
        stage.propose(ensemble.server(leader), numbered(number, 100_000)).await;
    }
    for (id, server) in ensemble.running() {
        assert!(links(server, true) >= 2.0, "{id}");
        assert!(links(server, false) < 1.0, "{id}");
        for plane in ["election", "quorum"] {
            let made = format!("quorate_tls_handshakes_total{{plane=\"{plane}\",result=\"ok\"}} ");
            assert!(figure(server, &made) >= 1.0, "{id} {plane}");
        }
        let ends = |of: &str, peer| {
            let labels = format!("{{use=\"{of}\",peer=\"{peer}\"}} ");
            figure(server, &format!("quorate_certificate_expiry_timestamp_seconds{labels}"))
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let others = ensemble.ids().into_iter().filter(|other| *other == leader && *other != id);
        for peer in others {
            assert!(ends("peer", peer) > now, "{id} of {peer}");
        }
        assert!(ends("own", id) > now, "{id}");
    }
    ensemble.kill(leader).await;
    let (next, later) = ensemble.agreed().await;
    assert!(later > epoch);
    let expected = stage.all_entries(ensemble.server(next)).await;
    stage.propose(ensemble.server(next), numbered(20, 8)).await;
    // It has lost all, and gets a snapshot.
    fs::remove_dir_all(ensemble.data_dir(leader)).unwrap();
    ensemble.start_as(secure(&ensemble, &authority, leader)).await;
    ensemble.agreed().await;
    let restored = stage.all_entries(ensemble.server(leader)).await;
    assert_eq!(restored[..20], expected[..]);
    assert_eq!(restored.len(), 21);
}

/// What waits within TLS for one that does not read goes out when it does, and holds none of the others up.
pub async fn a_server_that_does_not_read_with_tls_gets_it_all_when_it_does<R: Runtime>(
    stage: Stage<R>,
) {
    let authority = Authority::new("ours");
    let stage = stage.gated(2);
    let mut ensemble = stage.journals(1, 1);
    for id in ensemble.ids() {
        let mut config = secure(&ensemble, &authority, id);
        config.core.history.window_count = 5;
        ensemble.start_as(config).await;
    }
    let (leader, _) = ensemble.agreed().await;
    let gate = &stage.runtime(1).gate;
    gate.hold();
    let (writer, count) = (ensemble.server(leader).clone(), 30);
    let mut last = Zxid::ZERO;
    for number in 0..count {
        last = stage.propose(&writer, numbered(number, 900_000)).await.zxid;
    }
    gate.release();
    let server = ensemble.server(ensemble.observers()[0]);
    stage.until("the rest", || server.status().metrics.applied == last).await;
    assert_eq!(stage.entries(server).await.len(), count);
}

/// Bytes may come one at a time: nothing is decided before they are there, and nothing is lost.
pub async fn a_member_whose_bytes_come_one_at_a_time_is_let_in<R: Runtime>(stage: Stage<R>) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.electors(1, 0);
    let id = ensemble.ids()[0];
    let mut config = secure(&ensemble, &authority, id);
    config.tls.as_mut().unwrap().accepts_plain = true;
    ensemble.start_as(config).await;
    ensemble.agreed().await;
    let claimed = ServerId(200);
    let stream = Dribble(ensemble.connect(id, Plane::Election).await);
    let connector = TlsConnector::from(authority.stranger(Some(&authority.for_server(claimed))));
    let shaken = connector.connect("127.0.0.1".try_into().unwrap(), stream);
    let mut stream = stage.within("a handshake", shaken).await.unwrap();
    let word = async {
        stream.write_all(&hello(Plane::Election, claimed)).await?;
        // What is written may still wait within TLS.
        stream.flush().await
    };
    stage.within("a word", word).await.unwrap();
    stage.until("a link", || links(ensemble.server(id), true) > 0.5).await;
    // And so is one that speaks without, where that is allowed.
    let mut plain = Line::to(&stage, &ensemble, id, Plane::Election).await;
    for byte in hello(Plane::Election, ServerId(201)) {
        plain.write(&[byte]).await;
        stage.pass().await;
    }
    stage.until("a plain link", || links(ensemble.server(id), false) > 0.5).await;
}

pub async fn a_peer_without_tls_comes_again_and_again<R: Runtime>(stage: Stage<R>) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.electors(1, 0);
    let id = ensemble.ids()[0];
    let mut config = secure(&ensemble, &authority, id);
    config.tls.as_mut().unwrap().accepts_plain = true;
    ensemble.start_as(config).await;
    ensemble.agreed().await;
    for _ in 0..3 {
        let mut plain = Line::to(&stage, &ensemble, id, Plane::Election).await;
        plain.write(&hello(Plane::Election, ServerId(201))).await;
        stage.until("a plain link", || links(ensemble.server(id), false) > 0.5).await;
        drop(plain);
        stage.until("none", || links(ensemble.server(id), false) < 0.5).await;
    }
}

pub async fn a_server_with_a_wrong_certificate_stays_out_until_it_has_another<R: Runtime>(
    stage: Stage<R>,
) {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let mut ensemble = stage.electors(3, 0);
    let ids = ensemble.ids();
    let wrong = settings(&ensemble, &ours, &theirs.for_server(ids[2]), ids[2]);
    ensemble.start_as(with_settings(&ensemble, ids[2], wrong)).await;
    for id in &ids[..2] {
        ensemble.start_as(secure(&ensemble, &ours, *id)).await;
    }
    let agreed = ensemble.agreed_but_for(&[ids[2]]).await;
    // It dials the others, which refuse it; they dial it, and refuse it.
    for id in &ids[..2] {
        let server = ensemble.server(*id);
        let refused = || failures(server, "election", "accept", "unknown-authority") > 0;
        stage.until("a refusal of who dials", refused).await;
        let refused = || failures(server, "election", "dial", "unknown-authority") > 0;
        stage.until("a refusal of who is dialled", refused).await;
    }
    let outside = ensemble.server(ids[2]);
    let told = || failures(outside, "election", "dial", "refused-by-peer") > 0;
    stage.until("being told", told).await;
    // Its dials have failed: it has not held such a link to be up.
    let failed = |dialled: &Dialled| {
        let failure = dialled.failure.as_deref().unwrap_or_default();
        failure.contains("refused-by-peer")
    };
    stage.until("a failed dial", || outside.dials().iter().any(failed)).await;
    assert_eq!(outside.status().peer.linked, []);
    assert_eq!(ensemble.agreed_but_for(&[ids[2]]).await, agreed);
    // And one that holds another member's.
    ensemble.kill(ids[2]).await;
    let anothers = settings(&ensemble, &ours, &ours.for_server(ids[0]), ids[2]);
    ensemble.start_as(with_settings(&ensemble, ids[2], anothers)).await;
    let server = ensemble.server(ids[0]);
    stage.until("a claim", || failures(server, "election", "accept", "identity") > 0).await;
    stage.until("a look", || failures(server, "election", "dial", "identity") > 0).await;
    ensemble.kill(ids[2]).await;
    ensemble.start_as(secure(&ensemble, &ours, ids[2])).await;
    assert_eq!(ensemble.agreed().await, agreed);
}

/// As ZooKeeper's documentation has it: all accept both, all dial with TLS, none accepts the other.
pub async fn an_ensemble_comes_to_tls_one_server_at_a_time<R: Runtime>(stage: Stage<R>) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    ensemble.agreed().await;
    for (dials_tls, accepts_plain) in [(false, true), (true, true), (true, false)] {
        for id in ensemble.ids() {
            ensemble.kill(id).await;
            ensemble.agreed().await;
            let mut config = secure(&ensemble, &authority, id);
            let settings = config.tls.as_mut().unwrap();
            (settings.dials_tls, settings.accepts_plain) = (dials_tls, accepts_plain);
            ensemble.start_as(config).await;
            ensemble.agreed().await;
        }
    }
    let none_is_plain = || ensemble.running().all(|(_, server)| links(server, false) < 0.5);
    stage.until("no plain link", none_is_plain).await;
}

/// The certificate that a server shows.
pub(super) async fn shown<R: Runtime>(
    stage: &Stage<R>,
    ensemble: &Ensemble<R>,
    authority: &Authority,
) -> Vec<u8> {
    let id = ensemble.ids()[0];
    let stream = ensemble.connect(id, Plane::Election).await;
    let stranger = authority.stranger(Some(&authority.for_server(ServerId(200))));
    let shaken = TlsConnector::from(stranger).connect("127.0.0.1".try_into().unwrap(), stream);
    let stream = stage.within("a handshake", shaken).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

/// As long as what is there is not good, what was there stays.
pub async fn a_certificate_that_is_replaced_is_shown_to_whoever_comes_then<R: Runtime>(
    stage: Stage<R>,
) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.electors(1, 0);
    let id = ensemble.ids()[0];
    let mut config = secure(&ensemble, &authority, id);
    let settings = config.tls.as_mut().unwrap();
    settings.reload = Some(Duration::from_millis(20));
    let own = settings.key_store.path.clone();
    ensemble.start_as(config).await;
    let mut before = shown(&stage, &ensemble, &authority).await;
    let good = fs::read(&own).unwrap();
    for half_written in [false, true] {
        if half_written {
            fs::write(&own, &good[..good.len() / 2]).unwrap();
            assert_eq!(shown(&stage, &ensemble, &authority).await, before);
        }
        drop(settings_of_another(&ensemble, &authority, id));
        let changed = async {
            loop {
                let now = shown(&stage, &ensemble, &authority).await;
                if now != before {
                    return now;
                }
            }
        };
        before = stage.within("another certificate", changed).await;
    }
}

/// Writes other stores in the place of those that are there.
fn settings_of_another<R: Runtime>(
    ensemble: &Ensemble<R>,
    authority: &Authority,
    id: ServerId,
) -> Settings {
    settings(ensemble, authority, &authority.for_server(id), id)
}

pub async fn a_plain_server_knows_tls_when_it_sees_it<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(1, 0);
    ensemble.start_all().await;
    let (id, _) = ensemble.agreed().await;
    for (plane, name) in [(Plane::Election, "election"), (Plane::Quorum, "quorum")] {
        let mut line = Line::to(&stage, &ensemble, id, plane).await;
        line.write(&[0x16, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await;
        line.until_closed("a ClientHello").await;
        assert_eq!(failures(ensemble.server(id), name, "accept", "tls-on-plain-port"), 1);
    }
}

/// Writes one byte at a time.
#[derive(Debug)]
pub(super) struct Dribble<S>(pub(super) S);

mod dribble {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use futures_io::{AsyncRead, AsyncWrite};

    use super::Dribble;

    impl<S: AsyncRead + Unpin> AsyncRead for Dribble<S> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_read(cx, buffer)
        }
    }

    impl<S: AsyncWrite + Unpin> AsyncWrite for Dribble<S> {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let first = &bytes[..bytes.len().min(1)];
            Pin::new(&mut self.0).poll_write(cx, first)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(cx)
        }

        fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_close(cx)
        }
    }
}

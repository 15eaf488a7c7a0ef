//! A connection of a non-member to a server, and the bytes that it sends.

use std::io::ErrorKind;

use bytes::{Bytes, BytesMut};
use futures_lite::io::{AsyncReadExt, AsyncWriteExt};
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::message::{Introduction, LearnerInfo, Mark, Notification, Packet};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire;
use quorate_core::zxid::{Epoch, Zxid};

use super::{Ensemble, Stage};
use crate::Runtime;

/// An id larger than those of all members, so that its connections stay, and no member.
pub(super) const NON_MEMBER: ServerId = ServerId(200);

/// A non-member's connection to a server.
pub(super) struct Line<'s, R: Runtime> {
    pub(super) stage: &'s Stage<R>,
    pub(super) stream: R::Stream,
    pub(super) received: BytesMut,
}

impl<'s, R: Runtime> Line<'s, R> {
    pub(super) async fn to(
        stage: &'s Stage<R>,
        ensemble: &Ensemble<R>,
        id: ServerId,
        plane: Plane,
    ) -> Self {
        let stream = ensemble.connect(id, plane).await;
        Self { stage, stream, received: BytesMut::new() }
    }

    /// Writes; the server may have closed meanwhile.
    pub(super) async fn write(&mut self, bytes: &[u8]) {
        drop(self.stage.within("write", self.stream.write_all(bytes)).await);
    }

    /// Says that nothing follows.
    pub(super) async fn close(&mut self) {
        drop(self.stage.within("close", self.stream.close()).await);
    }

    /// Waits until the server has closed the connection.
    pub(super) async fn until_closed(&mut self, what: &str) {
        let mut rest = Vec::new();
        match self.stage.within(what, self.stream.read_to_end(&mut rest)).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{what}"),
        }
    }

    /// Reads the next notification.
    pub(super) async fn answer(&mut self) -> Notification {
        let Self { stage, stream, received } = self;
        let answer = async {
            loop {
                if let Some(notification) = wire::take_notification(received).unwrap() {
                    return notification;
                }
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).await.unwrap();
                assert_ne!(count, 0, "closed instead of answering");
                received.extend_from_slice(&piece[..count]);
            }
        };
        stage.within("an answer", answer).await
    }
}

pub(super) fn introduction(id: ServerId) -> Bytes {
    let address = HostPort { host: "127.0.0.1".into(), port: 9 };
    wire::encode_introduction(&Introduction { id, addresses: vec![address] })
}

/// What a stranger says first on a port.
pub(super) fn hello(plane: Plane, claimed: ServerId) -> Bytes {
    match plane {
        Plane::Election => introduction(claimed),
        Plane::Quorum => {
            let (id, protocol) = (Some(claimed), LearnerInfo::PROTOCOL);
            let info = LearnerInfo { accepted_epoch: Epoch(0), id, protocol, config_version: 0 };
            let mut bytes = BytesMut::new();
            wire::encode_packet(&Packet::ObserverInfo(info), &mut bytes);
            bytes.freeze()
        }
    }
}

/// A notification of somebody who looks for a leader.
pub(super) fn question(round: i64) -> BytesMut {
    let vote = Vote { peer_epoch: Epoch::ZERO, zxid: Zxid::ZERO, leader: NON_MEMBER };
    let standing = Standing { state: ServerState::Looking, vote, round: Round(round) };
    let mut bytes = BytesMut::new();
    let version = Notification::VERSION;
    wire::encode_notification(
        &Notification { standing, version, config: Bytes::new(), mark: Mark::NONE },
        &mut bytes,
    );
    bytes
}

/// Asks a server on its election port who leads, as `quorate probe` would.
async fn who_leads<R: Runtime>(
    stage: &Stage<R>,
    ensemble: &Ensemble<R>,
    id: ServerId,
) -> (ServerState, ServerId) {
    let mut line = Line::to(stage, ensemble, id, Plane::Election).await;
    line.write(&introduction(NON_MEMBER)).await;
    line.write(&question(1)).await;
    let standing = line.answer().await.standing;
    (standing.state, standing.vote.leader)
}

/// The servers still answer, and can still elect.
pub(super) async fn still_serves<R: Runtime>(stage: &Stage<R>, mut ensemble: Ensemble<R>) {
    let (leader, epoch) = ensemble.agreed().await;
    for id in ensemble.ids() {
        let expected = if id == leader { ServerState::Leading } else { ServerState::Following };
        assert_eq!(who_leads(stage, &ensemble, id).await, (expected, leader), "server {id}");
    }
    ensemble.kill(leader).await;
    assert!(ensemble.agreed().await.1 > epoch);
}

pub(super) async fn running<R: Runtime>(stage: &Stage<R>) -> (Ensemble<R>, ServerId) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    (ensemble, leader)
}

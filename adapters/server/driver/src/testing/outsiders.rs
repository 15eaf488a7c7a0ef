//! What strangers and broken peers may send to a running server, or not send: it costs them their link
//! or that message, and the server serves on.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use async_channel::bounded;
use bytes::{Bytes, BytesMut};
use futures_lite::io::{AsyncReadExt, AsyncWriteExt};
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::message::{Introduction, LearnerInfo, Mark, Notification, Packet};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire;
use quorate_core::zxid::{Epoch, Zxid};
use socket2::{Domain, Socket, Type};

use super::{Ensemble, Stage};
use crate::Runtime;

/// An id larger than those of all members, so that its connections stay, and no member.
const STRANGER: ServerId = ServerId(200);

/// A stranger's connection to a server.
struct Line<'s, R: Runtime> {
    stage: &'s Stage<R>,
    stream: R::Stream,
    received: BytesMut,
}

impl<'s, R: Runtime> Line<'s, R> {
    async fn to(stage: &'s Stage<R>, ensemble: &Ensemble<R>, id: ServerId, plane: Plane) -> Self {
        let stream = ensemble.connect(id, plane).await;
        Self { stage, stream, received: BytesMut::new() }
    }

    /// Writes; the server may have closed meanwhile.
    async fn write(&mut self, bytes: &[u8]) {
        drop(self.stage.within("write", self.stream.write_all(bytes)).await);
    }

    /// Says that nothing follows.
    async fn close(&mut self) {
        drop(self.stage.within("close", self.stream.close()).await);
    }

    /// Waits until the server has closed the connection.
    async fn until_closed(&mut self, what: &str) {
        let mut rest = Vec::new();
        match self.stage.within(what, self.stream.read_to_end(&mut rest)).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{what}"),
        }
    }

    /// Reads the next notification.
    async fn answer(&mut self) -> Notification {
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

fn introduction(id: ServerId) -> Bytes {
    let address = HostPort { host: "127.0.0.1".into(), port: 9 };
    wire::encode_introduction(&Introduction { id, addresses: vec![address] })
}

/// An introduction by its fields.
fn raw_introduction(protocol: i64, id: i64, length: i32, text: &[u8]) -> Vec<u8> {
    let head = [&protocol.to_be_bytes()[..], &id.to_be_bytes(), &length.to_be_bytes(), text];
    head.concat()
}

fn framed(payload: &[u8]) -> Vec<u8> {
    [&i32::try_from(payload.len()).unwrap().to_be_bytes()[..], payload].concat()
}

/// A notification of somebody who looks for a leader.
fn question(round: i64) -> BytesMut {
    let vote = Vote { peer_epoch: Epoch::ZERO, zxid: Zxid::ZERO, leader: STRANGER };
    let standing = Standing { state: ServerState::Looking, vote, round: Round(round) };
    let mut bytes = BytesMut::new();
    let version = Notification::VERSION;
    wire::encode_notification(
        &Notification { standing, version, config: Bytes::new(), mark: Mark::NONE },
        &mut bytes,
    );
    bytes
}

/// A good notification with some of its fields overwritten.
fn notification_with(at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = question(1).to_vec();
    bytes[4 + at..][..field.len()].copy_from_slice(field);
    bytes
}

/// Asks a server on its election port who leads, as `quorate probe` would.
async fn who_leads<R: Runtime>(
    stage: &Stage<R>,
    ensemble: &Ensemble<R>,
    id: ServerId,
) -> (ServerState, ServerId) {
    let mut line = Line::to(stage, ensemble, id, Plane::Election).await;
    line.write(&introduction(STRANGER)).await;
    line.write(&question(1)).await;
    let standing = line.answer().await.standing;
    (standing.state, standing.vote.leader)
}

/// The servers still answer, and can still elect.
async fn still_serves<R: Runtime>(stage: &Stage<R>, mut ensemble: Ensemble<R>) {
    let (leader, epoch) = ensemble.agreed().await;
    for id in ensemble.ids() {
        let expected = if id == leader { ServerState::Leading } else { ServerState::Following };
        assert_eq!(who_leads(stage, &ensemble, id).await, (expected, leader), "server {id}");
    }
    ensemble.kill(leader).await;
    assert!(ensemble.agreed().await.1 > epoch);
}

async fn running<R: Runtime>(stage: &Stage<R>) -> (Ensemble<R>, ServerId) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    (ensemble, leader)
}

/// Bytes without a meaning, the same each time.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[3]
    };
    (0..count).map(|_| next()).collect()
}

pub async fn introductions_that_cannot_be_read<R: Runtime>(stage: Stage<R>) {
    let (ensemble, leader) = running(&stage).await;
    let known = wire::PROTOCOL_ONE_ADDRESS;
    let text = b"127.0.0.1:70000";
    let refused: Vec<(&str, Vec<u8>)> = vec![
        ("port 70000", raw_introduction(known, 200, 15, text)),
        ("port -1", raw_introduction(known, 200, 12, b"127.0.0.1:-1")),
        ("no port", raw_introduction(known, 200, 9, b"127.0.0.1")),
        ("no text", raw_introduction(known, 200, 0, b"")),
        ("negative length", raw_introduction(known, 200, -1, b"")),
        ("length 2^31 - 1", raw_introduction(known, 200, i32::MAX, b"")),
        ("2049 bytes", raw_introduction(known, 200, 2049, &[b'a'; 2049])),
        ("not UTF-8", raw_introduction(known, 200, 4, &[0xff, 0xfe, 0xfd, 0xfc])),
        ("unknown protocol", raw_introduction(-65537, 200, 15, text)),
        ("smallest protocol", raw_introduction(i64::MIN, 200, 15, text)),
        ("all ones", vec![0xff; 64]),
        ("own id", introduction(leader).to_vec()),
        ("nobody's id", raw_introduction(known, i64::MIN, 11, b"127.0.0.1:9")),
        ("an observer without an id", raw_introduction(known, i64::MAX, 11, b"127.0.0.1:9")),
        ("a negative id", raw_introduction(known, -7, 11, b"127.0.0.1:9")),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: zk\r\n\r\n".to_vec()),
    ];
    for (what, bytes) in refused {
        let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
        line.write(&bytes).await;
        if what == "HTTP" {
            // As a number it is a large id: whatever follows is then no frame.
            line.close().await;
        }
        line.until_closed(what).await;
    }
    let server = ensemble.server(leader);
    stage.until("counting", || server.status().metrics.refused_introductions >= 11).await;
    // Cut off after each byte.
    let whole = introduction(STRANGER);
    for cut in 0..whole.len() {
        let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
        line.write(&whole[..cut]).await;
    }
    still_serves(&stage, ensemble).await;
}

pub async fn frames_that_cannot_be_read_end_their_link_only<R: Runtime>(stage: Stage<R>) {
    let (ensemble, leader) = running(&stage).await;
    let fatal: Vec<(&str, Vec<u8>)> = vec![
        ("empty frame", 0_i32.to_be_bytes().to_vec()),
        ("negative frame", (-1_i32).to_be_bytes().to_vec()),
        ("frame of 2^31 - 1 bytes", i32::MAX.to_be_bytes().to_vec()),
        ("frame of 512 KiB and a byte", (512 * 1024 + 1_i32).to_be_bytes().to_vec()),
        ("noise", [&[0x80], &noise(1, 4096)[..]].concat()),
    ];
    for (what, bytes) in fatal {
        let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
        line.write(&introduction(STRANGER)).await;
        line.write(&bytes).await;
        line.until_closed(what).await;
    }
    let server = ensemble.server(leader);
    stage.until("counting", || server.status().metrics.garbled_links >= 5).await;
    still_serves(&stage, ensemble).await;
}

pub async fn notifications_that_cannot_be_read_are_dropped<R: Runtime>(stage: Stage<R>) {
    let (ensemble, leader) = running(&stage).await;
    let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
    line.write(&introduction(STRANGER)).await;
    let mut bad: Vec<Vec<u8>> = (1..40).filter(|n| *n != 28).map(|n| framed(&vec![0; n])).collect();
    bad.extend([
        notification_with(0, &4_i32.to_be_bytes()),
        notification_with(0, &(-1_i32).to_be_bytes()),
        notification_with(40, &(-1_i32).to_be_bytes()),
        notification_with(40, &1_i32.to_be_bytes()),
        notification_with(40, &i32::MAX.to_be_bytes()),
    ]);
    let count = u64::try_from(bad.len()).unwrap();
    for bytes in bad {
        line.write(&bytes).await;
    }
    // In order as far as bytes go, nonsense otherwise: versions, leaders, epochs, configurations.
    let id = u8::try_from(leader.0).unwrap();
    for bytes in [
        notification_with(4, &i64::MAX.to_be_bytes()),
        notification_with(4, &i64::MIN.to_be_bytes()),
        notification_with(12, &(-1_i64).to_be_bytes()),
        notification_with(20, &i64::MAX.to_be_bytes()),
        notification_with(28, &i64::MIN.to_be_bytes()),
        notification_with(36, &i32::MAX.to_be_bytes()),
        notification_with(36, &(-1_i32).to_be_bytes()),
        framed(&[&notification_with(40, &9_i32.to_be_bytes())[4..], b"server.1="].concat()),
        framed(&[&notification_with(40, &4_i32.to_be_bytes())[4..], &[0xff, 0, id, 0xfe]].concat()),
        framed(&[0; 28]),
    ] {
        line.write(&bytes).await;
    }
    // The link has stayed: the next good question on it is answered.
    line.write(&question(7)).await;
    let reply = line.answer().await;
    assert_eq!((reply.standing.state, reply.standing.vote.leader), (ServerState::Leading, leader));
    let server = ensemble.server(leader);
    stage.until("counting", || server.status().metrics.dropped_messages >= count).await;
    drop(line);
    still_serves(&stage, ensemble).await;
}

pub async fn packets_that_cannot_be_read_end_their_link_only<R: Runtime>(stage: Stage<R>) {
    let (ensemble, leader) = running(&stage).await;
    let packet = |kind: i32, length: i32| {
        [&kind.to_be_bytes()[..], &0_i64.to_be_bytes(), &length.to_be_bytes()].concat()
    };
    let encoded = |packet: &Packet| {
        let mut bytes = BytesMut::new();
        wire::encode_packet(packet, &mut bytes);
        bytes.to_vec()
    };
    let info = |epoch, protocol| {
        encoded(&Packet::FollowerInfo(LearnerInfo {
            accepted_epoch: Epoch(epoch),
            id: Some(STRANGER),
            protocol,
            config_version: 0,
        }))
    };
    let closing: Vec<(&str, Vec<u8>)> = vec![
        ("negative buffer", packet(11, -2)),
        ("buffer of 2^31 - 1 bytes", packet(11, i32::MAX)),
        ("identities without end", [packet(1, -1), i32::MAX.to_be_bytes().to_vec()].concat()),
        ("FOLLOWERINFO of 3 bytes", [packet(11, 3), vec![0; 7]].concat()),
        ("a first packet of a megabyte", [packet(11, 1_000_000), vec![0; 8192]].concat()),
        ("noise", noise(3, 8192)),
        ("all ones", vec![0xff; 64]),
        ("an old protocol", info(0, 1)),
        ("an epoch beyond all", info(-1, LearnerInfo::PROTOCOL)),
        ("UPTODATE from a learner", encoded(&Packet::UpToDate)),
        ("an ACK of a stranger", encoded(&Packet::Ack(Zxid::ZERO))),
        (
            "NEWLEADER to a leader",
            encoded(&Packet::NewLeader { zxid: Zxid(1), config: Bytes::new() }),
        ),
        ("a notification", question(1).to_vec()),
    ];
    for id in ensemble.ids() {
        for (what, bytes) in &closing {
            let mut line = Line::to(&stage, &ensemble, id, Plane::Quorum).await;
            line.write(bytes).await;
            // What looks like the begin of something longer ends here.
            line.close().await;
            line.until_closed(&format!("{what} to server {id}")).await;
        }
        // Cut off after each byte.
        let whole = info(0, LearnerInfo::PROTOCOL);
        for cut in 0..whole.len() {
            let mut line = Line::to(&stage, &ensemble, id, Plane::Quorum).await;
            line.write(&whole[..cut]).await;
        }
    }
    assert_eq!(ensemble.agreed().await.0, leader, "nobody was disturbed");
    still_serves(&stage, ensemble).await;
}

/// Anybody may register as an observer and begin a long request. Together they get a bounded part of
/// the leader's memory; who wants more loses its link.
pub async fn requests_that_never_end_share_a_bound<R: Runtime>(stage: Stage<R>) {
    const MEGABYTE: usize = 1 << 20;
    let (ensemble, leader) = running(&stage).await;
    let (closed, closings) = bounded(64);
    for n in 0..40 {
        let mut line = Line::to(&stage, &ensemble, leader, Plane::Quorum).await;
        let mut hello = BytesMut::new();
        let info = LearnerInfo {
            accepted_epoch: Epoch::ZERO,
            id: Some(ServerId(1_000 + n)),
            protocol: LearnerInfo::OTHER_APPLICATION,
            config_version: 0,
        };
        wire::encode_packet(&Packet::ObserverInfo(info), &mut hello);
        line.write(&hello).await;
        // LEADERINFO: from now on longer packets are in order.
        stage.within("LEADERINFO", line.stream.read_exact(&mut [0; 24])).await.unwrap();
        let length = i32::try_from(MEGABYTE).unwrap().to_be_bytes();
        let request = [&1_i32.to_be_bytes()[..], &(-1_i64).to_be_bytes(), &length].concat();
        line.write(&request).await;
        line.write(&vec![0; MEGABYTE - 1]).await;
        let (mut stream, closed) = (line.stream, closed.clone());
        stage.spawn(async move {
            drop(stream.read_to_end(&mut Vec::new()).await);
            closed.send(()).await.ok();
        });
    }
    for nth in 1..=20 {
        stage.within(&format!("the end of link {nth}"), closings.recv()).await.unwrap();
    }
    still_serves(&stage, ensemble).await;
}

pub async fn a_thousand_silent_connections_keep_nobody_out<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    // Nobody gives up by itself.
    ensemble.adjust = |config| config.introduction_timeout = Some(Duration::from_secs(3600));
    let [first, second, third] = ensemble.ids()[..] else { panic!("three servers") };
    ensemble.start(first).await;
    ensemble.start(second).await;
    let (leader, _) = ensemble.agreed().await;
    let mut silent = Vec::new();
    for n in 0..1000 {
        let plane = if n % 4 < 2 { Plane::Election } else { Plane::Quorum };
        silent.push(ensemble.connect([first, second][n % 2], plane).await);
    }
    ensemble.start(third).await;
    assert_eq!(ensemble.agreed().await.0, leader);
    let server = ensemble.server(first);
    stage.until("counting", || server.status().metrics.evicted_introductions > 0).await;
    still_serves(&stage, ensemble).await;
    drop(silent);
}

/// A stranger's connection from an address of this machine that no member is configured with, or from theirs.
struct Impostor {
    stream: TcpStream,
    begun: Instant,
}

impl Impostor {
    /// It says that it is `claimed`, and that it has the best of all votes.
    fn to<R: Runtime>(
        ensemble: &Ensemble<R>,
        target: ServerId,
        claimed: ServerId,
        from: [u8; 4],
    ) -> Self {
        let HostPort { host, port } = ensemble.port(target, Plane::Election);
        let to = SocketAddr::new(host.parse().unwrap(), port);
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
        socket.connect(&to.into()).unwrap();
        let mut stream = TcpStream::from(socket);
        let vote = Vote { peer_epoch: Epoch(9), zxid: Zxid(9 << 32), leader: claimed };
        let standing = Standing { state: ServerState::Looking, vote, round: Round(99) };
        let (version, mark) = (Notification::VERSION, Mark::NONE);
        let forged = Notification { standing, version, config: Bytes::new(), mark };
        let mut bytes = BytesMut::from(&introduction(claimed)[..]);
        wire::encode_notification(&forged, &mut bytes);
        stream.write_all(&bytes).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self { stream, begun: Instant::now() }
    }

    /// Waits until the server has closed it; how long that was.
    async fn until_closed<R: Runtime>(mut self, stage: &Stage<R>) -> Duration {
        let closed = RefCell::new(&mut self.stream);
        let mut piece = [0; 512];
        let piece = RefCell::new(&mut piece);
        stage
            .until("the end of an impostor's connection", || {
                match closed.borrow_mut().read(*piece.borrow_mut()) {
                    Ok(0) => true,
                    Ok(_) => false,
                    Err(error) => error.kind() != ErrorKind::WouldBlock,
                }
            })
            .await;
        self.begun.elapsed()
    }
}

/// Every server is linked with every other.
async fn all_linked<R: Runtime>(stage: &Stage<R>, ensemble: &Ensemble<R>) {
    let all = ensemble.ids().len() - 1;
    let linked = || ensemble.running().all(|(_, server)| server.status().peer.linked.len() == all);
    stage.until("links between all", linked).await;
}

pub async fn a_voters_id_that_is_claimed_from_elsewhere_ends_no_link<R: Runtime>(stage: Stage<R>) {
    let (ensemble, leader) = running(&stage).await;
    all_linked(&stage, &ensemble).await;
    let epoch = ensemble.agreed().await.1;
    let rounds =
        || -> Vec<_> { ensemble.running().map(|(_, server)| server.status().peer.round).collect() };
    let before = rounds();
    // A larger one is held for a second, and refused; a smaller one is dialled where it is configured to be. Those
    // apart: the new link that comes of it sends away who claims to be the server that dials.
    for larger in [true, false] {
        let mut impostors = Vec::new();
        for target in ensemble.ids() {
            for claimed in ensemble.ids().into_iter().filter(|id| (*id > target) == larger) {
                if claimed != target {
                    let impostor = Impostor::to(&ensemble, target, claimed, [127, 0, 0, 7]);
                    impostors.push((target, claimed, impostor));
                }
            }
        }
        for (target, claimed, impostor) in impostors {
            let lasted = impostor.until_closed(&stage).await;
            let held = lasted >= Duration::from_millis(900);
            assert_eq!(held, larger, "{claimed} at {target}: {lasted:?}");
            let serve = ensemble.running().all(|(_, server)| server.status().peer.serving);
            assert!(serve, "{claimed} at {target}");
        }
    }
    assert_eq!((ensemble.agreed().await, rounds()), ((leader, epoch), before), "no new election");
    all_linked(&stage, &ensemble).await;
    still_serves(&stage, ensemble).await;
}

/// It may take the place, which the voter gets back when it comes.
pub async fn a_voters_id_that_is_claimed_from_its_own_machine_gives_way_to_it<R: Runtime>(
    stage: Stage<R>,
) {
    let (ensemble, leader) = running(&stage).await;
    all_linked(&stage, &ensemble).await;
    let [first, _, third] = ensemble.ids()[..] else { panic!("three servers") };
    let larger = Impostor::to(&ensemble, first, third, [127, 0, 0, 1]);
    let smaller = Impostor::to(&ensemble, third, first, [127, 0, 0, 1]);
    assert!(smaller.until_closed(&stage).await < Duration::from_millis(900));
    // It has the place for a moment: the voter dials again, and a second later the place is its own.
    let lasted = larger.until_closed(&stage).await;
    assert!(lasted >= Duration::from_millis(900), "{lasted:?}");
    assert_eq!(ensemble.agreed().await.0, leader);
    all_linked(&stage, &ensemble).await;
    still_serves(&stage, ensemble).await;
}

pub async fn an_introduction_has_a_deadline<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(1, 0);
    ensemble.adjust = |config| config.introduction_timeout = Some(Duration::from_millis(50));
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
    line.write(&introduction(STRANGER)[..10]).await;
    line.until_closed("half an introduction").await;
}

pub async fn one_address_has_a_share_of_the_connections<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(1, 0);
    ensemble.adjust = |config| {
        config.max_peer_connections = 3;
        config.introduction_timeout = Some(Duration::from_secs(3600));
    };
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    // One port takes them in their order, two ports do not. After the fourth the three are held.
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(Line::to(&stage, &ensemble, leader, Plane::Election).await);
    }
    for (refused, plane) in [(1, Plane::Election), (2, Plane::Quorum)] {
        let mut another = Line::to(&stage, &ensemble, leader, plane).await;
        another.until_closed("a connection too many").await;
        assert_eq!(ensemble.server(leader).status().metrics.refused_connections, refused);
    }
    // When they have gone there is room, as soon as the server has noticed.
    drop(held);
    stage
        .within("room again", async {
            let mut piece = [0; 64];
            loop {
                let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
                line.write(&introduction(STRANGER)).await;
                line.write(&question(1)).await;
                if matches!(line.stream.read(&mut piece).await, Ok(1..)) {
                    break;
                }
            }
        })
        .await;
    assert_eq!(ensemble.agreed().await.0, leader);
}

//! What a stranger gets of an ensemble without TLS whose quorum port it reaches: as an observer that it makes up, byte by byte,
//! with a data tree behind it in which a node is protected (CVE-2018-8012).
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

use std::net::SocketAddr;

use bytes::BytesMut;
use quorate_core::config::Strangers;
use quorate_core::id::ServerId;
use quorate_core::message::{Identity, LearnerInfo, Packet, Request};
use quorate_core::txn::RequestId;
use quorate_core::wire;
use quorate_core::zxid::{Epoch, Zxid};
use quorate_service::ZooKeeper;
use quorate_tokio::{Proposal, ServerConfig};
use quorate_znode::kind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::common::within;
use crate::java::client::Body;
use crate::mixed::{Mixed, Quorate};

const PATH: &str = "/protected";
const SECRET: &[u8] = b"a secret";
/// An id that no configuration names.
const STRANGER: ServerId = ServerId(77);
/// An address of this machine at which no member is.
const ELSEWHERE: [u8; 4] = [127, 0, 0, 9];

fn buffer(bytes: &[u8]) -> Vec<u8> {
    [&i32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

/// A node that only `bob` may read and write.
fn protected() -> Proposal {
    let mut body = [buffer(PATH.as_bytes()), buffer(SECRET), 1_i32.to_be_bytes().to_vec()].concat();
    body.extend(31_i32.to_be_bytes());
    body.extend([buffer(b"digest"), buffer(b"bob:bvS4uD1EXtgSGgDZvsHkyFvb9dA=")].concat());
    body.extend(0_i32.to_be_bytes());
    Proposal { op: kind::CREATE, body: body.into(), identities: None }
}

/// A change of that node, whatever its version.
fn set(data: &[u8]) -> Body {
    let mut body = Body([buffer(PATH.as_bytes()), buffer(data)].concat());
    body.0.extend((-1_i32).to_be_bytes());
    body
}

/// Three servers with that node.
async fn ensemble(adjust: fn(&mut ServerConfig)) -> (Mixed, ServerId) {
    let mut mixed = Mixed::new(&[Quorate; 3]);
    mixed.adjust = adjust;
    for id in 1..=3 {
        mixed.start(ServerId(id)).await;
    }
    let leader = mixed.agreed("three servers").await;
    mixed.ask(leader, protected()).await;
    (mixed, leader)
}

/// What the leader holds under the path.
async fn held(mixed: &Mixed, leader: ServerId) -> Vec<u8> {
    let server = mixed.quorate(leader);
    server.sync().await.unwrap();
    let data = server
        .read_local(|zookeeper: &ZooKeeper| zookeeper.tree().get(PATH).unwrap().data().cloned())
        .await;
    data.unwrap().unwrap().to_vec()
}

/// An observer that is none.
struct Forged {
    stream: TcpStream,
    received: BytesMut,
}

impl Forged {
    async fn to(mixed: &Mixed, leader: ServerId, from: [u8; 4]) -> Self {
        let address = mixed.membership.member(leader).unwrap().quorum_address();
        let at = SocketAddr::new(address.host.parse().unwrap(), address.port);
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let stream = within("connect", socket.connect(at)).await.unwrap();
        Self { stream, received: BytesMut::new() }
    }

    async fn say(&mut self, packet: &Packet) {
        let mut bytes = BytesMut::new();
        wire::encode_packet(packet, &mut bytes);
        // Perhaps it is closed already.
        drop(self.stream.write_all(&bytes).await);
    }

    async fn hear(&mut self) -> Packet {
        let heard = async {
            loop {
                if let Some(packet) = wire::take_packet(&mut self.received, 1 << 20).unwrap() {
                    return packet;
                }
                assert_ne!(self.stream.read_buf(&mut self.received).await.unwrap(), 0, "closed");
            }
        };
        within("a packet", heard).await
    }

    /// What comes until the leader closes.
    async fn rest(mut self) -> Vec<u8> {
        let mut rest = self.received.to_vec();
        drop(within("the end", self.stream.read_to_end(&mut rest)).await);
        rest
    }

    fn info() -> Packet {
        let (id, protocol) = (Some(STRANGER), LearnerInfo::PROTOCOL);
        let accepted_epoch = Epoch(0);
        Packet::ObserverInfo(LearnerInfo { accepted_epoch, id, protocol, config_version: 0 })
    }

    /// Becomes an observer that has everything: where a history ends each election port tells.
    async fn join(&mut self, mixed: &Mixed, leader: ServerId) {
        let last = mixed.quorate(leader).status().metrics.applied;
        self.say(&Self::info()).await;
        assert!(matches!(self.hear().await, Packet::LeaderInfo { .. }));
        self.say(&Packet::AckEpoch { last, current_epoch: Some(last.epoch()) }).await;
        while !matches!(self.hear().await, Packet::NewLeader { .. }) {}
        self.say(&Packet::Ack(Zxid::start_of(last.epoch()))).await;
        while self.hear().await != Packet::UpToDate {}
    }

    async fn request(&mut self, op: i32, body: Vec<u8>, identities: Option<Vec<Identity>>) {
        let id = RequestId { client: 0x7700_0000_0000_0001, cxid: op };
        self.say(&Packet::Request(Request { id, op, body: body.into(), identities })).await;
    }

    /// A request is done, or refused, when its transaction comes back.
    async fn answer(&mut self) {
        while !matches!(self.hear().await, Packet::Inform(_)) {}
    }

    /// Asks for a change in the name of a client of its own, which has a session.
    async fn ask(&mut self, data: &[u8], schemes: &[(&str, &str)]) {
        self.request(kind::CREATE_SESSION, 10_000_i32.to_be_bytes().to_vec(), None).await;
        self.answer().await;
        let identity = |(scheme, id): &(&str, &str)| Identity {
            scheme: (*scheme).to_owned(),
            id: (*id).to_owned(),
        };
        let identities = Some(schemes.iter().map(identity).collect());
        self.request(kind::SET_DATA, set(data).0, identities).await;
    }
}

#[tokio::test]
async fn a_superuser_of_a_forged_observer_changes_nothing_and_costs_it_its_link() {
    let (mixed, leader) = ensemble(|_| {}).await;
    for schemes in [&[("super", "")][..], &[("ip", "127.0.0.1"), ("super", "bob")]] {
        let mut forged = Forged::to(&mixed, leader, [127, 0, 0, 1]).await;
        forged.join(&mixed, leader).await;
        forged.ask(b"forged", schemes).await;
        forged.rest().await;
        assert_eq!(held(&mixed, leader).await, SECRET);
    }
    // From a member it is what an operator's command sends.
    let follower = mixed.kinds.keys().copied().find(|id| *id != leader).unwrap();
    let identities = Some(vec![Identity { scheme: "super".to_owned(), id: String::new() }]);
    let body = 10_000_i32.to_be_bytes().to_vec().into();
    let session = Proposal { op: kind::CREATE_SESSION, body, identities: identities.clone() };
    mixed.ask(follower, session).await;
    let changed = Proposal { op: kind::SET_DATA, body: set(b"changed").0.into(), identities };
    mixed.ask(follower, changed).await;
    assert_eq!(held(&mixed, leader).await, b"changed");
}

/// Its hash is what anybody may know who has read the node's list once.
#[tokio::test]
async fn a_client_of_a_forged_observer_is_who_it_says_unless_addresses_alone_are_believed() {
    let bob = [("ip", "127.0.0.1"), ("digest", "bob:bvS4uD1EXtgSGgDZvsHkyFvb9dA=")];
    for (adjust, left) in [
        ((|_| {}) as fn(&mut ServerConfig), &b"forged"[..]),
        (|config| config.core.strangers = Strangers::IpOnly, SECRET),
    ] {
        let (mixed, leader) = ensemble(adjust).await;
        let mut forged = Forged::to(&mixed, leader, [127, 0, 0, 1]).await;
        forged.join(&mixed, leader).await;
        forged.ask(b"forged", &bob).await;
        forged.answer().await;
        assert_eq!(held(&mixed, leader).await, left);
    }
}

#[tokio::test]
async fn no_byte_leaves_for_strangers_that_are_not_let_in() {
    let (mixed, leader) = ensemble(|config| config.core.strangers = Strangers::Refuse).await;
    let mut forged = Forged::to(&mixed, leader, [127, 0, 0, 1]).await;
    forged.say(&Forged::info()).await;
    assert_eq!(forged.rest().await, b"");
    assert_eq!(held(&mixed, leader).await, SECRET);
}

#[tokio::test]
async fn no_byte_leaves_for_addresses_that_are_not_allowed() {
    let adjust: fn(&mut ServerConfig) =
        |config| config.allowed_hosts = Some("members".parse().unwrap());
    let (mut mixed, leader) = ensemble(adjust).await;
    let mut forged = Forged::to(&mixed, leader, ELSEWHERE).await;
    forged.say(&Forged::info()).await;
    assert_eq!(forged.rest().await, b"");
    assert!(mixed.quorate(leader).status().metrics.refused_connections > 0);
    // Nor on the other port, where the membership would be told; members are let in.
    let address = mixed.membership.member(leader).unwrap().election_address().clone();
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((ELSEWHERE, 0).into()).unwrap();
    let at = SocketAddr::new(address.host.parse().unwrap(), address.port);
    let mut stream = within("connect", socket.connect(at)).await.unwrap();
    drop(stream.write_all(&[0; 64]).await);
    let mut told = Vec::new();
    drop(within("the end", stream.read_to_end(&mut told)).await);
    assert_eq!(told, b"");
    mixed.kill(leader).await;
    mixed.agreed("members only").await;
}

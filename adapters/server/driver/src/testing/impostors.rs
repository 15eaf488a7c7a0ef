//! A voter's id that is claimed by another process, from its address or from elsewhere.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::message::{Mark, Notification};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire;
use quorate_core::zxid::{Epoch, Zxid};
use socket2::{Domain, Socket, Type};

use super::line::{introduction, running, still_serves};
use super::{Ensemble, Stage};
use crate::Runtime;

/// A non-member's connection from an address of this machine that no member is configured with, or from theirs.
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

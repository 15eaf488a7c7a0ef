//! How often the system had to send something again to each peer: a link that loses packets, or a host that is too busy to
//! take them.
//!
//! The system counts for each connection, as long as that is open. So what it had counted when a link ended is kept, and what
//! is told of a peer never goes back. Where the system does not tell, nothing is.

use std::collections::BTreeMap;
#[cfg(not(target_os = "linux"))]
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use quorate_core::id::{LinkId, ServerId};

use crate::lock::locked;

/// This end of a connection, and the other one.
type Ends = (SocketAddr, SocketAddr);

/// What had to be sent again, over all links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retransmits(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    open: BTreeMap<LinkId, Open>,
    /// Over links that have ended.
    ended: BTreeMap<ServerId, u64>,
}

/// A link that is open.
#[derive(Debug)]
struct Open {
    ends: Ends,
    /// Who it says to be at the other end.
    peer: Option<ServerId>,
    count: u64,
}

impl Open {
    /// Asks the system.
    fn ask(&mut self, system: &mut TcpInfo) {
        self.count = self.count.max(system.retransmits(self.ends).unwrap_or(0));
    }
}

/// One link, which counts until this is dropped: ahead of the connection.
#[derive(Debug)]
pub(super) struct Resent {
    of: Retransmits,
    link: LinkId,
}

impl Retransmits {
    pub(super) fn enter(&self, link: LinkId, peer: Option<ServerId>, ends: Option<Ends>) -> Resent {
        if let Some(ends) = ends {
            locked(&self.0).open.insert(link, Open { ends, peer, count: 0 });
        }
        Resent { of: self.clone(), link }
    }

    /// The other end has said which member it is.
    pub(crate) fn is_to(&self, link: LinkId, peer: ServerId) {
        if let Some(link) = locked(&self.0).open.get_mut(&link) {
            link.peer.get_or_insert(peer);
        }
    }

    /// What had to be sent again to each peer so far, in packets, over all links that there were to it. None for a server
    /// that is no member: anybody can say to be it.
    pub(crate) fn counts(&self, is_member: impl Fn(ServerId) -> bool) -> BTreeMap<ServerId, u64> {
        let mut counts = locked(&self.0);
        let Ok(mut system) = TcpInfo::open() else { return BTreeMap::new() };
        let Counts { open, ended } = &mut *counts;
        ended.retain(|peer, _| is_member(*peer));
        let mut all = ended.clone();
        for link in open.values_mut() {
            link.ask(&mut system);
            if let Some(peer) = link.peer.filter(|peer| is_member(*peer)) {
                *all.entry(peer).or_default() += link.count;
            }
        }
        all
    }
}

impl Drop for Resent {
    fn drop(&mut self) {
        let mut counts = locked(&self.of.0);
        let Some(mut link) = counts.open.remove(&self.link) else { return };
        let Some(peer) = link.peer else { return };
        if let Ok(mut system) = TcpInfo::open() {
            link.ask(&mut system);
        }
        let known = counts.ended.contains_key(&peer) || counts.ended.len() < PEERS_MAX;
        if known && link.count > 0 {
            *counts.ended.entry(peer).or_default() += link.count;
        }
    }
}

/// Of how many peers it is kept until those that are no members are forgotten.
const PEERS_MAX: usize = 1000;

/// What the system says of a connection.
#[cfg(not(target_os = "linux"))]
struct TcpInfo(core::convert::Infallible);

#[cfg(not(target_os = "linux"))]
impl TcpInfo {
    fn open() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn retransmits(&mut self, _: Ends) -> Option<u64> {
        match self.0 {}
    }
}

#[cfg(target_os = "linux")]
use linux::TcpInfo;

/// The kernel is asked by its own protocol (`sock_diag(7)`), which needs no right, and does not wait.
#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::net::IpAddr;

    use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
    use netlink_packet_sock_diag::SockDiagMessage;
    use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
    use netlink_packet_sock_diag::inet::nlas::Nla;
    use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
    use netlink_sys::protocols::NETLINK_SOCK_DIAG;
    use netlink_sys::{Socket, SocketAddr};

    use super::Ends;

    /// What the kernel says of a connection.
    pub(super) struct TcpInfo(Socket);

    impl TcpInfo {
        /// # Errors
        ///
        /// What the kernel says: a container may not be permitted to ask.
        pub(super) fn open() -> io::Result<Self> {
            let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            // It has answered when the request is sent.
            socket.set_non_blocking(true)?;
            Ok(Self(socket))
        }

        /// How many packets were sent again over a connection, from its beginning.
        pub(super) fn retransmits(&mut self, (local, remote): Ends) -> Option<u64> {
            let address = |at: std::net::SocketAddr| at.ip().to_canonical();
            let (source_address, destination_address) = (address(local), address(remote));
            let family = match (source_address, destination_address) {
                (IpAddr::V4(_), IpAddr::V4(_)) => AF_INET,
                (IpAddr::V6(_), IpAddr::V6(_)) => AF_INET6,
                (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return None,
            };
            let socket_id = SocketId {
                source_port: local.port(),
                destination_port: remote.port(),
                source_address,
                destination_address,
                interface_id: 0,
                cookie: [0xff; 8],
            };
            let request = SockDiagMessage::InetRequest(InetRequest {
                family,
                protocol: IPPROTO_TCP,
                extensions: ExtensionFlags::INFO,
                states: StateFlags::all(),
                socket_id,
            });
            let mut header = NetlinkHeader::default();
            header.flags = NLM_F_REQUEST;
            let mut request = NetlinkMessage::new(header, NetlinkPayload::from(request));
            request.finalize();
            let mut bytes = vec![0; request.buffer_len()];
            request.serialize(&mut bytes);
            self.0.send(&bytes, 0).ok()?;
            let mut answer = Vec::with_capacity(ANSWER_BYTES_MAX);
            self.0.recv(&mut answer, 0).ok()?;
            let answer = NetlinkMessage::<SockDiagMessage>::deserialize(&answer).ok()?;
            let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(answer)) =
                answer.payload
            else {
                return None;
            };
            answer.nlas.iter().find_map(|attribute| {
                let Nla::TcpInfo(info) = attribute else { return None };
                total_retrans(info)
            })
        }
    }

    /// `tcpi_total_retrans` of `struct tcp_info` (`linux/tcp.h`), which only grows at its end: behind eight bytes and 23
    /// numbers of four.
    fn total_retrans(info: &[u8]) -> Option<u64> {
        let bytes = info.get(TOTAL_RETRANS..)?.first_chunk()?;
        Some(u32::from_ne_bytes(*bytes).into())
    }

    const TOTAL_RETRANS: usize = 8 + 23 * 4;
    /// More than an answer takes.
    const ANSWER_BYTES_MAX: usize = 4096;
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread::yield_now;

    use socket2::{SockFilter, SockRef};

    use super::*;

    const PEER: ServerId = ServerId(2);

    fn connection(at: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(at).unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        (one, other)
    }

    /// Sends something that the other end does not take until it has come again.
    fn send_again((from, to): (&mut TcpStream, &mut TcpStream), counted: impl Fn() -> u64) {
        // One instruction: take nothing.
        let nothing = SockFilter::new(0x06, 0, 0, 0);
        let before = counted();
        SockRef::from(&*to).attach_filter(&[nothing]).unwrap();
        from.write_all(b"again").unwrap();
        while counted() == before {
            yield_now();
        }
        SockRef::from(&*to).detach_filter().unwrap();
        let mut read = [0; 5];
        to.read_exact(&mut read).unwrap();
    }

    #[test]
    fn what_had_to_be_sent_again_counts_for_its_peer_and_is_kept_when_the_link_ends() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let (mut from, mut to) = connection(at);
            let retransmits = Retransmits::default();
            let ends = crate::runtime::ends(&from);
            assert!(ends.is_some());
            let count = || retransmits.counts(|_| true).get(&PEER).copied().unwrap_or(0);
            let resent = retransmits.enter(LinkId(1), None, ends);
            assert!(retransmits.counts(|_| true).is_empty(), "nobody has said who is there");
            retransmits.is_to(LinkId(1), PEER);
            retransmits.is_to(LinkId(1), ServerId(3));
            assert_eq!(retransmits.counts(|_| true), BTreeMap::from([(PEER, 0)]));
            send_again((&mut from, &mut to), count);
            let before = count();
            drop(resent);
            drop(from);
            assert_eq!(count(), before);

            // The next link to that peer counts on.
            let (mut from, mut to) = connection(at);
            let resent = retransmits.enter(LinkId(2), Some(PEER), crate::runtime::ends(&from));
            assert_eq!(count(), before);
            send_again((&mut from, &mut to), count);
            assert!(count() > before);
            drop(resent);

            assert!(retransmits.counts(|_| false).is_empty());
            assert_eq!(count(), 0, "what is told of who is no member is forgotten");
        }
    }

    #[test]
    fn who_says_to_be_very_many_takes_no_memory() {
        let retransmits = Retransmits::default();
        locked(&retransmits.0).ended = (1..=PEERS_MAX as i64).map(|id| (ServerId(id), 1)).collect();
        let (mut from, mut to) = connection("127.0.0.1:0");
        let more = ServerId(PEERS_MAX as i64 + 1);
        let resent = retransmits.enter(LinkId(1), Some(more), crate::runtime::ends(&from));
        let count = || retransmits.counts(|_| true).get(&more).copied().unwrap_or(0);
        send_again((&mut from, &mut to), count);
        drop(resent);
        assert_eq!(count(), 0);
    }
}

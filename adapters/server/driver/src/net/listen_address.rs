//! The addresses at which a server listens, by its line in the membership.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use quorate_core::address::HostPort;
use quorate_core::input::Plane;
use quorate_core::membership::Member;

use crate::error::StartError;
use crate::net::resolve::own_ips;
use crate::runtime::Runtime;

/// One address of one port.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ListenAddress {
    pub(super) plane: Plane,
    pub(super) at: HostPort,
}

impl ListenAddress {
    /// Looks the name up, and listens there.
    pub(super) async fn open<R: Runtime>(
        &self,
        runtime: &R,
    ) -> Result<io::Result<Vec<(SocketAddr, R::Listener)>>, StartError> {
        let ips = own_ips(&self.at.host).await?;
        Ok(listen_on(runtime, &ips, self.at.port).await)
    }
}

/// Listens at each of these IP addresses that this machine has; at least at one.
pub(super) async fn listen_on<R: Runtime>(
    runtime: &R,
    ips: &[IpAddr],
    port: u16,
) -> io::Result<Vec<(SocketAddr, R::Listener)>> {
    let mut open = Vec::new();
    let mut missing = None;
    for ip in ips {
        let at = SocketAddr::new(*ip, port);
        match runtime.listen(at).await {
            Ok(listener) => open.push((at, listener)),
            // No IPv6 on this machine.
            Err(error)
                if *ip == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
                    && error.kind() != io::ErrorKind::AddrInUse =>
            {
                let at = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
                open.push((at, runtime.listen(at).await?));
            }
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match missing {
        Some(error) if open.is_empty() => Err(error),
        _ => Ok(open),
    }
}

/// The IP addresses of what our own line gives clients; of an address for all interfaces that of both families.
pub(super) async fn client_ips(at: &HostPort) -> Result<Vec<IpAddr>, StartError> {
    let all = at.host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified());
    match all || at.host.is_empty() {
        true => Ok(vec![Ipv6Addr::UNSPECIFIED.into()]),
        false => own_ips(&at.host).await,
    }
}

/// Where the server with this line in the membership listens.
pub(super) fn listen_addresses(own: &Member, on_all_ips: bool) -> Vec<ListenAddress> {
    let mut all = Vec::new();
    for address in &own.addresses {
        for (plane, at) in [(Plane::Election, &address.election), (Plane::Quorum, &address.quorum)]
        {
            let any = Ipv6Addr::UNSPECIFIED.to_string();
            let host = if on_all_ips { any } else { at.host.clone() };
            let address = ListenAddress { plane, at: HostPort { host, port: at.port } };
            if !all.contains(&address) {
                all.push(address);
            }
        }
    }
    all
}

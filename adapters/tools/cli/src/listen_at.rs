//! Where a server listens, as its `zoo.cfg` says it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use quorate_tokio::core::address::HostPort;

use crate::failure::Failure;

/// The addresses of a host; of any, both kinds at once where the system has both.
pub(crate) async fn resolve(address: &HostPort) -> Result<Vec<SocketAddr>, Failure> {
    if address.host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified()) {
        // For IPv4 too, where the system has both.
        let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
        let any: IpAddr =
            if both { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        return Ok(vec![SocketAddr::new(any, address.port)]);
    }
    match tokio::net::lookup_host((address.host.as_str(), address.port)).await {
        Ok(found) => Ok(found.collect()),
        Err(error) => Err(Failure::failed(format!("cannot listen at {address}: {error}"))),
    }
}

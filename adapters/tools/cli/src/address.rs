//! `HOST:PORT` on the command line.

use quorate_tokio::core::address::HostPort;
use thiserror::Error;

/// `host:port` or `[host]:port`.
pub(crate) fn address(text: &str) -> Result<HostPort, AddressError> {
    let (host, port) = text.rsplit_once(':').ok_or(AddressError::NoPort)?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bracketed.unwrap_or(host);
    if host.is_empty() || (bracketed.is_none() && host.contains(':')) {
        return Err(AddressError::Form);
    }
    match port.parse() {
        Ok(port) if port > 0 => Ok(HostPort { host: host.to_owned(), port }),
        Ok(_) | Err(_) => Err(AddressError::Port(port.to_owned())),
    }
}

/// Why an argument is no address.
#[derive(Debug, Error)]
pub(crate) enum AddressError {
    #[error("no :PORT")]
    NoPort,
    #[error("write HOST:PORT, and an IPv6 address as [ADDRESS]:PORT")]
    Form,
    #[error("{0:?} is no port from 1 to 65535")]
    Port(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(address("zk1:3888").unwrap().port, 3888);
        assert_eq!(address("[::1]:3888").unwrap().host, "::1");
        for wrong in ["zk1", "zk1:", ":3888", "zk1:0", "zk1:70000", "::1:3888"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}

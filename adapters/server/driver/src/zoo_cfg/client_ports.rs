//! The ports for clients, and that no two of a server's are the same.

use quorate_core::address::HostPort;
use quorate_core::membership::Member;

use crate::zoo_cfg::ZooCfg;
use crate::zoo_cfg::findings::ConfigError;

impl ZooCfg {
    /// Where clients connect over TLS alone.
    #[cfg(feature = "tls")]
    pub fn secure_client_address(&self) -> Option<&HostPort> {
        self.client_tls.as_ref()?.address.as_ref()
    }

    /// There is no TLS.
    #[cfg(not(feature = "tls"))]
    pub const fn secure_client_address(&self) -> Option<&HostPort> {
        None
    }

    /// Whether the ports for clients are apart from each other and from those for peers.
    pub(super) fn check_client_ports(&self, own: &Member) -> Result<(), ConfigError> {
        let taken =
            |port| ConfigError::ClientPortTaken { file: self.file.clone(), id: own.id, port };
        let (client, secure) = (self.client_address.as_ref(), self.secure_client_address());
        if let (Some(client), Some(secure)) = (client, secure) {
            let meet = client.is_wildcard() || secure.is_wildcard() || client.host == secure.host;
            if meet && client.port == secure.port && secure.port != 0 {
                return Err(taken(secure.port));
            }
        }
        for client in client.into_iter().chain(secure) {
            let shared = own.addresses.iter().any(|address| {
                (client.is_wildcard() || client.host == address.quorum.host)
                    && [address.quorum.port, address.election.port].contains(&client.port)
            });
            if shared {
                return Err(taken(client.port));
            }
        }
        Ok(())
    }
}

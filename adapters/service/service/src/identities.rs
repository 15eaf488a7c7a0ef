//! Who a client is: what it proves of itself.

use alloc::format;
use alloc::string::String;
use core::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use quorate_application::clients::{ClientId, Close};
use quorate_core::time::Instant;
use quorate_core::zxid::Zxid;
use quorate_znode::access::is_same_secret;
use sha1::{Digest as _, Sha1};
use sha2::{Sha256, Sha384, Sha512};

use crate::options::DigestAlgorithm;
use crate::proofs::Scheme;
use crate::service::{Service, Step};
use crate::wire::{ReplyHeader, code, reply};

impl Service {
    /// A client proves something of itself. Answered at once, ahead of what waits; it holds for what is read
    /// behind it.
    pub(crate) fn authenticate(
        &mut self,
        step: &mut Step<'_>,
        client: ClientId,
        xid: i32,
        scheme: Option<&str>,
        proof: &Bytes,
    ) {
        let Some(from) = self.clients.get(&client).map(|connection| connection.remote.ip()) else {
            return;
        };
        let proved = match scheme {
            Some("digest") => {
                let id = digest(proof, self.options.digest_algorithm);
                let may_all = self.may_do_everything(step.at, from, &id);
                let fits = self.clients.get_mut(&client).is_none_or(|connection| {
                    connection.identify("digest", &id)
                        && (!may_all || connection.identify("super", ""))
                });
                if !fits {
                    let refused = ReplyHeader { xid, zxid: Zxid::ZERO, err: code::AUTH_FAILED };
                    self.send(step.out, client, reply(refused, |_| {}));
                    return self.has_too_many_identities(step, client);
                }
                true
            }
            // The address is known.
            Some("ip") => true,
            Some(_) | None => false,
        };
        let err = if proved { 0 } else { code::AUTH_FAILED };
        let bytes = reply(ReplyHeader { xid, zxid: Zxid::ZERO, err }, |_| {});
        self.send(step.out, client, bytes);
        if !proved {
            self.proofs.failed(step.at, Scheme::of(scheme), from);
            if let Some(connection) = self.clients.get(&client) {
                self.audit_unproved(step, connection);
            }
            self.close(step.out, client, Close::AfterWriting);
        }
    }

    /// The identities of a client are more than it may have: its connection ends.
    ///
    /// ZooKeeper takes any number, and copies them all into each write that goes to the leader.
    pub(crate) fn has_too_many_identities(&mut self, step: &mut Step<'_>, client: ClientId) {
        if let Some(suppressed) = self.said_logins.permit(step.at) {
            tracing::warn!(
                event = "auth.too_many",
                client = client.0,
                suppressed,
                "a client has too many identities: its connection is closed"
            );
        }
        self.close(step.out, client, Close::AfterWriting);
    }

    /// Whether this is the digest of who may do everything. Of another with that name it is noted that it was guessed.
    pub(crate) fn may_do_everything(&mut self, at: Instant, from: IpAddr, id: &str) -> bool {
        let own = self.options.super_digest.as_deref().filter(|own| name(own) == name(id));
        let Some(is_own) = own.map(|own| is_same_secret(own, id)) else { return false };
        if self.has_to_wait(at, from) {
            return false;
        }
        if !is_own {
            self.proofs.failed(at, Scheme::Digest, from);
        }
        is_own
    }

    /// Whether too many proofs have failed from an address.
    fn has_to_wait(&mut self, at: Instant, from: IpAddr) -> bool {
        if !self.proofs.has_to_wait(at, from) {
            return false;
        }
        if let Some(suppressed) = self.said_guesses.permit(at) {
            tracing::warn!(
                event = "auth.refused",
                address = %from, suppressed,
                "too many wrong passwords for who may do everything: none counts from there for a while"
            );
        }
        true
    }
}

/// The name in an identity of a digest.
fn name(id: &str) -> &str {
    id.split(':').next().unwrap_or_default()
}

/// The identity of a name and a password: the name, and behind a colon the digest of both. The name ends at the
/// first colon.
pub(crate) fn digest(proof: &[u8], algorithm: DigestAlgorithm) -> String {
    let user = proof.split(|byte| *byte == b':').next().unwrap_or_default();
    let hash = match algorithm {
        DigestAlgorithm::Sha1 => STANDARD.encode(Sha1::digest(proof)),
        DigestAlgorithm::Sha256 => STANDARD.encode(Sha256::digest(proof)),
        DigestAlgorithm::Sha384 => STANDARD.encode(Sha384::digest(proof)),
        DigestAlgorithm::Sha512 => STANDARD.encode(Sha512::digest(proof)),
    };
    format!("{}:{hash}", String::from_utf8_lossy(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_zookeeper() {
        for (proof, id) in [
            ("bob:secret", "bob:fyVmFCwVbTJYrznoSu1koqYEYF0="),
            ("super:test", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="),
            ("noc", "noc:RIL532VZgxS+IjUEHfiCxyMdHqk="),
            ("a:b:c", "a:cLzgnoJ6mP5qz3w+mwvPE2vDgu0="),
        ] {
            assert_eq!(digest(proof.as_bytes(), DigestAlgorithm::Sha1), id);
        }
    }

    #[test]
    fn digests_are_by_the_algorithm_that_is_named() {
        for (name, hash) in [
            ("SHA1", "fyVmFCwVbTJYrznoSu1koqYEYF0="),
            ("SHA-256", "huAluaVu3uER4LIpielGv9Qqk5x3YVDr6I2R/mXf2wE="),
            ("SHA-384", "sK3FknlHR28F5XDVFyv279SPFI+mcaciCe23ZtSFn7CeJGi9j80tCAbRDiVejZ6K"),
            (
                "SHA-512",
                "MON49O1q1UU4gzHRH8XFfdstQyTRtQRoDT+8dvk+qrZdXJegJxeoYDJfch4LeWUjXjSWIiqnKXpFYZi7tC1AZw==",
            ),
        ] {
            let algorithm = DigestAlgorithm::named(name).unwrap();
            assert_eq!(digest(b"bob:secret", algorithm), format!("bob:{hash}"));
        }
        assert_eq!(DigestAlgorithm::named("MD5"), None);
    }
}

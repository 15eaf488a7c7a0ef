//! The digests by which stores are sealed, and what is derived with them.

use hmac::digest::Digest;
use hmac::digest::core_api::BlockSizeUser;
use hmac::{Mac, SimpleHmac};
use pbkdf2::pbkdf2_hmac;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use zeroize::{Zeroize, Zeroizing};

use crate::oid;

/// A digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

/// For what a key is derived (RFC 7292, B.3).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Key = 1,
    Start = 2,
    Seal = 3,
}

impl Hash {
    /// By the identifier of the digest.
    pub(crate) fn of_digest(identifier: &[u8]) -> Option<Self> {
        let known = [
            (oid::SHA1, Self::Sha1),
            (oid::SHA256, Self::Sha256),
            (oid::SHA384, Self::Sha384),
            (oid::SHA512, Self::Sha512),
        ];
        known.iter().find(|(known, _)| *known == identifier).map(|(_, hash)| *hash)
    }

    /// By the identifier of HMAC with it.
    pub(crate) fn of_hmac(identifier: &[u8]) -> Option<Self> {
        let known = [
            (oid::HMAC_SHA1, Self::Sha1),
            (oid::HMAC_SHA256, Self::Sha256),
            (oid::HMAC_SHA384, Self::Sha384),
            (oid::HMAC_SHA512, Self::Sha512),
        ];
        known.iter().find(|(known, _)| *known == identifier).map(|(_, hash)| *hash)
    }

    /// Its length, in bytes.
    pub(crate) const fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// PBKDF2 (RFC 8018) with HMAC of it.
    pub(crate) fn pbkdf2(self, password: &[u8], salt: &[u8], rounds: u32, out: &mut [u8]) {
        match self {
            Self::Sha1 => pbkdf2_hmac::<Sha1>(password, salt, rounds, out),
            Self::Sha256 => pbkdf2_hmac::<Sha256>(password, salt, rounds, out),
            Self::Sha384 => pbkdf2_hmac::<Sha384>(password, salt, rounds, out),
            Self::Sha512 => pbkdf2_hmac::<Sha512>(password, salt, rounds, out),
        }
    }

    /// What PKCS12 derives from a password with it (RFC 7292, B.2).
    pub(crate) fn pkcs12(
        self,
        purpose: Purpose,
        password: &[u8],
        salt: &[u8],
        rounds: u32,
        out: &mut [u8],
    ) {
        match self {
            Self::Sha1 => pkcs12::<Sha1>(purpose, password, salt, rounds, out),
            Self::Sha256 => pkcs12::<Sha256>(purpose, password, salt, rounds, out),
            Self::Sha384 => pkcs12::<Sha384>(purpose, password, salt, rounds, out),
            Self::Sha512 => pkcs12::<Sha512>(purpose, password, salt, rounds, out),
        }
    }

    /// Whether this is HMAC of the data, compared in constant time.
    pub(crate) fn seals(self, key: &[u8], data: &[u8], seal: &[u8]) -> bool {
        match self {
            Self::Sha1 => seals::<Sha1>(key, data, seal),
            Self::Sha256 => seals::<Sha256>(key, data, seal),
            Self::Sha384 => seals::<Sha384>(key, data, seal),
            Self::Sha512 => seals::<Sha512>(key, data, seal),
        }
    }
}

fn seals<D: Digest + BlockSizeUser>(key: &[u8], data: &[u8], seal: &[u8]) -> bool {
    // A key may have any length.
    SimpleHmac::<D>::new_from_slice(key)
        .is_ok_and(|hmac| hmac.chain_update(data).verify_slice(seal).is_ok())
}

fn pkcs12<D: Digest + BlockSizeUser>(
    purpose: Purpose,
    password: &[u8],
    salt: &[u8],
    rounds: u32,
    out: &mut [u8],
) {
    let block = D::block_size();
    let diversifier = vec![purpose as u8; block];
    let filled = |bytes: &[u8]| bytes.len().div_ceil(block) * block;
    let mut input = Zeroizing::new(Vec::with_capacity(filled(salt) + filled(password)));
    input.extend(salt.iter().cycle().take(filled(salt)));
    input.extend(password.iter().cycle().take(filled(password)));
    for part in out.chunks_mut(<D as Digest>::output_size()) {
        let mut digest = D::new().chain_update(&diversifier).chain_update(&*input).finalize();
        for _ in 1..rounds {
            digest = D::digest(&digest);
        }
        // Each block of the input, plus the digest over and over, plus one.
        for block in input.chunks_mut(block) {
            let mut carry = 1_u16;
            let added: Vec<u8> = digest.iter().copied().cycle().take(block.len()).collect();
            for (byte, added) in block.iter_mut().zip(added).rev() {
                let [high, low] = (u16::from(*byte) + u16::from(added) + carry).to_be_bytes();
                *byte = low;
                carry = u16::from(high);
            }
        }
        for (byte, derived) in part.iter_mut().zip(&digest) {
            *byte = *derived;
        }
        digest.as_mut_slice().zeroize();
    }
}

//! The proof that one knows the password: digests of it, of both nonces, and of what it is for (RFC 2831, 2.1.2.1).

use alloc::vec::Vec;

use md5::{Digest as _, Md5};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::password::Password;

/// All that a proof is made of, but for the password.
#[derive(Debug)]
pub(crate) struct Proof<'a> {
    pub(crate) user: &'a str,
    pub(crate) realm: &'a [u8],
    pub(crate) nonce: &'a [u8],
    pub(crate) cnonce: &'a [u8],
    /// On behalf of whom, as it was sent.
    pub(crate) authzid: Option<&'a [u8]>,
    /// The service, as it was sent.
    pub(crate) uri: &'a [u8],
}

/// Of which side it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Of the one that dialled.
    Response,
    /// Of the other one: `rspauth`.
    Rspauth,
}

/// 32 digits.
pub(crate) type Hex = [u8; 32];

impl Proof<'_> {
    /// The proof of one side.
    pub(crate) fn by(&self, side: Side, password: &Password) -> Hex {
        let mut secret = Md5::new();
        secret.update(&*of_latin(self.user));
        secret.update(b":");
        secret.update(self.realm);
        secret.update(b":");
        secret.update(&*of_latin(password.text()));
        let secret = Zeroizing::new(<[u8; 16]>::from(secret.finalize()));
        let mut session = Md5::new();
        session.update(&secret[..]);
        let pieces = [Some(self.nonce), Some(self.cnonce), self.authzid];
        for piece in pieces.into_iter().flatten() {
            session.update(b":");
            session.update(piece);
        }
        let session = Zeroizing::new(hex(session));
        let mut service = Md5::new();
        if side == Side::Response {
            service.update(b"AUTHENTICATE");
        }
        service.update(b":");
        service.update(self.uri);
        let mut proof = Md5::new();
        proof.update(&session[..]);
        for piece in [self.nonce, COUNT, self.cnonce, QOP, &hex(service)] {
            proof.update(b":");
            proof.update(piece);
        }
        hex(proof)
    }
}

/// Whether two proofs are the same, in a time that does not tell how much of them is.
pub(crate) fn is_same(proof: &Hex, other: &[u8]) -> bool {
    bool::from(proof.ct_eq(other))
}

/// A text as the digest takes it: in ISO 8859-1 if it can be written so, else in UTF-8.
fn of_latin(text: &str) -> Zeroizing<Vec<u8>> {
    // At once in full length: what grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte) => bytes.push(byte),
            Err(_) => {
                bytes.clear();
                bytes.extend_from_slice(text.as_bytes());
                break;
            }
        }
    }
    bytes
}

fn hex(digest: Md5) -> Hex {
    let mut hex = [0; 32];
    for (digits, byte) in hex.chunks_exact_mut(2).zip(digest.finalize()) {
        let digit = |of: u8| b"0123456789abcdef"[usize::from(of & 0xf)];
        digits.copy_from_slice(&[digit(byte >> 4), digit(byte)]);
    }
    hex
}

/// The first use of a nonce, and the last.
pub(crate) const COUNT: &[u8] = b"00000001";
/// To prove who one is, and nothing more.
pub(crate) const QOP: &[u8] = b"auth";

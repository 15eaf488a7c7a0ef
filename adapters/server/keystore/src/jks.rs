//! Reads JKS, Java's own store.
//!
//! ```text
//!   magic FEEDFEED, version 1 or 2, number of entries; then, big endian,
//!     1, alias, time, sealed key, number of certificates, certificates     a private key with its chain
//!     2, alias, time, certificate                                          what is trusted
//!   SHA-1 of the password, "Mighty Aphrodite" and all before
//! ```
//!
//! In the Java code: `sun.security.provider.JavaKeyStore`, `KeyProtector`.

use rustls_pki_types::CertificateDer;
use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::der::{Der, DerError, OCTET_STRING};
use crate::entries::{Entries, Form, KeyEntry, SecretKey, TrustEntry};
use crate::kind::Kind;
use crate::notice::Notice;
use crate::oid;
use crate::password::Password;
use crate::reason::{Reason, Remedy};

const DIGEST: usize = 20;

/// All that is in the store. Without a password no key is taken, and the digest is not looked at.
pub(crate) fn read(bytes: &[u8], password: Option<&Password>) -> Result<Entries, Reason> {
    let (content, digest) = bytes.split_last_chunk::<DIGEST>().ok_or(CUT)?;
    let mut cursor = Cursor(content);
    cursor.u32()?;
    let version = cursor.u32()?;
    if !(1..=2).contains(&version) {
        return Err(damaged("its version is neither 1 nor 2"));
    }
    let mut entries = Entries::default();
    let mut keys = Vec::new();
    for _ in 0..cursor.u32()? {
        match cursor.u32()? {
            1 => {
                let alias = cursor.alias()?;
                let sealed = cursor.long()?;
                let mut chain = Vec::new();
                for _ in 0..cursor.u32()? {
                    chain.push(cursor.certificate(version)?);
                }
                keys.push((alias, sealed, chain));
            }
            2 => {
                let alias = Some(cursor.alias()?);
                let certificate = cursor.certificate(version)?;
                entries.trusted.push(TrustEntry { alias, certificate });
            }
            _ => return Err(damaged("an entry is neither a key nor a certificate")),
        }
    }
    if !cursor.0.is_empty() {
        return Err(damaged("something follows after its last entry"));
    }
    let Some(password) = password else {
        entries.notices.push(Notice::Unchecked);
        entries.locked = keys.len();
        return Ok(entries);
    };
    let password = password.utf16();
    let expected = Sha1::new()
        .chain_update(&*password)
        .chain_update(b"Mighty Aphrodite")
        .chain_update(content)
        .finalize();
    if !bool::from(expected.as_slice().ct_eq(digest)) {
        return Err(Reason::WrongPassword);
    }
    for (alias, sealed, chain) in keys {
        let key = SecretKey::new(Form::Pkcs8, unseal(sealed, &password)?);
        entries.keys.push(KeyEntry { alias: Some(alias), key, chain });
    }
    Ok(entries)
}

/// Opens a key: a salt, the key XORed with the digests of the password and the last digest, the salt being the first;
/// and the digest of the password and the key.
fn unseal(sealed: &[u8], password: &[u8]) -> Result<Zeroizing<Vec<u8>>, Reason> {
    let encoding = |error: DerError| Reason::encoding(Kind::Jks, error);
    let mut info = Der::new(sealed).sequence().map_err(encoding)?;
    let (algorithm, _) = info.algorithm().map_err(encoding)?;
    if algorithm != oid::JKS_PROTECTION {
        return Err(Reason::Sealed { algorithm: oid::name(algorithm), remedy: Remedy::Keytool });
    }
    let sealed = info.take(OCTET_STRING).map_err(encoding)?;
    let (salt, sealed) = sealed.split_first_chunk::<DIGEST>().ok_or(CUT)?;
    let (sealed, check) = sealed.split_last_chunk::<DIGEST>().ok_or(CUT)?;
    let mut last = Zeroizing::new(*salt);
    let mut key = Zeroizing::new(sealed.to_vec());
    for part in key.chunks_mut(DIGEST) {
        *last = Sha1::new().chain_update(password).chain_update(*last).finalize().into();
        for (byte, stream) in part.iter_mut().zip(*last) {
            *byte ^= stream;
        }
    }
    let found = Sha1::new().chain_update(password).chain_update(&*key).finalize();
    if bool::from(found.as_slice().ct_eq(check)) { Ok(key) } else { Err(Reason::WrongPassword) }
}

const fn damaged(what: &'static str) -> Reason {
    Reason::Damaged { kind: Kind::Jks, what }
}

const CUT: Reason = damaged("it ends within an entry");

/// What has not been read yet.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Reason> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CUT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Reason> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(CUT)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, Reason> {
        self.array().map(u32::from_be_bytes)
    }

    /// Text with its length in two bytes before it. What is no UTF-8 is replaced: it is only shown.
    fn text(&mut self) -> Result<String, Reason> {
        let length = self.array().map(u16::from_be_bytes)?;
        Ok(String::from_utf8_lossy(self.bytes(length.into())?).into_owned())
    }

    /// An alias, and the time that stands after it.
    fn alias(&mut self) -> Result<String, Reason> {
        let alias = self.text()?;
        self.array::<8>()?;
        Ok(alias)
    }

    /// Bytes with their length in four bytes before them.
    fn long(&mut self) -> Result<&'a [u8], Reason> {
        let length = usize::try_from(self.u32()?).map_err(|_| CUT)?;
        self.bytes(length)
    }

    /// The first version does not say of what type it is.
    fn certificate(&mut self, version: u32) -> Result<CertificateDer<'static>, Reason> {
        if version == 2 && self.text()? != "X.509" {
            return Err(damaged("a certificate is not of type X.509"));
        }
        Ok(CertificateDer::from(self.long()?.to_vec()))
    }
}

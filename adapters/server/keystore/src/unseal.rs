//! Opens what a password seals: PBES2 (RFC 8018) and PKCS12's own with SHA-1 and triple DES (RFC 7292).

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockDecryptMut, KeyIvInit};
use zeroize::Zeroizing;

use crate::budget::Budget;
use crate::der::{Der, OCTET_STRING, SEQUENCE};
use crate::digests::{Hash, Purpose};
use crate::kind::Kind;
use crate::oid;
use crate::password::Password;
use crate::reason::{Reason, Remedy};

/// The longest salt, in bytes. Those of keytool and openssl have 8 to 20.
const MOST_SALT: usize = 1024;
/// The most memory that scrypt may ask for: the bound that openssl has, too. In bytes.
const MOST_SCRYPT_MEMORY: u64 = 32 << 20;

/// Of which kind the store is, and what opens it.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) kind: Kind,
    pub(crate) password: &'a Password,
    pub(crate) budget: &'a mut Budget,
}

/// The cipher that an algorithm names, with its start.
#[derive(Clone, Copy)]
enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    TripleDes,
}

impl Opening<'_> {
    /// Opens an `EncryptedPrivateKeyInfo`, and tells whether it was sealed by PBES2.
    pub(crate) fn key(&mut self, info: &mut Der<'_>) -> Result<(Zeroizing<Vec<u8>>, bool), Reason> {
        let kind = self.kind;
        let damaged = |error| Reason::encoding(kind, error);
        let mut info = info.sequence().map_err(damaged)?;
        let (algorithm, parameters) = info.algorithm().map_err(damaged)?;
        let sealed = info.take(OCTET_STRING).map_err(damaged)?;
        let key = self.open(algorithm, parameters, sealed)?;
        // A wrong password gives a good padding now and then; a key begins with a sequence.
        if Der::new(&key).sequence().is_err() {
            return Err(Reason::WrongPassword);
        }
        Ok((key, algorithm == oid::PBES2))
    }

    /// Opens what is sealed by this algorithm.
    pub(crate) fn open(
        &mut self,
        algorithm: &[u8],
        parameters: Der<'_>,
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Reason> {
        match algorithm {
            oid::PBES2 => self.pbes2(parameters, sealed),
            oid::PBE_SHA1_3DES => self.triple_des(parameters, sealed),
            other => Err(self.foreign(other)),
        }
    }

    fn foreign(&self, algorithm: &[u8]) -> Reason {
        let remedy = if self.kind == Kind::Pem { Remedy::OpenSsl } else { Remedy::Keytool };
        Reason::Sealed { algorithm: oid::name(algorithm), remedy }
    }

    fn pbes2(
        &mut self,
        mut parameters: Der<'_>,
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Reason> {
        let kind = self.kind;
        let damaged = |error| Reason::encoding(kind, error);
        let mut parameters = parameters.sequence().map_err(damaged)?;
        let (derivation, derived) = parameters.algorithm().map_err(damaged)?;
        let (cipher, mut start) = parameters.algorithm().map_err(damaged)?;
        let start = start.take(OCTET_STRING).map_err(damaged)?;
        let cipher = match cipher {
            oid::AES128_CBC => Cipher::Aes128,
            oid::AES192_CBC => Cipher::Aes192,
            oid::AES256_CBC => Cipher::Aes256,
            oid::TRIPLE_DES_CBC => Cipher::TripleDes,
            other => return Err(self.foreign(other)),
        };
        let mut key = Zeroizing::new([0_u8; 32]);
        let key = key.get_mut(..cipher.key_length()).unwrap_or_default();
        match derivation {
            oid::PBKDF2 => self.pbkdf2(derived, key)?,
            oid::SCRYPT => self.scrypt(derived, key)?,
            other => return Err(self.foreign(other)),
        }
        cipher.decrypt(key, start, sealed).ok_or(Reason::WrongPassword)
    }

    fn pbkdf2(&mut self, mut parameters: Der<'_>, key: &mut [u8]) -> Result<(), Reason> {
        let kind = self.kind;
        let damaged = |error| Reason::encoding(kind, error);
        let mut parameters = parameters.sequence().map_err(damaged)?;
        let salt = salt(kind, &mut parameters)?;
        let rounds = parameters.number().map_err(damaged)?;
        self.key_length(&mut parameters, key.len())?;
        let hash = if parameters.peek() == Some(SEQUENCE) {
            let (hmac, _) = parameters.algorithm().map_err(damaged)?;
            Hash::of_hmac(hmac).ok_or_else(|| self.foreign(hmac))?
        } else {
            Hash::Sha1
        };
        parameters.end().map_err(damaged)?;
        let rounds = self.budget.spend(rounds)?;
        hash.pbkdf2(self.password.utf8(), salt, rounds, key);
        Ok(())
    }

    /// RFC 7914. What it costs is counted as a round of key derivation for each of its blocks.
    fn scrypt(&mut self, mut parameters: Der<'_>, key: &mut [u8]) -> Result<(), Reason> {
        let kind = self.kind;
        let damaged = |error| Reason::encoding(kind, error);
        let wrong = Reason::Damaged { kind, what: "the costs of scrypt are none" };
        let mut parameters = parameters.sequence().map_err(damaged)?;
        let salt = salt(kind, &mut parameters)?;
        let cost = parameters.number().map_err(damaged)?;
        let block = parameters.number().map_err(damaged)?;
        let parallel = parameters.number().map_err(damaged)?;
        self.key_length(&mut parameters, key.len())?;
        parameters.end().map_err(damaged)?;
        let blocks = cost.saturating_mul(block);
        let memory = blocks.max(block.saturating_mul(parallel)).saturating_mul(128);
        if memory > MOST_SCRYPT_MEMORY {
            return Err(Reason::Memory { asked: memory, most: MOST_SCRYPT_MEMORY });
        }
        self.budget.spend(blocks.saturating_mul(parallel))?;
        let exponent = cost.checked_ilog2().and_then(|exponent| u8::try_from(exponent).ok());
        let (Some(exponent), true) = (exponent, cost.is_power_of_two()) else { return Err(wrong) };
        let (Ok(block), Ok(parallel)) = (u32::try_from(block), u32::try_from(parallel)) else {
            return Err(wrong);
        };
        let parameters = scrypt::Params::new(exponent, block, parallel, key.len());
        let parameters = parameters.map_err(|_| wrong.clone())?;
        scrypt::scrypt(self.password.utf8(), salt, &parameters, key).map_err(|_| wrong)
    }

    /// The length of the key may be said once more.
    fn key_length(&self, parameters: &mut Der<'_>, length: usize) -> Result<(), Reason> {
        let kind = self.kind;
        if parameters.peek() == Some(crate::der::INTEGER) {
            let said = parameters.number().map_err(|error| Reason::encoding(kind, error))?;
            if usize::try_from(said) != Ok(length) {
                return Err(Reason::Damaged {
                    kind,
                    what: "the key is not as long as its cipher's",
                });
            }
        }
        Ok(())
    }

    fn triple_des(
        &mut self,
        mut parameters: Der<'_>,
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Reason> {
        let kind = self.kind;
        let damaged = |error| Reason::encoding(kind, error);
        let mut parameters = parameters.sequence().map_err(damaged)?;
        let salt = salt(kind, &mut parameters)?;
        let rounds = parameters.number().map_err(damaged)?;
        parameters.end().map_err(damaged)?;
        let rounds = self.budget.spend(rounds)?;
        let password = self.password.terminated();
        let (mut key, mut start) = (Zeroizing::new([0; 24]), [0; 8]);
        Hash::Sha1.pkcs12(Purpose::Key, &password, salt, rounds, &mut *key);
        Hash::Sha1.pkcs12(Purpose::Start, &password, salt, rounds, &mut start);
        Cipher::TripleDes.decrypt(&*key, &start, sealed).ok_or(Reason::WrongPassword)
    }
}

fn salt<'a>(kind: Kind, parameters: &mut Der<'a>) -> Result<&'a [u8], Reason> {
    let salt = parameters.take(OCTET_STRING).map_err(|error| Reason::encoding(kind, error))?;
    if salt.len() > MOST_SALT {
        return Err(Reason::Damaged { kind, what: "a salt is longer than 1024 bytes" });
    }
    Ok(salt)
}

impl Cipher {
    const fn key_length(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 | Self::TripleDes => 24,
            Self::Aes256 => 32,
        }
    }

    /// None if the padding is wrong, as it is with a wrong key.
    fn decrypt(self, key: &[u8], start: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut out = Zeroizing::new(sealed.to_vec());
        let length = match self {
            Self::Aes128 => {
                opened(cbc::Decryptor::<aes::Aes128>::new_from_slices(key, start), &mut out)
            }
            Self::Aes192 => {
                opened(cbc::Decryptor::<aes::Aes192>::new_from_slices(key, start), &mut out)
            }
            Self::Aes256 => {
                opened(cbc::Decryptor::<aes::Aes256>::new_from_slices(key, start), &mut out)
            }
            Self::TripleDes => {
                opened(cbc::Decryptor::<des::TdesEde3>::new_from_slices(key, start), &mut out)
            }
        }?;
        out.truncate(length);
        Some(out)
    }
}

fn opened<D: BlockDecryptMut, E>(cipher: Result<D, E>, bytes: &mut [u8]) -> Option<usize> {
    Some(cipher.ok()?.decrypt_padded_mut::<Pkcs7>(bytes).ok()?.len())
}

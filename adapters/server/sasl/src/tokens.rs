//! The tokens of both sides: the challenge, the response to it, and the proof of who was asked.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::directives::{Directives, put};
use crate::nonces::Nonce;
use crate::proof::{COUNT, Hex, QOP};
use crate::refused::Refused;
use crate::service::Service;

impl Service {
    /// The digest-uri.
    pub(crate) fn uri(&self) -> String {
        format!("{}/{}", self.protocol, self.name)
    }
}

/// What is asked.
#[derive(Debug)]
pub(crate) struct Challenge<'a> {
    pub(crate) realm: Cow<'a, [u8]>,
    pub(crate) nonce: Cow<'a, [u8]>,
    /// Texts are in UTF-8, else in ISO 8859-1.
    pub(crate) utf8: bool,
}

impl<'a> Challenge<'a> {
    pub(crate) fn of(service: Service, nonce: &'a Nonce) -> Self {
        let realm = service.name.as_bytes().into();
        Self { realm, nonce: nonce.0.as_bytes().into(), utf8: true }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, "realm", &self.realm, true);
        put(&mut out, "nonce", &self.nonce, true);
        put(&mut out, "charset", b"utf-8", false);
        put(&mut out, "algorithm", ALGORITHM, false);
        out
    }

    pub(crate) fn read(token: &[u8]) -> Result<Challenge<'static>, Refused> {
        let read = Directives::read(token, CHALLENGE_BYTES_MAX)?;
        let nonce = read.need("nonce")?;
        if nonce.is_empty() {
            return Err(Refused::Malformed("the nonce is empty"));
        }
        if !read.need("algorithm")?.eq_ignore_ascii_case(ALGORITHM) {
            return Err(Refused::Unspoken("the algorithm"));
        }
        let offered = read.one("qop")?.unwrap_or(QOP);
        let offers_ours = offered
            .split(|byte| *byte == b',')
            .any(|qop| qop.trim_ascii().eq_ignore_ascii_case(QOP));
        if !offers_ours {
            return Err(Refused::Unspoken("the quality of protection"));
        }
        let realm = read.all("realm").next().unwrap_or_default();
        Ok(Challenge {
            realm: realm.to_vec().into(),
            nonce: nonce.to_vec().into(),
            utf8: is_utf8(&read)?,
        })
    }
}

/// The response to a challenge.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) utf8: bool,
    /// As it was sent.
    pub(crate) user: Vec<u8>,
    pub(crate) realm: Vec<u8>,
    pub(crate) nonce: Vec<u8>,
    pub(crate) cnonce: Vec<u8>,
    pub(crate) uri: Vec<u8>,
    pub(crate) proof: Vec<u8>,
    pub(crate) authzid: Option<Vec<u8>>,
}

impl Response {
    /// In Java's order.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.utf8 {
            put(&mut out, "charset", b"utf-8", false);
        }
        put(&mut out, "username", &self.user, true);
        put(&mut out, "realm", &self.realm, true);
        put(&mut out, "nonce", &self.nonce, true);
        put(&mut out, "nc", COUNT, false);
        put(&mut out, "cnonce", &self.cnonce, true);
        put(&mut out, "digest-uri", &self.uri, true);
        put(&mut out, "maxbuf", b"65536", false);
        put(&mut out, "response", &self.proof, false);
        put(&mut out, "qop", QOP, false);
        if let Some(authzid) = &self.authzid {
            put(&mut out, "authzid", authzid, true);
        }
        out
    }

    pub(crate) fn read(token: &[u8]) -> Result<Self, Refused> {
        let read = Directives::read(token, RESPONSE_BYTES_MAX)?;
        let own = |name| read.need(name).map(<[u8]>::to_vec);
        if read.need("nc")? != COUNT {
            return Err(Refused::Unspoken("the count of the nonce"));
        }
        if read.one("qop")?.is_some_and(|qop| !qop.eq_ignore_ascii_case(QOP)) {
            return Err(Refused::Unspoken("the quality of protection"));
        }
        let response = Self {
            utf8: is_utf8(&read)?,
            user: own("username")?,
            realm: own("realm")?,
            nonce: own("nonce")?,
            cnonce: own("cnonce")?,
            uri: own("digest-uri")?,
            proof: own("response")?,
            // An empty one is none.
            authzid: read.one("authzid")?.filter(|id| !id.is_empty()).map(<[u8]>::to_vec),
        };
        if response.cnonce.is_empty() {
            return Err(Refused::Malformed("the nonce is empty"));
        }
        Ok(response)
    }

    /// Who logs in.
    pub(crate) fn user(&self) -> Result<String, Refused> {
        if self.utf8 {
            let text = String::from_utf8(self.user.clone());
            return text.map_err(|_| Refused::Malformed("the user's name is no UTF-8"));
        }
        Ok(self.user.iter().map(|byte| char::from(*byte)).collect())
    }
}

/// The proof of who was asked.
pub(crate) fn write_rspauth(proof: &Hex) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, "rspauth", proof, false);
    out
}

/// The same, read.
pub(crate) fn read_rspauth(token: &[u8]) -> Result<Vec<u8>, Refused> {
    Directives::read(token, CHALLENGE_BYTES_MAX)?.need("rspauth").map(<[u8]>::to_vec)
}

fn is_utf8(read: &Directives<'_>) -> Result<bool, Refused> {
    match read.one("charset")? {
        None => Ok(false),
        Some(charset) if charset.eq_ignore_ascii_case(b"utf-8") => Ok(true),
        Some(_) => Err(Refused::Unspoken("the character set")),
    }
}

const ALGORITHM: &[u8] = b"md5-sess";
/// The longest challenge (RFC 2831, 2.1.1), and the longest proof of who was asked.
const CHALLENGE_BYTES_MAX: usize = 2048;
/// The longest response (RFC 2831, 2.1.2).
const RESPONSE_BYTES_MAX: usize = 4096;

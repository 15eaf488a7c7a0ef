//! The extensions of a certificate that are looked at here: names, uses, and whether it is an authority.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::der::{BIT_STRING, Der, DerError, OBJECT_IDENTIFIER, OCTET_STRING};

const BOOLEAN: u8 = 0x01;

const KEY_USAGE: &[u8] = b"\x55\x1d\x0f";
const ALTERNATIVE_NAMES: &[u8] = b"\x55\x1d\x11";
const BASIC_CONSTRAINTS: &[u8] = b"\x55\x1d\x13";
const EXTENDED_KEY_USAGE: &[u8] = b"\x55\x1d\x25";

const ANY_USE: &[u8] = b"\x55\x1d\x25\x00";
const SERVER_AUTH: &[u8] = b"\x2b\x06\x01\x05\x05\x07\x03\x01";
const CLIENT_AUTH: &[u8] = b"\x2b\x06\x01\x05\x05\x07\x03\x02";

/// For what a certificate may be used, by its extended key usage and its key usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uses {
    /// To accept links: serverAuth.
    pub accept: bool,
    /// To dial: clientAuth.
    pub dial: bool,
    /// To sign handshakes: digitalSignature.
    pub sign: bool,
    /// To issue certificates: it is an authority.
    pub issue: bool,
}

/// What is said in extensions.
#[derive(Clone, Debug)]
pub(super) struct Extensions {
    pub(super) dns_names: Vec<String>,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) uris: Vec<String>,
    pub(super) uses: Uses,
}

impl Default for Extensions {
    fn default() -> Self {
        let uses = Uses { accept: true, dial: true, sign: true, issue: false };
        Self { dns_names: Vec::new(), addresses: Vec::new(), uris: Vec::new(), uses }
    }
}

impl Extensions {
    pub(super) fn read(mut der: Der<'_>) -> Result<Self, DerError> {
        let mut said = Self::default();
        let mut seen: Vec<&[u8]> = Vec::new();
        let mut all = der.sequence()?;
        der.end()?;
        while !all.is_empty() {
            let mut extension = all.sequence()?;
            let kind = extension.take(OBJECT_IDENTIFIER)?;
            extension.optional(BOOLEAN)?;
            let value = Der::new(extension.take(OCTET_STRING)?);
            match kind {
                KEY_USAGE => said.key_usage(value)?,
                ALTERNATIVE_NAMES => said.names(value)?,
                BASIC_CONSTRAINTS => said.constraints(value)?,
                EXTENDED_KEY_USAGE => said.extended_key_usage(value)?,
                _ => continue,
            }
            if seen.contains(&kind) {
                return Err(DerError::Other);
            }
            seen.push(kind);
        }
        Ok(said)
    }

    /// The first bit is digitalSignature.
    fn key_usage(&mut self, mut value: Der<'_>) -> Result<(), DerError> {
        let (_, bits) = value.take(BIT_STRING)?.split_first().ok_or(DerError::Cut)?;
        self.uses.sign = bits.first().is_some_and(|bits| bits & 0x80 != 0);
        Ok(())
    }

    fn extended_key_usage(&mut self, mut value: Der<'_>) -> Result<(), DerError> {
        let mut uses = value.sequence()?;
        (self.uses.accept, self.uses.dial) = (false, false);
        while !uses.is_empty() {
            let found = uses.take(OBJECT_IDENTIFIER)?;
            self.uses.accept |= found == ANY_USE || found == SERVER_AUTH;
            self.uses.dial |= found == ANY_USE || found == CLIENT_AUTH;
        }
        Ok(())
    }

    fn constraints(&mut self, mut value: Der<'_>) -> Result<(), DerError> {
        let mut constraints = value.sequence()?;
        let authority = constraints.optional(BOOLEAN)?;
        self.uses.issue = authority.is_some_and(|value| value != [0]);
        Ok(())
    }

    fn names(&mut self, mut value: Der<'_>) -> Result<(), DerError> {
        let mut names = value.sequence()?;
        while !names.is_empty() {
            let (tag, name) = names.any()?;
            let text = || String::from_utf8_lossy(name).into_owned();
            match tag {
                0x82 => self.dns_names.push(text()),
                0x86 => self.uris.push(text()),
                0x87 => self.addresses.push(address(name).ok_or(DerError::Other)?),
                _ => {}
            }
        }
        Ok(())
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = || <[u8; 4]>::try_from(bytes).map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
    let sixteen = || <[u8; 16]>::try_from(bytes).map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)));
    four().or_else(|_| sixteen()).ok()
}

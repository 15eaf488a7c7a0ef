//! Opens the parts of a PKCS12 store that are sealed by its password.

use zeroize::Zeroizing;

use crate::budget::Budget;
use crate::der::{Der, DerError, OBJECT_IDENTIFIER, context};
use crate::kind::Kind;
use crate::password::Password;
use crate::reason::Reason;
use crate::unseal::Opening;

/// What opens the parts of one store.
#[derive(Debug)]
pub(super) struct Opener<'a> {
    pub(super) password: Option<&'a Password>,
    pub(super) budget: &'a mut Budget,
    /// Whether keys are taken.
    pub(super) keys: bool,
}

impl Opener<'_> {
    fn opening(&mut self) -> Result<Opening<'_>, Reason> {
        let password = self.password.ok_or(Reason::NoPassword)?;
        Ok(Opening { kind: Kind::Pkcs12, password, budget: self.budget })
    }

    /// Encrypted data of PKCS7 (RFC 2315, section 13).
    pub(super) fn content(&mut self, content: &mut Der<'_>) -> Result<Zeroizing<Vec<u8>>, Reason> {
        let mut data = content.sequence().map_err(damaged)?;
        data.number().map_err(damaged)?;
        let mut info = data.sequence().map_err(damaged)?;
        info.take(OBJECT_IDENTIFIER).map_err(damaged)?;
        let (algorithm, parameters) = info.algorithm().map_err(damaged)?;
        // An octet string that has this tag instead of its own; 0xa0 is one in parts, which DER does not allow.
        if info.peek() == Some(context(0)) {
            return Err(damaged(DerError::Indefinite));
        }
        let sealed = info.take(0x80).map_err(damaged)?;
        self.opening()?.open(algorithm, parameters, sealed)
    }

    /// A key that is sealed for itself; none where keys are not taken.
    pub(super) fn key(
        &mut self,
        value: &mut Der<'_>,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, Reason> {
        if !self.keys {
            return Ok(None);
        }
        self.opening()?.key(value).map(|(key, _)| Some(key))
    }
}

pub(super) const fn damaged(error: DerError) -> Reason {
    Reason::encoding(Kind::Pkcs12, error)
}

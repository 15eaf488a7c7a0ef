//! The bags of a PKCS12 store: keys and certificates, each with a name and an id.

use rustls_pki_types::CertificateDer;
use zeroize::Zeroizing;

use super::opener::{Opener, damaged};
use crate::der::{BMP_STRING, Der, OBJECT_IDENTIFIER, OCTET_STRING, SET, context};
use crate::oid;
use crate::reason::{Reason, Remedy};

/// What a bag holds.
#[derive(Debug)]
pub(super) struct Held<T> {
    /// The alias.
    pub(super) name: Option<String>,
    /// What a key and its certificate have in common.
    pub(super) id: Option<Vec<u8>>,
    pub(super) value: T,
}

/// All bags of a store.
#[derive(Default)]
pub(super) struct Bags {
    pub(super) keys: Vec<Held<Zeroizing<Vec<u8>>>>,
    /// Each with whether it has Java's mark.
    pub(super) certificates: Vec<Held<(CertificateDer<'static>, bool)>>,
    /// Keys that were passed over.
    pub(super) locked: usize,
}

impl Bags {
    /// Reads those of one safe.
    pub(super) fn read(&mut self, safe: &[u8], opener: &mut Opener<'_>) -> Result<(), Reason> {
        let mut bags = Der::new(safe).sequence().map_err(damaged)?;
        while !bags.is_empty() {
            let mut bag = bags.sequence().map_err(damaged)?;
            let kind = bag.take(OBJECT_IDENTIFIER).map_err(damaged)?;
            let mut value = bag.open(context(0)).map_err(damaged)?;
            let said = match bag.optional(SET).map_err(damaged)? {
                Some(attributes) => Attributes::read(attributes)?,
                None => Attributes::default(),
            };
            let Attributes { name, id, trusted } = said;
            let key = match kind {
                oid::SHROUDED_KEY_BAG => opener.key(&mut value)?,
                oid::KEY_BAG if opener.keys => Some(Zeroizing::new(whole(&mut value)?)),
                oid::KEY_BAG => None,
                oid::CERTIFICATE_BAG => {
                    let value = (certificate(&mut value)?, trusted);
                    self.certificates.push(Held { name, id, value });
                    continue;
                }
                oid::NESTED_BAG => {
                    let what = "it has safes within safes";
                    return Err(Reason::Variant { what, remedy: Remedy::Keytool });
                }
                // Lists of what is revoked, and secrets of other kinds.
                _ => continue,
            };
            match key {
                Some(value) => self.keys.push(Held { name, id, value }),
                None => self.locked += 1,
            }
        }
        Ok(())
    }
}

/// A key that is not sealed for itself, as it stands.
fn whole(value: &mut Der<'_>) -> Result<Vec<u8>, Reason> {
    value.whole().map(<[u8]>::to_vec).map_err(damaged)
}

fn certificate(value: &mut Der<'_>) -> Result<CertificateDer<'static>, Reason> {
    let mut bag = value.sequence().map_err(damaged)?;
    let kind = bag.take(OBJECT_IDENTIFIER).map_err(damaged)?;
    if kind != oid::X509 {
        let what = "it has a certificate that is not X.509";
        return Err(Reason::Variant { what, remedy: Remedy::Keytool });
    }
    let mut value = bag.open(context(0)).map_err(damaged)?;
    let der = value.take(OCTET_STRING).map_err(damaged)?;
    Ok(CertificateDer::from(der.to_vec()))
}

/// What is said of a bag.
#[derive(Default)]
struct Attributes {
    name: Option<String>,
    id: Option<Vec<u8>>,
    trusted: bool,
}

impl Attributes {
    fn read(attributes: &[u8]) -> Result<Self, Reason> {
        let mut said = Self::default();
        let mut attributes = Der::new(attributes);
        while !attributes.is_empty() {
            let mut attribute = attributes.sequence().map_err(damaged)?;
            let kind = attribute.take(OBJECT_IDENTIFIER).map_err(damaged)?;
            let mut values = attribute.open(SET).map_err(damaged)?;
            match kind {
                oid::FRIENDLY_NAME => {
                    let name = values.take(BMP_STRING).map_err(damaged)?;
                    let units = name.chunks_exact(2).map(|unit| match unit {
                        [high, low] => u16::from_be_bytes([*high, *low]),
                        _ => 0,
                    });
                    said.name =
                        Some(char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect());
                }
                oid::LOCAL_KEY_ID => {
                    said.id = Some(values.take(OCTET_STRING).map_err(damaged)?.to_vec());
                }
                // Its value says for which uses; Java looks at the mark alone.
                oid::TRUSTED => said.trusted = true,
                _ => {}
            }
        }
        Ok(said)
    }
}

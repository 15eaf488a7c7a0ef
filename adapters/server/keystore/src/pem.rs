//! Reads PEM (RFC 7468): keys and certificates as text, in any order.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use rustls_pki_types::CertificateDer;
use zeroize::Zeroizing;

use crate::budget::Budget;
use crate::der::Der;
use crate::entries::{Entries, Form, KeyEntry, SecretKey, TrustEntry};
use crate::kind::Kind;
use crate::notice::{JavaCannot, Notice};
use crate::password::Password;
use crate::reason::{Reason, Remedy};
use crate::unseal::Opening;

/// With the `=` at its end or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// One part of a file.
struct Section<'a> {
    label: &'a str,
    body: &'a str,
}

/// All that is in the file. The certificates stand once as the chain of each key, and once as trusted: it depends on
/// what the file is for.
pub(crate) fn read(
    bytes: &[u8],
    password: Option<&Password>,
    budget: &mut Budget,
    keys: bool,
) -> Result<Entries, Reason> {
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is no text"))?;
    let mut entries = Entries::default();
    let mut secrets = Vec::new();
    for section in sections(text) {
        let section = section?;
        match section.label {
            "CERTIFICATE" | "X509 CERTIFICATE" => {
                let der = CertificateDer::from(section.decoded()?.to_vec());
                entries.trusted.push(TrustEntry { alias: None, certificate: der });
            }
            "TRUSTED CERTIFICATE" => {
                let what = "it has a certificate in openssl's own form (TRUSTED CERTIFICATE)";
                return Err(Reason::Variant { what, remedy: Remedy::OpenSslCertificate });
            }
            label if keys && label.ends_with("PRIVATE KEY") => {
                secrets.push(section.key(password, budget, &mut entries.notices)?);
            }
            // Parameters of curves, requests, lists of what is revoked.
            _ => {}
        }
    }
    let chain: Vec<_> = entries.trusted.iter().map(|entry| entry.certificate.clone()).collect();
    for key in secrets {
        entries.keys.push(KeyEntry { alias: None, key, chain: chain.clone() });
    }
    Ok(entries)
}

/// The parts between their two lines. What stands before and between them is passed over.
fn sections(text: &str) -> impl Iterator<Item = Result<Section<'_>, Reason>> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let (_, after) = rest?.split_once("-----BEGIN ")?;
        let whole = (|| {
            let (label, after) = after.split_once("-----")?;
            let (body, after) = after.split_once("-----END ")?;
            let (end, after) = after.split_once("-----")?;
            (end == label).then_some((Section { label, body }, after))
        })();
        rest = whole.as_ref().map(|(_, after)| *after);
        Some(whole.map_or(Err(damaged("a part of it has no end")), |(section, _)| Ok(section)))
    })
}

impl Section<'_> {
    fn decoded(&self) -> Result<Zeroizing<Vec<u8>>, Reason> {
        let mut text = Zeroizing::new(Vec::with_capacity(self.body.len()));
        text.extend(self.body.bytes().filter(|byte| !byte.is_ascii_whitespace()));
        // At once in full length: what grows leaves copies behind.
        let mut der = Zeroizing::new(vec![0; text.len().div_ceil(4) * 3]);
        let length = BASE64.decode_slice(&*text, &mut der);
        der.truncate(length.map_err(|_| damaged("a part of it is no base64"))?);
        Ok(der)
    }

    fn key(
        &self,
        password: Option<&Password>,
        budget: &mut Budget,
        notices: &mut Vec<Notice>,
    ) -> Result<SecretKey, Reason> {
        let form = match self.label {
            "PRIVATE KEY" => Form::Pkcs8,
            "RSA PRIVATE KEY" => Form::Pkcs1,
            "EC PRIVATE KEY" => Form::Sec1,
            "ENCRYPTED PRIVATE KEY" => {
                let password = password.ok_or(Reason::NoPassword)?;
                let sealed = self.decoded()?;
                let mut opening = Opening { kind: Kind::Pem, password, budget };
                let (key, pbes2) = opening.key(&mut Der::new(&sealed))?;
                if pbes2 {
                    notices.push(Notice::JavaCannotRead(JavaCannot::Pbes2));
                }
                return Ok(SecretKey::new(Form::Pkcs8, key));
            }
            other => return Err(Reason::KeyLabel(other.chars().take(40).collect())),
        };
        // Headers stand before the content of what openssl up to 0.9.8 sealed by a way of its own (RFC 1421).
        if self.body.contains("Proc-Type:") {
            let algorithm = "openssl's old way (Proc-Type: 4,ENCRYPTED)".to_owned();
            return Err(Reason::Sealed { algorithm, remedy: Remedy::OpenSsl });
        }
        if form != Form::Pkcs8 {
            notices.push(Notice::JavaCannotRead(JavaCannot::Traditional));
        } else if password.is_some_and(|password| !password.is_empty()) {
            notices.push(Notice::JavaCannotRead(JavaCannot::Open));
        }
        Ok(SecretKey::new(form, self.decoded()?))
    }
}

const fn damaged(what: &'static str) -> Reason {
    Reason::Damaged { kind: Kind::Pem, what }
}

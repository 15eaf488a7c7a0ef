//! Of what kind a file is: as a setting says, by its ending, and by its bytes.

use std::str::FromStr;

use crate::kind::Kind;
use crate::notice::Notice;
use crate::reason::Reason;

impl FromStr for Kind {
    type Err = Reason;

    /// As in `ssl.*.type`: `JKS`, `PKCS12` or `PEM`, in any case.
    ///
    /// # Errors
    ///
    /// [`Reason::Bcfks`], which a Java server reads with Bouncy Castle's provider, and [`Reason::Type`] for all that a
    /// Java server knows no more of than this crate.
    fn from_str(said: &str) -> Result<Self, Reason> {
        let known = [("JKS", Self::Jks), ("PKCS12", Self::Pkcs12), ("PEM", Self::Pem)];
        if said.eq_ignore_ascii_case("BCFKS") {
            return Err(Reason::Bcfks);
        }
        let found = known.iter().find(|(name, _)| said.eq_ignore_ascii_case(name));
        found.map(|(_, kind)| *kind).ok_or_else(|| Reason::Type(said.to_owned()))
    }
}

/// The kind as which a file is read. What is said, and else the ending, has to be there, since a Java server asks for
/// it; if the bytes are of another kind, that holds.
///
/// Java looks into files that are said to be JKS or PKCS12, too (`keystore.type.compat`, since 8u60).
pub(crate) fn settle(
    name: &str,
    bytes: &[u8],
    said: Option<Kind>,
) -> Result<(Kind, Option<Notice>), Reason> {
    let said = match said {
        Some(said) => said,
        None => by_ending(name)?,
    };
    let found = by_content(bytes)?.ok_or(Reason::NotThis(said))?;
    let java_looks_too = said != Kind::Pem && found != Kind::Pem;
    let notice = (said != found).then_some(Notice::Kind { said, found, java_looks_too });
    Ok((found, notice))
}

/// By the endings that ZooKeeper knows, in their case.
fn by_ending(name: &str) -> Result<Kind, Reason> {
    let known = [(".jks", Kind::Jks), (".p12", Kind::Pkcs12), (".pem", Kind::Pem)];
    if name.ends_with(".bcfks") {
        return Err(Reason::Bcfks);
    }
    let found = known.iter().find(|(ending, _)| name.ends_with(ending));
    found.map(|(_, kind)| *kind).ok_or(Reason::Ending)
}

/// By the first bytes; none if they are of no kind that is known.
fn by_content(bytes: &[u8]) -> Result<Option<Kind>, Reason> {
    Ok(match bytes {
        [0xfe, 0xed, 0xfe, 0xed, ..] => Some(Kind::Jks),
        [0xce, 0xce, 0xce, 0xce, ..] => return Err(Reason::Jceks),
        // A sequence that begins with the number of its version; a certificate, and Bouncy Castle's store, begin with
        // another sequence.
        [0x30, 0..=0x80, 0x02, ..]
        | [0x30, 0x81, _, 0x02, ..]
        | [0x30, 0x82, _, _, 0x02, ..]
        | [0x30, 0x83, _, _, _, 0x02, ..] => Some(Kind::Pkcs12),
        [0x30, 0..=0x7f, 0x30, ..] | [0x30, 0x81, _, 0x30, ..] | [0x30, 0x82, _, _, 0x30, ..] => {
            return Err(Reason::Der);
        }
        _ => bytes.windows(10).any(|window| window == b"-----BEGIN").then_some(Kind::Pem),
    })
}

//! A distinguished name as text, for access lists: byte for byte what Java's `X500Principal.getName()` says.
//!
//! That is RFC 2253 with Java's particulars: the last part comes first, within one part the order stays; `=` and `#` are
//! escaped wherever they stand; what has no keyword in the RFC is a number with its value in hexadecimal; every kind of
//! string is read as UTF-8. Access lists are compared as text, so that anything else would be another client.

use x509_parser::prelude::FromDer;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

use crate::reason::{Failure, Reason};

/// A distinguished name in DER as access lists of the scheme `x509` have it: RFC 2253, as Java writes it
/// (`X500Principal.getName()`).
///
/// # Errors
///
/// If it cannot be read, or there is more behind it.
pub fn name_text(der: &[u8]) -> Result<String, Failure> {
    let unreadable = |why: String| Failure::new(Reason::Malformed, why);
    match X509Name::from_der(der) {
        Ok(([], name)) => Ok(rfc2253(&name)),
        Ok(_) => Err(unreadable("there is more behind a name".to_owned())),
        Err(error) => Err(unreadable(format!("a name cannot be read: {error}"))),
    }
}

/// The name, its last part first.
pub(crate) fn rfc2253(name: &X509Name<'_>) -> String {
    let parts: Vec<_> = name.iter().collect();
    let parts = parts.into_iter().rev().map(|part| {
        let attributes: Vec<_> = part.iter().map(attribute).collect();
        attributes.join("+")
    });
    parts.collect::<Vec<_>>().join(",")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let id = attribute.attr_type().to_id_string();
    let value = attribute.attr_value();
    let keyword = KEYWORDS.iter().find(|(known, _)| *known == id).map(|(_, keyword)| *keyword);
    match keyword {
        Some(keyword) if STRINGS.contains(&value.header.tag().0) && value.header.is_universal() => {
            format!("{keyword}={}", escaped(&String::from_utf8_lossy(value.data)))
        }
        keyword => {
            let tag = value.header.raw_tag().unwrap_or_default();
            let mut text = format!("{}=#", keyword.unwrap_or(&id));
            for byte in tag
                .iter()
                .copied()
                .chain(length(value.data.len()))
                .chain(value.data.iter().copied())
            {
                text.push_str(&format!("{byte:02x}"));
            }
            text
        }
    }
}

/// The length of a value in DER.
fn length(length: usize) -> Vec<u8> {
    match u8::try_from(length) {
        Ok(short @ 0..=0x7f) => vec![short],
        _ => {
            let bytes: Vec<_> =
                length.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
            let count = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
            std::iter::once(0x80 | count).chain(bytes).collect()
        }
    }
}

fn escaped(value: &str) -> String {
    let blank = |c: char| matches!(c, ' ' | '\r');
    let mut plain = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            ',' | '=' | '+' | '<' | '>' | '#' | ';' | '"' | '\\' => plain.extend(['\\', c]),
            '\0' => plain.push_str("\\00"),
            c => plain.push(c),
        }
    }
    let inner = plain.trim_matches(blank);
    // All blank: each counts as one before the rest.
    let lead = plain.len() - plain.trim_start_matches(blank).len();
    let mut text = String::with_capacity(plain.len());
    for (at, c) in plain.char_indices() {
        if at < lead || at >= lead + inner.len() {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// What has a name in RFC 2253, 2.3.
const KEYWORDS: [(&str, &str); 9] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "STREET"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
];
/// The tags of what Java takes for strings: UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString.
const STRINGS: [u32; 6] = [12, 19, 20, 22, 27, 30];

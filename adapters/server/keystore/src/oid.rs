//! Object identifiers, as they stand in DER.

use std::fmt::Write as _;

pub(crate) const PBES2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d";
pub(crate) const PBKDF2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c";
pub(crate) const PBMAC1: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0e";
pub(crate) const SCRYPT: &[u8] = b"\x2b\x06\x01\x04\x01\xda\x47\x04\x0b";

pub(crate) const HMAC_SHA1: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x07";
pub(crate) const HMAC_SHA256: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x09";
pub(crate) const HMAC_SHA384: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x0a";
pub(crate) const HMAC_SHA512: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x0b";

pub(crate) const SHA1: &[u8] = b"\x2b\x0e\x03\x02\x1a";
pub(crate) const SHA256: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x01";
pub(crate) const SHA384: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x02";
pub(crate) const SHA512: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x03";

pub(crate) const AES128_CBC: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x02";
pub(crate) const AES192_CBC: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x16";
pub(crate) const AES256_CBC: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x2a";
pub(crate) const TRIPLE_DES_CBC: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x03\x07";

/// SHA-1 and triple DES with three keys (RFC 7292, appendix C).
pub(crate) const PBE_SHA1_3DES: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x03";
/// Sun's own protection of the keys in JKS.
pub(crate) const JKS_PROTECTION: &[u8] = b"\x2b\x06\x01\x04\x01\x2a\x02\x11\x01\x01";

/// PKCS7.
pub(crate) const DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";
pub(crate) const ENCRYPTED_DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x06";
/// The bags of PKCS12 (RFC 7292, 4.2).
pub(crate) const KEY_BAG: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x01";
pub(crate) const SHROUDED_KEY_BAG: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x02";
pub(crate) const CERTIFICATE_BAG: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03";
pub(crate) const NESTED_BAG: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x06";
pub(crate) const X509: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01";
/// Their attributes (PKCS9).
pub(crate) const FRIENDLY_NAME: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x14";
pub(crate) const LOCAL_KEY_ID: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x15";
/// 2.16.840.1.113894.746875.1.1: Java's mark of a trusted certificate.
pub(crate) const TRUSTED: &[u8] = b"\x60\x86\x48\x01\x86\xf9\x66\xad\xca\x7b\x01\x01";

/// Keys.
pub(crate) const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
pub(crate) const EC: &[u8] = b"\x2a\x86\x48\xce\x3d\x02\x01";
pub(crate) const ED25519: &[u8] = b"\x2b\x65\x70";
pub(crate) const DSA: &[u8] = b"\x2a\x86\x48\xce\x38\x04\x01";
pub(crate) const P256: &[u8] = b"\x2a\x86\x48\xce\x3d\x03\x01\x07";
pub(crate) const P384: &[u8] = b"\x2b\x81\x04\x00\x22";
pub(crate) const P521: &[u8] = b"\x2b\x81\x04\x00\x23";

/// The names of those that are shown.
const NAMES: &[(&[u8], &str)] = &[
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x01", "128-bit RC4"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x02", "40-bit RC4"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x04", "triple DES with two keys"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x05", "128-bit RC2"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x06", "40-bit RC2"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x01", "MD2 and DES"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x03", "MD5 and DES"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0a", "SHA-1 and DES"),
    (PBMAC1, "PBMAC1"),
    (DSA, "DSA"),
    (P256, "P-256"),
    (P384, "P-384"),
    (P521, "P-521"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a", "RSASSA-PSS"),
    (b"\x2b\x65\x71", "Ed448"),
    (b"\x2b\x81\x04\x00\x0a", "secp256k1"),
];

/// Its name, or its numbers.
pub(crate) fn name(oid: &[u8]) -> String {
    let known = NAMES.iter().find(|(known, _)| *known == oid);
    known.map_or_else(|| numbers(oid), |(_, name)| (*name).to_owned())
}

/// The numbers with points between them; at most sixteen, whatever a file holds.
fn numbers(oid: &[u8]) -> String {
    let mut out = String::new();
    let mut value = 0_u64;
    let mut count = 0;
    for byte in oid {
        value = value << 7 & u64::from(u32::MAX) | u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        if count == 0 {
            let first = (value / 40).min(2);
            value -= first * 40;
            out.push_str(&first.to_string());
        }
        count += 1;
        if count == 16 {
            out.push('…');
            break;
        }
        let _ = write!(out, ".{value}");
        value = 0;
    }
    out
}

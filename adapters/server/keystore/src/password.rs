//! The password of a store, which is wiped and never shown.

use std::fmt;
use std::str;

use zeroize::Zeroizing;

/// The password of a store and of the key in it. Its memory is wiped when it is dropped, and `Debug` does not show it.
///
/// ZooKeeper knows one password for both: that of `ssl.*.password` or of the file that `ssl.*.passwordPath` names.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<String>);

/// A password file is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the password file is no UTF-8 text")]
pub struct NotText;

impl Password {
    /// The password as it stands in a setting.
    #[must_use]
    pub fn new(password: &str) -> Self {
        Self(Zeroizing::new(password.to_owned()))
    }

    /// The password of a file that `ssl.*.passwordPath` names: its first line, without the end of the line and with
    /// any spaces. The caller that has read the file wipes what was read.
    ///
    /// # Errors
    ///
    /// If the line is no UTF-8.
    pub fn from_file(content: &[u8]) -> Result<Self, NotText> {
        let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        str::from_utf8(line).map(Self::new).map_err(|_| NotText)
    }

    /// Whether it has no characters, which ZooKeeper takes for none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As PKCS5 takes it.
    pub(crate) fn utf8(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// As JKS takes it: UTF-16, big endian.
    pub(crate) fn utf16(&self) -> Zeroizing<Vec<u8>> {
        // At once in full length: what grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.0.len() * 2 + 2));
        bytes.extend(self.0.encode_utf16().flat_map(u16::to_be_bytes));
        bytes
    }

    /// As PKCS12 takes it (RFC 7292, B.1): the same with two zero bytes after it.
    pub(crate) fn terminated(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = self.utf16();
        bytes.extend([0, 0]);
        bytes
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(***)")
    }
}

//! A password, which is wiped and never shown.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use zeroize::Zeroizing;

/// A password. Its memory is wiped when it is dropped, and `Debug` does not show it, nor how long it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// This one.
    #[must_use]
    pub fn new(password: &str) -> Self {
        Self(Zeroizing::new(password.to_owned()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(***)")
    }
}

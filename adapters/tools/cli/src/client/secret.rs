//! An identity as it was typed, with its password: never printed, never logged.

use std::fmt;

/// `USER:PASSWORD`.
#[derive(Clone)]
pub(super) struct Secret(String);

// For clap, which would quote what it cannot parse: nothing is refused here.
impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// What the server is told.
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether it has a user and a password.
    pub(super) fn is_pair(&self) -> bool {
        self.0.split_once(':').is_some_and(|(user, _)| !user.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_not_shown() {
        let secret = Secret::from("ann:sesame".to_owned());
        assert!(secret.is_pair() && !format!("{secret:?}").contains("sesame"));
        assert!(!Secret::from("ann".to_owned()).is_pair());
    }
}

//! Who may log in, and as whom one logs in oneself.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::password::Password;

/// Users and their passwords.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users(BTreeMap<String, Password>);

impl Users {
    /// Adds one; the later password counts.
    pub fn add(&mut self, name: &str, password: Password) {
        self.0.insert(name.into(), password);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none: every login is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn password(&self, name: &str) -> Option<&Password> {
        self.0.get(name)
    }
}

impl<'a> FromIterator<(&'a str, Password)> for Users {
    fn from_iter<T: IntoIterator<Item = (&'a str, Password)>>(users: T) -> Self {
        Self(users.into_iter().map(|(name, password)| (name.into(), password)).collect())
    }
}

/// A user, with the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The name.
    pub user: String,
    /// The password.
    pub password: Password,
}

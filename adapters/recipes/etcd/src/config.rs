//! The configuration of a candidate: the cluster, the prefix of the election, and the settings.

use std::fmt;
use std::time::Duration;

use quorate_recipes::{Naming, PathFault, Recipe, Settings, StartError};

/// The configuration of a candidate: the cluster, the prefix of the election, and the settings.
///
/// etcd counts whole seconds of a [session](Settings::session_timeout()), and none less than its own election time-out,
/// some two; the time-out is rounded up.
#[derive(Clone)]
pub struct Config {
    pub(crate) endpoints: Vec<String>,
    pub(crate) root: String,
    pub(crate) user: Option<(String, String)>,
    /// What is said of TLS, if something is.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<etcd_client::TlsOptions>,
    pub(crate) settings: Settings,
}

impl Config {
    /// An election among all candidates with the same `prefix`, through the cluster at `endpoints`
    /// (`http://etcd1:2379`). `settings` may be the identity alone, by which others know this candidate.
    pub fn new<E: Into<String>>(
        endpoints: impl IntoIterator<Item = E>,
        prefix: impl Into<String>,
        settings: impl Into<Settings>,
    ) -> Self {
        let mut settings = settings.into();
        if let Recipe::Offer(naming) = &mut settings.recipe {
            // As etcd's own elections name their keys.
            *naming = Naming::Lease;
        }
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            root: prefix.into(),
            user: None,
            #[cfg(feature = "tls")]
            tls: None,
            settings,
        }
    }

    /// Authenticates to the cluster.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = Some((name.into(), password.into()));
        self
    }

    /// Trusts servers that these authorities (PEM) have certified, at endpoints that begin with `https://`. Each has to be
    /// named in its certificate as it is here.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn authorities(mut self, pem: impl AsRef<str>) -> Self {
        let authorities = etcd_client::Certificate::from_pem(pem.as_ref());
        self.tls = Some(self.tls.unwrap_or_default().ca_certificate(authorities));
        self
    }

    /// Shows this certificate, with those above it, and proves it by its key (PEM both).
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn identity(mut self, chain: impl AsRef<str>, key: impl AsRef<str>) -> Self {
        let identity = etcd_client::Identity::from_pem(chain.as_ref(), key.as_ref());
        self.tls = Some(self.tls.unwrap_or_default().identity(identity));
        self
    }

    pub(crate) fn checked(self) -> Result<(Self, Settings), StartError> {
        if self.endpoints.is_empty() || self.endpoints.iter().any(|at| at.trim().is_empty()) {
            return Err(StartError::NoStore);
        }
        let fault = if self.root.is_empty() {
            Some(PathFault::Empty)
        } else if self.root.ends_with('/') {
            Some(PathFault::TrailingSlash)
        } else {
            None
        };
        if let Some(fault) = fault {
            return Err(StartError::Path { path: self.root, fault });
        }
        let mut settings = self.settings.clone();
        // As it is requested.
        settings.session_timeout = Duration::from_secs(self.seconds().unsigned_abs());
        Ok((self, settings))
    }

    /// The time to live that is requested, in seconds.
    pub(crate) fn seconds(&self) -> i64 {
        let timeout = self.settings.session_timeout;
        let whole = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        i64::try_from(whole.max(1)).unwrap_or(i64::MAX)
    }

    pub(crate) const fn is_lease(&self) -> bool {
        matches!(self.settings.recipe, Recipe::Lease)
    }
}

/// Without the password.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Config");
        debug.field("endpoints", &self.endpoints).field("prefix", &self.root);
        debug.field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_without_a_store_or_a_place_is_refused() {
        let refusal = |endpoints: &[&str], prefix: &str| {
            let config = Config::new(endpoints.iter().copied(), prefix, "me");
            config.checked().map(drop).expect_err("refused")
        };
        assert_eq!(refusal(&[], "a"), StartError::NoStore);
        assert_eq!(refusal(&["http://e", ""], "a"), StartError::NoStore);
        for (path, fault) in [("", PathFault::Empty), ("a/", PathFault::TrailingSlash)] {
            let path_error = StartError::Path { path: path.into(), fault };
            assert_eq!(refusal(&["http://e"], path), path_error);
        }
    }

    #[test]
    fn times_are_whole_seconds() {
        let seconds = |ms| {
            let settings = Settings::new("me").session_timeout(Duration::from_millis(ms));
            Config::new(["e"], "a", settings).seconds()
        };
        assert_eq!([seconds(0), seconds(1), seconds(2000), seconds(2001)], [1, 1, 2, 3]);
    }
}

//! Where the cluster is, and how an election there is to be.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use quorate_recipes::{Designation, Naming, Recipe, Settings, StartError};

/// Where the cluster is, and how an election there is to be.
#[derive(Clone)]
pub struct Config {
    pub(crate) endpoints: Vec<String>,
    pub(crate) root: String,
    pub(crate) user: Option<(String, String)>,
    settings: Settings,
}

impl Config {
    /// An election among those who name the same `prefix`, through the cluster at `endpoints`
    /// (`http://etcd1:2379`). `identity` is what others are told of this candidate: any bytes, not none.
    pub fn new<E: Into<String>>(
        endpoints: impl IntoIterator<Item = E>,
        prefix: impl Into<String>,
        identity: impl Into<Bytes>,
    ) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            root: prefix.into(),
            user: None,
            settings: Settings::new(identity, Recipe::Offer(Naming::Lease)),
        }
    }

    /// The other recipe: who creates the key `prefix` leads, and all others watch it.
    #[must_use]
    pub const fn lease(mut self) -> Self {
        self.settings.recipe = Recipe::Lease;
        self
    }

    /// After how much silence the cluster gives a candidate up: 10 s if it is not said. etcd counts whole
    /// seconds, and none less than its own election time-out, some two; it is rounded up.
    #[must_use]
    pub const fn session_timeout(mut self, timeout: Duration) -> Self {
        self.settings.session_timeout = timeout;
        self
    }

    /// How much earlier than that a leader stops by its own clock: a tenth if it is not said. It has to cover
    /// how far clocks run apart, and how long guarded work takes to end.
    #[must_use]
    pub const fn margin(mut self, margin: Duration) -> Self {
        self.settings.margin = Some(margin);
        self
    }

    /// Who says who leads while the cluster is out of reach: nobody if it is not said. See [`Designation`].
    #[must_use]
    pub fn designation(mut self, designation: Designation) -> Self {
        self.settings.designation = Some(designation);
        self
    }

    /// How long an answer may take: 5 s if it is not said.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// Who this is, for the cluster.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = Some((name.into(), password.into()));
        self
    }

    pub(crate) fn checked(self) -> Result<(Self, Settings), StartError> {
        if self.endpoints.is_empty() || self.endpoints.iter().any(|at| at.trim().is_empty()) {
            return Err(StartError::NoStore("the cluster's endpoint"));
        }
        let fault = if self.root.is_empty() {
            Some("it is empty, and would be all keys")
        } else if self.root.ends_with('/') {
            Some("a / is put behind it, and stands there already")
        } else {
            None
        };
        if let Some(reason) = fault {
            return Err(StartError::Path { path: self.root, reason });
        }
        let mut settings = self.settings.clone();
        // As it is asked for.
        settings.session_timeout = Duration::from_secs(self.seconds().unsigned_abs());
        Ok((self, settings))
    }

    /// The time to live that is asked for, in seconds.
    pub(crate) fn seconds(&self) -> i64 {
        let timeout = self.settings.session_timeout;
        let whole = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        i64::try_from(whole.max(1)).unwrap_or(i64::MAX)
    }

    pub(crate) const fn deadline_time(&self) -> Duration {
        self.settings.deadline
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
            config.checked().map(drop).expect_err("refused").to_string()
        };
        assert!(refusal(&[], "a").contains("endpoint is missing"));
        assert!(refusal(&["http://e", ""], "a").contains("endpoint is missing"));
        assert!(refusal(&["http://e"], "").contains("all keys"));
        assert!(refusal(&["http://e"], "a/").contains("put behind"));
    }

    #[test]
    fn times_are_whole_seconds() {
        let seconds = |ms| {
            let config = Config::new(["e"], "a", "me");
            config.session_timeout(Duration::from_millis(ms)).seconds()
        };
        assert_eq!([seconds(0), seconds(1), seconds(2000), seconds(2001)], [1, 1, 2, 3]);
    }
}

//! Where the ensemble is, and how an election there is to be.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use quorate_recipes::{Designation, Naming, Recipe, Settings, StartError};

/// Who may touch the nodes that a candidate creates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Everybody may do everything, as in most elections.
    #[default]
    Anyone,
    /// Only who has the same [credentials](Config::credentials). All candidates of a root need them then.
    Creator,
}

/// Where the ensemble is, and how an election there is to be.
#[derive(Clone)]
pub struct Config {
    pub(crate) hosts: String,
    pub(crate) root: String,
    pub(crate) credentials: Vec<(String, Bytes)>,
    pub(crate) access: Access,
    settings: Settings,
}

impl Config {
    /// An election among those who name the same `root`, through the ensemble at `hosts`
    /// (`zk1:2181,zk2:2181`). `identity` is what others are told of this candidate: any bytes, not none.
    pub fn new(
        hosts: impl Into<String>,
        root: impl Into<String>,
        identity: impl Into<Bytes>,
    ) -> Self {
        Self {
            hosts: hosts.into(),
            root: root.into(),
            credentials: Vec::new(),
            access: Access::default(),
            settings: Settings::new(identity, Recipe::Offer(Naming::default())),
        }
    }

    /// How offers are called. [`Naming::Guid`] if it is not said; beside Java's `LeaderElectionSupport`, which
    /// reads no other names than its own, [`Naming::Java`]; so it is with Curator's `LeaderLatch` and
    /// [`Naming::Latch`], with kazoo's `Election` and [`Naming::Kazoo`].
    #[must_use]
    pub const fn naming(mut self, naming: Naming) -> Self {
        self.settings.recipe = Recipe::Offer(naming);
        self
    }

    /// The other recipe: who creates the node `root` leads, and all others watch it.
    #[must_use]
    pub const fn lease(mut self) -> Self {
        self.settings.recipe = Recipe::Lease;
        self
    }

    /// After how much silence the ensemble gives a candidate up: 10 s if it is not said. The ensemble has
    /// bounds of its own, 2 and 20 ticks if its `zoo.cfg` does not say others.
    #[must_use]
    pub const fn session_timeout(mut self, timeout: Duration) -> Self {
        self.settings.session_timeout = timeout;
        self
    }

    /// How much earlier than that a leader stops by its own clock: a tenth if it is not said. It has to cover
    /// how far clocks run apart, and how long guarded work takes to end. What a follower of ZooKeeper's confirms
    /// that its leader does not count is not relied upon, as long as sessions last two ticks at least.
    #[must_use]
    pub const fn margin(mut self, margin: Duration) -> Self {
        self.settings.margin = Some(margin);
        self
    }

    /// Who says who leads while the ensemble is out of reach: nobody if it is not said. See [`Designation`].
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

    /// Who this is, for the ensemble: scheme and proof, such as `digest` and `user:password`.
    #[must_use]
    pub fn credentials(mut self, scheme: impl Into<String>, proof: impl Into<Bytes>) -> Self {
        self.credentials.push((scheme.into(), proof.into()));
        self
    }

    /// Who may touch the nodes that this candidate creates.
    #[must_use]
    pub const fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    pub(crate) fn checked(self) -> Result<(Self, Settings), StartError> {
        if self.hosts.trim().is_empty() {
            return Err(StartError::NoStore("the ensemble's host:port"));
        }
        if let Some(reason) = fault(&self.root) {
            return Err(StartError::Path { path: self.root, reason });
        }
        let settings = self.settings.clone();
        Ok((self, settings))
    }

    pub(crate) const fn is_lease(&self) -> bool {
        matches!(self.settings.recipe, Recipe::Lease)
    }

    pub(crate) const fn session_time(&self) -> Duration {
        self.settings.session_timeout
    }
}

/// What is wrong with a path, by ZooKeeper's own rules.
fn fault(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') {
        return Some("a path of ZooKeeper begins with /");
    }
    if path == "/" {
        return Some("the root of all nodes cannot be an election's");
    }
    if path.chars().any(|c| c.is_control()) {
        return Some("it has a control character");
    }
    path[1..].split('/').find_map(|name| match name {
        "" => Some("there is nothing between two /, or behind the last"),
        "." | ".." => Some("ZooKeeper knows no relative paths"),
        _ => None,
    })
}

/// Without proofs.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Config");
        debug.field("hosts", &self.hosts).field("root", &self.root);
        debug.field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_without_a_store_a_place_or_an_identity_is_refused() {
        let refusal = |hosts: &str, root: &str| {
            Config::new(hosts, root, "me").checked().map(drop).expect_err("refused").to_string()
        };
        assert!(refusal(" ", "/a").contains("host:port is missing"));
        for (root, why) in [
            ("a", "begins with /"),
            ("/", "root of all"),
            ("/a//b", "between two /"),
            ("/a/", "behind the last"),
            ("/a/../b", "relative"),
            ("/a\0", "control"),
        ] {
            assert!(refusal("zk:2181", root).contains(why), "{root}");
        }
        assert!(Config::new("zk:2181", "/a/b", "me").checked().is_ok());
    }

    #[test]
    fn proofs_are_not_shown() {
        let config = Config::new("zk", "/a", "me").credentials("digest", "me:secret");
        assert!(!format!("{config:?}").contains("secret"));
    }
}

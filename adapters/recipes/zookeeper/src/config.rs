//! The configuration of a candidate: the ensemble, the root of the election, and the settings.

use std::fmt;

use bytes::Bytes;
use quorate_recipes::{Naming, PathFault, Recipe, Settings, StartError};
#[cfg(feature = "tls")]
use zookeeper_client::TlsOptions;

use crate::session::Session;

/// Which clients may touch the nodes that a candidate creates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// All, as in most elections.
    #[default]
    Anyone,
    /// Those with the same [credentials](Config::credentials). All candidates of a root need them then.
    Creator,
}

/// In which session a candidate stands.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In one of its own, with any of these hosts; in another, when that is over.
    Own(String),
    /// In that of its program.
    Shared(Session),
}

/// The configuration of a candidate: the ensemble, the root of the election, and the settings.
///
/// ZooKeeper has bounds of its own for [sessions](Settings::session_timeout()): 2 and 20 ticks, if its `zoo.cfg` does
/// not set others. The [margin](Settings::margin()) does not have to cover what a follower of ZooKeeper's confirms and
/// its leader does not count: that is not relied upon, as long as sessions last two ticks at least.
#[derive(Clone)]
pub struct Config {
    pub(crate) place: Place,
    pub(crate) root: String,
    pub(crate) credentials: Vec<(String, Bytes)>,
    pub(crate) access: Access,
    /// How to come to each server through TLS, if so.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<TlsOptions>,
    pub(crate) settings: Settings,
}

impl Config {
    /// An election among all candidates with the same `root`, through the ensemble at `hosts`
    /// (`zk1:2181,zk2:2181`). `settings` may be the identity alone, by which others know this candidate.
    pub fn new(
        hosts: impl Into<String>,
        root: impl Into<String>,
        settings: impl Into<Settings>,
    ) -> Self {
        Self::at(Place::Own(hosts.into()), root.into(), settings.into())
    }

    /// An election among all candidates with the same `root`, in a session that the program has opened: its leadership
    /// and its candidacy end with that. Two candidates of one session under one root need [`Naming::Guid`], which tells
    /// them apart.
    ///
    /// The session's time-out is what its client and the ensemble have agreed on, and its credentials are the client's;
    /// a [designation](Settings::designation()) counts only after a whole session without the ensemble, when such a
    /// candidate has ended.
    pub fn on(session: &Session, root: impl Into<String>, settings: impl Into<Settings>) -> Self {
        Self::at(Place::Shared(session.clone()), root.into(), settings.into())
    }

    const fn at(place: Place, root: String, settings: Settings) -> Self {
        let access = Access::Anyone;
        Self {
            place,
            root,
            credentials: Vec::new(),
            access,
            #[cfg(feature = "tls")]
            tls: None,
            settings,
        }
    }

    /// The offer recipe with offers named this way: [`Naming::Guid`] is the default. Other libraries read no names
    /// but their own: beside Java's `LeaderElectionSupport` it has to be [`Naming::Java`], beside Curator's
    /// `LeaderLatch` [`Naming::Latch`], and beside kazoo's `Election` [`Naming::Kazoo`].
    #[must_use]
    pub const fn naming(mut self, naming: Naming) -> Self {
        self.settings.recipe = Recipe::Offer(naming);
        self
    }

    /// Authenticates to the ensemble: scheme and proof, such as `digest` and `user:password`.
    #[must_use]
    pub fn credentials(mut self, scheme: impl Into<String>, proof: impl Into<Bytes>) -> Self {
        self.credentials.push((scheme.into(), proof.into()));
        self
    }

    /// Comes to all servers through TLS: with whom they have to be certified by, and this candidate's own certificate. Each
    /// has to name the host that it is reached by. Hosts with `tcp://` before them are reached without all the same.
    ///
    /// zookeeper-client computes with rustls's default. A program into which both aws-lc-rs and ring are compiled, by whatever of
    /// its packages, has to say at its start which that is (`rustls::crypto::CryptoProvider::install_default`); rustls
    /// panics otherwise.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, options: TlsOptions) -> Self {
        self.tls = Some(options);
        self
    }

    /// Which clients may touch the nodes that this candidate creates.
    #[must_use]
    pub const fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    pub(crate) fn checked(self) -> Result<(Self, Settings), StartError> {
        let mut settings = self.settings.clone();
        match &self.place {
            Place::Own(hosts) if hosts.trim().is_empty() => return Err(StartError::NoStore),
            Place::Own(_) => {}
            Place::Shared(_) if !self.credentials.is_empty() => {
                return Err(StartError::NotOwnSession("other credentials"));
            }
            #[cfg(feature = "tls")]
            Place::Shared(_) if self.tls.is_some() => {
                return Err(StartError::NotOwnSession("TLS of its own"));
            }
            Place::Shared(_) if settings.designation.is_some() => {
                return Err(StartError::NotOwnSession("a designation"));
            }
            Place::Shared(session) => settings.session_timeout = session.client().session_timeout(),
        }
        if let Some(fault) = fault(&self.root) {
            return Err(StartError::Path { path: self.root, fault });
        }
        Ok((self, settings))
    }

    pub(crate) const fn is_lease(&self) -> bool {
        matches!(self.settings.recipe, Recipe::Lease)
    }
}

/// What is wrong with a path, by ZooKeeper's own rules (PathUtils.validatePath).
fn fault(path: &str) -> Option<PathFault> {
    if !path.starts_with('/') {
        return Some(PathFault::NotAbsolute);
    }
    if path == "/" {
        return Some(PathFault::Root);
    }
    if path.chars().any(|c| c.is_control()) {
        return Some(PathFault::ControlCharacter);
    }
    path[1..].split('/').find_map(|name| match name {
        "" => Some(PathFault::EmptyName),
        "." | ".." => Some(PathFault::Relative),
        _ => None,
    })
}

/// Without proofs.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Config");
        debug.field("place", &self.place).field("root", &self.root);
        debug.field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_without_a_store_a_place_or_an_identity_is_refused() {
        let refusal = |hosts: &str, root: &str| {
            Config::new(hosts, root, "me").checked().map(drop).expect_err("refused")
        };
        assert_eq!(refusal(" ", "/a"), StartError::NoStore);
        for (root, fault) in [
            ("a", PathFault::NotAbsolute),
            ("/", PathFault::Root),
            ("/a//b", PathFault::EmptyName),
            ("/a/", PathFault::EmptyName),
            ("/a/../b", PathFault::Relative),
            ("/a\0", PathFault::ControlCharacter),
        ] {
            assert_eq!(refusal("zk:2181", root), StartError::Path { path: root.into(), fault });
        }
        assert!(Config::new("zk:2181", "/a/b", "me").checked().is_ok());
    }

    #[test]
    fn proofs_are_not_shown() {
        let config = Config::new("zk", "/a", "me").credentials("digest", "me:secret");
        assert!(!format!("{config:?}").contains("secret"));
    }
}

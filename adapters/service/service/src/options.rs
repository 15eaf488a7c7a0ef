//! What an operator says of a service.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// The settings of a service. The defaults are ZooKeeper's.
#[derive(Clone, Debug)]
pub struct Options {
    /// The shortest time-out that a session may have (`minSessionTimeout`): two ticks, unless said otherwise.
    pub session_timeout_min: Option<Duration>,
    /// The longest one (`maxSessionTimeout`): twenty ticks, unless said otherwise.
    pub session_timeout_max: Option<Duration>,
    /// How many writes of its clients a server has under way (`globalOutstandingLimit`); more wait.
    pub outstanding_max: usize,
    /// `user:` and what stands behind it of the identity that may do everything
    /// (`DigestAuthenticationProvider.superDigest`).
    pub super_digest: Option<String>,
    /// Access lists forbid nothing (`skipACL`).
    pub skip_acl: bool,
    /// What this server can refuse by its own tree is refused at once, ahead of what is not answered yet
    /// (`enableEagerACLCheck`).
    pub eager_acl: bool,
    /// Containers and TTL nodes are what their owners say (`extendedTypesEnabled`).
    pub extended_types: bool,
    /// The words of four letters that are answered (`4lw.commands.whitelist`).
    pub words: Words,
    /// How often a leader looks for containers and TTL nodes that are due (`znode.container.checkIntervalMs`).
    pub container_interval: Duration,
    /// What words tell of the server beneath the service.
    pub beneath: Option<Arc<dyn Beneath>>,
}

/// What the words of four letters tell of the server beneath the service: its place in the ensemble, its settings.
pub trait Beneath: fmt::Debug + Send + Sync {
    /// The answer to `conf`.
    fn configuration(&self) -> String;

    /// The lines of `mntr` that are not the service's.
    fn figures(&self) -> String;

    /// The answer to `dirs`: how much is on disk.
    fn directories(&self) -> String {
        String::new()
    }
}

/// Which words of four letters are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Words {
    /// All of them (`*`).
    All,
    /// These.
    Some(Vec<String>),
}

impl Words {
    /// Whether this one is.
    pub fn allow(&self, word: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(words) => words.iter().any(|allowed| allowed == word),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            session_timeout_min: None,
            session_timeout_max: None,
            outstanding_max: 1000,
            super_digest: None,
            skip_acl: false,
            eager_acl: false,
            extended_types: false,
            words: Words::Some(alloc::vec![String::from("srvr")]),
            container_interval: Duration::from_secs(60),
            beneath: None,
        }
    }
}

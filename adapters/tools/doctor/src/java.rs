//! The faults of ZooKeeper's own servers, by their versions.

use std::fmt;

use crate::finding::Level;

/// A version of ZooKeeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The version at the front of a text such as `3.8.0-5a02a05, built on …`.
    pub fn read(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut parts = text.get(..end)?.split('.').map(str::parse);
        match (parts.next()?, parts.next()?, parts.next()?) {
            (Ok(major), Ok(minor), Ok(patch)) => Some(Self(major, minor, patch)),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A fault of Java servers.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Its numbers in ZooKeeper's tracker.
    pub issues: &'static [&'static str],
    /// What such a server does.
    pub what: &'static str,
    /// The first releases without it, for people.
    pub fixed: &'static str,
    /// An error where acknowledged data can be lost.
    pub level: Level,
    /// Whether it matters while servers of an ensemble are replaced.
    pub endangers_replacement: bool,
    has: fn(Version) -> bool,
}

impl Fault {
    /// Whether servers of this version have it.
    pub fn is_in(&self, version: Version) -> bool {
        (self.has)(version)
    }

    /// Whether there is no release without it yet.
    pub fn is_open(&self) -> bool {
        self.fixed == NONE
    }
}

/// In place of releases.
const NONE: &str = "no release";

/// The faults of a version, the worst first.
pub fn faults_of(version: Version) -> impl Iterator<Item = &'static Fault> {
    FAULTS.iter().filter(move |fault| fault.is_in(version))
}

/// Before `a` of 3.8 (and older lines), or before `b` of 3.9.
fn before(version: Version, a: Version, b: Version) -> bool {
    version < a || (Version(3, 9, 0)..b).contains(&version)
}

/// Every fault that has a version from which on it is gone, and those that are open.
pub const FAULTS: [Fault; 10] = [
    Fault {
        issues: &["ZOOKEEPER-4646", "ZOOKEEPER-4785"],
        what: "acknowledges a new leader before its own disk holds what it acknowledges",
        fixed: "3.8.5, 3.9.2",
        level: Level::Error,
        endangers_replacement: true,
        has: |version| before(version, Version(3, 8, 5), Version(3, 9, 2)),
    },
    Fault {
        issues: &["ZOOKEEPER-4925"],
        what: "passes a history with a hole on",
        fixed: "3.9.4",
        level: Level::Error,
        endangers_replacement: true,
        has: |version| version == Version(3, 9, 3),
    },
    Fault {
        issues: &["ZOOKEEPER-4712"],
        what: "may go on writing its log in the role that it has left",
        fixed: "3.9.3",
        level: Level::Error,
        endangers_replacement: false,
        has: |version| version < Version(3, 9, 3),
    },
    Fault {
        issues: &["ZOOKEEPER-4394"],
        what: "dies as a learner that is brought up while proposals are under way",
        fixed: "3.9.3",
        level: Level::Warning,
        endangers_replacement: false,
        has: |version| version < Version(3, 9, 3),
    },
    Fault {
        issues: &["ZOOKEEPER-2332"],
        what: "does not start from an empty log file",
        fixed: "3.9.3",
        level: Level::Notice,
        endangers_replacement: false,
        has: |version| version < Version(3, 9, 3),
    },
    Fault {
        issues: &["ZOOKEEPER-4846"],
        what: "does not start where an access list is missing in its snapshot",
        fixed: "3.8.5, 3.9.4",
        level: Level::Notice,
        endangers_replacement: false,
        has: |version| before(version, Version(3, 8, 5), Version(3, 9, 4)),
    },
    Fault {
        issues: &["ZOOKEEPER-4736"],
        what: "leaks file descriptors while the network is down",
        fixed: "3.9.5",
        level: Level::Notice,
        endangers_replacement: false,
        has: |version| version < Version(3, 9, 5),
    },
    Fault {
        issues: &["ZOOKEEPER-4886"],
        what: "keeps an observer with a small id out where SASL is on between servers",
        fixed: "3.8.5, 3.9.4",
        level: Level::Notice,
        endangers_replacement: false,
        has: |version| before(version, Version(3, 8, 5), Version(3, 9, 4)),
    },
    Fault {
        issues: &["ZOOKEEPER-4882", "ZOOKEEPER-4883", "ZOOKEEPER-4837"],
        what: "stops when the counter of transactions is full, may have a hole after its disk failed, and may keep an \
               ephemeral node of a session that is gone",
        fixed: NONE,
        level: Level::Notice,
        endangers_replacement: false,
        has: |_| true,
    },
    // Seen with 3.9.5 under leaders of either kind: a transaction is in the tree, and not yet among those kept for learners,
    // when another thread brings the tree up to the log's end (`CommitProcessor.shutdown` waits for no thread), and since
    // ZOOKEEPER-4925 a gap there ends the server.
    Fault {
        issues: &["ZOOKEEPER-3598", "ZOOKEEPER-4925"],
        what: "may end, with exit code 0, when it loses its leader under load",
        fixed: NONE,
        level: Level::Notice,
        endangers_replacement: false,
        has: |version| version >= Version(3, 9, 4),
    },
];

//! The reasons against a recovery, each with what to do about it.

use std::fmt;
use std::path::PathBuf;

use quorate_core::zxid::Epoch;
use serde::Serialize;
use thiserror::Error;

use crate::survivor::Age;

/// What was heard of a member at one of its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The member.
    pub id: i64,
    /// Where it was asked.
    pub address: String,
    /// At which of its ports: "election" or "quorum".
    pub port: &'static str,
    /// What was heard.
    pub heard: Heard,
}

/// What was heard at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Heard {
    /// A connection was accepted.
    Accepted,
    /// The host is up: it refused the connection, or ended it.
    Refused,
    /// Nothing: the name is not known, the host cannot be reached, or is silent.
    Nothing,
    /// It could not be asked, since names are not resolved at present or this machine forbids it.
    NotAsked,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, address, port, heard } = self;
        let what = match heard {
            Heard::Accepted => "answers",
            Heard::Refused => "has no server, but its host answers",
            Heard::Nothing => "is silent",
            Heard::NotAsked => {
                "could not be asked (names are not resolved here now, or this machine forbids it)"
            }
        };
        write!(f, "server {id} {what} at {address} (its {port} port)")
    }
}

/// Why nothing is done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// Nothing is lost.
    #[error(
        "no server is declared lost for good. Where a majority is only away, wait for it, or repair it (`quorate log \
         check`; a damaged directory is emptied and gets everything from the others, or is restored from a backup)"
    )]
    NoneLost,
    /// A server is on both lists.
    #[error("server {id} is to be kept, and is declared lost")]
    KeptAndLost {
        /// Which.
        id: i64,
    },
    /// A server on a list is no member.
    #[error(
        "server {id} is no member by the configuration; a lost one that is not in it any more is named with its \
         address: --lost-for-good {id}=HOST:QUORUM:ELECTION"
    )]
    NoMember {
        /// Which.
        id: i64,
    },
    /// A member is on no list.
    #[error("server {id} is a member, and neither kept nor declared lost")]
    NotNamed {
        /// Which.
        id: i64,
    },
    /// Nothing is known of a kept server's directory.
    #[error(
        "server {id} is to be kept, and its directory was not shown: --survivor DIR, or a file with what `quorate \
         recover survey --json` says of it on its machine"
    )]
    NotShown {
        /// Which.
        id: i64,
    },
    /// Two directories say that they are one server's.
    #[error("two directories are said to be server {id}'s")]
    ShownTwice {
        /// Whose.
        id: i64,
    },
    /// A directory is left of a server that is not to go on.
    #[error(
        "a directory of server {id} is left, so it is kept, too: an ensemble that goes on must not lack what it has"
    )]
    SurvivorNotKept {
        /// Whose.
        id: i64,
    },
    /// Kinds of election that this does not know of.
    #[error(
        "the servers elect by generation: their votes are on disk, too, and this does not change them"
    )]
    ByGeneration,
    /// Quorums that this does not make others of.
    #[error("the membership has groups or weights: change it to plain majorities by hand first")]
    Groups,
    /// No voter would be left.
    #[error("none of the kept servers votes")]
    NoVoter,
    /// Nothing needs to be done.
    #[error("the kept servers are a quorum of the membership: start them, and nothing is lost")]
    Quorum,
    /// The operator's file has another membership.
    #[error(
        "the configuration still has the membership that lost its quorum. It is a file of yours, and is not changed: \
         replace its server lines by these, on every kept server, and run this again\n{}",
        shown(lines)
    )]
    Lines {
        /// Those of the kept servers.
        lines: Vec<String>,
    },
    /// A change of the membership that the history holds would bind these servers.
    #[error(
        "the history holds a change of the membership, which binds these servers whatever the server lines are. Add \
         this line to the configuration of every kept server, and run this again\n    quorate.membership.forget={version:x}"
    )]
    Binds {
        /// The change.
        version: i64,
    },
    /// The lock is held.
    #[error("{directory}: a server has it open; stop server {id} first")]
    InUse {
        /// Whose.
        id: i64,
        /// Which.
        directory: String,
    },
    /// A directory is damaged.
    #[error("the directory of server {id} is not sound: {problem}")]
    Unsound {
        /// Whose.
        id: i64,
        /// In what.
        problem: String,
    },
    /// It was recovered in another way.
    #[error(
        "the directory of server {id} was recovered before, with {lost:?} declared lost: see its recovered.json, and \
         `quorate recover acknowledge`"
    )]
    RecoveredOtherwise {
        /// Whose.
        id: i64,
        /// The servers declared lost then.
        lost: Vec<i64>,
    },
    /// It is done.
    #[error("{directory}: this was done already; start the kept servers")]
    Done {
        /// Which.
        directory: String,
    },
    /// Another survivor has more.
    #[error(
        "server {id} has a newer history (epoch {}, {}) than server {own} (epoch {}, {}). First give this server that \
         history: `quorate backup` there, `quorate restore` here, into an empty directory",
        theirs.0, theirs.1, ours.0, ours.1
    )]
    Newer {
        /// Which.
        id: i64,
        /// How new its history is.
        theirs: Age,
        /// The one whose directory was to be changed.
        own: i64,
        /// How new that history is.
        ours: Age,
    },
    /// A lost server is not lost.
    #[error("{0}: it is not known to be lost. Start it, or switch its machine off")]
    Answers(Answer),
    /// A kept server runs.
    #[error(
        "server {id} runs: {address} answers. Stop it first; kept servers are started when all are recovered"
    )]
    Runs {
        /// Which.
        id: i64,
        /// Where.
        address: String,
    },
    /// There is something where the copy is to be.
    #[error("the copy needs a directory that is empty, or not there, and outside of the data: {} is in the way", found.display())]
    CopyInTheWay {
        /// What.
        found: PathBuf,
    },
    /// The operator has not said it.
    #[error(
        "writes that were acknowledged may be lost, and it cannot be known which: say so with --yes-data-may-be-lost"
    )]
    NotConfirmed,
    /// Epochs have run out.
    #[error("no epoch is left: {epoch} is beyond the last")]
    NoEpoch {
        /// The one that would be next.
        epoch: Epoch,
    },
}

fn shown(lines: &[String]) -> String {
    lines.iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

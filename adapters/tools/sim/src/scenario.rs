//! Stories as text: commands, and below each of them what came of it.
//!
//! ```text
//! # Two of three start: the larger id wins the tie.        the head: the story and its reason
//!
//! servers 3                                                 a command, one per line
//! start 1 2
//!         0.0  1 starts with an empty disk                  what came of it: indented
//!         0.0  1 votes 1 (epoch 0, zxid 0.0)
//! until led
//!         …
//! expect led by 2                                           fails the story if it is not so
//! ```
//!
//! A line that begins with `#` tells something; a line that begins with a space is a part of a trace, written
//! by the player and compared by the test. The commands are listed in [`COMMANDS`].
//!
//! There are three kinds of stories. In one of a [`World`](crate::World) all servers are real. In one of a
//! [`Stage`](crate::Stage) only one is, and the script says what the others say. In one of an
//! [`Election`](crate::store::Election) real candidates elect through a store that is modelled. In all of them every
//! way takes one millisecond, and so does every write to a disk, so that a story can be followed on paper; nothing is
//! left to chance that the story does not ask for.
//!
//! Whatever stands in a text, it is refused at the line that is wrong, or comes to an end: numbers are bounded where
//! they are read, what is set has to be for a server of the story, each server named has to be there, and no more than a year and a
//! million events fit into a story.
//!
//! What is written below the commands is true of that world alone. What the commands expect has to be true in
//! any: [`Player::perturbed`] plays the story where every way and every write takes its own time. So a story
//! waits with `until` for what comes when it comes, and does not `run` for as long as that took once.

mod command;
mod condition;
mod course;
mod grammar;
mod hearing;
mod library;
mod player;
mod settings;
mod stage_story;
mod store_story;
mod text;
mod words;
mod world_story;

use std::fmt;

use thiserror::Error;

use crate::rule::Violation;
use crate::store::Broken;

pub use grammar::COMMANDS;
pub use library::{Bundled, bundled};
pub use player::Player;
pub use text::{Scenario, Step};

/// What is wrong with a scenario, and where.
#[derive(Debug, Error)]
#[error("{file}:{line}: {problem}")]
pub struct ScenarioError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What.
    pub problem: Problem,
}

/// What is wrong with a scenario.
#[derive(Debug, Error)]
pub enum Problem {
    /// The line is no command.
    #[error("expected {expected}, found {found}")]
    Syntax {
        /// What could stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// The command cannot be carried out here.
    #[error("{0}")]
    Impossible(String),
    /// It is not as the story says.
    #[error("expected {expected}, but {found}")]
    Otherwise {
        /// What the story says.
        expected: String,
        /// What is the case.
        found: String,
    },
    /// What came of the command is not what stands below it.
    #[error("{0}")]
    Differs(Difference),
    /// A rule of the protocol was broken.
    #[error("a rule is broken: {0}")]
    Broken(#[from] Violation),
    /// A rule of elections through a store was broken.
    #[error("a rule is broken: {0}")]
    NotKept(#[from] Broken),
}

impl Problem {
    /// What a command says that only a story of a store can use.
    fn needs_a_store() -> Self {
        Self::Impossible("only candidates that elect through a store can do that".to_owned())
    }
}

/// The first line in which a trace differs from what is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What is written; none if there is nothing more.
    pub written: Option<String>,
    /// What happened; none if nothing more did.
    pub happened: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |line: &Option<String>| {
            line.as_deref().map_or("nothing more".to_owned(), |line| format!("`{}`", line.trim()))
        };
        write!(f, "expected {}, what happened is {}", shown(&self.written), shown(&self.happened))
    }
}

//! How far a long answer to a word is told.
//!
//! Where it goes on is a key and not a place, so nothing of what is told is kept meanwhile.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use quorate_application::clients::ClientId;
use quorate_core::time::Instant;

/// What is told next: an entry, or the one behind it.
#[derive(Debug)]
pub(crate) enum Next {
    /// `cons`.
    Connections,
    /// `stat`.
    Status,
    /// Of these the connections. `whole`: with their sessions.
    Connection { behind: Option<ClientId>, whole: bool },
    /// `wchp` and `wchc`.
    Watch(Watch),
    /// `dump`.
    Dump,
    /// Of that, at a leader, when sessions expire.
    Expiry(Expiry),
    /// The rest of it.
    Rest(Rest),
}

/// Of the watches of the data table.
#[derive(Debug)]
pub(crate) enum Watch {
    /// The paths.
    Path { behind: Option<Arc<str>> },
    /// Who watches one of them.
    Watcher { path: Arc<str>, behind: Option<ClientId> },
    /// The sessions.
    Session { behind: Option<i64> },
    /// What one of them watches.
    Watched { session: i64, client: ClientId, behind: Option<Arc<str>> },
}

/// Of the sessions at a leader.
#[derive(Debug)]
pub(crate) enum Expiry {
    /// How many expire at which time, up to the last that there was.
    Counted { sets: Sets, behind: Option<(Instant, i64)>, until: Instant },
    /// Each of these times.
    Set { sets: Sets },
    /// And the sessions of one.
    Session { sets: Sets, at: Instant, behind: Option<i64> },
}

/// Of what else `dump` tells.
#[derive(Debug)]
pub(crate) enum Rest {
    /// The sessions, at a learner.
    Session { behind: Option<i64> },
    /// Those that own nodes.
    Owner { behind: Option<i64> },
    /// What one of them owns.
    Owned { session: i64, behind: Option<Arc<str>> },
    /// The connections.
    Connection { behind: Option<ClientId> },
}

/// When sessions expire, and how many then.
pub(crate) type Sets = VecDeque<(Instant, usize)>;

impl Next {
    /// The beginning of the answer to a word, if it is one that may be long.
    pub(crate) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "cons" => Self::Connections,
            "stat" => Self::Status,
            "wchc" => Self::Watch(Watch::Session { behind: None }),
            "wchp" => Self::Watch(Watch::Path { behind: None }),
            "dump" => Self::Dump,
            _ => return None,
        })
    }
}

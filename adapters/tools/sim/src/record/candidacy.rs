//! What happens to a candidate in an election through a store, in words.

use std::fmt;

use quorate_core::id::ServerId;
use quorate_core::recipe::{Failure, Loss, SessionId, Token};
use quorate_core::time::Instant;
use quorate_core::vote::ServerState;

use super::topic::Topic;
use super::words::millis;
use crate::call::{Op, Reply};

/// What a candidate does, or what is done to it.
#[derive(Clone, Debug)]
pub enum Candidacy {
    /// It is to lead.
    Starts,
    /// It is told to stop.
    Stops,
    /// It has stopped.
    Stopped,
    /// Whether anything passes between it and the store.
    Way {
        /// Whether.
        open: bool,
    },
    /// It is connected, in this session.
    Connected(SessionId),
    /// It has lost its connection.
    Suspended,
    /// It learns that its session is over.
    Expired,
    /// The store ends its session.
    Ended(SessionId),
    /// An operator deletes a node of it.
    Deleted(String),
    /// A node of it is in the store.
    Made(String),
    /// The same node is written once more.
    Written(String),
    /// A node of it is in the store no more.
    Gone(String),
    /// It waits for this node to go.
    Waits(String),
    /// It leads.
    Leads {
        /// With which token.
        token: Token,
        /// Until when; its own clock may be ahead of that or behind.
        until: Instant,
        /// It was suspended.
        again: bool,
    },
    /// It leads for longer, until then.
    Confirmed(Instant),
    /// It is not confirmed.
    Unconfirmed,
    /// It is to give its leadership up.
    GivesUp,
    /// Its term is over.
    Lost(Loss),
    /// What only a leader may do has ended.
    Released,
    /// It calls the store.
    Asks(Op),
    /// It is answered.
    Hears(Op, Result<Reply, Failure>),
    /// A watch of it fires.
    Fired(String),
    /// What it asked on a connection that is gone reaches the store all the same.
    Late(Op, Result<Reply, Failure>),
}

impl Candidacy {
    /// What it is about.
    pub(super) const fn topic(&self) -> Topic {
        match self {
            Self::Starts | Self::Stops | Self::Stopped | Self::Way { .. } | Self::Deleted(_) => {
                Topic::Fate
            }
            Self::Leads { .. }
            | Self::Unconfirmed
            | Self::GivesUp
            | Self::Lost(_)
            | Self::Released => Topic::Votes,
            Self::Connected(_)
            | Self::Suspended
            | Self::Expired
            | Self::Ended(_)
            | Self::Made(_)
            | Self::Gone(_)
            | Self::Waits(_) => Topic::Phases,
            Self::Asks(Op::Ping) | Self::Hears(Op::Ping, _) | Self::Late(Op::Ping, _) => {
                Topic::Rest
            }
            Self::Late(..) => Topic::Phases,
            Self::Asks(_) | Self::Hears(..) | Self::Fired(_) => Topic::Messages,
            Self::Written(_) | Self::Confirmed(_) => Topic::Rest,
        }
    }

    /// The state that it has from here on, as a server's would be drawn; the outer one is none if it stays.
    pub(crate) const fn state(&self) -> Option<Option<ServerState>> {
        match self {
            Self::Starts | Self::Unconfirmed | Self::Lost(_) => Some(Some(ServerState::Looking)),
            Self::Waits(_) => Some(Some(ServerState::Following)),
            Self::Leads { .. } => Some(Some(ServerState::Leading)),
            Self::Stopped => Some(None),
            Self::Stops
            | Self::Way { .. }
            | Self::Connected(_)
            | Self::Suspended
            | Self::Expired
            | Self::Ended(_)
            | Self::Deleted(_)
            | Self::Made(_)
            | Self::Written(_)
            | Self::Gone(_)
            | Self::Confirmed(_)
            | Self::GivesUp
            | Self::Released
            | Self::Asks(_)
            | Self::Hears(..)
            | Self::Fired(_)
            | Self::Late(..) => None,
        }
    }

    /// Says it of this candidate.
    pub(super) fn say(&self, who: ServerId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starts => write!(f, "{who} starts"),
            Self::Stops => write!(f, "{who} is told to stop"),
            Self::Stopped => write!(f, "{who} has stopped"),
            Self::Way { open: false } => write!(f, "nothing passes between {who} and the store"),
            Self::Way { open: true } => write!(f, "all passes again between {who} and the store"),
            Self::Connected(session) => write!(f, "{who} is connected: session {session}"),
            Self::Suspended => write!(f, "{who} has lost its connection"),
            Self::Expired => write!(f, "{who} learns that its session is over"),
            Self::Ended(session) => write!(f, "the store ends session {session} of {who}"),
            Self::Deleted(name) => write!(f, "an operator deletes {} of {who}", Node(name)),
            Self::Made(name) => write!(f, "{who} has {}", Node(name)),
            Self::Written(name) => write!(f, "{who} has {} again", Node(name)),
            Self::Gone(name) => write!(f, "{who} has {} no more", Node(name)),
            Self::Waits(name) => write!(f, "{who} waits for {} to go", Node(name)),
            Self::Leads { token, until, again } => {
                let (again, until) = (if *again { " again" } else { "" }, millis(*until));
                write!(f, "{who} leads{again}, until {until}: token {token}")
            }
            Self::Confirmed(until) => write!(f, "{who} leads until {}", millis(*until)),
            Self::Unconfirmed => write!(f, "{who} is not confirmed"),
            Self::GivesUp => write!(f, "{who} is to give its leadership up"),
            Self::Lost(loss) => write!(f, "{who} leads no more: {loss}"),
            Self::Released => write!(f, "{who} has ended its guarded work"),
            Self::Asks(op) => write!(f, "{who} asks: {}", Asked(op)),
            Self::Hears(_, Err(failure)) => write!(f, "{who} hears: {failure}"),
            Self::Hears(op, Ok(Reply::Done)) => write!(f, "{who} hears: done, {}", Asked(op)),
            Self::Hears(_, Ok(Reply::Made(name, _))) => {
                write!(f, "{who} hears: {} is written", Node(name))
            }
            Self::Hears(op, Ok(Reply::Read(node))) => {
                write!(f, "{who} hears: done, {}", Asked(op))?;
                node.owner.map_or(Ok(()), |owner| write!(f, ", of session {owner}"))
            }
            Self::Hears(_, Ok(Reply::Listed(listed))) => {
                let mut nodes = listed.iter().map(|(name, _)| Node(name).to_string());
                let first = nodes.next().unwrap_or_else(|| "nothing".to_owned());
                write!(f, "{who} hears: there is {}", nodes.fold(first, |all, n| all + ", " + &n))
            }
            Self::Fired(name) => write!(f, "{who} hears: {} has changed", Node(name)),
            Self::Late(op, result) => {
                write!(f, "what {who} asked comes late: {}: ", Asked(op))?;
                match result {
                    Ok(_) => f.write_str("done"),
                    Err(failure) => write!(f, "{failure}"),
                }
            }
        }
    }
}

/// A node, by what tells it from others.
struct Node<'a>(&'a str);

impl fmt::Display for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name) = self;
        // The sign can be told from a dash by what stands before it.
        let counter = [11, 10].into_iter().find_map(|length| {
            let (head, tail) = name.split_at_checked(name.len().checked_sub(length)?)?;
            let whole = head.ends_with(['_', '-']) && (length == 10 || tail.starts_with('-'));
            tail.parse::<i32>().ok().filter(|_| whole)
        });
        match counter {
            Some(counter) => write!(f, "offer {counter}"),
            None if *name == "lease" => f.write_str("the lease"),
            None => write!(f, "key {name}"),
        }
    }
}

/// What is asked of the store.
struct Asked<'a>(&'a Op);

impl fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Op::Root => f.write_str("make the root"),
            Op::Create { numbered: true, .. } => f.write_str("make an offer"),
            Op::Create { name, .. } => write!(f, "make {}", Node(name)),
            Op::Write { name, .. } => write!(f, "write {}", Node(name)),
            Op::Delete { name, .. } => write!(f, "delete {}", Node(name)),
            Op::Read { name, watch: false } => write!(f, "read {}", Node(name)),
            Op::Read { name, watch: true } => write!(f, "read and watch {}", Node(name)),
            Op::List { fresh: false } => f.write_str("list"),
            Op::List { fresh: true } => f.write_str("list behind all that was done"),
            Op::Ping => f.write_str("be heard"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_told_by_its_counter_also_when_that_has_wrapped() {
        let told = |name: &str| Node(name).to_string();
        assert_eq!(told("n_0000000003"), "offer 3");
        assert_eq!(told("_c_0-1-latch-0000000010"), "offer 10");
        assert_eq!(told("n_-2147483648"), "offer -2147483648");
        assert_eq!(told("lease"), "the lease");
        assert_eq!(told("1001"), "key 1001");
    }
}

//! A server as its ports answer: its election port, as to a stranger, and its client port.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::membership::{Membership, Role};
use quorate_core::message::Notification;
use quorate_core::vote::ServerState;
use quorate_core::zxid::Zxid;

use crate::words::Words;

/// A server and what its ports said.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its id.
    pub id: ServerId,
    /// Whether it votes.
    pub role: Role,
    /// The election port; none if it was not looked at.
    pub election: Option<Port<Heard>>,
    /// The client port, likewise.
    pub client: Option<Port<Words>>,
    /// The quorum port, which is only asked whether it takes a connection, and only where the server says that it leads.
    pub quorum: Option<Port<()>>,
    /// The HTTP port of its admin server, likewise.
    pub http: Option<Port<Told>>,
}

/// A port, and what it said.
#[derive(Clone, Debug)]
pub struct Port<T> {
    /// Where it is, as it is written.
    pub address: HostPort,
    /// Where it answered who proved nothing, and without TLS; none if it did not, or where that was is not known.
    pub bare: Option<IpAddr>,
    /// What it said, or why it said nothing.
    pub answer: Result<T, Silence>,
}

impl<T> Port<T> {
    /// One that was not seen to answer who proved nothing.
    pub const fn new(address: HostPort, answer: Result<T, Silence>) -> Self {
        Self { address, bare: None, answer }
    }
}

/// What an admin server said.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// How the server is.
    pub words: Words,
    /// To which members it has no link for elections, and why its last dial to each came to nothing: only servers of ours
    /// tell.
    pub unreached: Vec<(ServerId, String)>,
    /// Its links with other members whose keys wear, likewise.
    pub wearing: Vec<Wearing>,
    /// The names of the secrets among the properties of its JVM that it shows: their values are kept nowhere.
    pub secrets: Vec<String>,
}

/// A link with another member over TLS 1.2, which is made anew before its keys are worn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wearing {
    /// The other member.
    pub peer: ServerId,
    /// What it is for, as the server calls it: `election` or `quorum`.
    pub plane: &'static str,
    /// How many records of TLS have passed.
    pub records: u64,
    /// How many may.
    pub records_max: u64,
    /// For how long it has been up.
    pub age: Duration,
}

/// What an election port said.
#[derive(Clone, Debug)]
pub struct Heard {
    /// Its notification.
    pub notification: Notification,
    /// The configuration as that server believes it, if it can be read.
    pub membership: Option<Membership>,
}

impl Heard {
    /// Reads the configuration of a notification.
    pub fn new(notification: Notification) -> Self {
        let membership = Membership::parse(&notification.config).ok();
        Self { notification, membership }
    }

    /// Its state.
    pub fn state(&self) -> ServerState {
        self.notification.standing.state
    }

    /// The server that it votes for, or follows.
    pub fn leader(&self) -> Option<ServerId> {
        Some(self.notification.standing.vote.leader).filter(|id| id.0 != i64::MIN)
    }

    /// The epoch of its vote.
    pub fn epoch(&self) -> Option<i64> {
        Some(self.notification.standing.vote.peer_epoch.0).filter(|epoch| *epoch != i64::MIN)
    }

    /// Its round.
    pub fn round(&self) -> i64 {
        self.notification.standing.round.0
    }
}

/// Why a port said nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Nothing listens there.
    Refused,
    /// The connection was not made in time: packets are dropped on the way.
    Filtered,
    /// There is no way to the address.
    NoRoute,
    /// The name has no address.
    Unresolved(String),
    /// The connection was made, and nothing came.
    NoAnswer,
    /// The other end closed the connection without a word.
    HungUp,
    /// It speaks TLS, and it was not asked through TLS.
    Tls,
    /// It speaks TLS, and told nothing to who came through it: why.
    Shut(String),
    /// What came is no answer.
    Strange(String),
    /// Something else.
    Other(String),
}

impl Silence {
    /// What an error of a connection means.
    pub fn of(error: &io::Error) -> Self {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the list of the system has no end")]
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::TimedOut => Self::Filtered,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Self::NoRoute,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => Self::HungUp,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("connection refused"),
            Self::Filtered => f.write_str("no connection in time"),
            Self::NoRoute => f.write_str("no route to the host"),
            Self::Unresolved(why) => write!(f, "the name has no address: {why}"),
            Self::NoAnswer => f.write_str("connected, and no answer in time"),
            Self::Tls => f.write_str("it speaks TLS; give --tls"),
            Self::HungUp => f.write_str("it closed the connection without an answer"),
            Self::Strange(what) => write!(f, "what it sent is no answer: {what}"),
            Self::Shut(why) | Self::Other(why) => f.write_str(why),
        }
    }
}

impl Member {
    /// What its election port said.
    pub fn heard(&self) -> Option<&Heard> {
        self.election.as_ref()?.answer.as_ref().ok()
    }

    /// What its client port said.
    pub fn client_words(&self) -> Option<&Words> {
        self.client.as_ref()?.answer.as_ref().ok()
    }

    /// What its HTTP port said.
    pub fn told(&self) -> Option<&Told> {
        self.http.as_ref()?.answer.as_ref().ok()
    }

    /// What its client port said of the server; where that says nothing of it, what its HTTP port did.
    pub fn words(&self) -> Option<&Words> {
        let told = self.told().map(|told| &told.words);
        let client = self.client_words();
        client.filter(|words| words.version.is_some() || told.is_none()).or(told)
    }

    /// Why its election port said nothing.
    pub fn silence(&self) -> Option<&Silence> {
        self.election.as_ref()?.answer.as_ref().err()
    }

    /// Whether any port said anything.
    pub fn answers(&self) -> bool {
        self.heard().is_some() || self.words().is_some() || self.told().is_some()
    }

    /// Whether it says that it leads.
    pub fn leads(&self) -> bool {
        match (self.heard(), self.words()) {
            (Some(heard), _) => heard.state() == ServerState::Leading,
            (None, Some(words)) => words.mode.as_deref() == Some("leader"),
            (None, None) => false,
        }
    }

    /// Whether it says that it does not serve.
    pub fn is_not_serving(&self) -> bool {
        self.words().is_some_and(|words| words.is_not_serving)
    }

    /// Whether it looks for a leader.
    pub fn looks(&self) -> bool {
        self.heard().is_some_and(|heard| heard.state() == ServerState::Looking)
    }

    /// Whether it says that it follows `leader`, or is it.
    pub fn follows_or_is(&self, leader: ServerId) -> bool {
        match self.heard() {
            Some(heard) => heard.state() != ServerState::Looking && heard.leader() == Some(leader),
            None => self.words().is_some_and(|words| {
                self.id == leader && words.mode.as_deref() == Some("leader")
                    || matches!(words.mode.as_deref(), Some("follower" | "observer"))
            }),
        }
    }

    /// The last transaction that it has, if its client port tells.
    pub fn zxid(&self) -> Option<Zxid> {
        self.words()?.zxid
    }
}

//! A login between servers, packet by packet: what is to be read and written, and whether there is a link in the end.
//!
//! ```text
//!   dialler                              acceptor
//!   in progress, empty ────────────────►
//!                      ◄──────────────── in progress, challenge
//!   in progress, response ─────────────►
//!                      ◄──────────────── success, proof; or error
//! ```
//!
//! The driver, which carries the bytes, asks for the next [`Move`] until there is an outcome. No more packets than
//! these pass; what comes behind them, or in their place, is left where it is.
//!
//! In the Java code: `SaslQuorumAuthServer`, `SaslQuorumAuthLearner`.

use alloc::string::String;

use bytes::{Bytes, BytesMut};

use crate::acceptor::{Acceptor, Reply};
use crate::dialler::{Dialler, Turn};
use crate::nonces::Nonce;
use crate::packet::{Packet, PacketError, Status};
use crate::refused::Refused;
use crate::service::SERVERS;
use crate::users::{Credentials, Users};

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move<T> {
    /// Read more, behind what was received; or say that there is [no more](Accepting::ended).
    Read,
    /// Write this, and ask again.
    Write(Bytes),
    /// The login is over.
    Over(Result<T, Failure>),
}

/// Why a login between servers has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The other side begins with something that is no login.
    #[error("the peer does not speak SASL")]
    Absent,
    /// The other side has closed before it said anything: a server that does not speak SASL does so.
    #[error("the peer closed without a word: perhaps it does not speak SASL")]
    Unanswered,
    /// The other side has closed in the middle of it.
    #[error("the peer closed in the middle of the login")]
    Closed,
    /// The other side does not let us in.
    #[error("the peer refused: the user or the password is wrong, or the peer has neither")]
    ByPeer,
    /// What came is no packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// A token is refused.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl Failure {
    /// In a word, which stays.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Absent | Self::Unanswered => "absent",
            Self::Closed => "closed",
            Self::ByPeer => "refused-by-peer",
            Self::Packet(_) => "malformed",
            Self::Refused(Refused::Credentials) => "credentials",
            Self::Refused(Refused::Nonce) => "nonce",
            Self::Refused(Refused::Unproved) => "unproved",
            Self::Refused(_) => "malformed",
        }
    }
}

/// How a connection is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// As this user.
    As(String),
    /// Without a login, which is not required.
    Without,
    /// Though its login has failed: none is required. ZooKeeper has it so, for an ensemble whose servers get SASL one after
    /// the other.
    Despite(Failure),
}

/// The side that was dialled.
#[derive(Debug)]
pub struct Accepting {
    acceptor: Acceptor,
    required: bool,
    /// It has heard a packet.
    begun: bool,
    /// What is over when what was to be written is.
    outcome: Option<Result<Admitted, Failure>>,
}

impl Accepting {
    /// A connection that was accepted. Unless a login is required (`quorum.auth.serverRequireSasl`), every one is let in.
    #[must_use]
    pub const fn new(nonce: Nonce, required: bool) -> Self {
        let acceptor = Acceptor::new(SERVERS, nonce);
        Self { acceptor, required, begun: false, outcome: None }
    }

    /// What to do next, with what was received so far and not taken.
    pub fn next(&mut self, received: &mut BytesMut, users: &Users) -> Move<Admitted> {
        if let Some(outcome) = self.outcome.take() {
            return Move::Over(outcome);
        }
        let packet = match Packet::take(received) {
            Ok(Some(packet)) => packet,
            Ok(None) => return Move::Read,
            Err(PacketError::Magic) if !self.begun => {
                return Move::Over(self.without());
            }
            Err(error) => return self.fail(error.into()),
        };
        self.begun = true;
        let (status, token) = match self.acceptor.step(&packet.token, users) {
            Ok(Reply::Challenge(token)) => (Status::InProgress, token),
            Ok(Reply::Done { user, token }) => {
                self.outcome = Some(Ok(Admitted::As(user)));
                (Status::Success, token)
            }
            Err(refused) => return self.fail(refused.into()),
        };
        Move::Write(Packet { status, token: token.into() }.encode())
    }

    /// The outcome where there is nothing more to read.
    ///
    /// # Errors
    ///
    /// If a login is required.
    pub fn ended(&self) -> Result<Admitted, Failure> {
        if self.begun { self.settle(Failure::Closed) } else { self.without() }
    }

    fn without(&self) -> Result<Admitted, Failure> {
        if self.required { Err(Failure::Absent) } else { Ok(Admitted::Without) }
    }

    fn settle(&self, failure: Failure) -> Result<Admitted, Failure> {
        if self.required { Err(failure) } else { Ok(Admitted::Despite(failure)) }
    }

    fn fail(&mut self, failure: Failure) -> Move<Admitted> {
        self.outcome = Some(self.settle(failure));
        Move::Write(Packet { status: Status::Error, token: Bytes::new() }.encode())
    }
}

/// The side that dials.
#[derive(Debug)]
pub struct Dialling {
    dialler: Dialler,
    begun: bool,
    heard: bool,
}

impl Dialling {
    /// A connection that was dialled.
    #[must_use]
    pub const fn new(credentials: Credentials, nonce: Nonce) -> Self {
        Self { dialler: Dialler::new(SERVERS, credentials, nonce), begun: false, heard: false }
    }

    /// What to do next, with what was received so far and not taken.
    pub fn next(&mut self, received: &mut BytesMut) -> Move<()> {
        if !self.begun {
            self.begun = true;
            return in_progress(Bytes::new());
        }
        let Packet { status, token } = match Packet::take(received) {
            Ok(Some(packet)) => packet,
            Ok(None) => return Move::Read,
            Err(PacketError::Magic) if !self.heard => return Move::Over(Err(Failure::Absent)),
            Err(error) => return Move::Over(Err(error.into())),
        };
        self.heard = true;
        match (status, self.dialler.step(&token)) {
            (Status::Error, _) => Move::Over(Err(Failure::ByPeer)),
            (Status::InProgress, Ok(Turn::Send(token))) => in_progress(token.into()),
            (Status::Success, Ok(Turn::Done)) => Move::Over(Ok(())),
            (Status::Success, Ok(Turn::Send(_)) | Err(_)) => {
                Move::Over(Err(Refused::Unproved.into()))
            }
            (Status::InProgress, Ok(Turn::Done)) => Move::Over(Err(Refused::OutOfTurn.into())),
            (Status::InProgress, Err(refused)) => Move::Over(Err(refused.into())),
        }
    }

    /// Why there is no link where there is nothing more to read.
    #[must_use]
    pub const fn ended(&self) -> Failure {
        if self.heard { Failure::Closed } else { Failure::Unanswered }
    }
}

fn in_progress<T>(token: Bytes) -> Move<T> {
    Move::Write(Packet { status: Status::InProgress, token }.encode())
}

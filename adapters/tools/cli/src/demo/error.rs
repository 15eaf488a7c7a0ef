//! Why a demo has failed, and what it was waiting for.

use std::fmt;

use thiserror::Error;

use super::audit::{AuditError, Verdict};
use super::connection::CatchUpError;
use super::ensemble::{KillError, SilenceError, StartError, TransferError};
use super::inject::InjectError;
use super::sessions::{SessionsError, SessionsSummary};

/// Why a demo has failed.
#[derive(Debug, Error)]
pub(super) enum DemoError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("servers {0:?} do not start")]
    StartLate(Vec<i64>),
    #[error(transparent)]
    Kill(#[from] KillError),
    #[error("server {0} does not die")]
    KillLate(i64),
    #[error(transparent)]
    Silence(#[from] SilenceError),
    #[error(transparent)]
    Transfer(#[from] TransferError),
    #[error("server {0} does not let go")]
    TransferLate(i64),
    #[error("there is no other server to lead")]
    NoSuccessor,
    #[error("server {leader} leads, and not server {wanted}")]
    WrongSuccessor { leader: i64, wanted: i64 },
    #[error("waited {seconds:.1} s for {awaited}")]
    Late { seconds: f64, awaited: Awaited },
    #[error("all servers have ended; waited for {0}")]
    AllEnded(Awaited),
    #[error("server {server} has ended by itself: {last}")]
    Ended { server: i64, last: String },
    #[error("{changes} changes of server {server} were lost")]
    ChangesLost { server: i64, changes: u64 },
    #[error("{0} epoch(s) had two leaders")]
    TwoLeaders(usize),
    #[error("the clients' last writes are not decided")]
    Undecided,
    #[error("the clients of the demo are not set up: {0}")]
    Sessions(#[from] SessionsError),
    #[error("the clients do not come to an end")]
    SessionsLate,
    #[error(
        "{} session(s) lost, {} ephemeral node(s) lost, {} watch(es) missed",
        .0.sessions_lost, .0.ephemerals_lost, .0.watches_missed
    )]
    Forgotten(SessionsSummary),
    #[error("server {0} does not catch up")]
    CatchUpLate(i64),
    #[error("server {server} does not catch up: {source}")]
    CatchUp { server: i64, source: CatchUpError },
    #[error("no loss can be injected: {0}")]
    Inject(#[from] InjectError),
    #[error("the logs cannot be compared: {0}")]
    Audit(#[from] AuditError),
    #[error(
        "{} acknowledged write(s) lost, {} carried out more than once, {} server(s) with another history",
        .0.lost, .0.duplicated, .0.diverged
    )]
    Unsound(Verdict),
}

/// What the demo waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    FirstLeader,
    NextLeader,
    Acknowledgements,
    Sessions,
    Return(i64),
    Serving { servers: Vec<i64>, leader: i64, epoch: i64 },
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstLeader => f.write_str("a first leader"),
            Self::NextLeader => f.write_str("the next leader"),
            Self::Acknowledgements => f.write_str("acknowledgements"),
            Self::Sessions => f.write_str("the clients' sessions"),
            Self::Return(server) => write!(f, "the return of server {server}"),
            Self::Serving { servers, leader, epoch } => {
                write!(f, "servers {servers:?} to serve under server {leader} in epoch {epoch}")
            }
        }
    }
}

//! Asks one server on its election port, and waits for its notification.
//!
//! ```text
//!   probe ── introduction, a notification without a vote ──► server
//!   probe ◄── a notification: state, vote, round, epoch, configuration ── server
//! ```

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::generation_message::{Body, Claim, Generation, GenerationMessage};
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::message::{Introduction, Mark, Notification};
use quorate_tokio::core::vote::{Round, ServerState, Standing, Vote};
use quorate_tokio::core::wire::{self, DecodeError};
use quorate_tokio::core::zxid::{Epoch, Zxid};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinError;
use tokio::time::timeout_at;

/// The answer of a server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) notification: Notification,
    pub(crate) remote: IpAddr,
    pub(crate) took: Duration,
}

/// The election that a server takes part in, and so the codec of its election port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Fast,
    Generation,
}

/// Why a server has not answered.
#[derive(Debug, Error)]
pub(crate) enum AskError {
    #[error("cannot resolve {host}: {source}")]
    Resolve { host: String, source: io::Error },
    #[error("{0} has no address")]
    NoAddress(String),
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("no answer in {} ms (connecting)", .0.as_millis())]
    ConnectLate(Duration),
    #[error("the connection broke: {0}")]
    Write(io::Error),
    /// It ended the connection instead of an answer.
    #[error("the connection broke: {0}")]
    Read(io::Error),
    /// So did this one.
    #[error("it hung up without an answer; is this the election port?")]
    HungUp,
    #[error("no answer in {} ms", .0.as_millis())]
    Late(Duration),
    #[error("what it sent is no notification: {0}")]
    Garbled(DecodeError),
    #[error(transparent)]
    Task(#[from] JoinError),
}

/// Asks one server as a member of a fast leader election, as ZooKeeper's servers understand it; if it hangs up on that,
/// as a member of an election by generation.
pub(crate) async fn ask(
    at: HostPort,
    id: ServerId,
    patience: Duration,
) -> Result<Answer, AskError> {
    match ask_by(Protocol::Fast, at.clone(), id, patience).await {
        Err(error @ (AskError::Read(_) | AskError::HungUp)) => {
            ask_by(Protocol::Generation, at, id, patience).await.map_err(|_| error)
        }
        answered => answered,
    }
}

async fn ask_by(
    protocol: Protocol,
    at: HostPort,
    id: ServerId,
    patience: Duration,
) -> Result<Answer, AskError> {
    let begun = Instant::now();
    let by = tokio::time::Instant::from_std(begun + patience);
    let connected = timeout_at(by, connect(&at)).await;
    let mut stream = connected.map_err(|_| AskError::ConnectLate(patience))??;
    let remote = stream.peer_addr().map_err(AskError::Write)?.ip();

    let addresses = vec![HostPort { host: "127.0.0.1".to_owned(), port: 1 }];
    let introduction = Introduction { id, addresses };
    let mut frame = BytesMut::new();
    let introduction = match protocol {
        Protocol::Fast => {
            wire::encode_notification(&question(), &mut frame);
            wire::encode_introduction(&introduction)
        }
        Protocol::Generation => {
            wire::encode_generation(&question_by_letter(id), &mut frame);
            wire::encode_generation_introduction(&introduction)
        }
    };
    stream.write_all(&introduction).await.map_err(AskError::Write)?;
    stream.write_all(&frame).await.map_err(AskError::Write)?;

    let mut buffer = BytesMut::new();
    let mut last: Option<(Notification, Duration)> = None;
    loop {
        loop {
            let taken = match protocol {
                Protocol::Fast => wire::take_notification(&mut buffer),
                Protocol::Generation => wire::take_generation(&mut buffer).map(|l| l.map(told)),
            };
            match taken {
                Ok(Some(notification)) => last = Some((notification, begun.elapsed())),
                Ok(None) => break,
                Err(error) if error.is_fatal() => {
                    return Err(AskError::Garbled(error));
                }
                Err(_) => {}
            }
        }
        let until = if last.is_some() { by.min(tokio::time::Instant::now() + SILENCE) } else { by };
        match timeout_at(until, stream.read_buf(&mut buffer)).await {
            Ok(Ok(read)) if read > 0 => {}
            // The end, or silence: the last notification is its answer.
            ended => {
                return match (last, ended) {
                    (Some((notification, took)), _) => Ok(Answer { notification, remote, took }),
                    (None, Ok(Ok(_))) => Err(AskError::HungUp),
                    (None, Ok(Err(error))) => Err(AskError::Read(error)),
                    (None, Err(_)) => Err(AskError::Late(patience)),
                };
            }
        }
    }
}

async fn connect(at: &HostPort) -> Result<TcpStream, AskError> {
    let addresses = lookup_host((at.host.as_str(), at.port))
        .await
        .map_err(|source| AskError::Resolve { host: at.host.clone(), source })?;
    let mut why = AskError::NoAddress(at.host.clone());
    for address in addresses {
        // An address that drops all packets takes the whole time of this server.
        match TcpStream::connect(address).await {
            Ok(stream) => {
                drop(stream.set_nodelay(true));
                return Ok(stream);
            }
            Err(error) => why = AskError::Connect(error),
        }
    }
    Err(why)
}

/// The notification of a server that looks for a leader, in a round before the first and without a candidate.
fn question() -> Notification {
    Notification {
        standing: Standing { state: ServerState::Looking, vote: Vote::ABSTENTION, round: Round(0) },
        version: Notification::VERSION,
        config: Bytes::from_static(CONFIG.as_bytes()),
        mark: Mark::NONE,
    }
}

/// The same where servers elect by generation.
fn question_by_letter(id: ServerId) -> GenerationMessage {
    GenerationMessage {
        from: id,
        generation: Generation(0),
        claim: Claim { current_epoch: Epoch::NONE, last: Zxid::NONE },
        body: Body::Heartbeat { leader: ServerId::NONE, beat: 0 },
        config: Bytes::new(),
        knows_probes: false,
    }
}

/// What a message of an election by generation tells of its sender, as a notification.
fn told(message: GenerationMessage) -> Notification {
    let GenerationMessage { from, generation, claim, body, config, knows_probes: _ } = message;
    let leader = match body {
        Body::Heartbeat { leader, .. } => leader,
        Body::VoteRequest(_) | Body::VoteResponse { .. } => ServerId::NONE,
    };
    let state = match leader {
        ServerId::NONE => ServerState::Looking,
        leader if leader == from => ServerState::Leading,
        _ => ServerState::Following,
    };
    let vote = Vote { peer_epoch: claim.current_epoch, zxid: claim.last, leader };
    let standing = Standing { state, vote, round: Round(generation.0) };
    Notification { standing, version: Notification::VERSION, config, mark: Mark::NONE }
}

/// A configuration older than any, so that no server takes it over. Three voters, since Java servers
/// complain about fewer.
const CONFIG: &str = "server.1=127.0.0.1:1:2:participant\nserver.2=127.0.0.1:3:4:participant\n\
                      server.3=127.0.0.1:5:6:participant\nversion=0";
/// A server may first send an older vote, then its answer.
const SILENCE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use quorate_tokio::core::membership::Membership;

    use super::*;

    #[test]
    fn what_we_send_is_well_formed() {
        assert_eq!(Membership::parse(CONFIG).unwrap().participants().count(), 3);
    }
}

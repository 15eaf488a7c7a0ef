//! Asks one server on its election port, and waits for its notification.
//!
//! ```text
//!   probe ── introduction, a notification without a vote ──► server
//!   probe ◄── a notification: state, vote, round, epoch, configuration ── server
//! ```
//!
//! A server that hangs up on that may speak TLS: whether it does it says with an alert, to a handshake that is none.

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
use tokio::time::{timeout, timeout_at};

use crate::peer_tls::{PeerTls, Stream};

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
    /// It was asked without.
    #[error("it speaks TLS; give --tls")]
    Tls,
    /// No handshake, or one with a certificate that is not trusted.
    #[error("through TLS: {0}")]
    Handshake(String),
    /// It ended the connection behind the handshake.
    #[error(
        "through TLS: it let the probe not in, which needs a certificate that names no member: {0}"
    )]
    NotLetIn(String),
    #[error("what it sent is no notification: {0}")]
    Garbled(DecodeError),
    #[error(transparent)]
    Task(#[from] JoinError),
}

/// What a server has said, and the certificates that it showed, if it was asked through TLS: its own first, in DER.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) answer: Result<Answer, AskError>,
    pub(crate) served: Vec<Vec<u8>>,
}

/// Asks one server, and where that speaks TLS through it, if there is what it takes.
pub(crate) async fn ask(
    at: HostPort,
    id: ServerId,
    patience: Duration,
    tls: Option<PeerTls>,
) -> Asked {
    match (ask_plain(at.clone(), id, patience).await, tls) {
        (Err(AskError::Tls), Some(tls)) => ask_through(at, id, patience, &tls).await,
        (answer, _) => Asked { answer, served: Vec::new() },
    }
}

/// Asks one server as a member of a fast leader election, as ZooKeeper's servers understand it; if it hangs up on that,
/// as a member of an election by generation.
async fn ask_plain(at: HostPort, id: ServerId, patience: Duration) -> Result<Answer, AskError> {
    let answered = match ask_by(Protocol::Fast, &at, id, patience, None).await {
        (Err(error @ (AskError::Write(_) | AskError::Read(_) | AskError::HungUp)), _) => {
            let again = ask_by(Protocol::Generation, &at, id, patience, None).await;
            again.0.map_err(|_| error)
        }
        (answered, _) => answered,
    };
    match answered {
        Err(AskError::Write(_) | AskError::Read(_) | AskError::HungUp | AskError::Garbled(_))
            if speaks_tls(&at, patience).await =>
        {
            Err(AskError::Tls)
        }
        answered => answered,
    }
}

/// The same through TLS.
async fn ask_through(at: HostPort, id: ServerId, patience: Duration, tls: &PeerTls) -> Asked {
    let id = tls.id(id);
    let (answer, served) = ask_by(Protocol::Fast, &at, id, patience, Some(tls)).await;
    let answer = match answer {
        Err(error @ (AskError::Read(_) | AskError::Write(_) | AskError::HungUp)) => {
            let again = ask_by(Protocol::Generation, &at, id, patience, Some(tls)).await;
            again.0.map_err(|_| AskError::NotLetIn(end(&error)))
        }
        answer => answer,
    };
    Asked { answer, served }
}

/// How a server ended the connection behind the handshake.
fn end(error: &AskError) -> String {
    if let AskError::Read(error) | AskError::Write(error) = error {
        if error.kind() != io::ErrorKind::UnexpectedEof {
            return error.to_string();
        }
    }
    "it hung up".to_owned()
}

/// The certificates that a port shows, without a word behind the handshake.
pub(crate) async fn look(at: &HostPort, patience: Duration, tls: &PeerTls) -> Vec<Vec<u8>> {
    let shown = async {
        let stream = connect(at).await.ok()?;
        tls.shake(stream).await.ok().map(|(_, shown)| shown)
    };
    timeout(patience, shown).await.ok().flatten().unwrap_or_default()
}

/// Whether a port speaks TLS: it answers a ClientHello without a body by an alert (RFC 8446, 6). Two bytes of it are read.
pub(crate) async fn speaks_tls(at: &HostPort, patience: Duration) -> bool {
    let look = async {
        let mut stream = connect(at).await.ok()?;
        stream.write_all(&EMPTY_HELLO).await.ok()?;
        let mut first = [0; 2];
        stream.read_exact(&mut first).await.ok()?;
        Some(first == ALERT)
    };
    timeout(patience.min(ALERT_TIME), look).await.ok().flatten().unwrap_or(false)
}

/// A record of a handshake, in it a ClientHello of no length.
const EMPTY_HELLO: [u8; 9] = [0x16, 3, 1, 0, 4, 1, 0, 0, 0];
/// With what a record with an alert begins.
const ALERT: [u8; 2] = [0x15, 3];
/// Who speaks TLS says so at once.
const ALERT_TIME: Duration = Duration::from_secs(1);

/// One connection: the answer, and the certificates that were shown.
async fn ask_by(
    protocol: Protocol,
    at: &HostPort,
    id: ServerId,
    patience: Duration,
    tls: Option<&PeerTls>,
) -> (Result<Answer, AskError>, Vec<Vec<u8>>) {
    let begun = Instant::now();
    let by = tokio::time::Instant::from_std(begun + patience);
    let connected = timeout_at(by, connect(at)).await;
    let stream = match connected.unwrap_or(Err(AskError::ConnectLate(patience))) {
        Ok(stream) => stream,
        Err(error) => return (Err(error), Vec::new()),
    };
    let remote = match stream.peer_addr() {
        Ok(remote) => remote.ip(),
        Err(error) => return (Err(AskError::Write(error)), Vec::new()),
    };
    let (stream, shown): (Box<dyn Stream>, _) = match tls {
        None => (Box::new(stream), Vec::new()),
        Some(tls) => match timeout_at(by, tls.shake(stream)).await {
            Ok(Ok((stream, shown))) => (stream, shown),
            Ok(Err(why)) => return (Err(AskError::Handshake(why)), Vec::new()),
            Err(_) => return (Err(AskError::Late(patience)), Vec::new()),
        },
    };
    if let Some(Err(why)) = tls.map(|tls| tls.judge(&shown)) {
        return (Err(AskError::Handshake(why)), shown);
    }
    let asked = Question { protocol, id, remote, begun, patience };
    (asked.put(stream).await, shown)
}

/// What is asked on a connection.
struct Question {
    protocol: Protocol,
    id: ServerId,
    remote: IpAddr,
    begun: Instant,
    patience: Duration,
}

impl Question {
    async fn put(self, mut stream: Box<dyn Stream>) -> Result<Answer, AskError> {
        let Self { protocol, id, remote, begun, patience } = self;
        let by = tokio::time::Instant::from_std(begun + patience);
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
        stream.flush().await.map_err(AskError::Write)?;

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
            let until =
                if last.is_some() { by.min(tokio::time::Instant::now() + SILENCE) } else { by };
            match timeout_at(until, stream.read_buf(&mut buffer)).await {
                Ok(Ok(read)) if read > 0 => {}
                // The end, or silence: the last notification is its answer.
                ended => {
                    return match (last, ended) {
                        (Some((notification, took)), _) => {
                            Ok(Answer { notification, remote, took })
                        }
                        (None, Ok(Ok(_))) => Err(AskError::HungUp),
                        (None, Ok(Err(error))) => Err(AskError::Read(error)),
                        (None, Err(_)) => Err(AskError::Late(patience)),
                    };
                }
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

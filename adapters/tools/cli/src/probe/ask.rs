//! Asking one server.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::ballot::{Body, Claim, Generation, Letter};
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::message::{Introduction, Mark, Notification};
use quorate_tokio::core::vote::{Round, ServerState, Standing, Vote};
use quorate_tokio::core::wire;
use quorate_tokio::core::zxid::{Epoch, Zxid};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout_at;

/// What a server said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) notification: Notification,
    pub(super) remote: IpAddr,
    pub(super) took: Duration,
}

/// How servers elect, and so what they understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tongue {
    Fast,
    Generation,
}

/// Asks one server: as ZooKeeper's servers understand it, and if it hangs up on that, as those do that elect by
/// generation.
pub(super) async fn ask(at: HostPort, id: ServerId, patience: Duration) -> Result<Answer, String> {
    match ask_in(Tongue::Fast, at.clone(), id, patience).await {
        Err(Unheard::HungUp(error)) => {
            ask_in(Tongue::Generation, at, id, patience).await.map_err(|_| error)
        }
        Err(Unheard::Silent(error)) => Err(error),
        Ok(answer) => Ok(answer),
    }
}

/// Why there is no answer.
#[derive(Debug)]
enum Unheard {
    /// It ended the connection.
    HungUp(String),
    /// It cannot be reached, says nothing, or what nobody understands.
    Silent(String),
}

impl From<String> for Unheard {
    fn from(error: String) -> Self {
        Self::Silent(error)
    }
}

async fn ask_in(
    tongue: Tongue,
    at: HostPort,
    id: ServerId,
    patience: Duration,
) -> Result<Answer, Unheard> {
    let begun = Instant::now();
    let by = tokio::time::Instant::from_std(begun + patience);
    let late = || format!("no answer in {} ms", patience.as_millis());
    let connected = timeout_at(by, connect(&at)).await;
    let mut stream = connected.map_err(|_| format!("{} (connecting)", late()))??;
    let broken = |error: io::Error| format!("the connection broke: {error}");
    let remote = stream.peer_addr().map_err(broken)?.ip();

    let addresses = vec![HostPort { host: "127.0.0.1".to_owned(), port: 1 }];
    let introduction = Introduction { id, addresses };
    let mut frame = BytesMut::new();
    let introduction = match tongue {
        Tongue::Fast => {
            wire::encode_notification(&question(), &mut frame);
            wire::encode_introduction(&introduction)
        }
        Tongue::Generation => {
            wire::encode_letter(&question_by_letter(id), &mut frame);
            wire::encode_letter_introduction(&introduction)
        }
    };
    stream.write_all(&introduction).await.map_err(broken)?;
    stream.write_all(&frame).await.map_err(broken)?;

    let mut buffer = BytesMut::new();
    let mut last: Option<(Notification, Duration)> = None;
    loop {
        loop {
            let taken = match tongue {
                Tongue::Fast => wire::take_notification(&mut buffer),
                Tongue::Generation => wire::take_letter(&mut buffer).map(|l| l.map(told)),
            };
            match taken {
                Ok(Some(notification)) => last = Some((notification, begun.elapsed())),
                Ok(None) => break,
                Err(error) if error.is_fatal() => {
                    return Err(format!("what it sent is no notification: {error}").into());
                }
                Err(_) => {}
            }
        }
        let until = if last.is_some() { by.min(tokio::time::Instant::now() + SILENCE) } else { by };
        match timeout_at(until, stream.read_buf(&mut buffer)).await {
            Ok(Ok(read)) if read > 0 => {}
            // The end, or silence: what it said last is its answer.
            ended => {
                return match (last, ended) {
                    (Some((notification, took)), _) => Ok(Answer { notification, remote, took }),
                    (None, Ok(Ok(_))) => Err(Unheard::HungUp(
                        "it hung up without an answer; is this the election port?".to_owned(),
                    )),
                    (None, Ok(Err(error))) => Err(Unheard::HungUp(broken(error))),
                    (None, Err(_)) => Err(late().into()),
                };
            }
        }
    }
}

async fn connect(at: &HostPort) -> Result<TcpStream, String> {
    let addresses = lookup_host((at.host.as_str(), at.port))
        .await
        .map_err(|error| format!("cannot resolve {}: {error}", at.host))?;
    let mut why = format!("{} has no address", at.host);
    for address in addresses {
        // Half of it may be spent on an address that swallows everything.
        match TcpStream::connect(address).await {
            Ok(stream) => {
                drop(stream.set_nodelay(true));
                return Ok(stream);
            }
            Err(error) => why = format!("cannot connect: {error}"),
        }
    }
    Err(why)
}

/// We look for a leader, in a round before the first, and propose nobody.
fn question() -> Notification {
    Notification {
        standing: Standing { state: ServerState::Looking, vote: Vote::ABSTENTION, round: Round(0) },
        version: Notification::VERSION,
        config: Bytes::from_static(CONFIG.as_bytes()),
        mark: Mark::NONE,
    }
}

/// The same where servers elect by generation.
fn question_by_letter(id: ServerId) -> Letter {
    Letter {
        from: id,
        generation: Generation(0),
        claim: Claim { current_epoch: Epoch::NONE, last: Zxid::NONE },
        body: Body::Standing { leader: ServerId::NOBODY, beat: 0 },
        config: Bytes::new(),
        knows_probes: false,
    }
}

/// What a letter tells of its sender, in the words of the other election.
fn told(letter: Letter) -> Notification {
    let Letter { from, generation, claim, body, config, knows_probes: _ } = letter;
    let leader = match body {
        Body::Standing { leader, .. } => leader,
        Body::Request(_) | Body::Answer { .. } => ServerId::NOBODY,
    };
    let state = match leader {
        ServerId::NOBODY => ServerState::Looking,
        leader if leader == from => ServerState::Leading,
        _ => ServerState::Following,
    };
    let vote = Vote { peer_epoch: claim.current_epoch, zxid: claim.last, leader };
    let standing = Standing { state, vote, round: Round(generation.0) };
    Notification { standing, version: Notification::VERSION, config, mark: Mark::NONE }
}

/// Nobody's configuration, older than any: nobody takes it over. Three voters, since Java servers
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

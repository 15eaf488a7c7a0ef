//! The client port of `quorate serve`, which answers ZooKeeper's four-letter words.
//!
//! ```text
//!   connection: four bytes ──► answers: which word, and may it be answered? ──► text: the lines
//! ```
//!
//! Monitoring that knows ZooKeeper works unchanged: same words, same lines, same whitelist
//! (`4lw.commands.whitelist`), same sentence while the server has no leader. Three differences: without
//! a whitelist all five words are answered, not `srvr` alone, since an operator who opens this port wants
//! nothing else of it; `mntr` answers also without a leader, so that monitoring sees a server that looks for
//! one; and lines whose value is not known here are left out rather than made up.
//!
//! Clients of ZooKeeper are turned away with a line in the log. A connection may take a few seconds and
//! there may be [`CONNECTIONS_MAX`]; one more is closed at once.

mod answers;
mod text;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quorate_tokio::core::address::HostPort;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use self::answers::CONNECTIONS_MAX;
pub(crate) use self::answers::Responder;
use crate::failure::Failure;

/// How long a connection may take to say its word, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for the client to close, so that it gets the answer whole.
const GOODBYE: Duration = Duration::from_secs(1);

/// The open client port.
#[derive(Debug)]
pub(crate) struct ClientPort {
    listener: TcpListener,
}

impl ClientPort {
    /// Opens it.
    pub(crate) async fn open(at: &HostPort) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::failed(format!("cannot listen at {at} (client port): {error}"))
        };
        let listener = if at.is_wildcard() {
            // For IPv4 too, where the system has both.
            match TcpListener::bind(("::", at.port)).await {
                Ok(listener) => listener,
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    return Err(refused(error));
                }
                Err(_) => TcpListener::bind(("0.0.0.0", at.port)).await.map_err(refused)?,
            }
        } else {
            TcpListener::bind((at.host.as_str(), at.port)).await.map_err(refused)?
        };
        Ok(Self { listener })
    }

    /// Answers until the process ends.
    pub(crate) async fn serve(self, responder: Arc<Responder>) {
        tokio::spawn(Arc::clone(&responder).measure(responder.server.changes()));
        loop {
            match self.listener.accept().await {
                Ok((stream, remote)) => {
                    let Some(connection) = Connection::begin(&responder, remote) else {
                        tracing::debug!(%remote, "too many connections to the client port");
                        continue;
                    };
                    tokio::spawn(async move {
                        if let Err(error) = connection.receive(stream).await {
                            tracing::debug!(%remote, %error, "client port");
                        }
                    });
                }
                Err(error) => {
                    responder.accept_errors.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(%error, "the client port cannot accept; trying again");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}

/// One connection, counted while it lasts.
#[derive(Debug)]
struct Connection {
    responder: Arc<Responder>,
    number: u64,
    remote: SocketAddr,
}

impl Connection {
    /// None if there are too many.
    fn begin(responder: &Arc<Responder>, remote: SocketAddr) -> Option<Self> {
        let mut counters = responder.counters();
        if counters.connections.len() >= CONNECTIONS_MAX {
            return None;
        }
        let number = counters.next;
        counters.next += 1;
        let shown = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        counters.connections.insert(number, shown);
        Some(Self { responder: Arc::clone(responder), number, remote })
    }

    async fn receive(self, mut stream: TcpStream) -> io::Result<()> {
        let mut word = [0; 4];
        timeout(PATIENCE, stream.read_exact(&mut word)).await??;
        let answer = match std::str::from_utf8(&word) {
            Ok(word) => self.responder.answer(word).await,
            Err(_) => None,
        };
        if let Some(answer) = answer {
            timeout(PATIENCE, stream.write_all(answer.as_bytes())).await??;
            self.responder.sent.fetch_add(1, Ordering::Relaxed);
        } else {
            self.responder.turn_away(self.remote, word);
        }
        stream.shutdown().await?;
        // A little of what follows the word is read: closing on unread bytes would reset the
        // connection, and the answer could be lost with it.
        let mut rest = [0; 64];
        let goodbye = async {
            for _ in 0..16 {
                if !stream.read(&mut rest).await.is_ok_and(|read| read > 0) {
                    break;
                }
            }
        };
        // A slow client gets what has been sent so far.
        let _ = timeout(GOODBYE, goodbye).await;
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.responder.counters().connections.remove(&self.number);
    }
}

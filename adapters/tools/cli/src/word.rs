//! A four-letter word to a client port, or a request to an admin server, and its answer: within a time, and of no more than so many bytes.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use quorate_tokio::core::address::HostPort;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout_at};

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum WordError {
    #[error("cannot resolve {host}: {source}")]
    Resolve { host: String, source: io::Error },
    #[error("{0}")]
    Connect(io::Error),
    #[error("no connection within {} ms", .0.as_millis())]
    ConnectLate(Duration),
    #[error("the connection broke: {0}")]
    Broken(io::Error),
    #[error("no answer within {} ms", .0.as_millis())]
    Late(Duration),
}

/// Sends a word, and returns what comes until the end of the connection.
pub(crate) async fn ask(
    at: &HostPort,
    word: &str,
    patience: Duration,
) -> Result<Vec<u8>, WordError> {
    ask_from(at, word, patience).await.map(|(answer, _)| answer)
}

/// The same, and which address it came from.
pub(crate) async fn ask_from(
    at: &HostPort,
    word: &str,
    patience: Duration,
) -> Result<(Vec<u8>, IpAddr), WordError> {
    let by = Instant::now() + patience;
    let socket = match timeout_at(by, connect(at)).await {
        Ok(connected) => connected?,
        Err(_) => return Err(WordError::ConnectLate(patience)),
    };
    let answer = async {
        let from = socket.peer_addr()?.ip();
        Ok((say(socket, word).await?, from))
    };
    match timeout_at(by, answer).await {
        Ok(answer) => answer.map_err(WordError::Broken),
        Err(_) => Err(WordError::Late(patience)),
    }
}

/// Writes it, and reads to the end.
pub(crate) async fn say(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    word: &str,
) -> io::Result<Vec<u8>> {
    stream.write_all(word.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer).await?;
    Ok(answer)
}

/// A connection to a host at any of its addresses.
pub(crate) async fn connect(at: &HostPort) -> Result<TcpStream, WordError> {
    let resolve = |source| WordError::Resolve { host: at.host.clone(), source };
    let addresses = lookup_host((at.host.as_str(), at.port)).await.map_err(resolve)?;
    let mut why = resolve(io::ErrorKind::NotFound.into());
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(socket) => return Ok(socket),
            Err(error) => why = WordError::Connect(error),
        }
    }
    Err(why)
}

/// An answer is no longer: ZooKeeper's longest without a list of its clients is `mntr`, of some 30 KiB.
const ANSWER_MAX: u64 = 256 << 10;

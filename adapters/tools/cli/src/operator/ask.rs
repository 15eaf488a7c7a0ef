//! Asking a running server, from its own machine.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::questions::{Answer, Question};
use super::socket::{encode, line, path};

/// Why a running server has not answered.
#[derive(Debug, Error)]
pub(crate) enum AskError {
    /// No server listens there.
    #[error("no server can be reached at {path}: {source}")]
    Absent {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It went away, or refuses this user.
    #[error("the server did not answer; whether anything changes is not known: {0}")]
    Silent(#[from] io::Error),
}

/// Asks the server that runs on a data directory, which may take so long to answer.
pub(crate) async fn ask(
    data_dir: &Path,
    question: &Question,
    patience: Duration,
) -> Result<Answer, AskError> {
    let path = path(data_dir);
    let absent = |source| AskError::Absent { path: path.clone(), source };
    let connect = timeout(BEHIND, UnixStream::connect(&path));
    let mut stream = connect.await.map_err(|late| absent(late.into()))?.map_err(absent)?;
    let answered = async {
        stream.write_all(&encode(question)?).await?;
        line(&mut stream).await
    };
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let answer = timeout(patience + BEHIND, answered).await.map_err(late)??;
    Ok(serde_json::from_str(&answer).map_err(io::Error::from)?)
}

/// How much longer the answer may take than what was asked for.
const BEHIND: Duration = Duration::from_secs(10);

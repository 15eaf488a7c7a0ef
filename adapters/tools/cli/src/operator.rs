//! The operator's socket in a server's data directory: the questions of `quorate reconfig`, and their answers.
//!
//! ```text
//!   quorate reconfig ──► dataDir/quorate.sock ──► quorate serve
//!      a line of JSON:  {"question":{"add":["server.4=…"],"remove":[1]}}
//!      a line back:     {"membership":"server.2=…\nserver.3=…\nserver.4=…\nversion=10000000a"}
//! ```
//!
//! It is there only where the membership may change (`reconfigEnabled`). Access is a matter of files: the
//! user that the server runs as, and root; no network port is opened. One question is answered after the
//! other.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_service::ZooKeeper;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::{Member, Membership};
use quorate_tokio::core::reconfiguration::Reconfiguration;
use quorate_tokio::{ReadError, ReconfigureError, Server};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::superuser::reconfigure;

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    /// The servers that join, or are changed, as lines of a membership.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) add: Vec<String>,
    /// The servers that leave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remove: Vec<i64>,
    /// A whole membership instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) members: Option<String>,
    /// The version that the present one must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<i64>,
    /// How long to wait, in milliseconds.
    pub(crate) timeout_ms: u64,
}

/// What comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The membership that is in force now.
    Membership(String),
    /// Nothing was changed.
    Unchanged(String),
    /// The outcome is unknown.
    Unknown(String),
}

/// What is wrong with a question.
#[derive(Debug, Error)]
pub(crate) enum QuestionError {
    /// A server's line.
    #[error("{0:?} is no server: write server.4=host:2888:3888[:observer][;clientPort]")]
    Member(String),
    /// A whole membership.
    #[error("the membership cannot be read: {0}")]
    Membership(#[from] quorate_tokio::core::membership::MembershipError),
    /// Both kinds.
    #[error("a whole membership leaves nothing to add or to remove")]
    Both,
}

impl Question {
    /// The change that it asks for; none if it asks for the present membership only.
    pub(crate) fn change(&self) -> Result<Option<Reconfiguration>, QuestionError> {
        let asked = match &self.members {
            Some(_) if !(self.add.is_empty() && self.remove.is_empty()) => {
                return Err(QuestionError::Both);
            }
            Some(text) => Reconfiguration::whole(Membership::parse(text)?),
            None if self.add.is_empty() && self.remove.is_empty() => return Ok(None),
            None => {
                let joining: Result<Vec<_>, _> = self.add.iter().map(|line| member(line)).collect();
                Reconfiguration::change(joining?, self.remove.iter().copied().map(ServerId))
            }
        };
        Ok(Some(match self.version {
            Some(version) => asked.if_version(version),
            None => asked,
        }))
    }
}

/// `server.4=host:2888:3888…`, or the same without `server.`.
fn member(line: &str) -> Result<Member, QuestionError> {
    let unreadable = || QuestionError::Member(line.to_owned());
    let (key, value) = line.split_once('=').ok_or_else(unreadable)?;
    let key = key.trim();
    let id = key.strip_prefix("server.").unwrap_or(key).parse().map_err(|_| unreadable())?;
    Member::parse(ServerId(id), value.trim()).map_err(|_| unreadable())
}

/// The socket of a running server. It goes when this is dropped.
#[derive(Debug)]
pub(crate) struct OperatorSocket {
    listener: UnixListener,
    path: PathBuf,
    owner: u32,
    inode: u64,
}

impl OperatorSocket {
    /// Opens it. The server has locked the directory, so a socket that is there is left over.
    pub(crate) fn open(data_dir: &Path) -> io::Result<Self> {
        let path = path(data_dir);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(&path)?;
        let file = fs::symlink_metadata(&path)?;
        Ok(Self { listener, path, owner: file.uid(), inode: file.ino() })
    }

    /// Answers until the process ends.
    pub(crate) async fn serve(self, server: Server<ZooKeeper>) {
        loop {
            let served = match self.listener.accept().await {
                Ok((stream, _)) => self.receive(stream, &server).await,
                Err(error) => {
                    tokio::time::sleep(RETRY).await;
                    Err(error)
                }
            };
            if let Err(error) = served {
                tracing::warn!(path = %self.path.display(), %error, "the operator's socket");
            }
        }
    }

    async fn receive(&self, mut stream: UnixStream, server: &Server<ZooKeeper>) -> io::Result<()> {
        let user = stream.peer_cred()?.uid();
        if user != self.owner && user != ROOT {
            let refused = format!("user {user} is not the server's");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, refused));
        }
        let line = timeout(PATIENCE, line(&mut stream)).await??;
        let answer = match serde_json::from_str::<Question>(&line) {
            Ok(question) => answer(server, &question).await,
            Err(error) => Answer::Unchanged(format!("the question cannot be read: {error}")),
        };
        tracing::info!(question = line.trim_end(), ?answer, "the operator has asked");
        timeout(PATIENCE, stream.write_all(&encode(&answer)?)).await?
    }
}

impl Drop for OperatorSocket {
    fn drop(&mut self) {
        // By now it may be that of the server which runs there next.
        if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Answers a question.
async fn answer(server: &Server<ZooKeeper>, question: &Question) -> Answer {
    let asked = match question.change() {
        Ok(asked) => asked,
        Err(error) => return Answer::Unchanged(error.to_string()),
    };
    let patience = Duration::from_millis(question.timeout_ms).min(PATIENCE_MAX);
    let done = async {
        match asked {
            Some(asked) => {
                reconfigure(server, &asked).await?;
                // In force here: no newer one need be asked for, perhaps by a server that was removed.
                Ok(server.read_local(membership).await?)
            }
            None => Ok(server.read(membership).await?),
        }
    };
    match timeout(patience, done).await {
        Ok(Ok(text)) => Answer::Membership(text),
        Ok(Err(AnswerError::Change(ReconfigureError::Propose(error))))
            if error.may_have_happened() =>
        {
            Answer::Unknown(error.to_string())
        }
        Ok(Err(AnswerError::Change(error))) => Answer::Unchanged(error.to_string()),
        Ok(Err(AnswerError::Look(error))) => Answer::Unknown(error.to_string()),
        Err(_) => Answer::Unknown(format!("no answer in {patience:?}")),
    }
}

/// Why a question has no membership as its answer.
#[derive(Debug, Error)]
enum AnswerError {
    #[error(transparent)]
    Change(#[from] ReconfigureError),
    #[error(transparent)]
    Look(#[from] ReadError),
}

/// The text of the membership, as the tree has it.
fn membership(zookeeper: &ZooKeeper) -> String {
    let data = zookeeper.tree().get("/zookeeper/config").and_then(|node| node.data().cloned());
    String::from_utf8_lossy(&data.unwrap_or_default()).into_owned()
}

/// Why a running server has not answered.
#[derive(Debug, Error)]
pub(crate) enum AskError {
    /// No server listens there.
    #[error("no server with reconfigEnabled=true can be reached at {path}: {source}")]
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

/// Asks the server that runs on a data directory.
pub(crate) async fn ask(data_dir: &Path, question: &Question) -> Result<Answer, AskError> {
    let path = path(data_dir);
    let absent = |source| AskError::Absent { path: path.clone(), source };
    let mut stream = UnixStream::connect(&path).await.map_err(absent)?;
    stream.write_all(&encode(question)?).await?;
    Ok(serde_json::from_str(&line(&mut stream).await?).map_err(io::Error::from)?)
}

/// A message as a line.
fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// The next line, of a bounded length.
async fn line(stream: &mut UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line).await?;
    if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("quorate.sock")
}

/// The superuser of the system.
const ROOT: u32 = 0;
/// Twice what a membership may have.
const LINE_BYTES_MAX: u64 = 128 << 10;
/// How long a connection may take to ask, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest that an answer is waited for.
const PATIENCE_MAX: Duration = Duration::from_secs(600);
/// Until a socket that cannot accept is tried again.
const RETRY: Duration = Duration::from_secs(1);

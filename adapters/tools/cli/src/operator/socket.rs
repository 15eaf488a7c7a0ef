//! The socket of a running server: who may ask, how much and for how long.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_tokio::clients::Note;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answers::Answers;
use super::questions::{Answer, Question};
use crate::control::Control;

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
        // A program that has connected before is asked who it is, as every one is.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let file = fs::symlink_metadata(&path)?;
        Ok(Self { listener, path, owner: file.uid(), inode: file.ino() })
    }

    /// Answers until the process ends; `reconfig`: the membership may change.
    pub(crate) async fn serve(self, control: Control, snapshots: PathBuf, reconfig: bool) {
        let answers = Arc::new(Answers::new(control, snapshots, reconfig));
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (answers, owner) = (Arc::clone(&answers), self.owner);
                    drop(tokio::spawn(async move {
                        if let Err(error) = receive(stream, owner, &answers).await {
                            failed(&error);
                        }
                        drop(place);
                    }));
                }
                Err(error) => {
                    failed(&error);
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
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

fn failed(error: &io::Error) {
    tracing::warn!(event = "operator.failed", %error, "the operator's socket");
}

async fn receive(mut stream: UnixStream, owner: u32, answers: &Answers) -> io::Result<()> {
    let user = stream.peer_cred()?.uid();
    if user != owner && user != ROOT {
        let refused = format!("user {user} is not the server's");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, refused));
    }
    let line = timeout(PATIENCE, line(&mut stream)).await??;
    let answer = match serde_json::from_str::<Question>(&line) {
        Ok(question) => {
            let asked = format!("{question:?}");
            let operation = question.operation();
            let answer = answers.answer(question).await;
            if let Some(operation) = operation {
                let event = "operator.answered";
                tracing::info!(event, asked, ?answer, "the operator has asked");
                // As it was asked: a change of the membership may be longer than a line should be.
                let asked = line.trim_end().chars().take(ASKED_MAX).collect();
                let fields = vec![("uid", user.to_string()), ("asked", asked)];
                answers.note(Note { operation, fields, result: answer.result() });
            } else {
                tracing::debug!(event = "operator.answered", asked, "the operator has asked");
            }
            answer
        }
        Err(error) => Answer::Wrong(format!("the question cannot be read: {error}")),
    };
    timeout(PATIENCE, stream.write_all(&encode(&answer)?)).await?
}

/// A message as a line.
pub(super) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// The next line, of a bounded length.
pub(super) async fn line(stream: &mut UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line).await?;
    if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

pub(super) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("quorate.sock")
}

/// The superuser of the system.
const ROOT: u32 = 0;
/// Twice what a membership may have.
const LINE_BYTES_MAX: u64 = 128 << 10;
/// So many characters of what was asked stand in the audit log.
const ASKED_MAX: usize = 1024;
/// How many may ask at a time; more wait.
const CONNECTIONS_MAX: usize = 64;
/// How long a connection may take to ask, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Until a socket that cannot accept is tried again.
const RETRY: Duration = Duration::from_secs(1);

//! A client's connection to a server: a call if it runs in this process, lines over its stdin and stdout if it runs in
//! one of its own. No port is opened for clients.
//!
//! ```text
//!   stdin    write NUMBER BYTES │ catch-up
//!   stdout   done NUMBER ZXID │ doubtful NUMBER │ not NUMBER │ caught-up │ behind WHY │ {"event":…}
//! ```

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use quorate_driver::{Runtime, Server};
use quorate_tokio::ReadError;
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};

use super::ledger;

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is acknowledged, as this transaction.
    Done(i64),
    /// It surely did not happen.
    Not,
    /// Unknown: it may or may not have happened.
    Doubtful,
}

impl Outcome {
    /// Writes to a server and waits for the outcome.
    pub(super) async fn of_write<R: Runtime>(
        server: &Server<R, ledger::Application>,
        number: u64,
        length: usize,
    ) -> Self {
        match server.propose(ledger::command(number, length)).await {
            Ok(proposed) => Self::Done(proposed.zxid.0),
            Err(error) if error.may_have_happened() => Self::Doubtful,
            Err(_) => Self::Not,
        }
    }
}

/// A connection to one server in one of its lives.
#[derive(Clone, Debug)]
pub(super) enum Connection {
    /// It runs in this process.
    Embedded(ledger::Server),
    /// It runs in a process of its own.
    Process(Arc<Pipe>),
}

impl Connection {
    /// Writes, and waits for the outcome.
    pub(super) async fn write(&self, number: u64, length: usize) -> Outcome {
        match self {
            Self::Embedded(server) => Outcome::of_write(server, number, length).await,
            Self::Process(pipe) => pipe.write(number, length).await,
        }
    }

    /// Waits until the server has applied everything that was acknowledged before.
    pub(super) async fn catch_up(&self) -> Result<(), CatchUpError> {
        match self {
            Self::Embedded(server) => Ok(server.sync().await?),
            Self::Process(pipe) => pipe.catch_up().await,
        }
    }
}

/// Why a server does not catch up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum CatchUpError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What the server's process answered.
    #[error("{0}")]
    Behind(String),
    #[error("it has ended")]
    Ended,
}

/// The pipes to a process.
#[derive(Debug)]
pub(super) struct Pipe {
    /// None once no answer can come.
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    asks: UnboundedSender<Ask>,
    writes: HashMap<u64, oneshot::Sender<Outcome>>,
    catch_ups: Vec<oneshot::Sender<Result<(), CatchUpError>>>,
}

impl Pipe {
    /// Over the stdin of a process; answers are handed in by [`answered`](Self::answered).
    pub(super) fn new(stdin: ChildStdin) -> Arc<Self> {
        let (asks, queue) = unbounded_channel();
        tokio::spawn(write_lines(queue, stdin));
        let open = Open { asks, writes: HashMap::new(), catch_ups: Vec::new() };
        Arc::new(Self { open: Mutex::new(Some(open)) })
    }

    async fn write(&self, number: u64, length: usize) -> Outcome {
        let (answer, outcome) = oneshot::channel();
        let asked = self.with(|open| {
            open.writes.insert(number, answer);
            open.asks.send(Ask::Write { number, length }).is_ok()
        });
        match asked {
            None => Outcome::Not,
            // Its process has ended before it could say.
            Some(_) => outcome.await.unwrap_or(Outcome::Doubtful),
        }
    }

    async fn catch_up(&self) -> Result<(), CatchUpError> {
        let (answer, outcome) = oneshot::channel();
        self.with(|open| {
            open.catch_ups.push(answer);
            open.asks.send(Ask::CatchUp).is_ok()
        });
        outcome.await.unwrap_or(Err(CatchUpError::Ended))
    }

    /// Takes an answer that the process has written.
    pub(super) fn answered(&self, answer: Answer) {
        self.with(|open| match answer {
            Answer::Write(number, outcome) => {
                if let Some(waiting) = open.writes.remove(&number) {
                    // The client may have been ended.
                    let _ = waiting.send(outcome);
                }
            }
            Answer::CaughtUp => open.caught_up(&Ok(())),
            Answer::Behind(why) => open.caught_up(&Err(CatchUpError::Behind(why))),
        });
    }

    /// Closes its stdin; the outcome of what is under way stays unknown.
    pub(super) fn close(&self) {
        drop(self.open.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn with<T>(&self, act: impl FnOnce(&mut Open) -> T) -> Option<T> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(act)
    }
}

impl Open {
    fn caught_up(&mut self, outcome: &Result<(), CatchUpError>) {
        for waiting in self.catch_ups.drain(..) {
            drop(waiting.send(outcome.clone()));
        }
    }
}

/// Writes what has gathered, until the last sender or the process's stdin has gone.
async fn write_lines(mut queue: UnboundedReceiver<Ask>, mut stdin: ChildStdin) {
    let (mut asks, mut text) = (Vec::new(), String::new());
    while queue.recv_many(&mut asks, 256).await > 0 {
        text.clear();
        for ask in asks.drain(..) {
            text += &format!("{ask}\n");
        }
        if stdin.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// A line to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// To write.
    Write { number: u64, length: usize },
    /// To catch up.
    CatchUp,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { number, length } => write!(f, "write {number} {length}"),
            Self::CatchUp => f.write_str("catch-up"),
        }
    }
}

impl FromStr for Ask {
    type Err = LineError;

    fn from_str(line: &str) -> Result<Self, LineError> {
        let words: Vec<_> = line.split(' ').collect();
        let ask = match words[..] {
            ["write", number, length] => number
                .parse()
                .and_then(|number| Ok(Self::Write { number, length: length.parse()? }))
                .ok(),
            ["catch-up"] => Some(Self::CatchUp),
            _ => None,
        };
        ask.ok_or_else(|| LineError(line.to_owned()))
    }
}

/// A line that is none of those above.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no line between a demo and the process of a server")]
pub(super) struct LineError(String);

/// A line of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The outcome of a write.
    Write(u64, Outcome),
    /// It has caught up.
    CaughtUp,
    /// It could not catch up, for this reason.
    Behind(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(number, Outcome::Done(zxid)) => write!(f, "done {number} {zxid}"),
            Self::Write(number, Outcome::Not) => write!(f, "not {number}"),
            Self::Write(number, Outcome::Doubtful) => write!(f, "doubtful {number}"),
            Self::CaughtUp => f.write_str("caught-up"),
            Self::Behind(why) => write!(f, "behind {why}"),
        }
    }
}

impl FromStr for Answer {
    type Err = LineError;

    fn from_str(line: &str) -> Result<Self, LineError> {
        if let Some(why) = line.strip_prefix("behind ") {
            return Ok(Self::Behind(why.to_owned()));
        }
        let words: Vec<_> = line.split(' ').collect();
        let answer = match words[..] {
            ["done", number, zxid] => number
                .parse()
                .ok()
                .zip(zxid.parse().ok())
                .map(|(number, zxid)| Self::Write(number, Outcome::Done(zxid))),
            ["not", number] => number.parse().ok().map(|number| Self::Write(number, Outcome::Not)),
            ["doubtful", number] => {
                number.parse().ok().map(|number| Self::Write(number, Outcome::Doubtful))
            }
            ["caught-up"] => Some(Self::CaughtUp),
            _ => None,
        };
        answer.ok_or_else(|| LineError(line.to_owned()))
    }
}

/// The servers that serve, each with its life and a connection to it.
pub(super) type Serving = BTreeMap<i64, (u32, Connection)>;

/// Connections to all servers that serve at present.
#[derive(Clone, Debug, Default)]
pub(super) struct Roster {
    serving: watch::Sender<Serving>,
}

impl Roster {
    /// A server begins to serve.
    pub(super) fn enter(&self, id: i64, life: u32, connection: &Connection) {
        self.serving.send_if_modified(|serving| {
            let new = serving.get(&id).is_none_or(|(present, _)| *present < life);
            if new {
                serving.insert(id, (life, connection.clone()));
            }
            new
        });
    }

    /// It serves no more; a late report of an earlier life changes nothing.
    pub(super) fn leave(&self, id: i64, life: u32) {
        self.serving.send_if_modified(|serving| {
            let gone = serving.get(&id).is_some_and(|(present, _)| *present == life);
            if gone {
                serving.remove(&id);
            }
            gone
        });
    }

    /// The servers that serve, and each change of them.
    pub(super) fn watch(&self) -> watch::Receiver<Serving> {
        self.serving.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_what_they_were() {
        for ask in [Ask::Write { number: 7, length: 100 }, Ask::CatchUp] {
            assert_eq!(ask.to_string().parse(), Ok(ask));
        }
        for answer in [
            Answer::Write(7, Outcome::Done(0x1_0000_0001)),
            Answer::Write(u64::MAX, Outcome::Not),
            Answer::Write(0, Outcome::Doubtful),
            Answer::CaughtUp,
            Answer::Behind("it does not serve".to_owned()),
        ] {
            assert_eq!(answer.to_string().parse(), Ok(answer));
        }
        for line in ["", "write", "write 1", "write x 1", "done 1", "done 1 2 3", "{}"] {
            assert!(line.parse::<Ask>().is_err(), "{line}");
            assert!(line.parse::<Answer>().is_err(), "{line}");
        }
    }
}

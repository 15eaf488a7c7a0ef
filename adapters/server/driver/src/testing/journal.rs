//! The application of the scenarios, and what they ask of it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::Bytes;
use quorate_core::zxid::Zxid;

use super::stage::Stage;
use crate::{Proposed, Rejected, Replicated, RestoreError, Runtime, Server, StateMachine};

/// All commands, in the order in which they were applied. Replies with how many there are.
#[derive(Debug, Default)]
pub struct Journal {
    /// Each with its zxid, to see that none comes twice.
    pub entries: Arc<Vec<(i64, Bytes)>>,
    pub brake: Arc<Brake>,
    /// It panics at this command.
    pub fatal: Option<Bytes>,
}

/// A journal, replicated.
pub type App = Replicated<Journal>;

impl StateMachine for Journal {
    type State = Arc<Vec<(i64, Bytes)>>;

    fn prepare(&mut self, request: &Bytes, _bytes_max: usize) -> Result<Bytes, Rejected> {
        if request.is_empty() { Err(Rejected(-8)) } else { Ok(request.clone()) }
    }

    fn apply(&mut self, zxid: Zxid, command: &[u8]) -> Bytes {
        self.brake.pass();
        assert_ne!(Some(command), self.fatal.as_deref(), "a panic as asked for");
        let entries = Arc::make_mut(&mut self.entries);
        entries.push((zxid.0, Bytes::copy_from_slice(command)));
        Bytes::copy_from_slice(&entries.len().to_be_bytes())
    }

    fn save(&self) -> Self::State {
        Arc::clone(&self.entries)
    }

    fn load(&mut self, state: Self::State) {
        self.entries = state;
    }

    fn write(state: Self::State) -> impl Iterator<Item = Bytes> + Send {
        let entry = |(zxid, command): &(i64, Bytes)| [&zxid.to_be_bytes(), &command[..]].concat();
        (0..state.len()).map(move |at| entry(&state[at]).into())
    }

    fn read(state: &mut Self::State, piece: &[u8]) -> Result<(), RestoreError> {
        let (zxid, command) = piece.split_first_chunk().ok_or("cut short")?;
        let entry = (i64::from_be_bytes(*zxid), Bytes::copy_from_slice(command));
        Arc::make_mut(state).push(entry);
        Ok(())
    }
}

/// Makes a journal slow, and stops it as soon as it has a thread of its own: stopped in the loop, it
/// would stop whatever else has to run on that thread.
#[derive(Debug, Default)]
pub struct Brake {
    state: Mutex<Pulled>,
    released: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pulled {
    #[default]
    Not,
    Slow,
    Stopped,
}

impl Brake {
    pub fn pull(&self) {
        *self.state.lock().unwrap() = Pulled::Slow;
    }

    pub fn release(&self) {
        *self.state.lock().unwrap() = Pulled::Not;
        self.released.notify_all();
    }

    pub fn has_stopped(&self) -> bool {
        *self.state.lock().unwrap() == Pulled::Stopped
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        if *state == Pulled::Not {
            return;
        }
        if std::thread::current().name() == Some(APPLICATION_THREAD) {
            *state = Pulled::Stopped;
            let waits = |state: &mut Pulled| *state != Pulled::Not;
            drop(self.released.wait_while(state, waits).unwrap());
        } else {
            drop(state);
            std::thread::sleep(SLOW);
        }
    }
}

impl<R: Runtime> Stage<R> {
    /// What a server has, without waiting for anybody.
    pub async fn entries(&self, server: &Server<R, App>) -> Vec<(i64, Bytes)> {
        let seen = server.read_local(|journal| journal.machine().entries.to_vec());
        self.within("a look", seen).await.unwrap()
    }

    /// What a server has, when it has everything.
    pub async fn all_entries(&self, server: &Server<R, App>) -> Vec<(i64, Bytes)> {
        let seen = server.read(|journal| journal.machine().entries.to_vec());
        self.within("a read", seen).await.unwrap()
    }

    /// Proposes so many at once.
    pub async fn propose_many(&self, server: &Server<R, App>, count: usize) -> Vec<Proposed> {
        let asked = (0..count).map(|number| {
            let server = server.clone();
            self.spawn(async move { server.propose(numbered(number, 8)).await.unwrap() })
        });
        self.join_all("all answers", asked.collect()).await
    }

    pub async fn propose(&self, server: &Server<R, App>, command: impl Into<Bytes>) -> Proposed {
        self.within("a proposal", server.propose(command.into())).await.unwrap()
    }
}

/// Which entry it became.
pub(crate) fn position(proposed: &Proposed) -> usize {
    usize::from_be_bytes(proposed.reply[..].try_into().unwrap())
}

/// A command that is a number and padding.
pub(crate) fn numbered(number: usize, length: usize) -> Bytes {
    let mut command = vec![0; length.max(8)];
    command[..8].copy_from_slice(&number.to_be_bytes());
    command.into()
}

pub(crate) fn number(command: &[u8]) -> usize {
    usize::from_be_bytes(command[..8].try_into().unwrap())
}

/// Where a slow application works.
const APPLICATION_THREAD: &str = "quorate-apply";
/// Long enough to be told from quick.
const SLOW: Duration = Duration::from_millis(20);

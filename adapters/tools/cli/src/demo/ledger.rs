//! What the servers of a demo under load replicate: numbered writes, and a sum over all of them.
//!
//! ```text
//!   command   number of the write : u64 │ filling up to the wanted length
//!   state     how many writes : u64 │ sum over every zxid and command, in their order : u64
//! ```
//!
//! The state is small, whatever is written, and equal on two servers only if they have applied the same
//! writes under the same zxids in the same order: so a snapshot vouches for all that is before it.

use std::hash::{DefaultHasher, Hasher};
use std::iter;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_tokio::core::zxid::Zxid;
use quorate_tokio::{Replicated, RestoreError, ServerConfig, StateMachine};

/// A server of such a demo.
pub(super) type Server = quorate_tokio::Server<Application>;
/// What it replicates.
pub(super) type Application = Replicated<Ledger>;

/// The state machine.
#[derive(Debug, Default)]
pub(super) struct Ledger(Sum);

/// Its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// How many writes.
    pub(super) writes: u64,
    /// Over all of them; the same for the same program only.
    sum: u64,
}

impl Sum {
    /// One more.
    pub(super) fn add(&mut self, zxid: Zxid, command: &[u8]) {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.sum);
        hasher.write_i64(zxid.0);
        hasher.write(command);
        self.sum = hasher.finish();
        self.writes += 1;
    }
}

/// In its first state.
pub(super) fn application() -> Application {
    Replicated::new("demo", Ledger::default())
}

/// All that is written stays on disk, so that it can be compared at the end.
pub(super) fn keep_everything(config: &mut ServerConfig) {
    config.snapshots_kept = None;
    config.core.history.size_percent = Some(u64::MAX);
    config.preallocate = 16 << 20;
}

/// The command of a write.
pub(super) fn command(number: u64, length: usize) -> Bytes {
    let mut command = BytesMut::with_capacity(length.max(NUMBER_BYTES));
    command.put_u64(number);
    // Something else in every write.
    command.resize(length.max(NUMBER_BYTES), number.to_le_bytes()[0]);
    command.freeze()
}

/// The number of the write that a command is, if it is one.
pub(super) fn number(command: &[u8]) -> Option<u64> {
    command.first_chunk().map(|number| u64::from_be_bytes(*number))
}

/// How long a command is at least.
pub(super) const NUMBER_BYTES: usize = 8;

impl StateMachine for Ledger {
    type State = Sum;

    fn apply(&mut self, zxid: Zxid, command: &[u8]) -> Bytes {
        self.0.add(zxid, command);
        Bytes::new()
    }

    fn save(&self) -> Sum {
        self.0
    }

    fn load(&mut self, state: Sum) {
        self.0 = state;
    }

    fn write(state: Sum) -> impl Iterator<Item = Bytes> + Send {
        let Sum { writes, sum } = state;
        iter::once([writes.to_be_bytes(), sum.to_be_bytes()].concat().into())
    }

    fn read(state: &mut Sum, piece: &[u8]) -> Result<(), RestoreError> {
        let (writes, sum) = piece.split_first_chunk().ok_or("cut short")?;
        let [writes, sum] = [*writes, sum.try_into()?].map(u64::from_be_bytes);
        *state = Sum { writes, sum };
        Ok(())
    }
}

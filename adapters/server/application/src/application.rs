//! The traits of a replicated application, its snapshots and their restoring.

pub mod clients;

use alloc::boxed::Box;
use core::error::Error;

use bytes::{Bytes, BytesMut};
use quorate_core::id::Origin;
use quorate_core::message::Request;
use quorate_core::prepared::{Facts, Prepared};
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use crate::application::clients::{Clients, Host};

/// A state machine that speaks ZooKeeper's transactions.
///
/// The value that a server is started with is in the state before the first
/// transaction; what the disk holds is brought to it.
pub trait Application: Send + 'static {
    /// The state at one moment: cheap to take, written by another thread while the application goes on.
    type Snapshot: Snapshot;
    /// A restored state that is not the application's yet.
    type Staged: Send + 'static;
    /// What makes it from bytes.
    type Restore: Restore<State = Self::Staged>;
    /// What a transaction did, for the service in front of this application.
    type Effect: Send;
    /// That service: [`NoClients`](crate::application::clients::NoClients) where there is none.
    type Clients: Clients<Self>;

    /// What servers with this application say they speak:
    /// [`LearnerInfo::PROTOCOL`](quorate_core::message::LearnerInfo::PROTOCOL) for ZooKeeper's data tree, else
    /// [`LearnerInfo::OTHER_APPLICATION`](quorate_core::message::LearnerInfo::OTHER_APPLICATION).
    /// Servers that say different things keep apart, since neither can read the other's snapshots.
    const PROTOCOL: i32;

    /// The service in front of this application: made once, before anything else, and beside the application as
    /// long as the server runs.
    fn clients(&mut self, host: Host) -> Self::Clients;

    /// Turns a request into a transaction, at the leader: on top of everything applied and of
    /// everything prepared since the last [`abandon`](Self::abandon). A request that is refused becomes a transaction
    /// too, see [`Prepared::rejected`]. `origin` tells at which server it was asked for: only the one that a client is
    /// connected to may write for its session.
    ///
    /// The body has at most [`Facts::bytes_max`] bytes, which is what `jute.maxbuffer` and its extra size leave
    /// ([`Limits::txn_bytes`](quorate_core::config::Limits::txn_bytes)): no server would read more. What is
    /// longer is void, see [`void`](Self::void).
    fn prepare(&mut self, request: &Request, origin: Origin, facts: &Facts) -> Prepared;

    /// What was prepared last is too long and does not come to pass: told before anything else is prepared,
    /// so that nothing more counts on it. In its place comes [`Prepared::rejected`] with
    /// [`Rejected::TOO_LONG`](quorate_core::prepared::Rejected::TOO_LONG), which is applied in its turn like any other.
    fn void(&mut self);

    /// Applies a committed transaction; returns what it did. Transactions come in order, each once, refused
    /// ones too.
    fn apply(&mut self, txn: &Txn) -> Self::Effect;

    /// What the program on this server is told that asked for a transaction with this effect.
    fn reply(effect: &Self::Effect) -> Bytes;

    /// Forgets what was prepared and not applied: this server leads no more.
    fn abandon(&mut self);

    /// The state now.
    fn snapshot(&self) -> Self::Snapshot;

    /// Begins to restore the state after transaction `label`; it is given its bytes on a thread of its own.
    fn restore(label: Zxid) -> Self::Restore;

    /// The same as [`snapshot`](Self::snapshot), of a staged state.
    fn staged_snapshot(staged: &Self::Staged) -> Self::Snapshot;

    /// A staged state comes from a snapshot that was written, as ZooKeeper's servers do it, while transactions up to this one
    /// went on, and has effects of some of them: they are applied again, before this server serves. None where it is not known
    /// up to which: where a leader has sent it, or no digest stands behind it on disk.
    fn staged_whole_at(staged: &mut Self::Staged, zxid: Option<Zxid>) {
        let _ = (staged, zxid);
    }

    /// The text of the ensemble's configuration in a staged state, if this application keeps it there as
    /// ZooKeeper's data tree does under `/zookeeper/config`, and a reconfiguration wrote it: the node's version is -1,
    /// and it was changed at the zxid that is the text's version. Anything else may be what a client wrote there.
    fn staged_membership(staged: &Self::Staged) -> Option<Bytes> {
        let _ = staged;
        None
    }

    /// The restored state becomes the application's; nothing is prepared on the old one any more. It is older than the old
    /// one where the server has opened its disk again after a failure: the transactions between come again then, before this
    /// server serves.
    fn adopt(&mut self, staged: Self::Staged);

    /// Tells the text and version of the ensemble's configuration, and the wall clock in
    /// milliseconds since 1970: when this server begins to serve. Not replicated: each server says
    /// it for itself.
    fn set_configuration(&mut self, text: &str, version: i64, now: i64) {
        let _ = (text, version, now);
    }
}

/// A state at one moment, written in pieces.
pub trait Snapshot: Send + 'static {
    /// Puts the next piece behind what is in `out`; false with the last one. Some 64 KiB are a good piece; it is
    /// held in memory whole. The form is one whose end [`Restore::push`] finds by itself.
    ///
    /// # Errors
    ///
    /// If this state cannot be written; what was written of it is not used then.
    fn next(&mut self, out: &mut BytesMut) -> Result<bool, SnapshotError>;

    /// ZooKeeper's digest of the data tree, version 2, if it is one; written behind it to disk.
    fn digest(&self) -> Option<u64> {
        None
    }
}

/// A state that is being made from its bytes.
pub trait Restore: Send + 'static {
    /// What comes of it.
    type State;

    /// Takes what belongs to the state from the front of `bytes`, which may be cut anywhere: all of them while it
    /// goes on, and not one more when it is whole and returned. Memory is taken for what has come, never for what
    /// a length promises.
    ///
    /// # Errors
    ///
    /// If this is no snapshot of the application; it is not asked again then.
    fn push(&mut self, bytes: &mut &[u8]) -> Result<Option<Self::State>, RestoreError>;
}

/// Why a snapshot cannot be written, for the log.
pub type SnapshotError = Box<dyn Error + Send + Sync>;

/// Why a snapshot cannot be restored, for the log.
pub type RestoreError = Box<dyn Error + Send + Sync>;

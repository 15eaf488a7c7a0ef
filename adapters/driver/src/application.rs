//! What is replicated: the program's own part of a server.
//!
//! ```text
//!              leader only                                  everywhere, in the same order
//!   request ──► prepare ──► transaction ── agreed, durable ──► apply ──► reply to whoever asked
//!
//!   snapshot: the state after one transaction, written to disk or to a learner
//!   restore:  such a state, read and kept apart (staged) until it is known to be committed: adopt
//! ```
//!
//! Two traits. Most programs implement [`StateMachine`]: bytes in, bytes out. Wrapped in
//! [`Replicated`] it is an [`Application`], which is what a server runs: it speaks ZooKeeper's
//! transactions, because these are what is logged and sent. ZooKeeper's own data tree, in
//! `quorate-znode`, is an application directly. [`NoApplication`] replicates nothing: such servers only
//! elect.
//!
//! What is applied is never taken back: nothing reaches an application before it is known to be
//! committed. Whatever `apply` does must depend on nothing but the state and the transaction, or the
//! servers' states drift apart; clocks, random numbers and the outside world belong into `prepare`,
//! which runs once, at the leader.
//!
//! Every method is called by one server after the other in one order, never by two at once: from the
//! server's loop while it is quick, from a thread of its own while it is not. None may wait for the
//! server itself.

use std::error::Error;
use std::fmt;
use std::io::{self, Read, Write};

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::message::{LearnerInfo, Request};
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

/// A state machine that speaks ZooKeeper's transactions.
///
/// The value given to [`Server::start`](crate::Server::start) is in the state before the first
/// transaction; what the disk holds is brought to it.
pub trait Application: Send + 'static {
    /// The state at one moment: cheap to take, written by another thread while the application goes on.
    type Snapshot: Snapshot;
    /// A restored state that is not the application's yet.
    type Staged: Send + 'static;

    /// What servers with this application say they speak:
    /// [`LearnerInfo::PROTOCOL`] for ZooKeeper's data tree, else [`LearnerInfo::OTHER_APPLICATION`].
    /// Servers that say different things keep apart, since neither can read the other's snapshots.
    const PROTOCOL: i32;

    /// Turns a request into a transaction, at the leader: on top of everything applied and of
    /// everything prepared since the last [`abandon`](Self::abandon). `now` is the wall clock in
    /// milliseconds since 1970. A request that is refused becomes a transaction too, see
    /// [`Prepared::rejected`].
    ///
    /// The body has at most `bytes_max` bytes, which is what `jute.maxbuffer` and its extra size leave
    /// ([`Limits::txn_bytes`](quorate_core::config::Limits::txn_bytes)): no server would read more. What is
    /// longer is void, see [`void`](Self::void).
    fn prepare(&mut self, request: &Request, now: i64, bytes_max: usize) -> Prepared;

    /// What was prepared last is too long and does not come to pass: told before anything else is prepared,
    /// so that nothing more counts on it. In its place comes [`Prepared::rejected`] with
    /// [`Rejected::TOO_LONG`], which is applied in its turn like any other.
    fn void(&mut self);

    /// Applies a committed transaction; returns the reply for whoever asked. Transactions come in
    /// order, each once, refused ones too.
    fn apply(&mut self, txn: &Txn) -> Bytes;

    /// Forgets what was prepared and not applied: this server leads no more.
    fn abandon(&mut self);

    /// The state now.
    fn snapshot(&self) -> Self::Snapshot;

    /// Reads the state after transaction `label`, exactly its own bytes and not one more. Called on a
    /// thread of its own; `from` waits for a disk or a network.
    ///
    /// # Errors
    ///
    /// If `from` fails or is no snapshot of this application; it is not used then.
    fn restore(label: Zxid, from: &mut dyn Read) -> Result<Self::Staged, RestoreError>;

    /// The same as [`snapshot`](Self::snapshot), of a state that is kept apart.
    fn staged_snapshot(staged: &Self::Staged) -> Self::Snapshot;

    /// The text of the ensemble's configuration in a state that is kept apart, if this application keeps it there as
    /// ZooKeeper's data tree does under `/zookeeper/config`, and a reconfiguration wrote it: the node's version is -1,
    /// and it was changed at the zxid that is the text's version. Anything else may be what a client wrote there.
    fn staged_membership(staged: &Self::Staged) -> Option<Bytes> {
        let _ = staged;
        None
    }

    /// The restored state becomes the application's; nothing is prepared on the old one any more.
    fn adopt(&mut self, staged: Self::Staged);

    /// Tells the text and version of the ensemble's configuration, and the wall clock as in
    /// [`prepare`](Self::prepare): when this server begins to serve. Not replicated: each server says
    /// it for itself.
    fn set_configuration(&mut self, text: &str, version: i64, now: i64) {
        let _ = (text, version, now);
    }
}

/// A state at one moment.
pub trait Snapshot: Send + 'static {
    /// Writes it, in a form whose end [`Application::restore`] can find by itself.
    ///
    /// # Errors
    ///
    /// Those of `to`.
    fn write(self, to: &mut dyn Write) -> io::Result<()>;

    /// ZooKeeper's digest of the data tree, version 2, if it is one; written behind it to disk.
    fn digest(&self) -> Option<u64> {
        None
    }
}

/// Why a snapshot cannot be restored, for the log.
pub type RestoreError = Box<dyn Error + Send + Sync>;

/// A transaction but for its number and who asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prepared {
    /// The kind of transaction, ZooKeeper's operation code.
    pub kind: i32,
    /// Its body.
    pub body: Bytes,
}

impl Prepared {
    /// The kind of a transaction that says that a request was refused.
    pub const REJECTED: i32 = Txn::REJECTED;

    /// A request for a [reconfiguration](Request::RECONFIGURE) that the application has nothing against: the
    /// server makes the transaction of it, or refuses it. The transaction is applied like any other, so that
    /// an application that keeps count of what it has prepared finds it there; there is nothing to do.
    pub fn reconfiguration(request: &Request) -> Self {
        Self { kind: Txn::RECONFIGURATION, body: request.body.clone() }
    }

    /// A refused request: a transaction that changes nothing and carries the reason, so that the answer
    /// comes in order with all others.
    pub fn rejected(reason: Rejected) -> Self {
        Self { kind: Self::REJECTED, body: Bytes::copy_from_slice(&reason.0.to_be_bytes()) }
    }
}

/// The application refuses a request, with a number that says why. ZooKeeper's are negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rejected(pub i32);

impl Rejected {
    /// ZooKeeper's code for an operation that is not implemented.
    pub const UNIMPLEMENTED: Self = Self(-6);
    /// What the request became is longer than a transaction may be. It is ZooKeeper's code for whatever
    /// cannot be written, or read.
    pub const TOO_LONG: Self = Self(Txn::TOO_LONG);

    /// The reason that a transaction carries, if it is that of a refused request.
    pub(crate) fn of(txn: &Txn) -> Option<Self> {
        if txn.header.kind != Prepared::REJECTED {
            return None;
        }
        let code = txn.body.first_chunk().copied().map(i32::from_be_bytes);
        Some(Self(code.unwrap_or_default()))
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::TOO_LONG {
            return f.write_str(
                "it cannot be read, or the transaction that comes of it is longer than one may be \
                 (jute.maxbuffer and its extrasize)",
            );
        }
        write!(f, "refused by the application: {}", self.0)
    }
}

/// A deterministic state machine: commands in, replies out.
///
/// ```
/// use std::io::{self, Read, Write};
///
/// use bytes::Bytes;
/// use quorate_driver::{RestoreError, StateMachine, core::zxid::Zxid};
///
/// /// Counts; each command is one more.
/// #[derive(Default)]
/// struct Counter(u64);
///
/// impl StateMachine for Counter {
///     type State = u64;
///
///     fn apply(&mut self, _zxid: Zxid, _command: &[u8]) -> Bytes {
///         self.0 += 1;
///         Bytes::copy_from_slice(&self.0.to_be_bytes())
///     }
///
///     fn save(&self) -> u64 {
///         self.0
///     }
///
///     fn load(&mut self, state: u64) {
///         self.0 = state;
///     }
///
///     fn write(state: u64, to: &mut dyn Write) -> io::Result<()> {
///         to.write_all(&state.to_be_bytes())
///     }
///
///     fn read(from: &mut dyn Read) -> Result<u64, RestoreError> {
///         let mut bytes = [0; 8];
///         from.read_exact(&mut bytes)?;
///         Ok(u64::from_be_bytes(bytes))
///     }
/// }
/// ```
pub trait StateMachine: Send + 'static {
    /// Its state at one moment. Cheap to clone, or taking a snapshot holds the server up: something
    /// shared, say an `Arc` or a persistent map.
    type State: Clone + Send + 'static;

    /// Turns a request into a command, at the leader; or refuses it. Here the clock may be read and
    /// dice be thrown. What was prepared before and is not applied yet is still on its way; a machine
    /// for which that matters keeps it in mind until [`abandon`](Self::abandon).
    ///
    /// The command has at most `bytes_max` bytes, about 2 MiB unless the configuration says otherwise. A
    /// longer one is void, see [`void`](Self::void).
    ///
    /// # Errors
    ///
    /// A reason, for whoever asked.
    fn prepare(&mut self, request: &Bytes, bytes_max: usize) -> Result<Bytes, Rejected> {
        let _ = bytes_max;
        Ok(request.clone())
    }

    /// The command that was prepared last is too long and does not come to pass: whoever asked is told
    /// [`Rejected::TOO_LONG`]. A machine that keeps in mind what it has prepared forgets it.
    fn void(&mut self) {}

    /// Applies a command; returns the reply for whoever asked. Depends on nothing but the state and
    /// the command.
    fn apply(&mut self, zxid: Zxid, command: &[u8]) -> Bytes;

    /// Forgets what was prepared and not applied.
    fn abandon(&mut self) {}

    /// The state now.
    fn save(&self) -> Self::State;

    /// The state is this from now on.
    fn load(&mut self, state: Self::State);

    /// Writes a state, on another thread.
    ///
    /// # Errors
    ///
    /// Those of `to`.
    fn write(state: Self::State, to: &mut dyn Write) -> io::Result<()>;

    /// Reads a state, on another thread. `from` ends where the state does.
    ///
    /// # Errors
    ///
    /// If `from` fails, or holds something else.
    fn read(from: &mut dyn Read) -> Result<Self::State, RestoreError>;
}

/// A [`StateMachine`] as an [`Application`].
///
/// Its commands travel as ZooKeeper's `setData` of the node `/quorate/<name>`, so that every log and
/// every packet stays valid ZooKeeper. Its snapshots are its own, so it keeps apart from servers that
/// hold ZooKeeper's data tree.
#[derive(Debug)]
pub struct Replicated<M> {
    machine: M,
    path: String,
}

impl<M: StateMachine> Replicated<M> {
    /// Replicates `machine` under a name, the same on all servers.
    ///
    /// # Panics
    ///
    /// If the name is empty or contains `/`.
    pub fn new(name: &str, machine: M) -> Self {
        assert!(!name.is_empty() && !name.contains('/'), "{name:?} cannot be the name of a node");
        Self { machine, path: format!("/quorate/{name}") }
    }

    /// The state machine, with everything applied here so far.
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// A command as the body of a transaction: path, data, version.
    fn wrap(&self, command: &[u8]) -> Bytes {
        let mut body = BytesMut::with_capacity(self.path.len() + command.len() + WRAPPING_BYTES);
        for part in [self.path.as_bytes(), command] {
            body.put_i32(i32::try_from(part.len()).unwrap_or(i32::MAX));
            body.put_slice(part);
        }
        body.put_i32(0);
        body.freeze()
    }

    /// The command in such a body; none if it is not one of ours.
    fn unwrap<'a>(&self, body: &'a [u8]) -> Option<&'a [u8]> {
        let (path, rest) = counted(body)?;
        let (command, _version) = counted(rest)?;
        (path == self.path.as_bytes()).then_some(command)
    }
}

/// A length and as many bytes, and what follows.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(i32::from_be_bytes(*length)).ok()?)
}

impl<M: StateMachine> Application for Replicated<M> {
    type Snapshot = Saved<M>;
    type Staged = M::State;

    const PROTOCOL: i32 = LearnerInfo::OTHER_APPLICATION;

    fn prepare(&mut self, request: &Request, _now: i64, bytes_max: usize) -> Prepared {
        if request.op == Request::RECONFIGURE {
            return Prepared::reconfiguration(request);
        }
        if request.op != SET_DATA {
            return Prepared::rejected(Rejected::UNIMPLEMENTED);
        }
        let around = self.path.len() + WRAPPING_BYTES;
        match self.machine.prepare(&request.body, bytes_max.saturating_sub(around)) {
            Ok(command) => Prepared { kind: SET_DATA, body: self.wrap(&command) },
            Err(reason) => Prepared::rejected(reason),
        }
    }

    fn apply(&mut self, txn: &Txn) -> Bytes {
        match self.unwrap(&txn.body) {
            Some(command) if txn.header.kind == SET_DATA => self.machine.apply(txn.zxid, command),
            // A refused request; or of another application, which had this directory before.
            _ => Bytes::new(),
        }
    }

    fn void(&mut self) {
        self.machine.void();
    }

    fn abandon(&mut self) {
        self.machine.abandon();
    }

    fn snapshot(&self) -> Saved<M> {
        Saved(self.machine.save())
    }

    fn restore(_label: Zxid, from: &mut dyn Read) -> Result<M::State, RestoreError> {
        let mut framed = Framed { from, left: 0, ended: false };
        let state = M::read(&mut framed)?;
        if framed.read(&mut [0])? > 0 {
            return Err("the snapshot goes on behind the state".into());
        }
        Ok(state)
    }

    fn staged_snapshot(staged: &M::State) -> Saved<M> {
        Saved(staged.clone())
    }

    fn adopt(&mut self, staged: M::State) {
        self.machine.load(staged);
    }
}

/// The state of a [`StateMachine`] at one moment.
pub struct Saved<M: StateMachine>(M::State);

impl<M: StateMachine> fmt::Debug for Saved<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saved").finish_non_exhaustive()
    }
}

impl<M: StateMachine> Snapshot for Saved<M> {
    fn write(self, to: &mut dyn Write) -> io::Result<()> {
        let mut framing = Framing { to, piece: Vec::with_capacity(PIECE_BYTES) };
        M::write(self.0, &mut framing)?;
        framing.flush()?;
        framing.to.write_all(&0_u32.to_be_bytes())
    }
}

/// Cuts what is written into pieces, each behind its length; a length of 0 is the end.
struct Framing<'a> {
    to: &'a mut dyn Write,
    piece: Vec<u8>,
}

impl Write for Framing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        let bytes = &bytes[..bytes.len().min(PIECE_BYTES - self.piece.len())];
        self.piece.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(self.piece.len()).map_err(io::Error::other)?;
        self.to.write_all(&length.to_be_bytes())?;
        self.to.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }
}

/// Reads such pieces, and not one byte behind the end.
struct Framed<'a> {
    from: &'a mut dyn Read,
    left: usize,
    ended: bool,
}

impl Read for Framed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.ended {
            let mut length = [0; 4];
            self.from.read_exact(&mut length)?;
            self.left = usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?;
            if self.left > PIECE_BYTES {
                let error = format!("a piece of {} bytes is too long", self.left);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            self.ended = self.left == 0;
        }
        let most = buffer.len().min(self.left);
        let read = if most == 0 { 0 } else { self.from.read(&mut buffer[..most])? };
        if read == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read;
        Ok(read)
    }
}

/// Nothing is replicated: the servers elect a leader, and that is all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoApplication;

/// The state of no application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nothing;

impl Snapshot for Nothing {
    fn write(self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&0_u32.to_be_bytes())
    }
}

impl Application for NoApplication {
    type Snapshot = Nothing;
    type Staged = Nothing;

    const PROTOCOL: i32 = LearnerInfo::OTHER_APPLICATION;

    fn prepare(&mut self, request: &Request, _now: i64, _bytes_max: usize) -> Prepared {
        if request.op == Request::RECONFIGURE {
            return Prepared::reconfiguration(request);
        }
        Prepared::rejected(Rejected::UNIMPLEMENTED)
    }

    fn void(&mut self) {}

    fn apply(&mut self, _txn: &Txn) -> Bytes {
        Bytes::new()
    }

    fn abandon(&mut self) {}

    fn snapshot(&self) -> Nothing {
        Nothing
    }

    fn restore(_label: Zxid, from: &mut dyn Read) -> Result<Nothing, RestoreError> {
        // Whoever took over something and forgot it could give nothing to the next.
        if (Framed { from, left: 0, ended: false }).read(&mut [0])? > 0 {
            return Err("there is a state, and no application for it".into());
        }
        Ok(Nothing)
    }

    fn staged_snapshot(_staged: &Nothing) -> Nothing {
        Nothing
    }

    fn adopt(&mut self, _staged: Nothing) {}
}

/// ZooKeeper's operation code of `setData`, as request and as transaction.
pub(crate) const SET_DATA: i32 = 5;
/// What stands around path and command: their lengths, and a version.
const WRAPPING_BYTES: usize = 12;
/// The longest piece of a snapshot.
const PIECE_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_core::txn::{RequestId, TxnHeader};

    /// All commands, one after the other.
    #[derive(Default)]
    struct Tape(Vec<u8>);

    impl StateMachine for Tape {
        type State = Vec<u8>;

        fn prepare(&mut self, request: &Bytes, _: usize) -> Result<Bytes, Rejected> {
            if request.is_empty() { Err(Rejected(-8)) } else { Ok(request.clone()) }
        }

        fn apply(&mut self, _zxid: Zxid, command: &[u8]) -> Bytes {
            self.0.extend_from_slice(command);
            Bytes::copy_from_slice(&self.0)
        }

        fn save(&self) -> Vec<u8> {
            self.0.clone()
        }

        fn load(&mut self, state: Vec<u8>) {
            self.0 = state;
        }

        fn write(state: Vec<u8>, to: &mut dyn Write) -> io::Result<()> {
            to.write_all(&state)
        }

        fn read(from: &mut dyn Read) -> Result<Vec<u8>, RestoreError> {
            let mut state = Vec::new();
            from.read_to_end(&mut state)?;
            Ok(state)
        }
    }

    const MOST: usize = 1 << 20;

    fn request(body: &'static [u8]) -> Request {
        let id = RequestId { client: 1, cxid: 1 };
        Request { id, op: SET_DATA, body: Bytes::from_static(body), identities: None }
    }

    fn txn(Prepared { kind, body }: Prepared) -> Txn {
        let header = TxnHeader { client: 1, cxid: 1, time: 1, kind };
        Txn { zxid: Zxid(0x1_0000_0001), header, body }
    }

    #[test]
    fn a_command_travels_as_set_data() {
        let mut tape = Replicated::new("tape", Tape::default());
        let prepared = tape.prepare(&request(b"abc"), 0, MOST);
        let mut expected = Vec::new();
        expected.extend_from_slice(b"\0\0\0\x0d/quorate/tape\0\0\0\x03abc\0\0\0\0");
        assert_eq!((prepared.kind, &prepared.body[..]), (5, &expected[..]));
        assert_eq!(tape.apply(&txn(prepared)), "abc");
        let other = Replicated::new("other", Tape::default()).prepare(&request(b"x"), 0, MOST);
        assert_eq!(tape.apply(&txn(other)), "");
        assert_eq!(tape.machine().0, b"abc");
    }

    #[test]
    fn a_refused_request_is_a_transaction_that_says_why() {
        let mut tape = Replicated::new("tape", Tape::default());
        let refused = txn(tape.prepare(&request(b""), 0, MOST));
        assert_eq!(Rejected::of(&refused), Some(Rejected(-8)));
        assert_eq!(tape.apply(&refused), "");
        let unknown = txn(tape.prepare(&Request { op: 1, ..request(b"x") }, 0, MOST));
        assert_eq!(Rejected::of(&unknown), Some(Rejected::UNIMPLEMENTED));
        assert_eq!(Rejected::of(&txn(tape.prepare(&request(b"x"), 0, MOST))), None);
    }

    #[test]
    fn a_state_of_any_length_ends_by_itself() {
        for length in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES] {
            let state: Vec<u8> = (0..length).map(|at| at.to_be_bytes()[7]).collect();
            let mut bytes = Vec::new();
            Saved::<Tape>(state.clone()).write(&mut bytes).unwrap();
            let whole = bytes.len();
            bytes.extend_from_slice(b"more");
            let mut from = &bytes[..];
            let restored = Replicated::<Tape>::restore(Zxid::ZERO, &mut from).unwrap();
            assert!(restored == state && from == b"more", "{length}");
            for cut in [0, 3, whole - 1] {
                let cut = cut.min(whole - 1);
                assert!(Replicated::<Tape>::restore(Zxid::ZERO, &mut &bytes[..cut]).is_err());
            }
        }
    }

    #[test]
    fn no_application_takes_over_no_state() {
        let mut bytes = Vec::new();
        NoApplication.snapshot().write(&mut bytes).unwrap();
        assert!(NoApplication::restore(Zxid::ZERO, &mut &bytes[..]).is_ok());
        bytes.clear();
        Saved::<Tape>(vec![1]).write(&mut bytes).unwrap();
        assert!(NoApplication::restore(Zxid::ZERO, &mut &bytes[..]).is_err());
    }
}

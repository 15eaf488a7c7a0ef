//! A state machine of the caller's own, bytes in and bytes out, as an application.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::id::Origin;
use quorate_core::message::{LearnerInfo, Request};
use quorate_core::prepared::{Facts, Prepared, Rejected};
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use crate::application::clients::{Host, NoClients};
use crate::application::{Application, Restore, RestoreError, Snapshot, SnapshotError};
use crate::framing::{Frame, Frames, frame};

/// A deterministic state machine: commands in, replies out.
///
/// ```
/// use std::iter;
///
/// use bytes::Bytes;
/// use quorate_application::{RestoreError, StateMachine};
/// use quorate_core::zxid::Zxid;
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
///     fn write(state: u64) -> impl Iterator<Item = Bytes> + Send {
///         iter::once(Bytes::copy_from_slice(&state.to_be_bytes()))
///     }
///
///     fn read(state: &mut u64, piece: &[u8]) -> Result<(), RestoreError> {
///         *state = u64::from_be_bytes(piece.try_into()?);
///         Ok(())
///     }
/// }
/// ```
pub trait StateMachine: Send + 'static {
    /// Its state at one moment. Cheap to clone, or taking a snapshot holds the server up: something
    /// shared, say an `Arc` or a persistent map. The default one is that of which nothing was read yet.
    type State: Clone + Default + Send + 'static;

    /// Turns a request into a command, at the leader; or refuses it. Here the clock may be read and
    /// dice be thrown. What was prepared before and is not applied yet is still on its way; a machine
    /// for which that matters keeps it in mind until [`abandon`](Self::abandon).
    ///
    /// The command has at most `bytes_max` bytes, about 2 MiB unless the configuration says otherwise. A
    /// longer one is void, see [`void`](Self::void).
    ///
    /// # Errors
    ///
    /// The reason, which the caller is told.
    fn prepare(&mut self, request: &Bytes, bytes_max: usize) -> Result<Bytes, Rejected> {
        let _ = bytes_max;
        Ok(request.clone())
    }

    /// The command that was prepared last is too long and does not come to pass: the caller is told
    /// [`Rejected::TOO_LONG`]. A machine that keeps in mind what it has prepared forgets it.
    fn void(&mut self) {}

    /// Applies a command; returns the reply for the caller. Depends on nothing but the state and
    /// the command.
    fn apply(&mut self, zxid: Zxid, command: &[u8]) -> Bytes;

    /// Forgets what was prepared and not applied.
    fn abandon(&mut self) {}

    /// The state now.
    fn save(&self) -> Self::State;

    /// The state is this from now on.
    fn load(&mut self, state: Self::State);

    /// Cuts a state into pieces of at most 16 MiB each ([`PIECE_BYTES_MAX`](crate::PIECE_BYTES_MAX)), on another
    /// thread; say an entry each. Nothing is a piece too, and is left out. They come back to [`read`](Self::read)
    /// as they are.
    fn write(state: Self::State) -> impl Iterator<Item = Bytes> + Send + 'static;

    /// Adds the next piece to a state, on another thread.
    ///
    /// # Errors
    ///
    /// If it is none of such a state.
    fn read(state: &mut Self::State, piece: &[u8]) -> Result<(), RestoreError>;
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
    type Restore = Reading<M>;
    /// The reply.
    type Effect = Bytes;
    type Clients = NoClients;

    const PROTOCOL: i32 = LearnerInfo::OTHER_APPLICATION;

    fn clients(&mut self, _: Host) -> NoClients {
        NoClients
    }

    fn prepare(&mut self, request: &Request, _: Origin, facts: &Facts) -> Prepared {
        if request.op == Request::RECONFIGURE {
            return Prepared::reconfiguration(request);
        }
        if request.op != SET_DATA {
            return Prepared::rejected(Rejected::UNIMPLEMENTED);
        }
        let around = self.path.len() + WRAPPING_BYTES;
        match self.machine.prepare(&request.body, facts.bytes_max.saturating_sub(around)) {
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

    fn reply(effect: &Bytes) -> Bytes {
        effect.clone()
    }

    fn void(&mut self) {
        self.machine.void();
    }

    fn abandon(&mut self) {
        self.machine.abandon();
    }

    fn snapshot(&self) -> Saved<M> {
        Saved(Some(Unwritten::State(self.machine.save())))
    }

    fn restore(_label: Zxid) -> Reading<M> {
        Reading { frames: Frames::default(), state: M::State::default() }
    }

    fn staged_snapshot(staged: &M::State) -> Saved<M> {
        Saved(Some(Unwritten::State(staged.clone())))
    }

    fn adopt(&mut self, staged: M::State) {
        self.machine.load(staged);
    }
}

/// The state of a [`StateMachine`] at one moment.
pub struct Saved<M: StateMachine>(Option<Unwritten<M>>);

/// What is to be written of it.
enum Unwritten<M: StateMachine> {
    State(M::State),
    Pieces(Box<dyn Iterator<Item = Bytes> + Send>),
}

impl<M: StateMachine> fmt::Debug for Saved<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saved").finish_non_exhaustive()
    }
}

impl<M: StateMachine> Snapshot for Saved<M> {
    fn next(&mut self, out: &mut BytesMut) -> Result<bool, SnapshotError> {
        let mut pieces = match self.0.take() {
            None => return Ok(false),
            Some(Unwritten::State(state)) => Box::new(M::write(state)),
            Some(Unwritten::Pieces(pieces)) => pieces,
        };
        let more = frame(&mut *pieces, out)?;
        self.0 = more.then_some(Unwritten::Pieces(pieces));
        Ok(more)
    }
}

/// A state of a [`StateMachine`] that is being read.
pub struct Reading<M: StateMachine> {
    frames: Frames,
    state: M::State,
}

impl<M: StateMachine> fmt::Debug for Reading<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").finish_non_exhaustive()
    }
}

impl<M: StateMachine> Restore for Reading<M> {
    type State = M::State;

    fn push(&mut self, bytes: &mut &[u8]) -> Result<Option<M::State>, RestoreError> {
        loop {
            match self.frames.next(bytes)? {
                None => return Ok(None),
                Some(Frame::Piece(piece)) => M::read(&mut self.state, &piece)?,
                Some(Frame::End) => return Ok(Some(core::mem::take(&mut self.state))),
            }
        }
    }
}

/// ZooKeeper's operation code of `setData`, as request and as transaction: how a command travels.
pub const SET_DATA: i32 = 5;
/// What stands around path and command: their lengths, and a version.
const WRAPPING_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

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

        fn write(state: Vec<u8>) -> impl Iterator<Item = Bytes> + Send {
            (0..state.len()).map(move |at| Bytes::copy_from_slice(&state[at..=at]))
        }

        fn read(state: &mut Vec<u8>, piece: &[u8]) -> Result<(), RestoreError> {
            state.extend_from_slice(piece);
            Ok(())
        }
    }

    const FACTS: Facts = Facts { zxid: Zxid(1 << 32 | 1), now_ms: 0, bytes_max: 1 << 20 };

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
        let prepared = tape.prepare(&request(b"abc"), Origin::Here, &FACTS);
        let mut expected = Vec::new();
        expected.extend_from_slice(b"\0\0\0\x0d/quorate/tape\0\0\0\x03abc\0\0\0\0");
        assert_eq!((prepared.kind, &prepared.body[..]), (5, &expected[..]));
        assert_eq!(tape.apply(&txn(prepared)), "abc");
        let other =
            Replicated::new("other", Tape::default()).prepare(&request(b"x"), Origin::Here, &FACTS);
        assert_eq!(tape.apply(&txn(other)), "");
        assert_eq!(tape.machine().0, b"abc");
    }

    #[test]
    fn a_refused_request_is_a_transaction_that_says_why() {
        let mut tape = Replicated::new("tape", Tape::default());
        let refused = txn(tape.prepare(&request(b""), Origin::Here, &FACTS));
        assert_eq!(Rejected::of(&refused), Some(Rejected(-8)));
        assert_eq!(tape.apply(&refused), "");
        let unknown = txn(tape.prepare(&Request { op: 1, ..request(b"x") }, Origin::Here, &FACTS));
        assert_eq!(Rejected::of(&unknown), Some(Rejected::UNIMPLEMENTED));
        assert_eq!(Rejected::of(&txn(tape.prepare(&request(b"x"), Origin::Here, &FACTS))), None);
    }

    #[test]
    fn a_state_of_any_length_is_written_in_pieces_and_ends_by_itself() {
        for length in [0, 1, 2, 50_000] {
            let state: Vec<u8> = (0..length).map(|at: usize| at.to_be_bytes()[7]).collect();
            let mut saved = Saved::<Tape>(Some(Unwritten::State(state.clone())));
            let (mut bytes, mut written) = (BytesMut::new(), 0);
            loop {
                let more = saved.next(&mut bytes).unwrap();
                assert!(bytes.len() - written <= 2 * 64 * 1024);
                written = bytes.len();
                if !more {
                    break;
                }
            }
            assert!(!saved.next(&mut bytes).unwrap() && bytes.len() == written);
            bytes.extend_from_slice(b"more");
            let restore = |mut bytes: &[u8]| {
                let state = Replicated::<Tape>::restore(Zxid::ZERO).push(&mut bytes).unwrap();
                (state, Bytes::copy_from_slice(bytes))
            };
            assert!(restore(&bytes) == (Some(state), Bytes::from_static(b"more")), "{length}");
            for cut in [0, 3, written - 1] {
                assert_eq!(restore(&bytes[..cut.min(written - 1)]), (None, Bytes::new()));
            }
        }
    }
}

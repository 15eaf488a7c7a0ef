//! The state machine of a bench, which keeps nothing.

use std::iter;

use bytes::Bytes;
use quorate_driver::core::zxid::Zxid;
use quorate_driver::{Replicated, RestoreError, StateMachine};

pub(super) type Server<R> = quorate_driver::Server<R, Replicated<Sink>>;

/// A state machine that keeps nothing: what is measured is how a write gets there.
#[derive(Debug)]
pub(super) struct Sink;

impl StateMachine for Sink {
    type State = ();

    fn apply(&mut self, _zxid: Zxid, _command: &[u8]) -> Bytes {
        Bytes::new()
    }

    fn save(&self) {}

    fn load(&mut self, (): ()) {}

    fn write((): ()) -> impl Iterator<Item = Bytes> + Send {
        iter::empty()
    }

    fn read((): &mut (), _piece: &[u8]) -> Result<(), RestoreError> {
        Ok(())
    }
}

//! Threads beside the runtime, for what no runtime can wait for.

use crate::failure::Failure;

/// Starts a detached thread.
pub(crate) fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    // Detached: it ends with the process.
    match std::thread::Builder::new().name(name.to_owned()).spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::failed(format!("cannot start a thread: {error}"))),
    }
}

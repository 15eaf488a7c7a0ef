//! Threads of the server's own: for work that blocks, and for work that is less urgent than a commit.

use std::io;

use async_channel::{Sender, bounded};

/// Runs what blocks on a thread of its own. The thread cannot be stopped, so it must own nothing that
/// anybody waits for.
///
/// # Errors
///
/// The system gives no thread, or the work has panicked.
pub async fn offload<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, result) = bounded(1);
    offload_to(done, name, work)?;
    result.recv().await.map_err(|_| io::Error::other(format!("thread {name} has panicked")))
}

/// The same, for who does not wait here: the result goes into a channel, which is closed if the work has panicked.
///
/// # Errors
///
/// The system gives no thread.
pub(crate) fn offload_to<T: Send + 'static>(
    done: Sender<T>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(THREAD_STACK);
    thread.spawn(move || {
        // The caller may have stopped waiting.
        drop(done.try_send(work()));
    })?;
    Ok(())
}

/// Lets a thread that has much to do give way to those that a caller or a peer waits for: whole snapshots and
/// logs pass through such threads, and a commit must not queue for the processor behind them.
///
/// What a system cannot do about it is not done. A process may make its threads less urgent without any
/// right; each thread of Linux has an urgency of its own.
pub(crate) fn give_way() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, GIVING_WAY);
}

/// Half way to what runs only when nothing else does.
#[cfg(target_os = "linux")]
const GIVING_WAY: i32 = 10;

/// Enough for a resolver; threads here are short-lived or write a few bytes.
pub(crate) const THREAD_STACK: usize = 512 * 1024;
/// Here an application's code runs.
pub(crate) const APPLICATION_STACK: usize = 4 * THREAD_STACK;

//! The log of what clients have changed: lines that the service gives, written in their order by a thread of their own.
//!
//! ```text
//!   service ── Output::Audit ──► queue, bounded ──► thread ──► file, or a stream of the process
//!                                 └ full: what clients ask for waits, or lines are dropped and counted
//! ```
//!
//! The file is only ever appended to. One that was renamed or removed is opened anew for the next line, so that programs
//! which rotate logs need say nothing.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bytes::Bytes;

use crate::net::events::Shared;
use crate::status::Counters;
use crate::task_group::KeepAlive;
use crate::threads::THREAD_STACK;
use crate::zoo_cfg::{AuditLog, AuditTarget, WhenFull};

/// The end of the queue to the thread. Dropped, what waits is written, or given up if it cannot be.
#[derive(Debug)]
pub(crate) struct AuditQueue {
    lines: Sender<Bytes>,
    queued: Arc<Queued>,
    when_full: WhenFull,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Queued {
    bytes: AtomicUsize,
    ended: AtomicBool,
}

impl AuditQueue {
    /// Opens the file, and starts the thread. `wake` is called when there is room again, if there was none.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or the system gives no thread.
    pub(crate) fn start(
        log: &AuditLog,
        shared: &Arc<Shared>,
        keep_alive: KeepAlive,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let out = Out::open(&log.to)?;
        let (lines, waiting) = channel();
        let queued: Arc<Queued> = Arc::default();
        let writer = Writer {
            out,
            waiting,
            queued: Arc::clone(&queued),
            when_full: log.when_full,
            shared: Arc::clone(shared),
        };
        let thread = std::thread::Builder::new().name("quorate-audit".to_owned());
        thread.stack_size(THREAD_STACK).spawn(move || {
            writer.run(wake);
            drop(keep_alive);
        })?;
        Ok(Self { lines, queued, when_full: log.when_full, shared: Arc::clone(shared) })
    }

    /// Has a line written, behind those before it.
    pub(crate) fn put(&self, line: Bytes) {
        if self.when_full == WhenFull::Drop && self.is_full() {
            return Counters::add(&self.shared.counters.audit_dropped);
        }
        self.queued.bytes.fetch_add(line.len(), Ordering::Relaxed);
        // The thread has panicked: that is said where it did.
        drop(self.lines.send(line));
    }

    /// Whether nothing more is to be taken from clients for now.
    pub(crate) fn holds_clients(&self) -> bool {
        self.when_full == WhenFull::Wait && self.is_full()
    }

    fn is_full(&self) -> bool {
        self.queued.bytes.load(Ordering::Relaxed) > QUEUED_MAX
    }
}

impl Drop for AuditQueue {
    fn drop(&mut self) {
        self.queued.ended.store(true, Ordering::Relaxed);
    }
}

/// The thread's part.
struct Writer {
    out: Out,
    waiting: Receiver<Bytes>,
    queued: Arc<Queued>,
    when_full: WhenFull,
    shared: Arc<Shared>,
}

impl Writer {
    fn run(mut self, wake: impl Fn()) {
        let (mut batch, mut failed) = (Vec::new(), false);
        while let Ok(line) = self.waiting.recv() {
            let mut lines = 1;
            batch.extend_from_slice(&line);
            while batch.len() < BATCH_BYTES {
                let Ok(line) = self.waiting.try_recv() else { break };
                batch.extend_from_slice(&line);
                lines += 1;
            }
            self.write(&batch, lines, &mut failed);
            let before = self.queued.bytes.fetch_sub(batch.len(), Ordering::Relaxed);
            if before > QUEUED_MAX && before - batch.len() <= QUEUED_MAX {
                wake();
            }
            batch.clear();
        }
    }

    /// Writes all of it, however often that has to be tried; or gives it up.
    fn write(&mut self, mut bytes: &[u8], lines: u64, failed: &mut bool) {
        let sid = self.shared.id.0;
        while !bytes.is_empty() {
            let error = match self.out.write(bytes) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(written) => {
                    if std::mem::take(failed) {
                        tracing::info!(
                            event = "audit.written",
                            sid,
                            "the audit log is written again"
                        );
                    }
                    bytes = &bytes[written..];
                    continue;
                }
                Err(error) => error,
            };
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            if !std::mem::replace(failed, true) {
                let what = match self.when_full {
                    WhenFull::Wait => "cannot be written, and is tried again: clients wait",
                    WhenFull::Drop => "cannot be written: lines are dropped",
                };
                tracing::error!(event = "audit.failed", sid, to = %self.out.to, %error, "the audit log {what}");
            }
            let ended = self.queued.ended.load(Ordering::Relaxed);
            if ended || self.when_full == WhenFull::Drop {
                self.shared.counters.audit_dropped.fetch_add(lines, Ordering::Relaxed);
                return;
            }
            std::thread::sleep(RETRY);
        }
    }
}

/// Where it is written; of a file, what is open of it.
struct Out {
    to: AuditTarget,
    file: Option<File>,
}

impl Out {
    fn open(to: &AuditTarget) -> io::Result<Self> {
        let file = match to {
            AuditTarget::File(path) => Some(append_to(path)?),
            AuditTarget::Stdout | AuditTarget::Stderr => None,
        };
        Ok(Self { to: to.clone(), file })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.to {
            AuditTarget::File(path) => {
                let file = match self.file.take().filter(|file| !has_gone(path, file)) {
                    Some(file) => file,
                    None => append_to(path)?,
                };
                self.file.insert(file).write(bytes)
            }
            AuditTarget::Stdout => io::stdout().lock().write_all(bytes).map(|()| bytes.len()),
            AuditTarget::Stderr => io::stderr().lock().write_all(bytes).map(|()| bytes.len()),
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
    options.open(path)
}

/// Whether another file is at this path now, or none.
#[cfg(unix)]
fn has_gone(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(open) = file.metadata() else { return false };
    match std::fs::metadata(path) {
        Ok(there) => (there.dev(), there.ino()) != (open.dev(), open.ino()),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(not(unix))]
fn has_gone(_: &Path, _: &File) -> bool {
    false
}

/// How many bytes of lines may wait before nothing more is taken, or lines are dropped.
const QUEUED_MAX: usize = 4 << 20;
/// How much is written at once.
const BATCH_BYTES: usize = 64 << 10;
/// After how long it is tried again to write.
const RETRY: Duration = Duration::from_secs(1);

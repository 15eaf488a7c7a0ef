//! The one thread that writes.
//!
//! It owns the data directory, takes writes in order, gathers those that have come meanwhile, and
//! reports the last that is durable. A disk that is slow or hangs holds up what waits for it, and
//! nothing else. A disk that fails ends the server: nobody knows what a crash would leave.
//!
//! What it does not do: decide what has to wait for the disk. That is the core's.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_channel::{Receiver, Sender, bounded};
use futures_lite::future::pending;
use quorate_core::id::Ticket;
use quorate_core::output::Write;
use quorate_log::{Log, LogError};

use crate::scope::{Hold, THREAD_STACK};
use crate::server::ServerError;

/// The loop's end of the storage thread. Dropping it ends the thread after the writes handed over.
#[derive(Debug)]
pub(crate) struct Disk {
    writes: Sender<(Ticket, Write)>,
    progress: Arc<Mutex<Progress>>,
    moved: Receiver<()>,
}

/// What the thread has done since the loop looked last. A cell, not a queue: the thread must never
/// wait for the loop, which may be waiting for the thread.
#[derive(Debug, Default)]
struct Progress {
    durable: Option<Ticket>,
    failed: Option<ServerError>,
}

impl Disk {
    /// Starts the thread. It keeps `hold` until the log is closed and its lock released.
    pub(crate) fn start(
        log: Log,
        dynamic_config_file: Option<PathBuf>,
        hold: Hold,
    ) -> io::Result<Self> {
        let (writes, queue) = bounded(WRITES_MAX);
        let (signal, moved) = bounded(1);
        let progress = Arc::new(Mutex::new(Progress::default()));
        let told = Arc::clone(&progress);
        let thread = std::thread::Builder::new().name("quorate-disk".to_owned());
        thread.stack_size(THREAD_STACK).spawn(move || {
            let mut storage = Storage { log, dynamic_config_file };
            storage.serve(&queue, &told, &signal);
            drop(storage);
            drop(hold);
        })?;
        Ok(Self { writes, progress, moved })
    }

    /// Hands a write over. Waits only while more are under way than any peer has.
    pub(crate) async fn write(&self, ticket: Ticket, write: Write) {
        // The thread ends early only after a failure, which `durable` tells.
        drop(self.writes.send((ticket, write)).await);
    }

    /// Waits for the last ticket that has become durable.
    pub(crate) async fn durable(&self) -> Result<Ticket, ServerError> {
        loop {
            let alive = self.moved.recv().await.is_ok();
            let durable = {
                let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(error) = progress.failed.clone() {
                    return Err(error);
                }
                progress.durable.take()
            };
            match durable {
                Some(ticket) => return Ok(ticket),
                None if alive => {}
                None => return pending().await,
            }
        }
    }
}

/// What the thread owns.
struct Storage {
    log: Log,
    dynamic_config_file: Option<PathBuf>,
}

impl Storage {
    fn serve(
        &mut self,
        queue: &Receiver<(Ticket, Write)>,
        progress: &Mutex<Progress>,
        signal: &Sender<()>,
    ) {
        let tell = |tell: &dyn Fn(&mut Progress)| {
            tell(&mut progress.lock().unwrap_or_else(PoisonError::into_inner));
            // Full: the loop has been told already.
            let _ = signal.try_send(());
        };
        while let Ok((mut last, write)) = queue.recv_blocking() {
            let mut result = self.perform(write);
            while result.is_ok() {
                let Ok((ticket, write)) = queue.try_recv() else { break };
                result = self.perform(write);
                last = ticket;
            }
            match result {
                Ok(()) => tell(&|progress| progress.durable = Some(last)),
                Err(error) => {
                    tell(&|progress| progress.failed = Some(error.clone()));
                    return;
                }
            }
        }
    }

    fn perform(&mut self, write: Write) -> Result<(), ServerError> {
        let disk = |source: LogError| ServerError::Disk { source: Arc::new(source) };
        match write {
            Write::AcceptedEpoch(epoch) => self.log.write_accepted_epoch(epoch).map_err(disk),
            Write::CurrentEpoch(epoch) => self.log.write_current_epoch(epoch).map_err(disk),
            Write::Membership(text) => match &self.dynamic_config_file {
                Some(path) => replace(path, &text).map_err(|source| ServerError::DynamicConfig {
                    path: path.clone(),
                    source: Arc::new(source),
                }),
                None => Ok(()),
            },
        }
    }
}

/// Replaces a file as a whole, durably: a crash leaves the old one or the new one.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut next = path.as_os_str().to_owned();
    next.push(".next");
    let mut file = File::create(&next)?;
    file.write_all(content)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    drop(file);
    fs::rename(&next, path)?;
    #[cfg(unix)]
    {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        File::open(dir.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// How many writes may be under way. A peer without a history has a handful.
const WRITES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_file_is_replaced_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("zoo.cfg.dynamic");
        replace(&path, b"server.1=a:1:2:participant").unwrap();
        replace(&path, b"server.2=b:1:2:participant").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "server.2=b:1:2:participant\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

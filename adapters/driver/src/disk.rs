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
    pub(crate) fn start(log: Log, kept: Kept, hold: Hold) -> io::Result<Self> {
        let (writes, queue) = bounded(WRITES_MAX);
        let (signal, moved) = bounded(1);
        let progress = Arc::new(Mutex::new(Progress::default()));
        let told = Arc::clone(&progress);
        let thread = std::thread::Builder::new().name("quorate-disk".to_owned());
        thread.stack_size(THREAD_STACK).spawn(move || {
            let mut storage = Storage { log, kept };
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
    kept: Kept,
}

/// Where the membership is kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The file that holds it.
    pub(crate) dynamic_file: Option<PathBuf>,
    /// The file whose `dynamicConfigFile` names that file.
    pub(crate) named_in: Option<PathBuf>,
}

impl Kept {
    /// Keeps a newer membership as ZooKeeper does: in a file of its own, whose name ends in its
    /// version and which does not hold that version, named in `zoo.cfg`. Each step leaves something
    /// to start from.
    fn keep(&mut self, text: &[u8]) -> Result<(), (PathBuf, io::Error)> {
        let Some(present) = &self.dynamic_file else {
            tracing::warn!(
                "a newer configuration was adopted, and there is no dynamicConfigFile to keep it in: \
                 after a restart the old one holds until a peer tells again"
            );
            return Ok(());
        };
        let text = String::from_utf8_lossy(text);
        let is_version = |line: &&str| line.starts_with("version=");
        let version = text.lines().find(is_version).map_or("0", |line| &line["version=".len()..]);
        let members: Vec<_> = text.lines().filter(|line| !is_version(line)).collect();
        let next = versioned(present, version);
        replace(&next, members.join("\n").as_bytes()).map_err(|error| (next.clone(), error))?;
        if let Some(config) = &self.named_in {
            name_in(config, &next).map_err(|error| (config.clone(), error))?;
        }
        self.dynamic_file = Some(next);
        Ok(())
    }
}

/// `zoo.cfg.dynamic.100000000` and version 200000000: `zoo.cfg.dynamic.200000000`.
fn versioned(present: &Path, version: &str) -> PathBuf {
    let hex = |end: &str| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut next = match present.extension().and_then(|end| end.to_str()).filter(|end| hex(end)) {
        Some(_) => present.with_extension(""),
        None => present.to_owned(),
    }
    .into_os_string();
    next.push(".");
    next.push(version);
    next.into()
}

/// Makes `dynamicConfigFile` in `config` name `next`; every other line stays as it is.
fn name_in(config: &Path, next: &Path) -> io::Result<()> {
    let text = fs::read_to_string(config)?;
    let renamed = |line: &str| match line.trim_start().starts_with("dynamicConfigFile") {
        true => format!("dynamicConfigFile={}", next.display()),
        false => line.to_owned(),
    };
    let lines: Vec<_> = text.lines().map(renamed).collect();
    replace(config, lines.join("\n").as_bytes())
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
            Write::Membership(text) => self.kept.keep(&text).map_err(|(path, source)| {
                ServerError::DynamicConfig { path, source: Arc::new(source) }
            }),
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

    #[test]
    fn a_newer_membership_is_what_the_next_start_reads() {
        let dir = tempfile::tempdir().unwrap();
        let (config, data) = (dir.path().join("zoo.cfg"), dir.path().join("data"));
        let dynamic = dir.path().join("zoo.cfg.dynamic.100000000");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("myid"), "1").unwrap();
        fs::write(&dynamic, "server.1=a:1:2:participant\n").unwrap();
        let text = format!(
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\nreconfigEnabled=true\n# kept\ndataDir={}\n\
             dynamicConfigFile={}\n",
            data.display(),
            dynamic.display()
        );
        fs::write(&config, text).unwrap();
        let mut kept = Kept { dynamic_file: Some(dynamic), named_in: Some(config.clone()) };
        for (version, members) in [(0x2_0000_0000, 2), (0x3_0000_0001, 3)] {
            let lines: String =
                (1..=members).map(|id| format!("server.{id}=h{id}:1:2:participant\n")).collect();
            kept.keep(format!("{lines}version={version:x}").as_bytes()).unwrap();
            let read = crate::zoo_cfg::ZooCfg::read(&config).unwrap();
            assert_eq!(read.membership.version(), version);
            assert_eq!(read.membership.members().len(), members);
            assert!(fs::read_to_string(&config).unwrap().contains("# kept\n"));
        }
    }
}

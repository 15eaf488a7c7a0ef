//! The elected command, as a process group of its own.
//!
//! All of the group ends with the leadership: a shell's children, too, would otherwise go on after it. And
//! the command ends when this process does, however that comes about: it begins as this program, which asks
//! the kernel for that and then becomes the command.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command as StdCommand, ExitStatus};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child as Process, Command};

use crate::failure::Failure;

/// Become a command that ends with its parent.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The process that has to be the parent.
    parent: u32,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// The shell's exit codes for a command that is not there, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

/// Becomes the command; returns only if that fails.
pub(crate) fn become_command(arguments: &Arguments) -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    {
        // Where the kernel cannot do this, the command survives a parent that is killed.
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    }
    let parent = rustix::process::getppid().map(Pid::as_raw_nonzero);
    if parent.map(|pid| pid.get().unsigned_abs()) != Some(arguments.parent) {
        // It has ended before the kernel was asked.
        return Err(Failure::interrupted());
    }
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(Failure::usage("which command?"));
    };
    let error = StdCommand::new(program).args(rest).exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE };
    Err(Failure { code, message: format!("{}: {error}", program.to_string_lossy()) })
}

/// The running command.
#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    group: Option<Pid>,
}

impl Child {
    /// Starts it, with these variables besides this process's own.
    pub(crate) fn start(
        command: &[OsString],
        environment: &[(&str, String)],
    ) -> Result<Self, Failure> {
        let cannot = |error| Failure::failed(format!("cannot start the command: {error}"));
        let own = std::env::current_exe().map_err(cannot)?;
        let process = Command::new(own)
            .arg("elect-child")
            .arg(std::process::id().to_string())
            .arg("--")
            .args(command)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
        let id = process.id().and_then(|id| i32::try_from(id).ok());
        Ok(Self { process, group: id.and_then(Pid::from_raw) })
    }

    /// Sends all of it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It has ended already if this fails.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Waits for the command itself to end; what it has left behind is killed then.
    pub(crate) async fn ended(&mut self) -> Result<Ended, Failure> {
        let status = self.process.wait().await;
        self.signal(Signal::KILL);
        match status {
            Ok(status) => Ok(Ended::from(status)),
            Err(error) => Err(Failure::failed(format!("cannot wait for the command: {error}"))),
        }
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// As a shell says it: 128 and the signal's number if one ended it.
    pub(crate) code: u8,
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        Self { code: code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1) }
    }
}

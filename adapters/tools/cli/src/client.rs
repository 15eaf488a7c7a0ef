//! `quorate client`: nodes by hand, through the client port of any ZooKeeper server.
//!
//! ```text
//!   lines ── typed (editor) or piped ──► command ──► operations ─┬─ together: a multi ──► session ── the ensemble
//!   arguments: one command ────────────►                         └─ watching
//!                                                     outcome, error ──► stdout, stderr
//! ```
//!
//! The client library keeps the session: it goes to another server when one is lost, and sets watches again there. If
//! the session itself has ended, the next command of the shell has another.
//!
//! An identity is neither printed nor logged, and no history is kept on a disk. On the command line others on this
//! machine can see it, as every argument: `addauth` in the shell is the other way.

mod acl;
mod command;
mod content;
mod editor;
mod error;
mod lines;
mod operations;
mod outcome;
mod secret;
mod session;
mod together;
mod watching;
mod words;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Args;
use quorate_tokio::core::address::HostPort;
use tokio::signal::unix::{Signal, SignalKind, signal};
use zookeeper_client::Client;

use self::command::{Command, Line};
use self::editor::Prompt;
use self::error::ClientError;
use self::lines::Lines;
use self::operations::{carry_out, one};
use self::outcome::Page;
use self::secret::Secret;
use self::session::{Wanted, close};
use crate::address::address;
use crate::failure::Failure;
use crate::through_tls::TlsArguments;

/// Read and change nodes: one command, or a shell.
///
/// Works with any ZooKeeper server since 3.5. Without a command it reads them from stdin: at a terminal with a prompt,
/// history and completion (`help` lists the commands), else one a line, to the end whatever fails. Exits with 1 if a
/// command has failed, with ZooKeeper's name and number of the error on stderr, and with 3 if no server could be
/// reached.
#[derive(Debug, Args)]
#[command(subcommand_precedence_over_arg = true)]
pub(crate) struct Arguments {
    /// Client ports of one ensemble.
    #[arg(required = true, value_name = "HOST:PORT", value_delimiter = ',', value_parser = address)]
    servers: Vec<HostPort>,
    /// One JSON object for each result.
    #[arg(long, global = true)]
    json: bool,
    /// The session's time-out, and how long to try to reach a server.
    #[arg(long, global = true, value_name = "MS", default_value_t = 6000,
          value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    timeout: u32,
    /// Prove this identity (digest).
    #[arg(long, global = true, value_name = "USER:PASSWORD")]
    auth: Vec<Secret>,
    #[command(flatten)]
    tls: TlsArguments,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Opens the session, and carries out the command or those on stdin.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    if std::env::var_os("RUST_LOG").is_some() {
        crate::logs::start(None, "off")?;
    }
    let Arguments { servers, json, timeout, auth, tls, command } = arguments;
    for identity in &auth {
        one(std::slice::from_ref(identity)).map_err(ClientError::into_failure)?;
    }
    let servers: Vec<_> = servers.iter().map(HostPort::to_string).collect();
    let wanted = Wanted {
        servers: servers.join(","),
        timeout: Duration::from_millis(timeout.into()),
        identities: auth,
        #[cfg(feature = "client-tls")]
        tls: tls.options()?,
    };
    #[cfg(not(feature = "client-tls"))]
    let _ = tls;
    let prompt = if command.is_none() { lines::prompt()? } else { None };
    let no_signals = |error| Failure::failed(format!("cannot wait for signals: {error}"));
    let interrupts = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let mut work = Work { page: Page::new(json), interrupts };
    let client = tokio::select! {
        client = wanted.open() => client.map_err(|error| work.page_failure(error))?,
        _ = work.interrupts.recv() => return Err(Failure::interrupted()),
    };
    match command {
        Some(command) => {
            let done = work.carry_out(&client, command).await;
            close(client).await;
            match done {
                Ok(()) => Ok(()),
                Err(Stopped::Failed(error)) => Err(work.page_failure(error)),
                Err(Stopped::Interrupted) => Err(Failure::interrupted()),
                Err(Stopped::Gone) => Ok(()),
            }
        }
        None => shell(wanted, prompt, client, work).await,
    }
}

/// Why a command has no outcome, or why it does not matter.
enum Stopped {
    Failed(ClientError),
    Interrupted,
    /// The reader of stdout has gone.
    Gone,
}

impl From<ClientError> for Stopped {
    fn from(error: ClientError) -> Self {
        Self::Failed(error)
    }
}

/// What each command needs.
struct Work {
    page: Page,
    interrupts: Signal,
}

impl Work {
    async fn carry_out(&mut self, client: &Client, command: Command) -> Result<(), Stopped> {
        let is_watch = matches!(command, Command::Watch { .. });
        let outcome = tokio::select! {
            outcome = carry_out(client, command, self.page) => outcome?,
            // That is how watching ends.
            _ = self.interrupts.recv() => {
                return if is_watch { Ok(()) } else { Err(Stopped::Interrupted) };
            }
        };
        if is_watch {
            // It has shown all, until its reader had gone.
            return Err(Stopped::Gone);
        }
        self.page.say(&outcome).map_err(|_| Stopped::Gone)
    }

    /// A failure that ends the process, for programs on stdout, too.
    fn page_failure(&self, error: ClientError) -> Failure {
        // The reader may have gone.
        drop(self.page.fail(&error));
        error.into_failure()
    }
}

/// Carries out line after line.
async fn shell(
    mut wanted: Wanted,
    prompt: Option<Prompt>,
    client: Client,
    mut work: Work,
) -> Result<(), Failure> {
    let session = Arc::new(Mutex::new(client));
    let mut lines = Lines::start(prompt, format!("[{}] ", wanted.servers), Arc::clone(&session))?;
    let mut failed = 0_u32;
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            // At a prompt ctrl-C is a key; this is a signal from elsewhere.
            _ = work.interrupts.recv() => return Err(Failure::interrupted()),
        };
        let Some(line) = line else { break };
        let done = match Line::parse(&line) {
            Ok(None) => continue,
            Ok(Some(Line::Quit)) => break,
            Ok(Some(Line::Command(command))) => {
                let mut proved = None;
                if let Command::Addauth { scheme, identity } = &command {
                    proved = identity.first().cloned().filter(|_| scheme == "digest");
                }
                match wanted.living(&session).await {
                    Ok(client) => {
                        let done = work.carry_out(&client, command).await;
                        if done.is_ok() {
                            wanted.identities.extend(proved);
                        }
                        done
                    }
                    Err(error) => Err(error.into()),
                }
            }
            Err(error) => Err(error.into()),
        };
        match done {
            Ok(()) => {}
            Err(Stopped::Failed(ClientError::Usage(help))) if !help.use_stderr() => {
                // What was asked for with `help` or `--help`.
                drop(write!(io::stdout(), "{help}"));
            }
            Err(Stopped::Failed(error)) => {
                failed += 1;
                drop(work.page.fail(&error));
                // Without stderr there is no way to say it.
                drop(writeln!(io::stderr(), "{error}"));
            }
            Err(Stopped::Interrupted) if lines.is_terminal() => {}
            Err(Stopped::Interrupted) => return Err(Failure::interrupted()),
            Err(Stopped::Gone) => break,
        }
    }
    let is_terminal = lines.is_terminal();
    // Its thread has the session, too.
    drop(lines);
    let client = session::current(&session);
    drop(session);
    close(client).await;
    // A person has seen it.
    if failed > 0 && !is_terminal { Err(Failure::failed("")) } else { Ok(()) }
}

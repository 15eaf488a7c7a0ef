//! The prompt of the shell: history, and completion of commands and paths.
//!
//! The history ends with the process, and has no identities: nothing that was typed goes to a disk.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

use super::command::Line;
use super::session::{Current, current};
use crate::failure::Failure;

/// How long a completion may take: the person waits for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Lines with a prompt.
pub(super) struct Prompt(Editor<Completion, DefaultHistory>);

impl Prompt {
    /// At this terminal. To be called before anything waits for SIGINT: the editor takes it, and who comes later gets
    /// it, too; the other way round a watch could not be interrupted.
    pub(super) fn open() -> Result<Self, Failure> {
        let config = Config::builder().completion_type(CompletionType::List).build();
        let opened = Editor::with_config(config);
        opened.map(Self).map_err(|error| Failure::failed(format!("no prompt: {error}")))
    }

    /// Reads lines, one for each ask.
    pub(super) fn read(
        mut self,
        prompt: &str,
        asked: &Receiver<()>,
        to: &UnboundedSender<String>,
        session: Current,
        runtime: Handle,
    ) {
        self.0.set_helper(Some(Completion { session, runtime, commands: Line::names() }));
        while asked.recv().is_ok() {
            let line = loop {
                match self.0.readline(prompt) {
                    Ok(line) => break line,
                    // The line is given up; or a signal was meant for the last command.
                    Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {}
                    Err(_) => return,
                }
            };
            if !line.trim_start().starts_with("addauth") {
                // A line without history is still a line.
                drop(self.0.add_history_entry(&line));
            }
            if to.send(line).is_err() {
                return;
            }
        }
    }
}

/// Completes the first word to a command, and what begins with "/" to a node.
struct Completion {
    session: Current,
    runtime: Handle,
    commands: Vec<String>,
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..position];
        let start = before.rfind(char::is_whitespace).map_or(0, |space| space + 1);
        let word = &before[start..];
        if start == 0 {
            return Ok((start, candidates(word, &self.commands, " ")));
        }
        let Some((parent, name)) = word.rsplit_once('/') else { return Ok((start, Vec::new())) };
        let client = current(&self.session);
        let parent = if parent.is_empty() { "/" } else { parent };
        let children = client.list_children(parent);
        let children = async { tokio::time::timeout(PATIENCE, children).await };
        // Without an answer there is nothing to choose from.
        let mut children =
            self.runtime.block_on(children).ok().and_then(Result::ok).unwrap_or_default();
        children.sort_unstable();
        Ok((position - name.len(), candidates(name, &children, "")))
    }
}

fn candidates(begun: &str, names: &[String], after: &str) -> Vec<Pair> {
    let fitting = names.iter().filter(|name| name.starts_with(begun));
    fitting
        .map(|name| Pair { display: name.clone(), replacement: format!("{name}{after}") })
        .collect()
}

// The editor wants these, too; they do nothing.
impl Hinter for Completion {
    type Hint = String;
}
impl Highlighter for Completion {}
impl Validator for Completion {}
impl rustyline::Helper for Completion {}

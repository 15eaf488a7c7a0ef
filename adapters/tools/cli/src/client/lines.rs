//! The lines of the shell: typed at a terminal, or as they come on stdin.
//!
//! Either way they are read by a thread of its own, one when it is asked for: the session is kept alive meanwhile.

use std::io::{self, BufRead, IsTerminal};
use std::sync::mpsc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::editor::Prompt;
use super::session::Current;
use crate::failure::Failure;
use crate::threads::thread;

/// Where commands come from.
#[derive(Debug)]
pub(super) struct Lines {
    asks: mpsc::Sender<()>,
    lines: UnboundedReceiver<String>,
    terminal: bool,
}

/// The prompt, if a person types: before anything waits for SIGINT, see [`Prompt::open`].
pub(super) fn prompt() -> Result<Option<Prompt>, Failure> {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    is_terminal.then(Prompt::open).transpose()
}

impl Lines {
    /// From the prompt, else from stdin.
    pub(super) fn start(
        prompt: Option<Prompt>,
        text: String,
        session: Current,
    ) -> Result<Self, Failure> {
        let (asks, asked) = mpsc::channel();
        let (typed, lines) = unbounded_channel();
        let terminal = prompt.is_some();
        match prompt {
            Some(prompt) => {
                let runtime = tokio::runtime::Handle::current();
                let read = move || prompt.read(&text, &asked, &typed, session, runtime);
                thread("quorate-editor", read)?;
            }
            None => thread("quorate-lines", move || read(&asked, &typed))?,
        }
        Ok(Self { asks, lines, terminal })
    }

    /// Whether a person types them.
    pub(super) const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The next; none at the end.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.asks.send(()).ok()?;
        self.lines.recv().await
    }
}

fn read(asked: &mpsc::Receiver<()>, to: &UnboundedSender<String>) {
    let mut lines = io::stdin().lock().lines();
    while asked.recv().is_ok() {
        let Some(Ok(line)) = lines.next() else { return };
        if to.send(line).is_err() {
            return;
        }
    }
}

//! The lines of the shell: typed at a terminal, or as they come on stdin.
//!
//! Either way they are read by a thread of its own, one when it is asked for: the session is kept alive meanwhile.

use std::io::{self, BufRead, IsTerminal};
use std::sync::mpsc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::editor;
use super::session::Current;
use crate::failure::Failure;
use crate::serve::thread;

/// Where commands come from.
#[derive(Debug)]
pub(super) struct Lines {
    asks: mpsc::Sender<()>,
    lines: UnboundedReceiver<String>,
    terminal: bool,
}

impl Lines {
    /// From stdin; at a terminal with a prompt.
    pub(super) fn start(prompt: String, session: Current) -> Result<Self, Failure> {
        let (asks, asked) = mpsc::channel();
        let (typed, lines) = unbounded_channel();
        let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        if terminal {
            let runtime = tokio::runtime::Handle::current();
            thread("quorate-editor", move || {
                editor::edit(&prompt, &asked, &typed, session, runtime)
            })?;
        } else {
            thread("quorate-lines", move || read(&asked, &typed))?;
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

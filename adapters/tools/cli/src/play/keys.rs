//! The keyboard: one key at a time, without Enter where the terminal can do that.

use std::io::{self, IsTerminal, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// What the reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// The next step: Enter, space or anything else.
    Next,
    /// All that is left.
    All,
    /// Enough.
    Quit,
}

/// A keyboard; the terminal is as it was when this is dropped.
#[derive(Debug)]
pub(super) struct Keys {
    before: Option<Termios>,
}

impl Keys {
    /// None if stdin is no terminal.
    pub(super) fn new() -> Option<Self> {
        if !io::stdin().is_terminal() {
            return None;
        }
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut each_key) = before.clone() {
            each_key.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            // Without it Enter is needed, and that is all.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &each_key);
        }
        Some(Self { before })
    }

    /// Waits for a key, saying which there are.
    pub(super) fn wait(&mut self) -> Key {
        const ASK: &str = "           Enter: next   a: all   q: quit";
        let mut out = io::stdout();
        drop(write!(out, "{ASK}").and_then(|()| out.flush()));
        let mut key = [0];
        let read = io::stdin().lock().read(&mut key);
        drop(write!(out, "\r{}\r", " ".repeat(ASK.len())).and_then(|()| out.flush()));
        match (read, key[0]) {
            // The end of the input, and what a terminal in this mode sends for ctrl-D.
            (Ok(0) | Err(_), _) | (_, b'q' | b'Q' | 0x04) => Key::Quit,
            (_, b'a' | b'A') => Key::All,
            (Ok(_), _) => Key::Next,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // Nothing can be done about a terminal that has gone.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

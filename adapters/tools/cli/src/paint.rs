//! Colours, for terminals only.

use std::io::{self, IsTerminal};

/// Whether the user lets us: `NO_COLOR` is not set to anything.
pub(crate) fn allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Colours text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For stdout.
    pub(crate) fn stdout() -> Self {
        Self { on: io::stdout().is_terminal() && allowed() }
    }

    /// The colour of a server, always the same.
    pub(crate) fn server(self, id: i64, text: &str) -> String {
        const COLOURS: [&str; 10] = ["36", "33", "35", "32", "34", "96", "93", "95", "92", "94"];
        let at = usize::try_from(id - 1).unwrap_or(0) % COLOURS.len();
        self.with(COLOURS[at], text)
    }

    /// What matters.
    pub(crate) fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    /// What matters less.
    pub(crate) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// What is wrong.
    pub(crate) fn alarm(self, text: &str) -> String {
        self.with("1;31", text)
    }

    /// What is well.
    pub(crate) fn well(self, text: &str) -> String {
        self.with("1;32", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

//! Programs of others: whether they are here, and one that runs, says lines and is told lines.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Whether all these files are there. Says so if not, and fails if they must be.
pub(crate) fn available(files: &[&str], packages: &str) -> bool {
    let Some(missing) = files.iter().find(|file| !Path::new(file).exists()) else { return true };
    for (name, wanted) in [("QUORATE_REQUIRE_PEERS", "1"), ("CI", "true")] {
        let required = std::env::var(name).is_ok_and(|value| value == wanted);
        assert!(!required, "{missing} is missing, and {name}={wanted}");
    }
    println!("skipped: {missing} is missing ({packages})");
    false
}

/// A file beside these tests.
pub(crate) fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// Runs it to its end, which is a good one; what it says.
pub(crate) fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}: {said}");
    said.into_owned()
}

/// A program that says lines and is told lines. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Judge {
    child: Child,
    told: ChildStdin,
    lines: Receiver<String>,
}

impl Judge {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (say, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| say.send(line))
        });
        Self { told: child.stdin.take().unwrap(), child, lines }
    }

    /// Tells it a line.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.told, "{line}").unwrap();
    }

    /// Waits for the line that begins so; the rest of it. Lines before it are notes, which are printed.
    pub(crate) fn says(&self, beginning: &str, patience: Duration) -> String {
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => panic!("waited {patience:?} for {beginning:?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended before {beginning:?}"),
            };
            println!("{line}");
            assert!(!line.starts_with("failed"), "{line}");
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.trim().to_owned();
            }
        }
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

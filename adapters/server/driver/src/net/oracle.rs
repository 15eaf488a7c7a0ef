//! The outside arbiter of a two-server ensemble: a file that is written from outside of this server.
//!
//! A file whose first character is `1` says that this server may go on alone; anything else, and a
//! file that cannot be read, says that it may not.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_core::input::Event;

use crate::net::events::{LoopEvent, Shared};
use crate::runtime::Runtime;
use crate::threads::offload;

/// Tells the loop what the file says, at first and after each change.
pub(crate) async fn watch<R: Runtime>(
    path: PathBuf,
    tick: Duration,
    shared: Arc<Shared>,
    runtime: R,
) {
    let mut said = None;
    loop {
        let file = path.clone();
        // On a thread: the file may lie on a network that hangs. The next look waits for this one.
        let says = offload("quorate-oracle", move || says_yes(&file)).await.unwrap_or(false);
        if said != Some(says) {
            said = Some(says);
            let (event, sid) = ("oracle.changed", shared.id.0);
            tracing::info!(event, sid, path = %path.display(), says, "oracle");
            if shared.events.send(LoopEvent::Event(Event::Oracle(says))).await.is_err() {
                return;
            }
        }
        runtime.sleep(tick.min(POLL_MAX)).await;
    }
}

fn says_yes(path: &Path) -> bool {
    let mut first = [0];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && first == *b"1"
}

/// The longest time between two looks.
const POLL_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_one_means_yes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("oracle");
        assert!(!says_yes(&path));
        for (content, yes) in
            [("1", true), ("1\n", true), ("0", false), ("", false), ("yes", false)]
        {
            std::fs::write(&path, content).unwrap();
            assert_eq!(says_yes(&path), yes, "{content:?}");
        }
    }
}

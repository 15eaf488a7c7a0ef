//! What a storm leaves behind: who led when, and what the disks held.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::common::{quorate, stdout};
use crate::ensemble::Servers;

/// Copies of directories and logs, if `QUORATE_KEEP` names a place.
#[derive(Debug)]
pub(super) struct Kept {
    place: Option<PathBuf>,
    begun: Instant,
    copies: usize,
}

impl Kept {
    pub(super) fn new() -> Self {
        let place = std::env::var_os("QUORATE_KEEP").map(PathBuf::from);
        Self { place, begun: Instant::now(), copies: 0 }
    }

    /// Who leads in which epoch, and where every server stands.
    pub(super) fn tell(&self, servers: &mut Servers) {
        if self.place.is_none() {
            return;
        }
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        println!("{:?}, {}.{:03}:", self.begun.elapsed(), clock.as_secs(), clock.subsec_millis());
        for id in servers.ids() {
            let runs = if servers.runs(id) { "" } else { ", not running" };
            let word = |name| {
                let said = servers.word(id, "srvr")?;
                said.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
            };
            let epoch = fs::read_to_string(servers.data(id).join("currentEpoch"));
            println!(
                "  {id} {:?}{runs}: current epoch {}, {} at {}",
                servers.kind(id),
                epoch.unwrap_or_default().trim(),
                word("Mode: ").unwrap_or_default(),
                word("Zxid: ").unwrap_or_default()
            );
        }
    }

    /// Copies what a server has on its disk and what it has said: of one that was killed, before it is started again.
    pub(super) fn copy(&mut self, servers: &Servers, id: usize) {
        let Some(place) = &self.place else { return };
        let copy = place.join(format!("{:02}-server-{id}", self.copies));
        self.copies += 1;
        fs::create_dir_all(&copy).unwrap();
        fs::write(copy.join("log"), servers.log(id)).unwrap();
        // Java servers fill their logs with zeros beforehand; snapshots of one that runs may vanish meanwhile.
        let arguments = ["-r", "--sparse=always"];
        drop(Command::new("cp").args(arguments).arg(servers.data(id)).arg(&copy).status());
        println!("  {} is of {:?} {id}", copy.display(), servers.kind(id));
        let check = quorate(["log", "check", &copy.join("version-2").display().to_string()]);
        // A log that goes back: so does the tree of a Java server that starts from it.
        for line in stdout(&check).lines().filter(|line| line.contains("stands behind")) {
            println!("    {line}");
        }
    }
}

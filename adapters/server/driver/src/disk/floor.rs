//! How much room is to be left on the disk of a server that leads.
//!
//! ```text
//!   free < floor ──────────────► low: another should lead
//!   free ≥ floor and an eighth ► enough again
//! ```
//!
//! What it means for the leadership is the core's decision. The system is asked on the storage thread, since a file system
//! that hangs does not answer this either.

use std::path::Path;
use std::time::{Duration, Instant};

use quorate_leadership::boot_time;

use crate::disk_floor::DiskFloor;

/// Looks at the room that is left.
#[derive(Debug)]
pub(super) struct Room {
    floor: DiskFloor,
    low: bool,
    looked: Option<Instant>,
}

/// There is little room left, or enough again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) low: bool,
    /// What is free, and what is to be, in bytes.
    pub(super) free: u64,
    pub(super) floor: u64,
}

impl Room {
    pub(super) const fn new(floor: DiskFloor) -> Self {
        Self { floor, low: false, looked: None }
    }

    /// How long until the next look; none if there is never one.
    pub(super) fn due(&self) -> Option<Duration> {
        let since = self.looked.map_or(LOOK_EVERY, boot_time::since);
        (self.floor != DiskFloor::Off).then(|| LOOK_EVERY.saturating_sub(since))
    }

    /// Looks, if it is time to. A file system that does not say how much is free has enough.
    pub(super) fn look(
        &mut self,
        dirs: [&Path; 2],
        snapshot: impl FnOnce() -> u64,
    ) -> Option<Turn> {
        if self.due().is_none_or(|due| !due.is_zero()) {
            return None;
        }
        self.looked = Some(boot_time::now());
        self.judge(dirs.into_iter().filter_map(free).min()?, snapshot())
    }

    /// What `free` bytes mean beside a newest snapshot of so many; none if nothing has changed.
    fn judge(&mut self, free: u64, snapshot: u64) -> Option<Turn> {
        let floor = match self.floor {
            DiskFloor::Off => 0,
            DiskFloor::Bytes(floor) => floor,
            DiskFloor::Snapshot => snapshot.saturating_add(BESIDE_SNAPSHOT),
        };
        let enough = if self.low { floor.saturating_add(floor / 8) } else { floor };
        let low = free < enough;
        let before = std::mem::replace(&mut self.low, low);
        (low != before).then_some(Turn { low, free, floor })
    }
}

/// How many bytes may be written to the file system of a directory.
#[cfg(target_os = "linux")]
fn free(dir: &Path) -> Option<u64> {
    let of = rustix::fs::statvfs(dir).ok()?;
    Some(of.f_bavail.saturating_mul(of.f_frsize))
}

#[cfg(not(target_os = "linux"))]
fn free(_dir: &Path) -> Option<u64> {
    None
}

/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// What has to be free beside a snapshot: two steps in which the log grows, by default.
const BESIDE_SNAPSHOT: u64 = 128 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn room_is_low_below_the_floor_and_enough_an_eighth_above_it() {
        let mut room = Room::new(DiskFloor::Bytes(800));
        let mut turns =
            [900, 800, 799, 0, 799, 800, 899, 900, 800, 799].map(|free| room.judge(free, 9));
        let turn = |low, free| Some(Turn { low, free, floor: 800 });
        assert_eq!((turns[2].take(), turns[7].take()), (turn(true, 799), turn(false, 900)));
        assert_eq!(turns[9].take(), turn(true, 799));
        assert_eq!(turns, [None; 10]);
    }

    #[test]
    fn unless_it_is_said_the_floor_is_the_newest_snapshot_and_128_mib() {
        let mut room = Room::new(DiskFloor::Snapshot);
        assert_eq!(room.judge(128 * MIB, 0), None);
        assert_eq!(room.judge(128 * MIB, 1).unwrap().floor, 128 * MIB + 1);
        let mut full = Room::new(DiskFloor::Snapshot);
        assert!(full.judge(u64::MAX - 1, u64::MAX).unwrap().low, "no sum is too large");
    }

    #[test]
    fn it_is_looked_at_once_then_not_all_the_time_and_never_where_it_is_off() {
        let dir = tempfile::TempDir::new().unwrap();
        let dirs = [dir.path(), dir.path()];
        let mut room = Room::new(DiskFloor::Bytes(u64::MAX));
        assert_eq!(room.due(), Some(Duration::ZERO));
        assert!(
            room.look(dirs, || 0).is_some_and(|turn| turn.low) || cfg!(not(target_os = "linux"))
        );
        assert!(room.due().unwrap() > LOOK_EVERY / 2);
        assert_eq!(room.look(dirs, || unreachable!("it is not time")), None);
        let gone = dir.path().join("gone");
        let mut lost = Room::new(DiskFloor::Bytes(u64::MAX));
        assert_eq!(lost.look([&gone, &gone], || 0), None);
        let mut off = Room::new(DiskFloor::Off);
        assert_eq!((off.due(), off.look(dirs, || 0)), (None, None));
    }
}

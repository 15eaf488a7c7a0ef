//! How many descriptors this process has left: clients never take the last ones, which peers and files need.
//!
//! Known on Linux alone; elsewhere the limits of the configuration are all there is.

/// Whether fewer than so many are left, while clients have `clients` connections.
#[cfg(target_os = "linux")]
pub(super) fn are_scarce(reserve: u64, clients: usize) -> bool {
    use rustix::process::{Resource, getrlimit};

    let Some(limit) = getrlimit(Resource::Nofile).current else { return false };
    // The size of this directory is how many are open, since Linux 6.2; it is 0 before.
    let open = std::fs::metadata(OPEN).map_or(0, |directory| directory.len());
    let clients = u64::try_from(clients).unwrap_or(u64::MAX);
    let open = match open {
        // Counting takes long where there are many, so only when they may be short.
        0 if clients < limit / 2 => return false,
        0 => std::fs::read_dir(OPEN)
            .map_or(u64::MAX, |open| u64::try_from(open.count()).unwrap_or(u64::MAX)),
        open => open,
    };
    open.saturating_add(reserve) > limit
}

#[cfg(not(target_os = "linux"))]
pub(super) const fn are_scarce(_: u64, _: usize) -> bool {
    false
}

#[cfg(target_os = "linux")]
const OPEN: &str = "/proc/self/fd";

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_scarce_when_fewer_are_left_than_are_to_be() {
        assert!(!are_scarce(0, 0));
        if rustix::process::getrlimit(rustix::process::Resource::Nofile).current.is_some() {
            assert!(are_scarce(u64::MAX, usize::MAX));
        }
    }
}

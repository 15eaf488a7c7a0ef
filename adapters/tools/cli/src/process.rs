//! What the system tells of this process: descriptors, memory, time. A figure that it does not tell is left out. And what it
//! is to keep of it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_service::Figures;
use rustix::fs::statvfs;
#[cfg(target_os = "linux")]
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::process::{Resource, getrlimit};
use rustix::system::uname;
use rustix::time::{ClockId, clock_gettime};

/// Keeps the memory of this process out of core dumps, wherever the system gives those to, and out of debuggers of its own
/// user: keys and passwords are in it.
pub(crate) fn keep_memory_private() {
    // Where it is refused all else is as it was.
    #[cfg(target_os = "linux")]
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Adds what costs nothing, under ZooKeeper's names: Linux tells how many descriptors are open from 6.2 on.
pub(crate) fn descriptors(figures: &mut Figures) {
    if let Some(open) = open_descriptors() {
        figures.gauge("open_file_descriptor_count", open);
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        figures.gauge("max_file_descriptor_count", most);
    }
}

/// Adds the rest, as Prometheus' client libraries call it.
pub(crate) fn figures(figures: &mut Figures) {
    let count = || Some(fs::read_dir("/proc/self/fd").ok()?.count() as u64);
    if let Some(open) = open_descriptors().or_else(count) {
        figures.on_page("process_open_fds", "Open file descriptors.", &[], open);
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        figures.on_page("process_max_fds", "The most open file descriptors.", &[], most);
    }
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu = Duration::new(
        u64::try_from(cpu.tv_sec).unwrap_or(0),
        u32::try_from(cpu.tv_nsec).unwrap_or(0),
    );
    let help = "User and system time, in seconds.";
    figures.counted_on_page("process_cpu_seconds_total", help, &[], cpu.as_secs_f64());
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let mut pages = pages.split(' ').filter_map(|pages| pages.parse::<u64>().ok());
    for name in ["process_virtual_memory_bytes", "process_resident_memory_bytes"] {
        if let Some(pages) = pages.next() {
            figures.on_page(name, "Memory, in bytes.", &[], pages * page);
        }
    }
    if let Some(started) = started() {
        let help = "When the process started, in seconds since 1970.";
        figures.on_page("process_start_time_seconds", help, &[], started);
    }
}

/// Adds how much room the file systems of these directories have for this process.
pub(crate) fn disks(figures: &mut Figures, directories: &[PathBuf]) {
    for directory in directories {
        let Ok(of) = statvfs(directory) else { continue };
        let help = "Bytes that this process may still write to the file system of a directory.";
        let free = of.f_bavail.saturating_mul(of.f_frsize);
        let labels = [("dir", &*directory.to_string_lossy())];
        figures.on_page("quorate_disk_free_bytes", help, &labels, free);
    }
}

fn open_descriptors() -> Option<u64> {
    fs::metadata("/proc/self/fd").map(|folder| folder.len()).ok().filter(|open| *open > 0)
}

/// What says nothing of who runs it and how.
pub(crate) fn environment() -> Vec<(String, String)> {
    let system = uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    [
        ("host.name", text(system.nodename())),
        ("os.name", text(system.sysname())),
        ("os.arch", text(system.machine())),
        ("os.version", text(system.release())),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// By the age of its directory in `/proc`.
fn started() -> Option<f64> {
    let made: SystemTime = fs::metadata("/proc/self").ok()?.modified().ok()?;
    Some(made.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
}

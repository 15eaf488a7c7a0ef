//! What the system tells of this process: descriptors, memory, time. A figure that it does not tell is left out.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_service::Figures;
use rustix::process::{Resource, getrlimit};
use rustix::system::uname;
use rustix::time::{ClockId, clock_gettime};

/// Adds them, under ZooKeeper's names and those of Prometheus' client libraries.
pub(crate) fn figures(figures: &mut Figures) {
    let open = fs::read_dir("/proc/self/fd").map(Iterator::count).ok();
    let most = getrlimit(Resource::Nofile).current;
    if let Some(open) = open {
        figures.gauge("open_file_descriptor_count", open);
        figures.on_page("process_open_fds", "Open file descriptors.", &[], open);
    }
    if let Some(most) = most {
        figures.gauge("max_file_descriptor_count", most);
        figures.on_page("process_max_fds", "The most open file descriptors.", &[], most);
    }
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu = Duration::new(
        u64::try_from(cpu.tv_sec).unwrap_or(0),
        u32::try_from(cpu.tv_nsec).unwrap_or(0),
    );
    let help = "User and system time, in seconds.";
    figures.counted_on_page("process_cpu_seconds_total", help, cpu.as_secs_f64());
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

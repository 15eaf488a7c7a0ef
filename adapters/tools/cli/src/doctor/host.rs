//! This machine, as `/proc` tells: outgoing ports, and the processes of the servers whose files were given.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use quorate_doctor::{Machine, Process};
use quorate_tokio::core::id::ServerId;

/// What is to be known of it; what cannot be read is absent.
pub(super) fn machine(files: &[(PathBuf, Option<ServerId>)]) -> Machine {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut range = range.split_whitespace().map(str::parse);
    let ephemeral = match (range.next(), range.next()) {
        (Some(Ok(low)), Some(Ok(high))) => Some((low, high)),
        _ => None,
    };
    let known: Vec<_> =
        files.iter().filter_map(|(path, id)| Some((fs::canonicalize(path).ok()?, *id))).collect();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| process(&entry.path(), &known)).collect();
    Machine { ephemeral, processes }
}

/// The process of a directory of `/proc`, if it is a server with one of these files.
fn process(dir: &Path, known: &[(PathBuf, Option<ServerId>)]) -> Option<Process> {
    let pid = dir.file_name()?.to_str()?.parse().ok()?;
    let line = fs::read(dir.join("cmdline")).ok()?;
    let words: Vec<_> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    let is_server = words.iter().any(|word| word.ends_with(b".quorum.QuorumPeerMain"))
        || words.get(1).is_some_and(|word| *word == b"serve");
    let file = words.iter().rev().filter(|_| is_server).find_map(|word| {
        let path = Path::new(std::ffi::OsStr::from_bytes(word));
        let cwd = fs::read_link(dir.join("cwd")).unwrap_or_default();
        let path = fs::canonicalize(cwd.join(path)).ok()?;
        known.iter().find(|(file, _)| *file == path)
    });
    let (file, id) = file?.clone();
    let status = fs::read_to_string(dir.join("status")).unwrap_or_default();
    let limits = fs::read_to_string(dir.join("limits")).unwrap_or_default();
    Some(Process {
        pid,
        file,
        id,
        descriptors_max: number_behind(&limits, "Max open files"),
        descriptors: fs::read_dir(dir.join("fd")).ok().map(|all| all.count() as u64),
        swapped: number_behind(&status, "VmSwap:").map(|kib| kib << 10),
        throttled: throttled(dir),
    })
}

/// The first number behind the beginning of a line.
fn number_behind(text: &str, words: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(words))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// How often the group of a process was throttled, of how many periods (cgroup v2).
fn throttled(dir: &Path) -> Option<(u64, u64)> {
    let group = fs::read_to_string(dir.join("cgroup")).ok()?;
    let group = group.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let stat = fs::read_to_string(Path::new("/sys/fs/cgroup").join(group).join("cpu.stat")).ok()?;
    Some((number_behind(&stat, "nr_throttled")?, number_behind(&stat, "nr_periods")?))
}

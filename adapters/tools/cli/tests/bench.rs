//! The bench, as users run it: that it measures, not what.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{lines, quorate, stderr, stdout};

fn bench<'a>(dir: &'a tempfile::TempDir, more: &[&'a str]) -> std::process::Output {
    let dir = dir.path().to_str().unwrap();
    let arguments = ["bench", "broadcast", "--seconds", "1", "--dir", dir];
    quorate(arguments.iter().chain(more))
}

#[test]
fn broadcast_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let more = [
        &["--json", "--clients", "4", "--pipeline", "5"][..],
        &["--json", "--clients", "1", "--servers", "5", "--at", "all", "--payload", "1000"],
        &["--json", "--clients", "1", "--servers", "1"],
    ];
    for (more, servers) in more.into_iter().zip([3, 5, 1]) {
        let output = bench(&dir, more);
        assert_eq!(output.status.code(), Some(0), "{more:?}: {}", stderr(&output));
        let lines = lines(&output);
        let [report] = &lines[..] else { panic!("one line: {lines:?}") };
        assert_eq!((&report["servers"], &report["failed"]), (&servers.into(), &0.into()));
        assert_eq!(report["runtime"], "tokio");
        let number = |name: &str| report[name].as_f64().unwrap();
        assert!(number("writes") > 0.0 && number("writes_per_s") > 0.0, "{report}");
        let quantiles = ["p50_us", "p99_us", "p999_us", "max_us"].map(number);
        assert!(quantiles.is_sorted() && quantiles[0] > 0.0, "{report}");
        assert!(number("cpu_us_per_write") > 0.0, "{report}");
        assert!(number("bare_p50_us") > 0.0 && number("bare_p50_us") <= number("bare_p99_us"));
    }
    // Nothing stays behind.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn broadcast_is_shown_as_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let output = bench(&dir, &["--clients", "2", "--pipeline", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let table: Vec<_> = text.lines().collect();
    assert!(
        table[0].starts_with("3 servers on loopback, on tokio; 2 clients at the leader, 3 x 100 ")
    );
    assert!(table[2].ends_with("CPU µs/write"), "{text}");
    assert_eq!(table[2].chars().count(), table[3].chars().count(), "aligned: {text}");
    assert!(text.contains("nothing else takes: p50 "), "{text}");
}

/// The runtimes that this command was built with.
fn runtimes() -> Vec<String> {
    let output = quorate(["bench", "broadcast", "--runtime", ""]);
    let (_, values) = stderr(&output).split_once("[possible values: ").unwrap();
    values.split_once(']').unwrap().0.split(", ").map(str::to_owned).collect()
}

#[test]
fn broadcast_is_measured_on_every_runtime() {
    let dir = tempfile::tempdir().unwrap();
    let runtimes = runtimes();
    assert_eq!(runtimes[0], "tokio");
    assert_eq!(runtimes.len() > 1, cfg!(feature = "runtimes"), "{runtimes:?}");
    for runtime in &runtimes[1..] {
        let output = bench(&dir, &["--json", "--runtime", runtime]);
        assert_eq!(output.status.code(), Some(0), "{runtime}: {}", stderr(&output));
        let report = &lines(&output)[0];
        assert_eq!((&report["runtime"], &report["failed"]), (&runtime.as_str().into(), &0.into()));
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for arguments in [["--servers", "0"], ["--clients", "0"], ["--seconds", "0"], ["--at", "none"]]
    {
        let output = quorate(["bench", "broadcast"].into_iter().chain(arguments));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    let output = quorate(["bench", "broadcast", "--dir", "/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot make a directory in /nowhere"), "{}", stderr(&output));
}

/// Where the machine has such a place: it measures, and says what that is worth.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_in_memory_is_told() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: nothing can be written to /dev/shm");
        return;
    };
    let output = bench(&dir, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(lines(&output)[0]["in_memory"], true);
    assert!(stderr(&output).contains("is in memory"), "{}", stderr(&output));
}

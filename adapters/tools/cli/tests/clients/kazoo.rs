//! kazoo, the client for Python, judges by its own suite.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Process, QUORATE, read};
use crate::ensemble::written;
use crate::peer::{available, beside};

/// What fails, and fails at Apache ZooKeeper 3.8.0 with these settings as well: there is no port for TLS, and a server
/// without a quorum serves no one.
const FAILED: [&str; 2] = [
    "test_client.py::TestSSLClient::test_create",
    "test_connection.py::TestReadOnlyMode::test_read_only",
];
const PASSED: usize = 484;
const SKIPPED: usize = 1;

const PATIENCE: Duration = Duration::from_secs(240);

/// Where it is and what it needs: a virtual environment of Python.
fn environment() -> PathBuf {
    std::env::var_os("QUORATE_KAZOO").unwrap_or_else(|| "/nowhere".into()).into()
}

#[test]
fn the_suite_of_kazoo_passes_as_it_does_at_java_servers_while_it_stops_and_starts_servers() {
    let python = environment().join("bin/python");
    let how = "QUORATE_KAZOO names an environment of Python with kazoo 2.11.0 and what its tests need, as .ci/run makes";
    if !available(&[python.to_str().unwrap()], how) {
        return;
    }
    let mut find = Command::new(&python);
    find.args(["-c", "import os, kazoo.tests; print(os.path.dirname(kazoo.tests.__file__))"]);
    let tests = PathBuf::from(crate::peer::run(&mut find).trim());

    let begun = Instant::now();
    let ensemble = written();
    let here = ensemble.dir.path();
    let (verdicts, said) = (here.join("verdicts"), here.join("said"));
    let cfgs: Vec<_> = (1..=3).map(|id| ensemble.cfg(id).display().to_string()).collect();
    let hosts: Vec<_> = ensemble.client.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut pytest = Command::new(&python);
    pytest
        .args(["-m", "pytest", "-q", "-p", "servers", "-p", "no:cacheprovider"])
        .args(["--timeout", "120", "--durations", "5", "--rootdir"])
        .args([&tests, &tests, "--ignore".as_ref(), &tests.join("test_sasl.py")])
        .current_dir(here)
        .env("PYTHONPATH", beside(""))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("ZOOKEEPER_VERSION", "3.8.0")
        .env("QUORATE", QUORATE)
        .env("QUORATE_CFGS", cfgs.join(":"))
        .env("QUORATE_HOSTS", hosts.join(","))
        .env("QUORATE_VERDICTS", &verdicts)
        .stdout(std::fs::File::create(&said).unwrap())
        .stderr(Stdio::inherit());
    let mut pytest = Process::start(&mut pytest);
    while pytest.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < PATIENCE, "after {PATIENCE:?}: {}", read(&said));
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(pytest);

    let text = read(&verdicts);
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (outcome, name) in text.lines().filter_map(|line| line.split_once(' ')) {
        found.entry(outcome).or_default().push(name);
    }
    let mut of = |outcome| found.remove(outcome).unwrap_or_default();
    let (passed, mut failed, skipped) = (of("passed"), of("failed"), of("skipped"));
    failed.sort_unstable();
    assert_eq!(failed, FAILED, "{}", read(&said));
    assert_eq!((passed.len(), skipped.len()), (PASSED, SKIPPED), "{}", read(&said));
    println!("{} passed in {:.1?}", passed.len(), begun.elapsed());
}

//! kazoo, the client for Python, judges by its own suite.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Ensemble, Process, QUORATE, read};
use crate::ensemble::written;
use crate::peer::{available, beside, run};

/// What fails, and fails at Apache ZooKeeper 3.8.0 with these settings as well: there is no port for TLS, and a server
/// without a quorum serves no one.
const FAILED: [&str; 2] = [
    "test_client.py::TestSSLClient::test_create",
    "test_connection.py::TestReadOnlyMode::test_read_only",
];
const PASSED: usize = 484;
const SKIPPED: usize = 1;

/// Half of the suite by its time: it is run beside the other half, since most tests wait most of the time.
const APART: [&str; 4] =
    ["test_client.py", "test_connection.py", "test_eventlet_handler.py", "test_lock.py"];
/// These are about a server that is set up for them.
const LEFT_OUT: &str = "test_sasl.py";

const PATIENCE: Duration = Duration::from_secs(400);

/// Where it is and what it needs: a virtual environment of Python.
fn environment() -> PathBuf {
    std::env::var_os("QUORATE_KAZOO").unwrap_or_else(|| "/nowhere".into()).into()
}

/// pytest with some of the suite, at servers of its own.
struct Part {
    ensemble: Ensemble,
    pytest: Process,
}

impl Part {
    fn start(python: &Path, tests: &Path, which: impl IntoIterator<Item = OsString>) -> Self {
        let ensemble = written();
        let here = ensemble.dir.path();
        let cfgs: Vec<_> = (1..=3).map(|id| ensemble.cfg(id).display().to_string()).collect();
        let host = |port| format!("127.0.0.1:{port}");
        let hosts: Vec<_> = ensemble.client.iter().map(host).collect();
        let said = File::create(here.join("said")).unwrap();
        let mut pytest = Command::new(python);
        pytest
            .args(["-m", "pytest", "-q", "-p", "servers", "-p", "no:cacheprovider"])
            .args(["--timeout", "120", "--rootdir"])
            .arg(tests)
            .args(which)
            .current_dir(here)
            // With it one test more is run, and another sleeps.
            .env_remove("CI")
            .env("PYTHONPATH", beside(""))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("ZOOKEEPER_VERSION", "3.8.0")
            .env("QUORATE", QUORATE)
            .env("QUORATE_CFGS", cfgs.join(":"))
            .env("QUORATE_HOSTS", hosts.join(","))
            .env("QUORATE_VERDICTS", here.join("verdicts"))
            .stdout(said.try_clone().unwrap())
            .stderr(said);
        let pytest = Process::start(&mut pytest);
        Self { ensemble, pytest }
    }

    fn said(&self) -> String {
        read(&self.ensemble.dir.path().join("said"))
    }

    /// Waits until all tests have run; what became of them.
    fn verdicts(&mut self, begun: Instant) -> String {
        while self.pytest.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE, "after {PATIENCE:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(100));
        }
        println!("a part of kazoo's suite: after {:.1?}", begun.elapsed());
        read(&self.ensemble.dir.path().join("verdicts"))
    }
}

#[test]
fn the_suite_of_kazoo_passes_as_it_does_at_java_servers_while_it_stops_and_starts_servers() {
    let python = environment().join("bin/python");
    let how = "QUORATE_KAZOO names an environment of Python with kazoo and its suite, as .ci/run makes one";
    if !available(&[python.to_str().unwrap()], how) {
        return;
    }
    let mut find = Command::new(&python);
    find.args(["-c", "import os, kazoo.tests; print(os.path.dirname(kazoo.tests.__file__))"]);
    let tests = PathBuf::from(run(&mut find).trim());

    let begun = Instant::now();
    let file = |name| tests.join(name).into_os_string();
    let apart = Part::start(&python, &tests, APART.map(file));
    let left_out =
        APART.into_iter().chain([LEFT_OUT]).flat_map(|name| ["--ignore".into(), file(name)]);
    let others = Part::start(&python, &tests, left_out.chain([tests.clone().into_os_string()]));
    let mut parts = [apart, others];
    let verdicts = parts.each_mut().map(|part| part.verdicts(begun)).concat();
    let said = parts.each_ref().map(Part::said).concat();

    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (outcome, name) in verdicts.lines().filter_map(|line| line.split_once(' ')) {
        found.entry(outcome).or_default().push(name);
    }
    let mut of = |outcome| found.remove(outcome).unwrap_or_default();
    let (passed, mut failed, skipped) = (of("passed"), of("failed"), of("skipped"));
    failed.sort_unstable();
    assert_eq!(failed, FAILED, "{said}");
    assert_eq!((passed.len(), skipped.len()), (PASSED, SKIPPED), "{said}");
}

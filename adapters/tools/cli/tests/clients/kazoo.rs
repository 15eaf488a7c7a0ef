//! kazoo, the client for Python, judges by its own suite.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Ensemble, Process, QUORATE, read};
use crate::ensemble::{Kind, java_is_here, written};
use crate::peer::{available, beside, run};

/// What fails, and fails at Apache ZooKeeper 3.8.0 with these settings as well: there is no port for TLS, and a server
/// without a quorum serves no one.
const FAILED: [&str; 2] = [
    "test_client.py::TestSSLClient::test_create",
    "test_connection.py::TestReadOnlyMode::test_read_only",
];
const PASSED: usize = 484;
/// Of those that run beside Java servers each time.
const BESIDE_JAVA: [&str; 3] = ["test_client.py", "test_lock.py", "test_watchers.py"];
const PASSED_BESIDE_JAVA: usize = 163;
const SKIPPED: usize = 1;

/// Half of the suite by its time: it is run beside the other half, since most tests wait most of the time.
const APART: [&str; 4] =
    ["test_client.py", "test_connection.py", "test_eventlet_handler.py", "test_lock.py"];
/// These are about servers that are set up for them.
pub(crate) const LEFT_OUT: &str = "test_sasl.py";

const PATIENCE: Duration = Duration::from_secs(400);

/// Where it is and what it needs: a virtual environment of Python.
fn environment() -> PathBuf {
    std::env::var_os("QUORATE_KAZOO").unwrap_or_else(|| "/nowhere".into()).into()
}

/// What pytest is told of a server.
fn server(ensemble: &Ensemble, kind: Kind, id: usize) -> Value {
    let command = match kind {
        Kind::Quorate => {
            let cfg = ensemble.cfg(id).display().to_string();
            vec![QUORATE.to_owned(), "serve".to_owned(), cfg]
        }
        Kind::Java => {
            let command = ensemble.java_command(id);
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            words.map(|word| word.to_str().unwrap().to_owned()).collect()
        }
    };
    let address = format!("127.0.0.1:{}", ensemble.client[id - 1]);
    json!({ "command": command, "log": ensemble.log(id), "address": address })
}

/// pytest with some of the suite, at servers of its own.
pub(crate) struct Part {
    ensemble: Ensemble,
    pytest: Process,
}

impl Part {
    fn start(
        kinds: [Kind; 3],
        python: &Path,
        tests: &Path,
        which: impl IntoIterator<Item = OsString>,
    ) -> Self {
        Self::at(written(), kinds, python, tests, which)
    }

    /// The same at these servers.
    pub(crate) fn at(
        ensemble: Ensemble,
        kinds: [Kind; 3],
        python: &Path,
        tests: &Path,
        which: impl IntoIterator<Item = OsString>,
    ) -> Self {
        let here = ensemble.dir.path();
        let servers: Vec<_> =
            kinds.into_iter().zip(1..).map(|(kind, id)| server(&ensemble, kind, id)).collect();
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
            .env("QUORATE_SERVERS", Value::from(servers).to_string())
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

/// What fails, and how many pass and are skipped.
pub(crate) fn assert_verdicts(
    parts: &mut [Part],
    begun: Instant,
    failed: &[&str],
    counts: [usize; 2],
) {
    let verdicts: String = parts.iter_mut().map(|part| part.verdicts(begun)).collect();
    let said: String = parts.iter().map(Part::said).collect();
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (outcome, name) in verdicts.lines().filter_map(|line| line.split_once(' ')) {
        found.entry(outcome).or_default().push(name);
    }
    let mut of = |outcome| found.remove(outcome).unwrap_or_default();
    let (has_passed, mut has_failed, skipped) = (of("passed"), of("failed"), of("skipped"));
    has_failed.sort_unstable();
    assert_eq!(has_failed, failed, "{said}");
    assert_eq!([has_passed.len(), skipped.len()], counts, "{said}");
}

/// Python with kazoo, and the directory of its suite.
pub(crate) fn suite() -> Option<(PathBuf, PathBuf)> {
    let python = environment().join("bin/python");
    let how = "QUORATE_KAZOO names an environment of Python with kazoo and its suite, as .ci/run makes one";
    if !available(&[python.to_str().unwrap()], how) {
        return None;
    }
    let mut find = Command::new(&python);
    find.args(["-c", "import os, kazoo.tests; print(os.path.dirname(kazoo.tests.__file__))"]);
    let tests = PathBuf::from(run(&mut find).trim());
    Some((python, tests))
}

/// All of it, in two parts beside each other.
fn the_whole_suite(kinds: [Kind; 3]) {
    let Some((python, tests)) = suite() else { return };
    let begun = Instant::now();
    let file = |name| tests.join(name).into_os_string();
    let apart = Part::start(kinds, &python, &tests, APART.map(file));
    let left_out =
        APART.into_iter().chain([LEFT_OUT]).flat_map(|name| ["--ignore".into(), file(name)]);
    let others = left_out.chain([tests.clone().into_os_string()]);
    let others = Part::start(kinds, &python, &tests, others);
    assert_verdicts(&mut [apart, others], begun, &FAILED, [PASSED, SKIPPED]);
}

#[test]
fn the_suite_of_kazoo_passes_as_it_does_at_java_servers_while_it_stops_and_starts_servers() {
    the_whole_suite([Kind::Quorate; 3]);
}

#[test]
fn kazoos_tests_of_clients_locks_and_watchers_pass_at_two_of_our_servers_under_a_java_leader() {
    if !java_is_here() {
        return;
    }
    let Some((python, tests)) = suite() else { return };
    let begun = Instant::now();
    let mut parts = BESIDE_JAVA.map(|name| {
        let file = tests.join(name).into_os_string();
        Part::start([Kind::Quorate, Kind::Quorate, Kind::Java], &python, &tests, [file])
    });
    assert_verdicts(&mut parts, begun, &FAILED[..1], [PASSED_BESIDE_JAVA, 0]);
}

#[test]
#[ignore = "minutes; by hand"]
fn the_whole_suite_of_kazoo_passes_under_a_java_leader() {
    the_whole_suite([Kind::Quorate, Kind::Quorate, Kind::Java]);
}

#[test]
#[ignore = "minutes; by hand"]
fn the_whole_suite_of_kazoo_passes_at_two_java_servers_under_our_leader() {
    the_whole_suite([Kind::Java, Kind::Java, Kind::Quorate]);
}

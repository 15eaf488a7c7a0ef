//! What packages are made of: units, manual pages, examples, and what a service manager is told.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{Ensemble, Process, QUORATE, quorate, stderr, stdout};

/// The socket of a service manager, that hears what one server tells.
struct Manager {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Manager {
    fn start(ensemble: &Ensemble, id: usize) -> (Self, Process) {
        let path = ensemble.dir.path().join(format!("{id}.notify"));
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut command = Command::new(QUORATE);
        command.env_remove("RUST_LOG").env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "300000");
        command.arg("serve").arg(ensemble.cfg(id));
        let log = fs::File::create(ensemble.log(id)).unwrap();
        let process = Process::start(command.stderr(log));
        (Self { socket, heard: Vec::new() }, process)
    }

    /// Waits until a line is told that begins so.
    fn hears(&mut self, words: &str) {
        let mut packet = [0; 4096];
        while !self.heard.iter().any(|line| line.starts_with(words)) {
            let size =
                self.socket.recv(&mut packet).unwrap_or_else(|error| panic!("no {words}: {error}"));
            let text = std::str::from_utf8(&packet[..size]).unwrap();
            self.heard.extend(text.lines().map(str::to_owned));
        }
    }
}

#[test]
fn servers_that_start_one_after_the_other_are_ready_without_a_leader() {
    let ensemble = Ensemble::new(&["participant"; 3], "");
    let mut servers = Vec::new();
    for id in 1..=3 {
        // As units that wait for one another: the next is started when this one is ready.
        let (mut manager, process) = Manager::start(&ensemble, id);
        manager.hears("READY=1");
        if id == 1 {
            let text = ensemble.ask(1, "srvr");
            assert!(!text.contains("Mode: leader"), "one of three has no leader: {text}");
        }
        servers.push((manager, process));
    }
    let leader = ensemble.led();
    for (id, (mut manager, mut process)) in [1, 2, 3].into_iter().zip(servers).rev() {
        manager.hears("WATCHDOG=1");
        if id == 3 {
            let status =
                if leader == 3 { "STATUS=leading as 3, epoch 1" } else { "STATUS=following " };
            manager.hears(status);
        }
        assert_eq!(process.terminate(), Some(0));
        manager.hears("STOPPING=1");
    }
}

#[test]
fn the_units_are_clean_and_closed_off() {
    let here = Command::new("systemd-analyze").arg("--version").output();
    if here.is_err() {
        eprintln!("skipped: there is no systemd-analyze");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (example, name) in [("unit", "quorate.service"), ("unit-template", "quorate@one.service")] {
        let output = quorate(["example", example]);
        let unit = stdout(&output).replace("/usr/bin/quorate", QUORATE);
        let path = dir.path().join(name);
        fs::write(&path, unit).unwrap();
        let analyze = |arguments: &[&str]| {
            let output =
                Command::new("systemd-analyze").args(arguments).arg(&path).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned() + stderr(&output);
            (output.status.success(), text)
        };
        let (clean, told) = analyze(&["verify", "--man=no"]);
        assert!(clean && !told.contains(name), "{told}");
        // Tenths of a point: 20 is 2.0.
        let (closed, told) = analyze(&["security", "--offline=true", "--threshold=20"]);
        assert!(closed, "{told}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    let output = quorate([Path::new("man"), &dir.path().join("man1")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let help = quorate(["--help"]);
    let commands = stdout(&help).lines().skip_while(|line| *line != "Commands:").skip(1);
    let mut pages = 0;
    for name in commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
    {
        let page = dir.path().join("man1").join(format!("quorate-{name}.1"));
        if name != "help" && page.exists() {
            assert!(fs::read_to_string(&page).unwrap().contains(".TH"), "{name}");
            pages += 1;
        }
    }
    assert!(pages >= 15, "{pages}");
    assert!(!dir.path().join("man1/quorate-demo-server.1").exists(), "hidden commands have none");
}

#[test]
fn each_shell_has_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish"] {
        let output = quorate(["completions", shell]);
        assert!(stdout(&output).contains("timeline"), "{shell}");
        // Elvish completes commands and flags alone.
        let values = shell == "elvish" || stdout(&output).contains("unit-template");
        assert!(values, "{shell}: what `example` may print");
    }
}

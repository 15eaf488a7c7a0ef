//! Backup, restore, and an ensemble that goes on without its quorum, with real servers, ours and Java's.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{Ensemble, Process, java_is_here, quorate, read, stderr, stdout, until};
use serde_json::Value;

/// Runs the command; its words may be paths.
fn run(words: &[&dyn AsRef<std::ffi::OsStr>]) -> Output {
    quorate(words.iter().map(|word| word.as_ref()))
}

/// The same, of which is known that it does well.
fn well(words: &[&dyn AsRef<std::ffi::OsStr>]) -> String {
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    stdout(&output).to_owned()
}

fn data(ensemble: &Ensemble, id: usize) -> PathBuf {
    ensemble.dir.path().join(id.to_string())
}

/// One command of a client at a server, tried until the server serves it.
fn client(ensemble: &Ensemble, id: usize, words: &[&str]) -> String {
    let server = format!("127.0.0.1:{}", ensemble.client[id - 1]);
    until("what a client asks for", || {
        let output = quorate(["client", &server].iter().chain(words));
        (output.status.code() == Some(0)).then(|| stdout(&output).to_owned())
    })
}

/// Whether a server that serves has no such node.
fn is_missing(ensemble: &Ensemble, id: usize, path: &str) -> bool {
    let server = format!("127.0.0.1:{}", ensemble.client[id - 1]);
    let output = run(&[&"client", &server, &"get", &path]);
    output.status.code() == Some(1) && stderr(&output).contains("NoNode")
}

/// What the JSON of a backup tells.
fn backed_up(dir: &Path, file: &Path) -> Value {
    serde_json::from_str(&well(&[&"backup", &"--from", &dir, &"--to", &file, &"--json"])).unwrap()
}

#[test]
fn three_servers_restored_from_the_backup_of_one_that_ran_serve_what_it_held() {
    let ensemble = Ensemble::new(&["participant"; 3], "");
    let servers = ensemble.serve_all();
    client(&ensemble, 1, &["create", "/kept", "as it was"]);
    client(&ensemble, 1, &["sync", "/"]);
    let file = ensemble.dir.path().join("backup.tar");
    let manifest = backed_up(&data(&ensemble, 1), &file);
    assert_eq!((&manifest["source_id"], &manifest["epoch"]), (&1.into(), &1.into()));
    let least = run(&[
        &"backup",
        &"--from",
        &data(&ensemble, 1),
        &"--to",
        &file,
        &"--zxid-at-least",
        &"0x900000000",
    ]);
    assert_eq!(least.status.code(), Some(1));
    assert!(
        stderr(&least).contains("before 0x900000000: nothing was written"),
        "{}",
        stderr(&least)
    );
    client(&ensemble, 1, &["create", "/later"]);
    drop(servers);

    assert!(well(&[&"backup", &"verify", &file]).contains("whole"));
    let bytes = fs::read(&file).unwrap();
    let cut = ensemble.dir.path().join("cut.tar");
    fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
    for id in 1..=3 {
        let dir = data(&ensemble, id);
        let number = id.to_string();
        let restore = |file: &Path| run(&[&"restore", &file, &"--data", &dir, &"--id", &number]);
        let refused = restore(&file);
        assert!(stderr(&refused).contains("is not empty"), "{}", stderr(&refused));
        fs::remove_dir_all(&dir).unwrap();
        let refused = restore(&cut);
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains("it was cut short"), "{}", stderr(&refused));
        assert!(!dir.exists(), "nothing is written from what is not whole");
        let restored = restore(&file);
        assert_eq!(restored.status.code(), Some(0), "{}", stderr(&restored));
        let told = stdout(&restored);
        assert!(told.contains("Do not start it among empty servers"), "{told}");
        let again = backed_up(&dir, &ensemble.dir.path().join("again.tar"));
        for field in ["zxid", "digest", "nodes", "sessions", "parts"] {
            assert_eq!(again[field], manifest[field], "{field}");
        }
    }
    let _servers = ensemble.serve_all();
    for id in 1..=3 {
        assert_eq!(client(&ensemble, id, &["get", "/kept"]).trim_end(), "as it was");
        assert!(is_missing(&ensemble, id, "/later"));
    }
}

#[test]
fn a_java_servers_directory_is_backed_up_while_it_runs_and_either_kind_starts_from_it() {
    if !java_is_here() {
        return;
    }
    let ensemble = Ensemble::new(&["participant"], "standaloneEnabled=false");
    let dir = data(&ensemble, 1);
    let mut server = ensemble.java(1);
    for name in ["/a", "/a/b", "/c"] {
        client(&ensemble, 1, &["create", name, "of Java"]);
    }
    client(&ensemble, 1, &["delete", "/c"]);
    let mut digests = Vec::new();
    for of_java in [false, true] {
        let file = ensemble.dir.path().join("backup.tar");
        let manifest = backed_up(&dir, &file);
        digests.push((manifest["zxid"].clone(), manifest["digest"].clone()));
        server.terminate();
        fs::remove_dir_all(&dir).unwrap();
        well(&[&"restore", &file, &"--data", &dir, &"--id", &"1"]);
        let again = backed_up(&dir, &ensemble.dir.path().join("again.tar"));
        assert_eq!((&again["zxid"], &again["digest"]), (&manifest["zxid"], &manifest["digest"]));
        server = if of_java { ensemble.java(1) } else { ensemble.serve(1) };
        assert_eq!(client(&ensemble, 1, &["get", "/a/b"]).trim_end(), "of Java");
        assert!(is_missing(&ensemble, 1, "/c"));
        client(&ensemble, 1, &["create", "/a/n-", "-s"]);
    }
    assert_ne!(digests[0], digests[1], "what was written in between is there");
}

/// The zoo.cfg of a server with another membership.
fn write_members(ensemble: &Ensemble, id: usize, of: &[usize]) {
    let text = read(&ensemble.cfg(id));
    let others = text.lines().filter(|line| !line.starts_with("server."));
    let members = of.iter().map(|id| {
        let (quorum, election) = (ensemble.quorum[id - 1], ensemble.election[id - 1]);
        format!("server.{id}=127.0.0.1:{quorum}:{election}:participant")
    });
    let lines: Vec<_> = others.map(str::to_owned).chain(members).collect();
    fs::write(ensemble.cfg(id), lines.join("\n")).unwrap();
}

/// Its words on stderr, each of which must be there; it has changed nothing.
fn refused(words: &[&dyn AsRef<std::ffi::OsStr>], expected: &[&str]) {
    let output = run(words);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{}{said}", stdout(&output));
    assert!(said.starts_with("nothing was changed; "), "{said}");
    for part in expected {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Three of five go on writing while two are down, and are lost then.
#[test]
fn two_of_five_go_on_and_an_old_disk_that_comes_back_does_not_win() {
    let ensemble = Ensemble::new(&["participant"; 5], "");
    let mut servers: Vec<_> = [3, 4, 5].map(|id| (id, ensemble.serve(id))).into();
    client(&ensemble, 3, &["create", "/kept", "by all"]);
    let mut kept = [1, 2].map(|id| ensemble.serve(id));
    for id in 1..=2 {
        assert_eq!(client(&ensemble, id, &["get", "/kept"]).trim_end(), "by all");
    }
    // What each closed session has done is there, too.
    client(&ensemble, 1, &["sync", "/"]);
    for server in &mut kept {
        assert_eq!(server.terminate(), Some(0));
    }
    client(&ensemble, 4, &["create", "/lost", "by three"]);

    let (cfg, dirs) = (ensemble.cfg(1), [data(&ensemble, 1), data(&ensemble, 2)]);
    let copy = ensemble.dir.path().join("copy");
    let ask = |lost: &str, more: &[&str]| {
        let mut words = vec!["recover", "run", cfg.to_str().unwrap(), "--keep", "1,2"];
        words.extend(["--survivor", dirs[1].to_str().unwrap(), "--lost-for-good", lost]);
        words.extend(["--backup-to", copy.to_str().unwrap()]);
        words.extend(more);
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let refuse = |lost: &str, more: &[&str], expected: &[&str]| {
        let words = ask(lost, more);
        let words: Vec<&dyn AsRef<std::ffi::OsStr>> = words.iter().map(|w| w as _).collect();
        refused(&words, expected);
    };
    let three =
        format!("server 3 answers at 127.0.0.1:{} (its election port)", ensemble.election[2]);
    let lines = "replace its server lines by these";
    refuse("3,4,5", &[], &[&three, lines, "--yes-data-may-be-lost", "server.2=127.0.0.1"]);
    refuse("3,4", &[], &["server 5 is a member, and neither kept nor declared lost"]);
    servers.clear();
    let yes = "--yes-data-may-be-lost";
    refuse("3,4,5", &[yes], &["server 3 has no server, but its host answers", lines]);

    let same = |id: usize| -> Value {
        let text = well(&[&"recover", &"survey", &dirs[id - 1], &"--json"]);
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(same(1)["zxid"], same(2)["zxid"], "both have all that was written until they ended");
    let by_cfg: Value =
        serde_json::from_str(&well(&[&"recover", &"survey", &ensemble.cfg(2), &"--json"])).unwrap();
    assert_eq!(by_cfg, same(2), "a zoo.cfg names its directory");
    // All that are left, this one among them.
    let own = ["--survivor", dirs[0].to_str().unwrap()];
    let said = stderr(&quorate(ask("3,4,5", &own))).to_owned();
    assert!(!said.contains("two directories"), "{said}");
    let survey = ensemble.dir.path().join("1.json");
    fs::write(&survey, well(&[&"recover", &"survey", &dirs[0], &"--json"])).unwrap();
    recover(&ensemble, &ask, &survey);

    let warned = "recovered without a quorum";
    let mut kept = [1, 2].map(|id| ensemble.serve(id));
    for id in 1..=2 {
        assert_eq!(client(&ensemble, id, &["get", "/kept"]).trim_end(), "by all");
        assert!(is_missing(&ensemble, id, "/lost"));
        assert!(read(&ensemble.log(id)).contains(warned));
    }
    client(&ensemble, 1, &["create", "/after", "by two"]);
    for server in &mut kept {
        assert_eq!(server.terminate(), Some(0));
    }

    // As it should not be: it is added with its old disk, where more was written than on the kept ones.
    well(&[&"recover", &"acknowledge", &dirs[0]]);
    (1..=3).for_each(|id| write_members(&ensemble, id, &[1, 2, 3]));
    let _three = [3, 1, 2].map(|id| ensemble.serve(id));
    for id in [3, 1, 2] {
        assert_eq!(client(&ensemble, id, &["get", "/after"]).trim_end(), "by two");
        assert!(is_missing(&ensemble, id, "/lost"));
    }
    assert!(!ensemble.ask(3, "srvr").contains("Mode: leader"));
    let acknowledged = dirs[0].join("recovered.acknowledged.json");
    assert!(acknowledged.exists() && !read(&ensemble.log(1)).contains(warned));
    assert!(read(&ensemble.log(2)).contains(warned));
    // `run` is given the zoo.cfg, and so may this be.
    let said = well(&[&"recover", &"acknowledge", &ensemble.cfg(2)]);
    assert!(said.starts_with("acknowledged: this ensemble was recovered"), "{said}");
    assert!(dirs[1].join("recovered.acknowledged.json").exists());
}

/// On both kept servers, with what the first said before.
fn recover(ensemble: &Ensemble, ask: &dyn Fn(&str, &[&str]) -> Vec<String>, survey: &Path) {
    (1..=2).for_each(|id| write_members(ensemble, id, &[1, 2]));
    // A name that no system looks up, whatever its network.
    let lost = "3=lost..invalid:1:2,4=lost..invalid:3:4,5=lost..invalid:5:6";
    let yes = "--yes-data-may-be-lost";
    let dir = data(ensemble, 1);
    let epochs = |id: usize| {
        let inner = data(ensemble, id).join("version-2");
        ["acceptedEpoch", "currentEpoch"].map(|name| read(&inner.join(name)))
    };
    let before = epochs(1);
    let dry = quorate(ask(lost, &[yes, "--dry-run"]));
    assert_eq!(dry.status.code(), Some(0), "{}", stderr(&dry));
    assert!(stdout(&dry).starts_with("nothing is against it, and nothing was changed\n"));
    assert!(epochs(1) == before && !dir.join("recovered.json").exists());
    let done = quorate(ask(lost, &[yes]));
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(stdout(&done).starts_with("The disks of servers 3, 4, 5 must never start as they are"));
    let copy = ensemble.dir.path().join("copy");
    assert!(run(&[&"log", &"check", &copy]).status.success());
    let again = quorate(ask(lost, &[yes]));
    assert!(stderr(&again).contains("this was done already"), "{}", stderr(&again));
    let copy = ensemble.dir.path().join("copy2");
    well(&[
        &"recover",
        &"run",
        &ensemble.cfg(2),
        &"--keep",
        &"1,2",
        &"--survivor",
        &survey,
        &"--lost-for-good",
        &lost,
        &"--backup-to",
        &copy,
        &yes,
    ]);
    assert_eq!(epochs(1), epochs(2));
    assert!(epochs(1)[0].parse::<i64>().unwrap() >= 1000 + before[0].parse::<i64>().unwrap());
}

/// Its membership stands in a file of its own, that is written.
#[test]
fn one_of_three_goes_on_and_an_emptied_server_is_added_by_reconfig() {
    let ensemble = Ensemble::new(&["participant"; 3], "reconfigEnabled=true\nskipACL=yes");
    let mut servers: Vec<Process> = ensemble.serve_all();
    client(&ensemble, 1, &["create", "/kept", "by all"]);
    let named = "dynamicConfigFile=";
    // Of both that are needed below: each server writes it when it serves for the first time.
    let has = |id: usize| read(&ensemble.cfg(id)).contains(named);
    until("the dynamic files", || (has(1) && has(2)).then_some(()));
    for server in &mut servers {
        assert_eq!(server.terminate(), Some(0));
    }
    let dynamic = |id: usize| -> PathBuf {
        let text = read(&ensemble.cfg(id));
        text.lines().find_map(|line| line.strip_prefix(named)).unwrap().into()
    };
    let old = dynamic(1);
    // Their hosts have gone.
    let before = read(&old);
    let text = before.lines().map(|line| match line.starts_with("server.1=") {
        true => format!("{line}\n"),
        false => line.replace("127.0.0.1", "lost..invalid") + "\n",
    });
    let text: String = text.collect();
    fs::write(&old, text).unwrap();
    let copy = ensemble.dir.path().join("copy");
    well(&[
        &"recover",
        &"run",
        &ensemble.cfg(1),
        &"--keep",
        &"1",
        &"--lost-for-good",
        &"2,3",
        &"--backup-to",
        &copy,
        &"--yes-data-may-be-lost",
    ]);
    assert_ne!(dynamic(1), old);
    let members = read(&dynamic(1));
    assert!(members.contains("server.1=") && !members.contains("server.2="), "{members}");

    let _one = ensemble.serve(1);
    assert_eq!(client(&ensemble, 1, &["get", "/kept"]).trim_end(), "by all");
    fs::remove_dir_all(data(&ensemble, 2).join("version-2")).unwrap();
    fs::remove_file(ensemble.cfg(2)).unwrap();
    fs::rename(ensemble.dir.path().join("2.cfg.bak"), ensemble.cfg(2)).unwrap();
    for entry in fs::read_dir(ensemble.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("2.cfg.dynamic") {
            fs::remove_file(path).unwrap();
        }
    }
    write_members(&ensemble, 2, &[1, 2]);
    let _two = ensemble.serve(2);
    let line = format!("2=127.0.0.1:{}:{}", ensemble.quorum[1], ensemble.election[1]);
    until("server 2 to be brought up and added", || {
        let added = run(&[&"reconfig", &ensemble.cfg(1), &"--add", &line]);
        added.status.success().then_some(())
    });
    assert_eq!(client(&ensemble, 2, &["get", "/kept"]).trim_end(), "by all");
}

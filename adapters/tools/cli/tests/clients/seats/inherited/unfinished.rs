//! The last snapshot of a Java server was written while transactions went on, as all of its are that are written under load:
//! it stands under the number of the first of them, and has effects of later ones.

use std::path::Path;

use quorate_service::wire::{Request, op};

use super::super::digests::differed_at;
use crate::common::{Ensemble, lines, quorate, read};
use crate::ensemble::{PARTICIPANT, java_is_here};
use crate::raw::{Client, get, plain, set};

const SESSION_MS: i32 = 10_000;
/// So many that a snapshot of them takes a while.
const NODES: usize = 20_000;
/// How many of them one multi makes.
const TOGETHER: usize = 500;
/// How many requests are under way.
const AHEAD: usize = 500;
const ATTEMPTS: usize = 20;

fn path(nth: usize) -> String {
    format!("/node-{nth:08}")
}

/// Whether the newest snapshot that is whole as a file has effects of transactions behind its number.
fn is_unfinished(data: &Path) -> bool {
    let mut snapshots: Vec<_> = std::fs::read_dir(data.join("version-2"))
        .unwrap()
        .filter_map(|file| {
            let path = file.unwrap().path();
            let label = path.file_name()?.to_str()?.strip_prefix("snapshot.")?;
            Some((i64::from_str_radix(label, 16).ok()?, path))
        })
        .collect();
    snapshots.sort();
    snapshots.iter().rev().find_map(|(label, path)| {
        let dump = quorate(["snapshot", "dump", "--json", path.to_str().unwrap()]);
        let header = dump.status.success().then(|| lines(&dump).swap_remove(0))?;
        let digest = header["digest"]["zxid"].as_str()?.strip_prefix("0x")?.to_owned();
        Some(i64::from_str_radix(&digest, 16).unwrap() > *label)
    }) == Some(true)
}

#[test]
fn a_snapshot_that_was_written_while_transactions_went_on_is_no_other_tree() {
    if !java_is_here() {
        return;
    }
    let settings = "snapCount=1000\n4lw.commands.whitelist=*";
    let ensemble = Ensemble::new(&[PARTICIPANT], settings);
    let mut java = Some(ensemble.java(1));
    ensemble.led();
    let mut client = Client::open(ensemble.client[0], SESSION_MS);
    for first in (0..NODES).step_by(TOGETHER) {
        let creates: Vec<_> = (first..first + TOGETHER).map(|nth| plain(&path(nth))).collect();
        client.ask(&Request::Multi(creates)).unwrap();
    }
    let data = ensemble.dir.path().join("1");
    let found = (0..ATTEMPTS).any(|attempt| {
        for nth in 0..10 * AHEAD {
            client.send(&set(&path(nth * 7 % NODES), &format!("{attempt}-{nth}")));
            if nth >= AHEAD {
                client.answer(op::SET_DATA).unwrap().unwrap();
            }
        }
        for _ in 0..AHEAD {
            client.answer(op::SET_DATA).unwrap().unwrap();
        }
        drop(java.take());
        if is_unfinished(&data) {
            return true;
        }
        java = Some(ensemble.java(1));
        ensemble.led();
        client = client.moved(ensemble.client[0]);
        false
    });
    assert!(found, "no snapshot under load");
    let _server = ensemble.serve(1);
    ensemble.led();
    let log = read(&ensemble.log(1));
    assert_eq!(differed_at(&ensemble, 1), 0, "{log}");
    assert!(!log.contains("differs"), "{log}");
    let mut client = client.moved(ensemble.client[0]);
    client.ask(&get(&path(NODES - 1))).unwrap();
}

//! Whether an ensemble may be recovered: every reason against it, alone and together, and the epoch to go on with.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;

use quorate_core::membership::Membership;
use quorate_core::zxid::Epoch;
use quorate_rescue::carry_out::{CarryOutError, copy, finish, in_the_way, raise};
use quorate_rescue::recovered::{self, Recovered};
use quorate_rescue::source::Source;
use quorate_rescue::survivor::Survivor;
use quorate_rescue::verdict::{Answer, Case, Heard, Reason, judge};
use quorate_storage::snapshot::{Parts, SnapshotWriter};
use quorate_storage::{Disk, Log, OpenOptions};

use crate::support::{LOG, contents, directory, source};

/// Five voters and an observer.
const LINES: &str = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2\nserver.5=e:1:2\n\
                     server.6=f:1:2:observer";

fn survivor(id: i64) -> Survivor {
    Survivor {
        id,
        directory: format!("/data/{id}"),
        accepted_epoch: 9,
        current_epoch: 8,
        zxid: "0x800000005".to_owned(),
        problems: Vec::new(),
        in_use: false,
        membership: 0,
        recovered: None,
    }
}

/// What a test may change of a case that nothing is against.
struct World {
    own: Survivor,
    others: Vec<Survivor>,
    former: Membership,
    present: Membership,
    is_dynamic: bool,
    by_generation: bool,
    forgotten: i64,
    kept: BTreeSet<i64>,
    lost: BTreeSet<i64>,
    answers: Vec<Answer>,
    in_the_way: bool,
    confirmed: bool,
}

fn membership(ids: &[i64]) -> Membership {
    let starts: Vec<_> = ids.iter().map(|id| format!("server.{id}=")).collect();
    let lines = LINES.lines().filter(|line| starts.iter().any(|start| line.starts_with(start)));
    Membership::parse(lines.collect::<Vec<_>>().join("\n")).unwrap()
}

fn heard(id: i64, port: &'static str, heard: Heard) -> Answer {
    Answer { id, address: format!("host{id}:1"), port, heard }
}

impl World {
    fn new() -> Self {
        Self {
            own: survivor(1),
            others: vec![survivor(2)],
            former: membership(&[1, 2, 3, 4, 5, 6]),
            present: membership(&[1, 2]),
            is_dynamic: false,
            by_generation: false,
            forgotten: 0,
            kept: [1, 2].into(),
            lost: [3, 4, 5, 6].into(),
            answers: vec![
                heard(1, "election", Heard::Refused),
                heard(3, "election", Heard::Nothing),
                heard(3, "quorum", Heard::Nothing),
            ],
            in_the_way: false,
            confirmed: true,
        }
    }

    fn judge(&self) -> Result<Epoch, Vec<Reason>> {
        judge(&Case {
            own: &self.own,
            others: &self.others,
            former: &self.former,
            present: &self.present,
            is_dynamic: self.is_dynamic,
            by_generation: self.by_generation,
            forgotten: self.forgotten,
            kept: &self.kept,
            lost: &self.lost,
            answers: &self.answers,
            in_the_way: self.in_the_way.then(|| "/copy/x".into()),
            confirmed: self.confirmed,
        })
    }
}

fn note(epoch: i64, complete: bool) -> Recovered {
    Recovered {
        complete,
        time_ms: 0,
        by: "root".to_owned(),
        version: String::new(),
        id: 2,
        kept: vec![1, 2],
        lost: vec![3, 4, 5, 6],
        epoch,
        accepted_epoch_before: 9,
        current_epoch_before: 8,
        zxid: "0x800000005".to_owned(),
        copy: "/copy".into(),
        membership: Vec::new(),
    }
}

#[test]
fn two_survivors_of_five_go_on_a_thousand_epochs_above_all_that_was_seen() {
    let mut world = World::new();
    assert_eq!(world.judge(), Ok(Epoch(1009)));
    world.others[0].accepted_epoch = 50;
    assert_eq!(world.judge(), Ok(Epoch(1050)), "the other's promise counts");
    world.own.zxid = "0x5000000001".to_owned();
    assert_eq!(world.judge(), Ok(Epoch(1080)), "and that of a transaction");
    world.own.zxid = survivor(1).zxid;
    world.is_dynamic = true;
    world.present = world.former.clone();
    assert_eq!(world.judge(), Ok(Epoch(1050)), "a dynamic file is written, not asked for");
    world.others[0].membership = 0x8_0000_0002;
    assert_eq!(world.judge(), Ok(Epoch(1050)), "and takes the place of every change");
    world.others[0].current_epoch = 60;
    (world.own.current_epoch, world.own.accepted_epoch) = (61, 60);
    assert_eq!(world.judge(), Ok(Epoch(1061)), "nor is an epoch below one that a server was in");
}

/// What is changed, and what is said then.
type Guard = (fn(&mut World), &'static str);

const GUARDS: [Guard; 23] = [
    (|world| world.lost.clear(), "no server is declared lost for good"),
    (|world| world.lost.extend([1]), "server 1 is to be kept, and is declared lost"),
    (|world| world.lost.extend([9]), "server 9 is no member"),
    (|world| world.lost.retain(|id| *id != 4), "server 4 is a member, and neither kept"),
    (|world| world.others.clear(), "server 2 is to be kept, and its directory was not shown"),
    (|world| world.others.push(survivor(2)), "two directories are said to be server 2's"),
    (|world| world.others.push(survivor(3)), "a directory of server 3 is left"),
    (|world| world.by_generation = true, "elect by generation"),
    (|world| world.kept = [6].into(), "none of the kept servers votes"),
    (|world| world.kept = [1, 2, 3].into(), "are a quorum of the membership"),
    (|world| world.present = world.former.clone(), "replace its server lines by these"),
    (|world| world.own.membership = 0x8_0000_0002, "quorate.membership.forget=800000002"),
    (|world| world.answers[2].heard = Heard::NotAsked, "server 3 could not be asked"),
    (|world| world.own.in_use = true, "/data/1: a server has it open"),
    (|world| world.own.problems.push("a hole".to_owned()), "server 1 is not sound: a hole"),
    (|world| world.others[0].zxid = "0x800000006".to_owned(), "server 2 has a newer history"),
    (|world| world.others[0].current_epoch = 9, "server 2 has a newer history"),
    (|world| world.answers[1].heard = Heard::Accepted, "server 3 answers at host3:1 (its election"),
    (
        |world| world.answers[2].heard = Heard::Refused,
        "server 3 has no server, but its host answers",
    ),
    (|world| world.in_the_way = true, "/copy/x is in the way"),
    (|world| world.confirmed = false, "--yes-data-may-be-lost"),
    (|world| world.others[0].in_use = true, "/data/2: a server has it open"),
    (|world| world.others[0].problems.push("a hole".to_owned()), "server 2 is not sound: a hole"),
];

#[test]
fn each_reason_refuses_by_its_name() {
    for (change, expected) in GUARDS {
        let mut world = World::new();
        change(&mut world);
        let reasons = world.judge().expect_err(expected);
        let said: Vec<_> = reasons.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|reason| reason.contains(expected)), "{expected}: {said:?}");
    }
}

#[test]
fn every_reason_is_told_and_not_only_the_first() {
    let mut world = World::new();
    let together = [13, 14, 15, 17, 19, 20];
    for index in together {
        (GUARDS[index].0)(&mut world);
    }
    let reasons = world.judge().unwrap_err();
    assert_eq!(reasons.len(), together.len(), "{reasons:?}");
    for (index, reason) in together.into_iter().zip(&reasons) {
        assert!(reason.to_string().contains(GUARDS[index].1), "{reason}");
    }
}

#[test]
fn a_kept_server_that_runs_is_to_be_stopped() {
    let mut world = World::new();
    world.answers[0].heard = Heard::Accepted;
    assert!(matches!(world.judge().unwrap_err()[..], [Reason::Runs { id: 1, .. }]));
}

#[test]
fn a_change_of_the_membership_binds_until_the_operator_says_that_it_does_not() {
    let mut world = World::new();
    world.others[0].membership = 0x8_0000_0002;
    assert!(matches!(world.judge().unwrap_err()[..], [Reason::Binds { version: 0x8_0000_0002 }]));
    world.forgotten = 0x8_0000_0002;
    assert_eq!(world.judge(), Ok(Epoch(1009)));
}

#[test]
fn groups_are_not_made_others_of() {
    let mut world = World::new();
    let text = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\ngroup.1=1\ngroup.2=2\ngroup.3=3";
    world.former = Membership::parse(text).unwrap();
    world.present = world.former.clone();
    world.lost = [3].into();
    let reasons = world.judge().unwrap_err();
    assert!(reasons.contains(&Reason::Groups), "{reasons:?}");
    let lines = reasons.iter().any(|reason| matches!(reason, Reason::Lines { .. }));
    assert!(!lines, "lines without its groups are no advice: {reasons:?}");
}

#[test]
fn the_last_epochs_leave_no_room() {
    let mut world = World::new();
    world.own.accepted_epoch = Epoch::MAX.0 - 1000;
    assert!(matches!(world.judge().unwrap_err()[..], [Reason::NoEpoch { .. }]));
}

/// The second of the kept servers, while the first has its new epoch already.
#[test]
fn every_kept_server_gets_the_same_epoch() {
    let mut world = World::new();
    world.others[0].recovered = Some(note(1009, true));
    (world.others[0].accepted_epoch, world.others[0].current_epoch) = (1009, 1009);
    assert_eq!(world.judge(), Ok(Epoch(1009)));
    // It was another decision.
    world.others[0].recovered.as_mut().unwrap().lost = vec![3];
    let said = format!("{:?}", world.judge().unwrap_err());
    assert!(said.contains("RecoveredOtherwise") && said.contains("Newer"), "{said}");
    let recovered = world.others[0].recovered.as_mut().unwrap();
    (recovered.lost, recovered.kept) = (vec![3, 4, 5, 6], vec![2]);
    let said = format!("{:?}", world.judge().unwrap_err());
    assert!(said.contains("RecoveredOtherwise"), "{said}");
}

#[test]
fn what_was_interrupted_is_done_again_and_what_is_done_is_not() {
    let mut world = World::new();
    world.own.recovered = Some(note(1009, false));
    (world.own.accepted_epoch, world.own.current_epoch) = (1009, 8);
    assert_eq!(world.judge(), Ok(Epoch(1009)));
    world.own.recovered = Some(note(1009, true));
    assert!(matches!(world.judge().unwrap_err()[..], [Reason::Done { .. }]));
    // How new it is is what it was: the epoch that it was given is no history.
    world.own.recovered = Some(note(1009, false));
    (world.own.current_epoch, world.others[0].current_epoch) = (1009, 9);
    assert!(matches!(world.judge().unwrap_err()[..], [Reason::Newer { id: 2, .. }]));
}

#[test]
fn a_directory_is_copied_and_gets_its_epochs_and_a_note_that_can_be_acknowledged() {
    let (dir, to) = (directory(), tempfile::tempdir().unwrap());
    let before = contents(dir.path());
    let copy_to = to.path().join("copy");
    assert_eq!(in_the_way(&source(&dir), &copy_to).unwrap(), None);
    assert_eq!(copy(&source(&dir), &copy_to).unwrap(), before.len());
    assert_eq!(contents(&copy_to), before);
    assert!(copy(&source(&dir), &copy_to).is_err(), "no copy is written over");
    assert!(in_the_way(&source(&dir), &copy_to).unwrap().is_some(), "it is not empty any more");
    assert!(in_the_way(&source(&dir), &dir.path().join("copy")).unwrap().is_some());

    let note = Recovered { id: 1, ..note(1002, true) };
    raise(&source(&dir), &note).unwrap();
    let found = Survivor::look(&source(&dir)).unwrap();
    assert_eq!((found.accepted_epoch, found.current_epoch), (1002, 1002));
    assert_eq!((found.zxid.as_str(), found.problems.len()), ("0x200000002", 0));
    assert!(found.recovered.is_some_and(|found| !found.complete));
    assert!(recovered::acknowledge(dir.path()).is_err(), "it was not finished");
    finish(&source(&dir), &note).unwrap();
    assert_eq!(recovered::read(dir.path()).unwrap(), Some(note));
    assert!(recovered::acknowledge(dir.path()).unwrap().is_some());
    assert_eq!(recovered::read(dir.path()).unwrap(), None);
    assert!(recovered::acknowledge(dir.path()).unwrap().is_none());
}

#[test]
fn a_survivor_tells_how_new_it_is_and_what_is_wrong_with_it() {
    let dir = directory();
    let found = Survivor::look(&source(&dir)).unwrap();
    assert_eq!((found.id, found.current_epoch, found.problems), (1, 2, Vec::<String>::new()));
    let inner = dir.path().join("version-2");
    fs::remove_file(inner.join("currentEpoch")).unwrap();
    let found = Survivor::look(&source(&dir)).unwrap();
    assert_eq!(found.current_epoch, 2, "as a start completes it");
    fs::remove_file(inner.join("acceptedEpoch")).unwrap();
    let found = Survivor::look(&source(&dir)).unwrap();
    assert_eq!(found.accepted_epoch, 2, "and this");
    let log = inner.join(LOG);
    let mut bytes = fs::read(&log).unwrap();
    bytes[2150] ^= 1;
    fs::write(&log, bytes).unwrap();
    let found = Survivor::look(&source(&dir)).unwrap();
    assert!(found.problems.iter().any(|problem| problem.contains("damaged")), "{found:?}");
    fs::remove_file(dir.path().join("myid")).unwrap();
    assert!(Survivor::look(&source(&dir)).is_err());
}

/// What a server has open is its own.
#[test]
fn a_directory_that_a_server_has_open_is_seen_to_be_and_is_not_copied() {
    let (dir, to) = (directory(), tempfile::tempdir().unwrap());
    let server = Log::open(dir.path(), OpenOptions::default()).unwrap();
    assert!(Survivor::look(&source(&dir)).unwrap().in_use);
    let refused = copy(&source(&dir), &to.path().join("copy"));
    assert!(matches!(refused, Err(CarryOutError::Locked { .. })), "{refused:?}");
    drop(server);
    assert!(!Survivor::look(&source(&dir)).unwrap().in_use);
}

#[test]
fn logs_in_a_directory_of_their_own_are_copied_as_well() {
    let (dir, logs, to) = (directory(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(logs.path().join("version-2")).unwrap();
    let moved = logs.path().join("version-2").join(LOG);
    fs::rename(dir.path().join("version-2").join(LOG), &moved).unwrap();
    let from = Source { data_log_dir: Some(logs.path().to_owned()), ..source(&dir) };
    for inside in [dir.path(), logs.path()] {
        assert!(in_the_way(&from, &inside.join("copy")).unwrap().is_some(), "{inside:?}");
    }
    copy(&from, to.path()).unwrap();
    let copied = to.path().join("dataLogDir/version-2").join(LOG);
    assert_eq!(fs::read(copied).unwrap(), fs::read(moved).unwrap());
    raise(&from, &Recovered { id: 1, ..note(1002, true) }).unwrap();
    let found = Survivor::look(&from).unwrap();
    assert_eq!((found.current_epoch, found.zxid.as_str()), (1002, "0x200000002"));
    assert!(!dir.path().join("version-2").join(LOG).exists());
}

#[test]
fn no_epoch_is_raised_above_a_log_that_is_damaged_in_a_directory_of_its_own() {
    let (dir, logs) = (directory(), tempfile::tempdir().unwrap());
    let inner = dir.path().join("version-2");
    let mut bytes = fs::read(inner.join(LOG)).unwrap();
    bytes[2150] ^= 1;
    fs::remove_file(inner.join(LOG)).unwrap();
    fs::create_dir(logs.path().join("version-2")).unwrap();
    fs::write(logs.path().join("version-2").join(LOG), bytes).unwrap();
    let from = Source { data_log_dir: Some(logs.path().to_owned()), ..source(&dir) };
    let refused = raise(&from, &Recovered { id: 1, ..note(1002, true) });
    assert!(matches!(refused, Err(CarryOutError::Log(_))), "{refused:?}");
    for epoch in ["acceptedEpoch", "currentEpoch"] {
        assert_eq!(fs::read_to_string(inner.join(epoch)).unwrap(), "2");
    }
}

/// Each is seen by one of the two that read a directory: by whom it checks, or by whom it applies.
#[test]
fn epochs_that_contradict_each_other_and_a_history_of_something_else_are_not_sound() {
    let dir = directory();
    let epoch = |name: &str, text: &str| {
        fs::write(dir.path().join("version-2").join(name), text).unwrap();
    };
    epoch("currentEpoch", "1");
    let found = Survivor::look(&source(&dir)).unwrap();
    assert_eq!((found.current_epoch, found.problems.len()), (2, 0), "interrupted: {found:?}");
    epoch("currentEpoch", "3");
    let found = Survivor::look(&source(&dir)).unwrap();
    assert!(!found.problems.is_empty(), "above the promise: {found:?}");

    let other = tempfile::tempdir().unwrap();
    let (mut log, _) = Log::open(other.path(), OpenOptions::default()).unwrap();
    let inner = other.path().join("version-2");
    let mut state = SnapshotWriter::take(Disk, &inner, quorate_core::zxid::Zxid::ZERO).unwrap();
    state.write_all(b"no tree").unwrap();
    log.begin_with(state.finish(Parts::default()).unwrap()).unwrap();
    drop(log);
    fs::write(other.path().join("myid"), "1").unwrap();
    let found = Survivor::look(&Source::of(other.path())).unwrap();
    assert!(found.problems.iter().any(|problem| problem.contains("no data tree")), "{found:?}");
}

//! Faults of disks and of this host; directories are real ones that a Java server wrote.

use std::fs;
use std::path::Path;

use quorate_core::id::ServerId;
use quorate_doctor::Level::{Error, Notice, Warning};
use quorate_doctor::{Bench, Facts, Process, Silence, Stray};

use crate::ensemble::{data, follower, leader, silent, well, with_data};
use crate::planted::{Plant, plant};

fn changed(change: fn(&Path)) -> Facts {
    Facts { dirs: vec![data(change).1], ..well() }
}

fn process(change: fn(&mut Process)) -> Facts {
    let mut process = Process { pid: 4711, id: Some(ServerId(1)), ..Process::default() };
    change(&mut process);
    let mut facts = well();
    facts.machine.processes.push(process);
    facts
}

fn bench(p99: f64, max: f64) -> Facts {
    with_data(|data| data.bench = Some(Bench { writes: 200, p50: 1.0, p99, max }))
}

pub(crate) const PLANTS: &[Plant] = &[
    plant("disk.history", Error, "server 1, ", "the record is damaged", || {
        changed(|dir| {
            let log = dir.join("log.100000001");
            let mut bytes = fs::read(&log).unwrap();
            bytes[200] ^= 1;
            fs::write(&log, bytes).unwrap();
        })
    }),
    plant("disk.epochs", Error, "currentEpoch", "acceptedEpoch is only 1", || {
        changed(|dir| fs::write(dir.join("acceptedEpoch"), "1").unwrap())
    }),
    plant("disk.epochs", Error, "currentEpoch", "should hold a number and holds \"\"", || {
        changed(|dir| fs::write(dir.join("currentEpoch"), "").unwrap())
    }),
    plant("disk.epochs", Notice, "acceptedEpoch.tmp", "interrupted write", || {
        changed(|dir| fs::write(dir.join("acceptedEpoch.tmp"), "2").unwrap())
    }),
    plant(
        "disk.newer-than-ensemble",
        Error,
        "server 1, /data",
        "server 1 is stopped and has 0x200000002",
        || {
            let members = vec![silent(1, Silence::Refused), follower(2), leader(3)];
            Facts { members, ..with_data(|_| ()) }
        },
    ),
    plant("disk.free", Error, "server 1, /data", "4 % of", || {
        with_data(|data| data.space.as_mut().unwrap().free = 4 << 30)
    }),
    plant("disk.free", Warning, "server 1, /log", "19 % of", || {
        with_data(|data| data.log_space.as_mut().unwrap().free = 19 << 30)
    }),
    plant("disk.free", Error, "server 1, /data", "2048 MiB are free", || {
        with_data(|data| {
            let space = data.space.as_mut().unwrap();
            (space.size, space.free) = (8 << 30, 2 << 30);
            data.history.as_mut().unwrap().snapshots[0].bytes = 3 << 30;
        })
    }),
    plant("disk.free", Warning, "server 1, /data", "inodes", || {
        with_data(|data| data.space.as_mut().unwrap().files_free = 40)
    }),
    plant("disk.fsync", Error, "server 1, /log", "1500.0 ms at most", || bench(30.0, 1500.0)),
    plant("disk.fsync", Warning, "server 1, /log", "120.0 ms at p99", || bench(120.0, 130.0)),
    plant("disk.fsync", Notice, "server 1, /log", "30.0 ms at p99", || bench(30.0, 31.0)),
    plant("disk.fsync", Warning, "server 2", "300 ms to be safe in the mean", || {
        let mut facts = well();
        let mntr = "zk_avg_fsynctime\t300.5\nzk_cnt_fsynctime\t1000\n";
        let words = crate::ensemble::words(&crate::ensemble::srvr("follower", 0x1_0000_0010), mntr);
        facts.members[1].client.as_mut().unwrap().answer = Ok(words);
        facts
    }),
    plant("disk.owner", Error, "server 1, /data", "do not belong to user 108", || {
        let stray = Stray { file: "/data/version-2/log.1".into(), owner: 0, expected: 108 };
        with_data(|data| data.strays.push(stray))
    }),
    plant("disk.owner", Notice, "server 1, /data", "may read", || {
        with_data(|data| data.readable = Some("/data/version-2/log.1".into()))
    }),
    plant("cfg.log-shared", Notice, "server 1, /data", "one device", || {
        with_data(|data| data.log_space.as_mut().unwrap().device = 1)
    }),
    plant("cfg.fs-odd", Error, "server 1, /data", "tmpfs", || {
        with_data(|data| data.space.as_mut().unwrap().kind = 0x0102_1994)
    }),
    plant("cfg.fs-odd", Warning, "server 1, /log", "NFS", || {
        with_data(|data| data.log_space.as_mut().unwrap().kind = 0x6969)
    }),
    plant(
        "host.clock",
        Warning,
        "the ensemble",
        "the clock of server 2 is 2 s behind that of server 1",
        || Facts { clocks: vec![(1, 0), (2, 2_000_000)], ..well() },
    ),
    plant("host.clock", Error, "the ensemble", "31 s behind", || Facts {
        clocks: vec![(1, -1_000_000), (2, 30_000_000)],
        ..well()
    }),
    plant("host.limits", Warning, "server 1, process 4711", "may open 1024", || {
        process(|process| process.descriptors_max = Some(1024))
    }),
    plant("host.limits", Warning, "server 1, process 4711", "3900 of 4096", || {
        process(|process| (process.descriptors_max, process.descriptors) = (Some(4096), Some(3900)))
    }),
    plant("host.swap", Warning, "server 1, process 4711", "12 KiB", || {
        process(|process| process.swapped = Some(12 << 10))
    }),
    plant("host.pause", Warning, "server 1, process 4711", "300 of 1000 periods", || {
        process(|process| process.throttled = Some((300, 1000)))
    }),
];

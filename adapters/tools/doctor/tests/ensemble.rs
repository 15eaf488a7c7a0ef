//! Facts of an ensemble that is well, to plant faults in.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use bytes::Bytes;
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::membership::Role;
use quorate_core::message::{Mark, Notification};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_doctor::{
    Address, ConfigFile, DataDir, Facts, Heard, Machine, Member, Port, Silence, Space, Words,
};
use quorate_driver::zoo_cfg::JvmFlags;
use tempfile::TempDir;

/// The lines of three voters.
pub(crate) const THREE: &str =
    "server.1=zk1:2888:3888\nserver.2=zk2:2888:3888\nserver.3=zk3:2888:3888\n";

/// What every file has.
pub(crate) const BASICS: &str = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data\nclientPort=2181\n\
                                 autopurge.purgeInterval=24\n";

/// A file of server `id`. The `myid` of server 1 is here; of the others it is said whose they are.
pub(crate) fn file(id: i64, text: &str) -> ConfigFile {
    if id == 1 {
        return file_with(1, text, "1");
    }
    let read = |_: &Path| Err(io::Error::from(io::ErrorKind::NotFound));
    let path = format!("zk{id}.cfg");
    let flags = JvmFlags::default();
    ConfigFile::of(Path::new(&path), text, Some(ServerId(id)), &flags, &read).unwrap()
}

/// A file of a server that has this in its `myid`.
pub(crate) fn file_with(id: i64, text: &str, myid: &str) -> ConfigFile {
    let path = format!("zk{id}.cfg");
    let read = |file: &Path| match file.ends_with("myid") {
        true => Ok(myid.to_owned()),
        false => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    ConfigFile::of(Path::new(&path), text, None, &JvmFlags::default(), &read).unwrap()
}

/// As a server answers a stranger.
pub(crate) fn heard(
    state: ServerState,
    leader: i64,
    epoch: i64,
    round: i64,
    config: &str,
) -> Heard {
    let vote = Vote { leader: ServerId(leader), peer_epoch: Epoch(epoch), zxid: Zxid(0) };
    Heard::new(Notification {
        standing: Standing { state, vote, round: Round(round) },
        version: 2,
        config: Bytes::from(config.to_owned()),
        mark: Mark::NONE,
    })
}

/// What `srvr` of a ZooKeeper 3.9.5 says, with these.
pub(crate) fn srvr(mode: &str, zxid: i64) -> String {
    format!(
        "Zookeeper version: 3.9.5-293c895a8d966a3ecb92872be4a1daf87d725da2, built on 2026-02-11 20:18 UTC\n\
         Latency min/avg/max: 0/0.0/0\nReceived: 3\nSent: 4\nConnections: 1\nOutstanding: 0\nZxid: {zxid:#x}\n\
         Mode: {mode}\nNode count: 5\n"
    )
}

/// What client ports say to `srvr` and `mntr`.
pub(crate) fn words(srvr: &str, mntr: &str) -> Words {
    Words::of([("srvr", srvr.as_bytes()), ("mntr", mntr.as_bytes())])
}

/// A member that answers.
pub(crate) fn member(id: i64, election: Result<Heard, Silence>, words: Words) -> Member {
    let at = |port| HostPort { host: format!("zk{id}"), port };
    Member {
        id: ServerId(id),
        role: Role::Participant,
        election: Some(Port::new(at(3888), election)),
        client: Some(Port::new(at(2181), Ok(words))),
        quorum: None,
        http: None,
    }
}

/// One that does not.
pub(crate) fn silent(id: i64, silence: Silence) -> Member {
    let mut member = member(id, Err(silence.clone()), Words::default());
    member.client.as_mut().unwrap().answer = Err(silence);
    member
}

pub(crate) fn config() -> String {
    let lines = THREE.lines().map(|line| format!("{line}:participant\n"));
    lines.collect::<String>() + "version=0"
}

pub(crate) fn follower(id: i64) -> Member {
    let words = words(&srvr("follower", 0x1_0000_0010), "");
    member(id, Ok(heard(ServerState::Following, 3, 1, 1, &config())), words)
}

pub(crate) fn leader(id: i64) -> Member {
    let words = words(&srvr("leader", 0x1_0000_0010), "zk_synced_followers\t2\n");
    member(id, Ok(heard(ServerState::Leading, id, 1, 1, &config())), words)
}

/// What a client port says that is not served.
pub(crate) const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

pub(crate) fn looking(id: i64, round: i64) -> Member {
    let words = words(NOT_SERVING, NOT_SERVING);
    member(id, Ok(heard(ServerState::Looking, id, 1, round, &config())), words)
}

/// Three servers that are well, their files, and their names. Server 1 is on this machine.
pub(crate) fn well() -> Facts {
    let address = |id: u8| {
        let ip = IpAddr::from([10, 0, 0, id]);
        (format!("zk{id}"), Ok(vec![Address { ip, is_here: id == 1 }]))
    };
    Facts {
        files: (1..=3).map(|id| file(id, &format!("{BASICS}{THREE}"))).collect(),
        members: vec![follower(1), follower(2), leader(3)],
        hosts: (1..=3).map(address).collect(),
        machine: Machine { ephemeral: Some((32_768, 60_999)), processes: Vec::new() },
        ..Facts::default()
    }
}

/// With other files.
pub(crate) fn with_files(files: Vec<ConfigFile>) -> Facts {
    Facts { files, ..well() }
}

/// As these answered, twice.
pub(crate) fn twice(members: &[Member]) -> Facts {
    let (members, before) = (members.to_vec(), members.to_vec());
    Facts { members, before, seconds_between: 5.0, ..well() }
}

/// The directory of server 1 as a Java server has written it, with something done to it.
pub(crate) fn data(change: impl FnOnce(&Path)) -> (TempDir, DataDir) {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("version-2");
    fs::create_dir(&inner).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../server/storage/tests/golden");
    for name in ["snapshot.0", "snapshot.10000000c", "snapshot.100000018", "log.100000001"] {
        fs::copy(golden.join(name), inner.join(name)).unwrap();
    }
    for epoch in ["acceptedEpoch", "currentEpoch"] {
        fs::write(inner.join(epoch), "2").unwrap();
    }
    change(&inner);
    let data = DataDir {
        id: Some(ServerId(1)),
        dir: "/data".into(),
        log_dir: Some("/log".into()),
        space: Some(space(1)),
        log_space: Some(space(2)),
        history: Some(quorate_storage::check::check(dir.path(), None).unwrap()),
        strays: Vec::new(),
        readable: None,
        bench: None,
    };
    (dir, data)
}

/// A roomy ext4.
pub(crate) fn space(device: u64) -> Space {
    let (size, free) = (100 << 30, 80 << 30);
    Space { device, kind: 0xef53, size, free, files: 1000, files_free: 900 }
}

pub(crate) fn with_data(change: impl FnOnce(&mut DataDir)) -> Facts {
    let (_dir, mut data) = data(|_| ());
    change(&mut data);
    Facts { dirs: vec![data], ..well() }
}

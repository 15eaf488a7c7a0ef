//! Faults of configuration.

use quorate_core::membership::Role;
use quorate_core::vote::ServerState;
use quorate_doctor::Level::{Error, Notice, Warning};
use quorate_doctor::{Address, Facts};

use crate::ensemble::{
    BASICS, THREE, data, file, file_with, follower, heard, leader, twice, well, with_data,
    with_files, words,
};
use crate::planted::{Plant, plant};

/// Server 1's file with more lines.
fn with_line(line: &str) -> Facts {
    with_files(vec![file(1, &format!("{BASICS}{line}\n{THREE}"))])
}

/// With other server lines.
fn with_members(lines: &str) -> Facts {
    Facts { members: Vec::new(), ..with_files(vec![file(1, &format!("{BASICS}{lines}"))]) }
}

fn resolved(host: &str, ips: &[&str]) -> Facts {
    let mut facts = well();
    let ips = ips.iter().map(|ip| Address { ip: ip.parse().unwrap(), is_here: false });
    facts.hosts.insert(host.to_owned(), Ok(ips.collect()));
    facts
}

pub(crate) const PLANTS: &[Plant] = &[
    plant("cfg.unreadable", Error, "zk1.cfg:1, tickTime", "should be", || {
        with_files(vec![file(1, &format!("tickTime=soon\n{THREE}"))])
    }),
    plant("cfg.unreadable", Error, "zk1.cfg:7, server.1", "server.1", || {
        let text = format!("{BASICS}server.1=zk1:2888\n");
        let gone = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        let flags = quorate_driver::zoo_cfg::JvmFlags::default();
        let file = quorate_doctor::ConfigFile::of("zk1.cfg".as_ref(), &text, None, &flags, &gone);
        Facts { broken: vec![("zk1.cfg".into(), file.unwrap_err())], ..with_files(Vec::new()) }
    }),
    plant("cfg.unknown-key", Warning, "zk1.cfg:7, tickTimes", "tickTime", || {
        with_line("tickTimes=2000")
    }),
    plant("cfg.myid-missing", Error, "zk1.cfg", "myid does not exist", || {
        let text = format!("{BASICS}{THREE}");
        let gone = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        let flags = quorate_driver::zoo_cfg::JvmFlags::default();
        let file = quorate_doctor::ConfigFile::of("zk1.cfg".as_ref(), &text, None, &flags, &gone);
        Facts { files: vec![file.unwrap()], ..with_data(|_| ()) }
    }),
    plant("cfg.myid-invalid", Error, "/data/myid", "\"one\"", || {
        with_files(vec![file_with(1, &format!("{BASICS}{THREE}"), "one")])
    }),
    plant("cfg.myid-not-listed", Error, "server 9", "no server.9", || {
        with_files(vec![file_with(1, &format!("{BASICS}{THREE}"), "9")])
    }),
    plant("cfg.myid-twice", Error, "server 1, zk2.cfg", "both of server 1", || {
        let text = format!("{BASICS}{THREE}");
        with_files(vec![file(1, &text), file_with(2, &text, "1")])
    }),
    plant("cfg.myid-elsewhere", Error, "server 1, zk2.cfg", "server 1 on zk1 is", || {
        with_files(vec![file_with(2, &format!("{BASICS}{THREE}"), "2")])
    }),
    plant("cfg.members-differ", Error, "server 2, zk2.cfg, server.3", "zk3:2888:3889", || {
        let other = THREE.replace("zk3:2888:3888", "zk3:2888:3889");
        with_files(vec![file(1, &format!("{BASICS}{THREE}")), file(2, &format!("{BASICS}{other}"))])
    }),
    // As a running server believes it, against the file.
    plant("cfg.members-differ", Error, "server 2, server.3", "observer", || {
        let config = crate::ensemble::config()
            .replace("zk3:2888:3888:participant", "zk3:2888:3888:observer");
        let mut facts = well();
        let heard = heard(ServerState::Following, 3, 1, 1, &config);
        facts.members[1].election.as_mut().unwrap().answer = Ok(heard);
        facts
    }),
    plant("cfg.version-differs", Warning, "server 2", "version 5 of the configuration", || {
        let mut members = vec![follower(1), follower(2), leader(3)];
        for (member, version) in members.iter_mut().zip([6, 5, 6]) {
            let config =
                crate::ensemble::config().replace("version=0", &format!("version={version}"));
            let state = member.heard().unwrap().state();
            member.election.as_mut().unwrap().answer = Ok(heard(state, 3, 1, 1, &config));
        }
        twice(&members)
    }),
    plant(
        "cfg.timing-differs",
        Warning,
        "server 2, zk2.cfg:1, tickTime",
        "500 here, and 2000",
        || {
            let other = BASICS.replace("tickTime=2000", "tickTime=500");
            with_files(vec![
                file(1, &format!("{BASICS}{THREE}")),
                file(2, &format!("{other}{THREE}")),
            ])
        },
    ),
    plant("cfg.timing-differs", Error, "server 1, 1.log", "4194304 bytes", || {
        crate::logs::of("Exception: Unreasonable length = 4194304")
    }),
    plant("cfg.ports-collide", Error, "server 1", "port 2888 of zk1", || {
        with_line("admin.enableServer=true\nadmin.serverPort=2888")
    }),
    plant("cfg.ports-collide", Warning, "this host", "between 32768 and 60999", || {
        with_members(&THREE.replace("zk1:2888:3888", "zk1:40000:40001"))
    }),
    plant("cfg.address-wildcard", Error, "server 1, zk1.cfg, server.1", "0.0.0.0", || {
        with_members(&THREE.replace("zk1:", "0.0.0.0:"))
    }),
    plant("cfg.address-loopback", Error, "server 1, zk1.cfg, server.1", "127.0.1.1", || {
        resolved("zk1", &["127.0.1.1"])
    }),
    plant("cfg.host-unresolved", Warning, "server 2", "zk2", || {
        let mut facts = well();
        facts.hosts.insert("zk2".to_owned(), Err("Name or service not known".to_owned()));
        facts
    }),
    plant("cfg.host-unresolved", Error, "server 3", "zk3", || {
        let mut facts = well();
        for found in facts.hosts.values_mut() {
            *found = Err("Name or service not known".to_owned());
        }
        facts
    }),
    plant("cfg.host-many", Notice, "server 2", "10.0.0.7, 10.0.0.8", || {
        resolved("zk2", &["10.0.0.7", "10.0.0.8"])
    }),
    plant("cfg.even", Warning, "the ensemble", "4 voters tolerate 1", || {
        with_members(&format!("{THREE}server.4=zk4:2888:3888\n"))
    }),
    plant("cfg.one", Notice, "the ensemble", "alone", || with_members("server.1=zk1:2888:3888\n")),
    plant("cfg.two", Warning, "the ensemble", "two voters", || {
        with_members("server.1=zk1:2888:3888\nserver.2=zk2:2888:3888\n")
    }),
    plant("cfg.weights-odd", Warning, "group", "one group", || {
        with_members(&format!("{THREE}group.1=1:2:3\n"))
    }),
    plant("cfg.limits", Warning, "zk1.cfg:3, syncLimit", "1500 ms", || {
        let text =
            BASICS.replace("syncLimit=5", "syncLimit=3").replace("tickTime=2000", "tickTime=500");
        with_files(vec![file(1, &format!("{text}{THREE}"))])
    }),
    plant("cfg.limits", Warning, "zk1.cfg:2, initLimit", "2048 MiB", || {
        with_data(|data| data.history.as_mut().unwrap().snapshots[0].bytes = 2 << 30)
    }),
    plant("cfg.purge-off", Warning, "zk1.cfg, autopurge.purgeInterval", "12 snapshots", || {
        let text = BASICS.replace("autopurge.purgeInterval=24\n", "");
        let facts = with_data(|data| {
            let snapshots = &mut data.history.as_mut().unwrap().snapshots;
            let one = snapshots[0].clone();
            snapshots.resize(12, one);
        });
        Facts { files: vec![file(1, &format!("{text}{THREE}"))], ..facts }
    }),
    plant("cfg.snapcount", Notice, "zk1.cfg:7, snapCount", "500", || with_line("snapCount=500")),
    plant(
        "cfg.trust-empty-left-on",
        Warning,
        "zk1.cfg:7, snapshot.trust.empty",
        "without a snapshot",
        || {
            let dirs = vec![data(|_| ()).1];
            Facts { dirs, ..with_line("snapshot.trust.empty=true") }
        },
    ),
    plant("cfg.whitelist", Warning, "zk1.cfg:7, 4lw.commands.whitelist", "*", || {
        with_line("4lw.commands.whitelist=*")
    }),
    plant("cfg.whitelist", Notice, "server 2", "does not answer mntr", || {
        let mut facts = well();
        let refused = "mntr is not executed because it is not in the whitelist.\n";
        let words = words(&crate::ensemble::srvr("follower", 0x1_0000_0010), refused);
        facts.members[1].client.as_mut().unwrap().answer = Ok(words);
        facts
    }),
    plant("cfg.force-sync", Error, "zk1.cfg:7, forceSync", "not on the disk", || {
        with_line("forceSync=no")
    }),
    plant("cfg.force-sync", Error, "zk1.cfg:7, skipACL", "access lists", || {
        with_line("skipACL=yes")
    }),
];

#[test]
fn client_addresses_and_spellings_of_ipv6_make_no_difference_between_members() {
    let lines = |loopback: &str, client: &str| {
        format!(
            "{BASICS}server.1=[{loopback}]:2888:3888{client}\nserver.2=[{loopback}]:2889:3889\n"
        )
    };
    let config = "server.1=[0:0:0:0:0:0:0:1]:2888:3888:participant;0.0.0.0:2181\n\
                  server.2=[0:0:0:0:0:0:0:1]:2889:3889:participant\nversion=0";
    let mut facts =
        with_files(vec![file(1, &lines("::1", "")), file(2, &lines("0:0:0:0:0:0:0:1", ";2181"))]);
    facts.members.truncate(2);
    for (member, state) in
        facts.members.iter_mut().zip([ServerState::Leading, ServerState::Following])
    {
        member.role = Role::Participant;
        member.election.as_mut().unwrap().answer = Ok(heard(state, 1, 1, 1, config));
    }
    let found = quorate_doctor::diagnose(&facts);
    assert!(!found.iter().any(|finding| finding.rule == "cfg.members-differ"), "{found:#?}");
}

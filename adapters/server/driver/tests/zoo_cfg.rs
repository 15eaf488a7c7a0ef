//! Configuration files as people write them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::config::Strangers;
use quorate_core::id::ServerId;
use quorate_core::membership::Role;
use quorate_driver::zoo_cfg::{
    Caution, ClientSasl, ConfigError, HttpSettings, JvmFlags, Loaded, LogFormat, QuorumSasl,
    Survey, ZooCfg,
};
use quorate_driver::{DiskFloor, SaslError, ServerConfig};

const BASE: &str = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data\nclientPort=2181\n";
const THREE: &str = "server.1=zk1:2888:3888\nserver.2=zk2:2888:3888\nserver.3=zk3:2888:3888\n";

/// Reads `text` as `zoo.cfg`, beside which the files `others` exist.
fn parse(text: &str, others: &[(&str, &str)]) -> Result<ZooCfg, ConfigError> {
    let others: BTreeMap<_, _> = others.iter().copied().collect();
    ZooCfg::parse("zoo.cfg", text, |path: &Path| {
        let found = others.get(path.to_str().unwrap());
        found.map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    })
}

fn good(text: &str) -> ZooCfg {
    parse(text, &[("/data/myid", "2\n")]).unwrap()
}

fn refused(text: &str) -> String {
    parse(text, &[("/data/myid", "2")]).unwrap_err().to_string()
}

/// What is said of the lines behind those of a usual file, of which there are eight.
fn refused_line(line: &str) -> String {
    refused(&format!("{BASE}{THREE}{line}"))
}

fn warnings(lines: &str) -> Vec<String> {
    let cfg = good(&format!("{BASE}{THREE}{lines}"));
    cfg.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_usual_file() {
    let cfg = good(&format!("# The number of milliseconds of each tick\n{BASE}{THREE}"));
    assert_eq!(cfg.my_id, ServerId(2));
    assert_eq!(cfg.tick_time, Duration::from_millis(2000));
    assert_eq!((cfg.init_limit, cfg.sync_limit, cfg.connect_limit), (10, 5, None));
    assert_eq!(cfg.data_dir, Path::new("/data"));
    assert_eq!(cfg.data_log_dir, None);
    assert_eq!(cfg.client_address.as_ref().unwrap().to_string(), "0.0.0.0:2181");
    assert_eq!(cfg.own().role, Role::Participant);
    assert_eq!(
        cfg.membership.to_string(),
        "server.1=zk1:2888:3888:participant\nserver.2=zk2:2888:3888:participant\n\
         server.3=zk3:2888:3888:participant\nversion=0"
    );
    assert_eq!(cfg.warnings, []);
    assert_eq!(
        cfg.derived(),
        "server 2 of 3 participants, of which 2 decide and 1 may fail; 20 s to connect and \
         synchronise, 10 s to notice a dead peer, a ping every 1 s"
    );
}

#[test]
fn defaults() {
    let cfg = good(&format!("initLimit=10\nsyncLimit=5\ndataDir=/data\n{THREE}"));
    assert_eq!(cfg.tick_time, Duration::from_millis(3000));
    assert_eq!(cfg.client_address, None);
    assert_eq!(cfg.notification_min, Duration::from_millis(200));
    assert_eq!(cfg.notification_max, Duration::from_secs(60));
    assert_eq!(cfg.dial_timeout, Duration::from_secs(5));
    assert_eq!(cfg.introduction_timeout, Duration::from_secs(15));
    assert_eq!(cfg.observer_delay, Duration::from_millis(200));
    assert_eq!((cfg.election_bind_retries, cfg.snap_count), (3, 100_000));
    assert!(!cfg.listen_on_all_ips && !cfg.reconfig_enabled && cfg.standalone_enabled);
    assert!(cfg.finish_when_settled && cfg.autocreate);
    assert_eq!((cfg.fsync_warning, &cfg.oracle_path), (Duration::from_secs(1), &None));
    assert_eq!((cfg.multi_address, cfg.max_peer_connections), (false, 512));
    assert!(cfg.answers("srvr") && cfg.answers("mntr") && !cfg.answers("wchp"));
}

/// The page of the module has a table of those that are not ZooKeeper's, and these are what it says.
#[test]
fn every_default_that_differs_from_zookeepers_is_on_one_page() {
    let page = include_str!("../src/zoo_cfg.rs");
    let (_, table) = page.split_once("# Defaults that differ").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let rows: Vec<Vec<_>> = rows.map(|row| row.split(" | ").collect()).collect();
    let told: Vec<_> = rows.iter().map(|row| (row[0].trim_matches('`'), row[2])).collect();
    let cfg = good(&format!("initLimit=10\nsyncLimit=5\ndataDir=/data\n{THREE}"));
    let mut words = cfg.four_letter_words.clone();
    words.sort();
    let words = format!("`{}`", words.join(","));
    assert_eq!(cfg.clients.backlog, None);
    let admin = format!("`{}`", cfg.http.admin.is_some());
    let on = "admin.enableServer=true\nmetricsProvider.className=\
              org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n";
    let http = good(&format!("initLimit=10\nsyncLimit=5\ndataDir=/data\n{on}{THREE}")).http;
    let [at, metrics] = [http.admin.unwrap().address, http.metrics.unwrap()]
        .map(|address| format!("`{}`", address.host));
    let differ = [
        ("4lw.commands.whitelist", &*words),
        ("clientPortListenBacklog", "as many as the system allows"),
        ("admin.enableServer", &*admin),
        ("admin.serverAddress", &*at),
        ("metricsProvider.httpHost", &*metrics),
    ];
    assert_eq!(told, differ);
    // All others are ZooKeeper's: said as it has them, they change nothing.
    let java = "tickTime=3000\nmaxClientCnxns=60\nmaxCnxns=0\nelectionPortBindRetry=3\nsnapCount=100000\n\
                cnxTimeout=5000\nfastleader.minNotificationInterval=200\nfastleader.maxNotificationInterval=60000\n\
                observer.election.DelayMs=200\nquorumListenOnAllIPs=false\nreconfigEnabled=false\n\
                standaloneEnabled=true\nmultiAddress.enabled=false\nfsync.warningthresholdms=1000\n\
                autopurge.purgeInterval=0\nautopurge.snapRetainCount=3\npreAllocSize=65536\n\
                snapSizeLimitInKb=4194304\njute.maxbuffer=1048575\ncommitLogCount=500\nsnapshotSizeFactor=0.33\n\
                leader.maxConcurrentSnapSyncs=10\nsnapshot.trust.empty=false\ndb.autocreate=true\n\
                globalOutstandingLimit=1000\nleaderServes=yes\nskipACL=no\nextendedTypesEnabled=false\n\
                enableEagerACLCheck=false\nDigestAuthenticationProvider.digestAlg=SHA1\ndigest.enabled=true\n\
                clientTcpKeepAlive=false\nrequest_throttle_max_requests=0\nrequest_throttle_drop_stale=true\n\
                request_stale_latency_check=false\nznode.container.checkIntervalMs=60000\n\
                znode.container.maxPerMinute=10000\nznode.container.maxNeverUsedIntervalMs=0\n";
    let said = good(&format!("initLimit=10\nsyncLimit=5\ndataDir=/data\n{java}{THREE}"));
    assert_eq!(said, cfg);
}

#[test]
fn every_key_with_and_without_its_prefix() {
    for prefix in ["", "zookeeper."] {
        let settings = [
            "dataLogDir=/logs",
            "fastleader.minNotificationInterval=100",
            "fastleader.maxNotificationInterval=1000",
            "cnxTimeout=700",
            "electionPortBindRetry=0",
            "quorumListenOnAllIPs=true",
            "standaloneEnabled=false",
            "reconfigEnabled=TRUE",
            "quorumCnxnTimeoutMs=900",
            "connectToLearnerMasterLimit=4",
            "fsync.warningthresholdms=300",
            "quorate.disk.floor=512m",
            "multiAddress.enabled=true",
            "observer.election.DelayMs=0",
            "electionAlg=3",
            "peerType=participant",
            "snapCount=7",
            "oraclePath=/oracle",
            "4lw.commands.whitelist=stat, ruok",
            "quorate.finishWhenSettled=false",
            "db.autocreate=false",
            "sslQuorum=false",
        ];
        let lines: String = settings.iter().map(|line| format!("{prefix}{line}\n")).collect();
        let cfg = good(&format!("{BASE}{THREE}{lines}"));
        assert_eq!(cfg.warnings, []);
        assert_eq!(cfg.data_log_dir.as_deref(), Some(Path::new("/logs")));
        assert_eq!(cfg.notification_min, Duration::from_millis(100));
        assert_eq!(cfg.notification_max, Duration::from_secs(1));
        assert_eq!(cfg.dial_timeout, Duration::from_millis(700));
        assert_eq!(cfg.introduction_timeout, Duration::from_millis(900));
        assert_eq!(cfg.observer_delay, Duration::ZERO);
        assert_eq!(cfg.disk_floor, DiskFloor::Bytes(512 << 20));
        assert_eq!((cfg.election_bind_retries, cfg.snap_count), (0, 7));
        assert_eq!(cfg.connect_limit, Some(4));
        assert_eq!(cfg.fsync_warning, Duration::from_millis(300));
        assert!(cfg.multi_address);
        assert!(cfg.listen_on_all_ips && cfg.reconfig_enabled && !cfg.standalone_enabled);
        assert!(!cfg.finish_when_settled && !cfg.autocreate);
        assert_eq!(cfg.oracle_path.as_deref(), Some(Path::new("/oracle")));
        assert!(cfg.answers("stat") && cfg.answers("ruok") && !cfg.answers("srvr"));
    }
    let cfg = good(&format!("{BASE}{THREE}quorate.maxPeerCnxns=0\n4lw.commands.whitelist=*\n"));
    assert_eq!(cfg.max_peer_connections, 0);
    assert!(cfg.answers("anything"));
    assert_eq!((cfg.exposure.allowed_hosts, cfg.exposure.strangers), (None, Strangers::Allow));
    let exposed = "quorate.quorumAllow=members, 10.1.0.0/16\nquorate.strangers=ip-only\n";
    let cfg = good(&format!("{BASE}{THREE}{exposed}"));
    assert_eq!(cfg.exposure.allowed_hosts.unwrap().to_string(), "members,10.1.0.0/16");
    assert_eq!(cfg.exposure.strangers, Strangers::IpOnly);
}

#[test]
fn wrong_values_are_refused_with_file_line_key_and_value() {
    for (line, expected) in [
        ("initLimit=ten", "should be a whole number from 1 to 2147483647"),
        ("initLimit=0", "should be a whole number from 1 to 2147483647"),
        ("syncLimit=-5", "should be a whole number from 1 to 2147483647"),
        ("tickTime=2s", "should be a whole number of milliseconds from 1 to 2147483647"),
        ("tickTime=0", "should be a whole number of milliseconds from 1 to 2147483647"),
        ("tickTime=2147483648", "should be a whole number of milliseconds from 1 to 2147483647"),
        ("clientPort=65536", "should be a whole number from 0 to 65535"),
        ("dataDir=", "should be a path"),
        ("electionAlg=1", "should be 3, the only algorithm there is"),
        ("electionAlg=fast", "should be a whole number from 0 to 2147483647"),
        ("snapCount=1", "should be a whole number from 2 to 2147483647"),
        ("snapshotSizeFactor=much", "should be a number such as 0.33, negative for never"),
        ("preAllocSize=64M", "should be a whole number from 1 to 2147483647"),
        ("reconfigEnabled=yes", "should be true or false"),
        ("standaloneEnabled=", "should be true or false"),
        ("peerType=voter", "should be participant or observer"),
        ("quorumCnxnTimeoutMs=-2", "should be a whole number of milliseconds from 0 to 2147483647"),
        (
            "fastleader.maxNotificationInterval=100",
            "should be at least fastleader.minNotificationInterval, which is 200",
        ),
        #[cfg(not(feature = "tls"))]
        ("sslQuorum=true", "TLS between servers is not supported yet"),
        #[cfg(not(feature = "tls"))]
        ("zookeeper.portUnification=true", "TLS between servers is not supported yet"),
        (
            "ssl.quorum.ocsp=true",
            "asking an authority whether a certificate is revoked, in place of the lists that quorate.ssl.crlFile names, \
             is not supported yet",
        ),
        #[cfg(not(feature = "tls"))]
        ("quorate.ssl.crlFile=/x", "TLS between servers is not supported yet"),
        ("quorate.quorumAllow=members,zk1", "should be members, networks or both"),
        ("quorate.quorumAllow=10.0.0.0/33", "should be members, networks or both"),
        ("quorate.disk.floor=20%", "should be bytes, such as 512m, snapshot or off"),
        ("quorate.strangers=deny", "should be allow, ip-only or refuse"),
        #[cfg(not(feature = "tls"))]
        ("secureClientPort=2281", "TLS for clients is not supported yet"),
        #[cfg(not(feature = "tls"))]
        ("zookeeper.client.portUnification=true", "TLS for clients is not supported yet"),
        (
            "authProvider.1=org.example.OwnAuthenticationProvider",
            "an authentication provider of its own is not supported yet",
        ),
        ("observerMasterPort=2191", "serving observers as a follower is not supported yet"),
        ("enforceQuota=true", "enforcing quotas is not supported yet"),
        ("localSessionsEnabled=true", "keeping sessions at one server is not supported yet"),
        ("emulate353TTLNodes=maybe", "should be true or false"),
        (
            "electionPort=3888",
            "there is no such key; the election port is the second port of each \
             server.N=host:quorumPort:electionPort",
        ),
        (
            "server4=zk4:2888:3888",
            "there is no such key; a server is written as server.N=host:quorumPort:electionPort",
        ),
        ("server.4=zk4:2888", "\"zk4:2888\" is not host:quorumPort:electionPort"),
        ("server.4=zk4:2888:2888", "port 2888 cannot be both"),
        ("server.4=zk4:2888:3888:leader", "\"leader\" is not a role"),
        ("server.x=zk4:2888:3888", "\"x\" is not a server id"),
        ("server.0=zk4:2888:3888", "the id of a server must be between 1 and 255"),
        ("server.256=zk4:2888:3888", "the id of a server must be between 1 and 255"),
        ("server.3=zk4:2888:3888", "server.3 is set twice"),
        ("group.1=1:x", "\"x\" is not a server id"),
        ("weight.1=much", "\"much\" is not a weight"),
    ] {
        let message = refused_line(line);
        let start = format!("zoo.cfg:9: {line}: {expected}");
        assert!(message.starts_with(&start), "{message}\nrather than\n{start}");
    }
    assert!(refused_line("a=\\u12").starts_with("zoo.cfg: line 9: \\u is not followed by"));
}

#[test]
fn lines_that_do_not_fit_together_are_refused_at_the_line_that_shows_it() {
    for (line, expected) in [
        ("server.4=ZK1:3888:4888", "zoo.cfg:9: server.1 and server.4 both use zk1:3888"),
        ("server.04=zk1:3888:4888", "zoo.cfg:9: server.1 and server.4 both use zk1:3888"),
        ("group.1=1:2:3:4", "zoo.cfg:9: group.1 names server 4, but there is no server.4"),
        ("group.1=1:2", "zoo.cfg:8: server.3 is in no group"),
        ("weight.4=1\ngroup.1=1:2:3", "zoo.cfg:9: weight.4 is set, but there is no server.4"),
        ("clientPort=2888", "zoo.cfg: clientPort=2888: server.2 uses port 2888 for its peers"),
    ] {
        let message = refused_line(line);
        assert!(message.starts_with(expected), "{message}\nrather than\n{expected}");
    }
    let observers = format!("{BASE}server.2=a:1:2:observer");
    assert_eq!(
        refused(&observers),
        "zoo.cfg: none of the 1 servers is a participant, so none could vote"
    );
}

/// Nothing that an older server or client would not understand is done unless an operator says that there is none.
#[test]
fn the_oldest_version_of_zookeeper_says_what_may_be_done() {
    let oldest = |value: &str| {
        let cfg = good(&format!("{BASE}{THREE}quorate.java.oldest={value}"));
        let version = cfg.clients.oldest_java.unwrap();
        (version.has_event_zxids(), version.knows_create2_in_multi())
    };
    for version in ["3.4.14", "3.6.9", "3.7.1", "3.8.0", "3.8.1"] {
        assert_eq!(oldest(version), (false, false), "{version}");
    }
    for version in ["3.7.2", "3.8.2", "3.8.10"] {
        assert_eq!(oldest(version), (false, true), "{version}");
    }
    for version in ["3.9.0", "3.10.0", "4.0.0", "none"] {
        assert_eq!(oldest(version), (true, true), "{version}");
    }
    assert_eq!(good(&format!("{BASE}{THREE}")).clients.oldest_java, None);
    for wrong in ["3.8", "3.8.0.1", "new", "3.-1.0", ""] {
        let message = refused_line(&format!("quorate.java.oldest={wrong}"));
        assert!(message.ends_with("should be a version such as 3.8.4, or none"), "{message}");
    }
}

/// ZooKeeper's standalone mode.
#[test]
fn a_file_without_server_lines_is_that_of_a_server_alone() {
    let plain = "tickTime=2000\ndataDir=/data\nclientPort=2181\n";
    let cfg = parse(plain, &[]).unwrap();
    assert!(cfg.alone && ServerConfig::from(cfg.clone()).alone);
    assert_eq!(cfg.my_id, ServerId(1), "nothing asks for a myid");
    assert_eq!((cfg.init_limit, cfg.sync_limit), (10, 5));
    assert_eq!(cfg.client_address.as_ref().unwrap().to_string(), "0.0.0.0:2181");
    assert_eq!(cfg.membership.members().len(), 1);
    let told: Vec<_> = cfg.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "zoo.cfg: no server.N line: this server runs alone, belongs to no ensemble and opens no port for peers"
        ]
    );
    assert_eq!(good(plain).my_id, ServerId(2), "one that is there is taken");
    assert!(!good(&format!("{plain}initLimit=10\nsyncLimit=5\nserver.2=zk2:2888:3888")).alone);

    // As Debian's package has it before it is edited.
    let debian = "replace this text with the cluster-unique zookeeper's instance id (1-255)\n";
    let cfg = parse(&format!("{BASE}reconfigEnabled=true"), &[("/data/myid", debian)]).unwrap();
    assert_eq!((cfg.my_id, cfg.reconfig_enabled), (ServerId(1), false));
    let told: Vec<_> = cfg.warnings.iter().map(ToString::to_string).collect();
    assert!(
        told.iter().any(|line| line.starts_with("/data/myid:1: \"replace this text")),
        "{told:?}"
    );
    assert!(told.iter().any(|line| line.contains("zoo.cfg:6: reconfigEnabled=true")), "{told:?}");

    // Peers' ports are nobody's.
    assert!(parse("dataDir=/data\nclientPort=2888\n", &[]).is_ok());
    assert_eq!(
        parse("dataDir=/data\n", &[]).unwrap_err().to_string(),
        "zoo.cfg: clientPort is missing: without a server.N line this server is there for its clients alone"
    );
    assert!(parse("", &[]).unwrap_err().to_string().contains("dataDir is missing"));
}

#[test]
fn what_an_ensemble_needs() {
    // What speaks of an ensemble needs one.
    for line in ["standaloneEnabled=false", "quorate.self=a:1:2", "group.1=1:2", "weight.1=2"] {
        let message = refused(&format!("{BASE}{line}"));
        let expected = "zoo.cfg: no server.N line: an ensemble is needed, list every server as";
        assert!(message.starts_with(expected), "{line}: {message}");
    }
    for key in ["initLimit", "syncLimit", "dataDir"] {
        let rest: String =
            BASE.lines().filter(|l| !l.starts_with(key)).map(|l| format!("{l}\n")).collect();
        let message = refused(&format!("{rest}{THREE}"));
        assert!(message.starts_with(&format!("zoo.cfg: {key} is missing: ")), "{message}");
    }
}

#[test]
fn myid() {
    let text = format!("{BASE}{THREE}");
    let with = |content| parse(&text, &[("/data/myid", content)]);
    for content in ["2", "2\n", " 2 \r\nother"] {
        assert_eq!(with(content).unwrap().my_id, ServerId(2));
    }
    for (content, expected) in [
        ("", "/data/myid:1: \"\" is not a server id from 1 to 255"),
        ("\n2", "/data/myid:1: \"\" is not a server id from 1 to 255"),
        ("two", "/data/myid:1: \"two\" is not a server id from 1 to 255"),
        ("0", "/data/myid:1: \"0\" is not a server id from 1 to 255"),
        ("256", "/data/myid:1: \"256\" is not a server id from 1 to 255"),
        ("-1", "/data/myid:1: \"-1\" is not a server id from 1 to 255"),
        ("7", "/data/myid:1: there is no server.7 line; the servers are 1, 2, 3"),
    ] {
        assert_eq!(with(content).unwrap_err().to_string(), expected);
    }
    let missing = parse(&text, &[]).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read /data/myid: "), "{missing}");
    assert!(missing.ends_with("it must hold this server's id, the N of its server.N line"));
}

#[test]
fn what_is_kept_of_a_history() {
    let cfg = good(&format!("{BASE}{THREE}"));
    assert_eq!((cfg.snapshots_kept, cfg.preallocate, cfg.log_bytes), (None, 64 << 20, 4 << 30));
    assert_eq!((cfg.commit_log_count, cfg.snapshot_size_percent), (500, Some(33)));
    assert_eq!((cfg.observer_snapshots, cfg.trust_empty_snapshot), (10, false));
    assert_eq!(cfg.unsynced_bytes, 64 << 20);
    let text = "zookeeper.preAllocSize=16\nsnapSizeLimitInKb=1024\ncommitLogCount=7\n\
                zookeeper.leader.maxConcurrentSnapSyncs=2\nsnapshot.trust.empty=true\n\
                quorate.unsyncedLimitInKb=256\n\
                autopurge.purgeInterval=1\nautopurge.snapRetainCount=5\nsnapCount=1000\n";
    let cfg = good(&format!("{BASE}{THREE}{text}"));
    assert_eq!((cfg.snapshots_kept, cfg.preallocate, cfg.log_bytes), (Some(5), 16 << 10, 1 << 20));
    assert_eq!((cfg.commit_log_count, cfg.observer_snapshots), (7, 2));
    assert!(cfg.trust_empty_snapshot && cfg.warnings.is_empty(), "{:?}", cfg.warnings);
    let config = ServerConfig::from(cfg);
    assert_eq!(config.core.history.window_count, 7);
    assert_eq!(config.core.history.snap_count, 1000);
    assert_eq!(config.core.history.observer_snapshots, 2);
    assert_eq!(config.core.limits.unsynced_bytes, 256 << 10);
    assert_eq!((config.snapshots_kept, config.preallocate), (Some(5), 16 << 10));
    for (lines, bytes) in [
        ("txnLogSizeLimitInKb=512", 512 << 10),
        ("txnLogSizeLimitInKb=-1", 4 << 30),
        ("txnLogSizeLimitInKb=512\nsnapSizeLimitInKb=256", 256 << 10),
    ] {
        assert_eq!(good(&format!("{BASE}{THREE}{lines}\n")).log_bytes, bytes, "{lines}");
    }
    for (lines, kept) in [
        ("autopurge.snapRetainCount=9", None),
        ("autopurge.purgeInterval=24", Some(3)),
        ("autopurge.purgeInterval=24\nautopurge.snapRetainCount=1", Some(3)),
        ("autopurge.purgeInterval=0\nautopurge.snapRetainCount=9", None),
    ] {
        assert_eq!(good(&format!("{BASE}{THREE}{lines}\n")).snapshots_kept, kept, "{lines}");
    }
    for (factor, percent) in [
        ("0.33", Some(33)),
        ("-1", None),
        ("0", Some(0)),
        ("1.5", Some(150)),
        ("1e9", Some(100_000)),
    ] {
        let cfg = good(&format!("{BASE}{THREE}snapshotSizeFactor={factor}\n"));
        assert_eq!(cfg.snapshot_size_percent, percent, "{factor}");
    }
}

/// As `BinaryInputArchive` reads them: the extra size is as much again, and 1024 at least.
#[test]
fn how_long_a_transaction_may_be() {
    let lengths = |lines: &str| {
        let config = ServerConfig::from(good(&format!("{BASE}{THREE}{lines}\n")));
        assert!(config.core.check().is_ok(), "{lines}");
        (config.core.limits.request_bytes, config.core.limits.txn_bytes)
    };
    for (lines, expected) in [
        ("", (1_048_575, 2_097_150)),
        ("jute.maxbuffer=1000000", (1_000_000, 2_000_000)),
        ("zookeeper.jute.maxbuffer=0x8000", (32_768, 65_536)),
        ("jute.maxbuffer=010", (8, 1_032)),
        ("jute.maxbuffer=5000\nzookeeper.jute.maxbuffer.extrasize=0", (5_000, 6_024)),
        ("jute.maxbuffer=5000\njute.maxbuffer.extrasize=2000", (5_000, 7_000)),
        ("jute.maxbuffer.extrasize=2000", (1_048_575, 1_050_575)),
        ("jute.maxbuffer=4194304", (4_194_304, 8_388_608)),
        ("jute.maxbuffer=0x400000\njute.maxbuffer.extrasize=0", (4_194_304, 4_195_328)),
        ("jute.maxbuffer=2147483647", (2_147_483_647, 2_147_483_647)),
    ] {
        assert_eq!(lengths(lines), expected, "{lines}");
    }
    assert_eq!(warnings("jute.maxbuffer=0xfffff"), [""; 0]);
    for wrong in ["-1", "0", "much", "0x"] {
        let said = refused_line(&format!("jute.maxbuffer={wrong}"));
        assert!(said.contains("a whole number from 1 to 2147483647"), "{wrong}: {said}");
    }
}

#[test]
fn how_long_service_is_waited_for() {
    let patience =
        |lines: &str| ServerConfig::from(good(&format!("{BASE}{THREE}{lines}\n"))).patience;
    assert_eq!(patience(""), Duration::from_secs(10));
    assert_eq!(patience("quorate.patience=250"), Duration::from_millis(250));
    assert_eq!(patience("quorate.patience=0"), Duration::ZERO);
}

/// ZooKeeper up to 3.9 opens 0.0.0.0:8080 unless it is told not to.
#[test]
fn http_is_spoken_where_the_file_says_so_and_on_loopback() {
    let http = |lines: &str| {
        parse(&format!("{BASE}{THREE}{lines}"), &[("/data/myid", "2")]).map(|cfg| cfg.http)
    };
    assert_eq!(http("").unwrap(), HttpSettings::default());
    assert_eq!(http("admin.serverPort=8081").unwrap(), HttpSettings::default());
    let at = |host: &str, port| HostPort { host: host.to_owned(), port };

    let admin = http("admin.enableServer=true").unwrap().admin.unwrap();
    let second = Duration::from_secs(1);
    assert_eq!((admin.address, admin.idle), (at("127.0.0.1", 8080), 30 * second));
    assert_eq!(admin.command_url, "/commands");
    let admin = "zookeeper.admin.enableServer=true\nadmin.serverAddress=[::]\nadmin.serverPort=9\n\
                 admin.idleTimeout=1000\nadmin.commandURL=/zk/";
    let admin = http(admin).unwrap().admin.unwrap();
    assert_eq!((admin.address, admin.idle), (at("::", 9), second));
    assert_eq!(admin.command_url, "/zk");

    let of =
        |class: &str| format!("metricsProvider.className=org.apache.zookeeper.metrics.{class}");
    let prometheus = of("prometheus.PrometheusMetricsProvider");
    assert_eq!(http(&prometheus).unwrap().metrics, Some(at("127.0.0.1", 7000)));
    let elsewhere =
        format!("{prometheus}\nmetricsProvider.httpHost=0.0.0.0\nmetricsProvider.httpPort=1");
    assert_eq!(http(&elsewhere).unwrap().metrics, Some(at("0.0.0.0", 1)));
    assert_eq!(http(&of("impl.DefaultMetricsProvider")).unwrap().metrics, None);
    assert_eq!(http("quorate.probe.address=[fd00::1]:5").unwrap().probes, Some(at("fd00::1", 5)));

    for wrong in [
        &of("Mine")[..],
        "admin.enableServer=yes",
        "admin.serverPort=70000",
        "admin.commandURL=commands",
        "admin.serverAddress=a b",
        #[cfg(not(feature = "tls"))]
        "admin.forceHttps=true",
        #[cfg(not(feature = "tls"))]
        "metricsProvider.httpsPort=7001",
        #[cfg(not(feature = "tls"))]
        "metricsProvider.ssl.keyStore.location=/k",
        "quorate.probe.address=7000",
        "quorate.probe.address=fd00::1:5",
        "quorate.probe.address=:5",
    ] {
        assert!(http(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn keys_without_effect() {
    for (line, expected) in [
        (
            "serverCnxnFactory=x",
            "a key of ZooKeeper that has no effect here: the service for clients has no such part",
        ),
        (
            "commitProcessor.numWorkerThreads=3",
            "a key of ZooKeeper that has no effect here: the service for clients has no such part",
        ),
        (
            "metricsProvider.exportJvmInfo=true",
            "a key of ZooKeeper that has no effect here: there is no JVM, and no queue of metrics",
        ),
        (
            "admin.snapshot.enabled=true",
            "a key of ZooKeeper that has no effect here: snapshots are not taken or restored over HTTP",
        ),
        (
            "zookeeper.forceSync=yes",
            "a key of ZooKeeper that has no effect here: whatever is acknowledged was synced",
        ),
        (
            "ssl.quorum.keyStore.location=/k",
            "a key of ZooKeeper that has no effect here: there is no TLS between servers unless sslQuorum or \
             portUnification is true",
        ),
        ("ticktime=5", "unknown key, it has no effect; did you mean tickTime?"),
        (
            "connectToLearnerMasterLimt=5",
            "unknown key, it has no effect; did you mean connectToLearnerMasterLimit?",
        ),
        (
            "quorumListenOnAllIps=true",
            "unknown key, it has no effect; did you mean quorumListenOnAllIPs?",
        ),
        ("electionAlgo=3", "unknown key, it has no effect; did you mean electionAlg?"),
        ("colour=blue", "unknown key, it has no effect"),
        (
            "electionAddrBindRetry=3",
            "there is no such key, it has no effect; write electionPortBindRetry instead",
        ),
        ("syncLimit=6", "set on line 3 already; this value counts"),
    ] {
        assert_eq!(warnings(line), [format!("zoo.cfg:9: {line}: {expected}")]);
    }
    let notice = good(&format!("{BASE}{THREE}serverCnxnFactory=x\ncolour=blue")).warnings;
    assert_eq!(notice.iter().map(|w| w.is_notice()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(
        warnings("tcpKeepAlive=false"),
        [
            "zoo.cfg:9: tcpKeepAlive=false: keep-alive stays on, or a dead election link would go unnoticed"
        ]
    );
    assert!(warnings("tcpKeepAlive=true").is_empty());
}

/// Every key of `zoo.cfg`, and every property of a server, of ZooKeeper 3.8 and 3.9, with a value that is not its
/// default: each is taken, or named as what has no effect, or refused; none is unknown.
#[test]
fn no_setting_of_zookeeper_is_passed_over() {
    let known = include_str!("zookeeper_settings.txt");
    let settings = known.lines().filter(|line| !line.starts_with('#'));
    let fate = |setting: &str| {
        // What is said of the admin server counts where there is one.
        let of_admin = setting.starts_with("admin.") && !setting.starts_with("admin.enableServer");
        let admin = if of_admin { "\nadmin.enableServer=true" } else { "" };
        let text = format!("{BASE}{THREE}{setting}{admin}");
        match parse(&text, &[("/data/myid", "2")]) {
            Err(ConfigError::NotSupported { .. }) => "refused".to_owned(),
            // These want stores; without the feature they are refused.
            Err(ConfigError::Missing {
                key: "ssl.quorum.keyStore.location" | "ssl.keyStore.location" | "admin.forceHttps",
                ..
            }) => "refused".to_owned(),
            // It says which key is missing.
            Err(ConfigError::Missing { key: "secureClientPort", .. }) => "named".to_owned(),
            // These want a JAAS file, and schemes.
            Err(ConfigError::Missing {
                key: "quorate.jaas.file" | "enforce.auth.schemes", ..
            }) => "refused".to_owned(),
            Err(error) => error.to_string(),
            Ok(cfg) => match &cfg.warnings[..] {
                [] => "taken".to_owned(),
                [one] if matches!(one.caution, Caution::NotUsed { .. }) => "named".to_owned(),
                others => format!("{others:?}"),
            },
        }
    };
    let wrong: Vec<_> = settings
        .map(|line| line.split_once(' ').unwrap())
        .map(|(expected, setting)| (expected, setting, fate(setting)))
        .filter(|(expected, _, fate)| expected != fate)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(known.lines().count() > 150);
}

#[test]
fn logins_are_read_with_zookeepers_keys_and_names_of_sections() {
    let cfg = |lines: &str| parse(&format!("{BASE}{THREE}{lines}"), &[("/data/myid", "2")]);
    let plain = cfg("").unwrap();
    assert_eq!((plain.sasl, plain.clients.sasl), (None, None));
    let all = cfg("quorate.jaas.file=/etc/jaas.conf\nquorum.auth.enableSasl=true\n\
                   quorum.auth.learnerRequireSasl=true\nquorum.auth.server.saslLoginContext=S\n\
                   superUser=root\nzookeeper.superUser.b=admin\nallowSaslFailedClients=true\n\
                   authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n")
    .unwrap();
    assert_eq!(all.warnings, []);
    let between = QuorumSasl {
        file: "/etc/jaas.conf".into(),
        server_section: "S".into(),
        learner_section: "QuorumLearner".into(),
        dials: true,
        required: false,
        reload: Some(Duration::from_secs(10)),
    };
    assert_eq!(all.sasl, Some(between));
    let clients = ClientSasl {
        file: "/etc/jaas.conf".into(),
        section: "Server".into(),
        needed: false,
        super_users: vec!["root".into(), "admin".into()],
        failed_stay: true,
        reload: Some(Duration::from_secs(10)),
    };
    assert_eq!(all.clients.sasl, Some(clients));
    assert!(all.clients.required_schemes.is_empty());
    let named = cfg("quorate.jaas.file=j\nsasl.serverconfig=Own\n").unwrap().clients.sasl.unwrap();
    assert_eq!((named.section.as_str(), named.needed), ("Own", true));
    let every = |ms: &str| {
        let lines = format!("quorate.jaas.file=j\nquorate.jaas.reloadInterval={ms}\n");
        cfg(&lines).unwrap().clients.sasl.unwrap().reload
    };
    assert_eq!((every("70"), every("0")), (Some(Duration::from_millis(70)), None));
    let required = cfg("quorate.jaas.file=j\nsessionRequireClientSASLAuth=true\n").unwrap().clients;
    assert_eq!(required.required_schemes, ["sasl"]);
    assert!(required.sasl.unwrap().needed);
    let digest = cfg("enforce.auth.enabled=true\nenforce.auth.schemes=digest, ip\n").unwrap();
    assert_eq!(digest.clients.required_schemes, ["digest", "ip"]);
    // The file that ZooKeeper's JVM is given will do.
    let flags = with_flags("", "-Djava.security.auth.login.config=/jvm.conf", "").unwrap();
    assert_eq!(flags.clients.sasl.unwrap().file, Path::new("/jvm.conf"));
}

#[test]
fn a_login_that_nothing_says_how_to_do_refuses_the_file() {
    for (lines, says) in [
        ("quorum.auth.enableSasl=true", "quorate.jaas.file is missing"),
        ("sessionRequireClientSASLAuth=true", "quorate.jaas.file is missing"),
        ("enforce.auth.enabled=true", "enforce.auth.schemes is missing"),
        ("enforce.auth.enabled=true\nenforce.auth.schemes=world", "some of digest, ip, sasl, x509"),
        ("quorum.auth.learnerRequireSasl=true", "false, unless quorum.auth.enableSasl is true"),
        (
            "quorum.auth.enableSasl=true\nquorum.auth.serverRequireSasl=true",
            "false, unless quorum.auth.learnerRequireSasl is true",
        ),
        ("quorum.auth.enableSasl=perhaps", "should be true or false"),
    ] {
        let text = format!("{BASE}{THREE}{lines}");
        let said = parse(&text, &[("/data/myid", "2")]).unwrap_err().to_string();
        assert!(said.contains(says), "{lines}: {said}");
    }
}

#[test]
fn a_jaas_file_that_does_not_say_who_logs_in_is_refused_by_file_section_and_module() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("jaas.conf");
    let of_clients = |needed| ClientSasl {
        file: file.clone(),
        section: "Server".into(),
        needed,
        super_users: Vec::new(),
        failed_stay: false,
        reload: None,
    };
    let between = QuorumSasl {
        file: file.clone(),
        server_section: "QuorumServer".into(),
        learner_section: "QuorumLearner".into(),
        dials: true,
        required: true,
        reload: None,
    };
    assert!(matches!(between.read(), Err(SaslError::Read { .. })));
    let digest = "org.apache.zookeeper.server.auth.DigestLoginModule required";
    let peers = format!("QuorumServer {{ {digest} user_zk=\"hush\"; }};\n");
    let own = format!("QuorumLearner {{ {digest} username=\"zk\" password=\"hush\"; }};\n");
    std::fs::write(&file, format!("{peers}{own}")).unwrap();
    let read = between.read().unwrap();
    assert_eq!((read.users.count(), read.own.user.as_str()), (1, "zk"));
    assert_eq!(of_clients(false).read().unwrap(), None, "there is SASL between servers alone");
    assert!(of_clients(true).read().unwrap_err().to_string().contains("no section \"Server\""));
    for (text, says) in [
        (peers.clone(), "no section \"QuorumLearner\""),
        (
            format!("{peers}QuorumLearner {{ {digest} user_a=\"hush\"; }};"),
            "\"QuorumLearner\" has no username",
        ),
        (format!("{own}QuorumServer {{ {digest} x=y; }};"), "\"QuorumServer\" has no user_NAME"),
        (
            format!(
                "{own}QuorumServer {{ com.sun.security.auth.module.Krb5LoginModule required; }};"
            ),
            "com.sun.security.auth.module.Krb5LoginModule, which is not spoken here",
        ),
        ("QuorumServer { x required a='hush'; };".to_owned(), "line 1: "),
    ] {
        std::fs::write(&file, &text).unwrap();
        let said = between.read().unwrap_err().to_string();
        assert!(said.contains(says) && said.contains("jaas.conf"), "{said}");
        assert!(!said.contains("hush"), "{said}");
    }
}

/// The page of the module has a table of them.
#[test]
fn every_setting_of_our_own_is_documented() {
    let sources = [
        include_str!("../src/zoo_cfg.rs"),
        include_str!("../src/zoo_cfg/entries.rs"),
        include_str!("../src/zoo_cfg/members.rs"),
        include_str!("../src/zoo_cfg/parse.rs"),
        include_str!("../src/zoo_cfg/clients.rs"),
        include_str!("../src/zoo_cfg/log.rs"),
        include_str!("../src/zoo_cfg/exposed.rs"),
        include_str!("../src/zoo_cfg/sasl.rs"),
        include_str!("../src/zoo_cfg/tls.rs"),
    ];
    let (page, _) = sources[0].split_once("\nmod ").unwrap();
    let mut known = 0;
    for part in sources.iter().flat_map(|source| source.split("\"quorate.").skip(1)) {
        let key = format!("`quorate.{}`", part.split('"').next().unwrap());
        assert!(page.contains(&key), "{key}");
        known += 1;
    }
    assert!(known >= 13, "only {known} found");
}

#[test]
fn an_id_that_is_no_servers_where_types_are_extended() {
    let with = |lines: &str| {
        let text = format!("{BASE}server.2=b:1:2\nserver.254=c:1:2\n{lines}");
        parse(&text, &[("/data/myid", "2")])
    };
    let largest = "server.255=d:1:2\n";
    assert!(with("extendedTypesEnabled=true").is_ok());
    assert!(with(largest).is_ok() && with(&format!("{largest}extendedTypesEnabled=false")).is_ok());
    let error = with(&format!("{largest}zookeeper.extendedTypesEnabled=true")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "zoo.cfg:9: zookeeper.extendedTypesEnabled=true: the id of a server must be below 255 with it, and \
         there is a server.255"
    );
}

#[test]
fn ensembles_that_tolerate_less_than_it_seems() {
    let of = |servers: &[i32]| {
        let lines: String =
            servers.iter().map(|id| format!("server.{id}=zk{id}:2888:3888\n")).collect();
        let cfg = good(&format!("{BASE}{lines}"));
        cfg.warnings.into_iter().map(|warning| warning.caution).collect::<Vec<_>>()
    };
    assert_eq!(of(&[2]), [Caution::OneParticipant]);
    assert_eq!(of(&[1, 2]), [Caution::TwoParticipants]);
    assert_eq!(of(&[1, 2, 3]), []);
    assert_eq!(of(&[1, 2, 3, 4]), [Caution::EvenParticipants { participants: 4 }]);
    assert_eq!(
        warnings("server.4=zk4:2888:3888"),
        ["zoo.cfg: 4 participants tolerate no more failures than 3 do"]
    );
    assert!(warnings("server.4=zk4:2888:3888:observer").is_empty());
    assert_eq!(
        warnings("server.4=zk4:2888:3888:observer|a:1:2:observer"),
        ["zoo.cfg: server.4 has several addresses, which ZooKeeper servers refuse without \
             multiAddress.enabled=true"]
    );
    let both = "server.4=zk4:2888:3888:observer|a:1:2:observer\nmultiAddress.enabled=true";
    assert!(warnings(both).is_empty());
}

#[test]
fn the_server_line_decides_the_role() {
    assert_eq!(
        warnings("peerType=observer"),
        ["zoo.cfg:9: peerType=observer: server.2 says participant, which counts"]
    );
    let cfg = good(&format!("{BASE}server.1=a:1:2\nserver.2=b:1:2:observer\npeerType=observer"));
    assert_eq!(cfg.own().role, Role::Observer);
    assert_eq!(cfg.warnings.len(), 1, "only that one participant tolerates no failure");
    assert!(cfg.derived().starts_with("server 2 of 1 participants and 1 observer, "));
}

#[test]
fn client_addresses_of_line_and_key_must_agree() {
    let with = |line: &str, keys: &str| {
        let text = format!(
            "initLimit=10\nsyncLimit=5\ndataDir=/data\nserver.1=a:1:2\nserver.3=c:1:2\nserver.2={line}\n{keys}"
        );
        let cfg = parse(&text, &[("/data/myid", "2")]);
        cfg.map(|cfg| cfg.client_address.map(|a| a.to_string())).map_err(|e| e.to_string())
    };
    let address = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(with("b:1:2;2181", ""), address("0.0.0.0:2181"));
    assert_eq!(with("b:1:2;b:2181", "clientPort=2181"), address("b:2181"));
    assert_eq!(with("b:1:2", "clientPort=2181\nclientPortAddress=[::1]"), address("[::1]:2181"));
    // Any port will do.
    assert_eq!(with("b:1:2", "clientPort=0"), address("0.0.0.0:0"));
    assert_eq!(with("b:1:2", "clientPort=0\nclientPortAddress=a"), address("a:0"));
    assert_eq!(with("b:1:2;b:2181", "clientPort=0"), address("b:2181"));
    assert_eq!(with("b:1:2", ""), Ok(None));
    let alone = with("b:1:2", "clientPortAddress=::1").unwrap_err();
    assert_eq!(alone, "zoo.cfg: clientPort is missing: clientPortAddress is set");
    assert_eq!(
        with("b:1:2;b:2181", "clientPort=2182").unwrap_err(),
        "zoo.cfg: server.2 says that clients connect to b:2181, clientPort says 0.0.0.0:2182"
    );
}

#[test]
fn a_dynamic_file() {
    let read = |text: &str, file: &str, reconfig: bool| {
        let cfg = format!("{BASE}dynamicConfigFile={file}\nreconfigEnabled={reconfig}\n");
        parse(&cfg, &[("/data/myid", "2"), (file, text)])
    };
    let file = "/etc/zk/zoo.cfg.dynamic.10000001f";
    let cfg = read(THREE, file, true).unwrap();
    assert_eq!(cfg.membership.version(), 0x1_0000_001f);
    assert_eq!(cfg.dynamic_config_file.as_deref(), Some(Path::new(file)));
    // What a change brought binds without the setting, too, until the operator says otherwise.
    assert_eq!(read(THREE, file, false).unwrap().membership.version(), 0x1_0000_001f);
    let forget = |version: &str| {
        let forget = format!("quorate.membership.forget={version}");
        let cfg = format!("{BASE}dynamicConfigFile={file}\n{forget}\n");
        parse(&cfg, &[("/data/myid", "2"), (file, THREE)])
    };
    let forgotten = forget("10000001f").unwrap();
    assert_eq!((forgotten.membership.version(), forgotten.forgotten), (0, 0x1_0000_001f));
    assert_eq!(forget("10000001e").unwrap().membership.version(), 0x1_0000_001f);
    assert!(forget("x").unwrap_err().to_string().contains("hexadecimal"));
    let given = "/etc/zk/zoo.cfg.dynamic.100000000";
    assert_eq!(read(THREE, given, false).unwrap().membership.version(), 0);
    assert_eq!(read(THREE, "/etc/zk/zoo.cfg.dynamic", true).unwrap().membership.version(), 0);
    for (text, expected) in [
        ("", ": no server.N line"),
        (
            "version=5",
            ":1: version=5: only server, group and weight lines may stand in a dynamic file",
        ),
        ("\ntickTime=5", ":2: tickTime=5: only server, group and weight lines may stand"),
        ("server.1=a:1", ":1: server.1=a:1: \"a:1\" is not host:quorumPort"),
        ("server.1=a:1:2\nserver.2=a:1:3", ":2: server.1 and server.2 both use a:1"),
    ] {
        let message = read(text, file, true).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{file}{expected}")), "{message}");
    }
    let message = refused_line("dynamicConfigFile=/gone");
    assert_eq!(
        message,
        "zoo.cfg:6: server.1=zk1:2888:3888: must stand in the dynamic file /gone, since \
         dynamicConfigFile is set"
    );
    let message = refused(&format!("{BASE}dynamicConfigFile=/gone"));
    assert!(message.starts_with("cannot read /gone: "), "{message}");
}

#[test]
fn groups_and_weights() {
    let cfg = good(&format!("{BASE}{THREE}group.1=1:2\ngroup.2=3\nweight.2=2\nweight.3=0"));
    assert!(cfg.membership.quorum().is_quorum([ServerId(2)]));
    assert_eq!(cfg.warnings, []);
    assert!(cfg.derived().contains("a majority of the weight in a majority of the groups decides"));
}

#[test]
fn files_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zoo.cfg");
    let missing = ZooCfg::read(&path).unwrap_err().to_string();
    assert!(missing.starts_with(&format!("cannot read {}: ", path.display())), "{missing}");
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("myid"), "3\n").unwrap();
    let text = format!("{BASE}{THREE}").replace("/data", data.to_str().unwrap());
    std::fs::write(&path, text).unwrap();
    assert_eq!(ZooCfg::read(&path).unwrap().my_id, ServerId(3));
}

#[test]
fn how_it_is_found_out_who_leads() {
    use quorate_core::config::{Election, Generations, Ties};
    let ms = Duration::from_millis;
    let election = |lines: &str| good(&format!("{BASE}{THREE}{lines}")).election;
    assert_eq!(election(""), Election::Fast);
    assert_eq!(election("quorate.election=fast\n"), Election::Fast);
    let within = |min, max| Election::Generation(Generations::within(ms(min), ms(max)));
    let kind = "quorate.election=generation\n";
    assert_eq!(election(kind), within(1000, 2000));
    let least = "quorate.election.minTimeout=150\n";
    assert_eq!(election(&format!("{kind}{least}")), within(150, 300));
    let longest = "quorate.election.maxTimeout=400\n";
    assert_eq!(election(&format!("{kind}{longest}")), within(200, 400));
    let ways = "quorate.election.preVote=false\nquorate.election.ties=first\n";
    let Election::Generation(rules) = election(&format!("{kind}{least}{longest}{ways}")) else {
        panic!("by generation");
    };
    assert_eq!((rules.timeout_min, rules.timeout_max), (ms(150), ms(400)));
    assert_eq!((rules.pre_vote, rules.ties), (false, Ties::FirstCome));
    for (lines, complaint) in [
        ("quorate.election=raft\n", "fast or generation"),
        ("quorate.election=generation\nquorate.election.ties=any\n", "rank or first"),
        (
            "quorate.election=generation\nquorate.election.minTimeout=150\n\
             quorate.election.maxTimeout=100\n",
            "at least quorate.election.minTimeout, which is 150",
        ),
        ("quorate.election=generation\nquorate.election.minTimeout=1\n", "from 4"),
    ] {
        let error = refused(&format!("{BASE}{THREE}{lines}"));
        assert!(error.contains(complaint), "{lines}: {error}");
    }
}

/// The same file, and what stands in the environment.
fn with_flags(lines: &str, server: &str, all: &str) -> Result<ZooCfg, ConfigError> {
    let flags = JvmFlags::of(|variable| match variable {
        "SERVER_JVMFLAGS" => Some(server.to_owned()),
        "JVMFLAGS" => Some(all.to_owned()),
        _ => None,
    });
    let text = format!("{BASE}{THREE}{lines}");
    ZooCfg::parse_with("zoo.cfg", &text, &flags, |path: &Path| match path.to_str() {
        Some("/data/myid") => Ok("2".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    })
}

/// As ZooKeeper's servers, which make a property of what their file says.
#[test]
fn flags_of_the_jvm_count_where_the_file_says_nothing() {
    let read = |lines: &str, server: &str, all: &str| with_flags(lines, server, all).unwrap();
    let digest = "-Dzookeeper.DigestAuthenticationProvider.superDigest=super:a=b";
    let cfg = read("", &format!("-Xmx1000m {digest}"), "-Dcom.sun.management.jmxremote -Dx -D");
    assert_eq!(cfg.clients.super_digest.as_deref(), Some("super:a=b"));
    assert_eq!(cfg.warnings, []);
    let cfg = read("snapCount=500", "-Dzookeeper.snapCount=600", "");
    assert_eq!((cfg.snap_count, cfg.warnings.len()), (500, 0), "the file counts");
    // The later of two, and that is what all of ZooKeeper's programs are given.
    let cfg = read("", "-Dzookeeper.snapCount=600", "-Dzookeeper.snapCount=700");
    assert_eq!(cfg.snap_count, 700);
    // ZooKeeper does not look at them.
    let cfg = read("", "-Dzookeeper.tickTime=1 -DtickTime=2 -Dzookeeper.server.9=x:1:2", "");
    assert_eq!(cfg.tick_time, Duration::from_millis(2000));
    let said: Vec<_> = cfg.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("SERVER_JVMFLAGS: zookeeper.server.9=x:1:2: "), "{}", said[0]);
    // Wrong as in a file.
    let wrong = with_flags("", "", "-Dzookeeper.snapCount=many").unwrap_err().to_string();
    assert!(wrong.starts_with("JVMFLAGS: zookeeper.snapCount=many: should be"), "{wrong}");
    let unknown = read("", "", "-Dzookeeper.snapCuont=600").warnings[0].to_string();
    assert!(unknown.ends_with("did you mean snapCount?"), "{unknown}");
    let refused = with_flags("", "-Dzookeeper.enforceQuota=true", "").unwrap_err();
    assert!(matches!(refused, ConfigError::NotSupported { .. }), "{refused}");
}

#[test]
fn what_zookeeper_has_as_a_flag_alone_counts_before_the_file() {
    let read = |lines: &str, flags: &str| with_flags(lines, flags, "").unwrap();
    assert_eq!(read("", "-Djute.maxbuffer=0x400000").request_bytes, 4 << 20);
    assert_eq!(read("jute.maxbuffer=2000000", "").request_bytes, 2_000_000, "here it may stand");
    let both = read("jute.maxbuffer=2000000", "-Djute.maxbuffer=4000000");
    assert_eq!(both.request_bytes, 4_000_000);
    assert!(both.warnings[0].to_string().contains("this value counts"), "{:?}", both.warnings);
    // One that is none of ZooKeeper's names.
    assert_eq!(read("", "-Dzookeeper.jute.maxbuffer=4000000").request_bytes, 4_000_000);
    let interval = read("", "-Dznode.container.checkIntervalMs=1000").clients.container_interval;
    assert_eq!(interval, Duration::from_secs(1));
    let read_only = read("", "-Dreadonlymode.enabled=true");
    assert!(read_only.warnings[0].to_string().contains("has no effect here"));
}

#[test]
fn the_settings_of_the_service() {
    let defaults = good(&format!("{BASE}{THREE}")).clients;
    assert_eq!((defaults.max_per_address, defaults.max_connections), (60, 0));
    assert_eq!(defaults.outstanding_max, 1000);
    assert!(!defaults.eager_acl && !defaults.keep_alive && !defaults.skip_acl);
    assert!(defaults.leader_serves);
    assert_eq!((defaults.watches_per_client_max, defaults.watches_max), (1_000_000, 10_000_000));
    assert_eq!((defaults.throttled_requests_max, defaults.drop_stale), (None, false));
    assert_eq!((&*defaults.digest_algorithm, defaults.tree_digests), ("SHA1", true));
    assert_eq!((defaults.containers_per_minute, defaults.container_unused_max), (10_000, None));
    let text = "enableEagerACLCheck=true\nclientTcpKeepAlive=true\nmaxClientCnxns=0\nmaxCnxns=7\n\
                globalOutstandingLimit=9\nrequest_throttle_max_requests=20\n\
                clientPortListenBacklog=9\nrequest_throttle_stall_time=50\nrequest_stale_latency_check=true\n\
                throttled_op_wait_time=5\ndigest.enabled=false\nleaderServes=no\n\
                quorate.maxWatchesPerConnection=0\nquorate.maxWatches=8\n\
                DigestAuthenticationProvider.digestAlg=SHA-512\n\
                znode.container.maxPerMinute=3\nznode.container.maxNeverUsedIntervalMs=5\n";
    let cfg = good(&format!("{BASE}{THREE}{text}"));
    let set = &cfg.clients;
    assert!(set.eager_acl && set.keep_alive && set.drop_stale);
    assert_eq!((set.max_per_address, set.max_connections, set.outstanding_max), (0, 7, 9));
    assert_eq!((set.leader_serves, set.watches_per_client_max, set.watches_max), (false, 0, 8));
    assert_eq!((set.throttled_requests_max, set.tree_digests), (Some(20), false));
    assert_eq!((&*set.digest_algorithm, set.containers_per_minute), ("SHA-512", 3));
    assert_eq!(set.container_unused_max, Some(Duration::from_millis(5)));
    // What is understood and not done yet is said.
    let said = cfg.warnings.iter().filter(|warning| warning.is_notice()).count();
    assert_eq!(said, 2, "{:?}", cfg.warnings);
    let config = ServerConfig::from(cfg);
    assert_eq!((config.max_client_connections, config.max_connections), (0, 7));
    assert!(config.client_keep_alive);
    assert_eq!(config.client_backlog, Some(9));
    for none in ["", "clientPortListenBacklog=-1\n", "clientPortListenBacklog=0\n"] {
        assert_eq!(good(&format!("{BASE}{THREE}{none}")).clients.backlog, None, "{none}");
    }
    let crossed = refused_line("minSessionTimeout=5000\nmaxSessionTimeout=4000");
    assert!(crossed.contains("maxSessionTimeout=4000: should be at least minSess"), "{crossed}");
    for wrong in [
        "request_throttle_max_requests=many",
        "request_stale_connection_check=maybe",
        "maxClientCnxns=-1",
        "clientPortListenBacklog=-2",
        "enableEagerACLCheck=yes",
        "DigestAuthenticationProvider.digestAlg=MD5",
    ] {
        assert!(refused_line(wrong).starts_with(&format!("zoo.cfg:9: {wrong}: should be")));
    }
}

/// They stand in logs.
#[test]
fn no_secret_stands_in_a_warning_or_a_refusal() {
    let hidden = [
        "DigestAuthenticationProvider.superDigest=super:hunter2\n\
         DigestAuthenticationProvider.superDigest=super:hunter2",
        "DigestAuthenticationProvider.superDigst=super:hunter2\nsuperPasswort=hunter2",
        "ssl.keyStore.password=hunter2\nssl.trustStore.passwordPath=hunter2",
        "SASLAuthenticationProvider.superPassword=hunter2",
    ];
    for lines in hidden {
        let said = warnings(lines).join("\n");
        assert!(said.contains("=***") && !said.contains("hunter2"), "{said}");
    }
    let flags = with_flags("", "-Dzookeeper.ssl.keyStore.password=hunter2", "").unwrap();
    assert!(!flags.warnings[0].to_string().contains("hunter2"));
    let plain = refused_line("DigestAuthenticationProvider.digestAlg=MD5");
    assert!(plain.contains("MD5"), "{plain}");
}

#[test]
fn a_survey_names_every_line_that_refuses_the_file_and_reads_the_rest() {
    let lines = "localSessionsEnabled=true\nquorum.auth.enableSasl=true\nenforceQuota=true\nportUnification=false\n\
                 authProvider.1=a.b.C\nauthProvider.sasl=d.E\nsnapCount=7777\nnosuchkey=1\n\
                 SASLAuthenticationProvider.superPassword=letmein\n";
    let text = format!("{BASE}{THREE}{lines}");
    let myid = |_: &Path| Ok("2".to_owned());
    let survey = Survey::of("zoo.cfg", &text, &JvmFlags::default(), myid).unwrap();
    let keys: Vec<_> = survey
        .not_supported
        .iter()
        .map(|(setting, _)| (setting.at.line, setting.key.as_str()))
        .collect();
    let expected = [
        (9, "localSessionsEnabled"),
        (10, "quorum.auth.enableSasl"),
        (11, "enforceQuota"),
        (13, "authProvider.1"),
        (14, "authProvider.sasl"),
    ];
    assert_eq!(keys, expected);
    let rest = survey.rest.unwrap();
    assert_eq!(rest.snap_count, 7777);
    assert_eq!(rest.warnings.len(), 2, "{:?}", rest.warnings);
    assert_eq!(survey.settings["localSessionsEnabled"].at.line, 9);
    assert_eq!(survey.settings["SASLAuthenticationProvider.superPassword"].shown(), "***");
    // What is wrong beside those lines is still wrong.
    let text = format!("{BASE}{THREE}enforceQuota=true\nportUnification=perhaps\n");
    let survey = Survey::of("zoo.cfg", &text, &JvmFlags::default(), myid).unwrap();
    assert_eq!(survey.not_supported.len(), 1);
    assert!(survey.rest.unwrap_err().to_string().contains("portUnification=perhaps"));
}

/// A server writes into its file when the membership changes: that is no change of its operator's.
#[test]
fn what_a_newer_file_changes_counts_at_once_or_at_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("myid"), "2\n").unwrap();
    let path = dir.path().join("zoo.cfg");
    let read = |text: &str| {
        std::fs::write(&path, text.replace("/data", dir.path().to_str().unwrap())).unwrap();
        Loaded::read(&path, &JvmFlags::default()).unwrap()
    };
    let names = |changes: &[(String, Option<String>)]| {
        changes.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>()
    };
    let mut running = read(&format!("{BASE}{THREE}maxCnxns=5\nquorate.log.format=json"));
    assert_eq!(running.cfg.log.format, LogFormat::Json);
    let newer = read(&format!(
        "{BASE}{THREE}zookeeper.maxClientCnxns=7\nsnapCount=99\nserver.4=zk4:1:2\nquorate.made.up=1\n\
         DigestAuthenticationProvider.superDigest=super:hunter2"
    ));
    let changes = running.changes(&newer);
    assert_eq!(names(&changes.at_once), ["maxClientCnxns", "maxCnxns"]);
    assert_eq!(changes.at_once[1].1, None, "its line is gone");
    let later = ["DigestAuthenticationProvider.superDigest", "quorate.log.format", "snapCount"];
    assert_eq!(names(&changes.at_restart), [&later[..], &["server.N"]].concat());
    assert!(!format!("{changes:?}").contains("hunter2"), "no secret is shown");
    running.adopt(&newer);
    assert_eq!(running.cfg.clients.max_per_address, 7);
    assert_eq!(running.cfg.clients.max_connections, 0);
    let left = running.changes(&newer);
    assert!(left.at_once.is_empty() && left.at_restart == changes.at_restart);

    let reconfig = "reconfigEnabled=true\n";
    let running = read(&format!("{BASE}{THREE}{reconfig}"));
    let written = BASE.replace("clientPort=2181\n", "");
    std::fs::write(dir.path().join("dynamic"), format!("{THREE}server.4=zk4:1:2;2181")).unwrap();
    let newer = read(&format!("{written}{reconfig}dynamicConfigFile=/data/dynamic"));
    assert!(running.changes(&newer).is_empty(), "{:?}", running.changes(&newer));
}

#[cfg(feature = "tls")]
mod tls {
    use std::time::Duration;

    use quorate_tls::{
        ClientAuth, CloseOnReload, IdentityMode, Password, RevokedFile, StoreKind, StorePassword,
        Suite, Versions,
    };

    use super::*;

    const MYID: &[(&str, &str)] = &[("/data/myid", "2")];
    const STORES: &str = "ssl.quorum.keyStore.location=/etc/zk/own.jks\nssl.quorum.keyStore.passwordPath=/etc/zk/pw\n\
                          ssl.quorum.trustStore.location=/etc/zk/trust\nssl.quorum.trustStore.type=pkcs12\n\
                          ssl.quorum.trustStore.password=letmein\n";

    fn with(lines: &str) -> ZooCfg {
        parse(&format!("{BASE}{THREE}{STORES}{lines}"), MYID).unwrap()
    }

    #[test]
    fn what_is_said_of_tls_between_servers_is_taken_as_zookeeper_means_it() {
        let settings = with("sslQuorum=true\n").tls.unwrap();
        assert!(settings.dials_tls && !settings.accepts_plain && settings.verify_names);
        assert_eq!(settings.versions, Versions { tls12: true, tls13: true });
        assert_eq!(
            (settings.client_auth, settings.identity),
            (ClientAuth::Need, IdentityMode::Member)
        );
        assert_eq!(settings.key_store.path.to_str(), Some("/etc/zk/own.jks"));
        assert_eq!(settings.key_store.password, Some(StorePassword::File("/etc/zk/pw".into())));
        assert_eq!(settings.trust_store.kind, Some(StoreKind::Pkcs12));
        let password = Some(StorePassword::Inline(Password::new("letmein")));
        assert_eq!(settings.trust_store.password, password);
        assert!(!format!("{settings:?}").contains("letmein"));

        let settings = with(
            "zookeeper.portUnification=true\nssl.quorum.protocol=TLSv1.2\nssl.quorum.clientAuth=WANT\n\
             ssl.quorum.hostnameVerification=false\nssl.quorum.handshakeDetectionTimeoutMillis=700\n\
             ssl.quorum.ciphersuites=TLS_RSA_OLD:TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\n",
        );
        let told: Vec<_> = settings.warnings.iter().map(ToString::to_string).collect();
        for part in [
            "portUnification=true: any host",
            "clientAuth=WANT: any host",
            "hostnameVerification=false: any",
        ] {
            assert!(told.iter().any(|told| told.contains(part)), "{part}: {told:?}");
        }
        let settings = settings.tls.unwrap();
        assert!(!settings.dials_tls && settings.accepts_plain && !settings.verify_names);
        assert_eq!(settings.versions, Versions { tls12: true, tls13: false });
        assert_eq!(
            (settings.client_auth, settings.identity),
            (ClientAuth::Want, IdentityMode::Off)
        );
        assert_eq!(settings.handshake_time, Duration::from_millis(700));
        assert_eq!(settings.suites, [Suite::EcdheRsaAes128]);
        let id = "sslQuorum=true\nquorate.ssl.identity=id\nssl.quorum.enabledProtocols=TLSv1.3,TLSv1.1\n";
        let cfg = with(id);
        let settings = cfg.tls.unwrap();
        assert_eq!(settings.identity, IdentityMode::Id);
        assert_eq!(settings.versions, Versions { tls12: false, tls13: true });
        assert_eq!(cfg.warnings.len(), 1, "{:?}", cfg.warnings);

        let lists = with(
            "sslQuorum=true\nquorate.ssl.crlFile=/lists.pem\nquorate.ssl.crlStrict=true\n\
             quorate.ssl.closeExpired=true\nquorate.ssl.closeOnReload=expired\nssl.quorum.crl=false\n",
        );
        assert_eq!(lists.warnings, []);
        let settings = lists.tls.unwrap();
        let path = "/lists.pem".into();
        assert_eq!(settings.revoked, Some(RevokedFile { path, strict: true }));
        assert!(settings.close_expired);
        assert_eq!(settings.close_on_reload, CloseOnReload::Expired);

        assert_eq!(with("").tls, None);
        assert_eq!(
            with("sslQuorum=false\n").warnings.len(),
            5,
            "each key of the stores is told to be of no use"
        );
    }

    #[test]
    fn what_cannot_be_meant_refuses_the_file() {
        for (line, expected) in [
            ("ssl.quorum.keyStore.type=BCFKS", "should be JKS, PKCS12 or PEM"),
            ("ssl.quorum.protocol=SSLv3", "should be TLSv1.2 or TLSv1.3"),
            (
                "ssl.quorum.enabledProtocols=TLSv1.1",
                "should be a list with TLSv1.2, TLSv1.3 or both",
            ),
            ("ssl.quorum.ciphersuites=TLS_NULL", "should be some of TLS_AES_128_GCM_SHA256"),
            ("ssl.quorum.clientAuth=perhaps", "should be none, want or need"),
            ("quorate.ssl.closeOnReload=all", "should be none, expired or untrusted"),
            ("quorate.ssl.closeExpired=often", "should be true or false"),
            ("quorate.ssl.crlFile=", "should be a path"),
            ("quorate.ssl.identity=any", "should be off, warn, member or id"),
        ] {
            let error =
                parse(&format!("{BASE}{THREE}{STORES}sslQuorum=true\n{line}\n"), MYID).unwrap_err();
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
        let missing = parse(
            &format!("{BASE}{THREE}portUnification=true\nssl.quorum.keyStore.location=/k.pem\n"),
            MYID,
        );
        let missing = missing.unwrap_err().to_string();
        assert!(missing.contains("ssl.quorum.trustStore.location is missing"), "{missing}");
    }
}

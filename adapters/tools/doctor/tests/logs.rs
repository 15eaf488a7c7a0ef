//! Lines of logs: those of Java as its servers write them.

use quorate_core::id::ServerId;
use quorate_doctor::Level::{Error, Notice, Warning};
use quorate_doctor::{Facts, Log, Silence, diagnose};

use crate::ensemble::{follower, leader, silent, twice, well};
use crate::planted::{Plant, plant};

/// A log of server 1 with these lines.
pub(crate) fn of(lines: &str) -> Facts {
    let log = Log::of("1.log", Some(ServerId(1)), lines.as_bytes());
    Facts { logs: vec![log], ..well() }
}

fn repeated(lines: &str, times: usize) -> Facts {
    of(&lines.repeat(times))
}

fn elected(minutes: &[i64]) -> Facts {
    let elected = minutes.iter().zip(1..).map(|(at, id)| (at * 60_000_000, id)).collect();
    Facts { elected, ..well() }
}

const DIAL: &str = "2026-11-26 13:19:45,303 [myid:1] - WARN  [WorkerSender[myid=1]:QuorumCnxManager@401] - Cannot open channel to 2 at election address zk2/10.0.0.2:3888\n";

pub(crate) const PLANTS: &[Plant] = &[
    plant(
        "live.port-closed",
        Warning,
        "server 2, 1.log:5",
        "could not reach server 2: refused (3 times)",
        || repeated(&format!("{DIAL}java.net.ConnectException: Connection refused\n"), 3),
    ),
    plant(
        "live.port-closed",
        Warning,
        "server 2, 1.log:5",
        "could not reach server 2 in time",
        || repeated(&format!("{DIAL}java.net.SocketTimeoutException: connect timed out\n"), 3),
    ),
    plant("live.port-closed", Warning, "server 2, 1.log:5", "no route to server 2", || {
        repeated(&format!("{DIAL}java.net.NoRouteToHostException: No route to host\n"), 3)
    }),
    plant("cfg.host-unresolved", Error, "server 2, 1.log:1", "had no address", || {
        of(&format!("{DIAL}java.net.UnknownHostException: zk2\n"))
    }),
    plant("cfg.myid-twice", Error, "server 1, 1.log:1", "a second server", || {
        of(
            "WARN We got a connection request from a server with our own ID. This should be either a configuration error, or a bug.",
        )
    }),
    plant("cfg.myid-not-listed", Error, "1.log:1", "no server line", || {
        of("java.lang.RuntimeException: My id 4 not in the peer list")
    }),
    plant(
        "live.one-way",
        Warning,
        "server 3, 1.log:5",
        "waits for server 3 to dial it (5 times)",
        || {
            repeated(
                "INFO Have smaller server identifier, so dropping the connection: (myId:1 --> sid:3)\n",
                5,
            )
        },
    ),
    plant("live.client-protocol", Notice, "server 1", "HTTP", || {
        of(
            "WARN Len error. A message from /10.0.0.9:4711 with advertised length of 1195725856 is either a malformed message or too large to process (length is greater than jute.maxbuffer=1048575)",
        )
    }),
    plant("live.client-protocol", Notice, "server 1", "TLS", || {
        of(
            "WARN Len error. A message from /10.0.0.9:4711 with advertised length of 369295617 is either a malformed message or too large to process (length is greater than jute.maxbuffer=1048575)",
        )
    }),
    plant("cfg.timing-differs", Warning, "server 1", "5000000 bytes", || {
        of(
            "WARN Len error. A message from /10.0.0.9:4711 with advertised length of 5000000 is either a malformed message or too large to process (length is greater than jute.maxbuffer=1048575)",
        )
    }),
    plant("disk.history", Error, "1.log", "a log without a snapshot", || {
        of(
            "java.io.IOException: No snapshot found, but there are log entries. Something is broken!",
        )
    }),
    plant("disk.history", Error, "1.log", "cannot be loaded", || {
        of("ERROR Unable to load database on disk")
    }),
    plant("live.java-bug", Notice, "1.log", "it ended itself", || {
        of(
            "ERROR [ZKDatabase@340] - Committed proposal cached out of order: 0x600002062 is not the next proposal of 0x600002060",
        )
    }),
    plant("disk.epochs", Error, "1.log", "currentEpoch is older", || {
        of("java.io.IOException: The current epoch, 1, is older than the last zxid, 8589934593")
    }),
    plant("disk.epochs", Error, "1.log", "acceptedEpoch is less", || {
        of("java.io.IOException: The accepted epoch, 1 is less than the current epoch, 2")
    }),
    plant("disk.fsync", Error, "1.log:1", "took 1801 ms", || {
        of(
            "WARN fsync-ing the write ahead log in SyncThread:1 took 1801ms which will adversely effect operation latency.File size is 67108880 bytes. See the ZooKeeper troubleshooting guide",
        )
    }),
    plant("disk.fsync", Warning, "1.log:1", "took 180 ms", || {
        of(
            "WARN fsync-ing the write ahead log in SyncThread:1 took 180ms which will adversely effect operation latency.File size is 67108880 bytes. See the ZooKeeper troubleshooting guide",
        )
    }),
    plant("host.pause", Warning, "1.log:1", "stood still for 2030 ms", || {
        of(
            "WARN Detected pause in JVM or host machine (eg GC): pause of approximately 2030 ms, total pause: info level: 0, warn level: 2",
        )
    }),
    plant("live.connections", Warning, "1.log:1", "turned away", || {
        of("WARN Too many connections from /10.0.0.9 - max is 60")
    }),
    plant(
        "live.flapping",
        Error,
        "the ensemble",
        "3 elections within 10 minutes: of server 2, then of 3, then of 4",
        || elected(&[0, 100, 103, 109]),
    ),
    plant(
        "live.flapping",
        Warning,
        "the ensemble",
        "2 elections within 10 minutes: of server 2, then of 3",
        || elected(&[0, 100, 103]),
    ),
    plant(
        "live.flapping",
        Notice,
        "server 1, 1.log:3",
        "a voter had changed its mind (3 times)",
        || repeated("WARN Quit leading due to voter changed mind.\n", 3),
    ),
    plant("live.round-grows", Notice, "server 1, 1.log:1", "waited 51200 ms", || {
        of("INFO Notification time out: 51200 ms")
    }),
    plant("live.no-leader", Notice, "server 1, 1.log:1", "no leader for half a minute", || {
        of(
            "2026-11-26T13:20:01.065643Z  WARN quorate_driver::drive::publish: leader election failed so far: fewer than a quorum of voters can be heard",
        )
    }),
    plant("live.tls-mismatch", Warning, "server 1, 1.log:1", "are 1586111497985392640", || {
        of("WARN Connection broken for id 1586111497985392640, my id = 1")
    }),
    plant("live.tls-mismatch", Warning, "server 1", "speaks TLS", || {
        of("ERROR Received packet with invalid packet: -50331648 bytes")
    }),
    plant("live.tls-mismatch", Warning, "server 1", "without TLS", || {
        of("ERROR Blocked insecure connection attempt from /10.0.0.2:4711")
    }),
    plant("live.tls-mismatch", Warning, "server 1", "does not speak TLS", || {
        of(
            "javax.net.ssl.SSLHandshakeException: Remote host terminated: SSL peer shut down incorrectly",
        )
    }),
    plant("live.tls-name", Warning, "server 1", "not made for the host", || {
        of("ERROR Failed to verify both host address and host name")
    }),
    plant("live.tls-chain", Warning, "server 1", "no authority that it trusts", || {
        of(
            "sun.security.validator.ValidatorException: PKIX path building failed: unable to find valid certification path",
        )
    }),
    plant("live.tls-expired", Warning, "server 1", "has expired", || {
        of("java.security.cert.CertificateExpiredException: NotAfter: Thu Nov 26 13:19:45 UTC 2026")
    }),
    plant("live.sasl-fips", Warning, "server 1", "not used", || {
        of("INFO QuorumLearner will not use DIGEST-MD5 as SASL mechanism")
    }),
    plant("live.sasl-fips", Warning, "server 1", "no way to say", || {
        of(
            "Cannot invoke \"javax.security.sasl.SaslClient.hasInitialResponse()\" because \"sc\" is null",
        )
    }),
];

#[test]
fn what_a_server_shows_itself_is_not_told_once_more_from_a_log() {
    let log = Log::of(
        "2.log",
        None,
        format!("{DIAL}java.net.ConnectException: Connection refused\n").repeat(3).as_bytes(),
    );
    let members = [follower(1), silent(2, Silence::Refused), leader(3)];
    let found = diagnose(&Facts { logs: vec![log], ..twice(&members) });
    let closed: Vec<_> =
        found.iter().filter(|finding| finding.rule == "live.port-closed").collect();
    let [one] = closed.as_slice() else { panic!("{closed:#?}") };
    assert_eq!((one.level, one.evidence.len()), (Error, 2));
}

#[test]
fn what_a_log_says_of_a_server_that_it_hears_later_is_over() {
    let dials = format!("{DIAL}java.net.ConnectException: Connection refused\n").repeat(9);
    for heard in [
        "INFO Notification: my state:LOOKING; n.sid:2, n.state:LOOKING, n.leader:2, n.round:0x1",
        "INFO Notification: 1 (message format version), 2 (n.leader), 0x0 (n.zxid), 0x1 (n.round), LOOKING (n.state), 2 (n.sid)",
    ] {
        let found = diagnose(&of(&format!("{dials}{heard}\n")));
        assert!(found.iter().all(|finding| finding.level > Warning), "{found:#?}");
    }
}

#[test]
fn any_bytes_are_read_as_a_log() {
    let mut bytes = vec![0xff, 0, b'\n', 0x80];
    bytes.extend(DIAL.as_bytes());
    bytes.extend(std::iter::repeat_n(b'x', 1 << 20));
    bytes.extend(
        b"\nfsync-ing the write ahead log in SyncThread:1 took 99999999999999999999ms\nn.sid:",
    );
    let log = Log::of("1.log", None, &bytes);
    assert_eq!(log.lines, 5);
    assert!(log.found.is_empty(), "{:?}", log.found);
}

#[test]
fn what_others_wrote_is_told_without_its_control_characters_and_shortened() {
    let line = format!("Too many connections from \x1b[31m{}\r\n", "y".repeat(9999));
    let facts = of(&line);
    let found = diagnose(&facts);
    let shown =
        &found.iter().find(|finding| finding.rule == "live.connections").unwrap().evidence[0];
    assert!(!shown.value.contains('\x1b') && shown.value.chars().count() < 300, "{}", shown.value);
}

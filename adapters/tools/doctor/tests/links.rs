//! Faults of links between members.

use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_doctor::Level::{Error, Notice, Warning};
use quorate_doctor::{Facts, Link, Member, Port, Silence, Told, Wearing, Words, diagnose};

use crate::ensemble::{follower, leader, looking, silent, twice, well, words};
use crate::planted::{Plant, plant};

/// What an admin server said.
fn telling(mut member: Member, unreached: &[i64]) -> Member {
    let unreached = unreached.iter().map(|id| (ServerId(*id), "timed out".to_owned()));
    let told = Told { unreached: unreached.collect(), ..Told::default() };
    let address = HostPort { host: "zk1".to_owned(), port: 8080 };
    member.http = Some(Port::new(address, Ok(told)));
    member
}

/// A link that has been up for so many seconds.
fn wearing(peer: i64, records: u64, seconds: u64) -> Wearing {
    let (peer, age) = (ServerId(peer), Duration::from_secs(seconds));
    Wearing { peer, plane: "quorum", records, records_max: 1 << 24, age }
}

/// Members that tell of such links.
fn worn(links: &[(i64, Wearing)]) -> Facts {
    let mut facts = well();
    for member in &mut facts.members {
        let own = links.iter().filter(|(id, _)| ServerId(*id) == member.id);
        let wearing = own.map(|(_, link)| link.clone()).collect();
        let address = HostPort { host: format!("zk{}", member.id), port: 8080 };
        member.http = Some(Port::new(address, Ok(Told { wearing, ..Told::default() })));
    }
    facts
}

fn link() -> Link {
    Link {
        server: ServerId(3),
        local: "10.0.0.1:40000".parse().unwrap(),
        remote: "10.0.0.3:2888".parse().unwrap(),
        round_trip_ms: Some(1.5),
        segments: 2_000,
        repeated: 1,
        unacknowledged: 0,
        backoff: 0,
        acknowledged_bytes: 7_000,
        received_ms_ago: Some(300),
        segment_bytes: Some(1448),
    }
}

fn with(link: &Link) -> Facts {
    let (links, links_before) = (vec![link.clone()], vec![link.clone()]);
    Facts { links, links_before, ..twice(&well().members) }
}

fn stuck() -> Link {
    Link { unacknowledged: 3, backoff: 4, ..link() }
}

pub(crate) const PLANTS: &[Plant] = &[
    plant(
        "live.one-way",
        Error,
        "server 1",
        "it cannot dial server 2, whose election port",
        || twice(&[telling(looking(1, 1), &[2]), follower(2), leader(3)]),
    ),
    plant("live.one-way", Error, "server 2", "does not dial back", || Facts {
        dialled_back: vec![(ServerId(1), true), (ServerId(2), false)],
        ..well()
    }),
    plant(
        "live.tls-records",
        Warning,
        "server 3",
        "the keys of its quorum link with server 1 last 40 min",
        || worn(&[(3, wearing(1, 1 << 20, 150))]),
    ),
    plant(
        "net.mtu",
        Warning,
        "server 3",
        "a piece of up to 1448 bytes is sent to it again",
        || with(&stuck()),
    ),
    plant("net.loss", Warning, "server 3", "5 % of what was sent", || {
        with(&Link { repeated: 100, ..link() })
    }),
    plant("net.rtt", Notice, "server 3", "takes 201 ms; tickTime is 2000 ms", || {
        with(&Link { round_trip_ms: Some(201.0), ..link() })
    }),
];

fn rules(facts: &Facts) -> Vec<&'static str> {
    let found = diagnose(facts).into_iter().map(|finding| finding.rule);
    found.filter(|rule| rule.starts_with("net.") || *rule == "live.one-way").collect()
}

#[test]
fn a_link_that_wears_slowly_or_is_young_is_no_fault_and_one_of_which_both_ends_tell_is_one() {
    let told = |links: &[(i64, Wearing)]| {
        let found = diagnose(&worn(links)).into_iter().filter(|f| f.rule == "live.tls-records");
        found.map(|found| found.subject.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(told(&[(3, wearing(1, 1 << 20, 226))]), [""; 0], "more than an hour");
    assert_eq!(told(&[(3, wearing(1, 1 << 20, 59))]), [""; 0], "a synchronisation, perhaps");
    assert_eq!(told(&[(3, wearing(1, 0, 226)), (3, wearing(2, 0, 0))]), [""; 0]);
    let both = [(3, wearing(1, 1 << 20, 100)), (1, wearing(3, 1 << 20, 101))];
    assert_eq!(told(&both), ["server 1"]);
    assert_eq!(told(&both[..1]), ["server 3"], "a ZooKeeper does not tell");
}

#[test]
fn links_as_they_are_every_day_are_no_fault() {
    let moved = Link { acknowledged_bytes: 6_000, ..stuck() };
    // Little was sent, so that one loss is many; a piece that was sent again, and arrived; a member that says nothing either.
    for (now, before) in [
        (Link { segments: 900, repeated: 100, ..link() }, link()),
        (stuck(), link()),
        (stuck(), moved),
        (Link { received_ms_ago: Some(9_000), ..stuck() }, stuck()),
        (Link { backoff: 0, ..stuck() }, Link { backoff: 0, ..stuck() }),
    ] {
        let facts = Facts { links: vec![now], links_before: vec![before], ..with(&link()) };
        assert_eq!(rules(&facts), [""; 0]);
    }
    assert_eq!(rules(&Facts { dialled_back: vec![(ServerId(1), true)], ..well() }), [""; 0]);
}

#[test]
fn who_cannot_be_dialled_by_anyone_or_only_once_is_not_one_way() {
    let cannot = || telling(follower(1), &[2]);
    let down = twice(&[cannot(), silent(2, Silence::Refused), leader(3)]);
    assert_eq!(rules(&down), [""; 0]);
    let once = Facts {
        before: vec![follower(1), follower(2), leader(3)],
        ..twice(&[cannot(), follower(2), leader(3)])
    };
    assert_eq!(rules(&once), [""; 0]);
}

/// As ZooKeeper 3.9.5 answers.
#[test]
fn commands_of_an_admin_server_say_what_four_letter_words_do() {
    let monitor = br#"{ "version" : "3.9.5-293c, built on 2026-02-11 20:18 UTC", "server_state" : "follower",
        "max_follower_sync_time" : 12000, "approximate_data_size" : 44, "command" : "monitor", "error" : null }"#;
    let stats = br#"{ "version" : "3.9.5-293c, built on 2026-02-11 20:18 UTC", "read_only" : false,
        "server_stats" : { "server_state" : "follower", "outstanding_requests" : 12, "last_processed_zxid" : 4294967312 },
        "command" : "server_stats", "error" : null }"#;
    let told = Words::of_commands(monitor, stats);
    assert_eq!(told.mode.as_deref(), Some("follower"));
    assert_eq!((told.zxid.map(|zxid| zxid.0), told.outstanding), (Some(0x1_0000_0010), Some(12)));
    assert_eq!(told.number("max_follower_sync_time"), Some(12_000.0));
    assert_eq!(
        told.number_of_version(),
        words(&crate::ensemble::srvr("", 0), "").number_of_version()
    );
    let not = br#"{ "command" : "server_stats", "error" : "This ZooKeeper instance is not currently serving requests" }"#;
    // Where it looks for a leader, its `monitor` is a page of Java's.
    let looking = Words::of_commands(b"<html>a stack trace", not);
    assert!(looking.is_not_serving && looking.strange.is_none() && looking.version.is_none());
    let strange = Words::of_commands(b"<html>", b"\xff\xfe[1");
    assert!(strange.strange.is_some());

    // What a client port does not say, HTTP does.
    let closed = "srvr is not executed because it is not in the whitelist.\n";
    let mut member = telling(follower(1), &[]);
    member.client.as_mut().unwrap().answer = Ok(words(closed, closed));
    member.http.as_mut().unwrap().answer = Ok(Told { words: told.clone(), ..Told::default() });
    assert_eq!(member.words(), Some(&told));
    assert_eq!(member.client_words().unwrap().refused, ["srvr", "mntr"]);
    let open = follower(1);
    member.client = open.client.clone();
    assert_eq!(member.words(), open.client_words());
}

//! The report, as text and as JSON.

use quorate_doctor::{Level, Looks, Report, Silence, Subject, diagnose, text};

use crate::ensemble::{follower, leader, looking, silent, twice};

fn report() -> Report {
    let facts = twice(&[silent(1, Silence::Refused), follower(2), leader(3)]);
    let mut looks = Looks::default();
    looks.done("election port", Some(leader(3).id), "zk3:3888".to_owned());
    looks.failed(
        "client port",
        Some(looking(1, 1).id),
        "zk1:2181".to_owned(),
        "connection refused".to_owned(),
    );
    Report::new("2026-11-23T08:00:00.000Z".to_owned(), looks, diagnose(&facts), (2, 3))
}

#[test]
fn text_has_the_worst_first_what_was_not_looked_at_and_a_last_line() {
    let shown = text(&report(), &|_, text| text.to_owned());
    assert_eq!(
        shown,
        "error    live.port-closed  server 1\n  \
           its election port zk1:3888 is closed: nothing listens there\n  \
           seen  zk1:3888: connection refused\n  \
           why   this member takes no part in elections; one more that fails may end the service\n  \
           do    start the server; if it runs, correct its election port\n\n\
         notice   live.java-bug  the ensemble\n  \
           servers 2, 3 run ZooKeeper 3.9.5, which stops when the counter of transactions is full, may have a hole after \
         its disk failed, and may keep an ephemeral node of a session that is gone; 1 more known fault(s)\n  \
           seen  ZOOKEEPER-4882, ZOOKEEPER-4883, ZOOKEEPER-4837: notice: stops when the counter of transactions is full, \
         may have a hole after its disk failed, and may keep an ephemeral node of a session that is gone (fixed in no release)\n  \
           seen  ZOOKEEPER-3598, ZOOKEEPER-4925: notice: may end, with exit code 0, when it loses its leader under load \
         (fixed in no release)\n  \
           why   the fault has happened to others, and a newer release does not have it\n  \
           do    no release is without it yet: let a supervisor start it again whatever its exit code\n\n\
         not looked at\n  \
           client port of server 1 (zk1:2181): connection refused\n\n\
         1 error, 0 warnings, 1 notice; looked at 2 of 3 members\n"
    );
}

#[test]
fn what_is_so_of_several_servers_is_told_once_and_counted_as_it_is_told() {
    let mut report = report();
    let mut of_another = report.findings[0].clone();
    of_another.subject = Subject::host("zk2");
    report.findings.insert(1, of_another);
    let shown = text(&report, &|_, text| text.to_owned());
    assert!(shown.starts_with("error    live.port-closed  server 1; zk2\n"), "{shown}");
    assert!(
        shown.ends_with("1 error, 0 warnings, 1 notice; looked at 2 of 3 members\n"),
        "{shown}"
    );
    assert_eq!(shown.matches("live.port-closed").count(), 1, "{shown}");
}

#[test]
fn json_is_one_object_with_the_fields_that_scripts_read() {
    let report = report();
    let json = serde_json::to_value(&report).unwrap();
    let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = ["version", "at", "looked_at", "not_looked_at", "findings", "summary"];
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(json["not_looked_at"][0]["because"], "connection refused");
    assert_eq!(json["summary"]["error"], 1);
    let finding = &json["findings"][0];
    assert_eq!(finding["subject"], serde_json::json!({ "server": 1 }));
    assert_eq!(finding["do"][0], "start the server; if it runs, correct its election port");
    for field in
        ["rule", "level", "subject", "finding", "evidence", "why", "do", "sources", "explains"]
    {
        assert!(finding.get(field).is_some(), "{field}");
    }
    assert!(report.has(Level::Error) && report.has(Level::Notice));
}

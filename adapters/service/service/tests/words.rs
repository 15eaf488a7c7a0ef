//! What operators ask in four letters, beside what is shown of it with the clients.

use std::time::Duration;

use quorate_application::clients::{ClientId, Event, Frame, Output};
use quorate_service::wire::Request;

use crate::clients::{create_with, exists, get, set};
use crate::stand::Stand;

/// In the order of ZooKeeper's, whose tools take them apart.
#[test]
fn cons_tells_how_long_answers_took_and_crst_sets_that_back() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    for (xid, millis) in [(1, 40), (2, 5), (3, 17)] {
        stand.request(client, &[(xid, set("/", -1))]);
        stand.now = stand.now + Duration::from_millis(millis);
        stand.settle();
    }
    let mut cons = |word: &[u8; 4]| {
        let client = stand.connect();
        stand.send(client, vec![Frame::Word(*word)]);
        stand.text(client)
    };
    let told = cons(b"cons");
    assert!(told.contains(",lop=SETD,") && told.contains(",lcxid=0x3,"), "{told}");
    assert!(told.contains(",lresp=62,llat=17,minlat=5,avglat=20,maxlat=40)"), "{told}");
    cons(b"crst");
    let told = cons(b"cons");
    assert!(told.contains("recved=0,sent=0") && told.contains(",lop=NA,est=17"), "{told}");
    assert!(told.contains(",lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)"), "{told}");
}

/// What the last step has told a client.
fn told_now(stand: &Stand, asking: ClientId) -> Vec<u8> {
    let to_it = stand.last.iter().filter_map(|output| match output {
        Output::Send { client, bytes } => Some(&bytes[..]).filter(|_| *client == asking),
        Output::Close { .. }
        | Output::Pause(_)
        | Output::Resume(_)
        | Output::Submit { .. }
        | Output::Sync(_)
        | Output::Touch(_)
        | Output::Revalidate(_)
        | Output::Revalidated { .. }
        | Output::Vacated
        | Output::Remember(_)
        | Output::Audit(_)
        | Output::Halt(_) => None,
    });
    to_it.collect::<Vec<_>>().concat()
}

fn is_closed_now(stand: &Stand) -> bool {
    stand.last.iter().any(|output| matches!(output, Output::Close { .. }))
}

/// What a client is told from its word on, portion by portion, and in how many; `between` happens behind each.
fn told_in_portions(
    stand: &mut Stand,
    word: &[u8; 4],
    mut between: impl FnMut(&mut Stand),
) -> (String, usize) {
    let asking = stand.connect();
    stand.send(asking, vec![Frame::Word(*word)]);
    let (mut text, mut portions) = (Vec::new(), 0);
    loop {
        portions += 1;
        let portion = told_now(stand, asking);
        let lines = portion.iter().filter(|byte| **byte == b'\n').count();
        assert!(lines < 600, "a step tells {lines} lines");
        text.extend_from_slice(&portion);
        if is_closed_now(stand) {
            return (String::from_utf8(text).unwrap(), portions);
        }
        between(stand);
        assert!(stand.service_deadline().unwrap() <= stand.now, "it goes on at once");
        stand.tell(Event::Tick);
    }
}

/// With 2,000 watches of one client, 1,000 sessions at one path, and 1,000 nodes of a session.
fn crowded(leads: bool) -> (Stand, ClientId, i64) {
    let mut stand = Stand::with(leads, |options| options.session_timeout_max = Some(HOUR));
    let clients: Vec<_> = (0..1000)
        .map(|_| {
            let (client, session) = stand.client();
            stand.call(client, get("/", true)).unwrap();
            (client, session)
        })
        .collect();
    let (client, session) = clients[500];
    for n in 0..1000 {
        stand.call(client, create_with(&format!("/e{n:04}"), 1)).unwrap();
        stand.call(client, get(&format!("/e{n:04}"), true)).unwrap();
        stand.call(client, exists(&format!("/none{n:04}"), true)).unwrap_err();
    }
    (stand, client, session)
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn long_answers_are_told_in_portions_and_others_are_served_between_them() {
    for leads in [true, false] {
        let (mut stand, client, session) = crowded(leads);
        let sessions: Vec<_> = stand.tree().sessions().map(|(session, _)| session).collect();
        let mut say = |word| {
            let (text, portions) = told_in_portions(&mut stand, word, |stand| {
                stand.call(client, get("/e0000", false)).unwrap();
            });
            assert!(portions > 1, "{portions} portions of {word:?}");
            text
        };
        let own = |list: &mut dyn FnMut(&str)| {
            (0..1000).for_each(|n| list(&format!("/e{n:04}")));
            (0..1000).for_each(|n| list(&format!("/none{n:04}")));
        };
        let mut expected = String::from("/\n");
        sessions.iter().for_each(|session| expected += &format!("\t0x{session:x}\n"));
        own(&mut |path| expected += &format!("{path}\n\t0x{session:x}\n"));
        assert!(say(b"wchp") == expected + "\n");
        let mut expected = String::new();
        for each in &sessions {
            expected += &format!("0x{each:x}\n\t/\n");
            if *each == session {
                own(&mut |path| expected += &format!("\t{path}\n"));
            }
        }
        assert!(say(b"wchc") == expected + "\n");
        let dump = say(b"dump");
        let (of_sessions, of_owners) = dump.split_once("ephemeral nodes dump:\n").unwrap();
        for session in &sessions {
            let line = if leads { "\t0x" } else { "0x" };
            assert_eq!(of_sessions.matches(&format!("{line}{session:x}")).count(), 1);
        }
        let head = if leads { "Session Sets (" } else { "Global Sessions(1000):\n" };
        assert!(of_sessions.starts_with(&format!("SessionTracker dump:\n{head}")), "{of_sessions}");
        assert!(!leads || of_sessions.contains("/(1000):\n"), "{of_sessions}");
        let owned: String = (0..1000).map(|n| format!("\t/e{n:04}\n")).collect();
        let owners = format!("Sessions with Ephemerals (1):\n0x{session:x}:\n{owned}Connections");
        assert!(of_owners.starts_with(&owners));
        assert_eq!(of_owners.matches("\tip: /10.0.0.7:4711 sessionId: 0x").count(), 1001);
        assert_eq!(say(b"cons").lines().count(), 1002);
        let stat = say(b"stat");
        assert_eq!(stat.matches(" /10.0.0.7:4711[1](queued=").count(), 1001);
        assert!(stat.starts_with("Zookeeper version: ") && stat.ends_with("Node count: 1005\n"));
    }
}

/// What is there all the time is told once, whatever comes and goes beside it.
#[test]
fn what_stays_while_an_answer_is_told_is_told_once() {
    let (mut stand, client, _) = crowded(true);
    let mut nth = 0;
    let (text, _) = told_in_portions(&mut stand, b"wchp", |stand| {
        for _ in 0..50 {
            let gone = format!("/none{:04}", 999 - nth);
            stand.call(client, Request::RemoveWatches { path: gone, kind: 3 }).unwrap();
            stand.call(client, exists(&format!("/a{nth:04}"), true)).unwrap_err();
            nth += 1;
        }
    });
    for n in 0..1000 {
        assert_eq!(text.matches(&format!("/e{n:04}\n")).count(), 1, "{n}");
    }
    assert!(nth > 100 && text.ends_with("\n\n"));
    let mut stand = crowded(true).0;
    let (dump, _) = told_in_portions(&mut stand, b"dump", |stand| {
        stand.now = stand.now + Duration::from_millis(10);
        stand.request(client, &[(1, Request::Ping)]);
    });
    let (sessions, _) = dump.split_once("ephemeral").unwrap();
    assert!(sessions.matches("\t0x").count() >= 999, "but for the one that pings");
}

#[test]
fn who_does_not_read_its_answer_is_told_no_more_until_it_does() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let long = "x".repeat(10_000);
    for n in 0..300 {
        stand.call(client, exists(&format!("/{n:03}{long}"), true)).unwrap_err();
    }
    let asking = stand.connect();
    stand.send(asking, vec![Frame::Word(*b"wchp")]);
    let mut told = 0;
    let mut steps = 0;
    loop {
        steps += 1;
        let portion = told_now(&stand, asking).len();
        assert!(portion < 100_000, "{portion}");
        told += portion;
        if is_closed_now(&stand) {
            break;
        }
        if stand.service_deadline().is_some_and(|at| at <= stand.now) {
            stand.tell(Event::Tick);
        } else {
            // So much waits, and no step is wanted for it.
            assert!(told > 1 << 20, "{told}");
            stand.tell(Event::Written { client: asking, bytes: told });
            told = 0;
        }
        assert!(told < (1 << 20) + 200_000, "{told}");
        assert!(steps < 1000);
    }
    assert!(stand.text(asking).len() > 3_000_000);
}

/// A thousand of them, and one: the answer is made of figures.
#[test]
fn watches_are_told_in_figures_at_once() {
    let (mut stand, ..) = crowded(false);
    let (text, portions) = told_in_portions(&mut stand, b"wchs", |_| {});
    assert_eq!(text, "1000 connections watching 2001 paths\nTotal watches:3000\n");
    assert_eq!(portions, 1);
}

#[test]
fn nothing_is_traced_and_nothing_can_be() {
    let mut stand = Stand::new(true);
    for word in [b"gtmk", b"stmk"] {
        let client = stand.connect();
        stand.send(client, vec![Frame::Word(*word)]);
        assert_eq!(stand.text(client), "0");
    }
}

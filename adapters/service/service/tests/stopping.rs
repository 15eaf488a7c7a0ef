//! A server that is about to stop: which of its clients go, when, and what they are told before.

use std::time::Duration;

use quorate_application::clients::{ClientId, Close, Event, Output};
use quorate_service::Shedding;
use quorate_service::wire::Request;

use crate::clients::{create, exists};
use crate::stand::Stand;

const WITHIN: Duration = Duration::from_secs(3);
/// Between two shares.
const STEP: Duration = Duration::from_millis(10);

fn stop(stand: &mut Stand) {
    stand.tell(Event::Stopping { within: WITHIN });
}

fn closed(stand: &Stand) -> Vec<ClientId> {
    let closed = |output: &Output| {
        let Output::Close { client, how: Close::AfterWriting } = output else { return None };
        Some(*client)
    };
    stand.last.iter().filter_map(closed).collect()
}

fn is_vacated(stand: &Stand) -> bool {
    stand.last.contains(&Output::Vacated)
}

/// The next time that it wants to step, and steps.
fn go_on(stand: &mut Stand) -> Duration {
    let due = stand.service_deadline().unwrap();
    let waited = due.since(stand.now);
    stand.now = due;
    stand.tell(Event::Tick);
    waited
}

#[test]
fn a_thousand_clients_go_in_equal_shares_the_oldest_first_and_all_in_time() {
    for leads in [true, false] {
        let mut stand = Stand::new(leads);
        let all: Vec<_> = (0..1000).map(|_| stand.client().0).collect();
        let begun = stand.now;
        stop(&mut stand);
        let mut gone = closed(&stand);
        assert_eq!(gone.len(), 3, "1000 in 300 shares");
        while !is_vacated(&stand) {
            go_on(&mut stand);
            let share = closed(&stand);
            let due = stand.now.since(begun).as_millis() as usize / 10 + 1;
            gone.extend(&share);
            assert_eq!(gone.len(), 1000 * due.min(300) / 300, "{:?}", stand.now.since(begun));
        }
        assert_eq!(gone, all);
        assert!(stand.now.since(begun) <= WITHIN, "{:?}", stand.now.since(begun));
        assert!(all.iter().all(|client| stand.told(*client) == ["closed"]));
    }
}

#[test]
fn one_client_goes_at_once_and_a_few_one_behind_the_other() {
    let mut stand = Stand::new(false);
    let (one, session) = stand.client();
    stop(&mut stand);
    assert_eq!(closed(&stand), [one]);
    assert!(is_vacated(&stand));
    assert!(stand.tree().session(session).is_some(), "its session lives");
    let mut stand = Stand::new(false);
    let few: Vec<_> = (0..4).map(|_| stand.client().0).collect();
    stop(&mut stand);
    let mut gone = closed(&stand);
    while !is_vacated(&stand) {
        assert_eq!(go_on(&mut stand), STEP);
        assert_eq!(closed(&stand).len(), 1);
        gone.extend(closed(&stand));
    }
    assert_eq!(gone, few);
    let mut empty = Stand::new(true);
    stop(&mut empty);
    assert!(is_vacated(&empty));
}

#[test]
fn a_client_with_a_request_under_way_goes_behind_its_reply() {
    let mut stand = Stand::new(false);
    let (writer, _) = stand.client();
    let (syncer, _) = stand.client();
    stand.request(writer, &[(1, create("/a")), (2, exists("/a", false))]);
    stand.request(syncer, &[(1, Request::Sync { path: None })]);
    let newcomer = stand.connect();
    stand.ask(newcomer, 0, 4000);
    stop(&mut stand);
    for _ in 0..2 {
        go_on(&mut stand);
    }
    assert_eq!(closed(&stand), []);
    for client in [writer, syncer, newcomer] {
        assert!(stand.is_paused(client), "nothing more is read from it");
    }
    // What was read already is answered as well.
    stand.request(writer, &[(3, exists("/", false))]);
    assert!(!is_vacated(&stand));
    stand.settle();
    assert_eq!(stand.told(writer), ["1 ok", "2 ok", "3 ok", "closed"]);
    assert_eq!(stand.told(syncer), ["1 ok", "closed"]);
    assert!(stand.answer(newcomer).is_some_and(|answer| answer.session != 0));
    assert_eq!(stand.told(newcomer), ["closed"]);
    assert!(is_vacated(&stand));
}

#[test]
fn who_waits_for_its_turn_is_served_and_who_comes_is_sent_away() {
    let mut stand = Stand::new(false);
    let (first, _) = stand.client();
    let (second, _) = stand.client();
    stop(&mut stand);
    assert_eq!(closed(&stand), [first]);
    stand.request(second, &[(1, exists("/", false))]);
    assert_eq!(stand.told(second), ["1 ok"]);
    let newcomer = stand.connect();
    assert!(stand.last.contains(&Output::Close { client: newcomer, how: Close::Reset }));
    go_on(&mut stand);
    assert_eq!(closed(&stand), [second]);
    assert!(is_vacated(&stand));
    let late = stand.connect();
    assert!(stand.last.contains(&Output::Close { client: late, how: Close::Reset }));
    assert!(!is_vacated(&stand), "it is said once");
}

#[test]
fn what_is_never_answered_is_not_waited_for_for_ever() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    stand.request(client, &[(1, create("/a"))]);
    let begun = stand.now;
    stop(&mut stand);
    while !is_vacated(&stand) {
        go_on(&mut stand);
    }
    assert_eq!(stand.now.since(begun), 2 * WITHIN);
    assert_eq!(stand.told(client), [""; 0]);
}

#[test]
fn clients_that_lose_their_leader_meanwhile_are_gone_at_once() {
    let mut stand = Stand::new(false);
    for _ in 0..10 {
        stand.client();
    }
    stop(&mut stand);
    assert!(!is_vacated(&stand));
    stand.tell(Event::Retired);
    assert_eq!(closed(&stand).len(), 9);
    assert!(is_vacated(&stand));
}

const SHARE: Event = Event::Shed { percent: 30, within: WITHIN };

#[test]
fn a_share_of_the_clients_is_sent_elsewhere_the_oldest_first_and_the_server_goes_on() {
    let mut stand = Stand::new(false);
    let all: Vec<_> = (0..99).map(|_| stand.client().0).collect();
    stand.tell(SHARE);
    let mut gone = closed(&stand);
    assert_eq!(gone.len(), 1, "one at a time");
    assert_eq!(stand.service.shedding(), Shedding { under_way: true, goal: 30, gone: 1 });
    let newcomer = stand.client().0;
    while stand.service.shedding().under_way {
        go_on(&mut stand);
        gone.extend(closed(&stand));
        assert!(!is_vacated(&stand));
    }
    assert_eq!(gone, all[..30]);
    assert_eq!(stand.service.shedding(), Shedding { under_way: false, goal: 30, gone: 30 });
    for client in [all[30], newcomer] {
        stand.request(client, &[(1, exists("/", false))]);
        assert_eq!(stand.told(client), ["1 ok"]);
    }
    // Again, and of nobody.
    let mut empty = Stand::new(true);
    empty.tell(SHARE);
    assert_eq!(empty.service.shedding(), Shedding::default());
}

/// ZooKeeper's clients ask for one thing behind the other: who waits for a reply that never comes would be deaf.
#[test]
fn who_waits_for_a_reply_all_the_time_stays_and_is_read_again() {
    let mut stand = Stand::new(false);
    let (client, _) = stand.client();
    stand.request(client, &[(1, create("/a"))]);
    let begun = stand.now;
    stand.tell(SHARE);
    stand.tell(SHARE);
    assert!(stand.is_paused(client));
    while stand.service.shedding().under_way {
        go_on(&mut stand);
    }
    assert_eq!(stand.now.since(begun), 2 * WITHIN);
    assert_eq!(stand.service.shedding(), Shedding { under_way: false, goal: 1, gone: 0 });
    assert!(!stand.is_paused(client));
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok"]);
    // The end of the server is stronger.
    stand.tell(SHARE);
    let other = stand.client().0;
    stop(&mut stand);
    assert_eq!(closed(&stand), [other]);
    assert!(is_vacated(&stand));
}

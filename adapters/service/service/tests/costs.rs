//! What costs the same with a hundred times as much beside it: counted by an allocator, not by a clock.

use allocation_counter::measure;
use quorate_application::clients::Event;
use quorate_core::id::LinkId;
use quorate_core::zxid::Zxid;
use quorate_service::wire::{Request, op};

use crate::clients::{create, delete, get, set};
use crate::stand::Stand;

/// How much memory is asked for: how often, and how many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    times: u64,
    bytes: u64,
}

impl Cost {
    /// Of doing something a hundred times, in a state where it has been done before.
    fn of(mut act: impl FnMut(usize)) -> Self {
        (0..50).for_each(&mut act);
        let counted = measure(|| (50..150).for_each(&mut act));
        Self { times: counted.count_total, bytes: counted.bytes_total }
    }

    /// Trees of a hundred times as much are a level or two higher, and nodes of theirs are split at other moments.
    fn is_no_more_than(self, less: Self) -> bool {
        self.times <= less.times * 3 / 2 && self.bytes <= less.bytes * 2
    }
}

/// `count` nodes below `/p`.
fn children(stand: &mut Stand, count: usize) {
    let (client, _) = stand.client();
    stand.call(client, create("/p")).unwrap();
    for thousand in 0..count.div_ceil(1000) {
        let end = count.min((thousand + 1) * 1000);
        let creates = (thousand * 1000..end).map(|nth| create(&format!("/p/{nth:09}")));
        stand.request(client, &[(1, Request::Multi(creates.collect()))]);
        stand.settle();
        assert_eq!(stand.told(client), ["1 ok"]);
        stand.tell(Event::Written { client, bytes: 1 << 20 });
    }
    assert_eq!(stand.tree().get("/p").unwrap().children().count(), count);
}

fn add_watch(path: String, mode: i32) -> Request {
    Request::AddWatch { path, mode }
}

/// Watches of many clients on other nodes, recursive ones among them.
fn watched(watches: usize, recursive: bool) -> Cost {
    let mut stand = Stand::new(true);
    let (writer, _) = stand.client();
    stand.call(writer, create("/a")).unwrap();
    stand.call(writer, create("/a/b")).unwrap();
    let (watcher, _) = stand.client();
    let paths = || (0..watches).map(|nth| Some(format!("/w{nth:07}/x")));
    let request = Request::SetWatches {
        op: op::SET_WATCHES2,
        relative_zxid: Zxid::ZERO,
        data: vec![],
        exist: paths().collect(),
        child: vec![],
        persistent: paths().collect(),
        recursive: if recursive { paths().collect() } else { vec![] },
    };
    stand.request(watcher, &[(-8, request)]);
    assert_eq!(stand.told(watcher), ["-8 ok"]);
    Cost::of(|_| {
        stand.request(writer, &[(1, set("/a/b", -1))]);
        stand.settle();
        assert_eq!(stand.told(writer), ["1 ok"]);
        assert!(stand.told(watcher).is_empty());
    })
}

#[test]
fn what_nobody_watches_costs_the_same_however_many_watches_there_are() {
    assert_eq!(watched(20_000, false), watched(200, false));
    // From above it is looked for, once for each level.
    assert_eq!(watched(20_000, true), watched(200, true));
}

/// What is heard from above costs those who hear it, and not those beside them.
#[test]
fn what_is_watched_from_above_costs_as_much_however_many_watch_elsewhere() {
    let cost = |elsewhere: usize| {
        let mut stand = Stand::new(true);
        let (writer, _) = stand.client();
        for path in ["/a", "/a/b"] {
            stand.call(writer, create(path)).unwrap();
        }
        let (hears, _) = stand.client();
        stand.call(hears, add_watch("/a".into(), 1)).unwrap();
        let (other, _) = stand.client();
        for nth in 0..elsewhere {
            stand.call(other, add_watch(format!("/w{nth:05}"), 1)).unwrap();
        }
        Cost::of(|_| {
            stand.request(writer, &[(1, set("/a/b", -1))]);
            stand.settle();
            assert_eq!(stand.told(hears), ["changed /a/b"]);
            assert_eq!(stand.told(writer), ["1 ok"]);
        })
    };
    assert_eq!(cost(2_000), cost(20));
}

#[test]
fn a_session_that_is_heard_from_costs_the_same_however_many_there_are() {
    for leads in [true, false] {
        let cost = |sessions: i64| {
            let mut stand = Stand::new(leads);
            for session in 1..=sessions {
                stand.open_by(LinkId(7), session, 10_000);
            }
            let (client, _) = stand.client();
            Cost::of(|_| {
                stand.now = stand.now + std::time::Duration::from_millis(1);
                stand.request(client, &[(-2, Request::Ping)]);
                assert_eq!(stand.told(client), ["-2 ok"]);
            })
        };
        let (few, many) = (cost(100), cost(10_000));
        assert!(many.is_no_more_than(few), "leads: {leads}, {many:?} and {few:?}");
    }
}

#[test]
fn a_multi_costs_what_its_elements_do_and_not_what_the_tree_is() {
    let cost = |nodes: usize, elements: usize| {
        let mut stand = Stand::new(true);
        children(&mut stand, nodes);
        let (client, _) = stand.client();
        Cost::of(|_| {
            let sets = (0..elements).map(|nth| set(&format!("/p/{nth:09}"), -1));
            stand.request(client, &[(1, Request::Multi(sets.collect()))]);
            stand.settle();
            assert_eq!(stand.told(client), ["1 ok"]);
        })
    };
    let (few, many) = (cost(200, 20), cost(20_000, 20));
    assert!(many.is_no_more_than(few), "{many:?} and {few:?}");
    let longer = cost(200, 80);
    assert!(longer.times <= few.times * 5 && longer.bytes <= few.bytes * 5, "{longer:?}, {few:?}");
}

#[test]
fn a_node_with_a_hundred_times_the_children_costs_no_more_to_add_to_and_to_take_from() {
    let cost = |nodes: usize| {
        let mut stand = Stand::new(true);
        children(&mut stand, nodes);
        let (client, _) = stand.client();
        Cost::of(|nth| {
            let path = format!("/p/{:09}-", nth * 7 % nodes);
            stand.request(client, &[(1, create(&path)), (2, delete(&path))]);
            stand.settle();
            assert_eq!(stand.told(client), ["1 ok", "2 ok"]);
        })
    };
    let (few, many) = (cost(1_000), cost(100_000));
    assert!(many.is_no_more_than(few), "{many:?} and {few:?}");
}

#[test]
fn what_is_below_a_node_is_counted_without_a_look_at_what_is_beside_it() {
    let cost = |beside: usize| {
        let mut stand = Stand::new(true);
        children(&mut stand, beside);
        let (client, _) = stand.client();
        stand.call(client, create("/q")).unwrap();
        for nth in 0..100 {
            stand.call(client, create(&format!("/q/{nth}"))).unwrap();
        }
        Cost::of(|_| {
            let number = Request::GetAllChildrenNumber { path: "/q".into() };
            stand.request(client, &[(1, number), (2, get("/q", false))]);
            assert_eq!(stand.told(client), ["1 ok", "2 ok"]);
        })
    };
    assert_eq!(cost(20_000), cost(200));
}

//! Quotas: what is counted below a path, as servers write it for clients to read.

use bytes::Bytes;
use quorate_service::wire::{Request, Response, op};

use crate::clients::{create, create_with, delete, get, set};
use crate::stand::{Part, Stand};

use quorate_application::clients::ClientId;
use quorate_znode::acl::Acl;

fn with(path: &str, data: Option<&[u8]>) -> Request {
    let (data, acl) = (data.map(Bytes::copy_from_slice), Some(vec![Acl::world(31)]));
    Request::Create { op: op::CREATE, path: path.into(), data, acl, flags: 0, ttl: None }
}

fn write(path: &str, data: Option<&[u8]>) -> Request {
    Request::SetData { path: path.into(), data: data.map(Bytes::copy_from_slice), version: -1 }
}

const STATS: &str = "/zookeeper/quota/q/zookeeper_stats";
const LIMITS: &str = "/zookeeper/quota/q/zookeeper_limits";

/// Puts `/q` under quota, with these limits.
fn limit(stand: &mut Stand, client: ClientId, limits: &str) {
    stand.call(client, with("/zookeeper/quota/q", None)).unwrap();
    stand.call(client, with(LIMITS, Some(limits.as_bytes()))).unwrap();
    stand.call(client, with(STATS, Some(limits.as_bytes()))).unwrap();
}

#[track_caller]
fn stats(stand: &mut Stand, client: ClientId, path: &str) -> String {
    let answer = stand.call(client, get(path, false));
    let Ok(Response::Data { data: Some(data), .. }) = answer else { panic!("{answer:?}") };
    String::from_utf8(data.to_vec()).unwrap()
}

#[test]
fn what_stands_below_a_path_is_counted_without_a_transaction_a_watch_or_a_version() {
    for part in Part::ALL {
        let mut stand = Stand::part(part);
        let (client, _) = stand.client();
        stand.call(client, with("/q", Some(b"1234"))).unwrap();
        stand.call(client, with("/q/a", Some(b"123456"))).unwrap();
        limit(&mut stand, client, "count=3,bytes=-1");
        assert_eq!(stats(&mut stand, client, STATS), "count=2,bytes=10", "counted when it is made");
        let before = stand.tree().get(STATS).unwrap().stat();
        stand.call(client, get(STATS, true)).unwrap();
        let digest = |stand: &Stand| stand.tree().digest();
        for (request, text) in [
            (with("/q/b", Some(b"xy")), "count=3,bytes=12"),
            (write("/q/b", Some(b"x")), "count=3,bytes=11"),
            (write("/q/b", None), "count=3,bytes=10"),
            (delete("/q/b"), "count=2,bytes=10"),
            (create("/other"), "count=2,bytes=10"),
            (create("/qq"), "count=2,bytes=10"),
            (
                Request::Multi(vec![with("/q/m", Some(b"abc")), write("/q/m", Some(b"a"))]),
                "count=3,bytes=11",
            ),
            (
                Request::Multi(vec![with("/q/n", Some(b"abc")), set("/none", -1)]),
                "count=3,bytes=11",
            ),
            (write("/q", Some(b"")), "count=3,bytes=7"),
        ] {
            let last = stand.tree().last_zxid().0;
            stand.call(client, request.clone()).ok();
            assert_eq!(stand.tree().last_zxid().0, last + 1);
            assert_eq!(stats(&mut stand, client, STATS), text, "{request:?}");
        }
        let after = stand.tree().get(STATS).unwrap().stat();
        assert_eq!((after.version, after.mzxid), (before.version, before.mzxid));
        assert_eq!(stand.told(client), [""; 0], "nobody is told");
        let of = digest(&stand);
        stand.call(client, write(STATS, Some(b"count=1,bytes=1"))).unwrap();
        assert_eq!(digest(&stand), of);
    }
}

#[test]
fn what_sessions_take_along_is_subtracted() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, create("/q")).unwrap();
    limit(&mut stand, client, "count=9,bytes=9");
    let (other, _) = stand.client();
    stand.call(other, create_with("/q/e", 1)).unwrap();
    stand.call(other, create_with("/q/s-", 3)).unwrap();
    assert_eq!(stats(&mut stand, client, STATS), "count=3,bytes=3");
    stand.request(other, &[(1, Request::CloseSession)]);
    stand.settle();
    assert_eq!(stats(&mut stand, client, STATS), "count=1,bytes=1");
}

#[test]
fn a_quota_begins_and_ends_with_its_limits_and_the_longest_path_counts() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    for path in ["/q", "/q/in", "/zookeeper/quota/q", "/zookeeper/quota/q/in"] {
        stand.call(client, with(path, None)).unwrap();
    }
    let inner = "/zookeeper/quota/q/in/zookeeper_stats";
    let none = Some(&b"count=-1,bytes=-1"[..]);
    for path in [LIMITS, STATS, "/zookeeper/quota/q/in/zookeeper_limits", inner] {
        stand.call(client, with(path, none)).unwrap();
    }
    let both = |stand: &mut Stand| (stats(stand, client, STATS), stats(stand, client, inner));
    let texts = |one: &str, two: &str| (one.to_owned(), two.to_owned());
    assert_eq!(both(&mut stand), texts("count=2,bytes=0", "count=1,bytes=0"));
    stand.call(client, with("/q/in/x", Some(b"12"))).unwrap();
    assert_eq!(both(&mut stand), texts("count=2,bytes=0", "count=2,bytes=2"));
    stand.call(client, delete("/zookeeper/quota/q/in/zookeeper_limits")).unwrap();
    stand.call(client, with("/q/in/y", Some(b"12"))).unwrap();
    assert_eq!(both(&mut stand), texts("count=3,bytes=2", "count=2,bytes=2"));
    stand.call(client, delete(LIMITS)).unwrap();
    stand.call(client, with("/q/z", Some(b"12"))).unwrap();
    assert_eq!(both(&mut stand), texts("count=3,bytes=2", "count=2,bytes=2"));
    // Of the root there is none.
    stand.call(client, with("/zookeeper/quota/zookeeper_limits", none)).unwrap();
    stand.call(client, with("/zookeeper/quota/zookeeper_stats", none)).unwrap();
    stand.call(client, with("/any", None)).unwrap();
    assert_eq!(stats(&mut stand, client, "/zookeeper/quota/zookeeper_stats"), "count=-1,bytes=-1");
}

#[test]
fn what_is_said_beside_the_numbers_is_kept() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, create("/q")).unwrap();
    limit(&mut stand, client, "count=3,bytes=-1");
    let more = b"count=1,bytes=1=;byteHardLimit=100;countHardLimit=3;own=5";
    stand.call(client, write(STATS, Some(more))).unwrap();
    stand.call(client, create("/q/a")).unwrap();
    let text = "count=2,bytes=2=;byteHardLimit=100;countHardLimit=3;own=5";
    assert_eq!(stats(&mut stand, client, STATS), text);
}

#[test]
fn the_numbers_are_right_again_behind_a_restart() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    stand.call(client, create("/q")).unwrap();
    limit(&mut stand, client, "count=3,bytes=-1");
    stand.call(client, create("/q/a")).unwrap();
    stand.call(client, write(STATS, Some(b"count=77,bytes=77"))).unwrap();
    let mut again = stand.restarted();
    again.serve(true);
    let (other, _) = again.client();
    assert_eq!(stats(&mut again, other, STATS), "count=2,bytes=2");
    again.call(other, create("/q/b")).unwrap();
    assert_eq!(stats(&mut again, other, STATS), "count=3,bytes=3");
}

/// Every Java server would end at the next change below, and again at each start.
#[test]
fn text_that_is_no_quota_never_reaches_a_leader() {
    for part in Part::ALL {
        let mut stand = Stand::part(part);
        let (client, _) = stand.client();
        stand.call(client, create("/q")).unwrap();
        limit(&mut stand, client, "count=3,bytes=-1");
        let last = stand.tree().last_zxid();
        for path in [STATS, LIMITS] {
            for odd in [None, Some(&b"x"[..]), Some(b"count="), Some(b"count=1,"), Some(b"\xff")] {
                for request in [write(path, odd), Request::Multi(vec![write(path, odd)])] {
                    stand.request(client, &[(1, request.clone())]);
                    assert_eq!(stand.told(client), ["1 -8"], "{request:?}");
                }
            }
        }
        let made = with("/zookeeper/quota/q/in/zookeeper_limits", Some(b"x"));
        stand.request(client, &[(1, made)]);
        assert_eq!(stand.told(client), ["1 -8"]);
        assert!(stand.submitted.is_empty() && stand.tree().last_zxid() == last);
        // What only ends alike is any node, and so is what has no text yet.
        stand.call(client, with("/zookeeper/quota/q/my_zookeeper_stats", None)).unwrap();
        stand.call(client, write(LIMITS, Some(b""))).unwrap();
        stand.call(client, create("/q/a")).unwrap();
    }
}

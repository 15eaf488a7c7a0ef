//! Any bytes, in any order: a service does not panic, answers in order, and forgets what has gone.
#![allow(clippy::cast_possible_truncation, reason = "small numbers at random")]

use bytes::{Bytes, BytesMut};
use quorate_application::clients::{ClientId, Event, Frame};
use quorate_core::id::{LinkId, Origin};
use quorate_core::time::Instant;
use quorate_service::wire::{Request, op};

use crate::clients::{create, create_with, delete, exists, get, set};
use crate::stand::{Heard, Stand};

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn request(&mut self) -> Request {
        let path = ["/a", "/b", "/a/c", "/zookeeper/quota/a/zookeeper_limits", "a", "/", ""];
        let path = path[self.below(7) as usize];
        let watch = self.below(2) == 0;
        match self.below(18) {
            0 => create(path),
            1 => create_with(path, self.below(9) as i32 - 1),
            2 => set(path, self.below(3) as i32 - 1),
            3 => delete(path),
            4 => get(path, watch),
            5 => exists(path, watch),
            6 => Request::GetChildren2 { path: path.into(), watch },
            7 => Request::Ping,
            8 => Request::Sync { path: None },
            9 => Request::Multi(vec![self.write(), self.write()]),
            10 => Request::AddWatch { path: path.into(), mode: self.below(3) as i32 },
            11 => Request::RemoveWatches { path: path.into(), kind: self.below(7) as i32 },
            12 => Request::GetEphemerals { prefix: None },
            13 => Request::GetAllChildrenNumber { path: path.into() },
            14 => Request::WhoAmI,
            15 => Request::GetAcl { path: path.into() },
            16 => Request::MultiRead(vec![get(path, true), get("/b", false)]),
            _ => Request::SetWatches {
                op: op::SET_WATCHES2,
                relative_zxid: quorate_core::zxid::Zxid(0x1_0000_0004),
                data: vec![Some(path.into())],
                exist: vec![Some("/b".into()), None],
                child: vec![],
                persistent: vec![Some("/a".into())],
                recursive: vec![Some("/".into())],
            },
        }
    }

    fn write(&mut self) -> Request {
        match self.below(3) {
            0 => create("/m"),
            1 => set("/a", -1),
            _ => delete("/m"),
        }
    }

    fn bytes(&mut self) -> Bytes {
        let length = self.below(40);
        (0..length).map(|_| self.below(256) as u8).collect()
    }

    /// A request as it is, or with a byte of it changed, or its end cut off.
    fn frame(&mut self, xid: i32) -> Bytes {
        let mut frame = BytesMut::from(&self.request().frame(xid)[4..]);
        match self.below(8) {
            // Not in the header: its xid tells replies apart here.
            0 if frame.len() > 8 => {
                let at = 8 + self.below(frame.len() as u64 - 8) as usize;
                frame[at] = self.below(256) as u8;
            }
            1 => frame.truncate(8 + self.below(frame.len() as u64 - 7) as usize),
            _ => {}
        }
        frame.freeze()
    }
}

/// One client with a session and the xids that it waits for.
struct Asker {
    client: ClientId,
    next: i32,
    answered: i32,
}

fn run(seed: u64) {
    let mut random = Random(seed * 2 + 1);
    let (leads, tight) = (random.below(2) == 0, random.below(3));
    let (most, drop_stale) = (1 + random.below(5) as usize, random.below(2) == 0);
    let mut stand = Stand::with(leads, |options| {
        // Much room, little for writes, little for anything.
        if tight > 0 {
            options.outstanding_max = most;
        }
        if tight > 1 {
            options.throttled_requests_max = Some(most);
            options.drop_stale = drop_stale;
        }
    });
    let mut askers: Vec<Asker> = Vec::new();
    for _ in 0..120 {
        match random.below(20) {
            0 | 1 if askers.len() < 5 => {
                let client = stand.connect();
                stand.ask(client, 0, 4000);
                stand.settle();
                if stand.answer(client).is_some() {
                    askers.push(Asker { client, next: 1, answered: 0 });
                }
            }
            2 => {
                let client = stand.connect();
                let frame = random.bytes();
                stand.send(client, vec![Frame::Whole(frame)]);
            }
            3 => {
                let (from, body) = (LinkId(random.below(3)), random.bytes());
                let sessions = body.clone();
                stand.tell(Event::Touched { from, asked: Instant(random.below(9)), sessions });
                stand.tell(Event::Revalidate { from, body: body.clone() });
                stand.tell(Event::Revalidated(body));
                stand.tell(Event::LinkLost(from));
            }
            4 => stand.tell(Event::Pinged),
            5 => stand.wait(std::time::Duration::from_millis(random.below(700))),
            6 => {
                stand.tell(Event::Retired);
                stand.submitted.clear();
                stand.syncs.clear();
                stand.serve(random.below(2) == 0);
            }
            7 if !askers.is_empty() => {
                let at = random.below(askers.len() as u64) as usize;
                let gone = askers.swap_remove(at);
                stand.tell(Event::Disconnected(gone.client));
            }
            8..=12 => drop(stand.commit()),
            13 => {
                if let Some(request) = stand.submitted.pop_front() {
                    stand.commit_of(&request, Origin::Learner(LinkId(random.below(3))));
                }
            }
            14 => stand.settle(),
            _ if !askers.is_empty() => {
                let at = random.below(askers.len() as u64) as usize;
                let asker = &mut askers[at];
                let many = 1 + random.below(4);
                let frames = (0..many).map(|_| {
                    asker.next += 1;
                    Frame::Whole(random.frame(asker.next - 1))
                });
                let frames = frames.collect();
                stand.send(asker.client, frames);
            }
            _ => {}
        }
        askers.retain_mut(|asker| {
            stand.heard(asker.client).iter().all(|heard| match heard {
                Heard::Event(..) | Heard::Reply(-2, ..) => true,
                Heard::Reply(xid, err, _) => {
                    // Operations that are none of a client's are answered when they are read.
                    assert!(*xid > asker.answered || *err == -6, "seed {seed}: {xid} out of turn");
                    asker.answered = *xid;
                    true
                }
                Heard::Closed => false,
            })
        });
    }
    // Each that is still there is answered in the end, and nothing is left of those that have gone.
    stand.settle();
    let client = stand.connect();
    stand.send(client, vec![Frame::Word(*b"cons")]);
    let text = stand.text(client);
    let waits = text.lines().any(|line| line.contains("queued=") && !line.contains("queued=0,"));
    assert!(!waits, "seed {seed}: {text}");
    for asker in &askers {
        stand.tell(Event::Disconnected(asker.client));
    }
    stand.settle();
    let client = stand.connect();
    stand.send(client, vec![Frame::Word(*b"mntr")]);
    let text = stand.text(client);
    assert!(text.contains("zk_watch_count\t0\n"), "seed {seed}: {text}");
}

#[test]
fn any_bytes_in_any_order_are_answered_in_order_or_end_the_connection() {
    for seed in 1..=3000 {
        run(seed);
    }
}

/// Events cannot be held back: one that does not take them costs nobody else the memory.
#[test]
fn a_client_that_does_not_take_its_events_is_cut_off() {
    let long = format!("/{}", "x".repeat(200_000));
    let mut stand = Stand::new(true);
    let watch = Request::AddWatch { path: "/".into(), mode: 1 };
    let mut watching = || {
        let client = stand.connect();
        stand.ask(client, 0, 10_000);
        stand.settle();
        stand.answer(client).unwrap();
        stand.call(client, watch.clone()).unwrap();
        client
    };
    let (deaf, hears) = (watching(), watching());
    let (writer, _) = stand.client();
    let mut events = 0;
    let mut change = |stand: &mut Stand| {
        let request = if events % 2 == 0 { create(&long) } else { delete(&long) };
        stand.call(writer, request).unwrap();
        events += 1;
        stand.tell(Event::Written { client: writer, bytes: 1 << 20 });
        stand.tell(Event::Written { client: hears, bytes: 1 << 20 });
        stand.heard(hears).len()
    };
    let mut many = 0;
    while stand.heard(deaf).last() != Some(&Heard::Closed) {
        assert_eq!(change(&mut stand), 1, "the other is told");
        many += 1;
        assert!(many < 100, "{many} events of 200,000 bytes wait for it");
    }
    assert!(many > 80, "cut off behind {many}");
    assert_eq!(change(&mut stand), 1);

    // Fewer may wait for some seconds.
    let mut stand = Stand::new(true);
    let deaf = stand.connect();
    stand.ask(deaf, 0, 10_000);
    stand.settle();
    stand.answer(deaf).unwrap();
    stand.call(deaf, watch).unwrap();
    let (writer, _) = stand.client();
    for nth in 0..7 {
        stand.call(writer, if nth % 2 == 0 { create(&long) } else { delete(&long) }).unwrap();
    }
    for wait in [4, 2] {
        assert!(!stand.heard(deaf).contains(&Heard::Closed), "{wait}");
        stand.wait(std::time::Duration::from_secs(wait));
        for client in [deaf, writer] {
            stand.request(client, &[(99, Request::Ping)]);
            stand.heard(client);
        }
        stand.call(writer, if wait == 4 { delete(&long) } else { create(&long) }).unwrap();
    }
    assert!(stand.heard(deaf).contains(&Heard::Closed));
    assert!(!stand.heard(writer).contains(&Heard::Closed));
}

/// What it has sent and is not answered is bounded in bytes as in number, and so is what it sends ahead of its session.
#[test]
fn a_client_that_sends_much_is_not_read_until_some_of_it_is_done() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    // No longer than a frame may be.
    let data = |xid| {
        let data = Some(Bytes::from(vec![7; 1_000_000]));
        (xid, Request::SetData { path: "/none".to_owned(), data, version: -1 })
    };
    stand.request(client, &[data(1), data(2), data(3), data(4)]);
    assert!(!stand.is_paused(client));
    stand.request(client, &[data(5)]);
    assert!(stand.is_paused(client));
    stand.settle();
    assert!(!stand.is_paused(client));

    let early = stand.connect();
    stand.ask(early, 0, 4000);
    let pings: Vec<_> = (0..1000).map(|xid| (xid, Request::Ping)).collect();
    stand.request(early, &pings[..999]);
    assert!(!stand.is_paused(early));
    stand.request(early, &pings[999..]);
    assert!(stand.is_paused(early));
    stand.settle();
    assert!(stand.answer(early).is_some());
    assert_eq!(stand.heard(early).len(), 1000);
    assert!(!stand.is_paused(early));
    let early = stand.connect();
    stand.ask(early, 0, 4000);
    stand.request(early, &[data(1), data(2), data(3), data(4), data(5)]);
    assert!(stand.is_paused(early));
    stand.settle();
    assert!(!stand.is_paused(early));
}

/// What is answered ahead of its turn waits for the client as replies do.
#[test]
fn a_client_that_proves_who_it_is_for_ever_and_reads_nothing_is_read_no_more() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let proof = || Request::Auth { kind: 0, scheme: Some("ip".into()), auth: Bytes::new() };
    let proofs: Vec<_> = (0..1000).map(|_| (-4, proof())).collect();
    let sent = 20 * proofs.len();
    for _ in 0..(1 << 20) / sent {
        stand.request(client, &proofs);
        assert!(!stand.is_paused(client));
    }
    stand.request(client, &proofs);
    assert!(stand.is_paused(client));
    stand.tell(Event::Written { client, bytes: sent });
    assert!(!stand.is_paused(client));
}

/// Every write carries all of them to the leader: a thousand writes under way are a thousand copies.
#[test]
fn a_client_that_proves_more_identities_than_a_connection_may_have_is_refused() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    let proof = |user: usize| {
        let auth = Bytes::from(format!("user-{user}:secret"));
        Request::Auth { kind: 0, scheme: Some("digest".into()), auth }
    };
    for user in 0..200 {
        stand.request(client, &[(-4, proof(user)), (-4, proof(user))]);
        assert_eq!(stand.told(client), ["-4 ok", "-4 ok"]);
    }
    let many: Vec<_> = (200..2000).map(|user| (-4, proof(user))).collect();
    stand.request(client, &many);
    let told = stand.told(client);
    assert_eq!(told[told.len() - 2..], ["-4 -115", "closed"]);
    assert!(told.len() < 300, "{}", told.len());

    let (long, _) = stand.client();
    let auth = Bytes::from([&[b'a'; 17_000][..], b":secret"].concat());
    stand.request(long, &[(-4, Request::Auth { kind: 0, scheme: Some("digest".into()), auth })]);
    assert_eq!(stand.told(long), ["-4 -115", "closed"]);
}

//! Clients of a service: what they ask over their connections, and what they cannot do to others.

use std::net::TcpListener;
use std::time::Duration;

use bytes::BytesMut;
use futures_lite::io::{AsyncReadExt, AsyncWriteExt};
use quorate_core::id::ServerId;

use super::caller::{Caller, HERE, framed, running, serve_clients};
use super::stage::polled;
use super::{Echo, Ensemble, Stage};
use crate::{Runtime, ServerConfig};

pub async fn what_a_client_asks_a_follower_is_answered_in_order<R: Runtime>(stage: Stage<R>) {
    let (ensemble, leader) = running(&stage, 3, serve_clients).await;
    for id in ensemble.ids() {
        let mut caller = Caller::served(&stage, &ensemble, id).await;
        let mut asked = BytesMut::new();
        for number in 0..50_u64 {
            asked.extend_from_slice(&framed(&[b"p", &number.to_be_bytes()[..]].concat()));
            asked.extend_from_slice(&framed(b"g"));
        }
        caller.write(&asked).await;
        let mut before = None;
        for _ in 0..50 {
            let put = caller.number(b'p').await;
            assert!(before.is_none_or(|before| before < put), "in the order of asking");
            assert!(caller.number(b'g').await >= put, "a read behind a write sees it");
            before = Some(put);
        }
    }
    // What is acknowledged elsewhere is seen behind a sync.
    let [one, other] = [leader, ensemble.other_than(&[leader])];
    let mut writer = Caller::served(&stage, &ensemble, one).await;
    let mut reader = Caller::served(&stage, &ensemble, other).await;
    for nth in 151..160 {
        writer.ask(b"px").await;
        assert_eq!(writer.number(b'p').await, nth);
        reader.ask(b"s").await;
        assert_eq!(reader.number(b's').await, nth);
    }
}

pub async fn a_killed_leader_costs_clients_their_connections_and_new_ones_work<R: Runtime>(
    stage: Stage<R>,
) {
    let (mut ensemble, leader) = running(&stage, 3, serve_clients).await;
    let follower = ensemble.other_than(&[leader]);
    let mut here = Caller::served(&stage, &ensemble, follower).await;
    let mut there = Caller::served(&stage, &ensemble, leader).await;
    here.ask(b"px").await;
    assert_eq!(here.number(b'p').await, 1);
    ensemble.kill(leader).await;
    there.until_closed("the end of a client of the leader").await;
    here.until_closed("the end of a client of a follower").await;
    ensemble.agreed().await;
    let mut here = Caller::served(&stage, &ensemble, follower).await;
    here.ask(b"px").await;
    assert_eq!(here.number(b'p').await, 2);
}

pub async fn a_server_that_ends_closes_its_clients<R: Runtime>(stage: Stage<R>) {
    let (mut ensemble, id) = running(&stage, 1, serve_clients).await;
    let mut caller = Caller::served(&stage, &ensemble, id).await;
    let server = ensemble.take(id);
    let at = server.client_addrs()[0];
    let end = stage.spawn(async move { server.shutdown().await });
    caller.until_closed("the end of the connection").await;
    drop(caller);
    stage.within("the end of the server", end.join()).await.unwrap();
    assert!(stage.within("a refusal", stage.runtime(0).dial(at)).await.is_err());
}

pub async fn clients_that_are_there_are_served_until_they_leave_a_server_that_ends<R: Runtime>(
    stage: Stage<R>,
) {
    let shed = |config: &mut ServerConfig| {
        serve_clients(config);
        config.client_shed = Duration::from_secs(3600);
    };
    let (mut ensemble, leader) = running(&stage, 3, shed).await;
    let id = ensemble.other_than(&[leader]);
    let mut caller = Caller::served(&stage, &ensemble, id).await;
    let server = ensemble.take(id);
    let at = server.client_addrs()[0];
    let end = stage.spawn(async move { server.shutdown().await });
    while stage.within("a connection or none", stage.runtime(0).dial(at)).await.is_ok() {}
    for nth in 1..=10 {
        caller.ask(b"px").await;
        assert_eq!(caller.number(b'p').await, nth);
    }
    drop(caller);
    stage.within("the end of the server", end.join()).await.unwrap();
}

pub async fn a_client_that_is_paused_is_not_read<R: Runtime>(stage: Stage<R>) {
    const MUCH: usize = 32 << 20;
    let (ensemble, id) = running(&stage, 1, serve_clients).await;
    let mut held = Caller::served(&stage, &ensemble, id).await;
    let mut other = Caller::served(&stage, &ensemble, id).await;
    held.ask(b"h").await;
    assert_eq!(held.answer().await, b"h");
    let question = framed(&[b"b\0\0\0\0", &[0; 1 << 20][..]].concat()[..1 << 20]);
    let questions = MUCH >> 20;
    let mut writing = Box::pin(async {
        for _ in 0..questions {
            held.stream.write_all(&question).await.unwrap();
        }
    });
    for _ in 0..100 {
        other.ask(b"g").await;
        assert_eq!(other.number(b'g').await, 0);
        assert!(polled(1, writing.as_mut()).await.is_none(), "all of it is read");
    }
    other.ask(b"px").await;
    assert_eq!(other.number(b'p').await, 1);
    stage.within("all of it to be read", writing).await;
    for _ in 0..questions {
        assert_eq!(held.answer().await, b"b");
    }
}

pub async fn a_client_that_does_not_read_costs_only_itself<R: Runtime>(stage: Stage<R>) {
    const LONG: u32 = 3 << 20;
    let (ensemble, id) = running(&stage, 1, serve_clients).await;
    let mut silent = Caller::served(&stage, &ensemble, id).await;
    for _ in 0..20 {
        silent.ask(&[b"b", &LONG.to_be_bytes()[..]].concat()).await;
    }
    let mut other = Caller::served(&stage, &ensemble, id).await;
    for nth in 1..=100 {
        other.ask(b"px").await;
        assert_eq!(other.number(b'p').await, nth);
    }
    // It has lost nothing.
    for _ in 0..20 {
        assert_eq!(silent.answer().await.len(), LONG as usize + 1);
    }
    assert_eq!(ensemble.server(id).status().metrics.overflowed_clients, 0);
}

pub async fn half_a_frame_holds_nothing_up<R: Runtime>(stage: Stage<R>) {
    let (ensemble, id) = running(&stage, 1, |config| {
        serve_clients(config);
        config.max_client_connections = 0;
        config.first_frame_timeout = Duration::from_secs(3600);
    })
    .await;
    let mut halves = Vec::new();
    for _ in 0..200 {
        let mut caller = Caller::to(&stage, &ensemble, id).await;
        let whole = framed(&vec![b'g'; 100_000]);
        caller.write(&whole[..50_000]).await;
        halves.push(caller);
    }
    let metrics = || ensemble.server(id).status().metrics;
    stage.until("all of them", || metrics().clients == 200).await;
    let mut other = Caller::served(&stage, &ensemble, id).await;
    other.ask(b"px").await;
    assert_eq!(other.number(b'p').await, 1);
    // The other half comes, and it is a frame.
    let mut last = halves.pop().unwrap();
    last.write(&vec![b'g'; 50_004]).await;
    assert_eq!(last.number(b'g').await, 1);
    drop((halves, last));
    stage.until("their end", || metrics().clients == 1).await;
}

pub async fn a_client_that_says_nothing_is_closed<R: Runtime>(stage: Stage<R>) {
    let (ensemble, id) = running(&stage, 1, |config| {
        serve_clients(config);
        config.first_frame_timeout = Duration::from_millis(300);
    })
    .await;
    let mut other = Caller::served(&stage, &ensemble, id).await;
    let mut silent = Caller::to(&stage, &ensemble, id).await;
    silent.write(&framed(b"g")[..3]).await;
    silent.until_closed("three bytes").await;
    // Who has said something may be silent.
    other.ask(b"g").await;
    assert_eq!(other.number(b'g').await, 0);
}

/// Three bytes say nothing, and a whole frame all at once.
pub async fn a_service_hears_when_it_sees_how_long_a_first_frame_is<R: Runtime>(stage: Stage<R>) {
    let (ensemble, id) = running(&stage, 1, serve_clients).await;
    let mut asking = Caller::served(&stage, &ensemble, id).await;
    asking.ask(b"e").await;
    let before = asking.number(b'e').await;
    let mut slow = Caller::to(&stage, &ensemble, id).await;
    slow.write(&framed(b"g")[..3]).await;
    let mut quick = Caller::to(&stage, &ensemble, id).await;
    quick.ask(b"g").await;
    assert_eq!(quick.number(b'g').await, 0);
    asking.ask(b"e").await;
    assert_eq!(asking.number(b'e').await, before);
    slow.write(&framed(b"g")[3..4]).await;
    let mut heard = before;
    for _ in 0..20_000 {
        asking.ask(b"e").await;
        heard = asking.number(b'e').await;
        if heard > before {
            break;
        }
    }
    assert_eq!(heard, before + 1);
    slow.write(&framed(b"g")[4..]).await;
    assert_eq!(slow.number(b'g').await, 0);
    // Only the first.
    slow.write(&framed(b"e")[..4]).await;
    slow.write(&framed(b"e")[4..]).await;
    assert_eq!(slow.number(b'e').await, before + 1);
}

pub async fn what_is_no_frame_is_answered_and_closed<R: Runtime>(stage: Stage<R>) {
    let (ensemble, id) = running(&stage, 1, serve_clients).await;
    drop(Caller::served(&stage, &ensemble, id).await);
    let mut caller = Caller::to(&stage, &ensemble, id).await;
    caller.write(&[0xff; 100]).await;
    let mut said = Vec::new();
    stage.within("the end", caller.stream.read_to_end(&mut said)).await.unwrap();
    assert_eq!(said, b"bad!");
}

pub async fn clients_of_one_address_have_a_share_of_the_connections<R: Runtime>(stage: Stage<R>) {
    let (ensemble, id) = running(&stage, 1, |config| {
        serve_clients(config);
        config.max_client_connections = 3;
    })
    .await;
    let mut held = Vec::new();
    let metrics = || ensemble.server(id).status().metrics;
    while held.len() < 3 {
        held.push(Caller::served(&stage, &ensemble, id).await);
        // What was tried too early is gone.
        stage.until("the others' end", || metrics().clients == held.len()).await;
    }
    let before = metrics().refused_clients;
    if let Some(mut another) = Caller::try_to(&stage, &ensemble, id).await {
        let read = stage.within("a connection too many", another.stream.read(&mut [0])).await;
        assert!(read.is_err(), "a reset, not the end");
    }
    assert_eq!(metrics().refused_clients, before + 1);
    for caller in &mut held {
        caller.ask(b"g").await;
        assert_eq!(caller.number(b'g').await, 0);
    }
    drop(held);
    Caller::served(&stage, &ensemble, id).await;
}

pub async fn what_services_tell_each_other_arrives<R: Runtime>(stage: Stage<R>) {
    let (mut ensemble, leader) = running(&stage, 3, |config| {
        serve_clients(config);
        config.core.timing.tick = Duration::from_millis(100);
    })
    .await;
    let follower = ensemble.other_than(&[leader]);
    let mut there = Caller::served(&stage, &ensemble, leader).await;
    let mut here = Caller::served(&stage, &ensemble, follower).await;
    here.ask(b"v0123456789").await;
    assert_eq!(here.answer().await, b"v0123456789");
    there.ask(b"w").await;
    assert_eq!(there.answer().await, b"w\0\0\0\0\0\0\0\x07\0\0\0\x09");
    there.ask(b"t").await;
    assert_eq!(there.answer().await, b"t");
    // In one piece: behind the answer to the first it waits for what the second asks.
    there.write(&[framed(b"g"), framed(b"l")].concat()).await;
    assert_eq!(there.number(b'g').await, 0);
    ensemble.kill(follower).await;
    assert_eq!(there.answer().await, b"l");
}

pub async fn without_a_service_nothing_listens_for_clients<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(1, 0);
    // Taken: a server that listened there would not start.
    let taken = TcpListener::bind(HERE).unwrap();
    let mut config = ensemble.config(ServerId(1));
    config.client_addresses = vec![taken.local_addr().unwrap(), HERE];
    let server = stage.within("start", ensemble.try_start(config)).await.unwrap();
    assert_eq!(server.client_addrs(), []);
    stage.within("the end", server.shutdown()).await.unwrap();
    // And with one it says so.
    drop(ensemble.ids());
    ensemble.adjust = |_| {};
    let echoes = Ensemble::new(&stage, "127.0.0.1", [1, 0], |_| Echo::default());
    let mut config = echoes.config(ServerId(1));
    config.client_addresses = vec![taken.local_addr().unwrap()];
    let error = stage.within("a refusal", echoes.try_start(config)).await.unwrap_err();
    assert!(matches!(error, crate::StartError::BindClients { tries: 1, .. }), "{error}");
}

pub async fn what_a_service_has_kept_is_told_at_the_next_start_and_damage_stops_nothing<
    R: Runtime,
>(
    stage: Stage<R>,
) {
    let (mut ensemble, id) = running(&stage, 1, serve_clients).await;
    let file = ensemble.data_dir(id).join("version-2/quorate.remembered");
    for (told, keep) in [(0, 7), (7, 8), (8, 9), (0, 10), (10, 11)] {
        let mut caller = Caller::served(&stage, &ensemble, id).await;
        for keep in [keep + 100, keep] {
            caller.ask(&[b"k", &u64::to_be_bytes(keep)[..]].concat()).await;
            assert_eq!(caller.number(b'k').await, told);
        }
        let server = ensemble.take(id);
        stage.within("the end", server.shutdown()).await.unwrap();
        if keep == 9 {
            std::fs::write(&file, "damaged").unwrap();
        }
        ensemble.start(id).await;
        ensemble.agreed().await;
    }
}

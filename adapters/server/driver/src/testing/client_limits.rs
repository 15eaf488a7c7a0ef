//! What clients may take of a server, all together, and who waits for whom.

use futures_lite::io::AsyncReadExt;
use quorate_core::id::ServerId;

use super::Stage;
use super::caller::{Caller, Servers, framed, running, serve_clients};
use super::stage::polled;
use crate::{Runtime, ServerConfig};

/// A frame that is longer than others may be.
const LONG: usize = 150_000;

fn two_long_frames_at_a_time(config: &mut ServerConfig) {
    serve_clients(config);
    config.core.limits.request_bytes = 100_000;
    config.long_frame_bytes = 2 * (LONG + 4) + 1000;
}

/// Something that all of the server has heard.
async fn some_time<R: Runtime>(stage: &Stage<R>, ensemble: &Servers<R>, id: ServerId) {
    let mut other = Caller::served(stage, ensemble, id).await;
    for _ in 0..50 {
        other.ask(b"g").await;
        other.number(b'g').await;
    }
}

pub async fn long_frames_are_sent_in_turns_and_whoever_waits_is_not_closed<R: Runtime>(
    stage: Stage<R>,
) {
    let (ensemble, id) = running(&stage, 1, two_long_frames_at_a_time).await;
    let long = framed(&vec![b'g'; LONG]);
    let (half, rest) = long.split_at(LONG / 2);
    let mut callers = Vec::new();
    for _ in 0..4 {
        callers.push(Caller::served(&stage, &ensemble, id).await);
    }
    let [mut first, mut second, mut third, mut fourth] =
        <[_; 4]>::try_from(callers).unwrap_or_else(|_| unreachable!());
    first.write(half).await;
    second.write(half).await;
    some_time(&stage, &ensemble, id).await;
    // All of it, behind a short one that needs no turn.
    for waiting in [&mut third, &mut fourth] {
        waiting.ask(b"g").await;
        assert_eq!(waiting.number(b'g').await, 0);
        waiting.write(&long).await;
        some_time(&stage, &ensemble, id).await;
    }
    assert!(polled(1, third.try_answer()).await.is_none(), "it has its turn");
    assert!(polled(1, fourth.try_answer()).await.is_none(), "it has its turn");
    first.write(rest).await;
    assert_eq!(first.number(b'g').await, 0);
    assert_eq!(third.number(b'g').await, 0);
    assert_eq!(fourth.number(b'g').await, 0);
    // Whoever goes gives its turn back.
    first.write(half).await;
    some_time(&stage, &ensemble, id).await;
    drop(second);
    third.write(&long).await;
    assert_eq!(third.number(b'g').await, 0);
    drop(first);
    for _ in 0..5 {
        fourth.write(&long).await;
        assert_eq!(fourth.number(b'g').await, 0);
    }
}

/// Reads of one that is reset fail; the end would be read from one that is closed in order.
async fn is_reset<R: Runtime>(stage: &Stage<R>, ensemble: &Servers<R>, id: ServerId) -> bool {
    let Some(mut caller) = Caller::try_to(stage, ensemble, id).await else { return true };
    stage.within("the end", caller.stream.read(&mut [0])).await.is_err()
}

pub async fn all_clients_have_a_limit_together_and_who_is_too_many_is_reset<R: Runtime>(
    stage: Stage<R>,
) {
    let (ensemble, id) = running(&stage, 1, |config| {
        serve_clients(config);
        config.max_connections = 2;
        config.max_client_connections = 0;
    })
    .await;
    let metrics = || ensemble.server(id).status().metrics;
    let mut held = Vec::new();
    while held.len() < 2 {
        held.push(Caller::served(&stage, &ensemble, id).await);
        stage.until("the others' end", || metrics().clients == held.len()).await;
    }
    let before = metrics().refused_clients;
    assert!(is_reset(&stage, &ensemble, id).await);
    assert_eq!(metrics().refused_clients, before + 1);
    held.pop();
    stage.until("room", || metrics().clients == 1).await;
    Caller::served(&stage, &ensemble, id).await;
    held[0].ask(b"g").await;
    assert_eq!(held[0].number(b'g').await, 0);
}

pub async fn any_number_of_clients_may_come_where_no_limit_is_set<R: Runtime>(stage: Stage<R>) {
    let (ensemble, id) = running(&stage, 1, |config| {
        serve_clients(config);
        config.max_client_connections = 0;
    })
    .await;
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(Caller::to(&stage, &ensemble, id).await);
    }
    let metrics = || ensemble.server(id).status().metrics;
    stage.until("all of them", || metrics().clients == held.len()).await;
    assert_eq!(metrics().refused_clients, 0);
}

/// As far as the system shows it: the timer of a silent connection, at the end of the server.
pub async fn silent_clients_are_probed_only_where_that_is_wanted<R: Runtime>(stage: Stage<R>) {
    for (keep_alive, timer) in [(false, "00"), (true, "02")] {
        let probed: fn(&mut ServerConfig) = match keep_alive {
            true => |config| {
                serve_clients(config);
                config.client_keep_alive = true;
            },
            false => serve_clients,
        };
        let (ensemble, id) = running(&stage, 1, probed).await;
        let silent = Caller::served(&stage, &ensemble, id).await;
        let port = format!(":{:04X}", ensemble.server(id).client_addrs()[0].port());
        let timers = || {
            // Columns: number, local and remote address, state, queues, timer, …
            let table = std::fs::read_to_string("/proc/self/net/tcp").ok()?;
            let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let here = lines.filter(|columns| columns[3] == "01" && columns[1].ends_with(&port));
            Some(here.map(|columns| columns[5].split(':').next().unwrap().to_owned()).collect())
        };
        // What was answered last may still be on its way to be acknowledged.
        stage
            .until("its timer", || timers().is_none_or(|timers: Vec<String>| timers == [timer]))
            .await;
        drop(silent);
    }
}

//! The clients of a demo: sessions over sockets through the kills, and what of them was lost.
//!
//! ```text
//!   client k ── each second ──► sets one of its 10 nodes
//!       ▲ watches all 10, one-shot, and sets each watch again after its event
//!   client k + 1
//! ```
//!
//! A watch that was set at a version of its node must tell of the next one, through whatever servers the session has
//! gone meanwhile. In the end, when all writes are done, each client reads what it watches: if a node has gone on and
//! its watch is silent, an event was missed, since a client hears of a change before it sees it. That costs one event a
//! write, so that many clients fit into one process.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use serde::Serialize;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use zookeeper_client::{Acls, Client, CreateMode, Error, EventType};

use crate::event::millis;

/// The time-out that clients ask for.
pub(super) const TIMEOUT: Duration = Duration::from_secs(4);
/// Above all nodes.
const ROOT: &str = "/demo";
/// How many clients come at a time: the ports have queues of their own.
const AT_ONCE: usize = 50;
/// How many nodes a client has, and how many it watches.
const NODES: usize = 10;
/// How often a client writes.
const EVERY: Duration = Duration::from_secs(1);
/// How long a client waits before it tries again what has failed.
const PAUSE: Duration = Duration::from_millis(20);
/// How long an event may take behind the reply that it must precede: it goes through channels of this process.
const GRACE: Duration = Duration::from_secs(1);

/// Why the clients cannot begin.
#[derive(Clone, Debug, Error)]
pub(super) enum SessionsError {
    #[error("{0}")]
    Refused(#[from] Error),
    #[error("they have ended")]
    Ended,
}

/// One client.
#[derive(Debug)]
pub(super) struct Attendee {
    number: usize,
    client: Client,
}

/// All clients, at work.
#[derive(Debug)]
pub(super) struct Sessions {
    attendees: Vec<Attendee>,
    tally: Tally,
    phase: watch::Sender<Phase>,
    writers: JoinSet<()>,
    watchers: JoinSet<()>,
}

/// What all do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Write,
    /// Those who write end with the write that is under way.
    Stop,
    /// Nothing changes any more, and those who watch can look.
    Look,
}

/// What was counted so far.
#[derive(Clone, Debug, Default)]
struct Tally(Arc<Mutex<SessionsSummary>>);

/// What came of the clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct SessionsSummary {
    sessions: usize,
    /// How many writes were acknowledged to them.
    session_writes: usize,
    /// How many events they were told.
    events: usize,
    pub(super) sessions_lost: usize,
    pub(super) ephemerals_lost: usize,
    pub(super) watches_missed: usize,
    /// The longest time between two writes of one client that were acknowledged.
    longest_write_gap_ms: f64,
}

impl SessionsSummary {
    /// Whether all is there that was promised.
    pub(super) const fn is_clean(&self) -> bool {
        self.sessions_lost == 0 && self.ephemerals_lost == 0 && self.watches_missed == 0
    }

    /// The lines under the table.
    pub(super) fn lines(&self) -> Vec<String> {
        vec![
            format!(
                "{} sessions, {} writes acknowledged, {} events told: {} sessions lost, {} ephemeral nodes lost, \
                 {} watches missed",
                self.sessions,
                self.session_writes,
                self.events,
                self.sessions_lost,
                self.ephemerals_lost,
                self.watches_missed,
            ),
            format!(
                "longest time between two writes of a client, which writes each second: {:.3} ms",
                self.longest_write_gap_ms
            ),
        ]
    }
}

impl Tally {
    fn count(&self, count: impl FnOnce(&mut SessionsSummary)) {
        count(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Lets this process, and those that it starts, have a descriptor for both ends of each connection.
pub(super) fn allow_descriptors(clients: usize) {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(2 * clients + 1024).unwrap_or(u64::MAX);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = limit.maximum.map_or(Some(wanted), |maximum| Some(maximum.min(wanted)));
        // If that is not allowed, clients cannot connect, and say so.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// Opens so many sessions for each server, and creates their nodes.
pub(super) async fn set_up(
    servers: Vec<SocketAddr>,
    each: usize,
) -> Result<Vec<Attendee>, SessionsError> {
    // The library begins with any of them: that makes nearly as many for each.
    let cluster = servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let count = each * servers.len();
    let mut attendees = Vec::with_capacity(count);
    let first = connect(&cluster).await?;
    first.mkdir(ROOT, &CreateMode::Persistent.with_acls(Acls::anyone_all())).await?;
    for begun in (0..count).step_by(AT_ONCE) {
        let mut joining = JoinSet::new();
        for number in begun..count.min(begun + AT_ONCE) {
            let cluster = cluster.clone();
            joining.spawn(async move { Attendee::join(&cluster, number).await });
        }
        while let Some(joined) = joining.join_next().await {
            attendees.push(joined.map_err(|_| SessionsError::Ended)??);
        }
    }
    Ok(attendees)
}

async fn connect(cluster: &str) -> Result<Client, Error> {
    Client::connector().with_session_timeout(TIMEOUT).connect(cluster).await
}

impl Attendee {
    /// A session with its nodes, all created at once.
    async fn join(cluster: &str, number: usize) -> Result<Self, SessionsError> {
        let client = connect(cluster).await?;
        let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        let mut creation = client.new_multi_writer();
        creation.add_create(&home(number), b"", &persistent)?;
        for node in 0..NODES {
            creation.add_create(&written(number, node), b"", &persistent)?;
        }
        creation.add_create(&presence(number), b"", &ephemeral)?;
        creation.commit().await.map_err(Error::from)?;
        Ok(Self { number, client })
    }

    /// Whether its ephemeral node is there and its own; none if the session is lost.
    async fn is_present(&self) -> Option<bool> {
        let path = presence(self.number);
        let stat = insist(&self.client, || self.client.check_stat(&path)).await?;
        Some(stat.is_some_and(|stat| stat.ephemeral_owner == self.client.session_id().0))
    }
}

fn home(number: usize) -> String {
    format!("{ROOT}/{number}")
}

fn written(number: usize, node: usize) -> String {
    format!("{ROOT}/{number}/{node}")
}

fn presence(number: usize) -> String {
    format!("{ROOT}/{number}/here")
}

/// Asks until there is an answer; none if the session has ended.
async fn insist<T, A: Future<Output = Result<T, Error>>>(
    client: &Client,
    ask: impl Fn() -> A,
) -> Option<T> {
    loop {
        if let Ok(answer) = ask().await {
            return Some(answer);
        }
        if client.state().is_terminated() {
            return None;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Sessions {
    /// Lets the clients write and watch.
    pub(super) fn start(attendees: Vec<Attendee>) -> Self {
        let tally = Tally::default();
        let (phase, _) = watch::channel(Phase::Write);
        let (mut writers, mut watchers) = (JoinSet::new(), JoinSet::new());
        let count = attendees.len();
        tally.count(|counted| counted.sessions = count);
        for Attendee { number, client } in &attendees {
            for node in 0..NODES {
                let path = written((number + 1) % count, node);
                watchers.spawn(watch_over(client.clone(), path, tally.clone(), phase.subscribe()));
            }
            // Not all at the same moment of the second.
            let turn = u32::try_from(*number).unwrap_or_default();
            let delay = EVERY * turn / u32::try_from(count).unwrap_or(u32::MAX);
            let writing = write(client.clone(), *number, tally.clone(), phase.subscribe());
            writers.spawn(async move {
                tokio::time::sleep(delay).await;
                writing.await;
            });
        }
        Self { attendees, tally, phase, writers, watchers }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.attendees.len()
    }

    /// Lets each client end its write, look whether all is there, and go.
    pub(super) async fn finish(mut self) -> SessionsSummary {
        self.phase.send_replace(Phase::Stop);
        while self.writers.join_next().await.is_some() {}
        self.phase.send_replace(Phase::Look);
        while self.watchers.join_next().await.is_some() {}
        for attendee in &self.attendees {
            match attendee.is_present().await {
                Some(true) => {}
                Some(false) => self.tally.count(|counted| counted.ephemerals_lost += 1),
                None => self.tally.count(|counted| counted.sessions_lost += 1),
            }
        }
        let counted = self.tally.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counted
    }
}

/// One write each second, until it is to stop or the session has ended.
async fn write(client: Client, number: usize, tally: Tally, mut phase: watch::Receiver<Phase>) {
    let mut seconds = tokio::time::interval(EVERY);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last: Option<Instant> = None;
    for turn in 0_usize.. {
        tokio::select! {
            _ = seconds.tick() => {}
            _ = phase.wait_for(|phase| *phase >= Phase::Stop) => return,
        }
        let (path, data) = (written(number, turn % NODES), turn.to_string());
        let done = insist(&client, || client.set_data(&path, data.as_bytes(), None)).await;
        if done.is_none() {
            return;
        }
        let now = Instant::now();
        let gap = last.map_or(0.0, |last| millis(now.saturating_duration_since(last)));
        last = Some(now);
        tally.count(|counted| {
            counted.session_writes += 1;
            counted.longest_write_gap_ms = counted.longest_write_gap_ms.max(gap);
        });
    }
}

/// Watches one node: sets the watch, waits for its event, sets it again. In the end, looks whether it missed one.
async fn watch_over(client: Client, path: String, tally: Tally, mut phase: watch::Receiver<Phase>) {
    loop {
        let set = insist(&client, || client.get_and_watch_data(&path)).await;
        let Some((_, stat, watcher)) = set else { return };
        let mut told = std::pin::pin!(watcher.changed());
        tokio::select! {
            event = &mut told => {
                if event.event_type == EventType::Session {
                    return;
                }
                tally.count(|counted| counted.events += 1);
                continue;
            }
            _ = phase.wait_for(|phase| *phase >= Phase::Look) => {}
        }
        if insist(&client, || client.sync(&path)).await.is_none() {
            return;
        }
        let Some(now) = insist(&client, || client.check_stat(&path)).await else { return };
        let has_changed = now.is_none_or(|now| now.version > stat.version);
        if has_changed {
            match tokio::time::timeout(GRACE, told).await {
                Ok(_) => tally.count(|counted| counted.events += 1),
                Err(_) => tally.count(|counted| counted.watches_missed += 1),
            }
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_lost_is_said() {
        let clean = SessionsSummary {
            sessions: 3,
            longest_write_gap_ms: 2000.5,
            ..SessionsSummary::default()
        };
        assert!(clean.is_clean());
        for lost in [
            SessionsSummary { sessions_lost: 1, ..clean },
            SessionsSummary { ephemerals_lost: 1, ..clean },
            SessionsSummary { watches_missed: 1, ..clean },
        ] {
            assert!(!lost.is_clean(), "{lost:?}");
        }
        assert!(clean.lines()[1].ends_with("2000.500 ms"));
    }
}

//! The pages below `/quorate/`: schema 1. A field that is not known is left out; more may be added.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use async_channel::{Sender, TrySendError, bounded};
use bytes::Bytes;
use futures_lite::stream::{Boxed, StreamExt, once, unfold};
use quorate_driver::core::input::Plane;
use quorate_driver::core::membership::Membership;
use quorate_driver::core::report::Change;
use quorate_driver::core::vote::Vote;
use quorate_driver::{Changes, Dialled, Observed, Status, WearingLink};
use serde::Serialize;

use crate::probes::role;

/// What is told of a server at `/quorate/status`.
#[derive(Debug, Serialize)]
pub(crate) struct StatusPage {
    schema: u32,
    id: i64,
    state: &'static str,
    phase: String,
    serving: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<i64>,
    epoch: i64,
    accepted_epoch: i64,
    round: i64,
    vote: VotePart,
    zxid: String,
    log_zxid: String,
    applied_zxid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sync: Option<String>,
    voter: bool,
    voters: usize,
    learners: Vec<LearnerPart>,
    linked: Vec<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wearing_links: Vec<WearingPart>,
    configuration: ConfigurationPart,
    uptime_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    serving_for_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    looking_for_ms: Option<u64>,
    disk_busy_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_fault: Option<String>,
    disk_low: bool,
    clients: usize,
    ending: bool,
}

#[derive(Debug, Serialize)]
struct VotePart {
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_epoch: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zxid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct LearnerPart {
    id: i64,
    voter: bool,
    follower: bool,
    synced: bool,
}

/// A link whose keys wear.
#[derive(Debug, Serialize)]
struct WearingPart {
    plane: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<i64>,
    records: u64,
    records_max: u64,
    up_for_ms: u64,
}

#[derive(Debug, Serialize)]
struct ConfigurationPart {
    version: String,
    members: Vec<String>,
}

impl StatusPage {
    pub(crate) fn new(
        status: &Status,
        membership: &Membership,
        wearing: &[WearingLink],
        changes: &Ring,
    ) -> Self {
        let Status { peer, sync, metrics } = status;
        let text = membership.to_string();
        let members = text.lines().filter(|line| !line.starts_with("version="));
        let learner = |of: &quorate_driver::core::status::LearnerStatus| LearnerPart {
            id: of.id.0,
            voter: of.voter,
            follower: of.follower,
            synced: of.synced,
        };
        Self {
            schema: SCHEMA,
            id: peer.id.0,
            state: role(peer.state),
            phase: peer.phase.to_string(),
            serving: peer.serving,
            leader: peer.leader.map(|id| id.0),
            epoch: peer.current_epoch.0,
            accepted_epoch: peer.accepted_epoch.0,
            round: peer.round.0,
            vote: VotePart::new(&peer.vote, changes.reason_of_vote()),
            zxid: peer.processed.to_string(),
            log_zxid: peer.last.to_string(),
            applied_zxid: metrics.applied.to_string(),
            sync: sync.map(|how| how.to_string().to_lowercase()),
            voter: peer.voter,
            voters: peer.voters,
            learners: peer.learners.iter().map(learner).collect(),
            linked: peer.linked.iter().map(|id| id.0).collect(),
            wearing_links: wearing.iter().map(WearingPart::new).collect(),
            configuration: ConfigurationPart {
                version: format!("{:x}", membership.version()),
                members: members.map(str::to_owned).collect(),
            },
            uptime_ms: millis(metrics.uptime),
            serving_for_ms: metrics.serving_for.map(millis),
            looking_for_ms: metrics.looking_for.map(millis),
            disk_busy_ms: millis(metrics.disk_busy),
            disk_fault: metrics.disk_fault.map(|fault| fault.to_string()),
            disk_low: metrics.disk_low,
            clients: metrics.clients,
            ending: metrics.ending,
        }
    }
}

impl WearingPart {
    fn new(link: &WearingLink) -> Self {
        let WearingLink { plane, peer, records, records_max, age } = *link;
        let (plane, peer, up_for_ms) = (plane_name(plane), peer.map(|id| id.0), millis(age));
        Self { plane, peer, records, records_max, up_for_ms }
    }
}

impl VotePart {
    fn new(vote: &Vote, reason: Option<String>) -> Self {
        // The smallest number is the wire's mark for "none".
        let known = |number: i64| (number != i64::MIN).then_some(number);
        Self {
            leader: known(vote.leader.0),
            peer_epoch: known(vote.peer_epoch.0),
            zxid: known(vote.zxid.0).map(|_| vote.zxid.to_string()),
            reason,
        }
    }
}

/// The last changes of a server.
#[derive(Debug, Default)]
pub(crate) struct Ring(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    changes: VecDeque<ChangePart>,
    next: u64,
    lost: u64,
    reason_of_vote: Option<String>,
    /// Who waits for the next one.
    watchers: Vec<Sender<()>>,
    /// There will be no more.
    ended: bool,
}

#[derive(Clone, Debug, Serialize)]
struct ChangePart {
    number: u64,
    at_ms: u64,
    change: String,
    reason: String,
    state: &'static str,
    phase: String,
    round: i64,
    epoch: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<i64>,
    serving: bool,
}

/// What is told at `/quorate/changes`.
#[derive(Debug, Serialize)]
pub(crate) struct ChangesPage {
    schema: u32,
    /// What to ask with next, `?since=`.
    next: u64,
    /// How many were never read by this page.
    lost: u64,
    changes: Vec<ChangePart>,
}

impl Ring {
    /// Takes in all changes until the server has ended.
    pub(crate) async fn follow(&self, mut changes: Changes) {
        while let Some(observed) = changes.next().await {
            self.push(&observed, changes.lost());
        }
        let mut kept = self.kept();
        kept.ended = true;
        kept.watchers.clear();
    }

    fn push(&self, observed: &Observed, lost: u64) {
        let Observed { at, report, status } = observed;
        let ago = quorate_driver::boot_time::now().saturating_duration_since(*at);
        let wall = SystemTime::now().checked_sub(ago).unwrap_or(UNIX_EPOCH);
        let mut kept = self.kept();
        kept.lost = lost;
        if matches!(report.change, Change::Vote { .. }) {
            kept.reason_of_vote = Some(report.reason.to_string());
        }
        let change = ChangePart {
            number: kept.next,
            at_ms: millis(wall.duration_since(UNIX_EPOCH).unwrap_or_default()),
            change: report.change.to_string(),
            reason: report.reason.to_string(),
            state: role(status.state),
            phase: status.phase.to_string(),
            round: status.round.0,
            epoch: status.current_epoch.0,
            leader: status.leader.map(|id| id.0),
            serving: status.serving,
        };
        kept.next += 1;
        if kept.changes.len() == CHANGES_KEPT {
            kept.changes.pop_front();
        }
        kept.changes.push_back(change);
        // One that has been told and has not looked yet will see this one, too.
        kept.watchers
            .retain(|watcher| !matches!(watcher.try_send(()), Err(TrySendError::Closed(()))));
    }

    /// The changes from a number on, from now on without one, as events of a stream: `id` is the number, `data` what
    /// `/quorate/changes` has. It ends with the server.
    pub(crate) fn stream(self: &Arc<Self>, since: Option<u64>) -> Boxed<Bytes> {
        let (watcher, woken) = bounded(1);
        let since = {
            let mut kept = self.kept();
            if !kept.ended {
                kept.watchers.push(watcher);
            }
            since.unwrap_or(kept.next)
        };
        let changes = unfold((Arc::clone(self), since, woken), async |(ring, since, woken)| {
            loop {
                let (text, next) = ring.events(since);
                if !text.is_empty() {
                    return Some((Bytes::from(text), (ring, next, woken)));
                }
                woken.recv().await.ok()?;
            }
        });
        // At once, so that a reader knows that it is connected.
        once(Bytes::from_static(b": changes\n\n")).chain(changes).boxed()
    }

    /// The events from a number on, and the number behind them.
    fn events(&self, since: u64) -> (String, u64) {
        let kept = self.kept();
        let mut text = String::new();
        for change in kept.changes.iter().filter(|change| change.number >= since) {
            let data = serde_json::to_string(change).unwrap_or_default();
            text += &format!("id: {}\nevent: change\ndata: {data}\n\n", change.number);
        }
        (text, since.max(kept.next))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those from a number on.
    pub(crate) fn since(&self, number: u64) -> ChangesPage {
        let kept = self.kept();
        let wanted = kept.changes.iter().filter(|change| change.number >= number);
        ChangesPage {
            schema: SCHEMA,
            next: kept.next,
            lost: kept.lost,
            changes: wanted.cloned().collect(),
        }
    }

    fn reason_of_vote(&self) -> Option<String> {
        self.kept().reason_of_vote.clone()
    }
}

/// What is told at `/quorate/reach`.
#[derive(Debug, Serialize)]
pub(crate) struct ReachPage {
    schema: u32,
    members: Vec<MemberPart>,
}

#[derive(Debug, Serialize)]
struct MemberPart {
    id: i64,
    /// Whether there is a link for elections.
    linked: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dials: Vec<DialPart>,
}

#[derive(Debug, Serialize)]
struct DialPart {
    plane: &'static str,
    address: String,
    ms_ago: u64,
    connected: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl ReachPage {
    pub(crate) fn new(
        status: &Status,
        membership: &Membership,
        dials: &[Dialled],
        now: Instant,
    ) -> Self {
        let others = membership.members().iter().map(|member| member.id);
        let members = others.filter(|id| *id != status.peer.id).map(|id| MemberPart {
            id: id.0,
            linked: status.peer.linked.contains(&id),
            dials: dials.iter().filter(|dial| dial.peer == id).map(|d| dial(d, now)).collect(),
        });
        Self { schema: SCHEMA, members: members.collect() }
    }
}

fn dial(dialled: &Dialled, now: Instant) -> DialPart {
    DialPart {
        plane: plane_name(dialled.plane),
        address: dialled.address.to_string(),
        ms_ago: millis(now.saturating_duration_since(dialled.at)),
        connected: dialled.failure.is_none(),
        failure: dialled.failure.clone(),
    }
}

const fn plane_name(plane: Plane) -> &'static str {
    match plane {
        Plane::Election => "election",
        Plane::Quorum => "quorum",
    }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The version of these pages.
const SCHEMA: u32 = 1;
/// How many changes are kept.
const CHANGES_KEPT: usize = 1024;

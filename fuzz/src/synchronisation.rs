//! Arbitrary histories of a leader and a learner that could have come about: the leader's plan, carried
//! out, gives its own history, and takes nothing from the learner that the leader has.

use arbitrary::{Arbitrary, Unstructured};
use bytes::Bytes;
use quorate_core::config::HistoryLimits;
use quorate_core::durable::Durable;
use quorate_core::history::History;
use quorate_core::history::plan::Plan;
use quorate_core::id::Ticket;
use quorate_core::input::{Located, Place};
use quorate_core::outbox::Outbox;
use quorate_core::rng::Rng;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::{Counter, Epoch, Zxid};

/// Epochs that the leader logged, and how the learner differs.
#[derive(Arbitrary, Debug)]
struct Case {
    /// How many epochs lie between one of the leader's and the one before, and how many transactions it
    /// has.
    leader: Vec<(u8, u8)>,
    /// Whether the leader is established: in which epoch, what it proposed in it, what of that is
    /// committed.
    leads: Option<(u8, u8, u8)>,
    floor: u8,
    snapshot: u8,
    window: u8,
    limit: u8,
    percent: Option<u8>,
    /// How much they share, how many more of that epoch the learner has, and which others.
    shared: u8,
    more: u8,
    others: Vec<(u8, u8)>,
    /// Whether it says the start of an epoch.
    bare: bool,
    log_bytes: u16,
    snapshot_bytes: u16,
}

fn txns(epoch: i64, first: u32, last: u32) -> Vec<Txn> {
    let txn = |counter| {
        let zxid = Zxid::new(Epoch(epoch), Counter(counter));
        let header = TxnHeader { client: epoch, cxid: 1, time: 0, kind: 5 };
        Txn { zxid, header, body: Bytes::copy_from_slice(&zxid.0.to_be_bytes()) }
    };
    (first..=last).map(txn).collect()
}

/// The last of the first `many`.
fn end_of(txns: &[Txn], many: u8) -> Zxid {
    let at = usize::from(many) % (txns.len() + 1);
    at.checked_sub(1).map_or(Zxid::ZERO, |at| txns[at].zxid)
}

/// Brings a learner up to a leader as these bytes say.
pub fn feed(data: &[u8]) {
    let Ok(case) = Case::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let leader = Leader::new(&case);
    let (learner, last) = learner(&case, &leader);
    leader.brings_up(&case, learner, last);
}

/// A leader: its log, where the log starts, and the history that it keeps.
struct Leader {
    log: Vec<Txn>,
    floor: Zxid,
    /// Its epoch, once it is established.
    epoch: Option<Epoch>,
    history: History,
}

impl Leader {
    fn new(case: &Case) -> Self {
        let (mut log, mut epoch) = (Vec::new(), 0);
        for (gap, many) in case.leader.iter().take(8) {
            epoch += 1 + i64::from(gap % 4);
            log.extend(txns(epoch, 1, 1 + u32::from(many % 8)));
        }
        let inherited = log.len();
        let leads = case.leads.map(|(gap, proposed, committed)| {
            let epoch = epoch + 1 + i64::from(gap % 4);
            let proposed = u32::from(proposed % 8);
            log.extend(txns(epoch, 1, proposed));
            (Epoch(epoch), u32::from(committed) % (proposed + 1))
        });
        let old = &log[..inherited];
        let snapshot = end_of(old, case.snapshot);
        let below = old.partition_point(|txn| txn.zxid <= snapshot);
        let floor = end_of(&old[..below], case.floor);
        let after_floor = old.iter().filter(|txn| txn.zxid > floor).count();
        let window = usize::from(case.window) % (after_floor + 1);
        let limits = HistoryLimits {
            window_count: usize::from(case.limit),
            size_percent: case.percent.map(u64::from),
            ..HistoryLimits::default()
        };
        let mut durable = Durable {
            floor,
            snapshot,
            last_zxid: old.last().map_or(Zxid::ZERO, |txn| txn.zxid),
            window: old[inherited - window..].to_vec().into(),
            ..Durable::default()
        };
        let (mut rng, mut outbox) = (Rng::new(1), Outbox::default());
        let mut history = History::new(&mut durable, limits, &mut rng);
        if let Some((epoch, committed)) = leads {
            history.commit(history.last(), &mut rng);
            for (n, txn) in (1..).zip(&log[inherited..]) {
                history.append(txn.clone().into(), &mut outbox);
                outbox.on_persisted(Ticket(n));
                history.on_persisted(&outbox);
            }
            if committed > 0 {
                history.commit(Zxid::new(epoch, Counter(committed)), &mut rng);
            }
        }
        Self { log, floor, epoch: leads.map(|(epoch, _)| epoch), history }
    }

    /// Asks for the plan for a learner with this history and last zxid, and carries it out.
    fn brings_up(&self, case: &Case, mut learner: Vec<Txn>, last: Zxid) {
        let Self { log, floor, epoch, history } = self;
        let mut plan = history.plan(last, *epoch, None);
        if plan == Plan::Locate {
            let place = locate(log, *floor, last);
            let (log_bytes, snapshot_bytes) =
                (u64::from(case.log_bytes), u64::from(case.snapshot_bytes));
            plan = history.plan(last, *epoch, Some(Located { place, log_bytes, snapshot_bytes }));
        }
        let start = epoch.map_or(Zxid::ZERO, Zxid::start_of);
        let label = history.position().max(start);
        let (mut result, after) = match plan {
            Plan::Diff { after, .. } => {
                assert_eq!(after, last);
                (learner, after)
            }
            Plan::Trunc { to } => {
                // A learner that may be needed before a leader is established is cut across epochs.
                let beyond = epoch.is_none() && last > history.last();
                assert!(beyond || to.epoch() == last.epoch(), "a cut across epochs");
                let kept = learner.partition_point(|txn| txn.zxid <= to);
                if learner[..kept].last().map_or(Zxid::ZERO, |txn| txn.zxid) != to {
                    // No two histories of one ensemble are like that; the learner cannot cut, and says so.
                    assert!(beyond);
                    return;
                }
                assert!(learner[kept..].iter().all(|txn| !log.contains(txn)), "ours is cut");
                learner.truncate(kept);
                (learner, to)
            }
            Plan::Snap => {
                let replays = last > history.last() && !last.is_epoch_start();
                assert!(!replays || label > last, "{label} for {last}");
                let ours = log.starts_with(&learner) && last >= *floor;
                assert!(!ours || label >= last, "{label} takes from {last}");
                (log.iter().filter(|txn| txn.zxid <= label).cloned().collect(), label)
            }
            Plan::Locate => panic!("the disk was asked"),
        };
        assert!(after >= *floor, "a hole behind {after}");
        result.extend(log.iter().filter(|txn| txn.zxid > after).cloned());
        assert_eq!(result, *log, "{plan:?}");
    }
}

/// A learner's history, and the last zxid that it reports. A server that has a transaction of an epoch has what that
/// epoch's leader brought into it.
fn learner(case: &Case, leader: &Leader) -> (Vec<Txn>, Zxid) {
    let Leader { log, epoch: led, .. } = leader;
    let shared = usize::from(case.shared) % (log.len() + 1);
    let next = log.get(shared).map(|txn| txn.zxid.epoch());
    let mut learner = log[..shared].to_vec();
    let end = learner.last().map(|txn| txn.zxid);
    let goes_on = |end: &Zxid| next != Some(end.epoch()) && *led != Some(end.epoch());
    if let Some(end) = end.filter(goes_on) {
        let (Epoch(epoch), Counter(counter)) = (end.epoch(), end.counter());
        learner.extend(txns(epoch, counter + 1, counter + u32::from(case.more % 4)));
    }
    for (gap, many) in case.others.iter().take(4) {
        let last = learner.last().map_or(0, |txn| txn.zxid.epoch().0);
        let epoch = last + 1 + i64::from(gap % 4);
        let ours = log.iter().any(|txn| txn.zxid.epoch().0 == epoch);
        if !ours && led.is_none_or(|led| epoch < led.0) {
            learner.extend(txns(epoch, 1, 1 + u32::from(many % 4)));
        }
    }
    let last = learner.last().map_or(Zxid::ZERO, |txn| txn.zxid);
    // Before the leader has an epoch of its own: one that the learner promised and that never began.
    let begun = if shared == log.len() { led.or_else(|| last.epoch().next()) } else { next };
    let exact = learner.len() == shared;
    let bare = begun.filter(|begun| case.bare && exact && *begun > last.epoch());
    (learner, bare.map_or(last, Zxid::start_of))
}

/// What a disk with this log would answer.
fn locate(log: &[Txn], floor: Zxid, zxid: Zxid) -> Place {
    let held = log.iter().map(|txn| txn.zxid).filter(|held| *held > floor);
    let held: Vec<_> = std::iter::once(floor).chain(held).collect();
    match held.binary_search(&zxid) {
        Ok(_) => Place::Held,
        Err(0) => Place::BelowFloor,
        Err(at) if at == held.len() => Place::Beyond,
        Err(at) => Place::Absent { previous: held[at - 1] },
    }
}

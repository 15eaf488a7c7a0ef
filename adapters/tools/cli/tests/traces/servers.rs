//! Real servers of which everything is recorded, and what happens to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quorate_driver::core::id::ServerId;
use quorate_driver::core::zxid::Zxid;
use quorate_driver::testing::{Ensemble, Gate, Gated, Stage, Task};
use quorate_driver::{Proposal, Runtime, Server, ServerConfig};
use quorate_sim::audit::{Audit, Entry, Objection, Tape};

use crate::cells::Cells;

/// How many entries a tape has at least.
pub(super) const ENTRIES: usize = 10_000;

pub(super) fn adjust(config: &mut ServerConfig) {
    // A leader that is cut off is given up after a fifth of a second.
    config.core.timing.tick = Duration::from_millis(50);
    (config.core.timing.init_limit, config.core.timing.sync_limit) = (100, 4);
    // Snapshots are taken and sent, and old logs go.
    (config.core.history.snap_count, config.core.history.window_count) = (200, 50);
    config.preallocate = 1 << 16;
}

/// Clients of one server: they write and read until they are through or it has ended.
fn load<R: Runtime>(stage: &Stage<R>, server: &Server<R, Cells>) -> Vec<Task<()>> {
    let client = |cell: u8| {
        let server = server.clone();
        stage.spawn(async move {
            for number in 0..20_u8 {
                let body = Bytes::copy_from_slice(&[cell, number]);
                let proposal = Proposal { op: 5, body, identities: None };
                // Whoever loses its leader is told; what is true of that is for the audit.
                drop(server.propose(proposal).await);
                if number % 4 == 0 {
                    let _ = server.read(|cells| cells.count).await;
                }
            }
        })
    };
    (0..4).map(client).collect()
}

/// What servers recorded, and what they had applied in the end.
pub(super) struct Recorded {
    pub(super) tape: Vec<Entry>,
    pub(super) rounds: usize,
    pub(super) states: BTreeMap<i64, (u64, BTreeMap<u8, Zxid>)>,
}

/// The ways of one server, which are closed until this is dropped: its connections stay, and nothing passes.
pub(super) struct Cut(Arc<Gate>);

impl Cut {
    pub(super) fn off<R: Runtime>(stage: &Stage<Gated<R>>, ServerId(id): ServerId) -> Self {
        let gate = Arc::clone(&stage.runtime(usize::try_from(id).unwrap() - 1).gate);
        gate.hold();
        Self(gate)
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Waits until somebody else serves as the leader, and the old one, which hears nothing of that, has given up.
pub(super) async fn replaced<R: Runtime>(
    stage: &Stage<R>,
    ensemble: &Ensemble<R, Cells>,
    old: ServerId,
) {
    let leads = |(id, server): (ServerId, &Server<R, Cells>)| {
        id != old && server.leader().is_some_and(|leader| leader.0 == id)
    };
    stage.until("another leader", || ensemble.running().any(leads)).await;
    let cut_off = ensemble.server(old);
    stage.until("its end", || cut_off.leader().is_none_or(|leader| leader.0 != old)).await;
}

/// Leaders are killed, end in order, hand their leaderships over and are cut off, followers are killed, and everybody
/// comes back, while clients write and read everywhere.
pub(super) async fn recorded<R: Runtime>(runtime: R, voters: i64, entries: usize) -> Recorded {
    let (tape, mut rounds) = (Tape::default(), 0);
    let servers = usize::try_from(voters).unwrap();
    let stage = &Stage::new([runtime]).gated(servers);
    let mut ensemble = Ensemble::new(stage, "127.0.0.1", [servers, 0], |_| Cells::default());
    ensemble.adjust = adjust;
    let recorders = tape.clone();
    ensemble.record(move |id| recorders.recorder(id));
    ensemble.start_all().await;
    while tape.len() < entries {
        let leader = ensemble.agreed().await.0;
        let follower = ensemble.other_than(&[leader]);
        let clients = ensemble.running().flat_map(|(_, server)| load(stage, server)).collect();
        match rounds % 5 {
            0 => ensemble.kill(leader).await,
            1 => {
                let _cut = Cut::off(stage, leader);
                replaced(stage, &ensemble, leader).await;
            }
            // It may have been deposed meanwhile, or not come to it; that is no matter here.
            2 => {
                let handed = ensemble.server(leader).transfer_leadership(follower);
                let _ = stage.within("a transfer", handed).await;
            }
            3 => stage.within("an end", ensemble.take(leader).shutdown()).await.unwrap(),
            _ => ensemble.kill(follower).await,
        }
        ensemble.agreed().await;
        ensemble.start_all().await;
        stage.join_all("clients", clients).await;
        rounds += 1;
    }
    ensemble.agreed().await;
    let mut states = BTreeMap::new();
    for (ServerId(id), server) in ensemble.running() {
        let state = server.read(|cells| (cells.count, cells.cells.clone()));
        states.insert(id, stage.within("a read", state).await.unwrap());
    }
    for id in ensemble.ids() {
        ensemble.kill(id).await;
    }
    Recorded { tape: tape.take(), rounds, states }
}

pub(super) fn audited(voters: i64, tape: &[Entry]) -> Result<Audit, Objection> {
    Audit::of(quorate_sim::Ensemble::majority(voters), tape)
}

//! Servers whose disks fail, and work again.
//!
//! A directory that has another name for a while stands for a disk that refuses everything: a file system that went away, or
//! has no room.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::reasons::TransferRefused;
use quorate_core::report::Reason;

use super::ensemble::Ensemble;
use super::journal::App;
use super::stage::Stage;
use crate::{DiskFault, DiskFloor, ReadError, Runtime, Server, ServerError, TransferError};

/// The directory of one server, which has no name.
struct Aside {
    dir: PathBuf,
    aside: PathBuf,
}

impl Aside {
    fn put<R: Runtime>(ensemble: &Ensemble<R, App>, id: ServerId) -> Self {
        let dir = ensemble.data_dir(id).join("version-2");
        let aside = dir.with_file_name("aside");
        fs::rename(&dir, &aside).unwrap();
        Self { dir, aside }
    }

    fn back(self) {
        fs::rename(&self.aside, &self.dir).unwrap();
    }
}

fn ensemble<R: Runtime>(stage: &Stage<R>) -> Ensemble<R, App> {
    let mut ensemble = stage.journals(3, 0);
    ensemble.adjust = |config| {
        config.disk_retry = Duration::from_millis(50);
        config.core.history.snap_count = 8;
    };
    ensemble
}

/// Waits until a server has said why it changed.
async fn says<R: Runtime>(stage: &Stage<R>, server: &Server<R, App>, wanted: DiskFault) {
    let said = async {
        while server.status().metrics.disk_fault != Some(wanted) {
            stage.pass().await;
        }
    };
    stage.within("a fault", said).await;
}

/// A leader whose disk failed led on without being able to log anything, and a follower applied what its own disk had not
/// taken (ZOOKEEPER-2247, -4882). Whose disk fails gives up its role and keeps its process: the others go on, and it comes
/// back with what the disk has, however often.
pub async fn a_server_whose_disk_fails_gives_up_its_role_and_comes_back<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = ensemble(&stage);
    ensemble.start_all().await;
    for leads in [true, false, true] {
        let (leader, _) = ensemble.agreed().await;
        let writer = ensemble.other_than(&[leader]);
        let victim = if leads { leader } else { ensemble.other_than(&[leader, writer]) };
        let server = ensemble.server(victim).clone();
        let mut changes = server.changes();
        let before = server.status().metrics.disk_outages;
        let aside = Aside::put(&ensemble, victim);
        // The next transaction is written to a file that is open; what begins one finds no directory.
        let asked = stage.spawn({
            let server = ensemble.server(writer).clone();
            async move {
                for entry in 0..MANY {
                    // Its outcome may be unknown, if it was asked for at a leader that leaves.
                    drop(server.propose(format!("{leads}{entry}")).await);
                }
            }
        });
        says(&stage, &server, DiskFault::Failing).await;
        let reason = async {
            loop {
                match changes.next().await {
                    Some(change) if change.report.reason == Reason::DiskFailed => return,
                    Some(_) => {}
                    None => panic!("it has ended"),
                }
            }
        };
        stage.within("a report", reason).await;
        stage.within("its loop", server.healthy()).await.unwrap();
        assert_eq!(server.leader(), None);
        let refused = stage.within("a refusal", server.try_propose("x")).await;
        assert!(refused.is_err_and(|error| !error.may_have_happened()));
        assert!(matches!(
            stage.within("a refusal", server.try_read(|_| ())).await,
            Err(ReadError::Refused(_))
        ));
        // For a moment the others may still name the one that has left.
        let another = async {
            while ensemble.agreed_but_for(&[victim]).await.0 == victim {
                stage.pass().await;
            }
        };
        stage.within("another leader", another).await;
        stage.within("writes", asked.join()).await;
        stage.propose(ensemble.server(writer), "y").await;
        assert!(!aside.dir.exists(), "no directory is made in the place of the one that is gone");
        aside.back();
        ensemble.agreed().await;
        assert_eq!(server.status().metrics.disk_fault, None);
        assert!(server.status().metrics.disk_outages > before);
        let all = stage.all_entries(ensemble.server(writer)).await;
        for id in ensemble.ids() {
            assert_eq!(stage.all_entries(ensemble.server(id)).await, all, "{id}");
        }
    }
}

/// The only snapshot on its disk is of the first state: that has to take the place of what its application is by then, or all
/// that is in the log would be applied a second time.
pub async fn a_server_that_has_taken_no_snapshot_applies_nothing_twice<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = ensemble(&stage);
    ensemble.adjust = |config| config.disk_retry = Duration::from_millis(50);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    for entry in ["x", "y", "z"] {
        stage.propose(ensemble.server(leader), entry).await;
    }
    let server = ensemble.server(leader).clone();
    let aside = Aside::put(&ensemble, leader);
    server.step_down().await;
    says(&stage, &server, DiskFault::Failing).await;
    aside.back();
    stage.until("its disk", || server.status().metrics.disk_fault.is_none()).await;
    ensemble.agreed().await;
    stage.propose(&server, "behind it").await;
    let all = stage.all_entries(&server).await;
    assert_eq!(all.len(), 4, "{all:?}");
    for id in ensemble.ids() {
        assert_eq!(stage.all_entries(ensemble.server(id)).await, all, "{id}");
    }
}

/// Whoever ends it meanwhile need not wait for the disk.
pub async fn a_server_that_waits_for_its_disk_shuts_down<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = ensemble(&stage);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let server = ensemble.take(leader);
    let aside = Aside::put(&ensemble, leader);
    server.step_down().await;
    says(&stage, &server, DiskFault::Failing).await;
    stage.within("its end", server.shutdown()).await.unwrap();
    aside.back();
    ensemble.start(leader).await;
    ensemble.agreed().await;
}

/// It would take the whole ensemble's service with it when its disk is full; as a follower it costs nothing.
pub async fn a_leader_with_little_room_on_its_disk_lets_another_lead<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = ensemble(&stage);
    ensemble.adjust = |config| {
        if config.core.id == ServerId(3) {
            config.disk_floor = DiskFloor::Bytes(u64::MAX);
        }
    };
    ensemble.start_all().await;
    let handed = async {
        while ensemble.agreed().await.0 == ServerId(3) {
            stage.pass().await;
        }
    };
    stage.within("another leader", handed).await;
    for id in ensemble.ids() {
        let low = ensemble.server(id).status().metrics.disk_low;
        assert_eq!(low, id == ServerId(3), "{id}");
        stage.propose(ensemble.server(id), "x").await;
    }
    let asked = ensemble.agreed().await.0;
    let refused =
        stage.within("an answer", ensemble.server(asked).transfer_leadership(ServerId(3)));
    let unheard = TransferRefused::Unheard(ServerId(3));
    assert_eq!(refused.await, Err(TransferError::Refused(unheard)));
}

/// A disk that comes back with less than it had said was safe, or another disk, is not gone on with.
pub async fn a_disk_that_comes_back_with_less_ends_its_server<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = ensemble(&stage);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    stage.propose(ensemble.server(leader), "x").await;
    let server = ensemble.take(leader);
    let aside = Aside::put(&ensemble, leader);
    server.step_down().await;
    says(&stage, &server, DiskFault::Failing).await;
    fs::create_dir(&aside.dir).unwrap();
    let end = stage.within("its end", server.finished()).await;
    let Err(error @ ServerError::Disk { .. }) = end else { panic!("{end:?}") };
    assert!(error.to_string().contains("it is another directory"), "{error}");
}

/// More than one log file takes.
const MANY: usize = 20;

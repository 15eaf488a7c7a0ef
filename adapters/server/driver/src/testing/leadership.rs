//! Leadership: which server has the guard, and how a transfer passes it on.

use std::time::Duration;

use async_channel::{Sender, bounded};
use futures_lite::future::{pending, zip};
use quorate_core::id::ServerId;
use quorate_core::reasons::TransferRefused;

use super::ensemble::any_of;
use super::journal::numbered;
use super::stage::polled;
use super::{Ensemble, Stage};
use crate::{Application, LeadershipError, Lost, Runtime, ServerError, TransferError};

/// Tells when it is dropped.
struct Dropped(Sender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.try_send("the work is dropped");
    }
}

/// The leader, and another voter.
async fn two<R: Runtime, A: Application>(ensemble: &Ensemble<R, A>) -> [ServerId; 2] {
    let (leader, _) = ensemble.agreed().await;
    [leader, ensemble.other_than(&[leader])]
}

pub async fn leadership_is_the_leaders_and_each_leadership_has_a_greater_token<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let [leader, other] = two(&ensemble).await;
    let led = ensemble.take(leader);
    let leadership = stage.within("leadership", led.leadership()).await.unwrap();
    let token = leadership.check().unwrap();
    assert_eq!(token, leadership.token());
    let waits = Duration::from_millis(1);
    let none = ensemble.server(other).leadership_within(waits).await;
    assert_eq!(none.unwrap_err(), LeadershipError::Elapsed(waits));

    stage.within("kill", led.kill()).await;
    assert_eq!(stage.within("loss", leadership.lost()).await, Lost::Ended);
    assert_eq!(leadership.check(), Err(Lost::Ended));
    assert_eq!(led.leadership().await.unwrap_err(), LeadershipError::Ended);
    let (next, _) = ensemble.agreed().await;
    let later = stage.within("leadership", ensemble.server(next).leadership()).await.unwrap();
    assert!(later.token() > token, "{} after {token}", later.token());
}

pub async fn the_leadership_is_kept_until_guarded_work_has_ended<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let [leader, other] = two(&ensemble).await;
    let leadership = stage.within("leadership", ensemble.server(leader).leadership()).await;
    let leadership = leadership.unwrap();
    let (said, heard) = bounded(2);
    let server = ensemble.server(leader).clone();
    let handing = stage.spawn(async move { server.transfer_leadership(other).await });
    let dropped = Dropped(said.clone());
    let work = async {
        let _dropped = dropped;
        pending::<()>().await;
    };
    let lost = stage.within("the end of the work", leadership.run(work)).await;
    assert_eq!(lost, Err(Lost::Leaving));
    assert_eq!(heard.try_recv(), Ok("the work is dropped"), "before anybody hears of it");
    // The guard is still there: so is the leadership.
    assert_eq!(ensemble.agreed().await.0, leader);
    drop(leadership);
    stage.within("the transfer", handing.join()).await.unwrap();
    assert_eq!(ensemble.agreed().await.0, other);
}

/// Requests and reads wait; none is refused, lost, or done twice.
pub async fn nobody_who_asks_the_leader_notices_a_transfer<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.start_all().await;
    let mut count = 0;
    for _ in 0..4 {
        let [leader, other] = two(&ensemble).await;
        let server = ensemble.server(leader).clone();
        let writer = {
            let server = server.clone();
            stage.spawn(async move {
                for number in count..count + 50 {
                    server.propose(numbered(number, 8)).await.unwrap();
                    server.sync().await.unwrap();
                }
            })
        };
        stage.within("the transfer", server.transfer_leadership(other)).await.unwrap();
        stage.within("the writes", writer.join()).await;
        count += 50;
        assert_eq!(ensemble.agreed().await.0, other);
    }
    let last = ensemble.ids()[0];
    stage.within("catching up", ensemble.server(last).sync()).await.unwrap();
    let entries = stage.all_entries(ensemble.server(last)).await;
    let all = (0..count).map(|number| numbered(number, 8));
    assert!(entries.iter().map(|(_, entry)| entry.clone()).eq(all), "{entries:?}");
}

pub async fn a_leader_that_shuts_down_hands_its_leadership_over<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let [leader, other] = two(&ensemble).await;
    let mut changes = ensemble.server(other).changes();
    let server = ensemble.take(leader);
    stage.within("shutdown", server.shutdown()).await.unwrap();
    ensemble.agreed().await;
    // It was no election: no server was looking.
    while let Some(change) = changes.try_next() {
        let shown = change.report.to_string();
        assert!(!shown.contains("LOOKING"), "{shown}");
    }
}

pub async fn a_leadership_that_cannot_be_handed_over_stays_and_why_is_said<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = stage.electors(3, 1);
    ensemble.start_all().await;
    let [leader, other] = two(&ensemble).await;
    let (server, non_member) = (ensemble.server(leader).clone(), ServerId(77));
    let kept = |kept| Err(TransferError::Refused(kept));
    let observer = ensemble.observers()[0];
    for nobody in [leader, non_member, observer] {
        let refused = stage.within("an answer", server.transfer_leadership(nobody)).await;
        assert_eq!(refused, kept(TransferRefused::NoFollower(nobody)));
    }
    let from_a_follower = ensemble.server(other).transfer_leadership(leader);
    assert_eq!(stage.within("an answer", from_a_follower).await, kept(TransferRefused::NotLeading));
    // Two at a time: one wins.
    let leadership = server.leadership().await.unwrap();
    let both = zip(server.transfer_leadership(other), async {
        let second = server.transfer_leadership(other).await;
        drop(leadership);
        second
    });
    let (first, second) = stage.within("both", both).await;
    assert_eq!((first, second), (Ok(()), kept(TransferRefused::Underway)));
    // The caller that was told so is not told otherwise.
    assert_ne!(server.leader().map(|(id, _)| id), Some(leader));
    assert_eq!(ensemble.agreed().await.0, other);
    stage.within("shutdown", ensemble.take(leader).shutdown()).await.unwrap();
    assert_eq!(server.transfer_leadership(other).await, Err(TransferError::Ended));
}

pub async fn whoever_is_wished_more_comes_to_lead<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.adjust = |config| {
        config.core.timing.tick = Duration::from_millis(50);
        // Against the order of votes.
        config.core.priority = u8::try_from(9 - config.core.id.0).unwrap();
    };
    ensemble.start_all().await;
    let first = ensemble.ids()[0];
    let mut leaders = ensemble.server(first).leaders();
    let wished = async { while leaders.next().await.unwrap().map(|(id, _)| id) != Some(first) {} };
    stage.within("the wished one", wished).await;
}

/// Guards that are never dropped keep nothing but the leadership, and that not for ever.
pub async fn a_guard_that_is_leaked_keeps_its_server_from_nothing<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.adjust = |config| {
        config.core.timing.tick = Duration::from_millis(20);
        config.core.timing.init_limit = 10;
        config.core.timing.sync_limit = 100;
    };
    ensemble.start_all().await;
    let [leader, other] = two(&ensemble).await;
    let server = ensemble.take(leader);
    std::mem::forget(stage.within("leadership", server.leadership()).await.unwrap());
    let late = stage.within("an answer", server.transfer_leadership(other)).await;
    assert_eq!(late, Err(TransferError::Refused(TransferRefused::Guarded)));
    // It leads on, and others may be let in.
    let leadership = stage.within("leadership", server.leadership()).await.unwrap();
    leadership.check().unwrap();
    stage.within("shutdown", server.shutdown()).await.unwrap();
    assert_eq!(leadership.check(), Err(Lost::Ended));
    ensemble.agreed().await;
}

/// A transfer that another caller waits for is as good: both are told how it ended.
pub async fn a_shutdown_waits_for_a_transfer_that_is_under_way<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    let [leader, other] = two(&ensemble).await;
    let server = ensemble.take(leader);
    let leadership = stage.within("leadership", server.leadership()).await.unwrap();
    let handing = {
        let server = server.clone();
        stage.spawn(async move { server.transfer_leadership(other).await })
    };
    assert_eq!(stage.within("the wish", leadership.lost()).await, Lost::Leaving);
    let ending = {
        let server = server.clone();
        stage.spawn(async move { server.shutdown().await })
    };
    // Told twice that it is to end, it still waits for the guard.
    assert!(polled(1, server.shutdown()).await.is_none());
    stage.within("health", server.healthy()).await.unwrap();
    drop(leadership);
    stage.within("the transfer", handing.join()).await.unwrap();
    stage.within("the end", ending.join()).await.unwrap();
    assert_eq!(ensemble.agreed().await.0, other);
}

/// With leases a leader that no voter answers has lost by its own clock, whether or not it hears of it.
pub async fn a_leader_whose_voters_are_gone_loses_its_lease<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.adjust = |config| {
        config.core.timing.tick = Duration::from_millis(100);
        config.core.lease = Some(Duration::from_millis(300));
    };
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let server = ensemble.server(leader).clone();
    let leadership = stage.within("leadership", server.leadership()).await.unwrap();
    stage.until("a lease", || leadership.lease().is_some()).await;
    let first = leadership.lease().unwrap();
    stage.until("a renewal", || leadership.lease().is_some_and(|until| until > first)).await;
    for (id, server) in ensemble.running() {
        // At most its 300 ms.
        let names = ["quorate_lease_remaining_seconds", "quorate_peer_sync_progress"];
        let page = server.figures().page(&names);
        let told = page.contains("\nquorate_lease_remaining_seconds 0.");
        assert_eq!(told, id == leader, "{id}: {page}");
        let learners = page.matches("quorate_peer_sync_progress{peer=").count();
        assert_eq!(learners, if id == leader { 2 } else { 0 }, "{id}: {page}");
    }
    for id in ensemble.ids() {
        if id != leader {
            ensemble.kill(id).await;
        }
    }
    assert_eq!(stage.within("loss", leadership.lost()).await, Lost::Deposed);
    let mut leaders = server.leaders();
    stage.within("no leader", async { while leaders.next().await.unwrap().is_some() {} }).await;
}

pub async fn probes_are_answered_and_told_of_the_end<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    let first = ensemble.ids()[0];
    ensemble.start(first).await;
    let alone = ensemble.server(first).clone();
    assert_eq!(polled(1, alone.ready()).await.map(drop), None, "nobody leads");
    stage.within("health", alone.healthy()).await.unwrap();
    ensemble.start_all().await;
    let ready = stage.within("readiness", alone.ready()).await.unwrap();
    assert_eq!(ready, ensemble.agreed().await);
    stage.within("shutdown", alone.shutdown()).await.unwrap();
    assert!(matches!(alone.ready().await, Err(ServerError::Ended)));
    assert!(matches!(alone.healthy().await, Err(ServerError::Ended)));
}

/// Dropped at each place, waiting for leadership takes nothing, and a transfer takes place all the same.
pub async fn waits_for_the_leadership_that_are_dropped_hold_nothing<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    // A caller that waits in vain is woken by nothing: one poll is all that there is.
    for times in [0, 1, 0, 1] {
        let [leader, other] = two(&ensemble).await;
        let server = ensemble.server(leader);
        assert!(polled(times, ensemble.server(other).leadership()).await.is_none());
        drop(polled(times, server.leadership()).await);
        drop(polled(times, server.leadership_within(Duration::from_secs(9))).await);
        if let Some(leadership) = polled(times, server.leadership()).await {
            let leadership = leadership.unwrap();
            assert!(polled(times, leadership.lost()).await.is_none());
            assert!(polled(times, leadership.run(pending::<()>())).await.is_none());
        }
        let mut leaders = ensemble.server(other).leaders();
        if polled(times, server.transfer_leadership(other)).await.is_none() && times == 0 {
            // It was never asked for.
            assert_eq!(ensemble.agreed().await.0, leader);
            continue;
        }
        let taken = async {
            // One that was asked for and dropped may still be under way, and come to nothing.
            while let Err(TransferError::Refused(
                TransferRefused::Underway | TransferRefused::Unheard(_),
            )) = server.transfer_leadership(other).await
            {
                stage.runtime(0).sleep(Duration::from_millis(10)).await;
            }
            while leaders.next().await.unwrap().map(|(id, _)| id) != Some(other) {}
        };
        stage.within("the other one", taken).await;
    }
}

/// A laptop that is opened again: its timers have stood still, and meanwhile another may lead. What its clock shows then ends
/// the lease before anything else happens there.
pub async fn a_leader_whose_machine_was_suspended_counts_on_no_lease<R: Runtime>(stage: Stage<R>) {
    let stage = stage.gated(3);
    let mut ensemble = stage.electors(3, 0);
    ensemble.adjust = |config| config.core.lease = Some(config.core.timing.tick * 4);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let leadership = stage.within("leadership", ensemble.server(leader).leadership()).await;
    let leadership = leadership.unwrap();
    stage.until("a lease", || leadership.lease().is_some()).await;
    let runtime = stage.runtime(usize::try_from(leader.0 - 1).unwrap());
    // What had come before it slept confirms nothing: a lease counts from what was sent.
    runtime.gate.hold();
    runtime.was_suspended(Duration::from_secs(60));
    assert_eq!((leadership.check(), leadership.lease()), (Err(Lost::Deposed), None));
    let work = async { leadership.run(pending::<()>()).await };
    assert_eq!(stage.within("the end of its work", work).await, Err(Lost::Deposed));
    // What its timers had waited for comes late, and that is told.
    let server = ensemble.server(leader).clone();
    let told = || {
        let page = server.figures().page(&["quorate_loop_stall_seconds"]);
        page.contains("_count ") && !page.contains("_count 0.0")
    };
    stage.until("a loop that was late", told).await;
    let token = leadership.token();
    drop(leadership);
    runtime.gate.release();
    // Not of the one in whom all believe: they may not have heard yet that it leads no more.
    let any = any_of(ensemble.running().map(|(_, server)| server.leadership()));
    let later = stage.within("leadership", any).await.unwrap();
    assert!(later.token() > token, "{} after {token}", later.token());
}

//! Together with Apache's own LeaderElectionSupport in one election.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod peers;

use quorate_zookeeper::{Candidate, Naming, State};

use self::peers::{Ensemble, JavaCandidate, make, standing, until, within};

async fn ours(ensemble: &Ensemble, name: &str) -> Candidate {
    let config = ensemble.config("/election", name).naming(Naming::Java);
    Candidate::start(config).await.unwrap()
}

async fn led_by(candidate: &Candidate, name: &str) {
    until("the leader that all agree on", async || {
        let leader = candidate.leader().await.unwrap()?;
        (leader.name() == name).then_some(())
    })
    .await;
}

/// ours, Java, ours, Java, in this order; each dies or stops in turn, and starts again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_agree_on_the_leader_through_kills_and_restarts() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let client = ensemble.client().await;
    // Java's does not create it.
    make(&client, "/election").await;
    let first = ours(&ensemble, "ours-1").await;
    let leadership = within("leadership", first.leadership()).await.unwrap();
    let mut java = JavaCandidate::start(&ensemble.hosts(), "/election", "java-1");
    java.waits().await;
    let second = ours(&ensemble, "ours-2").await;
    standing(&second, "the second to wait", |status| status.state == State::Ready).await;
    let mut last = JavaCandidate::start(&ensemble.hosts(), "/election", "java-2");
    last.waits().await;

    assert_eq!(java.leader().await, "ours-1");
    assert_eq!(last.leader().await, "ours-1");
    let row = second.candidates().await.unwrap();
    let names: Vec<_> = row.iter().map(|one| one.name().into_owned()).collect();
    assert_eq!(names, ["ours-1", "java-1", "ours-2", "java-2"]);
    let token = leadership.token();

    // Ours goes in order, Java's leads.
    drop(leadership);
    first.stop().await;
    java.leads().await;
    led_by(&second, "java-1").await;
    assert!(second.leader().await.unwrap().unwrap().token > token);
    // One of ours stands behind all again.
    let first = ours(&ensemble, "ours-3").await;
    standing(&first, "the third to wait", |status| status.state == State::Ready).await;

    // Java's is killed: ours leads when its session is over.
    java.kill();
    let leadership = within("leadership", second.leadership()).await.unwrap();
    assert_eq!(last.leader().await, "ours-2");
    assert_eq!(last.count("event ELECTED_COMPLETE"), 0);
    let mut again = JavaCandidate::start(&ensemble.hosts(), "/election", "java-3");
    again.waits().await;

    // A killed process's session ends without a word: as if ours were one.
    drop(second);
    drop(leadership);
    last.leads().await;
    led_by(&first, "java-2").await;
    last.stop();
    let leadership = within("leadership", first.leadership()).await.unwrap();
    assert_eq!(again.leader().await, "ours-3");
    drop(leadership);
    first.stop().await;
    again.leads().await;
}

/// Names of other kinds stand in the same row, and Java's reads them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offers_with_other_names_stand_in_the_same_row() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let mut all = Vec::new();
    let kinds = [Naming::Java, Naming::Guid, Naming::Session, Naming::Latch, Naming::Kazoo];
    for (place, naming) in kinds.into_iter().enumerate() {
        let config = ensemble.config("/mixed", &place.to_string()).naming(naming);
        let candidate = Candidate::start(config).await.unwrap();
        let so = if place == 0 { State::Elected } else { State::Ready };
        standing(&candidate, "its place", |status| status.state == so).await;
        all.push(candidate);
    }
    for (place, candidate) in all.iter().enumerate() {
        let leadership = within("leadership", candidate.leadership()).await.unwrap();
        assert_eq!(&*candidate.leader().await.unwrap().unwrap().name(), place.to_string());
        drop(leadership);
        candidate.stop().await;
    }
}

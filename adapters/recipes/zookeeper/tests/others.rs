//! Together with the candidates of others in one election: Apache's LeaderElectionSupport, Curator's LeaderLatch,
//! and kazoo's Election, all as Debian has them.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod peers;
#[path = "peers/process.rs"]
mod process;

use std::time::Duration;

use quorate_zookeeper::{
    Candidate, Config, FencingToken, Leadership, Lost, Naming, Settings, State,
};
use zookeeper_client::{Acls, Client, CreateMode};

use self::peers::{Ensemble, make, names, standing, until, within};
use self::process::{Kind, Process, seat};

const ROOT: &str = "/election";

/// Sessions of processes; LeaderElectionSupport fails for good when it cannot connect within one.
const THEIR_SESSION: Duration = Duration::from_secs(8);

/// What is left of the session of one that was killed.
const LEFT: Duration = Duration::from_secs(1);

/// One election, in which all say who leads.
struct Election {
    ensemble: Ensemble,
    other: Kind,
    client: Client,
    /// The newest leader's.
    token: Option<FencingToken>,
}

impl Election {
    async fn of(other: Kind) -> Option<Self> {
        let ensemble = Ensemble::start(1).await?;
        if !other.available() {
            return None;
        }
        let client = ensemble.client().await;
        // LeaderElectionSupport does not create it.
        make(&client, ROOT).await;
        Some(Self { ensemble, other, client, token: None })
    }

    fn config(&self, name: &str) -> Config {
        self.ensemble.config(ROOT, name).naming(self.other.naming())
    }

    /// One of ours behind all others.
    async fn ours(&self, config: Config) -> Candidate {
        let candidate = Candidate::start(config).await.unwrap();
        standing(&candidate, "ours to wait", |status| status.state == State::Ready).await;
        candidate
    }

    /// One in a process of its own behind all others, as one of ours sees it.
    async fn process(&self, kind: Kind, name: &str, seen_by: &Candidate) -> Process {
        let process = Process::start(kind, &self.ensemble, ROOT, name, THEIR_SESSION).await;
        until("a process to wait", async || {
            names(seen_by).await.iter().any(|one| one == name).then_some(())
        })
        .await;
        process
    }

    /// One of theirs.
    async fn theirs(&self, name: &str, seen_by: &Candidate) -> Process {
        self.process(self.other, name, seen_by).await
    }

    /// One of ours that can be killed.
    async fn ours_apart(&self, name: &str, seen_by: &Candidate) -> Process {
        self.process(Kind::Ours(self.other.naming()), name, seen_by).await
    }

    /// Takes the seat for one of ours.
    async fn takes_seat(&self) {
        let mode = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        let taken = self.client.create(&seat(ROOT), b"ours", &mode).await;
        taken.expect("another leads at the same time");
    }

    /// One of ours leads, and nobody else does.
    async fn leads(&self, candidate: &Candidate) -> Leadership {
        let leadership = within("leadership", candidate.leadership()).await.unwrap();
        self.takes_seat().await;
        leadership
    }

    /// What ours has had since it leads.
    async fn leaves(&self) {
        self.client.delete(&seat(ROOT), None).await.unwrap();
    }

    /// All say that this one leads; its token is greater than the one before.
    async fn led_by(&mut self, name: &str, here: &[&Candidate], processes: &mut [&mut Process]) {
        for one in processes {
            assert_eq!(one.leader().await, name, "as {} says", one.name());
        }
        let mut token = None;
        for one in here {
            let leader = one.leader().await.unwrap().unwrap();
            assert_eq!(leader.name(), name);
            token = Some(leader.token);
        }
        assert!(token > self.token, "{token:?} after {:?}", self.token);
        self.token = token;
    }
}

/// Ours, theirs, ours, theirs, in this order; each dies or stops in turn, and those that were killed come again.
async fn all_agree_through_kills_and_restarts(other: Kind) {
    let Some(mut election) = Election::of(other).await else { return };
    let first = Candidate::start(election.config("ours-1")).await.unwrap();
    let leadership = election.leads(&first).await;
    let mut one = election.theirs("theirs-1", &first).await;
    let wire = election.ensemble.wire().await;
    let hosts = format!("127.0.0.1:{}", wire.port);
    // Half of its session is between its end and that of the session.
    let cautious = Settings::new("ours-2")
        .session_timeout(Duration::from_secs(6))
        .margin(Duration::from_secs(3));
    let cautious = Config::new(hosts, ROOT, cautious).naming(other.naming());
    let second = election.ours(cautious).await;
    let mut two = election.theirs("theirs-2", &second).await;
    assert_eq!(names(&second).await, ["ours-1", "theirs-1", "ours-2", "theirs-2"]);
    election.led_by("ours-1", &[&first, &second], &mut [&mut one, &mut two]).await;

    // Ours stops in order.
    election.leaves().await;
    drop(leadership);
    first.stop().await;
    one.says("leads").await;
    let third = election.ours(election.config("ours-3")).await;
    election.led_by("theirs-1", &[&second, &third], &mut [&mut one, &mut two]).await;

    // Theirs is killed: its session has to end. It comes again, behind one of ours.
    one.kill(LEFT).await;
    let leadership = election.leads(&second).await;
    let mut four = election.ours_apart("ours-4", &third).await;
    one = election.theirs("theirs-1", &third).await;
    let processes = &mut [&mut one, &mut two, &mut four];
    election.led_by("ours-2", &[&second, &third], processes).await;

    // Nothing more is heard of ours, and it lives on: it has stopped by when its session ends.
    wire.cut();
    assert_eq!(within("the loss", leadership.lost()).await, Lost::Deposed);
    election.leaves().await;
    two.says("leads").await;
    election.led_by("theirs-2", &[&third], &mut [&mut one, &mut two, &mut four]).await;

    // Theirs stops in order.
    two.stop();
    let leadership = election.leads(&third).await;
    election.led_by("ours-3", &[&third], &mut [&mut one, &mut four]).await;
    election.leaves().await;
    drop(leadership);
    four.says("leads").await;
    election.takes_seat().await;
    election.led_by("ours-4", &[&third], &mut [&mut one, &mut four]).await;

    // Ours is killed, and comes again.
    four.kill(LEFT).await;
    election.leaves().await;
    one.says("leads").await;
    four = election.ours_apart("ours-4", &third).await;
    election.led_by("theirs-1", &[&third], &mut [&mut one, &mut four]).await;
    assert_eq!(names(&third).await, ["theirs-1", "ours-3", "ours-4"]);

    // Those that have come again go on as all do.
    one.kill(LEFT).await;
    let leadership = election.leads(&third).await;
    election.led_by("ours-3", &[&third], &mut [&mut four]).await;
    election.leaves().await;
    drop(leadership);
    four.says("leads").await;
    election.led_by("ours-4", &[&third], &mut [&mut four]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_leader_election_support_all_agree_through_kills_and_restarts() {
    all_agree_through_kills_and_restarts(Kind::Support).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_curators_leader_latch_all_agree_through_kills_and_restarts() {
    all_agree_through_kills_and_restarts(Kind::Latch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_kazoos_election_all_agree_through_kills_and_restarts() {
    all_agree_through_kills_and_restarts(Kind::Kazoo).await;
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

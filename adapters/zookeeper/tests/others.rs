//! Together with the candidates of others in one election: Apache's LeaderElectionSupport, Curator's LeaderLatch,
//! and kazoo's Election, all as Debian has them.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod peers;

use std::time::Duration;

use quorate_zookeeper::{Candidate, Config, FencingToken, Leadership, Lost, Naming, State};
use zookeeper_client::{Acls, Client, CreateMode};

use self::peers::{Ensemble, Other, OtherCandidate, Wire, make, seat, standing, until, within};

const ROOT: &str = "/election";

/// One election, in which all say who leads.
struct Election {
    ensemble: Ensemble,
    other: Other,
    client: Client,
    /// The newest leader's.
    token: Option<FencingToken>,
}

impl Election {
    async fn of(other: Other) -> Option<Self> {
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

    /// One of theirs behind all others, as one of ours sees it.
    async fn theirs(&self, name: &str, seen_by: &Candidate) -> OtherCandidate {
        let theirs = OtherCandidate::start(self.other, &self.ensemble.hosts(), ROOT, name);
        until("theirs to wait", async || {
            row(seen_by).await.iter().any(|one| one == name).then_some(())
        })
        .await;
        theirs
    }

    /// One of ours leads, and nobody else does.
    async fn leads(&self, candidate: &Candidate) -> Leadership {
        let leadership = within("leadership", candidate.leadership()).await.unwrap();
        let mode = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        let taken = self.client.create(&seat(ROOT), b"ours", &mode).await;
        taken.expect("another leads at the same time");
        leadership
    }

    /// What ours has had since it leads.
    async fn leaves(&self) {
        self.client.delete(&seat(ROOT), None).await.unwrap();
    }

    /// All say that this one leads; its token is greater than the one before.
    async fn led_by(
        &mut self,
        name: &str,
        ours: &[&Candidate],
        theirs: &mut [&mut OtherCandidate],
    ) {
        for one in theirs {
            assert_eq!(one.leader().await, name, "as {} says", one.name());
        }
        let mut token = None;
        for one in ours {
            let leader = one.leader().await.unwrap().unwrap();
            assert_eq!(leader.name(), name);
            token = Some(leader.token);
        }
        assert!(token > self.token, "{token:?} after {:?}", self.token);
        self.token = token;
    }
}

async fn row(candidate: &Candidate) -> Vec<String> {
    let row = candidate.candidates().await.unwrap();
    row.iter().map(|one| one.name().into_owned()).collect()
}

/// Ours, theirs, ours, theirs, in this order; each dies or stops in turn, and others come.
async fn all_agree_through_kills_and_stops(other: Other) {
    let Some(mut election) = Election::of(other).await else { return };
    let first = Candidate::start(election.config("ours-1")).await.unwrap();
    let leadership = election.leads(&first).await;
    let mut one = election.theirs("theirs-1", &first).await;
    let server = election.ensemble.servers[0].as_ref().unwrap().client_port();
    let wire = Wire::to(server).await;
    let hosts = format!("127.0.0.1:{}", wire.port);
    // Half of its session is between its end and that of the session.
    let cautious = Config::new(hosts, ROOT, "ours-2").naming(other.naming());
    let cautious = cautious.session_timeout(Duration::from_secs(6)).margin(Duration::from_secs(3));
    let second = election.ours(cautious).await;
    let mut two = election.theirs("theirs-2", &second).await;
    assert_eq!(row(&second).await, ["ours-1", "theirs-1", "ours-2", "theirs-2"]);
    election.led_by("ours-1", &[&first, &second], &mut [&mut one, &mut two]).await;

    // Ours stops in order.
    election.leaves().await;
    drop(leadership);
    first.stop().await;
    one.leads().await;
    let third = election.ours(election.config("ours-3")).await;
    election.led_by("theirs-1", &[&second, &third], &mut [&mut one, &mut two]).await;

    // Theirs is killed: its session has to end.
    one.kill();
    let leadership = election.leads(&second).await;
    let mut three = election.theirs("theirs-3", &third).await;
    election.led_by("ours-2", &[&second, &third], &mut [&mut two, &mut three]).await;

    // Nothing more is heard of ours, as if it were killed: its session has to end. It has stopped by then.
    wire.cut();
    assert_eq!(within("the loss", leadership.lost()).await, Lost::Deposed);
    election.leaves().await;
    two.leads().await;
    election.led_by("theirs-2", &[&third], &mut [&mut two, &mut three]).await;

    // Theirs stops in order.
    two.stop();
    let leadership = election.leads(&third).await;
    election.led_by("ours-3", &[&third], &mut [&mut three]).await;
    election.leaves().await;
    drop(leadership);
    three.leads().await;
    election.led_by("theirs-3", &[&third], &mut [&mut three]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_leader_election_support_all_agree_through_kills_and_stops() {
    all_agree_through_kills_and_stops(Other::Support).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_curators_leader_latch_all_agree_through_kills_and_stops() {
    all_agree_through_kills_and_stops(Other::Latch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_kazoos_election_all_agree_through_kills_and_stops() {
    all_agree_through_kills_and_stops(Other::Kazoo).await;
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

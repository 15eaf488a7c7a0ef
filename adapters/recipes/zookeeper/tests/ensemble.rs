//! What happens underneath: servers of the ensemble die and come back, sessions are ended, processes paused.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use quorate_zookeeper::{Candidate, Config, Event, FencingToken, Leadership, Loss, State};

use crate::peers::{Ensemble, Wire, settings, standing, until, within};

/// Everybody who has led, in order. Nobody leads while somebody before may still act.
#[derive(Default)]
struct Leaderships {
    all: Mutex<Vec<Arc<Leadership>>>,
}

impl Leaderships {
    fn begin(&self, leadership: &Arc<Leadership>) {
        let mut all = self.all.lock().unwrap();
        for earlier in all.iter() {
            assert!(earlier.token() < leadership.token(), "tokens grow");
            assert!(earlier.check().is_err(), "two lead: {earlier:?} and {leadership:?}");
        }
        all.push(Arc::clone(leadership));
    }

    /// Waits until somebody leads.
    async fn led(&self) -> FencingToken {
        until("somebody who leads", async || {
            let leads = |one: &&Arc<Leadership>| one.check().is_ok();
            self.all.lock().unwrap().iter().find(leads).map(|one| one.token())
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_the_ensemble_die_and_come_back_and_never_two_lead() {
    let Some(mut ensemble) = Ensemble::start(3).await else { return };
    let leaderships = Arc::new(Leaderships::default());
    let mut candidates = Vec::new();
    for name in ["a", "b", "c"] {
        let candidate = ensemble.candidate("/election", name).await;
        let (competing, leaderships) = (candidate.clone(), Arc::clone(&leaderships));
        tokio::spawn(async move {
            while let Ok(leadership) = competing.leadership().await {
                let leadership = Arc::new(leadership);
                leaderships.begin(&leadership);
                leadership.lost().await;
                // Nothing new is tried here before the guard is gone.
                leaderships.all.lock().unwrap().retain(|one| !Arc::ptr_eq(one, &leadership));
            }
        });
        candidates.push(candidate);
    }
    leaderships.led().await;
    for _ in 0..2 {
        let leader = ensemble.leader().await;
        ensemble.servers[leader] = None;
        // The other two elect another one.
        ensemble.leader().await;
        leaderships.led().await;
        ensemble.run(leader);
        ensemble.serves().await;
        leaderships.led().await;
    }
    // All agree with the store on who leads.
    until("one opinion", async || {
        let leader = candidates[0].leader().await.ok()??;
        let leads: Vec<_> = candidates.iter().filter_map(|one| one.status().leads).collect();
        (leads == [leader.token]).then_some(())
    })
    .await;
    // And it goes on: the one who leads goes, the next one comes.
    let token = leaderships.led().await;
    let leads = candidates.iter().position(|one| one.status().leads == Some(token)).unwrap();
    within("the end", candidates[leads].stop()).await;
    let next = until("the next", async || {
        let next = candidates.iter().filter_map(|one| one.status().leads).max()?;
        (next > token).then_some(next)
    })
    .await;
    assert!(next > token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_ended_ends_the_term_and_the_next_one_has_another() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let server = ensemble.servers[0].as_ref().unwrap().client_port();
    let wire = Wire::to(server).await;
    let config = Config::new(format!("127.0.0.1:{}", wire.port), "/election", settings("me"));
    let candidate = Candidate::start(config).await.unwrap();
    let leadership = within("leadership", candidate.leadership()).await.unwrap();
    let second = ensemble.candidate("/election", "second").await;
    standing(&second, "the second to wait", |status| status.state == State::Ready).await;
    let mut events = candidate.events();
    // It cannot take its session back before that is over.
    wire.cut();
    within("the end of the session", wire.end_session(server)).await;
    wire.mend();
    within("the loss", leadership.lost()).await;
    let loss = async {
        loop {
            if let Event::Lost(loss) = events.next().await.unwrap() {
                return loss;
            }
        }
    };
    let loss = within("the event", loss).await;
    assert!(matches!(loss, Loss::Expired | Loss::Deleted), "{loss}");
    let next = within("leadership", second.leadership()).await.unwrap();
    assert!(leadership.token() < next.token() && leadership.check().is_err());
    drop(leadership);
    standing(&candidate, "the first to wait", |status| status.state == State::Ready).await;
    drop(next);
    assert!(within("leadership", candidate.leadership()).await.is_ok());
}

/// What is guarded: it takes nothing with a token smaller than it has seen.
#[derive(Default)]
struct Guarded(u64);

impl Guarded {
    fn write(&mut self, token: u64) -> bool {
        let takes = token >= self.0;
        self.0 = self.0.max(token);
        takes
    }
}

const CHILD_OF: &str = "QUORATE_TEST_HOSTS";

/// The process that is paused: not a test, but what the next one starts. Says its token, and then for each line
/// whether it may still act.
#[tokio::test]
async fn a_candidate_in_a_process_of_its_own() {
    let Ok(hosts) = std::env::var(CHILD_OF) else { return };
    let config = Config::new(hosts, "/election", settings("paused"));
    let candidate = Candidate::start(config).await.unwrap();
    let leadership = candidate.leadership().await.unwrap();
    println!("\ntoken {}", leadership.token());
    let mut line = String::new();
    // Blocks the only thread: nothing else is done before the first answer.
    while std::io::stdin().read_line(&mut line).unwrap() > 0 {
        println!("\nmay {}", leadership.check().is_ok());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_paused_finds_itself_lost_before_it_can_act() {
    let Some(ensemble) = Ensemble::start(1).await else { return };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["ensemble::a_candidate_in_a_process_of_its_own", "--exact", "--nocapture"])
        .env(CHILD_OF, ensemble.hosts())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut answer =
        |what: &str| output.find_map(|line| Some(line.strip_prefix(what)?.to_owned())).unwrap();
    let token: u64 = answer("token ").parse().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut ask = || input.write_all(b"?\n").unwrap();
    let mut guarded = Guarded::default();
    ask();
    assert_eq!(answer("may "), "true");
    assert!(guarded.write(token));

    let id = child.id().to_string();
    let signal = |signal: &str| {
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    };
    signal("-STOP");
    let second = ensemble.candidate("/election", "second").await;
    let leadership = within("leadership", second.leadership()).await.unwrap();
    assert!(leadership.token().as_u64() > token && guarded.write(leadership.token().as_u64()));
    // The question is there when it wakes up.
    ask();
    signal("-CONT");
    assert_eq!(answer("may "), "false");
    assert!(!guarded.write(token), "had it acted all the same, it would have been refused");
    assert!(leadership.check().is_ok());
    drop(child.kill());
    drop(child.wait());
}

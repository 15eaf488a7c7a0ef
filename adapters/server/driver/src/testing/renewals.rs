//! Links that are closed and made anew while an ensemble serves: for worn keys, for an authority that goes, on the way to TLS
//! and back. The leader stays, and no write is lost.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::report::Change;
use quorate_tls::Versions;
use socket2::{Domain, Socket, Type};

use super::certificates::{Authority, Flaw};
use super::journal::{App, numbered};
use super::tls::{failures, figure, links, secure, settings};
use super::{Ensemble, Stage, Task};
use crate::{Changes, Leader, Runtime, Server, WearingLink};

/// Proposes one after the other until it is told to stop; how many were acknowledged.
struct Writes {
    ends: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    task: Task<()>,
}

impl Writes {
    fn begin<R: Runtime>(stage: &Stage<R>, server: &Server<R, App>) -> Self {
        let (ends, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (server, end, counted) = (server.clone(), Arc::clone(&ends), Arc::clone(&count));
        let task = stage.spawn(async move {
            while !end.load(Ordering::Relaxed) {
                let number = counted.load(Ordering::Relaxed);
                server.propose(numbered(number, 8)).await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { ends, count, task }
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    async fn end<R: Runtime>(self, stage: &Stage<R>) -> usize {
        self.ends.store(true, Ordering::Relaxed);
        stage.within("the last write", self.task.join()).await;
        self.count.load(Ordering::Relaxed)
    }
}

/// Which learners a leader has lost and got back so far, one at a time or it panics.
#[derive(Default)]
struct Renewed {
    away: Option<ServerId>,
    back: Vec<ServerId>,
}

impl Renewed {
    fn hear(&mut self, changes: &mut Changes) {
        while let Some(observed) = changes.try_next() {
            if let Change::Learner { id, synced } = observed.report.change {
                if synced {
                    assert_eq!(self.away.take(), Some(id), "{id} comes");
                    self.back.push(id);
                } else {
                    assert_eq!(self.away.replace(id), None, "{id} goes, too");
                }
            }
            let elects =
                matches!(observed.report.change, Change::State { .. } | Change::Round { .. });
            assert!(!elects, "{}", observed.report);
        }
    }
}

/// Waits until each follower of a leader has gone and come back so often.
async fn each_renewed<R: Runtime>(
    stage: &Stage<R>,
    changes: &mut Changes,
    followers: &[ServerId],
    times: usize,
) {
    let renewed = std::cell::RefCell::new((Renewed::default(), changes));
    stage
        .within("links made anew", async {
            loop {
                {
                    let (renewed, changes) = &mut *renewed.borrow_mut();
                    renewed.hear(changes);
                    let of = |id| renewed.back.iter().filter(|back| **back == id).count();
                    if followers.iter().all(|id| of(*id) >= times) && renewed.away.is_none() {
                        return;
                    }
                }
                stage.runtime(0).sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
}

fn followers<R: Runtime>(ensemble: &Ensemble<R, App>, leader: ServerId) -> Vec<ServerId> {
    ensemble.ids().into_iter().filter(|id| *id != leader).collect()
}

pub async fn links_whose_keys_are_worn_are_made_anew_one_at_a_time_while_writes_go_on<
    R: Runtime,
>(
    stage: Stage<R>,
) {
    let authority = Authority::new("ours");
    // Learners that decided, too, would be two at once if one were away for as long as the others have until then.
    let (ensemble, agreed) = worn_at(&stage, &authority, LEADS).await;
    let leader = ensemble.server(LEADS);
    let wearing = leader.wearing_links();
    assert!(wearing.iter().all(|link| link.records_max == 1_000), "{wearing:?}");
    for id in followers(&ensemble, LEADS) {
        let is_it = |link: &&WearingLink| (link.plane, link.peer) == (Plane::Quorum, Some(id));
        assert!(wearing.iter().find(is_it).is_some_and(|link| link.records > 0), "{wearing:?}");
    }
    let mut changes = leader.changes();
    let writes = Writes::begin(&stage, leader);
    each_renewed(&stage, &mut changes, &followers(&ensemble, LEADS), 2).await;
    let count = writes.end(&stage).await;
    assert!(count > 500, "{count}");
    assert_eq!(ensemble.agreed().await, agreed, "no election");
    assert!(figure(leader, "quorate_tls_records_total{plane=\"quorum\"") > 2_000.0);
    for (_, server) in ensemble.running() {
        assert_eq!(stage.all_entries(server).await.len(), count);
    }
}

/// As where a Java server leads, which closes none.
pub async fn a_learner_makes_its_worn_link_anew_where_its_leader_does_not<R: Runtime>(
    stage: Stage<R>,
) {
    let authority = Authority::new("ours");
    let (ensemble, agreed) = worn_at(&stage, &authority, ServerId(2)).await;
    let leader = ensemble.server(LEADS);
    let mut changes = leader.changes();
    let writes = Writes::begin(&stage, leader);
    each_renewed(&stage, &mut changes, &[ServerId(2)], 2).await;
    let count = writes.end(&stage).await;
    assert!(count > 500, "{count}");
    assert_eq!(ensemble.agreed().await, agreed, "no election");
}

/// Three servers that speak TLS 1.2, of which this one holds its links for worn after few records.
async fn worn_at<R: Runtime>(
    stage: &Stage<R>,
    authority: &Authority,
    early: ServerId,
) -> (Ensemble<R, App>, Leader) {
    let mut ensemble = stage.journals(3, 0);
    ensemble.adjust = |config| config.changes_kept = 4096;
    let mut configs = ensemble.ids().into_iter().map(|id| {
        let mut config = secure(&ensemble, authority, id);
        let settings = config.tls.as_mut().unwrap();
        settings.versions = Versions { tls12: true, tls13: false };
        if id == early {
            settings.records_max = 1_000;
        }
        config
    });
    let configs = [configs.next_back(), configs.next(), configs.next()].map(Option::unwrap);
    let mut agreed = None;
    for config in configs {
        ensemble.start_as(config).await;
        // The first two need each other, and of them the larger id leads.
        if ensemble.running().count() == 2 {
            agreed = Some(ensemble.agreed().await);
        }
    }
    let agreed = agreed.unwrap();
    assert_eq!((ensemble.agreed().await, agreed.0), (agreed, LEADS));
    let leader = ensemble.server(LEADS);
    let synced = || leader.status().peer.learners.iter().filter(|at| at.synced).count() == 2;
    stage.until("both followers", synced).await;
    (ensemble, agreed)
}

/// Who leads there.
const LEADS: ServerId = ServerId(3);

pub async fn an_authority_is_replaced_in_three_steps_while_writes_go_on<R: Runtime>(
    stage: Stage<R>,
) {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let mut ensemble = stage.journals(3, 0);
    ensemble.adjust = |config| config.changes_kept = 4096;
    let ids = ensemble.ids();
    for id in &ids {
        let mut config = secure(&ensemble, &old, *id);
        config.tls.as_mut().unwrap().reload = Some(Duration::from_millis(20));
        ensemble.start_as(config).await;
    }
    let agreed = ensemble.agreed().await;
    let leader = ensemble.server(agreed.0);
    let synced = || leader.status().peer.learners.iter().filter(|at| at.synced).count() == 2;
    stage.until("both followers", synced).await;
    let mut changes = leader.changes();
    let writes = Writes::begin(&stage, leader);
    let write = |name: &str, text: &dyn Fn(ServerId) -> String| {
        for id in &ids {
            let dir = ensemble.data_dir(*id).with_extension("stores");
            let next = dir.join("next");
            fs::write(&next, text(*id)).unwrap();
            fs::rename(next, dir.join(name)).unwrap();
        }
    };
    let read = async |times: f64| {
        let has = |server| figure(server, "quorate_tls_reloads_total") > times - 0.5;
        stage.until("new stores", || ensemble.running().all(|(_, server)| has(server))).await;
    };
    write("trusted.pem", &|_| format!("{}{}", old.trusted(), new.trusted()));
    read(1.0).await;
    write("own.pem", &|id| new.for_server(id).own());
    read(2.0).await;
    assert!(leader.status().peer.learners.iter().all(|at| at.synced), "links stay");
    write("trusted.pem", &|_| new.trusted());
    read(3.0).await;
    each_renewed(&stage, &mut changes, &followers(&ensemble, agreed.0), 1).await;
    let before = writes.count();
    stage.until("more writes", || writes.count() > before).await;
    let count = writes.end(&stage).await;
    assert_eq!(ensemble.agreed().await, agreed, "no election");
    for (_, server) in ensemble.running() {
        assert_eq!(stage.all_entries(server).await.len(), count);
    }
}

/// A list that comes takes a member's links away, and keeps it out with a reason; the others go on.
pub async fn a_member_whose_certificate_is_taken_back_is_out_when_the_list_is_there<R: Runtime>(
    stage: Stage<R>,
) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.journals(3, 0);
    for id in ensemble.ids() {
        let mut config = secure(&ensemble, &authority, id);
        let settings = config.tls.as_mut().unwrap();
        settings.reload = Some(Duration::from_millis(20));
        settings.revoked = Some(authority.takes_back(settings, &[ServerId(200)]));
        ensemble.start_as(config).await;
    }
    let (leader, epoch) = ensemble.agreed().await;
    let out = followers(&ensemble, leader)[0];
    let writes = Writes::begin(&stage, ensemble.server(leader));
    for id in ensemble.ids() {
        let lists = ensemble.data_dir(id).with_extension("stores").join("lists.pem");
        fs::write(lists, authority.revoked(&[out])).unwrap();
    }
    let server = ensemble.server(leader);
    let is_out = || {
        let status = server.status().peer;
        !status.linked.contains(&out) && status.learners.iter().all(|at| at.id != out)
    };
    stage.until("one that is out", is_out).await;
    let sides = ["accept", "dial"];
    let refused = || sides.iter().any(|side| failures(server, "election", side, "revoked") > 0);
    stage.until("a reason", refused).await;
    let before = writes.count();
    stage.until("more writes", || writes.count() > before).await;
    writes.end(&stage).await;
    // On a busy machine it may be another by now, but none that was taken back.
    let (leads, now) = ensemble.agreed_but_for(&[out]).await;
    assert!(leads != out && now >= epoch);
}

pub async fn a_link_whose_certificate_ends_is_told_and_closed_only_if_that_is_wanted<R: Runtime>(
    stage: Stage<R>,
) {
    for closes in [false, true] {
        let authority = Authority::new("ours");
        let mut ensemble = stage.electors(3, 0);
        let [.., last] = ensemble.ids()[..] else { panic!("three servers") };
        for id in ensemble.ids() {
            let mut config = secure(&ensemble, &authority, id);
            if id == last {
                let soon = authority.with_flaw(id, Some(Flaw::EndsSoon));
                config.tls = Some(settings(&ensemble, &authority, &soon, id));
            }
            let settings = config.tls.as_mut().unwrap();
            settings.reload = Some(Duration::from_millis(20));
            settings.close_expired = closes;
            ensemble.start_as(config).await;
        }
        let (leader, _) = ensemble.agreed().await;
        let other = ensemble.server(ensemble.other_than(&[leader, last]));
        let linked = || other.status().peer.linked.contains(&last);
        stage.until("a link", linked).await;
        if closes {
            stage.until("no link", || !linked()).await;
        } else {
            stage.until("an end", || figure(other, "quorate_tls_expired_links") > 0.5).await;
            // Two pings and an answer: longer than it would take to close it.
            let leads = ensemble.server(if leader == last { other.id() } else { leader });
            let begins = format!("quorate_tls_records_total{{plane=\"quorum\",peer=\"{last}\"");
            let before = figure(leads, &begins);
            stage.until("more", || figure(leads, &begins) > before + 2.5).await;
            assert!(linked());
        }
    }
}

/// As ZooKeeper's documentation has it, three steps there and the same back, one server restarted at a time.
pub async fn an_ensemble_comes_to_tls_and_goes_back_and_no_write_is_lost<R: Runtime>(
    stage: Stage<R>,
) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.journals(3, 0);
    ensemble.start_all().await;
    let (mut written, mut epochs) = (0, vec![ensemble.agreed().await.1]);
    let mut leaders = 0;
    let there = [Some((false, true)), Some((true, true)), Some((true, false))];
    let back = [Some((true, true)), Some((false, true)), None];
    for step in there.into_iter().chain(back) {
        for id in ensemble.ids() {
            let (leader, epoch) = ensemble.agreed().await;
            // Of one that stays; what is under way when the leader goes is asked for again by the server.
            let writes = Writes::begin(&stage, ensemble.server(ensemble.other_than(&[id])));
            stage.until("a write before", || writes.count() > 0).await;
            leaders += usize::from(id == leader);
            ensemble.kill(id).await;
            if id == leader {
                // One that is back in the middle of the election may be a candidate in it, and lead to another.
                ensemble.agreed().await;
            }
            let mut config = ensemble.config(id);
            if let Some((dials_tls, accepts_plain)) = step {
                config = secure(&ensemble, &authority, id);
                let settings = config.tls.as_mut().unwrap();
                (settings.dials_tls, settings.accepts_plain) = (dials_tls, accepts_plain);
            }
            ensemble.start_as(config).await;
            let now = ensemble.agreed().await;
            let before = writes.count();
            stage.until("a write behind", || writes.count() > before).await;
            written += writes.end(&stage).await;
            let elections = now.1.0 - epoch.0;
            assert!(elections <= i64::from(id == leader), "{elections} for {id}, led by {leader}");
            epochs.push(now.1);
        }
        if step == Some((true, false)) {
            let none_is_plain = || ensemble.running().all(|(_, server)| links(server, false) < 0.5);
            stage.until("no plain link", none_is_plain).await;
        }
    }
    assert!(leaders > 0 && epochs.is_sorted());
    for (id, server) in ensemble.running() {
        let entries = stage.all_entries(server).await;
        assert_eq!(entries.len(), written, "{id}: each that was acknowledged, once");
    }
}

/// Connects from an address of its own, begins a handshake, and says no more.
fn half_a_handshake(to: SocketAddr, number: usize) -> Option<TcpStream> {
    let [.., third, fourth] = u32::try_from(number).unwrap().to_be_bytes();
    let from = SocketAddr::from(([127, 1, third, fourth.max(1)], 0));
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&from.into()).ok()?;
    socket.connect(&to.into()).ok()?;
    let mut stream = TcpStream::from(socket);
    stream.write_all(&[0x16, 3, 1]).ok()?;
    Some(stream)
}

pub async fn a_thousand_half_handshakes_of_strangers_keep_no_member_out<R: Runtime>(
    stage: Stage<R>,
) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.electors(3, 0);
    let [first, second, third] = ensemble.ids()[..] else { panic!("three servers") };
    let config = |ensemble: &Ensemble<R>, id| {
        let mut config = secure(ensemble, &authority, id);
        config.introduction_timeout = Some(Duration::from_secs(3600));
        config.tls.as_mut().unwrap().handshake_time = Duration::from_secs(3600);
        config
    };
    for id in [first, second] {
        ensemble.start_as(config(&ensemble, id)).await;
    }
    let (leader, _) = ensemble.agreed().await;
    let ports = [first, second].into_iter().flat_map(|id| {
        [Plane::Election, Plane::Quorum].map(|plane| {
            let at = ensemble.port(id, plane);
            SocketAddr::new(at.host.parse().unwrap(), at.port)
        })
    });
    let (ports, ends) = (ports.collect::<Vec<_>>(), Arc::new(AtomicBool::new(false)));
    let (end, count) = (Arc::clone(&ends), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    let flood = std::thread::spawn(move || {
        let mut held = VecDeque::new();
        for number in 1..60_000 {
            held.extend(half_a_handshake(ports[number % ports.len()], number));
            counted.store(number, Ordering::Relaxed);
            if held.len() > 300 {
                // It is let go when its place was taken, or soon: one that is over before it is accepted takes none.
                let mut oldest: TcpStream = held.pop_front().unwrap();
                oldest.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                drop(oldest.read(&mut [0]));
            }
            if end.load(Ordering::Relaxed) && number > 1_000 {
                break;
            }
        }
    });
    stage.until("a flood", || count.load(Ordering::Relaxed) > 500).await;
    ensemble.start_as(config(&ensemble, third)).await;
    assert_eq!(ensemble.agreed().await.0, leader);
    let evicted = |id| ensemble.server(id).status().metrics.evicted_introductions;
    stage.until("a thousand", || count.load(Ordering::Relaxed) > 1_000).await;
    stage.until("hundreds evicted", || evicted(first) + evicted(second) > 500).await;
    ends.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    ensemble.kill(leader).await;
    ensemble.agreed().await;
}

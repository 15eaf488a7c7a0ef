//! Everything that is looked at, at once, and each look until its time is up.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_doctor::{Bench, ConfigFile, DataDir, Facts, Looks, Machine, Member, Words};
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::zoo_cfg::ConfigError;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::dirs::{self, Place};
use super::http::Admin;
use super::stores::Handshake;
use super::{host, links, logs, names, ports, reverse, stores};
use crate::peer_tls::PeerTls;

/// Configurations, and those that cannot be read.
#[derive(Default)]
pub(super) struct Files {
    pub(super) read: Vec<ConfigFile>,
    pub(super) broken: Vec<(PathBuf, ConfigError)>,
}

impl Files {
    /// All of them were read, be they broken.
    fn looks(&self) -> Looks {
        let mut looks = Looks::default();
        for file in &self.read {
            looks.done("zoo.cfg", file.id, file.path.display().to_string());
        }
        for (path, _) in &self.broken {
            looks.done("zoo.cfg", None, path.display().to_string());
        }
        looks
    }
}

/// What is to be looked at.
pub(super) struct Question {
    pub(super) files: Files,
    pub(super) logs: Vec<(Option<ServerId>, PathBuf)>,
    pub(super) dirs: Vec<PathBuf>,
    pub(super) bench: bool,
    /// Admin servers of members.
    pub(super) admins: BTreeMap<ServerId, Admin>,
    /// Where members are to dial back.
    pub(super) reverse: Option<HostPort>,
    /// What it takes to ask ports that speak TLS.
    pub(super) tls: Option<PeerTls>,
    pub(super) budget: Duration,
}

/// What was seen, and where one looked.
pub(super) struct Gathered {
    pub(super) facts: Facts,
    pub(super) looks: Looks,
}

/// Looks everywhere.
pub(super) async fn gather(question: Question) -> Gathered {
    let Question { files, logs, dirs, bench, admins, reverse, tls, budget } = question;
    let begun = Instant::now();
    let end = begun + budget * 9 / 10;
    let mut looks = files.looks();
    let Files { read: files, broken } = files;
    let places = dirs::places(&files, dirs, &mut looks);
    let reading: Vec<_> = places.into_iter().map(|place| Reading::of(place, bench)).collect();
    let log_files = logs.clone();
    let logs_read = spawn_blocking(move || logs::read(&log_files));
    let config_paths: Vec<_> = files.iter().map(|file| (file.path.clone(), file.id)).collect();
    let machine = spawn_blocking(move || host::machine(&config_paths));
    let (named_stores, now) = (stores::named(&files), seconds_now());
    let stores_read = spawn_blocking(move || stores::look(&named_stores, now));

    let mut facts = Facts { files, broken, now: Some(now), ..Facts::default() };
    let patience = budget / 4;
    let named = tokio::spawn(names::resolve(names::hosts(&facts), patience));
    let mut seen = ports::look(ports::targets(&facts, &admins), patience, tls.as_ref()).await;
    facts.members = std::mem::take(&mut seen.members);
    facts.hosts = named.await.unwrap_or_default();
    let at_home = facts.files.iter().any(|file| file.is_at_home);
    if at_home {
        facts.links = links::look(&facts, patience).await.unwrap_or_default();
    }
    if facts.should_look_again() {
        let first = begun.elapsed();
        sleep_until(begun + budget / 2).await;
        facts.seconds_between = (begun.elapsed().saturating_sub(first)).as_secs_f64();
        let again = ports::targets(&facts, &admins);
        facts.links_before = std::mem::take(&mut facts.links);
        facts.before = std::mem::take(&mut facts.members);
        seen = ports::look(again, patience, tls.as_ref()).await;
        facts.members = std::mem::take(&mut seen.members);
    }
    ports::tell(&facts, &mut looks);
    if let Some(address) = reverse {
        dial_back(&mut facts, &mut looks, &address, patience.min(end - Instant::now())).await;
    }
    if at_home {
        match links::look(&facts, patience.min(end - Instant::now())).await {
            Ok(links) => {
                looks.done("links of this host", None, "ss".to_owned());
                facts.links = links;
            }
            Err(because) => looks.failed("links of this host", None, "ss".to_owned(), because),
        }
    }

    for reading in reading {
        facts.dirs.push(reading.end(end, &mut looks).await);
    }
    match timeout_at(end, logs_read).await {
        Ok(Ok(read)) => read.told(&mut facts, &mut looks),
        Ok(Err(_)) | Err(_) => {
            for (id, path) in logs {
                looks.failed("log", id, path.display().to_string(), NO_TIME.to_owned());
            }
        }
    }
    (facts.stores, facts.readable) =
        timeout_at(end, stores_read).await.ok().and_then(Result::ok).unwrap_or_default();
    certificates(&mut facts, &mut looks, seen.shown);
    if !facts.files.is_empty() {
        facts.machine = machine_of(machine, end, &mut looks).await;
    }
    Gathered { facts, looks }
}

/// What is in the stores that were read, and what members have shown.
fn certificates(facts: &mut Facts, looks: &mut Looks, shown: Vec<Handshake>) {
    for stores in &facts.stores {
        looks.done("stores", stores.id, stores.file.display().to_string());
    }
    facts.served = stores::served(shown, facts.membership());
    facts.distrusted = stores::distrusted(&facts.stores, &facts.served);
    for served in &facts.served {
        looks.done("certificate", Some(served.id), served.address.to_string());
    }
}

/// Has the members that the files name dial back. Servers of ours do so only where the membership may change, since only then
/// a stranger may be one that joins.
async fn dial_back(facts: &mut Facts, looks: &mut Looks, address: &HostPort, patience: Duration) {
    let what = "dialling back";
    let files = facts.files.iter().filter_map(ConfigFile::cfg).filter(|cfg| !cfg.alone);
    let named = files.flat_map(|cfg| cfg.membership.members());
    let named: BTreeMap<_, _> =
        named.map(|member| (member.id, member.election_address().clone())).collect();
    let joins = facts.files.iter().filter_map(ConfigFile::cfg).any(|cfg| cfg.reconfig_enabled);
    let mut members = Vec::new();
    for (id, at) in named {
        let seen = facts.member(id);
        let is_ours = seen.and_then(Member::words).is_some_and(Words::is_ours);
        if seen.is_none_or(|seen| seen.heard().is_none()) {
            looks.failed(what, Some(id), at.to_string(), "it does not answer here".to_owned());
        } else if is_ours && !joins {
            let because = "servers of ours dial strangers only with reconfigEnabled=true";
            looks.failed(what, Some(id), at.to_string(), because.to_owned());
        } else {
            members.push((id, at));
        }
    }
    let asked: Vec<_> = members.iter().map(|(id, at)| (*id, at.to_string())).collect();
    match reverse::ask(members, address, patience).await {
        Ok(dialled) => {
            asked.into_iter().for_each(|(id, at)| looks.done(what, Some(id), at));
            facts.dialled_back = dialled;
        }
        Err(error) => looks.failed(what, None, address.to_string(), error.to_string()),
    }
}

impl logs::Read {
    fn told(self, facts: &mut Facts, looks: &mut Looks) {
        for (path, log) in self.logs {
            match log {
                Ok(log) => {
                    looks.done("log", log.id, path.display().to_string());
                    facts.logs.push(log);
                }
                Err((id, because)) => looks.failed("log", id, path.display().to_string(), because),
            }
        }
        (facts.clocks, facts.elected) = (self.clocks, self.elected);
    }
}

async fn machine_of(machine: JoinHandle<Machine>, end: Instant, looks: &mut Looks) -> Machine {
    if let Ok(Ok(machine)) = timeout_at(end, machine).await {
        looks.done("this host", None, "/proc".to_owned());
        return machine;
    }
    looks.failed("this host", None, "/proc".to_owned(), NO_TIME.to_owned());
    Machine::default()
}

/// A directory that is being read.
struct Reading {
    place: Place,
    dir: DataDir,
    history: JoinHandle<Result<dirs::History, String>>,
    bench: Option<JoinHandle<Result<Bench, String>>>,
}

impl Reading {
    /// What it lies on is seen at once; what is in it may take long.
    fn of(place: Place, bench: bool) -> Self {
        let dir = dirs::surface(&place);
        let (read, measured) = (place.clone(), place.clone());
        Self {
            history: spawn_blocking(move || dirs::history(&read)),
            bench: bench.then(|| spawn_blocking(move || dirs::bench(&measured))),
            place,
            dir,
        }
    }

    async fn end(self, end: Instant, looks: &mut Looks) -> DataDir {
        let Self { place, mut dir, history, bench } = self;
        let shown = place.dir.display().to_string();
        match timeout_at(end, history).await {
            Ok(Ok(Ok(history))) => {
                looks.done("data directory", place.id, shown.clone());
                dir.history = Some(history.report);
                dir.strays = history.strays;
                dir.readable = history.readable;
            }
            Ok(Ok(Err(because))) => {
                looks.failed("data directory", place.id, shown.clone(), because)
            }
            Ok(Err(_)) | Err(_) => {
                looks.failed("data directory", place.id, shown.clone(), NO_TIME.to_owned());
            }
        }
        if let Some(bench) = bench {
            match timeout_at(end, bench).await {
                Ok(Ok(Ok(bench))) => {
                    looks.done("writes to the disk", place.id, shown);
                    dir.bench = Some(bench);
                }
                Ok(Ok(Err(because))) => {
                    looks.failed("writes to the disk", place.id, shown, because)
                }
                Ok(Err(_)) | Err(_) => {
                    looks.failed("writes to the disk", place.id, shown, NO_TIME.to_owned());
                }
            }
        }
        dir
    }
}

const NO_TIME: &str = "it was not read within the budget; give it more with --budget";

/// In seconds since 1970.
fn seconds_now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

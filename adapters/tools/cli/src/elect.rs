//! `quorate elect`: runs a command while this process leads, by an election in ZooKeeper or etcd.
//!
//! ```text
//!   quorate elect ... -- COMMAND        competes, and runs COMMAND while it leads     see `work`
//!   quorate elect ... --candidates      the candidates, the leader first              see `candidates`
//!   quorate elect ... --who             the leader
//!   quorate elect ... --who --follow    the same, and each change of it
//! ```
//!
//! The command is a process group of its own, so that all of it ends with the leadership, see `child`.
//!
//! What it does not do: it cannot hold back what a paused machine still has under way. Whatever the command
//! writes to has to refuse tokens smaller than it has seen; the token is in the command's environment.

mod candidates;
mod child;
mod designate;
mod page;
mod work;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use quorate_zookeeper::{Access, Config, Designation, Naming, Settings, ZooKeeper};

use self::candidates::Shown;
pub(crate) use self::child::{Arguments as ChildArguments, become_command};
pub(crate) use self::designate::{Arguments as DesignateArguments, designate_leader};
use crate::failure::Failure;
use crate::through_tls::TlsArguments;

/// Run a command only while this process leads, by an election in ZooKeeper or etcd.
///
/// All that name the same store and path compete. The command has QUORATE_FENCING_TOKEN (greater than every
/// earlier leader's), QUORATE_LEADER (this identity) and QUORATE_ELECTION (the path) in its environment.
/// When leadership is lost, it gets SIGTERM, and SIGKILL after the grace, which ends before the store can
/// let another candidate lead. Signals are passed on to it. The exit code is the command's, 128 and the signal's
/// number if one ended it, 1 if leadership was lost.
///
/// It starts under Apache ZooKeeper's own recipe with `--naming java`, in one election with Java's
/// LeaderElectionSupport.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    tls: TlsArguments,
    /// The election: a path of ZooKeeper, a prefix of etcd.
    #[arg(long, value_name = "PATH")]
    path: String,
    /// The name of this candidate; the host's name if it is not given.
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// offer: candidates queue, and one that goes wakes the next. lease: one key, and a leader that goes wakes all.
    #[arg(long, value_enum, default_value_t = RecipeName::Offer)]
    recipe: RecipeName,
    /// The names of the offers in ZooKeeper, to compete with other libraries' candidates.
    #[arg(long, value_enum, default_value_t = NamingName::Guid)]
    naming: NamingName,
    /// After how many milliseconds of silence the store gives a leader up.
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..))]
    session_timeout: u64,
    /// How many milliseconds the command has after SIGTERM; a fifth of the session's time-out if it is not given.
    #[arg(long, value_name = "MS")]
    grace: Option<u64>,
    /// How many milliseconds the store may take to answer.
    #[arg(long, value_name = "MS", default_value_t = 5000)]
    deadline: u64,
    /// When the command has ended, or leadership is lost: whether to compete again.
    #[arg(long, value_enum, default_value_t = Restart::Never)]
    restart: Restart,
    /// The credentials for the store: digest:USER:PASSWORD for ZooKeeper, USER:PASSWORD for etcd. From a file
    /// that only its user may read: @FILE.
    #[arg(long, value_name = "PROOF")]
    auth: Option<String>,
    /// With --auth and ZooKeeper: no other user may touch the nodes.
    #[arg(long, requires = "auth")]
    private: bool,
    /// Where `quorate designate` names the leader while the store is out of reach: a file, or the http:// URL of one.
    /// The token is the operator's then.
    #[arg(long, value_name = "FILE|URL")]
    designation: Option<PathBuf>,
    /// For how many seconds a designation counts.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, requires = "designation")]
    designation_age: u64,
    /// Print the candidates, the leader first, and end.
    #[arg(long, conflicts_with = "command")]
    candidates: bool,
    /// Print the leader, and end.
    #[arg(long, conflicts_with_all = ["command", "candidates"])]
    who: bool,
    /// Print each change, as the store tells of it: of the candidates, of the leader with --who, or, with a command, of
    /// this candidate (on stderr). Ends with exit code 3 when its session with the store does, or none is to be had.
    #[arg(long)]
    follow: bool,
    /// One JSON object per line.
    #[arg(long)]
    json: bool,
    /// What to log, such as "debug"; before RUST_LOG. "warn" if neither.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// The command, and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct StoreArguments {
    /// A ZooKeeper ensemble: zk1:2181,zk2:2181,zk3:2181.
    #[arg(long, value_name = "HOSTS")]
    zookeeper: Option<String>,
    /// An etcd cluster: http://etcd1:2379,http://etcd2:2379, or https:// with --ca or --tls. Needs a build with the feature `etcd`.
    #[arg(long, value_name = "ENDPOINTS")]
    etcd: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RecipeName {
    Offer,
    Lease,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NamingName {
    /// A unique id, -n_ and the counter.
    Guid,
    /// n_ and the counter, as Java's LeaderElectionSupport.
    Java,
    /// The session, - and the counter.
    Session,
    /// As Curator's LeaderLatch.
    Latch,
    /// As kazoo's Election.
    Kazoo,
}

/// When to compete again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Restart {
    /// End when the command ends, or leadership is lost.
    Never,
    /// Compete again if the command failed, or leadership was lost.
    OnFailure,
    /// Compete again whatever the command's end.
    Always,
}

/// `quorate elect`.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    crate::logs::start(arguments.log.as_deref(), "warn")?;
    let asks = arguments.candidates || arguments.who || arguments.follow;
    if arguments.command.is_empty() && !asks {
        return Err(Failure::usage(
            "what to do? a COMMAND after --, or --candidates, or --who, or --follow",
        ));
    }
    let times = Times::new(&arguments)?;
    let identity = identity(&arguments)?;
    if let Some(endpoints) = &arguments.store.etcd {
        return through_etcd(endpoints, &identity, times, &arguments).await;
    }
    let hosts = arguments.store.zookeeper.clone().unwrap_or_default();
    let config = zookeeper(hosts, identity.clone(), times, &arguments)?;
    dispatch::<ZooKeeper>(&config, &identity, times, &arguments).await
}

/// With a store at hand.
async fn dispatch<S: quorate_recipes::Store<Config: Clone + Sync>>(
    config: &S::Config,
    identity: &str,
    times: Times,
    arguments: &Arguments,
) -> Result<(), Failure> {
    if arguments.command.is_empty() {
        let shown = if arguments.who { Shown::Leader } else { Shown::All };
        candidates::run::<S>(config, shown, arguments.follow, arguments.json).await
    } else {
        let work = work::Work {
            command: arguments.command.clone(),
            identity: identity.to_owned(),
            path: arguments.path.clone(),
            restart: arguments.restart,
            grace: times.grace,
            told: arguments.follow.then_some(arguments.json),
        };
        work::run::<S>(config.clone(), work).await
    }
}

fn zookeeper(
    hosts: String,
    identity: String,
    times: Times,
    arguments: &Arguments,
) -> Result<Config, Failure> {
    let settings = settings(identity, times, arguments);
    let mut config = Config::new(hosts, arguments.path.clone(), settings);
    if arguments.recipe == RecipeName::Offer {
        config = config.naming(match arguments.naming {
            NamingName::Guid => Naming::Guid,
            NamingName::Java => Naming::Java,
            NamingName::Session => Naming::Session,
            NamingName::Latch => Naming::Latch,
            NamingName::Kazoo => Naming::Kazoo,
        });
    }
    if let Some(proof) = proof(arguments)? {
        let Some((scheme, proof)) = proof.split_once(':') else {
            return Err(Failure::usage(
                "--auth is SCHEME:PROOF for ZooKeeper: digest:USER:PASSWORD",
            ));
        };
        config = config.credentials(scheme, proof.to_owned());
    }
    #[cfg(feature = "client-tls")]
    if let Some(options) = arguments.tls.options()? {
        config = config.tls(options);
    }
    Ok(if arguments.private { config.access(Access::Creator) } else { config })
}

#[cfg(feature = "etcd")]
async fn through_etcd(
    endpoints: &str,
    identity: &str,
    times: Times,
    arguments: &Arguments,
) -> Result<(), Failure> {
    let endpoints = endpoints.split(',').map(str::trim);
    let settings = settings(identity.to_owned(), times, arguments);
    let mut config = quorate_etcd::Config::new(endpoints, &arguments.path, settings);
    if let Some(proof) = proof(arguments)? {
        let Some((name, password)) = proof.split_once(':') else {
            return Err(Failure::usage("--auth is USER:PASSWORD for etcd"));
        };
        config = config.user(name, password);
    }
    #[cfg(feature = "client-tls")]
    if let Some(pem) = arguments.tls.read()? {
        config = config.authorities(pem.authorities);
        if let Some((chain, key)) = pem.identity {
            config = config.identity(chain, key.as_str());
        }
    }
    dispatch::<quorate_etcd::Etcd>(&config, identity, times, arguments).await
}

#[cfg(not(feature = "etcd"))]
async fn through_etcd(_: &str, _: &str, _: Times, _: &Arguments) -> Result<(), Failure> {
    Err(Failure::usage(
        "this quorate was built without etcd: cargo build --release -p quorate --features etcd (needs protoc)",
    ))
}

/// The settings that do not depend on the store.
fn settings(identity: String, times: Times, arguments: &Arguments) -> Settings {
    let mut settings = Settings::new(identity)
        .session_timeout(times.session)
        .margin(times.margin)
        .deadline(times.deadline);
    if arguments.recipe == RecipeName::Lease {
        settings = settings.lease();
    }
    settings.designation = designation(arguments);
    settings
}

fn designation(arguments: &Arguments) -> Option<Designation> {
    let age = Duration::from_secs(arguments.designation_age);
    arguments.designation.as_ref().map(|place| match place.to_str() {
        Some(url) if url.starts_with("http://") => Designation::page(url, age),
        Some(_) | None => Designation::file(place, age),
    })
}

/// What may stand on the command line, or in a file.
fn proof(arguments: &Arguments) -> Result<Option<String>, Failure> {
    let Some(given) = &arguments.auth else { return Ok(None) };
    let Some(file) = given.strip_prefix('@') else { return Ok(Some(given.clone())) };
    match std::fs::read_to_string(file) {
        Ok(proof) => Ok(Some(proof.trim_end().to_owned())),
        Err(error) => Err(Failure::usage(format!("--auth: {file}: {error}"))),
    }
}

fn identity(arguments: &Arguments) -> Result<String, Failure> {
    if let Some(identity) = &arguments.identity {
        return Ok(identity.clone());
    }
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() {
        return Err(Failure::usage("this host has no name: which --identity?"));
    }
    Ok(name)
}

/// How long things may take.
///
/// ```text
///   last confirmed contact was sent                              the store may end the session
///   ├──────────────── leads ────────────────┼── grace ──┼ a tenth ─┤
///                                        SIGTERM     SIGKILL
/// ```
#[derive(Clone, Copy, Debug)]
struct Times {
    session: Duration,
    grace: Duration,
    margin: Duration,
    deadline: Duration,
}

impl Times {
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let session = Duration::from_millis(arguments.session_timeout);
        let grace = arguments.grace.map_or(session / 5, Duration::from_millis);
        // Half passes until a heartbeat counts and the next one does; some of the rest has to be left to lead in.
        if grace > session / 4 {
            return Err(Failure::usage(format!(
                "a grace of {} ms is more than a quarter of the session's time-out, {} ms",
                grace.as_millis(),
                session.as_millis()
            )));
        }
        let deadline = Duration::from_millis(arguments.deadline);
        Ok(Self { session, grace, margin: grace + session / 10, deadline })
    }
}

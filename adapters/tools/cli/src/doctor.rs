//! `quorate doctor`: looks at an ensemble, Java's or ours, and says what is wrong and what to do about it.
//!
//! ```text
//!   zoo.cfg files ─┐
//!   names, ports ──┤
//!   directories ───┼──► Facts ──► quorate-doctor: rules, one cause one finding ──► text, or JSON
//!   this host ─────┤
//!   logs ──────────┘
//! ```
//!
//! Here facts are gathered, since ports need a runtime; what they mean is `quorate-doctor`'s. Nothing is changed but with
//! `--bench-disk`, which writes to a file of its own and removes it, and `--reverse`, which makes members dial. Each look has an end: all members are asked at once,
//! for a quarter of the budget, and once more in its middle if the first answers are reason to; what is not ready when nine
//! tenths of it have gone is named as not looked at.

mod dirs;
mod gather;
mod host;
mod http;
mod links;
mod logs;
mod names;
mod ports;
mod reverse;
mod stores;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use quorate_doctor::{ConfigFile, Level, Report, diagnose, rule, rules, text};
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::zoo_cfg::{ConfigError, JvmFlags};

use self::gather::{Files, Gathered, Question, gather};
use crate::address::address;
use crate::duration::{DurationError, duration};
use crate::failure::Failure;
use crate::migrate::{Source, source};
use crate::paint::Paint;
use crate::peer_tls::PeerTlsArguments;
use crate::utc::utc;

/// Say what is wrong with an ensemble, and what to do about it.
///
/// Works on ZooKeeper's servers as well as ours: it reads zoo.cfg files, asks election ports as a stranger and client
/// ports with four-letter words, and reads data directories, logs and limits of this machine. Changes nothing. Exits with
/// 0 if nothing was found that matters as much as --fail-on says, with 1 if something was, with 3 if nothing could be
/// looked at.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The zoo.cfg of this host, and of other members. N=FILE says that it is server N's, if its dataDir with myid is not
    /// here. If absent, /etc/quorate/zoo.cfg or /etc/zookeeper/conf/zoo.cfg.
    #[arg(value_name = "[N=]ZOO.CFG", value_parser = source)]
    files: Vec<Source>,
    /// Logs of servers, Java's or ours, also compressed with gzip; N=FILE for server N's.
    #[arg(long, value_name = "[N=]FILE", num_args = 1.., value_parser = source)]
    logs: Vec<Source>,
    /// More data directories, of servers that are stopped, for instance.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    data: Vec<PathBuf>,
    /// The admin server of a member, asked where its client port says nothing: 2=http://zk2:8080, or https: with --tls.
    #[arg(long, value_name = "ID=URL", num_args = 1.., value_parser = http::member)]
    member: Vec<(ServerId, http::Admin)>,
    /// Have the members dial back: listen there, and introduce oneself to each with id 0 and this address, as they see it.
    /// ZooKeeper's servers keep a mailbox for that id until they are restarted, and warn in their logs.
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    reverse: Option<HostPort>,
    #[command(flatten)]
    tls: PeerTlsArguments,
    /// Measure how long writes take to be safe, in a file beside each server's log: it is removed again.
    #[arg(long)]
    bench_disk: bool,
    /// How long all of it may take: `10s`, `1500ms`.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = budget)]
    budget: Duration,
    /// From which level on the exit code is 1.
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    fail_on: FailOn,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    /// Print all that there is to say about a rule, and do nothing else.
    #[arg(long, value_name = "RULE", exclusive = true)]
    explain: Option<String>,
    /// Print all rules, and do nothing else.
    #[arg(long, exclusive = true)]
    rules: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Error,
    Warning,
    Notice,
}

impl From<FailOn> for Level {
    fn from(level: FailOn) -> Self {
        match level {
            FailOn::Error => Self::Error,
            FailOn::Warning => Self::Warning,
            FailOn::Notice => Self::Notice,
        }
    }
}

/// Each place needs some.
fn budget(text: &str) -> Result<Duration, DurationError> {
    duration(text).map(|budget| budget.max(BUDGET_MIN))
}

/// `quorate doctor`.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.rules {
        return print(&table());
    }
    if let Some(id) = &arguments.explain {
        let unknown = || Failure::usage(format!("there is no rule {id}; --rules prints them all"));
        return print(&rule(id).ok_or_else(unknown)?.to_string());
    }
    let question = Question {
        files: files(&arguments)?,
        logs: arguments.logs.iter().map(|log| (log.id, log.path.clone())).collect(),
        dirs: arguments.data,
        bench: arguments.bench_disk,
        admins: arguments.member.into_iter().collect(),
        reverse: arguments.reverse,
        tls: arguments.tls.open()?,
        budget: arguments.budget,
    };
    let Gathered { facts, looks } = gather(question).await;
    if looks.done.is_empty() {
        let why = looks.failed.iter().map(|place| format!("{}: {}", place.what, place.because));
        let why: Vec<_> = why.collect();
        return Err(Failure::unreachable(format!(
            "nothing could be looked at: {}",
            why.join("; ")
        )));
    }
    let members = (facts.answering().len(), facts.members.len());
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = utc(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX));
    let report = Report::new(now, looks, diagnose(&facts), members);
    if arguments.json {
        let json = serde_json::to_string(&report).map_err(|e| Failure::failed(e.to_string()))?;
        print(&format!("{json}\n"))?;
    } else {
        let paint = Paint::stdout();
        let painted = |level, text: &str| match level {
            Level::Error => paint.alarm(text),
            Level::Warning => paint.strong(text),
            Level::Notice => paint.faint(text),
        };
        print(&text(&report, &painted))?;
    }
    if report.has(arguments.fail_on.into()) { Err(Failure::failed("")) } else { Ok(()) }
}

/// The files that are named, or this host's if nothing is; and those that break the grammar.
fn files(arguments: &Arguments) -> Result<Files, Failure> {
    let flags = JvmFlags::of_environment();
    let mut sources = arguments.files.clone();
    if sources.is_empty() && arguments.logs.is_empty() && arguments.data.is_empty() {
        let here = PLACES.iter().map(PathBuf::from).find(|path| path.exists());
        sources.extend(here.map(|path| Source { id: None, path }));
        if sources.is_empty() {
            let places = PLACES.join(" nor ");
            let why = format!("nothing could be looked at: neither {places} exists");
            return Err(Failure::unreachable(why));
        }
    }
    let mut files = Files::default();
    for Source { id, path } in sources {
        match ConfigFile::read(&path, id, &flags) {
            Ok(file) => files.read.push(file),
            Err(error @ ConfigError::Read { .. }) => {
                return Err(Failure::usage(error.to_string()));
            }
            Err(error) => files.broken.push((path, error)),
        }
    }
    Ok(files)
}

/// All rules, a line each.
fn table() -> String {
    let width = rules().map(|rule| rule.id.len()).max().unwrap_or(0);
    let line = |rule: &quorate_doctor::Rule| {
        let levels: Vec<_> = rule.levels.iter().map(ToString::to_string).collect();
        format!("{:<width$}  {:<22}  {}\n", rule.id, levels.join(", "), rule.when)
    };
    rules().map(line).collect()
}

fn print(text: &str) -> Result<(), Failure> {
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(text.as_bytes()));
    Ok(())
}

/// Where this host's configuration is, unless it is said.
const PLACES: [&str; 2] = ["/etc/quorate/zoo.cfg", "/etc/zookeeper/conf/zoo.cfg"];
/// All of it takes no less.
const BUDGET_MIN: Duration = Duration::from_millis(100);

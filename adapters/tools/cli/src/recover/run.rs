//! `quorate recover run`: facts together, a verdict, and what follows from it.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use quorate_rescue::carry_out::{copy, finish, in_the_way, raise};
use quorate_rescue::recovered::Recovered;
use quorate_rescue::source::Source;
use quorate_rescue::survivor::Survivor;
use quorate_rescue::verdict::{Case, Reason, judge};
use quorate_tokio::core::config::Election;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::{Member, Membership};
use quorate_tokio::core::zxid::{Counter, Epoch, Zxid};
use quorate_tokio::zoo_cfg::{JvmFlags, ZooCfg};

use super::reach;
use super::shown::{Shown, read, source_of};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The zoo.cfg of this server, which is stopped and kept.
    #[arg(value_name = "ZOO.CFG")]
    config: PathBuf,
    /// The ids of all servers that go on: every one of which a directory is left.
    #[arg(long, value_name = "ID", value_delimiter = ',', required = true)]
    keep: Vec<i64>,
    /// For each other kept server, one after the other: its dataDir (behind a comma its dataLogDir) or its zoo.cfg, if they are
    /// here, or a file with what `recover survey --json` printed on its machine. May be given several times.
    #[arg(long, value_name = "DIR|FILE")]
    survivor: Vec<String>,
    /// The ids of all other members, none of which will ever come back as it was. One that the zoo.cfg does not name any
    /// more is given with its address, 3=host:2888:3888: its ports are tried.
    #[arg(long, value_name = "ID[=ADDRESS]", value_delimiter = ',')]
    lost_for_good: Vec<String>,
    /// Where the data directory is copied to, as it is: an empty directory, or one that is not there.
    #[arg(long, value_name = "DIR")]
    backup_to: PathBuf,
    /// That writes which were acknowledged may be lost, and it cannot be known which.
    #[arg(long)]
    yes_data_may_be_lost: bool,
    /// Find out everything, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// How long a lost server's port is tried.
    #[arg(long, value_name = "MS", default_value_t = 3000,
          value_parser = clap::value_parser!(u64).range(100..=600_000))]
    timeout: u64,
}

/// All that is known before anything is decided.
struct Facts {
    cfg: ZooCfg,
    source: Source,
    own: Survivor,
    others: Vec<Survivor>,
    former: Membership,
    kept: BTreeSet<i64>,
    lost: BTreeSet<i64>,
}

/// Finds out, decides, and carries it out.
pub(super) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let facts = gather(&arguments)?;
    let answers = reach::ask_all(&facts.former, Duration::from_millis(arguments.timeout)).await;
    let in_the_way = in_the_way(&facts.source, &arguments.backup_to)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let verdict = judge(&Case {
        own: &facts.own,
        others: &facts.others,
        former: &facts.former,
        present: &facts.cfg.membership,
        is_dynamic: facts.cfg.dynamic_config_file.is_some(),
        forgotten: facts.cfg.forgotten,
        by_generation: !matches!(facts.cfg.election, Election::Fast),
        kept: &facts.kept,
        lost: &facts.lost,
        answers: &answers,
        in_the_way,
        confirmed: arguments.yes_data_may_be_lost,
    });
    let epoch = verdict.map_err(|reasons| refusal(&facts, &reasons))?;
    let members = membership(&facts, epoch)?;
    let begun = note(&facts, &arguments, epoch, &members);
    if arguments.dry_run {
        say(&format!("nothing is against it, and nothing was changed\n{}", told(&facts, &begun)));
        return Ok(());
    }
    let failed = |error: quorate_rescue::carry_out::CarryOutError| {
        Failure::failed(format!("{error}\nRun this again, with another --backup-to"))
    };
    copy(&facts.source, &arguments.backup_to).map_err(failed)?;
    raise(&facts.source, &begun).map_err(failed)?;
    quorate_driver::replace_membership(&facts.cfg, &members).map_err(|(path, error)| {
        let path = path.display();
        Failure::failed(format!(
            "cannot write {path}: {error}\nRun this again, with another --backup-to"
        ))
    })?;
    finish(&facts.source, &begun).map_err(failed)?;
    say(&told(&facts, &begun));
    Ok(())
}

fn gather(arguments: &Arguments) -> Result<Facts, Failure> {
    let flags = JvmFlags::of_environment();
    let cfg = ZooCfg::read_with(&arguments.config, &flags)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let source = source_of(&cfg, quorate_storage::record::TXN_BYTES_MAX);
    let look = |source: &Source| {
        Survivor::look(source).map_err(|error| Failure::failed(error.to_string()))
    };
    let own = look(&source)?;
    let mut others = Vec::new();
    for text in &arguments.survivor {
        match Shown::parse(text, source.txn_bytes_max)? {
            // As in a survey of all, which are there, too.
            Shown::Directory(other) if is_same(&other.data_dir, &source.data_dir) => {}
            Shown::Directory(other) => others.push(look(&other)?),
            // A survey of all machines has this one, too; its directory is here.
            Shown::File(file) => {
                others.extend(read(&file)?.into_iter().filter(|survivor| survivor.id != own.id));
            }
            Shown::Port(at) => {
                let what = "a port does not tell all that its server has on disk: its directory, or its survey";
                return Err(Failure::usage(format!("{at}: {what}")));
            }
        }
    }
    let (mut lost, mut members) = (BTreeSet::new(), cfg.membership.members().to_vec());
    for text in &arguments.lost_for_good {
        let member = lost_member(text)?;
        let is_new = |member: &Member| members.iter().all(|known| known.id != member.id);
        lost.insert(member.0.0);
        if let Some(member) = member.1.filter(is_new) {
            members.push(member);
        }
    }
    let former = match cfg.membership.is_hierarchical() {
        true => cfg.membership.clone(),
        false => Membership::build(members, [], [], 0)
            .map_err(|error| Failure::usage(error.to_string()))?,
    };
    let kept = arguments.keep.iter().copied().collect();
    Ok(Facts { cfg, source, own, others, former, kept, lost })
}

/// Whether two paths lead to one directory.
fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().ok();
    whole(one).is_some_and(|one| Some(one) == whole(other))
}

/// `3`, or `3=host:2888:3888`.
fn lost_member(text: &str) -> Result<(ServerId, Option<Member>), Failure> {
    let wrong = |why: String| Failure::usage(format!("--lost-for-good {text}: {why}"));
    let (id, address) = match text.split_once('=') {
        Some((id, address)) => (id, Some(address)),
        None => (text, None),
    };
    let id = id.parse().map(ServerId).map_err(|_| wrong(format!("{id:?} is no server id")))?;
    let member = address.map(|address| Member::parse(id, address)).transpose();
    Ok((id, member.map_err(|error| wrong(error.to_string()))?))
}

/// That of the kept servers, as if the first transaction of the epoch had brought it: later than every change in the
/// history, and no transaction will have that number, since the next leader's epoch is above.
fn membership(facts: &Facts, epoch: Epoch) -> Result<Membership, Failure> {
    let members = facts.former.members().iter().filter(|m| facts.kept.contains(&m.id.0));
    let version = Zxid::new(epoch, Counter(1)).0;
    Membership::build(members.cloned(), [], [], version)
        .map_err(|error| Failure::failed(error.to_string()))
}

fn note(facts: &Facts, arguments: &Arguments, epoch: Epoch, members: &Membership) -> Recovered {
    let own = &facts.own;
    // Of one that was interrupted it is known from before.
    let before = own.recovered.as_ref();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    let user = name("SUDO_USER").or_else(|| name("USER"));
    let user = user.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let lines = members.members().iter().map(|member| format!("server.{}={member}", member.id));
    Recovered {
        complete: true,
        time_ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        by: format!("{user}@{host}"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        id: own.id,
        kept: facts.kept.iter().copied().collect(),
        lost: facts.lost.iter().copied().collect(),
        epoch: epoch.0,
        accepted_epoch_before: before.map_or(own.accepted_epoch, |b| b.accepted_epoch_before),
        current_epoch_before: before.map_or(own.current_epoch, |b| b.current_epoch_before),
        zxid: own.zxid.clone(),
        copy: arguments.backup_to.clone(),
        membership: lines.collect(),
    }
}

/// Every reason, and how the lost servers are named once the zoo.cfg does not any more.
fn refusal(facts: &Facts, reasons: &[Reason]) -> Failure {
    let mut text = format!("nothing was changed; {} reason(s) against it:", reasons.len());
    for reason in reasons {
        text += &format!("\n- {reason}");
    }
    if reasons.iter().any(|reason| matches!(reason, Reason::Lines { .. })) {
        let lost = facts.lost.iter().map(|id| match facts.former.member(ServerId(*id)) {
            Some(member) => {
                let address = &member.addresses[0];
                let (quorum, election) = (&address.quorum, address.election.port);
                format!("{id}={quorum}:{election}")
            }
            None => id.to_string(),
        });
        let lost: Vec<_> = lost.collect();
        text += &format!("\n  once it has those lines, with --lost-for-good {}", lost.join(","));
    }
    Failure::failed(text)
}

fn told(facts: &Facts, done: &Recovered) -> String {
    let ids = |ids: &[i64]| ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let Recovered { id, epoch, zxid, copy, .. } = done;
    let (lost, kept) = (ids(&done.lost), ids(&done.kept));
    let others: Vec<_> = facts.kept.iter().copied().filter(|other| other != id).collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => {
            format!("run this on {} as well, before any of them is started; then ", ids(&others))
        }
    };
    format!(
        "The disks of servers {lost} must never start as they are: enough of them together are the old ensemble, with \
         another truth. Rename their version-2, or close their election ports, before anything else.\n\
         server {id}: both epochs {epoch}, from {zxid}; copy of before in {}\n\
         members: {kept}\n\
         next: {others}give the files back to the server's user, if this is another; start {kept}; `quorate probe` their election ports, `quorate log check` and compare their \
         digests; then add emptied servers by `quorate reconfig`, or with db.autocreate=false; `quorate recover \
         acknowledge {}`",
        copy.display(),
        facts.source.data_dir.display(),
    )
}

fn say(text: &str) {
    // A reader that has gone wants no more.
    drop(writeln!(io::stdout().lock(), "{text}"));
}

//! What a running server does about a question. What is to be decided is decided elsewhere: by the leader, by the service,
//! in [`transferring`](super::transferring).

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use quorate_service::ZooKeeper;
use quorate_tokio::clients::Note;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::{
    Leader, ReadError, ReconfigureError, Server, TakeSnapshotError, TransferError,
};
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::membership::Wanted;
use super::questions::{Answer, Question, Successor};
use super::report::{Doing, Leads, Reloaded, Report};
use super::transferring::{Next, Seen, Transferring};
use crate::control::{Control, shown};
use crate::superuser::reconfigure;

/// What answers the questions of operators to one server.
#[derive(Debug)]
pub(super) struct Answers {
    control: Control,
    /// Where its snapshots are.
    snapshots: PathBuf,
    /// Whether the membership may change (`reconfigEnabled`).
    reconfig: bool,
    /// One change of the membership at a time.
    changing: Mutex<()>,
}

impl Answers {
    pub(super) fn new(control: Control, snapshots: PathBuf, reconfig: bool) -> Self {
        Self { control, snapshots, reconfig, changing: Mutex::new(()) }
    }

    /// Has the audit log tell it.
    pub(super) fn note(&self, note: Note) {
        self.control.server.note(note);
    }

    pub(super) async fn answer(&self, question: Question) -> Answer {
        let server = &self.control.server;
        match question {
            Question::Reconfig(_) if !self.reconfig => {
                Answer::Unchanged("reconfigEnabled=true is not set at this server".to_owned())
            }
            Question::Reconfig(wanted) => self.reconfigure(&wanted).await,
            Question::Transfer { to, wait_ms } => {
                transfer_leadership(server, to, millis(wait_ms)).await
            }
            Question::StepDown { wait_ms } => step_down(server, millis(wait_ms)).await,
            Question::Status => {
                let Control { logs, .. } = &self.control;
                let (log, at_restart) = (logs.wanted(), self.control.at_restart());
                let doing = Doing::new(&server.status(), log, at_restart);
                Answer::Done(Report::Status(Box::new(doing)))
            }
            Question::Reload => self.reload().await,
            Question::LogLevel { filter } => self.log(filter.as_deref()),
            Question::Snapshot { wait_ms } => self.snapshot(millis(wait_ms)).await,
            Question::Shed { percent, within_ms } => shed(server, percent, millis(within_ms)).await,
        }
    }

    /// Makes the change that was asked for.
    async fn reconfigure(&self, wanted: &Wanted) -> Answer {
        let asked = match wanted.change() {
            Ok(asked) => asked,
            Err(error) => return Answer::Wrong(error.to_string()),
        };
        let patience = millis(wanted.timeout_ms);
        let server = &self.control.server;
        let done = async {
            match asked {
                Some(asked) => {
                    let _one = self.changing.lock().await;
                    reconfigure(server, &asked).await?;
                    // In force here: no newer one need be asked for, perhaps by a server that was removed.
                    Ok(server.read_local(membership).await?)
                }
                None => Ok(server.read(membership).await?),
            }
        };
        match timeout(patience, done).await {
            Ok(Ok(text)) => Answer::Done(Report::Membership(text)),
            Ok(Err(ChangeError::Change(ReconfigureError::Propose(error))))
                if error.may_have_happened() =>
            {
                Answer::Unknown(error.to_string())
            }
            Ok(Err(ChangeError::Change(error))) => Answer::Unchanged(error.to_string()),
            Ok(Err(ChangeError::Look(error))) => Answer::Unknown(error.to_string()),
            Err(_) => Answer::Unknown(format!("no answer in {patience:?}")),
        }
    }

    async fn reload(&self) -> Answer {
        match self.control.reload().await {
            Ok(reload) => Answer::Done(Report::Reloaded(Reloaded {
                now: shown(&reload.changes.at_once),
                at_restart: shown(&reload.changes.at_restart),
                warnings: reload.warnings,
            })),
            Err(error) => Answer::Wrong(format!("{error}; what was good stays in force")),
        }
    }

    fn log(&self, filter: Option<&str>) -> Answer {
        let set = match filter {
            Some(filter) => self.control.logs.set(filter),
            None => self.control.log_as_configured(),
        };
        match set {
            Ok(()) => Answer::Done(Report::LogLevel { filter: self.control.logs.wanted() }),
            Err(error) => Answer::Wrong(error.to_string()),
        }
    }

    async fn snapshot(&self, patience: Duration) -> Answer {
        match timeout(patience, self.control.server.take_snapshot()).await {
            Ok(Ok(label)) => {
                let file = self.snapshots.join(format!("snapshot.{:x}", label.0));
                Answer::Done(Report::Snapshot {
                    zxid: label.to_string(),
                    bytes: fs::metadata(&file).ok().map(|file| file.len()),
                    file: file.display().to_string(),
                })
            }
            Ok(Err(error @ (TakeSnapshotError::Failed(_) | TakeSnapshotError::Replaced))) => {
                Answer::Unchanged(error.to_string())
            }
            Ok(Err(error)) => Answer::Unknown(error.to_string()),
            Err(_) => Answer::Unknown(format!("it is not done after {patience:?}, and goes on")),
        }
    }
}

/// Has another server lead, as soon as one can.
async fn transfer_leadership(
    server: &Server<ZooKeeper>,
    to: Successor,
    patience: Duration,
) -> Answer {
    let begun = Instant::now();
    let (mut transferring, mut changed) = (Transferring::new(to), false);
    loop {
        let leader = server.leader();
        let membership = server.membership();
        let seen = Seen {
            own: server.id(),
            leader: leader.map(|(id, _)| id),
            voters: membership.participants().map(|member| member.id).collect(),
        };
        let left = patience.saturating_sub(begun.elapsed());
        match (transferring.next(&seen), leader) {
            (Next::Done(_), Some(leader)) => return leads(server, leader, changed),
            (Next::GiveUp(why), _) => return Answer::Unchanged(why.to_string()),
            (Next::Try(to), _) if !left.is_zero() => {
                match timeout(left, transfer(server, to)).await {
                    Ok(Ok(())) => changed = true,
                    Ok(Err(TransferError::Refused(why))) => transferring.refused = Some(why),
                    Ok(Err(error)) => return Answer::Unknown(error.to_string()),
                    Err(_) => return Answer::Unknown(format!("it goes on after {patience:?}")),
                }
            }
            _ if left.is_zero() => {
                let why = transferring.refused.map(|why| why.to_string());
                return match (changed, why) {
                    (true, _) => Answer::Unknown("transferred, and no server leads yet".to_owned()),
                    (false, Some(why)) => Answer::Unchanged(why),
                    (false, None) => Answer::Unchanged("there is no leader".to_owned()),
                };
            }
            _ => sleep(AGAIN.min(left)).await,
        }
    }
}

async fn transfer(server: &Server<ZooKeeper>, to: Option<ServerId>) -> Result<(), TransferError> {
    match to {
        Some(to) => server.transfer_leadership(to).await,
        None => server.hand_over().await.map(|_| ()),
    }
}

/// Has it not lead, and waits for the next leader, which it may be again.
async fn step_down(server: &Server<ZooKeeper>, patience: Duration) -> Answer {
    let mut leaders = server.leaders();
    let before = match leaders.next().await {
        Some(Some(before)) if before.0 == server.id() => before,
        Some(Some(other)) => return leads(server, other, false),
        Some(None) => return Answer::Unchanged("there is no leader".to_owned()),
        None => return Answer::Unknown("this server has ended".to_owned()),
    };
    server.step_down().await;
    let next = async {
        loop {
            match leaders.next().await {
                Some(Some(leader)) if leader != before => return Some(leader),
                Some(_) => {}
                None => return None,
            }
        }
    };
    match timeout(patience, next).await {
        Ok(Some(leader)) => leads(server, leader, true),
        Ok(None) => Answer::Unknown("this server has ended".to_owned()),
        Err(_) => Answer::Unknown(format!("no server leads after {patience:?}")),
    }
}

fn leads(server: &Server<ZooKeeper>, leader: Leader, changed: bool) -> Answer {
    let (leader, epoch) = (leader.0.0, leader.1.0);
    Answer::Done(Report::Leads(Leads { server: server.id().0, leader, epoch, changed }))
}

/// Sends clients elsewhere, and waits until they have gone.
async fn shed(server: &Server<ZooKeeper>, percent: u8, within: Duration) -> Answer {
    let look = || async {
        let look = server.look(|_, service, _| service.shedding());
        timeout(LOOK_PATIENCE, look).await.ok().and_then(Result::ok)
    };
    let silent = || Answer::Unknown("the service does not answer".to_owned());
    match look().await {
        None => return Answer::Unchanged("the service does not answer".to_owned()),
        Some(shedding) if shedding.under_way => {
            let (gone, goal) = (shedding.gone, shedding.goal);
            return Answer::Unchanged(format!("{gone} of {goal} clients are leaving already"));
        }
        Some(_) => {}
    }
    server.shed(percent, within);
    // The service waits no longer for replies that do not come.
    let begun = Instant::now();
    let limit = within * 2 + LOOK_PATIENCE;
    loop {
        sleep(AGAIN).await;
        match look().await {
            Some(shedding) if !shedding.under_way => {
                let (goal, gone) = (shedding.goal, shedding.gone);
                return Answer::Done(Report::Shed { goal, gone });
            }
            Some(_) if begun.elapsed() < limit => {}
            Some(_) | None => return silent(),
        }
    }
}

/// Why a question has no membership as its answer.
#[derive(Debug, Error)]
enum ChangeError {
    #[error(transparent)]
    Change(#[from] ReconfigureError),
    #[error(transparent)]
    Look(#[from] ReadError),
}

/// The text of the membership, as the tree has it.
fn membership(zookeeper: &ZooKeeper) -> String {
    let data = zookeeper.tree().get("/zookeeper/config").and_then(|node| node.data().cloned());
    String::from_utf8_lossy(&data.unwrap_or_default()).into_owned()
}

/// As long as an operator says, up to a limit.
fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis).min(PATIENCE_MAX)
}

/// The longest that an answer is waited for.
const PATIENCE_MAX: Duration = Duration::from_secs(600);
/// Until what was not to be had is asked for again.
const AGAIN: Duration = Duration::from_millis(50);
/// How long the service may take to tell how far it is.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);

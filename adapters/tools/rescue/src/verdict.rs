//! Whether an ensemble may be recovered without a quorum: every reason against it, or the epoch to go on with.
//!
//! A pure function of what was found: the directories of the survivors, the membership, what was heard of the others.
//!
//! The kept servers go on as another ensemble, which must be the only one: so every server that is not kept must be
//! known to be gone. Its history is that of the kept ones, and must not be older than what any survivor has. It begins
//! so many epochs above all that was seen ([`EPOCHS`]) that no leader which a lost server may have known is as late:
//! an old disk that comes back is told the new history, and cannot win an election.
//!
//! Users of ZooKeeper and its kin have edited configurations by hand for this, or set flags that then stayed in start
//! scripts (Altinity/clickhouse-operator#1224, ClickHouse/ClickHouse#53749).

mod reason;

use std::collections::BTreeSet;
use std::path::PathBuf;

use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_core::zxid::Epoch;

use crate::recovered::Recovered;
use crate::survivor::Survivor;

pub use self::reason::{Answer, Heard, Reason};

/// How many epochs the next one is above every one that was seen, at least.
pub const EPOCHS: i64 = 1000;

/// What is to be decided on.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// The server whose directory is to be changed.
    pub own: &'a Survivor,
    /// Every other one of which a directory is left.
    pub others: &'a [Survivor],
    /// The membership as it was.
    pub former: &'a Membership,
    /// The membership that the configuration of this server has now.
    pub present: &'a Membership,
    /// Whether that stands in a dynamic file, which can be written; else it is the operator's.
    pub is_dynamic: bool,
    /// The change of the membership up to which its configuration says that none binds (`quorate.membership.forget`).
    pub forgotten: i64,
    /// Whether the servers elect by generation.
    pub by_generation: bool,
    /// The servers that go on.
    pub kept: &'a BTreeSet<i64>,
    /// The servers that are declared lost for good.
    pub lost: &'a BTreeSet<i64>,
    /// What was heard of each member at its ports.
    pub answers: &'a [Answer],
    /// What is in the way of the copy, if anything.
    pub in_the_way: Option<PathBuf>,
    /// Whether the operator has said that acknowledged writes may be lost.
    pub confirmed: bool,
}

/// The epoch that the kept servers go on with: both epoch files are to hold it.
///
/// # Errors
///
/// Every [`Reason`] against it.
pub fn judge(case: &Case<'_>) -> Result<Epoch, Vec<Reason>> {
    let mut reasons = Vec::new();
    judge_names(case, &mut reasons);
    judge_configuration(case, &mut reasons);
    judge_directories(case, &mut reasons);
    judge_histories(case, &mut reasons);
    judge_answers(case, &mut reasons);
    if let Some(found) = &case.in_the_way {
        reasons.push(Reason::CopyInTheWay { found: found.clone() });
    }
    if !case.confirmed {
        reasons.push(Reason::NotConfirmed);
    }
    let epoch = next_epoch(case);
    if !epoch.is_valid() || epoch.next().is_none() {
        reasons.push(Reason::NoEpoch { epoch });
    }
    if reasons.is_empty() { Ok(epoch) } else { Err(reasons) }
}

/// Every member is kept or lost, not both; the kept are those that are shown to have survived.
fn judge_names(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    let Case { kept, lost, former, .. } = *case;
    if lost.is_empty() {
        reasons.push(Reason::NoneLost);
    }
    for id in kept.intersection(lost) {
        reasons.push(Reason::KeptAndLost { id: *id });
    }
    let named: BTreeSet<_> = kept.union(lost).copied().collect();
    for id in named.iter().filter(|id| former.member(ServerId(**id)).is_none()) {
        reasons.push(Reason::NoMember { id: *id });
    }
    for member in former.members().iter().filter(|member| !named.contains(&member.id.0)) {
        reasons.push(Reason::NotNamed { id: member.id.0 });
    }
    let mut shown = BTreeSet::new();
    for survivor in each(case) {
        if !shown.insert(survivor.id) {
            reasons.push(Reason::ShownTwice { id: survivor.id });
        }
        if !kept.contains(&survivor.id) {
            reasons.push(Reason::SurvivorNotKept { id: survivor.id });
        }
    }
    for id in kept.difference(&shown) {
        reasons.push(Reason::NotShown { id: *id });
    }
}

/// The configuration can be that of the kept servers alone.
fn judge_configuration(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    let Case { kept, former, present, .. } = *case;
    if case.by_generation {
        reasons.push(Reason::ByGeneration);
    }
    if former.is_hierarchical() {
        reasons.push(Reason::Groups);
    }
    let voters = kept.iter().map(|id| ServerId(*id)).filter(|id| former.is_participant(*id));
    let voters: BTreeSet<_> = voters.collect();
    if voters.is_empty() {
        reasons.push(Reason::NoVoter);
    } else if former.quorum().is_quorum(voters.iter().copied()) {
        reasons.push(Reason::Quorum);
    }
    let has: BTreeSet<_> = present.members().iter().map(|member| member.id.0).collect();
    if !case.is_dynamic && has != *kept && !former.is_hierarchical() {
        let lines = kept_members(former, kept);
        reasons.push(Reason::Lines { lines: lines.lines().map(str::to_owned).collect() });
    }
    let newest = each(case).map(|survivor| survivor.membership).max().unwrap_or(0);
    if !case.is_dynamic && newest > case.forgotten {
        reasons.push(Reason::Binds { version: newest });
    }
}

/// No server has a directory open, each is sound, and none was recovered otherwise.
fn judge_directories(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    for survivor in each(case) {
        let (id, directory) = (survivor.id, survivor.directory.clone());
        if survivor.in_use {
            reasons.push(Reason::InUse { id, directory: directory.clone() });
        }
        for problem in &survivor.problems {
            reasons.push(Reason::Unsound { id, problem: problem.clone() });
        }
        let Some(recovered) = &survivor.recovered else { continue };
        if before(case, survivor).is_none() {
            reasons.push(Reason::RecoveredOtherwise { id, lost: recovered.lost.clone() });
        } else if recovered.complete && id == case.own.id {
            reasons.push(Reason::Done { directory });
        }
    }
}

/// No survivor's history is newer than the one that is to go on.
fn judge_histories(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    let ours = case.own.age(before(case, case.own));
    for other in case.others {
        let theirs = other.age(before(case, other));
        if theirs > ours {
            let id = other.id;
            reasons.push(Reason::Newer { id, theirs, own: case.own.id, ours });
        }
    }
}

/// The lost are silent, and the kept do not run.
fn judge_answers(case: &Case<'_>, reasons: &mut Vec<Reason>) {
    for answer in case.answers {
        let Answer { id, address, heard, .. } = answer;
        match heard {
            Heard::Accepted | Heard::Refused | Heard::NotAsked if case.lost.contains(id) => {
                reasons.push(Reason::Answers(answer.clone()));
            }
            Heard::Accepted => {
                reasons.push(Reason::Runs { id: *id, address: address.clone() });
            }
            Heard::Refused | Heard::NotAsked | Heard::Nothing => {}
        }
    }
}

fn each<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a Survivor> {
    [case.own].into_iter().chain(case.others)
}

/// What a survivor was before the same decision was carried out on it.
fn before<'a>(case: &Case<'_>, survivor: &'a Survivor) -> Option<&'a Recovered> {
    let ids = |set: &BTreeSet<i64>| set.iter().copied().collect::<Vec<_>>();
    let recovered = survivor.recovered.as_ref();
    recovered.filter(|recovered| recovered.is_of(&ids(case.kept), &ids(case.lost)))
}

/// Above every epoch that was seen; the same on every kept server.
fn next_epoch(case: &Case<'_>) -> Epoch {
    let seen = each(case).map(|survivor| match before(case, survivor) {
        // It was computed for all.
        Some(recovered) => recovered.epoch.saturating_sub(EPOCHS),
        None => survivor.accepted_epoch.max(survivor.current_epoch),
    });
    let highest = seen.chain(each(case).map(|survivor| survivor.last().epoch().0)).max();
    Epoch(highest.unwrap_or(0).saturating_add(EPOCHS))
}

/// The lines of the kept members, each ended.
fn kept_members(former: &Membership, kept: &BTreeSet<i64>) -> String {
    let members = former.members().iter().filter(|member| kept.contains(&member.id.0));
    members.map(|member| format!("server.{}={member}\n", member.id)).collect()
}

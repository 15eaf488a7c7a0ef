//! What clients ask for and are told, for the search of one order that explains it: of the nodes that all may change.

use std::collections::BTreeSet;

use quorate_core::zxid::Zxid;
use quorate_service::wire::{MultiResult, Request, Response, Stat, code};

use crate::clients::Crowd;
use crate::clients::asking::PATHS;
use crate::linear::nodes::{Act, Shown, Told};
use crate::rule::{Rule, Violation, broken};
use quorate_core::id::ServerId;
use quorate_core::txn::RequestId;

/// What a request does, if it is about those nodes alone.
pub(super) fn act(request: &Request) -> Option<Act> {
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others change and show nothing there")]
    let act = match request {
        Request::Create { path, data, flags: flags @ 0..=3, .. } if is_ours(path) => {
            let (ephemeral, sequential) = (flags & 1 == 1, flags & 2 == 2);
            Act::Create { path: path.clone(), data: data.clone(), ephemeral, sequential }
        }
        Request::Delete { path, version } if is_ours(path) => {
            Act::Delete { path: path.clone(), version: *version }
        }
        Request::SetData { path, data, version } if is_ours(path) => {
            Act::SetData { path: path.clone(), data: data.clone(), version: *version }
        }
        Request::Check { path, version } if is_ours(path) => {
            Act::Check { path: path.clone(), version: *version }
        }
        Request::Multi(elements) => {
            Act::Multi(elements.iter().map(act).collect::<Option<Vec<_>>>()?)
        }
        Request::GetData { path, .. } if is_ours(path) => Act::GetData { path: path.clone() },
        Request::Exists { path, .. } if is_ours(path) => Act::Exists { path: path.clone() },
        Request::GetChildren2 { path, .. } if is_ours(path) => {
            Act::GetChildren { path: path.clone() }
        }
        Request::Sync { .. } => Act::Sync,
        Request::CloseSession => Act::End,
        _ => return None,
    };
    Some(act)
}

fn is_ours(path: &str) -> bool {
    PATHS.contains(&path) || path.starts_with("/q/")
}

/// What its reply says; none if it says only that the session has ended or moved. To a leader of ZooKeeper the parents of
/// what goes with a session are not empty until that is applied, whatever it has said before of the children.
pub(super) fn told(
    act: &Act,
    err: i32,
    response: Option<&Response>,
    by_java: bool,
) -> Option<Told> {
    let says_nothing = |err: i32| {
        let stale = by_java && err == code::NOT_EMPTY;
        stale || matches!(err, code::SESSION_EXPIRED | code::SESSION_MOVED)
    };
    if says_nothing(err) {
        return None;
    }
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others say that it was done")]
    let told = match response {
        None => Told::Failed(err),
        Some(Response::Created { path } | Response::Created2 { path, .. }) => {
            Told::Created(path.clone())
        }
        Some(Response::Stat(stat)) if matches!(act, Act::Exists { .. }) => Told::Stat(shown(stat)),
        Some(Response::Stat(stat)) => Told::Set(stat.version),
        Some(Response::Data { data, stat }) => Told::Data(data.clone(), shown(stat)),
        Some(Response::Children2 { names, stat }) => {
            let sorted: BTreeSet<_> = names.iter().cloned().collect();
            Told::Children(sorted.into_iter().collect(), shown(stat))
        }
        Some(Response::Multi(results)) => {
            let results: Vec<_> = results.iter().map(result).collect();
            let nothing = |told: &Told| matches!(told, Told::Failed(err) if says_nothing(*err));
            if results.iter().any(nothing) {
                return None;
            }
            Told::Multi(results)
        }
        Some(_) => Told::Done,
    };
    Some(told)
}

fn result(result: &MultiResult) -> Told {
    match result {
        MultiResult::Created { path } | MultiResult::Created2 { path, .. } => {
            Told::Created(path.clone())
        }
        MultiResult::DataSet { stat } => Told::Set(stat.version),
        MultiResult::Failed { err } => Told::Failed(*err),
        MultiResult::Deleted
        | MultiResult::Checked
        | MultiResult::Data { .. }
        | MultiResult::Children { .. } => Told::Done,
    }
}

const fn shown(stat: &Stat) -> Shown {
    (stat.version, stat.cversion, stat.num_children, stat.ephemeral_owner)
}

impl Crowd {
    /// Whether one order explains all that clients were told; of how many operations.
    pub(crate) fn explain(&self) -> Result<usize, Violation> {
        let mut history = self.judge.linear.clone();
        let left = self.clients.iter().flat_map(|client| client.unanswered());
        for (id, at) in self.judge.unanswered.iter().copied().chain(left) {
            let RequestId { client: session, .. } = id;
            // What was refused has done nothing, and it does not matter when.
            let entry = |zxid: &Zxid| self.judge.entry(*zxid);
            let done = |zxid: &Zxid| entry(zxid).is_some_and(|one| one.outcome.error().is_none());
            if let Some(zxid) = self.judge.of_request(id).filter(done) {
                history.hint(session, at, zxid.0);
            }
        }
        for (session, Zxid(ended)) in self.judge.sessions.ended() {
            history.ended(session, ended);
        }
        match history.check() {
            Ok(count) => Ok(count),
            Err(why) => broken(Rule::Linear, ServerId::NONE, why.to_string()),
        }
    }
}

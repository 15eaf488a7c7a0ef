//! Whether what a reply says is so: of a write, that it is committed and did just that; of a read, that the tree was so.

use std::collections::BTreeSet;

use bytes::Bytes;
use quorate_core::id::ServerId;
use quorate_core::txn::RequestId;
use quorate_service::wire::{MultiResult, ReplyHeader, Request, Response, code};
use quorate_znode::Outcome;

use crate::clients::access::{ADMIN, READ, Who, masked};
use crate::clients::asking::is_write;
use crate::clients::judge::{Judge, Seen};
use crate::rule::{Rule, Violation, broken};

/// Judges the reply to a request of a session; returns what it says.
pub(crate) fn judge(
    judge: &Judge,
    server: ServerId,
    id: RequestId,
    who: Who,
    request: &Request,
    header: ReplyHeader,
    body: &Bytes,
) -> Result<Option<Response>, Violation> {
    if header.zxid > judge.last() && !header.zxid.is_epoch_start() {
        let detail = format!("replies as of {}, which is not committed", header.zxid);
        return broken(Rule::Reply, server, detail);
    }
    let response = match header.err {
        0 => match Response::decode(request.op(), body) {
            Ok(Some(response)) => Some(response),
            Ok(None) | Err(_) => {
                return broken(Rule::Reply, server, format!("{request:?}: cannot be read"));
            }
        },
        _ => None,
    };
    let so = if is_write(request) {
        is_done(judge, id, header, response.as_ref())
    } else {
        is_there(judge, who, request, header, response.as_ref())
    };
    if so {
        return Ok(response);
    }
    let entry = judge.of_request(id);
    let outcome = entry.and_then(|zxid| judge.entry(zxid)).map(|entry| &entry.outcome);
    let detail = format!("{request:?}: {header:?} {response:?}, and {entry:?} is {outcome:?}");
    broken(Rule::Reply, server, detail)
}

/// Whether a write came to pass just so.
fn is_done(judge: &Judge, id: RequestId, header: ReplyHeader, response: Option<&Response>) -> bool {
    let Some(at) = judge.of_request(id) else {
        // What no leader was asked.
        return matches!(header.err, code::BAD_ARGUMENTS | code::MARSHALLING_ERROR);
    };
    let Some(entry) = judge.entry(at).filter(|_| at == header.zxid) else { return false };
    match (&entry.outcome, response) {
        (Outcome::Failed(code), None) => code.0 == header.err,
        (Outcome::Created { path, .. }, Some(Response::Created { path: told })) => path == told,
        (Outcome::Created { path, stat }, Some(Response::Created2 { path: told, stat: shown })) => {
            (path, stat) == (told, shown)
        }
        (
            Outcome::DataSet { stat, .. } | Outcome::AclSet { stat, .. },
            Some(Response::Stat(shown)),
        ) => stat == shown,
        (Outcome::Deleted(_) | Outcome::SessionClosed { .. }, Some(Response::Done)) => true,
        (Outcome::Multi(outcomes), Some(Response::Multi(results))) => {
            outcomes.len() == results.len() && outcomes.iter().zip(results).all(is_part)
        }
        _ => false,
    }
}

fn is_part((outcome, result): (&Outcome, &MultiResult)) -> bool {
    match (outcome, result) {
        (Outcome::Created { path, .. }, MultiResult::Created { path: told }) => path == told,
        (Outcome::Created { path, stat }, MultiResult::Created2 { path: told, stat: shown }) => {
            (path, stat) == (told, shown)
        }
        (Outcome::DataSet { stat, .. }, MultiResult::DataSet { stat: shown }) => stat == shown,
        (Outcome::Failed(code), MultiResult::Failed { err }) => code.0 == *err,
        (Outcome::Deleted(_), MultiResult::Deleted)
        | (Outcome::Checked { .. }, MultiResult::Checked) => true,
        _ => false,
    }
}

/// Whether the tree was so behind the transaction that the reply names.
fn is_there(
    judge: &Judge,
    who: Who,
    request: &Request,
    header: ReplyHeader,
    response: Option<&Response>,
) -> bool {
    let all = |path: &str| judge.node(path, header.zxid);
    let may = |node: &&Seen, permission| who.may(node.acl.as_ref(), permission);
    let node = |path: &str| all(path).filter(|node| may(node, READ));
    let missing = |node: Option<&Seen>, permission| match node {
        None => header.err == code::NO_NODE,
        Some(node) => header.err == code::NO_AUTH && !may(&node, permission),
    };
    match (request, response) {
        (
            Request::GetData { path, .. }
            | Request::Exists { path, .. }
            | Request::GetChildren2 { path, .. },
            None,
        ) => missing(all(path), READ),
        (Request::GetAcl { path }, None) => missing(all(path), READ | ADMIN),
        (Request::GetAcl { path }, Some(Response::Acl { acl, stat })) => {
            all(path).filter(|node| may(node, READ | ADMIN)).is_some_and(|node| {
                let list = node.acl.as_deref().unwrap_or_default();
                let shown = if may(&node, ADMIN) { list.to_vec() } else { masked(list) };
                acl.as_ref() == Some(&shown) && node.stat == *stat
            })
        }
        (Request::GetData { path, .. }, Some(Response::Data { data, stat })) => {
            node(path).is_some_and(|node| (&node.data, &node.stat) == (data, stat))
        }
        (Request::Exists { path, .. }, Some(Response::Stat(stat))) => {
            node(path).is_some_and(|node| node.stat == *stat)
        }
        (Request::GetChildren2 { path, .. }, Some(Response::Children2 { names, stat })) => {
            let names: BTreeSet<String> = names.iter().cloned().collect();
            node(path).is_some_and(|node| node.children == names && node.stat == *stat)
        }
        (Request::MultiRead(reads), Some(Response::Multi(results))) => {
            let is_so = |(read, result): (&Request, &MultiResult)| match (read, result) {
                (Request::GetData { path, .. }, MultiResult::Data { data, stat }) => {
                    node(path).is_some_and(|node| (&node.data, &node.stat) == (data, stat))
                }
                (Request::GetData { path, .. }, MultiResult::Failed { err }) => {
                    all(path).is_none() && *err == code::NO_NODE
                }
                _ => false,
            };
            reads.len() == results.len() && reads.iter().zip(results).all(is_so)
        }
        (Request::Sync { path }, Some(Response::Synced { path: told })) => path == told,
        _ => header.err == 0,
    }
}

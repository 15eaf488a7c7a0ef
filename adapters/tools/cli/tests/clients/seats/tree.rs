//! The trees of all servers, which are the same.

use std::fmt::Write as _;

use quorate_service::wire::{Request, Response};

use crate::ensemble::Servers;
use crate::raw::{Client, auth, get};

/// In an order that does not depend on the server.
pub(super) fn sorted(names: &[String]) -> Vec<&String> {
    let mut names: Vec<_> = names.iter().collect();
    names.sort_unstable();
    names
}

/// All of a server's tree below a node, as an administrator sees it. A node whose time is over in between is left out.
fn tree(client: &mut Client, path: &str, seen: &mut String) {
    let mut ask = |request: &Request| match client.ask(request) {
        Err(-101) => None,
        other => Some(other.unwrap_or_else(|code| panic!("{path}: {code}"))),
    };
    let acl = Request::GetAcl { path: path.to_owned() };
    let names = Request::GetChildren { path: path.to_owned(), watch: false };
    let read = (|| Some((ask(&get(path))?, ask(&acl)?, ask(&names)?)))();
    let Some((data, acl, names)) = read else { return };
    let Response::Data { data, mut stat } = data else { panic!("{path}: {data:?}") };
    let Response::Acl { acl, .. } = acl else { panic!("{path}: {acl:?}") };
    let Response::Children(names) = names else { panic!("{path}: {names:?}") };
    if path == "/zookeeper/config" {
        // Until it is changed it is of the time when a server was started.
        stat.mtime = 0;
    }
    writeln!(seen, "{path} {data:?} {stat:?} {acl:?}").unwrap();
    for name in sorted(&names) {
        tree(client, &format!("{}/{name}", path.trim_end_matches('/')), seen);
    }
}

/// What this server holds, with all that was done before.
pub(super) fn held_by(servers: &Servers, id: usize) -> String {
    let mut client = Client::open(servers.port(id), 10_000);
    client.ask(&auth("super:test")).unwrap();
    client.sync();
    let mut seen = String::new();
    tree(&mut client, "/", &mut seen);
    seen
}

/// What all servers hold, which is the same.
pub(super) fn the_tree(servers: &Servers) -> String {
    let held: Vec<_> = servers.ids().map(|id| held_by(servers, id)).collect();
    for (id, seen) in servers.ids().zip(&held) {
        for (seen, first) in seen.lines().zip(held[0].lines()) {
            assert_eq!(seen, first, "servers {id} and 1 differ");
        }
        assert_eq!(seen.lines().count(), held[0].lines().count());
    }
    held[0].clone()
}

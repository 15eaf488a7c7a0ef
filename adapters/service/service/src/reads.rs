//! Requests that are answered from the tree of this server, when their turn comes.
//!
//! What is read and the watch that is set on it are one step towards applying: no change comes between them that fires
//! nothing. A watch is set only if the read succeeds; one for a node that is not there, by exists, too.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};
use quorate_application::clients::ClientId;
use quorate_core::message::Identity;
use quorate_znode::access::{self, ADMIN, READ};
use quorate_znode::{NodeRef, Tree};

use crate::service::{Service, Step};
use crate::watches::{Watch, WatchKind};
use crate::wire::{
    MultiResult, ReplyHeader, Request, code, put_acl, put_children, put_data, put_multi,
    put_number, put_stat, put_who_am_i, reply,
};

impl Service {
    /// The reply to a request whose turn has come.
    pub(crate) fn read(
        &mut self,
        step: &mut Step<'_>,
        client: ClientId,
        xid: i32,
        request: Request,
    ) -> Bytes {
        if let Request::SetWatches { .. } = request {
            let err = self.watch_again(step, client, request).err().unwrap_or(0);
            let zxid = step.state.tree().last_zxid();
            return reply(ReplyHeader { xid, zxid, err }, |_| {});
        }
        let tree = step.state.tree();
        let header = |err| ReplyHeader { xid, zxid: tree.last_zxid(), err };
        // Behind the header of a success; what a failure has left there is cut off.
        let mut failed = 0;
        let bytes = reply(header(0), |out| {
            if let Err(err) = self.look_up(tree, client, &request, out) {
                failed = err;
            }
        });
        if failed != 0 {
            if failed == code::THROTTLED {
                self.note_refused_watch(step.at, client);
            }
            return reply(header(failed), |_| {});
        }
        self.note_long(step, client, request.op(), path_of(&request), bytes.len());
        bytes
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "the others are answered elsewhere")]
    fn look_up(
        &mut self,
        tree: &Tree,
        client: ClientId,
        request: &Request,
        out: &mut BytesMut,
    ) -> Result<(), i32> {
        match request {
            Request::Ping => {}
            Request::Exists { path, .. } if path.contains('\0') => {
                return Err(code::BAD_ARGUMENTS);
            }
            Request::Exists { path, watch } => {
                let found = self.readable(tree, client, path);
                let watches = matches!(found, Ok(_) | Err(code::NO_NODE));
                if *watch && watches {
                    self.watch(client, path, Watch::Data)?;
                }
                put_stat(out, &found?.stat());
            }
            Request::GetData { path, watch } => {
                let node = self.readable(tree, client, path)?;
                if *watch {
                    self.watch(client, path, Watch::Data)?;
                }
                put_data(out, node.data().map(|data| &data[..]));
                put_stat(out, &node.stat());
            }
            Request::GetChildren { path, watch } | Request::GetChildren2 { path, watch } => {
                let node = self.readable(tree, client, path)?;
                if *watch {
                    self.watch(client, path, Watch::Children)?;
                }
                put_children(out, node.children());
                if matches!(request, Request::GetChildren2 { .. }) {
                    put_stat(out, &node.stat());
                }
            }
            Request::GetAcl { path } => self.get_acl(tree, client, path, out)?,
            Request::MultiRead(elements) => {
                let results: Vec<_> =
                    elements.iter().map(|element| self.element(tree, client, element)).collect();
                put_multi(out, &results);
            }
            Request::GetEphemerals { prefix } => {
                let session = self.clients.get(&client).and_then(|c| c.session()).unwrap_or(0);
                let prefix = prefix.as_deref().map(str::trim).unwrap_or_default();
                let all = prefix.is_empty() || prefix == "/";
                let paths: Vec<&str> = tree
                    .ephemerals(session)
                    .filter(|path| all || path.starts_with(prefix))
                    .collect();
                put_children(out, paths);
            }
            Request::GetAllChildrenNumber { path } => {
                let node = self.readable(tree, client, path)?;
                put_number(out, i32::try_from(node.descendants()).unwrap_or(i32::MAX));
            }
            Request::WhoAmI => {
                let identities = self.clients.get(&client).map(|c| &c.identities[..]);
                let all = identities.unwrap_or_default().iter();
                put_who_am_i(out, all.map(|own| (&own.scheme, shown(own))));
            }
            Request::AddWatch { path, mode } => {
                let watch = match mode {
                    0 => Watch::Persistent,
                    1 => Watch::Recursive,
                    _ => return Err(code::MARSHALLING_ERROR),
                };
                self.watch(client, path, watch)?;
                put_number(out, 0);
            }
            Request::CheckWatches { path, kind } => {
                let kind = WatchKind::of(*kind).ok_or(code::MARSHALLING_ERROR)?;
                if !self.watches.has(client, path, kind) {
                    return Err(code::NO_WATCHER);
                }
            }
            Request::RemoveWatches { path, kind } => {
                let kind = WatchKind::of(*kind).ok_or(code::MARSHALLING_ERROR)?;
                if !self.watches.remove(client, path, kind) {
                    return Err(code::NO_WATCHER);
                }
            }
            _ => return Err(code::UNIMPLEMENTED),
        }
        Ok(())
    }

    /// Sets a watch, if there is room for it.
    fn watch(&mut self, client: ClientId, path: &str, watch: Watch) -> Result<(), i32> {
        if !self.watches.holds(client, path) && self.room_for_watches(client) == 0 {
            return Err(code::THROTTLED);
        }
        self.watches.add(client, path, watch);
        Ok(())
    }

    /// A node that the client may read.
    fn readable<'a>(
        &self,
        tree: &'a Tree,
        client: ClientId,
        path: &str,
    ) -> Result<NodeRef<'a>, i32> {
        let node = tree.get(path).ok_or(code::NO_NODE)?;
        if self.may(client, node, READ) { Ok(node) } else { Err(code::NO_AUTH) }
    }

    /// Whether the client has a permission on a node.
    pub(crate) fn may(&self, client: ClientId, node: NodeRef<'_>, permission: i32) -> bool {
        let identities = self.clients.get(&client).map(|connection| &connection.identities[..]);
        let identities = Some(identities.unwrap_or_default());
        self.options.skip_acl || access::permitted(node.acl(), permission, identities)
    }

    /// To whom the node does not belong sees that a digest is there, and not which.
    fn get_acl(
        &self,
        tree: &Tree,
        client: ClientId,
        path: &str,
        out: &mut BytesMut,
    ) -> Result<(), i32> {
        let node = tree.get(path).ok_or(code::NO_NODE)?;
        if !self.may(client, node, READ) && !self.may(client, node, ADMIN) {
            return Err(code::NO_AUTH);
        }
        let acl = node.acl().map(|acl| &acl[..]).unwrap_or_default();
        if self.may(client, node, ADMIN) {
            put_acl(out, acl);
        } else {
            put_acl(out, &access::masked(acl));
        }
        put_stat(out, &node.stat());
        Ok(())
    }

    /// An element of a multiRead; the flag for a watch means nothing there.
    #[allow(clippy::wildcard_enum_match_arm, reason = "no other can be in one")]
    fn element(&self, tree: &Tree, client: ClientId, element: &Request) -> MultiResult {
        let read = match element {
            Request::GetData { path, .. } => self
                .readable(tree, client, path)
                .map(|node| MultiResult::Data { data: node.data().cloned(), stat: node.stat() }),
            Request::GetChildren { path, .. } => self.readable(tree, client, path).map(|node| {
                MultiResult::Children { names: node.children().map(String::from).collect() }
            }),
            _ => Err(code::UNIMPLEMENTED),
        };
        read.unwrap_or_else(|err| MultiResult::Failed { err })
    }
}

/// The node whose contents may make a reply long.
#[allow(clippy::wildcard_enum_match_arm, reason = "the others are short, or of many nodes")]
fn path_of(request: &Request) -> Option<&str> {
    match request {
        Request::GetData { path, .. }
        | Request::GetChildren { path, .. }
        | Request::GetChildren2 { path, .. }
        | Request::GetAcl { path } => Some(path),
        Request::GetEphemerals { prefix } => prefix.as_deref(),
        _ => None,
    }
}

/// What whoAmI shows of an identity: of a digest the name only.
fn shown(own: &Identity) -> &str {
    match &*own.scheme {
        "digest" => own.id.split(':').next().unwrap_or_default(),
        _ => &own.id,
    }
}

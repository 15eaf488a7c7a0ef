//! Watches that a client sets again after a reconnect: all for which there is to be room, or none.
//!
//! What has changed since is told at once instead; without asking who may read it, as ZooKeeper does not.
//!
//! | list | node absent | node present |
//! |---|---|---|
//! | data | deleted | changed since: data changed; else watched |
//! | exist | watched | created |
//! | child | deleted | changed since: children changed; else watched |
//! | persistent, recursive | watched | watched |

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use quorate_application::clients::{ClientId, Close};
use quorate_core::time::Instant;
use quorate_core::zxid::Zxid;
use quorate_znode::Tree;

use crate::connection::Connection;
use crate::service::{Service, Step};
use crate::watches::Watch;
use crate::wire::event::{CHILDREN_CHANGED, CREATED, DATA_CHANGED, DELETED};
use crate::wire::{Request, WatcherEvent, code};

/// What becomes of one path of the lists.
enum Again {
    /// An event, of this kind.
    Tell(i32, String),
    Watch(Watch, String),
}

impl Service {
    /// Carries out setWatches or setWatches2. Clients take no notice of its answer: where there is no room for all of its
    /// watches the connection ends, so that its client looks for another server rather than waits for events that never come.
    pub(crate) fn watch_again(
        &mut self,
        step: &mut Step<'_>,
        client: ClientId,
        request: Request,
    ) -> Result<(), i32> {
        let mut planned = Vec::new();
        let whole = plan(step.state.tree(), request, &mut planned);
        let new = planned.iter().filter_map(|again| match again {
            Again::Watch(_, path) if !self.watches.holds(client, path) => Some(&**path),
            Again::Watch(..) | Again::Tell(..) => None,
        });
        if new.collect::<BTreeSet<&str>>().len() > self.room_for_watches(client) {
            self.note_refused_watch(step.at, client);
            self.close(step.out, client, Close::AfterWriting);
            return Err(code::THROTTLED);
        }
        for again in planned {
            match again {
                Again::Watch(watch, path) => self.watches.add(client, &path, watch),
                Again::Tell(kind, path) => {
                    let event = WatcherEvent { kind, path }.encode(Zxid(-1));
                    self.counters.events += 1;
                    self.send(step.out, client, event);
                }
            }
        }
        whole.ok_or(code::MARSHALLING_ERROR)
    }

    /// How many more paths a client may watch.
    pub(crate) fn room_for_watches(&self, client: ClientId) -> usize {
        let (own, all) = (self.options.watches_per_client_max, self.options.watches_max);
        self.watches.room(client, own, all)
    }

    /// A watch was one too many.
    pub(crate) fn note_refused_watch(&mut self, now: Instant, client: ClientId) {
        self.counters.watches_refused += 1;
        if let Some(suppressed) = self.said_watches.permit(now) {
            let session = self.clients.get(&client).and_then(Connection::session).unwrap_or(0);
            tracing::warn!(
                event = "watch.refused",
                session = format_args!("0x{session:x}"),
                suppressed,
                "a watch is one more than quorate.maxWatchesPerConnection or quorate.maxWatches"
            );
        }
    }
}

/// What is to be done, in the order of the lists: up to a path that is null, where ZooKeeper stops.
fn plan(tree: &Tree, request: Request, planned: &mut Vec<Again>) -> Option<()> {
    let Request::SetWatches { relative_zxid, data, exist, child, persistent, recursive, .. } =
        request
    else {
        return Some(());
    };
    for path in data {
        let path = path?;
        let changed = tree.get(&path).map(|node| node.stat().mzxid > relative_zxid);
        planned.push(match changed {
            None => Again::Tell(DELETED, path),
            Some(true) => Again::Tell(DATA_CHANGED, path),
            Some(false) => Again::Watch(Watch::Data, path),
        });
    }
    for path in exist {
        let path = path?;
        planned.push(match tree.get(&path) {
            Some(_) => Again::Tell(CREATED, path),
            None => Again::Watch(Watch::Data, path),
        });
    }
    for path in child {
        let path = path?;
        planned.push(match tree.get(&path).map(|node| node.stat().pzxid > relative_zxid) {
            None => Again::Tell(DELETED, path),
            Some(true) => Again::Tell(CHILDREN_CHANGED, path),
            Some(false) => Again::Watch(Watch::Children, path),
        });
    }
    for path in persistent {
        planned.push(Again::Watch(Watch::Persistent, path?));
    }
    for path in recursive {
        planned.push(Again::Watch(Watch::Recursive, path?));
    }
    Some(())
}

//! Who wants to hear of what: the watches of this server's clients.
//!
//! ```text
//!   transaction at p, parent q     1st: data table      2nd: child table of p    3rd: child table of q
//!   create                         NodeCreated at p                              NodeChildrenChanged at q
//!   delete                         NodeDeleted at p     NodeDeleted at p         NodeChildrenChanged at q
//!   set data                       NodeDataChanged at p
//! ```
//!
//! Two tables, as in ZooKeeper. A standard watch fires once, a persistent one stays; both are for one path. A recursive one
//! is for a node and all below it, and hears of no children. Each kind stands beside the others on the same path. One
//! client has at most one event of a transaction and a walk through a table, however many watches of it match.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Unbounded};

use quorate_application::clients::ClientId;

/// The watches of all clients of a server.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    data: Table,
    child: Table,
    counts: Counts,
    by_client: BTreeMap<ClientId, Held>,
    /// How many paths these are, each once for each client.
    held: usize,
    /// How often a client stands at a path, in both tables together.
    places: usize,
    /// The same of the data table alone.
    data_places: usize,
    /// How many clients stand there.
    data_clients: usize,
}

/// What a client watches.
#[derive(Debug, Default)]
struct Held {
    paths: BTreeSet<Arc<str>>,
    /// How many of these stand in the data table.
    of_data: usize,
}

/// How many watches there are of each kind; without a recursive one no ancestor is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) data: usize,
    pub(crate) children: usize,
    pub(crate) persistent: usize,
    pub(crate) recursive: usize,
}

impl Counts {
    /// Modes in the data table have come or gone.
    fn data(&mut self, modes: u8, change: fn(usize, usize) -> usize) {
        self.data = change(self.data, usize::from(modes & STANDARD != 0));
        self.persistent = change(self.persistent, usize::from(modes & PERSISTENT != 0));
        self.recursive = change(self.recursive, usize::from(modes & RECURSIVE != 0));
    }

    /// The same in the child table, where persistent ones stand a second time.
    fn children(&mut self, modes: u8, change: fn(usize, usize) -> usize) {
        self.children = change(self.children, usize::from(modes & STANDARD != 0));
    }
}

type Table = BTreeMap<Arc<str>, BTreeMap<ClientId, u8>>;

/// A kind of watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// On a node's data, or on its coming into being: fires once.
    Data,
    /// On a node's children: fires once.
    Children,
    /// On both, and stays.
    Persistent,
    /// On the data of a node and of all below it, and stays.
    Recursive,
}

/// Which watches are asked about or removed, by the protocol's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchKind {
    Children,
    Data,
    Any,
    Persistent,
    Recursive,
}

impl WatchKind {
    pub(crate) const fn of(number: i32) -> Option<Self> {
        Some(match number {
            1 => Self::Children,
            2 => Self::Data,
            3 => Self::Any,
            4 => Self::Persistent,
            5 => Self::Recursive,
            _ => return None,
        })
    }

    /// The modes in the data table and in the child table.
    const fn modes(self) -> (u8, u8) {
        match self {
            Self::Children => (0, STANDARD),
            Self::Data => (STANDARD, 0),
            Self::Any => (STANDARD | PERSISTENT | RECURSIVE, STANDARD | PERSISTENT),
            Self::Persistent => (PERSISTENT, PERSISTENT),
            Self::Recursive => (RECURSIVE, 0),
        }
    }
}

impl Watches {
    /// A client wants to hear. Twice the same is once.
    pub(crate) fn add(&mut self, client: ClientId, path: &str, watch: Watch) {
        let (data, child) = match watch {
            Watch::Data => (STANDARD, 0),
            Watch::Children => (0, STANDARD),
            Watch::Persistent => (PERSISTENT, PERSISTENT),
            Watch::Recursive => (RECURSIVE, 0),
        };
        let of_client = self.by_client.entry(client).or_default();
        let path = match of_client.paths.get(path) {
            Some(path) => Arc::clone(path),
            None => {
                let path: Arc<str> = path.into();
                of_client.paths.insert(Arc::clone(&path));
                self.held += 1;
                path
            }
        };
        let (new, first) = put(&mut self.data, client, &path, data);
        self.counts.data(new, usize::saturating_add);
        if first {
            self.data_clients += usize::from(of_client.of_data == 0);
            of_client.of_data += 1;
            self.data_places += 1;
            self.places += 1;
        }
        let (new, first) = put(&mut self.child, client, &path, child);
        self.counts.children(new, usize::saturating_add);
        self.places += usize::from(first);
    }

    /// How many more paths a client may watch, if it may watch so many and all together so many.
    pub(crate) fn room(&self, client: ClientId, of_client: usize, of_all: usize) -> usize {
        let held = self.by_client.get(&client).map_or(0, |held| held.paths.len());
        of_client.saturating_sub(held).min(of_all.saturating_sub(self.held))
    }

    /// Whether a client watches a path in any way.
    pub(crate) fn holds(&self, client: ClientId, path: &str) -> bool {
        self.by_client.get(&client).is_some_and(|held| held.paths.contains(path))
    }

    /// Whether a client has such a watch on a path.
    pub(crate) fn has(&self, client: ClientId, path: &str, kind: WatchKind) -> bool {
        let held = |table: &Table| {
            table.get(path).and_then(|clients| clients.get(&client)).copied().unwrap_or(0)
        };
        let (data, child) = kind.modes();
        held(&self.data) & data != 0 || held(&self.child) & child != 0
    }

    /// A client does not want to hear any more. False if it had no such watch.
    pub(crate) fn remove(&mut self, client: ClientId, path: &str, kind: WatchKind) -> bool {
        let had = self.has(client, path, kind);
        let (data, child) = kind.modes();
        self.take(client, path, data, child);
        self.forget_path(client, path);
        had
    }

    /// A client has gone, with all its watches.
    pub(crate) fn drop_client(&mut self, client: ClientId) {
        let Held { paths, of_data } = self.by_client.remove(&client).unwrap_or_default();
        self.held -= paths.len();
        self.data_places -= of_data;
        self.data_clients -= usize::from(of_data > 0);
        for path in paths {
            self.take(client, &path, u8::MAX, u8::MAX);
        }
    }

    fn take(&mut self, client: ClientId, path: &str, data: u8, child: u8) {
        let (removed, last) = take(&mut self.data, client, path, data);
        self.counts.data(removed, usize::saturating_sub);
        self.places -= usize::from(last);
        if last {
            self.left_data(client);
        }
        let (removed, last) = take(&mut self.child, client, path, child);
        self.counts.children(removed, usize::saturating_sub);
        self.places -= usize::from(last);
    }

    /// A node was created, deleted or set: those that hear of it.
    pub(crate) fn node(&mut self, path: &str, hear: &mut Vec<ClientId>) {
        if let Some(clients) = self.data.get_mut(path) {
            hear.extend(clients.keys());
            let (fired, standard) = expire(clients);
            self.counts.data -= fired;
            self.places -= standard.len();
            if clients.is_empty() {
                self.data.remove(path);
            }
            for client in standard {
                self.left_data(client);
                self.forget_path(client, path);
            }
        }
        if self.counts.recursive > 0 {
            self.ancestors(path, hear);
        }
        hear.sort_unstable();
        hear.dedup();
    }

    /// Those with a recursive watch above the node.
    fn ancestors(&self, path: &str, hear: &mut Vec<ClientId>) {
        let mut below = path;
        while let Some((above, _)) = below.rsplit_once('/') {
            let named = if above.is_empty() { "/" } else { above };
            if named != below {
                let clients = self.data.get(named).into_iter().flatten();
                hear.extend(clients.filter(|(_, modes)| **modes & RECURSIVE != 0).map(|(c, _)| c));
            }
            below = above;
        }
    }

    /// The children of a node have changed, or it has gone: those that watch them.
    pub(crate) fn children(&mut self, path: &str, hear: &mut Vec<ClientId>) {
        let Some(clients) = self.child.get_mut(path) else { return };
        hear.extend(clients.keys());
        let (fired, standard) = expire(clients);
        self.counts.children -= fired;
        self.places -= standard.len();
        if clients.is_empty() {
            self.child.remove(path);
        }
        for client in standard {
            self.forget_path(client, path);
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_client.is_empty()
    }

    /// How many clients watch, how many paths, and how many watches there are, of the data table as `wchs` counts.
    pub(crate) fn summary(&self) -> (usize, usize, usize) {
        (self.data_clients, self.data.len(), self.data_places)
    }

    /// How many watches there are, of both tables.
    pub(crate) const fn len(&self) -> usize {
        self.places
    }

    /// How many there are of each kind.
    pub(crate) const fn counts(&self) -> Counts {
        self.counts
    }

    /// The paths of the data table and who watches them.
    pub(crate) fn by_path(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = ClientId>)> {
        self.data.iter().map(|(path, clients)| (&**path, clients.keys().copied()))
    }

    /// The next path of the data table.
    pub(crate) fn path_behind(&self, behind: Option<&str>) -> Option<&Arc<str>> {
        let from = behind.map_or(Unbounded, Excluded);
        self.data.range::<str, _>((from, Unbounded)).next().map(|(path, _)| path)
    }

    /// The next client that stands there at a path.
    pub(crate) fn client_behind(&self, path: &str, behind: Option<ClientId>) -> Option<ClientId> {
        let from = behind.map_or(Unbounded, Excluded);
        self.data.get(path)?.range((from, Unbounded)).next().map(|(client, _)| *client)
    }

    /// The next path that a client watches, and whether it stands in the data table.
    pub(crate) fn of_client(
        &self,
        client: ClientId,
        behind: Option<&str>,
    ) -> Option<(&Arc<str>, bool)> {
        let from = behind.map_or(Unbounded, Excluded);
        let held = self.by_client.get(&client)?;
        let path = held.paths.range::<str, _>((from, Unbounded)).next()?;
        Some((path, self.data.get(path).is_some_and(|clients| clients.contains_key(&client))))
    }

    /// Whether a client stands in the data table.
    pub(crate) fn watches_data(&self, client: ClientId) -> bool {
        self.by_client.get(&client).is_some_and(|held| held.of_data > 0)
    }

    /// A client stands at one path less in the data table.
    fn left_data(&mut self, client: ClientId) {
        let Some(held) = self.by_client.get_mut(&client) else { return };
        held.of_data -= 1;
        self.data_places -= 1;
        self.data_clients -= usize::from(held.of_data == 0);
    }

    /// A client has no watch on a path any more, if that is so.
    fn forget_path(&mut self, client: ClientId, path: &str) {
        let held = |table: &Table| table.get(path).is_some_and(|held| held.contains_key(&client));
        if held(&self.data) || held(&self.child) {
            return;
        }
        if let Some(held) = self.by_client.get_mut(&client) {
            self.held -= usize::from(held.paths.remove(path));
            if held.paths.is_empty() {
                self.by_client.remove(&client);
            }
        }
    }
}

/// Adds modes of a client to a path; which of them are new, and whether it had none there.
fn put(table: &mut Table, client: ClientId, path: &Arc<str>, modes: u8) -> (u8, bool) {
    if modes == 0 {
        return (0, false);
    }
    let held = match table.get_mut(path) {
        Some(clients) => clients.entry(client).or_default(),
        None => table.entry(Arc::clone(path)).or_default().entry(client).or_default(),
    };
    let (new, first) = (modes & !*held, *held == 0);
    *held |= modes;
    (new, first)
}

/// Takes modes of a client away from a path; which of them it had, and whether it has none left there.
fn take(table: &mut Table, client: ClientId, path: &str, modes: u8) -> (u8, bool) {
    let Some(clients) = table.get_mut(path) else { return (0, false) };
    let Some(held) = clients.get_mut(&client) else { return (0, false) };
    let taken = *held & modes;
    *held &= !modes;
    let last = *held == 0;
    if last {
        clients.remove(&client);
        if clients.is_empty() {
            table.remove(path);
        }
    }
    (taken, last)
}

/// Standard watches have fired: how many, and those that have no other left.
fn expire(clients: &mut BTreeMap<ClientId, u8>) -> (usize, Vec<ClientId>) {
    let (mut fired, mut gone) = (0, Vec::new());
    clients.retain(|client, modes| {
        fired += usize::from(*modes & STANDARD != 0);
        *modes &= !STANDARD;
        if *modes == 0 {
            gone.push(*client);
        }
        *modes != 0
    });
    (fired, gone)
}

const STANDARD: u8 = 1;
const PERSISTENT: u8 = 2;
const RECURSIVE: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const ONE: ClientId = ClientId(1);
    const TWO: ClientId = ClientId(2);

    fn node(watches: &mut Watches, path: &str) -> Vec<u64> {
        let mut hear = Vec::new();
        watches.node(path, &mut hear);
        hear.iter().map(|client| client.0).collect()
    }

    fn children(watches: &mut Watches, path: &str) -> Vec<u64> {
        let mut hear = Vec::new();
        watches.children(path, &mut hear);
        hear.iter().map(|client| client.0).collect()
    }

    #[test]
    fn a_standard_watch_fires_once_and_leaves_nothing_behind() {
        let mut watches = Watches::default();
        watches.add(ONE, "/a", Watch::Data);
        watches.add(ONE, "/a", Watch::Data);
        watches.add(ONE, "/a", Watch::Children);
        assert_eq!(node(&mut watches, "/a"), [1]);
        assert_eq!(node(&mut watches, "/a"), [0; 0]);
        assert_eq!(children(&mut watches, "/a"), [1]);
        assert!(watches.is_empty() && watches.data.is_empty() && watches.child.is_empty());
    }

    #[test]
    fn a_recursive_watch_hears_of_all_below_and_once_however_many_match() {
        let mut watches = Watches::default();
        watches.add(ONE, "/", Watch::Recursive);
        watches.add(ONE, "/a", Watch::Recursive);
        watches.add(ONE, "/a/b", Watch::Data);
        watches.add(TWO, "/a/b/c", Watch::Recursive);
        assert_eq!(node(&mut watches, "/a/b"), [1]);
        assert_eq!(node(&mut watches, "/a/b/c/d"), [1, 2]);
        assert_eq!(node(&mut watches, "/"), [1]);
        assert_eq!(children(&mut watches, "/a"), [0; 0]);
        watches.drop_client(ONE);
        assert_eq!(node(&mut watches, "/a/b"), [0; 0]);
        assert!(watches.remove(TWO, "/a/b/c", WatchKind::Recursive));
        assert_eq!(watches.counts, Counts::default());
        assert!(watches.is_empty());
    }

    #[test]
    fn each_kind_stands_beside_the_others_and_goes_alone() {
        let all = [Watch::Data, Watch::Children, Watch::Persistent, Watch::Recursive];
        let kinds =
            [WatchKind::Data, WatchKind::Children, WatchKind::Persistent, WatchKind::Recursive];
        for goes in 0..4 {
            let mut watches = Watches::default();
            for watch in all {
                watches.add(ONE, "/a", watch);
            }
            assert!(watches.remove(ONE, "/a", kinds[goes]));
            assert!(!watches.remove(ONE, "/a", kinds[goes]));
            let left: Vec<_> = kinds.iter().map(|kind| watches.has(ONE, "/a", *kind)).collect();
            let expected: Vec<_> = (0..4).map(|kind| kind != goes).collect();
            assert_eq!(left, expected);
            assert!(watches.remove(ONE, "/a", WatchKind::Any) && watches.is_empty());
        }
        assert_eq!(vec![None; 2], [WatchKind::of(0), WatchKind::of(6)]);
    }

    /// What is kept beside the tables is what a walk over them would count.
    #[test]
    fn what_is_counted_is_what_there_is() {
        let mut watches = Watches::default();
        let kinds = [Watch::Data, Watch::Children, Watch::Persistent, Watch::Recursive];
        let paths = ["/", "/a", "/a/b", "/c"];
        let mut seed = 7_usize;
        for step in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            let (a, b, c) = (seed >> 33, seed >> 40, seed >> 50);
            let (client, path) = (ClientId(a as u64 % 3), paths[b % 4]);
            match c % 8 {
                0..=3 => watches.add(client, path, kinds[c % 4]),
                4 => drop(node(&mut watches, path)),
                5 => drop(children(&mut watches, path)),
                6 => {
                    let kind = WatchKind::of(1 + i32::try_from(b % 5).unwrap()).unwrap();
                    watches.remove(client, path, kind);
                }
                _ => watches.drop_client(client),
            }
            let of = |table: &Table| table.values().map(BTreeMap::len).sum::<usize>();
            assert_eq!(watches.len(), of(&watches.data) + of(&watches.child), "step {step}");
            let held: usize = watches.by_client.values().map(|held| held.paths.len()).sum();
            assert_eq!(watches.held, held, "step {step}");
            let clients: BTreeSet<_> = watches.data.values().flat_map(BTreeMap::keys).collect();
            let summary = (clients.len(), watches.data.len(), of(&watches.data));
            assert_eq!(watches.summary(), summary, "step {step}");
        }
    }
}

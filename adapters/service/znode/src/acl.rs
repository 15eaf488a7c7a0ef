//! Access lists, and the table in which nodes share them.
//!
//! A node holds a key, not a list; a list that many nodes have is kept once. Keys are counted up and
//! never used twice, and a list leaves with its last node, all as ZooKeeper does it: snapshots of the
//! same history have the same keys. Whether a client may do something is decided in `access`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use crate::map::Map;

/// One entry of an access list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acl {
    /// What is permitted: 1 read, 2 write, 4 create, 8 delete, 16 administer.
    pub perms: i32,
    /// How the client is known: `world`, `digest`, `ip`, …
    pub scheme: Box<str>,
    /// The client's identity within the scheme.
    pub id: Box<str>,
}

impl Acl {
    /// An entry for every client.
    pub fn world(perms: i32) -> Self {
        Self { perms, scheme: "world".into(), id: "anyone".into() }
    }
}

/// An access list, shared.
pub type Acls = Arc<[Acl]>;

/// The key of the list that permits everything to every client, for nodes whose list is null.
pub(crate) const OPEN: i64 = -1;

/// What [`OPEN`] stands for.
pub(crate) static OPEN_LIST: LazyLock<Acls> = LazyLock::new(|| Arc::new([Acl::world(31)]));

/// The lists by key, and how many nodes have them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AclTable {
    /// Shared with snapshots.
    lists: Map<i64, Acls>,
    /// Only looked up in: nothing depends on its order.
    keys: HashMap<Acls, i64>,
    uses: BTreeMap<i64, u64>,
    /// The last key that was given out.
    last: i64,
}

impl AclTable {
    /// The list with this key, if it is here.
    pub(crate) fn of(&self, key: i64) -> Option<&Acls> {
        if key == OPEN { Some(&OPEN_LIST) } else { self.lists.get(&key) }
    }

    /// The lists by key.
    pub(crate) const fn lists(&self) -> &Map<i64, Acls> {
        &self.lists
    }

    /// A key for one node's list.
    pub(crate) fn acquire(&mut self, list: Option<Vec<Acl>>) -> i64 {
        let Some(list) = list else { return OPEN };
        let key = match self.keys.get(&list[..]) {
            Some(&key) => key,
            None => {
                let key = self.next();
                self.insert(key, list.into());
                key
            }
        };
        self.acquire_key(key);
        key
    }

    /// One more node has `key`. Keys that are not in the table are not counted.
    pub(crate) fn acquire_key(&mut self, key: i64) {
        if let Some(uses) = self.uses.get_mut(&key) {
            *uses += 1;
        }
    }

    /// One node less has `key`; with the last, the list goes.
    pub(crate) fn release(&mut self, key: i64) {
        let Some(uses) = self.uses.get_mut(&key) else { return };
        *uses = uses.saturating_sub(1);
        if *uses == 0 {
            self.forget(key);
        }
    }

    /// Puts a list, with no node, into the table. False if the key is taken, or may not be.
    pub(crate) fn insert(&mut self, key: i64, list: Acls) -> bool {
        if key == OPEN || self.uses.contains_key(&key) {
            return false;
        }
        self.reserve(key);
        self.uses.insert(key, 0);
        self.keys.insert(Arc::clone(&list), key);
        self.lists.insert(key, list);
        true
    }

    /// `key` and those below it will not be given out again.
    pub(crate) fn reserve(&mut self, key: i64) {
        self.last = self.last.max(key);
    }

    /// Removes the lists that no node has.
    pub(crate) fn purge(&mut self) {
        let unused: Vec<_> =
            self.uses.iter().filter(|(_, uses)| **uses == 0).map(|(key, _)| *key).collect();
        for key in unused {
            self.forget(key);
        }
    }

    fn forget(&mut self, key: i64) {
        self.uses.remove(&key);
        if let Some(list) = self.lists.remove(&key) {
            // A snapshot may have the same list under two keys; the last one stands in `keys`.
            if self.keys.get(&list) == Some(&key) {
                self.keys.remove(&list);
            }
        }
    }

    fn next(&self) -> i64 {
        let mut key = self.last.wrapping_add(1);
        // Only a snapshot with keys near the end of the numbers can lead to a second turn.
        while key == OPEN || self.uses.contains_key(&key) {
            key = key.wrapping_add(1);
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read() -> Option<Vec<Acl>> {
        Some(vec![Acl::world(1)])
    }

    fn all() -> Option<Vec<Acl>> {
        Some(vec![Acl::world(31)])
    }

    #[test]
    fn equal_lists_share_a_key_and_leave_with_their_last_node() {
        let mut table = AclTable::default();
        assert_eq!((table.acquire(read()), table.acquire(all()), table.acquire(read())), (1, 2, 1));
        table.release(1);
        assert!(table.lists().get(&1).is_some());
        table.release(1);
        assert!(table.lists().get(&1).is_none());
        assert_eq!(table.acquire(read()), 3, "keys are not used again");
    }

    #[test]
    fn no_list_is_the_open_one_and_never_in_the_table() {
        let mut table = AclTable::default();
        assert_eq!(table.acquire(None), OPEN);
        table.release(OPEN);
        assert_eq!(table.lists().len(), 0);
        assert!(!table.insert(OPEN, OPEN_LIST.clone()));
    }

    #[test]
    fn keys_near_the_end_of_the_numbers_do_not_overflow() {
        let mut table = AclTable::default();
        assert!(table.insert(i64::MAX, read().unwrap().into()));
        assert!(!table.insert(i64::MAX, all().unwrap().into()));
        assert_eq!(table.acquire(all()), i64::MIN);
        assert_eq!(table.acquire(Some(vec![])), i64::MIN + 1);
    }

    #[test]
    fn purging_takes_what_no_node_has() {
        let mut table = AclTable::default();
        for key in [4, 7] {
            assert!(table.insert(key, read().unwrap().into()));
        }
        table.acquire_key(4);
        table.purge();
        assert_eq!(table.lists().iter().map(|(key, _)| *key).collect::<Vec<_>>(), [4]);
        assert_eq!(table.acquire(all()), 8);
    }
}

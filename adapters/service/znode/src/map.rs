//! A persistent sorted map: copies are cheap and share what they have in common.
//!
//! A B+ tree of shared pages. A copy of the map is one reference count; after it, each of the two
//! copies a page of at most [`FULL`] entries (and those above it, one per level) the first time that
//! it changes something there. So a snapshot of a tree costs nothing when it is taken, and each later
//! change a few microseconds more, at most once per page.
//!
//! Pages that have become small are merged with a neighbour; there is no further balancing.

use std::borrow::Borrow;
use std::slice;
use std::sync::Arc;

/// The most entries that a page has.
const FULL: usize = 64;
/// A page with fewer is merged with a neighbour if both fit well into one.
const SMALL: usize = FULL / 4;
/// How much room is left in a page that others grow behind.
const LATE: usize = FULL / 8;

/// See the module.
///
/// A pointer, no more: every node of a tree has one, and most have no children.
#[derive(Clone, Debug)]
pub(crate) struct Map<K, V> {
    root: Option<Arc<Page<K, V>>>,
}

#[derive(Clone, Debug)]
enum Page<K, V> {
    Leaf(Vec<(K, V)>),
    /// A key here is not above any key of its page, and above all keys of the page before; the first
    /// one is not looked at. And how many entries the leaves below it have.
    Inner(Vec<(K, Arc<Self>)>, usize),
}

/// A page that was cut off another, and its first key.
type Cut<K, V> = (K, Arc<Page<K, V>>);

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self { root: None }
    }
}

impl<K, V> Map<K, V> {
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.root.as_ref().map_or(0, |root| root.len())
    }

    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The entries in order.
    pub(crate) fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter { above: Vec::new(), leaf: [].iter() };
        if let Some(root) = &self.root {
            iter.descend(root);
        }
        iter
    }

    /// The entries behind `key`, which need not be there, in order.
    pub(crate) fn iter_behind<Q: Ord + ?Sized>(&self, key: &Q) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let mut iter = Iter { above: Vec::new(), leaf: [].iter() };
        let Some(mut page) = self.root.as_deref() else { return iter };
        loop {
            match page {
                Page::Inner(pages, _) => {
                    let at = way(pages, key);
                    iter.above.push(pages[at + 1..].iter());
                    page = &pages[at].1;
                }
                Page::Leaf(entries) => {
                    let at = find(entries, key).map_or_else(|at| at, |at| at + 1);
                    iter.leaf = entries[at..].iter();
                    return iter;
                }
            }
        }
    }

    /// Takes the map apart and hands over the values that no copy shares.
    pub(crate) fn drain_unshared(self, take: &mut impl FnMut(V)) {
        if let Some(root) = self.root {
            drain(root, take);
        }
    }
}

fn drain<K, V>(page: Arc<Page<K, V>>, take: &mut impl FnMut(V)) {
    match Arc::into_inner(page) {
        None => {}
        Some(Page::Leaf(entries)) => entries.into_iter().for_each(|(_, value)| take(value)),
        Some(Page::Inner(pages, _)) => pages.into_iter().for_each(|(_, page)| drain(page, take)),
    }
}

impl<K, V> Map<K, V> {
    /// The value of `key`.
    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut page = &**self.root.as_ref()?;
        loop {
            match page {
                Page::Inner(pages, _) => page = &pages[way(pages, key)].1,
                Page::Leaf(entries) => return find(entries, key).ok().map(|at| &entries[at].1),
            }
        }
    }

    /// Whether there is a value of `key`.
    pub(crate) fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }
}

impl<K: Ord + Clone, V: Clone> Map<K, V> {
    /// The value of `key`, to be changed.
    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let mut page = Arc::make_mut(self.root.as_mut()?);
        loop {
            match page {
                Page::Inner(pages, _) => {
                    let at = way(pages, key);
                    page = Arc::make_mut(&mut pages[at].1);
                }
                Page::Leaf(entries) => {
                    return find(entries, key).ok().map(|at| &mut entries[at].1);
                }
            }
        }
    }

    /// Sets the value of `key`; the one before, if there was one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Some(root) = &mut self.root else {
            // Most nodes of a tree have few children: no room for a full page.
            self.root = Some(Arc::new(Page::Leaf(vec![(key, value)])));
            return None;
        };
        let (before, cut) = insert(root, key, value);
        if let Some((first, right)) = cut {
            let left = Arc::clone(root);
            let len = left.len() + right.len();
            let pages = vec![(first.clone(), left), (first, right)];
            self.root = Some(Arc::new(Page::Inner(pages, len)));
        }
        before
    }

    /// Removes `key`; the value that it had.
    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if !self.contains(key) {
            // Nothing is to be copied for that.
            return None;
        }
        let root = self.root.as_mut()?;
        let value = remove(root, key);
        while let Page::Inner(pages, _) = &**root {
            if pages.len() > 1 {
                break;
            }
            let only = Arc::clone(&pages[0].1);
            *root = only;
        }
        if root.len() == 0 {
            self.root = None;
        }
        value
    }
}

/// Which of the pages `key` belongs to.
fn way<K: Borrow<Q>, Q: Ord + ?Sized, V>(pages: &[(K, V)], key: &Q) -> usize {
    // Often things come in order: look at the end first.
    match pages {
        [.., (last, _)] if last.borrow() <= key => pages.len() - 1,
        [_, pages @ ..] => pages.partition_point(|(first, _)| first.borrow() <= key),
        [] => 0,
    }
}

/// Where `key` is, or would be.
fn find<K: Borrow<Q>, Q: Ord + ?Sized, V>(entries: &[(K, V)], key: &Q) -> Result<usize, usize> {
    match entries {
        [.., (last, _)] if last.borrow() < key => Err(entries.len()),
        entries => entries.binary_search_by(|(other, _)| other.borrow().cmp(key)),
    }
}

fn insert<K: Ord + Clone, V: Clone>(
    page: &mut Arc<Page<K, V>>,
    key: K,
    value: V,
) -> (Option<V>, Option<Cut<K, V>>) {
    match Arc::make_mut(page) {
        Page::Leaf(entries) => {
            let at = match find(entries, &key) {
                Ok(at) => return (Some(std::mem::replace(&mut entries[at].1, value)), None),
                Err(at) => at,
            };
            entries.insert(at, (key, value));
            let cut = cut(entries, at);
            (None, cut.map(|right| (right[0].0.clone(), Arc::new(Page::Leaf(right)))))
        }
        Page::Inner(pages, len) => {
            let at = way(pages, &key);
            let (before, below) = insert(&mut pages[at].1, key, value);
            *len += usize::from(before.is_none());
            let Some(below) = below else { return (before, None) };
            pages.insert(at + 1, below);
            let cut = cut(pages, at + 1).map(|right| {
                let moved = right.iter().map(|(_, page)| page.len()).sum();
                *len -= moved;
                (right[0].0.clone(), Arc::new(Page::Inner(right, moved)))
            });
            (before, cut)
        }
    }
}

/// Cuts off the right part of a page that is too full; `at` is where it grew.
fn cut<E>(page: &mut Vec<E>, at: usize) -> Option<Vec<E>> {
    if page.len() <= FULL {
        return None;
    }
    // What grows at its end (sequential names, a snapshot being read) leaves nearly full pages behind; names
    // that come a little late find room there.
    let middle = if at + 1 == page.len() { FULL - LATE } else { page.len() / 2 };
    let mut right = page.split_off(middle);
    // The one entry too many has doubled its room.
    page.shrink_to(FULL);
    right.reserve_exact(FULL - right.len());
    Some(right)
}

fn remove<K: Ord + Clone + Borrow<Q>, V: Clone, Q: Ord + ?Sized>(
    page: &mut Arc<Page<K, V>>,
    key: &Q,
) -> Option<V> {
    match Arc::make_mut(page) {
        Page::Leaf(entries) => find(entries, key).ok().map(|at| entries.remove(at).1),
        Page::Inner(pages, len) => {
            let at = way(pages, key);
            let value = remove(&mut pages[at].1, key)?;
            *len -= 1;
            match pages[at].1.entries() {
                0 => drop(pages.remove(at)),
                1..SMALL if pages.len() > 1 => merge(pages, at.max(1)),
                _ => {}
            }
            Some(value)
        }
    }
}

/// Merges page `at` into the one before it, if both together leave room.
fn merge<K: Clone, V: Clone>(pages: &mut Vec<Cut<K, V>>, at: usize) {
    if pages[at - 1].1.entries() + pages[at].1.entries() > FULL * 3 / 4 {
        return;
    }
    let (first, right) = pages.remove(at);
    match (Arc::make_mut(&mut pages[at - 1].1), Arc::unwrap_or_clone(right)) {
        (Page::Leaf(left), Page::Leaf(mut right)) => left.append(&mut right),
        (Page::Inner(left, len), Page::Inner(mut right, moved)) => {
            // It was not compared so far, and keys below it may have been added since.
            right[0].0 = first;
            left.append(&mut right);
            *len += moved;
        }
        (Page::Leaf(_), Page::Inner(..)) | (Page::Inner(..), Page::Leaf(_)) => {
            unreachable!("pages side by side are on one level")
        }
    }
}

impl<K, V> Page<K, V> {
    /// How many entries the map has here.
    fn len(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(_, len) => *len,
        }
    }

    /// How many the page has itself.
    fn entries(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(pages, _) => pages.len(),
        }
    }
}

/// The entries of a [`Map`] in order.
#[derive(Debug)]
pub(crate) struct Iter<'a, K, V> {
    above: Vec<slice::Iter<'a, Cut<K, V>>>,
    leaf: slice::Iter<'a, (K, V)>,
}

impl<'a, K, V> Iter<'a, K, V> {
    fn descend(&mut self, mut page: &'a Page<K, V>) {
        loop {
            match page {
                Page::Leaf(entries) => {
                    self.leaf = entries.iter();
                    return;
                }
                Page::Inner(pages, _) => {
                    let mut pages = pages.iter();
                    let Some((_, first)) = pages.next() else { return };
                    self.above.push(pages);
                    page = first;
                }
            }
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.leaf.next() {
                return Some((key, value));
            }
            let pages = self.above.last_mut()?;
            match pages.next() {
                Some((_, page)) => self.descend(page),
                None => drop(self.above.pop()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Bound;

    use super::*;

    fn same(map: &Map<u32, u32>, model: &BTreeMap<u32, u32>) {
        assert_eq!(map.len(), model.len());
        assert_eq!(map.is_empty(), model.is_empty());
        assert!(map.iter().eq(model.iter()));
        for key in [0, 1, 7, 63, 64, 65, 299, 5_000, 19_999, u32::MAX] {
            let behind = (Bound::Excluded(key), Bound::Unbounded);
            assert!(map.iter_behind(&key).eq(model.range(behind)), "behind {key}");
        }
    }

    /// Random changes against the standard map, with copies kept that must not change.
    #[test]
    fn is_the_standard_map_and_copies_stay_as_they_were() {
        for seed in 1..40_u32 {
            let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
            let mut random = move |below: u32| {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                state % below
            };
            // In the last, pages of pages are cut and merged, too.
            let (range, steps) = [(8, 6_000), (300, 6_000), (20_000, 45_000)][seed as usize % 3];
            let (mut map, mut model) = (Map::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for step in 0..steps {
                let key = random(range);
                // Grows, then shrinks, then grows again.
                let adding = if step / (steps / 3) == 1 { 1 } else { 7 };
                if random(10) < adding {
                    assert_eq!(map.insert(key, step), model.insert(key, step));
                } else {
                    assert_eq!(map.remove(&key), model.remove(&key));
                }
                let key = random(range);
                assert_eq!(map.get(&key), model.get(&key));
                if let (Some(mine), Some(theirs)) = (map.get_mut(&key), model.get_mut(&key)) {
                    (*mine, *theirs) = (step, step);
                }
                assert_eq!(map.len(), model.len());
                if random(steps / 6) == 0 {
                    copies.push((map.clone(), model.clone()));
                }
            }
            same(&map, &model);
            copies.iter().for_each(|(map, model)| same(map, model));
            while let Some((&key, _)) = model.first_key_value() {
                assert_eq!(map.remove(&key), model.remove(&key));
            }
            assert!(map.root.is_none());
        }
    }

    /// A page of pages lost its first one, and has keys since that are below the first key that it knows: merged into the one
    /// before it, it must not be looked for by that key.
    #[test]
    fn pages_are_merged_whose_first_keys_are_not_their_least() {
        let (mut map, mut model) = (Map::default(), BTreeMap::new());
        for key in (0..40_000).step_by(2) {
            map.insert(key, key);
            model.insert(key, key);
        }
        let Some(Page::Inner(pages, _)) = map.root.as_deref() else { panic!("no inner page") };
        let Page::Inner(second, _) = &*pages[1].1 else { panic!("one level") };
        let (least, next) = (second[0].0, second[1].0);
        let removed = (least..next).step_by(2);
        let added = (least + 1..next).step_by(2);
        let most = (200..least).chain(next + 200..40_000).filter(|key| key % 2 == 0);
        for key in removed {
            assert_eq!(map.remove(&key), model.remove(&key));
        }
        for key in added {
            assert_eq!(map.insert(key, key), model.insert(key, key));
        }
        for key in most {
            assert_eq!(map.remove(&key), model.remove(&key));
        }
        assert_eq!(map.len(), model.len());
        for key in model.keys() {
            assert_eq!(map.get(key), Some(key));
        }
    }

    #[test]
    fn keys_added_in_order_fill_pages_well() {
        let mut map = Map::default();
        for key in 0..10_000 {
            map.insert(key, ());
        }
        let Some(Page::Inner(pages, _)) = map.root.as_deref() else { panic!("no inner page") };
        assert!(pages.len() <= 10_000 / (FULL - LATE) / (FULL - LATE) + 1);
        assert!(map.iter().map(|(key, ())| *key).eq(0..10_000));
    }

    #[test]
    fn no_page_has_room_for_more_than_it_may_hold() {
        fn room(page: &Page<i32, ()>) -> usize {
            match page {
                Page::Leaf(entries) => entries.capacity(),
                Page::Inner(pages, _) => {
                    let below = pages.iter().map(|(_, page)| room(page));
                    pages.capacity().max(below.max().unwrap_or(0))
                }
            }
        }
        for step in [1, 7_919] {
            let mut map = Map::default();
            for n in 0..10_000 {
                map.insert(n * step % 10_007, ());
            }
            assert!(map.root.is_some_and(|root| room(&root) <= FULL));
        }
    }

    #[test]
    fn draining_hands_over_what_is_not_shared() {
        let mut map = Map::default();
        for key in 0..1_000 {
            map.insert(key, key);
        }
        let copy = map.clone();
        let mut drained = 0;
        map.drain_unshared(&mut |_| drained += 1);
        assert_eq!(drained, 0);
        copy.drain_unshared(&mut |_| drained += 1);
        assert_eq!(drained, 1_000);
    }
}

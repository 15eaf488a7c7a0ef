//! The paths of nodes: how they are split, and which are legal.
//!
//! Which names are legal is asked where a request is made into a transaction, and only there. For what is applied
//! or restored only that must hold on which the tree and its snapshots rest: a path is absolute, and no component
//! is empty.

/// ZooKeeper's own nodes.
pub(crate) const ZOOKEEPER: &str = "/zookeeper";
/// The node that holds the text of the ensemble's configuration.
pub(crate) const CONFIG: &str = "/zookeeper/config";
/// Above the limits and the statistics of quotas.
pub(crate) const QUOTA: &str = "/zookeeper/quota";

/// The names from the root to the node; none if this can be no path. `""` and `"/"` are the root.
pub(crate) fn components(path: &str) -> Option<impl Iterator<Item = &str>> {
    let below = match path {
        "" | "/" => None,
        _ => Some(path.strip_prefix('/')?),
    };
    Some(below.into_iter().flat_map(|below| below.split('/')))
}

/// The path of the parent (`""` for the root, which has no other name here) and the name; none for the root
/// and for what can be no path.
pub(crate) fn split(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    let absolute = parent.is_empty() || (parent.starts_with('/') && !parent.ends_with('/'));
    if absolute && !name.is_empty() { Some((parent, name)) } else { None }
}

/// How many names a path of a request may have. A Java server walks the tree by recursion, and its stack ends
/// somewhere beyond.
pub(crate) const NAMES_MAX: usize = 2_000;

/// The path of the parent, if this looks like the path of a node at all: what ZooKeeper asks of what is deleted,
/// and of what is created before the number of a sequential node stands behind it.
pub(crate) fn parent(path: &str) -> Option<&str> {
    let (parent, _) = path.rsplit_once('/')?;
    (!path.contains('\0') && !is_too_deep(path)).then_some(parent)
}

/// Whether a node may have this path.
pub(crate) fn is_legal(path: &str) -> bool {
    // Java judges the halves of what UTF-16 writes in two, and they are among the illegal.
    let legal = |character: char| {
        !matches!(character,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
    };
    let Some(below) = path.strip_prefix('/') else { return false };
    let fine =
        |name: &str| !name.is_empty() && name != "." && name != ".." && name.chars().all(legal);
    (below.is_empty() || below.split('/').all(fine)) && !is_too_deep(path)
}

fn is_too_deep(path: &str) -> bool {
    // Each name takes two bytes at least.
    path.len() > 2 * NAMES_MAX && path.bytes().filter(|byte| *byte == b'/').count() > NAMES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_its_names() {
        for root in ["", "/"] {
            assert_eq!(components(root).unwrap().count(), 0);
            assert_eq!(split(root), None);
        }
        assert_eq!(components("/a/b").unwrap().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(split("/a/b"), Some(("/a", "b")));
        assert_eq!(split("/a"), Some(("", "a")));
    }

    #[test]
    fn what_is_no_path_is_none() {
        assert!(components("a").is_none());
        for odd in ["a", "a/b", "/a/", "//", "//a", "/a//b"] {
            assert_eq!(split(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_path_may_have_two_thousand_names() {
        for (names, legal) in [(NAMES_MAX, true), (NAMES_MAX + 1, false)] {
            let path = "/a".repeat(names);
            assert_eq!((is_legal(&path), parent(&path).is_some()), (legal, legal), "{names}");
        }
    }
}

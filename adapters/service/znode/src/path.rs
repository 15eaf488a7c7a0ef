//! Splitting the paths of nodes; whether a path is legal is judged in `prepare`.
//!
//! Which names are legal is decided where a request is made into a transaction. Here only that must
//! hold on which the tree and its snapshots rest: a path is absolute, and no component is empty.

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
}

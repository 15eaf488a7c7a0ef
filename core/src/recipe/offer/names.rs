//! Names of offers: how ours are made, and which of those in a listing are offers.
//!
//! ```text
//!   n_0000000007                              LeaderElectionSupport
//!   67f2…-n_0000000008                        with a unique id in front (ZooKeeper's recipes page)
//!   100004e8a3b0001-0000000009                with the session in front
//!   _c_67f2…-…-…-…-…-latch-0000000010         Curator's LeaderLatch
//!   67f2…__lock__0000000011                   kazoo's Election
//!          └── the counter of the root: ten characters, an `int` that wraps
//! ```
//!
//! Since all of them are numbered by one counter, that of their parent, offers of all kinds stand in one
//! row. What does not end in `_` or `-` and the counter is no offer.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::recipe::boundary::SessionId;

/// How our offers are called.
///
/// All candidates of one root can have different ones, but for those that are read by programs which know
/// only their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Naming {
    /// `{guid}-n_` and the counter: after a lost answer our own offer is known by its name.
    #[default]
    Guid,
    /// `n_` and the counter: the only form that Java's LeaderElectionSupport reads. After a lost answer our
    /// own offer is known by the session that owns it, which takes a read for each sibling.
    Java,
    /// `{session}-` and the counter, the session in hexadecimal digits.
    Session,
    /// `_c_{uuid}-latch-` and the counter, beside Curator's LeaderLatch; the guid as a UUID, in groups with
    /// dashes between, for Curator knows no other names as its own (`ProtectedUtils`).
    Latch,
    /// `{guid}__lock__` and the counter, beside kazoo's Election.
    Kazoo,
    /// The lease in hexadecimal digits and nothing else, as etcd's `concurrency.Election` has it: there is no
    /// counter, and the store tells in which order keys were created.
    Lease,
}

impl Naming {
    /// What our name begins with; the whole of it with [`Naming::Lease`].
    pub(crate) fn prefix(self, guid: u128, session: SessionId) -> String {
        match self {
            Self::Guid => format!("{guid:032x}-n_"),
            Self::Java => String::from("n_"),
            Self::Session => format!("{:x}-", session.0),
            Self::Latch => {
                let [a, b, c, d] = [96, 80, 64, 48].map(|shift| guid >> shift);
                let [b, c, d, e] = [b & 0xffff, c & 0xffff, d & 0xffff, guid & 0xffff_ffff_ffff];
                format!("_c_{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}-latch-")
            }
            Self::Kazoo => format!("{guid:032x}__lock__"),
            Self::Lease => format!("{:x}", session.0),
        }
    }

    /// Whether the next offer of a session has the name of its last one.
    pub(crate) const fn comes_back(self) -> bool {
        matches!(self, Self::Lease)
    }

    /// Whether a name that begins with our prefix is of our making, whichever session made it.
    pub(crate) const fn is_telling(self) -> bool {
        !matches!(self, Self::Java)
    }
}

/// One child of the root, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Its name, without the path.
    pub name: String,
    /// When it was created, by the count of the store, if the listing tells (etcd's create revision). Then
    /// names mean nothing and the order is this.
    pub created: Option<u64>,
}

/// The offers of a listing, in order: the first leads. What is no offer is left out.
///
/// The counter is a Java `int` that wraps after 2147483647 to -2147483648 (ZooKeeper Programmer's Guide,
/// *Sequence Nodes*). Offers of one time lie close together, so the row begins behind the widest gap of the
/// circle.
pub fn queue(entries: &[Entry]) -> Vec<&Entry> {
    let mut row: Vec<(i64, &Entry)> = entries
        .iter()
        .filter_map(|entry| match entry.created {
            Some(created) => Some((i64::try_from(created).unwrap_or(i64::MAX), entry)),
            None => counter(&entry.name).map(|counter| (i64::from(counter), entry)),
        })
        .collect();
    row.sort_by(|(a, left), (b, right)| a.cmp(b).then_with(|| left.name.cmp(&right.name)));
    if row.iter().all(|(_, entry)| entry.created.is_none()) {
        let begin = behind_the_widest_gap(&row);
        row.rotate_left(begin);
    }
    row.into_iter().map(|(_, entry)| entry).collect()
}

/// Where a row of counters begins that has perhaps wrapped.
fn behind_the_widest_gap(row: &[(i64, &Entry)]) -> usize {
    const CIRCLE: i64 = 1 << 32;
    let (Some((first, _)), Some((last, _))) = (row.first(), row.last()) else { return 0 };
    let around = first + CIRCLE - last;
    let within = row.windows(2).map(|pair| pair[1].0 - pair[0].0).enumerate();
    let (begin, widest) =
        within.fold(
            (0, around),
            |(begin, widest), (at, gap)| {
                if gap > widest { (at + 1, gap) } else { (begin, widest) }
            },
        );
    debug_assert!(widest > 0 || row.len() > 1);
    begin
}

/// The counter at the end of a name, as Java's `String.format("%010d")` writes it: at least ten characters,
/// the sign among them.
pub(crate) fn counter(name: &str) -> Option<i32> {
    let ends_so = |head: &str| head.ends_with(['_', '-']);
    // A sign can be told from a dash by what stands before it.
    for length in [11, 10] {
        let Some(at) = name.len().checked_sub(length) else { continue };
        let (Some(head), Some(tail)) = (name.get(..at), name.get(at..)) else { continue };
        let signed = tail.starts_with('-');
        let digits = tail.strip_prefix('-').unwrap_or(tail);
        let well_formed = digits.bytes().all(|byte| byte.is_ascii_digit())
            && ends_so(head)
            && (length == 10 || signed);
        if let Some(counter) = tail.parse().ok().filter(|_| well_formed) {
            return Some(counter);
        }
    }
    None
}

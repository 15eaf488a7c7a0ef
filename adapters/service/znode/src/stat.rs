//! The stat of a node, as stored (`StatPersisted`) and as clients see it (`Stat`).
//!
//! The two differ: the stored `cversion` counts creations below the node, the one clients see counts
//! creations and deletions; and clients do not see the marks of containers and TTL nodes as owners.

use quorate_core::zxid::Zxid;

/// The owner that marks a container: a node that the leader deletes when its last child is gone.
pub(crate) const CONTAINER: i64 = i64::MIN;
/// The top byte of an owner that marks a TTL node; two zero bytes and the milliseconds follow.
const TTL_MARK: i64 = 0xff << 56;
/// The longest time that a TTL node can be given, in milliseconds.
pub(crate) const MAX_TTL: i64 = (1 << 40) - 1;

/// What a node is, told by its stored owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A persistent node: it stays until it is deleted.
    None,
    /// A container, deleted by the leader some time after its last child.
    Container,
    /// Deleted by the leader when it has no children and was not written to for so many milliseconds.
    Ttl(i64),
    /// An ephemeral node, deleted with this session.
    Session(i64),
}

impl Owner {
    /// Reads the stored form.
    ///
    /// TTL marks are read as such whether or not the ensemble has `extendedTypesEnabled`; without that
    /// setting, no session but those of a server 255 could look like one.
    pub const fn from_stored(owner: i64) -> Self {
        match owner {
            0 => Self::None,
            CONTAINER => Self::Container,
            _ if owner & !MAX_TTL == TTL_MARK => Self::Ttl(owner & MAX_TTL),
            session => Self::Session(session),
        }
    }

    /// The stored form.
    pub const fn to_stored(self) -> i64 {
        match self {
            Self::None => 0,
            Self::Container => CONTAINER,
            Self::Ttl(ttl) => TTL_MARK | ttl & MAX_TTL,
            Self::Session(session) => session,
        }
    }
}

/// The stored form, ZooKeeper's `StatPersisted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredStat {
    /// The transaction that created the node.
    pub czxid: Zxid,
    /// The last one that set its data.
    pub mzxid: Zxid,
    /// When it was created, in milliseconds since 1970 by the leader's clock.
    pub ctime: i64,
    /// When its data was last set.
    pub mtime: i64,
    /// How often its data was set.
    pub version: i32,
    /// How many children were ever created.
    pub cversion: i32,
    /// How often its access list was set.
    pub aversion: i32,
    /// Whose it is, see [`Owner`].
    pub owner: i64,
    /// The last transaction that created or deleted a child.
    pub pzxid: Zxid,
}

impl StoredStat {
    /// How many bytes it takes in a snapshot.
    pub(crate) const BYTES: usize = 60;

    /// Of a node that transaction `zxid` creates.
    pub(crate) const fn new(zxid: Zxid, time: i64, owner: i64) -> Self {
        Self {
            czxid: zxid,
            mzxid: zxid,
            ctime: time,
            mtime: time,
            version: 0,
            cversion: 0,
            aversion: 0,
            owner,
            pzxid: zxid,
        }
    }

    /// As it stands in a snapshot.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.czxid.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.mzxid.0.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.ctime.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.mtime.to_be_bytes());
        bytes[32..36].copy_from_slice(&self.version.to_be_bytes());
        bytes[36..40].copy_from_slice(&self.cversion.to_be_bytes());
        bytes[40..44].copy_from_slice(&self.aversion.to_be_bytes());
        bytes[44..52].copy_from_slice(&self.owner.to_be_bytes());
        bytes[52..60].copy_from_slice(&self.pzxid.0.to_be_bytes());
        bytes
    }
}
impl StoredStat {
    /// From a snapshot.
    pub(crate) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let long = |at: usize| i64::from_be_bytes(core::array::from_fn(|i| bytes[at + i]));
        let int = |at: usize| i32::from_be_bytes(core::array::from_fn(|i| bytes[at + i]));
        Self {
            czxid: Zxid(long(0)),
            mzxid: Zxid(long(8)),
            ctime: long(16),
            mtime: long(24),
            version: int(32),
            cversion: int(36),
            aversion: int(40),
            owner: long(44),
            pzxid: Zxid(long(52)),
        }
    }
}

/// What clients are told about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stat {
    /// The transaction that created the node.
    pub czxid: Zxid,
    /// The last one that set its data.
    pub mzxid: Zxid,
    /// When it was created, in milliseconds since 1970 by the leader's clock.
    pub ctime: i64,
    /// When its data was last set.
    pub mtime: i64,
    /// How often its data was set.
    pub version: i32,
    /// How many children were ever created and deleted.
    pub cversion: i32,
    /// How often its access list was set.
    pub aversion: i32,
    /// The session of an ephemeral node; 0 for every other node.
    pub ephemeral_owner: i64,
    /// How long its data is; 0 if it has none.
    pub data_length: i32,
    /// How many children it has.
    pub num_children: i32,
    /// The last transaction that created or deleted a child.
    pub pzxid: Zxid,
}

impl Stat {
    /// As clients see `stored` of a node with so much data and so many children.
    pub(crate) fn new(stored: &StoredStat, data: usize, children: usize) -> Self {
        let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let ephemeral_owner = match Owner::from_stored(stored.owner) {
            Owner::Session(session) => session,
            Owner::None | Owner::Container | Owner::Ttl(_) => 0,
        };
        Self {
            czxid: stored.czxid,
            mzxid: stored.mzxid,
            ctime: stored.ctime,
            mtime: stored.mtime,
            version: stored.version,
            // Created twice minus what is left: created and deleted.
            cversion: stored.cversion.wrapping_mul(2).wrapping_sub(count(children)),
            aversion: stored.aversion,
            ephemeral_owner,
            data_length: count(data),
            num_children: count(children),
            pzxid: stored.pzxid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_go_to_their_stored_form_and_back() {
        for (owner, stored) in [
            (Owner::None, 0),
            (Owner::Container, i64::MIN),
            (Owner::Ttl(1), 0xff00_0000_0000_0001_u64 as i64),
            (Owner::Ttl(MAX_TTL), 0xff00_00ff_ffff_ffff_u64 as i64),
            (Owner::Session(0x0200_0015_a778_0000), 0x0200_0015_a778_0000),
            // Some other extended type: nothing that is known, so a session.
            (Owner::Session(0xff01_0000_0000_0000_u64 as i64), 0xff01_0000_0000_0000_u64 as i64),
            (Owner::Session(-1), -1),
        ] {
            assert_eq!(Owner::from_stored(stored), owner);
            assert_eq!(owner.to_stored(), stored);
        }
    }

    #[test]
    fn a_stat_goes_to_bytes_and_back() {
        let bytes = core::array::from_fn(|i| u8::try_from(i).unwrap());
        assert_eq!(StoredStat::from_bytes(&bytes).to_bytes(), bytes);
    }

    #[test]
    fn clients_see_creations_and_deletions_in_cversion() {
        let mut stored = StoredStat::new(Zxid(5), 1, 0);
        stored.cversion = 3;
        assert_eq!(Stat::new(&stored, 0, 3).cversion, 3);
        assert_eq!(Stat::new(&stored, 0, 2).cversion, 4);
        stored.cversion = 0;
        assert_eq!(Stat::new(&stored, 0, 2).cversion, -2);
        for owner in [Owner::Container, Owner::Ttl(9)] {
            stored.owner = owner.to_stored();
            assert_eq!(Stat::new(&stored, 0, 0).ephemeral_owner, 0);
        }
    }
}

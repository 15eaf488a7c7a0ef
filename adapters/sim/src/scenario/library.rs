//! The stories that come with this crate.

/// A story that comes with this crate.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// Its name.
    pub name: &'static str,
    /// Its text, for [`Scenario::read`](super::Scenario::read).
    pub text: &'static str,
}

macro_rules! bundle {
    ($($name:literal)*) => {
        &[$(Bundled {
            name: $name,
            text: include_str!(concat!("../../tests/scenarios/", $name, ".txt")),
        }),*]
    };
}

/// The stories that come with this crate, in the order in which they should be read: how an ensemble finds
/// a leader and comes back to one history, then what has gone wrong in the field.
pub const fn bundled() -> &'static [Bundled] {
    STORIES
}

const STORIES: &[Bundled] = bundle! {
    "two-of-three"
    "third-comes-late"
    "all-together"
    "leader-fails"
    "five-servers-two-fail"
    "two-are-enough-of-three"
    "two-are-not-enough-of-five"
    "partition"
    "partition-from-the-start"
    "partition-in-an-earlier-round"
    "leader-in-the-minority"
    "rounds-differ"
    "rounds-differ-after-a-cut"
    "a-write"
    "committed-survives"
    "old-leader-cut"
    "old-leader-replaced"
    "old-leader-wins"
    "v1-one-order-of-votes"
    "v2-told-to-lead-once-too-often"
    "v3-members-that-disagree-in-detail"
    "v3-three-versions-one-ensemble"
    "v4-a-leader-that-is-dead"
    "v4-one-notices-before-the-others"
    "v5-voters-that-change-their-minds"
    "v5-voters-to-spare"
    "v5-elected-beside-a-leader"
    "v6-a-leader-out-of-view"
    "v6-an-observer-that-believes-it-votes"
    "v6-a-server-without-weight"
    "v6-an-observer-counts-for-nothing"
    "v7-a-disk-that-was-lost"
    "c1-an-address-that-nobody-can-dial"
    "c2-one-black-hole"
    "j1-an-orphan-is-cut"
    "j1-an-orphan-is-replaced"
    "j1-an-isolated-leader-confirms-nothing"
    "j2-a-hole-is-refused"
    "j2-a-gap-before-what-is-kept"
    "j3-a-slow-snapshot-disturbs-nobody"
    "j3-a-slow-snapshot-that-is-needed"
    "e2-an-epoch-is-never-given-twice"
    "e3-announced-when-durable"
    "e3-an-epoch-that-nobody-promised"
    "e3-a-promise-is-given-once"
    "e3-a-promise-is-counted-once"
    "e3-a-follower-promises-what-its-disk-holds"
    "e3-a-newer-follower-deposes"
    "e3-a-newer-follower-comes-late"
    "e3-an-older-epoch-is-not-newer"
    "e3-an-epoch-below-the-promise"
    "e4-behind-the-last-number-of-an-epoch"
    "e4-the-start-of-an-epoch-is-no-transaction"
    "s1-newleader-waits-for-the-disk"
    "s1-all-crash-when-the-leader-serves"
    "s3-a-snapshot-is-installed-in-one-step"
    "s3-a-snapshot-that-was-not-installed"
    "s4-an-interrupted-snapshot"
    "s4-a-log-behind-a-snapshot"
    "s5-commits-around-newleader"
    "s5-an-observer-in-the-same-window"
    "s7-a-cut-that-does-not-reach-the-disk"
    "s7-what-this-leader-proposed-is-not-cut"
    "s8-an-old-role-ends-before-the-next-vote"
    "b2-acknowledgements-that-count-for-nothing"
    "b3-a-follower-whose-disk-fails"
    "b3-a-leader-whose-disk-fails"
    "m1-a-larger-ensemble-from-other-files"
    "m2-a-change-that-the-next-voters-cannot-carry"
    "m2-a-change-dies-with-its-leader"
    "m2-a-leader-removes-itself"
    "m2-a-voter-that-does-not-know-yet"
    "m2-both-quorums-after-a-restart"
    "m2-no-seat-for-who-has-no-vote-yet"
};

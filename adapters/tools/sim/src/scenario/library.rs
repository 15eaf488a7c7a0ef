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
/// a leader and comes back to one history, then what has gone wrong in the field, at last in elections through a store.
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
    "one-order-of-votes"
    "told-to-lead-once-too-often"
    "members-that-disagree-in-detail"
    "three-versions-one-ensemble"
    "a-leader-that-is-dead"
    "one-notices-before-the-others"
    "voters-that-change-their-minds"
    "voters-to-spare"
    "elected-beside-a-leader"
    "a-leader-out-of-view"
    "an-observer-that-believes-it-votes"
    "a-server-without-weight"
    "an-observer-counts-for-nothing"
    "a-stranger-is-in-no-quorum"
    "a-disk-that-was-lost"
    "an-address-that-nobody-can-dial"
    "one-black-hole"
    "a-leader-that-takes-no-connection"
    "one-connection-for-two"
    "what-strangers-say"
    "an-orphan-is-cut"
    "an-orphan-is-replaced"
    "an-isolated-leader-confirms-nothing"
    "a-leader-that-stood-still"
    "a-read-while-the-seat-is-handed-over"
    "a-hole-is-refused"
    "a-gap-before-what-is-kept"
    "each-learner-from-where-it-stands"
    "a-hole-in-memory-is-not-passed-on"
    "brought-up-in-pieces-and-then-it-leads"
    "a-slow-snapshot-disturbs-nobody"
    "a-slow-snapshot-that-is-needed"
    "a-long-history-that-all-have"
    "an-epoch-is-never-given-twice"
    "announced-when-durable"
    "a-quorum-beside-a-server-without-weight"
    "whoever-was-alone-tells-what-it-has"
    "an-epoch-that-nobody-promised"
    "a-promise-is-given-once"
    "a-promise-is-counted-once"
    "a-follower-promises-what-its-disk-holds"
    "a-newer-follower-deposes"
    "a-newer-follower-comes-late"
    "an-older-epoch-is-not-newer"
    "an-epoch-below-the-promise"
    "behind-the-last-number-of-an-epoch"
    "the-start-of-an-epoch-is-no-transaction"
    "newleader-waits-for-the-disk"
    "an-acknowledgement-never-overtakes-the-disk"
    "epochs-through-every-crash"
    "an-epoch-never-ahead-of-its-history"
    "all-crash-when-the-leader-serves"
    "a-snapshot-is-installed-in-one-step"
    "a-snapshot-that-was-not-installed"
    "an-interrupted-snapshot"
    "a-log-behind-a-snapshot"
    "commits-around-newleader"
    "an-observer-in-the-same-window"
    "who-comes-in-the-middle-of-a-write"
    "a-cut-that-does-not-reach-the-disk"
    "what-this-leader-proposed-is-not-cut"
    "an-old-role-ends-before-the-next-vote"
    "acknowledgements-that-count-for-nothing"
    "a-follower-whose-disk-fails"
    "a-leader-whose-disk-fails"
    "a-larger-ensemble-from-other-files"
    "a-change-that-the-next-voters-cannot-carry"
    "a-change-dies-with-its-leader"
    "a-leader-removes-itself"
    "a-voter-that-does-not-know-yet"
    "both-quorums-after-a-restart"
    "of-two-changes-across-a-snapshot-the-first-binds-too"
    "a-crash-when-a-snapshot-brings-a-change"
    "no-seat-for-who-has-no-vote-yet"
    "a-vote-is-given-once"
    "a-later-generation-that-was-only-seen"
    "a-later-generation-and-an-older-log"
    "cut-off-and-back-it-deposes-nobody"
    "leadership-is-not-found-in-an-old-node"
    "two-callbacks-that-cross"
    "answers-that-never-came"
    "an-offer-whose-name-tells-nothing"
    "a-deadline-that-was-counted-from-the-answer"
    "a-lease-that-ended-in-the-queue"
    "a-delete-that-arrives-late"
    "a-lease-that-is-not-renewed"
    "a-lease-that-was-taken-away"
    "a-lease-is-over-when-its-record-says-so"
};

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
    "leader-in-the-minority"
    "rounds-differ"
    "rounds-differ-after-a-cut"
    "a-write"
    "committed-survives"
    "old-leader-cut"
    "old-leader-replaced"
    "old-leader-wins"
};

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

/// The stories that come with this crate, in the order in which they should be read.
pub const fn bundled() -> &'static [Bundled] {
    bundle!("two-of-three")
}

//! What does not hold in a world with a store: a rule of an election, or that something happens in time.

use thiserror::Error;

/// What does not hold, in words; the seed that was printed tells the rest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Broken(pub String);

pub(super) fn broken<T>(detail: String) -> Result<T, Broken> {
    Err(Broken(detail))
}

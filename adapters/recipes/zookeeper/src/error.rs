//! The errors of the client library: what they mean for an election, and for a program.

use quorate_core::recipe::Failure;
use quorate_recipes::StoreError;
use zookeeper_client::Error;

/// The error that a program sees.
pub(crate) fn store_error(error: Error) -> StoreError {
    match failure(&error) {
        Failure::Denied => StoreError::Denied,
        Failure::Unauthenticated => StoreError::Unauthenticated,
        Failure::Expired => StoreError::Expired,
        Failure::Unknown => StoreError::Unreachable(error.to_string()),
        Failure::Absent | Failure::Exists | Failure::Conflict | Failure::Rejected => {
            StoreError::Refused(error.to_string())
        }
    }
}

/// What an error means for an election.
pub(crate) fn failure(error: &Error) -> Failure {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the library may grow errors")]
    match error {
        Error::NoNode => Failure::Absent,
        Error::NodeExists => Failure::Exists,
        Error::BadVersion => Failure::Conflict,
        Error::NoAuth => Failure::Denied,
        Error::AuthFailed => Failure::Unauthenticated,
        Error::SessionExpired | Error::SessionMoved | Error::ClientClosed => Failure::Expired,
        Error::ConnectionLoss | Error::Timeout | Error::NoHosts => Failure::Unknown,
        _ => Failure::Rejected,
    }
}

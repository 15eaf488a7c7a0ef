//! etcd's errors: what they mean for an election, and for a program.

use etcd_client::Error;
use quorate_core::recipe::Failure;
use quorate_recipes::StoreError;

/// The error that a program sees.
pub(crate) fn store_error(error: &Error) -> StoreError {
    match failure(error) {
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
    match error {
        Error::GRpcStatus(status) => of_status(i32::from(status.code()), status.message()),
        Error::TransportError(_) | Error::IoError(_) | Error::WatchError(_) => Failure::Unknown,
        Error::LeaseKeepAliveError(what) if what.contains("not found") => Failure::Expired,
        Error::LeaseKeepAliveError(_) => Failure::Unknown,
        Error::InvalidArgs(_)
        | Error::InvalidUri(_)
        | Error::Utf8Error(_)
        | Error::ElectError(_)
        | Error::InvalidMetadataValue(_)
        | Error::EndpointError(_)
        | Error::EndpointsNotManaged
        | Error::Internal(_) => Failure::Rejected,
    }
}

/// gRPC's status codes, as etcd uses them.
fn of_status(code: i32, message: &str) -> Failure {
    const INVALID_ARGUMENT: i32 = 3;
    const NOT_FOUND: i32 = 5;
    const PERMISSION_DENIED: i32 = 7;
    const UNAUTHENTICATED: i32 = 16;
    /// Cancelled, unknown, deadline exceeded, aborted, internal, unavailable.
    const NO_ANSWER: [i32; 6] = [1, 2, 4, 10, 13, 14];
    match code {
        NOT_FOUND if message.contains("lease") => Failure::Expired,
        NOT_FOUND => Failure::Absent,
        PERMISSION_DENIED => Failure::Denied,
        UNAUTHENTICATED => Failure::Unauthenticated,
        // "authentication failed, invalid user ID or password", "user name is empty".
        INVALID_ARGUMENT if message.contains("authentication") || message.contains("user name") => {
            Failure::Unauthenticated
        }
        code if NO_ANSWER.contains(&code) => Failure::Unknown,
        _ => Failure::Rejected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_etcd_says_is_understood() {
        for (code, message, meant) in [
            (5, "etcdserver: requested lease not found", Failure::Expired),
            (7, "etcdserver: permission denied", Failure::Denied),
            (16, "etcdserver: invalid auth token", Failure::Unauthenticated),
            (
                3,
                "etcdserver: authentication failed, invalid user ID or password",
                Failure::Unauthenticated,
            ),
            (3, "etcdserver: user name is empty", Failure::Unauthenticated),
            (3, "etcdserver: duplicate key given in txn request", Failure::Rejected),
            (14, "etcdserver: no leader", Failure::Unknown),
        ] {
            assert_eq!(of_status(code, message), meant, "{message}");
        }
    }
}

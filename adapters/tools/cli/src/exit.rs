//! How `quorate serve` ends, for the service manager that starts it again or does not.
//!
//! | code | what has happened | is it of use to start it again? |
//! |---|---|---|
//! | 0 | it was told to end | |
//! | 1 | the machine did not give what it needs: a port, the directory, the disk, memory | yes |
//! | 2 | the configuration cannot be used | no, before a person has changed it |
//! | 4 | what is on the disk is refused | no, before a person has looked at it |
//! | 5 | something was untrue that always holds: a mistake in the program | no; the data is kept as it is |
//!
//! 3 is what the other commands end with where no server can be reached.

use std::error::Error;
use std::io;

use quorate_storage::LogError;
use quorate_tokio::core::reasons::Fault;
use quorate_tokio::{ServerError, StartError};

/// Why a server did not start.
#[allow(clippy::wildcard_enum_match_arm, reason = "what is not known is the machine's")]
pub(crate) fn of_start(error: &StartError) -> u8 {
    match error {
        StartError::Config(_)
        | StartError::NotAMember(_)
        | StartError::NotAlone { .. }
        | StartError::Sasl(_) => CONFIGURATION,
        StartError::Log(LogError::Locked { .. }) => FAILED,
        StartError::Log(_) | StartError::Membership { .. } => of_data(error),
        _ => FAILED,
    }
}

/// Why a server has ended by itself.
#[allow(clippy::wildcard_enum_match_arm, reason = "what is not known is the machine's")]
pub(crate) fn of_end(error: &ServerError) -> u8 {
    match error {
        ServerError::Halted(Fault::Broken(_))
        | ServerError::TooLong { .. }
        | ServerError::Aborted => BROKEN,
        ServerError::Halted(_) | ServerError::HaltedByService { .. } => REFUSED,
        ServerError::Unreadable { source, .. } => of_data(&**source),
        _ => FAILED,
    }
}

/// What is wrong with the data itself is for a person to look at; where the system did not let us read or write, that may
/// pass.
fn of_data(error: &(dyn Error + 'static)) -> u8 {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            let damaged =
                matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof);
            return if damaged { REFUSED } else { FAILED };
        }
        cause = error.source();
    }
    REFUSED
}

/// The machine did not give what is needed.
const FAILED: u8 = 1;
const CONFIGURATION: u8 = 2;
const REFUSED: u8 = 4;
const BROKEN: u8 = 5;

/// As `--help` says it.
pub(crate) const HELP: &str = "Exit codes: 0 it was told to end, 1 something failed (a port, the directory, the disk), \
    2 the configuration is wrong, 4 what is on the disk is refused: a person has to look at it, \
    5 a mistake in the program, which has stopped before it does harm: do not start it again on this data";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn who_is_to_look_is_told_by_what_was_in_the_way() {
        let system = |kind: io::ErrorKind| ServerError::DynamicConfig {
            path: "zoo.cfg".into(),
            source: Arc::new(kind.into()),
        };
        assert_eq!(of_end(&ServerError::Aborted), BROKEN);
        assert_eq!(of_end(&ServerError::Halted(Fault::Broken("rule"))), BROKEN);
        assert_eq!(of_end(&ServerError::HaltedByService { reason: "a TTL node".into() }), REFUSED);
        assert_eq!(of_end(&system(io::ErrorKind::StorageFull)), FAILED);
        let kept = |kind: io::ErrorKind| StartError::Membership {
            path: "membership".into(),
            source: kind.into(),
        };
        assert_eq!(of_start(&kept(io::ErrorKind::InvalidData)), REFUSED);
        assert_eq!(of_start(&kept(io::ErrorKind::PermissionDenied)), FAILED);
    }
}

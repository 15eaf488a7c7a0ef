//! The exit codes of the command other than 0, with their message.

/// A message for people and an exit code for scripts.
#[derive(Debug)]
pub(crate) struct Failure {
    /// See the codes below.
    pub(crate) code: u8,
    /// For stderr; empty if everything has been said on stdout.
    pub(crate) message: String,
}

impl Failure {
    /// Something failed, or was found to be wrong.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into() }
    }

    /// Arguments or configuration are wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, message: message.into() }
    }

    /// No server could be reached.
    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self { code: 3, message: message.into() }
    }

    /// Ended by ctrl-C.
    pub(crate) fn interrupted() -> Self {
        Self { code: 130, message: "interrupted".to_owned() }
    }
}

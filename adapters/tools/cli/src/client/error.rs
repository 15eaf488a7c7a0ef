//! Why a command of the client has failed, with ZooKeeper's name and number for it where it has one.

use std::fmt;
use std::io;
use std::path::PathBuf;

use quorate_service::wire::code;
use thiserror::Error;
use zookeeper_client::Error as Refusal;

use super::acl::AclError;
use super::words::WordsError;
use crate::failure::Failure;

/// Why a command has failed.
#[derive(Debug, Error)]
pub(super) enum ClientError {
    #[error("no server could be reached: no session from {servers} within {milliseconds} ms")]
    Unreachable { servers: String, milliseconds: u128 },
    #[error("{}: {subject}", Code::of(.refusal))]
    Refused { subject: String, refusal: Refusal },
    #[error("{}: line {line}, `{text}`; nothing was done", Code::of(.refusal))]
    Multi { line: usize, text: String, refusal: Refusal },
    #[error("line {line}: {source}")]
    Line { line: usize, source: Box<Self> },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Acl(#[from] AclError),
    #[error(transparent)]
    Words(#[from] WordsError),
    #[error("an identity is USER:PASSWORD, one word")]
    Identity,
    #[error("{0} is not for a multi: its parts are done together or not at all")]
    NotTogether(&'static str),
    #[error("{}", .0.to_string().trim_end())]
    Usage(#[from] clap::Error),
}

impl ClientError {
    /// ZooKeeper's name and number.
    pub(super) fn code(&self) -> Option<Code> {
        match self {
            Self::Unreachable { .. } => Some(Code::of(&Refusal::ConnectionLoss)),
            Self::Refused { refusal, .. } | Self::Multi { refusal, .. } => Some(Code::of(refusal)),
            Self::Line { source, .. } => source.code(),
            Self::File { .. }
            | Self::Acl(_)
            | Self::Words(_)
            | Self::Identity
            | Self::NotTogether(_)
            | Self::Usage(_) => None,
        }
    }

    /// What the process ends with if this was its one command.
    pub(super) fn into_failure(self) -> Failure {
        let message = self.to_string();
        match self {
            Self::Unreachable { .. } => Failure::unreachable(message),
            Self::Refused { .. } | Self::Multi { .. } | Self::File { .. } => {
                Failure::failed(message)
            }
            Self::Line { source, .. } => Failure { message, ..source.into_failure() },
            Self::Acl(_)
            | Self::Words(_)
            | Self::Identity
            | Self::NotTogether(_)
            | Self::Usage(_) => Failure::usage(message),
        }
    }
}

/// What was asked about, and why it was refused.
pub(super) fn on(subject: &str) -> impl Fn(Refusal) -> ClientError {
    move |refusal| ClientError::Refused { subject: subject.to_owned(), refusal }
}

/// ZooKeeper's name and number for an error, as `KeeperException` has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// What the client library says, where ZooKeeper has no name.
    pub(super) name: String,
    pub(super) number: i32,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.number)
    }
}

impl Code {
    /// A table.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "what the library will have later cannot be named"
    )]
    pub(super) fn of(refusal: &Refusal) -> Self {
        let (name, number) = match refusal {
            Refusal::NoNode => ("NoNode", code::NO_NODE),
            Refusal::NoAuth => ("NoAuth", code::NO_AUTH),
            Refusal::BadVersion => ("BadVersion", code::BAD_VERSION),
            Refusal::NoChildrenForEphemerals => {
                ("NoChildrenForEphemerals", code::NO_CHILDREN_FOR_EPHEMERALS)
            }
            Refusal::NodeExists => ("NodeExists", code::NODE_EXISTS),
            Refusal::NotEmpty => ("NotEmpty", code::NOT_EMPTY),
            Refusal::SessionExpired => ("SessionExpired", code::SESSION_EXPIRED),
            Refusal::InvalidAcl => ("InvalidACL", code::INVALID_ACL),
            Refusal::AuthFailed => ("AuthFailed", code::AUTH_FAILED),
            Refusal::SessionMoved => ("SessionMoved", code::SESSION_MOVED),
            Refusal::NotReadOnly => ("NotReadOnly", code::NOT_READ_ONLY),
            Refusal::NoWatcher => ("NoWatcher", code::NO_WATCHER),
            Refusal::QuotaExceeded => ("QuotaExceeded", code::QUOTA_EXCEEDED),
            Refusal::Throttled => ("ThrottledOp", code::THROTTLED),
            Refusal::MarshallingError => ("MarshallingError", code::MARSHALLING_ERROR),
            Refusal::Unimplemented => ("Unimplemented", code::UNIMPLEMENTED),
            Refusal::BadArguments(_) => ("BadArguments", code::BAD_ARGUMENTS),
            Refusal::ReconfigDisabled => ("ReconfigDisabled", code::RECONFIG_DISABLED),
            Refusal::RuntimeInconsistent => ("RuntimeInconsistency", code::RUNTIME_INCONSISTENCY),
            Refusal::Timeout => ("OperationTimeout", code::OPERATION_TIMEOUT),
            Refusal::ConnectionLoss | Refusal::NoHosts | Refusal::ClientClosed => {
                ("ConnectionLoss", code::CONNECTION_LOSS)
            }
            Refusal::UnexpectedErrorCode(number) => ("UnknownError", *number),
            // The library's own, and those that it will have later.
            other @ (Refusal::UnmarshalError { .. }
            | Refusal::UnexpectedError(_)
            | Refusal::Custom(_)
            | _) => return Self { name: other.to_string(), number: code::SYSTEM_ERROR },
        };
        Self { name: name.to_owned(), number }
    }
}

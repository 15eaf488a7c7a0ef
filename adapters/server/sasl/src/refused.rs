//! Why a login is refused.

/// Why a login is refused. Nothing of what was sent is in it, and not whether it was the user or the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such user, or the password is another.
    #[error("the user or the password is wrong")]
    Credentials,
    /// The nonce in a response is not that of the challenge before it: a login that was recorded, say.
    #[error("the response is to another challenge")]
    Nonce,
    /// The response is for another service or realm.
    #[error("the response is for another service")]
    Service,
    /// The user asks to act for another one.
    #[error("the user asks to act for another one")]
    Authorization,
    /// A quality of protection, an algorithm or a count that is not spoken here.
    #[error("{0} is not as ZooKeeper has it")]
    Unspoken(&'static str),
    /// A token that breaks the rules of RFC 2831.
    #[error("the token is no DIGEST-MD5: {0}")]
    Malformed(&'static str),
    /// A token is longer than any is.
    #[error("a token of {length} bytes; up to {most} are read")]
    Length {
        /// In bytes.
        length: usize,
        /// In bytes.
        most: usize,
    },
    /// A token for which it is too early or too late: a first token that is not empty, or one behind the last.
    #[error("the token is out of turn")]
    OutOfTurn,
    /// The side that was dialled says that it is content, and has not proved that it knows the password.
    #[error("the other side did not prove that it knows the password")]
    Unproved,
}

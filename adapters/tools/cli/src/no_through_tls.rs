//! What stands in the place of TLS in a build without it: no options.

use std::convert::Infallible;

use clap::Args;

use crate::failure::Failure;

/// There is nothing to say.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TlsArguments {}

impl TlsArguments {
    /// None.
    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with TLS")]
    pub(crate) fn options(&self) -> Result<Option<Infallible>, Failure> {
        Ok(None)
    }
}

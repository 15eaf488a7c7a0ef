//! What stands in the place of TLS in a build without it: no options.

use clap::Args;

/// There is nothing to say.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TlsArguments {}

//! x
use crate::failure::Failure;
/// x
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}
pub(crate) async fn run(_arguments: Arguments) -> Result<(), Failure> { Ok(()) }

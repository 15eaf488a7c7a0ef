//! `quorate designate`: names a leader by hand, for when the store is out of reach.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use quorate_recipes::{Designation, DesignationError, designate};

use crate::failure::Failure;

/// Name a leader by hand, in a file that `quorate elect --designation FILE` and programs look at while their
/// store is out of reach.
///
/// It has to be the same file for all candidates, and a token greater than that of every leader before:
/// the guarded resource refuses it otherwise. Without --identity and --token: print the designation.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file. It is written in one step.
    file: PathBuf,
    /// The leader: the --identity of a candidate.
    #[arg(long, value_name = "NAME", requires = "token")]
    identity: Option<String>,
    /// The fencing token that it is to have.
    #[arg(long, value_name = "NUMBER", requires = "identity")]
    token: Option<u64>,
    /// For how many seconds a designation counts, where one is shown.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    max_age: u64,
}

/// Writes it, or says what is there.
pub(crate) fn designate_leader(arguments: &Arguments) -> Result<(), Failure> {
    let failed = |error: DesignationError| Failure::failed(error.to_string());
    if let (Some(identity), Some(token)) = (&arguments.identity, arguments.token) {
        return designate(&arguments.file, identity, token).map_err(failed);
    }
    let designation = Designation::file(&arguments.file, Duration::from_secs(arguments.max_age));
    let (leader, left) = designation.read().map_err(failed)?;
    let (name, token, left) = (leader.name(), leader.token, left.as_secs());
    // A reader that has gone wants no more.
    drop(writeln!(io::stdout(), "designated  {name}  token {token}  for {left} s more"));
    Ok(())
}

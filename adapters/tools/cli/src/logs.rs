//! What the command logs, and where: to standard error, by a filter.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;
use crate::paint;

/// Sends logs to stderr: what `filter` lets through, else `RUST_LOG`, else `default`.
pub(crate) fn start(filter: Option<&str>, default: &str) -> Result<(), Failure> {
    let environment = std::env::var("RUST_LOG").ok().filter(|value| !value.is_empty());
    let wanted = filter.map(str::to_owned).or(environment);
    let filter = EnvFilter::builder()
        .parse(wanted.as_deref().unwrap_or(default))
        .map_err(|error| Failure::usage(format!("wrong log filter: {error}")))?;
    let colours = io::stderr().is_terminal() && paint::allowed();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(colours)
        .init();
    Ok(())
}

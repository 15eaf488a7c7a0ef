//! The candidates of an election, for an observer that is none: once, or each change.

use std::io::{self, Write};
use std::time::Duration;

use quorate_recipes::{AskError, Contender, Store, StoreError, ask};

use super::page;
use crate::failure::Failure;

/// How often a change is looked for.
const EVERY: Duration = Duration::from_secs(1);

/// Prints them once, or each change of them for ever.
pub(crate) async fn run<S: Store<Config: Clone + Sync>>(
    config: &S::Config,
    follow: bool,
    json: bool,
) -> Result<(), Failure> {
    let mut before = None;
    loop {
        match ask::<S>(config.clone()).await {
            Ok(row) => {
                if before.as_ref() != Some(&row) && say(&row, json).is_err() {
                    // The reader has gone.
                    return Ok(());
                }
                if !follow {
                    return if row.is_empty() { Err(Failure::failed("no leader")) } else { Ok(()) };
                }
                before = Some(row);
            }
            Err(AskError::Config(error)) => return Err(Failure::usage(error.to_string())),
            Err(AskError::Store(error)) if !follow => return Err(failed(&error)),
            Err(AskError::Store(error)) => tracing::warn!("{error}"),
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn failed(error: &StoreError) -> Failure {
    if matches!(error, StoreError::Unreachable(_) | StoreError::Elapsed(_)) {
        Failure::unreachable(error.to_string())
    } else {
        Failure::failed(error.to_string())
    }
}

fn say(row: &[Contender], json: bool) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if json {
        writeln!(stdout, "{}", page::row(row))?;
    } else {
        for (place, contender) in row.iter().enumerate() {
            let role = if place == 0 { "leads" } else { "waits" };
            let Contender { token, key, .. } = contender;
            writeln!(stdout, "{role}  {}  token {token}  {key}", contender.name())?;
        }
        if row.is_empty() {
            writeln!(stdout, "no leader")?;
        }
    }
    stdout.flush()
}

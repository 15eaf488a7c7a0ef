//! The candidates of an election, or its leader, for an observer that is none: once, or each change.

use std::io::{self, Write};

use quorate_recipes::{AskError, Contender, Members, Store, StoreError, ask};

use super::page;
use crate::failure::Failure;

/// What of the candidates is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    All,
    Leader,
}

/// Prints them once, or each change of them until the session is over.
pub(crate) async fn run<S: Store<Config: Clone + Sync>>(
    config: &S::Config,
    shown: Shown,
    follow: bool,
    json: bool,
) -> Result<(), Failure> {
    if follow {
        return each_change::<S>(config, shown, json).await;
    }
    match ask::<S>(config.clone()).await {
        Ok(row) => {
            // A reader that has gone wants no more.
            drop(say(&row, shown, json));
            // In words it was said.
            let why = if json { "no leader" } else { "" };
            if row.is_empty() { Err(Failure::failed(why)) } else { Ok(()) }
        }
        Err(AskError::Config(error)) => Err(Failure::usage(error.to_string())),
        Err(AskError::Store(error)) => Err(failed(&error)),
    }
}

async fn each_change<S: Store<Config: Clone>>(
    config: &S::Config,
    shown: Shown,
    json: bool,
) -> Result<(), Failure> {
    let opened = Members::<S>::open(config.clone());
    let mut members = opened.map_err(|error| Failure::usage(error.to_string()))?;
    if shown == Shown::Leader {
        members = members.leader_only();
    }
    loop {
        let row = members.next().await.map_err(|error| failed(&error))?;
        if say(&row, shown, json).is_err() {
            // The reader has gone.
            return Ok(());
        }
    }
}

fn failed(error: &StoreError) -> Failure {
    if matches!(error, StoreError::Unreachable(_) | StoreError::Elapsed(_) | StoreError::Expired) {
        Failure::unreachable(error.to_string())
    } else {
        Failure::failed(error.to_string())
    }
}

fn say(row: &[Contender], shown: Shown, json: bool) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let row = if shown == Shown::Leader { &row[..row.len().min(1)] } else { row };
    if json {
        let page = match shown {
            Shown::All => page::row(row),
            Shown::Leader => page::leader(row.first()),
        };
        writeln!(stdout, "{page}")?;
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

//! What the command logs, and where: to standard error, by a filter that a server changes while it runs.

mod events;
mod json;

use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_tokio::zoo_cfg::LogFormat;
use thiserror::Error;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

pub(crate) use self::json::{JsonLine, of_change};
use crate::failure::Failure;
use crate::paint;

/// Sends logs to stderr: what `filter` lets through, else `RUST_LOG`, else `default`.
pub(crate) fn start(filter: Option<&str>, default: &str) -> Result<(), Failure> {
    let wanted = filter.map(str::to_owned).or_else(of_environment);
    let filter = parse(wanted.as_deref().unwrap_or(default))
        .map_err(|error| Failure::usage(error.to_string()))?;
    tracing_subscriber::registry().with(filter).with(text()).init();
    Ok(())
}

/// The log of a server, whose filter changes while it runs.
#[derive(Clone, Debug)]
pub(crate) struct Logs {
    filter: reload::Handle<EnvFilter, Registry>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// What is logged unless an operator debugs.
    wanted: String,
    /// What the command line or the environment says, before any file.
    before_file: Option<String>,
    /// Which of those who debug is the last; none if no operator does.
    debugging: Option<u64>,
    next: u64,
}

/// A filter that cannot be used.
#[derive(Debug, Error)]
pub(crate) enum FilterError {
    /// It is none.
    #[error("wrong log filter: {0}")]
    Wrong(#[from] ParseError),
    /// The log has ended.
    #[error("the log cannot be changed: {0}")]
    Gone(#[from] reload::Error),
}

impl Logs {
    /// Sends the log of server `sid` to stderr: what `--log` lets through, else `RUST_LOG`, else the file, else `info`.
    pub(crate) fn start(
        own: Option<&str>,
        file: Option<&str>,
        format: LogFormat,
        sid: i64,
    ) -> Result<Self, FilterError> {
        let before_file = own.map(str::to_owned).or_else(of_environment);
        let wanted = before_file.as_deref().or(file).unwrap_or(DEFAULT).to_owned();
        let (layer, filter) = reload::Layer::new(parse(&wanted)?);
        let lines: Box<dyn Layer<_> + Send + Sync> = match format {
            LogFormat::Text => text().boxed(),
            LogFormat::Json => {
                let lines = json::JsonLines { sid };
                fmt::layer().event_format(lines).with_writer(io::stderr).boxed()
            }
        };
        tracing_subscriber::registry().with(layer).with(lines).init();
        let state = State { wanted, before_file, debugging: None, next: 0 };
        Ok(Self { filter, state: Arc::new(Mutex::new(state)) })
    }

    /// What is logged now.
    pub(crate) fn wanted(&self) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.debugging.map_or_else(|| state.wanted.clone(), |_| DEBUG.to_owned())
    }

    /// From now on this is logged.
    pub(crate) fn set(&self, filter: &str) -> Result<(), FilterError> {
        let filter_is = parse(filter)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.filter.reload(filter_is)?;
        filter.clone_into(&mut state.wanted);
        state.debugging = None;
        drop(state);
        tracing::info!(event = "log.level_changed", filter, "this is logged from now on");
        Ok(())
    }

    /// The file says this now, which does not count where the command line or the environment has said something.
    pub(crate) fn set_by_file(&self, level: Option<&str>) -> Result<(), FilterError> {
        if self.is_before_file() { Ok(()) } else { self.set(level.unwrap_or(DEFAULT)) }
    }

    /// Whether what the file says of it does not count.
    pub(crate) fn is_before_file(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.before_file.is_some()
    }

    /// What it was at the start, by the file as it is now.
    pub(crate) fn set_back(&self, file: Option<&str>) -> Result<(), FilterError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = state.before_file.as_deref().or(file).unwrap_or(DEFAULT).to_owned();
        drop(state);
        self.set(&wanted)
    }

    /// Logs all that helps to find a fault, for ten minutes; or no longer, if it does.
    pub(crate) fn toggle_debugging(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.debugging.is_some() {
            drop(state);
            return self.end_debugging(None);
        }
        let Ok(filter) = parse(DEBUG) else { return };
        if self.filter.reload(filter).is_err() {
            return;
        }
        state.next += 1;
        let this = state.next;
        state.debugging = Some(this);
        drop(state);
        let minutes = DEBUG_TIME.as_secs() / 60;
        tracing::info!(event = "log.level_changed", filter = DEBUG, minutes, "more is logged");
        let logs = self.clone();
        drop(tokio::spawn(async move {
            tokio::time::sleep(DEBUG_TIME).await;
            logs.end_debugging(Some(this));
        }));
    }

    /// Ends it, if it is still the same one.
    fn end_debugging(&self, this: Option<u64>) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.debugging.is_none() || this.is_some_and(|this| state.debugging != Some(this)) {
            return;
        }
        let wanted = state.wanted.clone();
        drop(state);
        // It was one before.
        drop(self.set(&wanted));
    }
}

/// Lines for people.
fn text<S>() -> impl Layer<S> + Send + Sync
where
    S: tracing::Subscriber + for<'l> tracing_subscriber::registry::LookupSpan<'l>,
{
    let colours = io::stderr().is_terminal() && paint::allowed();
    fmt::layer().with_writer(io::stderr).with_ansi(colours)
}

fn parse(filter: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::builder().parse(filter)
}

fn of_environment() -> Option<String> {
    std::env::var("RUST_LOG").ok().filter(|value| !value.is_empty())
}

const DEFAULT: &str = "info";
const DEBUG: &str = "debug";
/// How long it is logged what helps to find a fault.
const DEBUG_TIME: Duration = Duration::from_secs(600);

//! The process of one server of a demo under load: as `serve --json`, but it replicates the demo's `ledger` and takes
//! writes on stdin. See `connection` for the lines.

use std::future::Future;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::mpsc;
use std::time::Instant;

use clap::Args;
use quorate_driver::{Runtime, Server};
use quorate_tokio::zoo_cfg::ZooCfg;
use quorate_tokio::{Changes, ServerConfig};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::connection::{Answer, Ask, Outcome};
use super::ledger;

use crate::event::{ChangeLine, Line};
use crate::failure::Failure;
use crate::threads::thread;
use quorate_servers::runtime::{BlockOn, Kind, WithRuntime};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    file: PathBuf,
    #[arg(long, value_enum, default_value_t = Kind::Tokio)]
    runtime: Kind,
}

/// Runs until stdin ends.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    crate::logs::start(Some("warn"), "warn")?;
    let cfg = ZooCfg::read(&arguments.file).map_err(|error| Failure::usage(error.to_string()))?;
    let mut config = ServerConfig::from(cfg);
    config.changes_kept = 4096;
    ledger::keep_everything(&mut config);
    // This process runs on tokio in any case; its server on the runtime that was asked for.
    arguments.runtime.dispatch(Serve(config)).await
}

/// A server with this configuration, on any runtime.
struct Serve(ServerConfig);

impl WithRuntime for Serve {
    type Output = Pin<Box<dyn Future<Output = Result<(), Failure>>>>;

    fn with<R: Runtime>(self, runtime: R, _: BlockOn) -> Self::Output {
        Box::pin(serve(runtime, self.0))
    }
}

async fn serve<R: Runtime>(runtime: R, config: ServerConfig) -> Result<(), Failure> {
    let begun = Instant::now();
    let server = Server::start(runtime, config, ledger::application()).await;
    let server = server.map_err(|error| Failure::failed(error.to_string()))?;

    let lines = writer()?;
    tokio::spawn(tell_changes(server.changes(), begun, lines.clone()));
    let mut asks = reader()?;
    let ended = loop {
        let ask = tokio::select! {
            ask = asks.recv() => ask,
            ended = server.finished() => break ended,
        };
        let (server, lines) = (server.clone(), lines.clone());
        match ask {
            None => break server.shutdown().await,
            Some(Ask::Write { number, length }) => {
                tokio::spawn(async move {
                    let outcome = Outcome::of_write(&server, number, length).await;
                    tell(&lines, Answer::Write(number, outcome).to_string());
                });
            }
            Some(Ask::CatchUp) => {
                tokio::spawn(async move {
                    let answer = match server.sync().await {
                        Ok(()) => Answer::CaughtUp,
                        Err(error) => Answer::Behind(error.to_string()),
                    };
                    tell(&lines, answer.to_string());
                });
            }
        }
    };
    ended.map_err(|error| Failure::failed(error.to_string()))
}

fn tell(lines: &mpsc::Sender<String>, line: String) {
    // The demo has gone: stdin ends, too.
    drop(lines.send(line));
}

async fn tell_changes(mut changes: Changes, begun: Instant, lines: mpsc::Sender<String>) {
    let mut lost = 0;
    let json = |line: Line| serde_json::to_string(&line).unwrap_or_default();
    while let Some(observed) = changes.next().await {
        if changes.lost() > lost {
            lost = changes.lost();
            tell(&lines, json(Line::Lost { changes: lost }));
        }
        let at = observed.at.saturating_duration_since(begun);
        tell(&lines, json(Line::Change(ChangeLine::new(&observed, at))));
    }
}

/// A thread that writes lines to stdout, as many at a time as there are.
fn writer() -> Result<mpsc::Sender<String>, Failure> {
    let (lines, queue) = mpsc::channel::<String>();
    let work = move || {
        let mut text = String::new();
        while let Ok(line) = queue.recv() {
            text.clear();
            for line in std::iter::once(line).chain(queue.try_iter()) {
                text += &line;
                text.push('\n');
            }
            let mut stdout = io::stdout().lock();
            if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
                return;
            }
        }
    };
    thread("quorate-answers", work)?;
    Ok(lines)
}

/// A thread that reads stdin: no runtime can wait for every kind of it.
fn reader() -> Result<UnboundedReceiver<Ask>, Failure> {
    let (asks, queue) = unbounded_channel();
    let work = move || {
        for line in io::stdin().lock().lines() {
            let Some(Ok(ask)) = line.ok().map(|line| line.parse()) else { return };
            if asks.send(ask).is_err() {
                return;
            }
        }
    };
    thread("quorate-asks", work)?;
    Ok(queue)
}

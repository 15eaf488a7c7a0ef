//! ZooKeeper's admin server: its commands over HTTP, of a server that `quorate serve` runs.
//!
//! ```text
//!   GET /commands/NAME ──► table: which command, who may ──► look at the service, status, files ──► JSON in Java's order
//! ```
//!
//! Names, keys and their order are ZooKeeper's (`Commands`, `CommandResponse`); so is the status 200 of an unknown command
//! and of a server that does not serve. What differs: a command that changes something is a POST; connections, watches and
//! sessions are shown to who has every right on `/` (`Authorization: digest user:password`), as ZooKeeper 3.9 asks for
//! snapshots; `monitor` answers without a leader, too; properties of the process are not told.

mod answers;
mod commands;
mod json;
mod scene;

use std::path::PathBuf;

use quorate_http::{Answer, Method, Request, Source};
use quorate_service::{Denied, Figures, ZooKeeper};
use quorate_tokio::{Server, Tokio};
use tokio::time::timeout;

use self::commands::{Command, Shown};
use self::json::Json;
use self::scene::{NOT_SERVING, PATIENCE, Scene};
use crate::in_force::InForce;
use crate::process;

/// The commands of one server, and its figures.
#[derive(Debug)]
pub(crate) struct Admin {
    cfg: InForce,
    /// What commands stand below, without a slash at its end; none if they are not answered.
    url: Option<String>,
    /// Where it keeps its files.
    directories: Vec<PathBuf>,
}

impl Admin {
    pub(crate) fn new(cfg: InForce) -> Self {
        let now = cfg.get();
        let url = now.http.admin.as_ref().map(|admin| admin.command_url.clone());
        let directories = [Some(&now.data_dir), now.data_log_dir.as_ref()];
        let directories = directories.into_iter().flatten().cloned().collect();
        Self { cfg, url, directories }
    }

    async fn run(&self, server: Option<&Server<ZooKeeper>>, name: &str, of: &Request) -> Answer {
        let Some(command) = Command::named(name) else {
            return failed(200, name, &format!("Unknown command: {name}"));
        };
        let serving = server.is_some_and(|server| server.status().peer.serving);
        if command.serving && !serving {
            return failed(200, name, NOT_SERVING);
        }
        if command.changes && of.method != Method::Post {
            return failed(405, command.name(), "This command changes something: it is a POST");
        }
        if command.shown == Shown::ToWhoHasAllRights {
            let Some(server) = server else { return failed(200, name, NOT_SERVING) };
            if let Err((status, error)) = authorize(server, of).await {
                return failed(status, command.name(), error);
            }
        }
        let cfg = self.cfg.get();
        let scene = match Scene::of(&cfg, server, of, command.wants).await {
            Ok(scene) => scene,
            Err(error) => return failed(200, command.name(), error),
        };
        match (command.run)(&scene) {
            Ok(mut fields) => {
                if command.name() != "environment" {
                    fields.push(("command".to_owned(), command.name().into()));
                    fields.push(("error".to_owned(), Json::Null));
                }
                Answer::json(200, &Json::Object(fields))
            }
            Err((status, error)) => failed(status, command.name(), error),
        }
    }
}

/// Whether who asks has every right on `/`.
async fn authorize(server: &Server<ZooKeeper>, of: &Request) -> Result<(), (u16, &'static str)> {
    let said = of.authorization.clone().ok_or((401, "Auth info is missing for the command"))?;
    let from = of.remote.ip().to_canonical();
    let judge = server.look(move |at, service, state| {
        let (scheme, proof) = said.split_once(' ').unwrap_or((&said, ""));
        service.authorize(at, state, (scheme, proof), from)
    });
    match timeout(PATIENCE, judge).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(Denied::NotAuthenticated))) => Err((401, "Not authenticated")),
        Ok(Ok(Err(Denied::NotAuthorized))) => Err((403, "Not authorized")),
        Ok(Err(_)) | Err(_) => Err((500, "Error occurred during auth")),
    }
}

fn failed(status: u16, name: &str, error: &str) -> Answer {
    let fields = [("command", name), ("error", error)];
    let fields = fields.map(|(key, value)| (key.to_owned(), value.into()));
    Answer::json(status, &Json::Object(fields.into()))
}

impl Source<Tokio, ZooKeeper> for Admin {
    /// If the service is away for long, those of the server beneath alone, which are at hand. They are put together here, where
    /// no request waits for it.
    async fn figures(&self, server: &Server<ZooKeeper>) -> Figures {
        let look = server.look(|at, service, state| service.own_figures(at, state));
        let looked = timeout(PATIENCE, look).await.ok().and_then(Result::ok);
        let mut figures = looked.unwrap_or_default();
        figures.append(server.figures());
        process::descriptors(&mut figures);
        process::figures(&mut figures);
        process::disks(&mut figures, &self.directories);
        figures
    }

    async fn answer(&self, server: Option<&Server<ZooKeeper>>, request: Request) -> Answer {
        let below = self.url.as_deref().and_then(|url| request.path.strip_prefix(url));
        match below {
            Some("" | "/") => Answer {
                status: 200,
                content_type: "text/html;charset=utf-8",
                body: commands::page(self.url.as_deref().unwrap_or_default()).into(),
            },
            Some(name) if name.starts_with('/') => self.run(server, &name[1..], &request).await,
            Some(_) | None => Answer::not_found(),
        }
    }
}

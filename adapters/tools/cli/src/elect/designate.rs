//! `quorate designate`: names a leader by hand, for when the store is out of reach, and serves that.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use quorate_http::{Answer, Limits, Method, Port, Request, Site};
use quorate_recipes::{Designation, DesignationError, designate};
use quorate_tokio::Tokio;
use quorate_tokio::core::address::HostPort;
use tokio::task::JoinSet;

use crate::address::{AddressError, address};
use crate::failure::Failure;

/// Name a leader by hand, in a file that `quorate elect --designation FILE` and programs look at while their
/// store is out of reach.
///
/// It has to be the same file for all candidates, and a token greater than that of every leader before:
/// the guarded resource refuses it otherwise. Without --identity and --token: print the designation.
///
/// With --serve, candidates of other hosts read it: `quorate elect --designation http://HOST:PORT/`.
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
    /// For how many seconds a designation counts, where one is shown or served.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    max_age: u64,
    /// Serve the designation over HTTP until told to end: to this host alone, unless an address is named. A host that
    /// can change what candidates read there can name their leader: an address that others reach is for a private
    /// network.
    #[arg(long, value_name = "[HOST:]PORT", value_parser = serving)]
    serve: Option<HostPort>,
}

/// Where to serve; on loopback if nothing else is said.
fn serving(text: &str) -> Result<HostPort, AddressError> {
    let port = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if port { address(&format!("127.0.0.1:{text}")) } else { address(text) }
}

/// Writes it, serves it, or says what is there.
pub(crate) async fn designate_leader(arguments: Arguments) -> Result<(), Failure> {
    let failed = |error: DesignationError| Failure::failed(error.to_string());
    if let (Some(identity), Some(token)) = (&arguments.identity, arguments.token) {
        designate(&arguments.file, identity, token).map_err(failed)?;
        if arguments.serve.is_none() {
            return Ok(());
        }
    }
    let designation = Designation::file(&arguments.file, Duration::from_secs(arguments.max_age));
    if let Some(at) = &arguments.serve {
        return serve(designation, at).await;
    }
    let (leader, left) = designation.read().map_err(failed)?;
    let (name, token, left) = (leader.name(), leader.token, left.as_secs());
    // A reader that has gone wants no more.
    drop(writeln!(io::stdout(), "designated  {name}  token {token}  for {left} s more"));
    Ok(())
}

async fn serve(designation: Designation, at: &HostPort) -> Result<(), Failure> {
    crate::logs::start(None, "info")?;
    let failed = |error| Failure::failed(format!("cannot listen at {at}: {error}"));
    let page = Arc::new(Page(designation));
    let mut ports = JoinSet::new();
    for at in tokio::net::lookup_host((at.host.as_str(), at.port)).await.map_err(failed)? {
        let port = Port::open(Tokio, at).await.map_err(failed)?;
        tracing::info!("the designation is served at http://{}/", port.local_addr());
        ports.spawn(port.serve(Arc::clone(&page), LIMITS));
    }
    // They serve until the process is told to end.
    while ports.join_next().await.is_some() {}
    Ok(())
}

/// What a candidate asks takes one short connection.
const LIMITS: Limits = Limits { connections: 64, idle: Duration::from_secs(10) };

/// The page: the line of the file as it is now, if it counts.
#[derive(Debug)]
struct Page(Designation);

impl Site for Page {
    async fn answer(&self, request: Request) -> Answer {
        if request.method != Method::Get {
            return Answer::text(405, "GET and HEAD are answered\n");
        }
        if request.path != "/" {
            return Answer::not_found();
        }
        let designation = self.0.clone();
        // A file may be far away.
        match tokio::task::spawn_blocking(move || designation.line()).await {
            Ok(Ok(line)) => Answer::text(200, line),
            Ok(Err(error)) => {
                tracing::debug!(%error, "there is no designation");
                Answer::text(404, "no designation\n")
            }
            Err(_) => Answer::text(500, "the file cannot be read\n"),
        }
    }
}

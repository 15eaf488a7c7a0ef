//! `quorate wait`: until a server serves, for scripts that start something behind it.
//!
//! A service manager calls a server ready when it is open, whether or not there is a leader; who needs one waits here. What is
//! asked is the probe `/ready`, or at a client port `srvr`, which Java's servers answer, too.

use std::time::Duration;

use clap::Args;
use quorate_tokio::core::address::HostPort;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

use crate::address::address;
use crate::duration::duration;
use crate::failure::Failure;

/// Wait until a server serves: it has a leader, and is synchronised.
///
/// The exit code is 0 then, and 1 if the time is over before.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Until it serves clients.
    #[arg(long, required = true)]
    ready: bool,
    /// For how long: 500ms, 60s, 5m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// Its port for probes or its admin server, or else its client port.
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:2181", value_parser = address)]
    server: HostPort,
}

/// `quorate wait`.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { timeout, server, .. } = arguments;
    let end = Instant::now() + timeout;
    let mut last = "no answer".to_owned();
    loop {
        let once = (Instant::now() + ANSWER_WITHIN).min(end);
        match timeout_at(once, ask(&server)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(reason)) => last = reason,
            Err(_) => {}
        }
        if Instant::now() + ASK_AGAIN >= end {
            return Err(Failure::failed(format!("{server}: not ready within {timeout:?}: {last}")));
        }
        sleep(ASK_AGAIN).await;
    }
}

/// Asks once; says why it is not ready.
async fn ask(server: &HostPort) -> Result<(), String> {
    let request =
        format!("GET /ready HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.host);
    // A client port takes that for a frame that is too long, and closes.
    if let Some(answer) = say(server, &request).await?.strip_prefix("HTTP/1.1 ") {
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        return match (answer.get(..3), body.lines().next()) {
            (Some("200"), _) => Ok(()),
            (Some("503"), Some(reason)) => Err(reason.to_owned()),
            _ => Err(format!("it has no /ready: {}", answer.lines().next().unwrap_or_default())),
        };
    }
    let answer = say(server, "srvr").await?;
    match answer.lines().find_map(|line| line.strip_prefix("Mode: ")) {
        Some("leader" | "follower" | "observer" | "standalone") => Ok(()),
        _ => Err(answer.lines().next().unwrap_or("it says nothing").to_owned()),
    }
}

/// What a server answers before it closes the connection; nothing if it breaks it.
async fn say(server: &HostPort, words: &str) -> Result<String, String> {
    let connected = TcpStream::connect((server.host.as_str(), server.port)).await;
    let mut socket = connected.map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    if socket.write_all(words.as_bytes()).await.is_ok() {
        // What has come until it broke will do.
        drop(socket.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await);
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// How long one question may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How soon it is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// No answer to these is as long.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

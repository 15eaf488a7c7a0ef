//! `quorate tls`: the stores of keys that servers prove by who they are.
//!
//! ```text
//!   quorate tls check ZOO.CFG    reads the stores as the server would, and says for whom each certificate is
//!   quorate tls sample DIR       writes a script that makes stores for development
//! ```
//!
//! Nothing is started and nothing is sent. Passwords are read and never shown.

mod check;
mod page;
mod sample;
mod settings;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};

pub(crate) use self::check::{Found, Shown, shown};
#[cfg(feature = "tls")]
pub(crate) use self::settings::Store;
#[cfg(feature = "client-tls")]
pub(crate) use self::settings::client_stores;
pub(crate) use self::settings::read;
use crate::failure::Failure;

/// Look at the key and trust stores of servers, or make some for development.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Read the stores that a zoo.cfg names, as the server would.
    ///
    /// Takes `ssl.quorum.keyStore.*` and `ssl.quorum.trustStore.*`, with or without `zookeeper.` before them, and the same of
    /// `ssl.*` where clients come with TLS, and of `metricsProvider.ssl.*` where scrapers do; JKS, PKCS12 and PEM. Says of
    /// each certificate for whom it is, who issued it, when it ends, what it may be used for, and which members of the
    /// ensemble it names. Exits with 1 if the server could not use what is there.
    Check(CheckArguments),
    /// Write a script that makes a development authority and stores for each member. NEVER FOR PRODUCTION.
    ///
    /// The script needs openssl, and keytool for JKS. It makes for each member a PEM, a PKCS12 and a JKS key store, and a
    /// trust store of each kind for all; one password opens all, and the authority's key lies beside them.
    Sample(sample::Arguments),
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// The server's configuration.
    zoo_cfg: PathBuf,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// `quorate tls`.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.act {
        Act::Check(arguments) => check(&arguments),
        Act::Sample(arguments) => sample::run(&arguments),
    }
}

fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    let CheckArguments { zoo_cfg, json } = arguments;
    let settings = read(zoo_cfg).map_err(|error| Failure::usage(error.to_string()))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let all = settings.stores().map(|stores| (stores, Found::in_stores(&settings, stores, now)));
    let all: Vec<_> = all.collect();
    page::print(&settings, &all, now, *json);
    // All has been said on stdout.
    if page::is_well(&all) { Ok(()) } else { Err(Failure::failed("")) }
}

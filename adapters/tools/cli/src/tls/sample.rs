//! `quorate tls sample`: a script that makes stores for development.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The directory, which is made; it must be empty.
    directory: PathBuf,
    /// The hosts of the members, as in their `server.N` lines.
    #[arg(long, value_name = "HOST,…", value_delimiter = ',', required = true)]
    members: Vec<String>,
}

/// Writes the script, and says what to do with it.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { directory, members } = arguments;
    let script = script(members).map_err(Failure::usage)?;
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(failed)?;
    if fs::read_dir(directory).map_err(failed)?.next().is_some() {
        return Err(Failure::failed(format!("{} is not empty", directory.display())));
    }
    let path = directory.join("make.sh");
    fs::write(&path, script).map_err(failed)?;
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(told(&path, directory, members).as_bytes()));
    Ok(())
}

/// What each member gets is named by its host, which is fit for a file and for a shell.
fn script(members: &[String]) -> Result<String, String> {
    let mut out = include_str!("sample.sh").to_owned();
    let mut seen = BTreeSet::new();
    for host in members {
        let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
        if host.is_empty() || host.starts_with(['-', '.']) || !host.chars().all(fit) {
            return Err(format!("\"{host}\" is no name of a host"));
        }
        if !seen.insert(host) {
            return Err(format!("{host} is named twice"));
        }
        let kind = if host.parse::<IpAddr>().is_ok() { "IP" } else { "DNS" };
        // A string takes it.
        let _ = writeln!(out, "member {host} {kind}:{host}");
    }
    out += include_str!("sample_end.sh");
    Ok(out)
}

fn told(path: &Path, directory: &Path, members: &[String]) -> String {
    // As a server started anywhere finds it.
    let whole = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let (first, dir) = (members.first().map_or("", String::as_str), whole.display());
    format!(
        "{path} makes a development authority and stores in PEM, PKCS12 and JKS; NEVER FOR PRODUCTION.\n\
         \n\
         Run it where openssl and keytool are:  sh {path}\n\
         Then in zoo.cfg, with the name of each member in the place of {first}:\n\
         \n\
         ssl.quorum.keyStore.location={dir}/{first}.p12\n\
         ssl.quorum.keyStore.passwordPath={dir}/password\n\
         ssl.quorum.trustStore.location={dir}/trust.p12\n\
         ssl.quorum.trustStore.passwordPath={dir}/password\n\
         \n\
         next: `quorate tls check zoo.cfg`\n",
        path = path.display(),
    )
}

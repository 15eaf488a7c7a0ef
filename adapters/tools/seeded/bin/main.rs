//! `cargo run -p quorate-seeded -- ARGUMENTS`: makes the copy in `target/seeded`, and runs cargo there with these
//! arguments, if there are any.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};

use quorate_seeded::copy::seeded;
use quorate_seeded::tree::Tree;

/// The workspace.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            let mut cause: Option<&dyn Error> = Some(&*error);
            while let Some(error) = cause {
                eprintln!("{error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let copy = Path::new(ROOT).join("target/seeded");
    seeded(&Tree::read(Path::new(ROOT))?)?.write(&copy)?;
    let copy = copy.canonicalize()?;
    eprintln!("the workspace with its seeded bugs is in {}", copy.display());
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo).args(arguments).current_dir(copy).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

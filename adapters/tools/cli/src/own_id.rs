//! Which server this is, where the name of its host says so: pods of a StatefulSet are numbered from 0, servers from 1.
//!
//! `dataDir/myid` stays what binds a directory to its server: it is written where it is not there yet, and a directory with
//! another number is refused, since its promises are those of that server.

use std::cell::Cell;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use clap::ValueEnum;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::zoo_cfg::{JvmFlags, ZooCfg};
use rustix::system::uname;
use tempfile::NamedTempFile;
use thiserror::Error;

use crate::failure::Failure;

/// Where a server's number comes from, if not from `myid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OwnId {
    /// The number at the end of the host's name, and one: server 1 runs on zk-0.
    FromHostname,
}

/// Why a name or a directory does not do.
#[derive(Debug, Error)]
pub(crate) enum OwnIdError {
    /// The name has no number at its end, or too large a one.
    #[error("the host's name {0:?} does not end in a number from 0 to 254")]
    Name(String),
    /// The directory is another server's.
    #[error(
        "the host is {host:?}, which makes this server {expected}, but {file} says {found}: is this another server's directory?"
    )]
    Other { host: String, expected: i64, file: String, found: String },
    /// It cannot be written.
    #[error("cannot write {file}: {source}")]
    Write { file: String, source: io::Error },
}

/// Reads a `zoo.cfg`, as the server that the host's name says.
pub(crate) fn read(file: &Path, flags: &JvmFlags) -> Result<ZooCfg, Failure> {
    read_as(file, flags, &uname().nodename().to_string_lossy())
}

fn read_as(file: &Path, flags: &JvmFlags, host: &str) -> Result<ZooCfg, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let id = of_host(host).map_err(|error| usage(&error))?;
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
    let missing = Cell::new(false);
    let read_file = |path: &Path| match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && path.ends_with(FILE) => {
            missing.set(true);
            Ok(id.0.to_string())
        }
        read => read,
    };
    let cfg = ZooCfg::parse_with(file, &text, flags, read_file).map_err(|error| usage(&error))?;
    let own = cfg.data_dir.join(FILE);
    if missing.get() {
        let failed = |source| OwnIdError::Write { file: own.display().to_string(), source };
        write(&cfg.data_dir, id)
            .map_err(failed)
            .map_err(|error| Failure::failed(error.to_string()))?;
        return Ok(cfg);
    }
    if cfg.my_id != id {
        let (host, file) = (host.to_owned(), own.display().to_string());
        let found = cfg.my_id.0.to_string();
        return Err(usage(&OwnIdError::Other { host, expected: id.0, file, found }));
    }
    Ok(cfg)
}

/// The number at the end of the first part of a name, and one.
fn of_host(host: &str) -> Result<ServerId, OwnIdError> {
    let name = host.split('.').next().unwrap_or_default();
    let number = name.rsplit(|character: char| !character.is_ascii_digit()).next();
    match number.and_then(|number| number.parse().ok()) {
        Some(ordinal @ 0..=254) => Ok(ServerId(ordinal + 1)),
        Some(_) | None => Err(OwnIdError::Name(host.to_owned())),
    }
}

/// Durably, and whole or not at all: a crash leaves no empty file, which would be no number.
fn write(directory: &Path, id: ServerId) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut file = NamedTempFile::new_in(directory)?;
    writeln!(file, "{}", id.0)?;
    file.as_file().sync_all()?;
    file.persist(directory.join(FILE)).map_err(|error| error.error)?;
    fs::File::open(directory)?.sync_all()
}

/// In the data directory.
const FILE: &str = "myid";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_at_the_end_of_a_hosts_name_is_one_less_than_the_servers() {
        for (host, id) in [("zk-0", 1), ("quorate-2", 3), ("zk10.default.svc", 11), ("a1b254", 255)]
        {
            assert_eq!(of_host(host).unwrap(), ServerId(id), "{host}");
        }
        for wrong in ["", "zk", "zk-255", "zk-1a", "zk-99999999999999999999", "zk.1"] {
            assert!(of_host(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_directory_gets_its_number_once_and_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let (cfg, data) = (dir.path().join("zoo.cfg"), dir.path().join("data"));
        let servers = "server.1=a:1:2;3\nserver.2=b:1:2;3\nserver.3=c:1:2;3";
        let lines = format!("initLimit=5\nsyncLimit=5\ndataDir={}\n{servers}\n", data.display());
        fs::write(&cfg, lines).unwrap();
        let read = |host: &str| read_as(&cfg, &JvmFlags::default(), host);
        // What cannot be served leaves nothing behind.
        assert_eq!(read("zk-3").unwrap_err().code, 2);
        assert!(!data.exists());
        assert_eq!(read("zk-1.zk").unwrap().my_id, ServerId(2));
        assert_eq!(fs::read_to_string(data.join("myid")).unwrap(), "2\n");
        assert_eq!(read("zk-1").unwrap().my_id, ServerId(2));
        let refused = read("zk-0").unwrap_err();
        assert!(refused.code == 2 && refused.message.contains("says 2"), "{}", refused.message);
        assert_eq!(fs::read_to_string(data.join("myid")).unwrap(), "2\n");
    }
}

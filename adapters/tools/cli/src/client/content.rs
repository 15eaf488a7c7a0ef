//! What a command takes from elsewhere: data, and how a node is to be.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use zookeeper_client::{Acls, CreateMode, CreateOptions};

use super::command::Create;
use super::error::ClientError;

/// The bytes of a file, of stdin for "-".
pub(super) fn file(path: &Path) -> Result<Vec<u8>, ClientError> {
    let read = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    read.map_err(|source| ClientError::File { path: path.to_owned(), source })
}

/// Those of the file, else those that were typed, else none.
pub(super) fn data(from: Option<&Path>, typed: Option<&str>) -> Result<Vec<u8>, ClientError> {
    match from {
        Some(path) => file(path),
        None => Ok(typed.unwrap_or_default().as_bytes().to_vec()),
    }
}

/// How a node is to be, for anyone to change as zkCli makes them.
pub(super) fn options(create: &Create) -> CreateOptions<'static> {
    let mode = match (create.container, create.ephemeral, create.sequential) {
        (true, ..) => CreateMode::Container,
        (false, false, false) => CreateMode::Persistent,
        (false, false, true) => CreateMode::PersistentSequential,
        (false, true, false) => CreateMode::Ephemeral,
        (false, true, true) => CreateMode::EphemeralSequential,
    };
    let options = mode.with_acls(Acls::anyone_all());
    match create.ttl {
        Some(ttl) => options.with_ttl(Duration::from_millis(ttl)),
        None => options,
    }
}

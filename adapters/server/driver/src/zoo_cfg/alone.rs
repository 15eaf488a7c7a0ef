//! A file without any line of a server: ZooKeeper's way to run one alone, and Debian's before it is edited.
//!
//! In the Java code: `QuorumPeerConfig.isDistributed`, `ServerConfig`.

use std::io;
use std::path::Path;

use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Membership, Role, ServerAddress};

use crate::zoo_cfg::entries::Entries;
use crate::zoo_cfg::findings::{Caution, ConfigError, Place};

/// What this server is to itself: the only member. Nothing listens at its address.
///
/// Nothing asks for an id. One that `myid` holds is taken all the same, so that sessions of servers which once were an
/// ensemble stay apart; what else stands there, as Debian's package has it, is said and passed over.
pub(super) fn membership(
    entries: &mut Entries<'_>,
    read_file: &impl Fn(&Path) -> io::Result<String>,
) -> Result<Membership, ConfigError> {
    let file = entries.peek("dataDir").map(|entry| Path::new(&entry.value).join("myid"));
    let id = match file.as_ref().map(|file| (file, read_file(file))) {
        None => ID,
        Some((file, Ok(text))) => {
            let found = text.lines().next().unwrap_or_default().trim();
            let id = found.parse().ok().filter(|id| ServerId::CONFIGURABLE.contains(id));
            id.map(ServerId).unwrap_or_else(|| {
                let at = Place { file: file.clone(), line: 1 };
                entries.warn(at, Caution::MyIdUnused { found: found.to_owned() });
                ID
            })
        }
        Some((_, Err(error))) if error.kind() == io::ErrorKind::NotFound => ID,
        Some((file, Err(source))) => {
            return Err(ConfigError::MyIdUnreadable { file: file.clone(), source });
        }
    };
    let member = Member::new(id, Role::Participant, ServerAddress::new("localhost", 2888, 3888));
    Membership::build([member], [], [], 0).map_err(|source| {
        let at = Place { file: file.unwrap_or_default(), line: 0 };
        ConfigError::Membership { at, source: source.into() }
    })
}

/// That of ZooKeeper's sessions without an ensemble (`ZooKeeperServer.createSessionTrackerServerId`).
const ID: ServerId = ServerId(1);

/// Why a port for clients must be said.
pub(super) const WHY_CLIENTS: &str =
    "without a server.N line this server is there for its clients alone";

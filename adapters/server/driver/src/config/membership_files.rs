//! Where the membership is kept.
//!
//! ```text
//!   zoo.cfg.dynamic.100000000    the one in force, without its version; zoo.cfg names it
//!   zoo.cfg.dynamic.next         the one that was seen last, with its version, as long as it is another
//! ```
//!
//! While the one in force has no line for this server, which is about to join, or was removed, `zoo.cfg`
//! keeps that line as `quorate.self`: ZooKeeper's servers cannot be started again then.
//!
//! A program that is no file's has these in the data directory, and need not know of them. Which membership
//! is to be kept, and when, is the core's business.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quorate_core::membership::{Member, Membership};
use quorate_storage::install::Memberships;

use crate::replace_file::{replace, sync_dir};
use crate::zoo_cfg::ZooCfg;

/// The files in which the membership is kept.
#[derive(Debug)]
pub(crate) struct MembershipFiles {
    /// What the names begin with.
    stem: PathBuf,
    /// The file whose `dynamicConfigFile` names the first.
    named_in: Option<PathBuf>,
    /// Whether it does, or still holds the membership itself.
    named: bool,
    /// The version of the one in force.
    version: i64,
    /// Our own line.
    own: Option<Member>,
}

impl MembershipFiles {
    /// Beside `dynamic_file`, if there is one; beside `config_file`, which is to name it; or in the data
    /// directory.
    pub(crate) fn new(
        data_dir: &Path,
        dynamic_file: Option<&Path>,
        config_file: Option<PathBuf>,
    ) -> Self {
        let stem = match (dynamic_file, &config_file) {
            (Some(dynamic), _) => stem(dynamic),
            (None, Some(config)) => with_end(config, "dynamic"),
            (None, None) => data_dir.join("membership.dynamic"),
        };
        Self { stem, named_in: config_file, named: dynamic_file.is_some(), version: 0, own: None }
    }

    /// Keeps our own line, too, while no membership has it; and which membership is in force.
    pub(crate) fn remember(&mut self, own: Member, version: i64) {
        (self.own, self.version) = (Some(own), version);
    }

    /// Keeps what came with a history that was installed.
    pub(crate) fn take_over(&mut self, told: &Memberships) -> Result<(), (PathBuf, io::Error)> {
        let present = Membership::parse(&told.present).map_err(|error| {
            (self.stem.clone(), io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
        })?;
        if present.version() > self.version {
            self.keep(&told.present)?;
        }
        self.keep_next(told.next.as_deref())
    }

    /// What was kept when this server ended: the membership in force, unless a file of the operator's holds
    /// that, and the one seen last. A file that cannot be read is an error: to go on without may be to forget
    /// who has to agree.
    pub(crate) fn recall(&self) -> Result<[Option<Membership>; 2], (PathBuf, io::Error)> {
        let mut newest = None;
        if self.named_in.is_none() && !self.named {
            for version in self.versions().map_err(|error| (self.stem.clone(), error))? {
                newest = newest.max(Some(version));
            }
        }
        let present = match newest {
            Some(version) => {
                let path = with_end(&self.stem, &format!("{version:x}"));
                read(&path)?.map(|membership| membership.with_version(version))
            }
            None => None,
        };
        Ok([present, read(&with_end(&self.stem, "next"))?])
    }

    /// The versions that files of ours are named by.
    fn versions(&self) -> io::Result<Vec<i64>> {
        let (dir, name) = (self.stem.parent(), self.stem.file_name().and_then(|n| n.to_str()));
        let (Some(dir), Some(name)) = (dir, name) else { return Ok(Vec::new()) };
        let mut versions = Vec::new();
        match fs::read_dir(dir) {
            Ok(entries) => {
                for entry in entries {
                    let entry = entry?.file_name();
                    let end = entry.to_str().and_then(|e| e.strip_prefix(name)?.strip_prefix('.'));
                    versions.extend(end.and_then(|end| i64::from_str_radix(end, 16).ok()));
                }
            }
            Err(error) if is_nowhere(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(versions)
    }

    /// Keeps the one that was seen last, or none.
    pub(crate) fn keep_next(&self, text: Option<&[u8]>) -> Result<(), (PathBuf, io::Error)> {
        let path = with_end(&self.stem, "next");
        let done = match text {
            Some(text) => replace(&path, text),
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
                Ok(()) => sync_dir(&path),
            },
        };
        done.map_err(|error| (path, error))
    }

    /// Keeps a newer membership as ZooKeeper does: in a file of its own, whose name ends in its
    /// version and which does not hold that version, named in `zoo.cfg`. Each step leaves something
    /// to start from.
    pub(crate) fn keep(&mut self, text: &[u8]) -> Result<(), (PathBuf, io::Error)> {
        let text = String::from_utf8_lossy(text);
        let is_version = |line: &&str| line.starts_with("version=");
        let version = text.lines().find(is_version).map_or("0", |line| &line["version=".len()..]);
        let members: Vec<_> = text.lines().filter(|line| !is_version(line)).collect();
        let next = with_end(&self.stem, version);
        replace(&next, members.join("\n").as_bytes()).map_err(|error| (next.clone(), error))?;
        if let Some(config) = &self.named_in {
            let line = self.own.as_ref().and_then(|own| {
                let key = format!("server.{}=", own.id);
                members.iter().find_map(|line| line.strip_prefix(&key))
            });
            let own = match line {
                // It may have moved.
                Some(line) => {
                    self.own =
                        self.own.take().map(|own| Member::parse(own.id, line).unwrap_or(own));
                    None
                }
                None => self.own.as_ref(),
            };
            let name = if self.named { name_in } else { move_out };
            let said = line.and(self.own.as_ref()).is_some_and(|own| own.client.is_some());
            name(config, &next, own, said).map_err(|error| (config.clone(), error))?;
            self.named = true;
        }
        // A later one has been seen, and binds on.
        let version = i64::from_str_radix(version.trim_end(), 16).unwrap_or(0);
        self.version = version;
        match read(&with_end(&self.stem, "next"))? {
            Some(seen) if seen.version() > version => Ok(()),
            Some(_) | None => self.keep_next(None),
        }
    }
}

/// Makes another membership the one that a server goes by, which does not run: in a new dynamic file if its `zoo.cfg`
/// names one; else the lines in there are its membership, and only what was seen of a later one is removed.
///
/// For an ensemble that goes on without a quorum: no server is asked. While servers run, their membership is changed by
/// [`Server::reconfigure`](crate::Server::reconfigure).
///
/// # Errors
///
/// What the system says, and of which file. Done again it goes on.
pub fn replace_membership(
    cfg: &ZooCfg,
    membership: &Membership,
) -> Result<(), (PathBuf, io::Error)> {
    let dynamic = cfg.dynamic_config_file.as_deref();
    let mut files = MembershipFiles::new(&cfg.data_dir, dynamic, Some(cfg.file.clone()));
    if dynamic.is_none() {
        return files.keep_next(None);
    }
    files.remember(cfg.own().clone(), cfg.membership.version());
    files.keep(membership.text())
}

/// `zoo.cfg.dynamic` of `zoo.cfg.dynamic.100000000`.
fn stem(dynamic: &Path) -> PathBuf {
    let hex = |end: &str| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    match dynamic.extension().and_then(|end| end.to_str()).filter(|end| hex(end)) {
        Some(_) => dynamic.with_extension(""),
        None => dynamic.to_owned(),
    }
}

/// `zoo.cfg.dynamic` and `next`: `zoo.cfg.dynamic.next`.
fn with_end(stem: &Path, end: &str) -> PathBuf {
    let mut path = stem.as_os_str().to_owned();
    path.push(".");
    path.push(end);
    path.into()
}

/// The membership in a file; none if there is no such file.
fn read(path: &Path) -> Result<Option<Membership>, (PathBuf, io::Error)> {
    match fs::read(path) {
        Ok(text) => match Membership::parse(text) {
            Ok(membership) => Ok(Some(membership)),
            Err(error) => Err((
                path.to_owned(),
                io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
            )),
        },
        Err(error) if is_nowhere(&error) => Ok(None),
        Err(error) => Err((path.to_owned(), error)),
    }
}

/// Whether nothing can be there: no such file, or no directory for it. A caller that needs the directory says so.
fn is_nowhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Makes `dynamicConfigFile` in `config` name `next`, and `quorate.self` our line if it is `own` only; every
/// other line stays as it is, but for those that say where clients connect if the membership says so.
fn name_in(config: &Path, next: &Path, own: Option<&Member>, said: bool) -> io::Result<()> {
    let text = fs::read_to_string(config)?;
    let ours =
        |line: &&str| line.trim_start().starts_with("quorate.self") || said && is_client_port(line);
    let renamed = |line: &str| match line.trim_start().starts_with("dynamicConfigFile") {
        true => format!("dynamicConfigFile={}", next.display()),
        false => line.to_owned(),
    };
    let lines = text.lines().filter(|line| !ours(line)).map(renamed);
    let lines: Vec<_> = lines.chain(own.map(|own| format!("quorate.self={own}"))).collect();
    replace(config, lines.join("\n").as_bytes())
}

/// Takes the lines of the membership out of `config`, which names `next` instead; what it said before is
/// beside it, under a name that ends in `bak`.
fn move_out(config: &Path, next: &Path, own: Option<&Member>, said: bool) -> io::Result<()> {
    let text = fs::read_to_string(config)?;
    replace(&with_end(config, "bak"), text.trim_end().as_bytes())?;
    let moved = |line: &&str| {
        if said && is_client_port(line) {
            return true;
        }
        let line = line.trim_start();
        ["server.", "group.", "weight.", "peerType", "quorate.self"]
            .iter()
            .any(|key| line.starts_with(key))
    };
    let lines = text.lines().filter(|line| !moved(line)).map(str::to_owned);
    let named = format!("dynamicConfigFile={}", next.display());
    let own = own.map(|own| format!("quorate.self={own}"));
    let lines: Vec<_> = lines.chain([named]).chain(own).collect();
    replace(config, lines.join("\n").as_bytes())
}

/// Whether a line says where clients connect: as ZooKeeper does, it goes once the membership says that, or the two would
/// contradict each other at the next start.
fn is_client_port(line: &str) -> bool {
    let key = line.trim_start();
    let end = key.find(|c: char| c == '=' || c == ':' || c.is_whitespace()).unwrap_or(key.len());
    ["clientPort", "clientPortAddress"].contains(&&key[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crash right after the one must not forget who has to agree to the other.
    #[test]
    fn a_membership_in_force_leaves_a_later_one_that_was_seen() {
        let dir = tempfile::tempdir().unwrap();
        let mut kept = MembershipFiles::new(dir.path(), None, None);
        let text = |version: &str| format!("server.1=a:1:2:participant\nversion={version}");
        kept.keep_next(Some(text("100000009").as_bytes())).unwrap();
        let versions =
            |kept: &MembershipFiles| kept.recall().unwrap().map(|m| m.map(|m| m.version()));
        kept.keep(text("100000005").as_bytes()).unwrap();
        assert_eq!(versions(&kept), [Some(0x1_0000_0005), Some(0x1_0000_0009)]);
        kept.keep(text("100000009").as_bytes()).unwrap();
        assert_eq!(versions(&kept), [Some(0x1_0000_0009), None]);
    }

    #[test]
    fn a_newer_membership_is_what_the_next_start_reads() {
        let dir = tempfile::tempdir().unwrap();
        let (config, data) = (dir.path().join("zoo.cfg"), dir.path().join("data"));
        let dynamic = dir.path().join("zoo.cfg.dynamic.100000000");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("myid"), "1").unwrap();
        fs::write(&dynamic, "server.1=a:1:2:participant\n").unwrap();
        let text = format!(
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\nreconfigEnabled=true\n# kept\ndataDir={}\n\
             dynamicConfigFile={}\n",
            data.display(),
            dynamic.display()
        );
        fs::write(&config, text).unwrap();
        let mut kept = MembershipFiles::new(&data, Some(&dynamic), Some(config.clone()));
        let one = quorate_core::id::ServerId(1);
        kept.remember(Member::parse(one, "elsewhere:1:2:participant").unwrap(), 0);
        // It moves, is removed, and comes back.
        let steps = [(0x2_0000_0000, 1..=2), (0x3_0000_0001, 2..=3), (0x3_0000_0002, 1..=3)];
        for (version, ids) in steps {
            let lines: String =
                ids.clone().map(|id| format!("server.{id}=h{id}:1:2:participant\n")).collect();
            kept.keep(format!("{lines}version={version:x}").as_bytes()).unwrap();
            let read = ZooCfg::read(&config).unwrap();
            assert_eq!(read.membership.version(), version);
            assert_eq!(read.membership.members().len(), ids.clone().count());
            assert_eq!(read.own_line.is_none(), ids.contains(&1));
            assert_eq!(read.own().addresses[0].election.host, "h1");
            let text = fs::read_to_string(&config).unwrap();
            assert!(text.contains("# kept\n"));
            assert_eq!(text.contains("quorate.self"), !ids.contains(&1));
        }
    }
    /// One that holds the membership itself, and no line of its own any more.
    #[test]
    fn a_server_that_the_first_change_removes_keeps_its_line_too() {
        let dir = tempfile::tempdir().unwrap();
        let (config, data) = (dir.path().join("zoo.cfg"), dir.path().join("data"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("myid"), "1").unwrap();
        let lines = "server.2=h2:1:2:participant\nserver.3=h3:1:2:participant\n";
        let text = format!(
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\nreconfigEnabled=true\ndataDir={}\n\
             server.1=h1:1:2:participant\n{lines}",
            data.display()
        );
        fs::write(&config, text).unwrap();
        let mut kept = MembershipFiles::new(&data, None, Some(config.clone()));
        let own = Member::parse(quorate_core::id::ServerId(1), "h1:1:2:participant").unwrap();
        kept.remember(own.clone(), 0);
        kept.keep(format!("{lines}version=200000001").as_bytes()).unwrap();
        let read = ZooCfg::read(&config).unwrap();
        assert_eq!((read.membership.members().len(), read.own_line), (2, Some(own)));
    }

    /// Both would stand at the next start, and contradict each other.
    #[test]
    fn the_client_port_that_a_change_gives_us_takes_the_place_of_the_one_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let (config, data) = (dir.path().join("zoo.cfg"), dir.path().join("data"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("myid"), "1").unwrap();
        let text = format!(
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\nreconfigEnabled=true\ndataDir={}\n\
             clientPort=2181\nclientPortAddress: h1\nserver.1=h1:1:2\nserver.2=h2:1:2\n",
            data.display()
        );
        fs::write(&config, text).unwrap();
        let mut kept = MembershipFiles::new(&data, None, Some(config.clone()));
        kept.remember(Member::parse(quorate_core::id::ServerId(1), "h1:1:2").unwrap(), 0);
        let client = || {
            let read = ZooCfg::read(&config).unwrap();
            read.client_address.unwrap().to_string()
        };
        // A change of another line leaves it, one of ours does not.
        let other = "server.1=h1:1:2:participant\nserver.2=h2:3:4:participant;2182\n";
        kept.keep(format!("{other}version=100000001").as_bytes()).unwrap();
        assert_eq!(client(), "h1:2181");
        for port in ["2182", "2183"] {
            let ours =
                format!("server.1=h1:1:2:participant;h1:{port}\nserver.2=h2:3:4:participant\n");
            kept.keep(format!("{ours}version=10000{port}").as_bytes()).unwrap();
            assert_eq!(client(), format!("h1:{port}"));
        }
        assert!(!fs::read_to_string(&config).unwrap().contains("clientPort"));
    }
}

//! What was seen of an ensemble, as data: rules are functions of it and look at nothing themselves.
//!
//! ```text
//!   files ─► ConfigFile   ports ─► Member   names ─► hosts   directories ─► DataDir   /proc ─► Machine   logs ─► Log
//! ```
//!
//! What could not be looked at is absent, or a [`Silence`] with its reason: nothing here is made up.

mod disk;
mod link;
mod log;
mod member;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_driver::zoo_cfg::{ConfigError, ZooCfg};

pub use self::disk::{Bench, DataDir, Space, Stray};
pub use self::link::Link;
pub use self::log::{Log, LogLine};
pub use self::member::{Heard, Member, Port, Silence, Told, Wearing};
pub use self::store::{Distrust, Held, Readable, Served, Stores};
use crate::file::ConfigFile;

/// All that was seen.
#[derive(Debug, Default)]
pub struct Facts {
    /// The configurations.
    pub files: Vec<ConfigFile>,
    /// Files of which no line can be told from another, and why.
    pub broken: Vec<(PathBuf, ConfigError)>,
    /// The servers, as they answered when they were asked last.
    pub members: Vec<Member>,
    /// As they had answered the first time, if what they said then was reason to ask again.
    pub before: Vec<Member>,
    /// How many seconds lay between the two.
    pub seconds_between: f64,
    /// What the hosts of members mean on this machine: their addresses, or what the system says.
    pub hosts: BTreeMap<String, Result<Vec<Address>, String>>,
    /// Data directories.
    pub dirs: Vec<DataDir>,
    /// The key and trust stores of servers on this machine.
    pub stores: Vec<Stores>,
    /// What members showed in handshakes.
    pub served: Vec<Served>,
    /// Which of them the stores here do not trust, and which of one another.
    pub distrusted: Vec<Distrust>,
    /// Files with secrets of servers on this machine that others may read.
    pub readable: Vec<Readable>,
    /// When it was looked, in seconds since 1970; none if that does not matter.
    pub now: Option<i64>,
    /// This machine.
    pub machine: Machine,
    /// The links of servers here with other members, as the kernel sees them now.
    pub links: Vec<Link>,
    /// As it saw them before, if members were asked twice.
    pub links_before: Vec<Link>,
    /// The members that were asked to dial back, and whether they did.
    pub dialled_back: Vec<(ServerId, bool)>,
    /// Logs of servers.
    pub logs: Vec<Log>,
    /// How far the clocks of servers are apart by their logs, in microseconds against one of them.
    pub clocks: Vec<(i64, i64)>,
    /// Who was elected when, by the logs: microseconds since 1970, in order.
    pub elected: Vec<(i64, i64)>,
}

/// An address that a name has here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// It is one of this machine's.
    pub is_here: bool,
}

/// This machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The ports that the system gives to outgoing connections.
    pub ephemeral: Option<(u16, u16)>,
    /// The servers that run here.
    pub processes: Vec<Process>,
}

/// A server's process on this machine.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The zoo.cfg that it was started with.
    pub file: PathBuf,
    /// The server, if it is known.
    pub id: Option<ServerId>,
    /// How many descriptors it may open.
    pub descriptors_max: Option<u64>,
    /// How many it has open.
    pub descriptors: Option<u64>,
    /// How much of its memory is swapped out, in bytes.
    pub swapped: Option<u64>,
    /// In how many periods its group was throttled, of how many.
    pub throttled: Option<(u64, u64)>,
}

impl Facts {
    /// The configurations that can be read.
    pub(crate) fn read_files(&self) -> impl Iterator<Item = (&ConfigFile, &ZooCfg)> {
        self.files.iter().filter_map(|file| Some((file, file.cfg()?)))
    }

    /// The membership that counts: the newest that a server told, else that of the first file.
    pub fn membership(&self) -> Option<&Membership> {
        let told = self.members.iter().filter_map(Member::heard);
        let told = told.filter_map(|heard| heard.membership.as_ref());
        let files = self.read_files().filter(|(_, cfg)| !cfg.alone);
        told.max_by_key(|membership| membership.version())
            .or_else(|| files.map(|(_, cfg)| &cfg.membership).next())
    }

    /// A server, as it answered when it was asked last.
    pub fn member(&self, id: ServerId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// The same member as it had answered the first time; the answer itself, if no member was asked twice.
    pub(crate) fn first(&self, member: &Member) -> Option<&Member> {
        self.before.iter().find(|before| before.id == member.id)
    }

    /// Whether what `is` says of a member was so both times. A member that was seen once is not enough: whoever is
    /// being restarted is seen so, too.
    pub(crate) fn both_times(&self, member: &Member, is: impl Fn(&Member) -> bool) -> bool {
        is(member) && self.first(member).is_some_and(is)
    }

    /// The servers that answered on any port.
    pub fn answering(&self) -> BTreeSet<ServerId> {
        let answering = self.members.iter().filter(|member| member.answers());
        answering.map(|member| member.id).collect()
    }

    /// Whether servers speak TLS among themselves: their election ports tell a stranger nothing then.
    pub(crate) fn speaks_tls(&self) -> bool {
        let tls = self.files.iter().filter_map(|file| file.setting("sslQuorum"));
        tls.into_iter().any(|setting| setting.value.eq_ignore_ascii_case("true"))
    }

    /// The members that say LEADING, with the epoch of their vote.
    pub(crate) fn leaders(members: &[Member]) -> Vec<(ServerId, Option<i64>)> {
        let leaders = members.iter().filter(|member| member.leads());
        leaders.map(|member| (member.id, member.heard().and_then(Heard::epoch))).collect()
    }

    /// Whether a server leads with a quorum behind it, among these answers.
    pub fn is_led(&self, members: &[Member]) -> bool {
        let Some(membership) = self.membership() else { return false };
        let quorum = membership.quorum();
        Self::leaders(members).iter().any(|(leader, _)| {
            let behind = members.iter().filter(|member| member.follows_or_is(*leader));
            quorum.is_quorum(behind.map(|member| member.id))
        })
    }

    /// Who is further behind the leader than what it keeps, and by how much.
    ///
    /// A server that has just taken over a leader's history may tell the zxid of the epoch before: it is compared only
    /// within one epoch.
    pub(crate) fn lags(members: &[Member]) -> impl Iterator<Item = (ServerId, i64)> {
        let leader = members.iter().find(|member| member.leads()).and_then(Member::zxid);
        members.iter().filter_map(move |member| {
            let (leader, own) = (leader?, member.zxid()?);
            let behind = leader.0.checked_sub(own.0)?;
            (leader.epoch() == own.epoch() && behind > KEPT).then_some((member.id, behind))
        })
    }

    /// Whether there is reason to ask all members once more: a member is silent, looks for a leader, disagrees, does
    /// not serve, or has much to do.
    pub fn should_look_again(&self) -> bool {
        let Some(membership) = self.membership() else { return false };
        let text = |member: &Member| member.heard().map(|heard| heard.notification.config.clone());
        let mut texts: Vec<_> = self.members.iter().filter_map(text).collect();
        texts.dedup();
        let leaders = Self::leaders(&self.members);
        let settled = |member: &Member| {
            leaders.first().is_some_and(|(leader, _)| member.follows_or_is(*leader))
        };
        let busy = |member: &Member| {
            let words = member.words();
            words.is_some_and(|words| {
                words.outstanding.unwrap_or(0) > 10
                    || words.number("pending_syncs").unwrap_or(0.0) > 10.0
            })
        };
        leaders.len() != 1
            || texts.len() > 1
            || self.members.len() < membership.members().len()
            || !self.members.iter().all(settled)
            || self.members.iter().any(Member::is_not_serving)
            || self.members.iter().any(busy)
            || Self::lags(&self.members).next().is_some()
    }
}

/// The transactions that a leader keeps for those who are behind (`commitLogCount`).
const KEPT: i64 = 500;

//! Who belongs to the ensemble, and the one grammar of configuration lines.
//!
//! ```text
//!   server.1=zk1:2888:3888:participant;zk1:2181     host : quorum port : election port : role ; client
//!   server.2=[fd00::2]:2888:3888:participant        an IPv6 host stands in brackets
//!   server.3=a3:2888:3888|b3:2888:3888:observer     several addresses of one server
//!   group.1=1:2                                     groups and weights make quorums hierarchical
//!   weight.1=1
//!   version=100000000                               hexadecimal: the zxid that brought this membership
//! ```
//!
//! The same lines stand in `zoo.cfg`, in the dynamic file, in the last field of a notification, in the
//! data of NEWLEADER and in `/zookeeper/config`; all of them are read here and nowhere else. Around
//! the lines lie the rules of Java's properties files (comments, separators, escapes), see [`Lines`].
//!
//! A [`Membership`] is valid by construction: the holder of one need not check it. What it does not
//! know: which server we are, what else stands in a configuration file, and whether a host exists.
//!
//! In the Java code: `QuorumVerifier`, `QuorumMaj`, `QuorumHierarchical`, `QuorumPeer.QuorumServer`,
//! `QuorumPeerConfig.parseDynamicConfig`.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use bytes::Bytes;

pub mod binding;
mod error;
pub mod member;

use crate::id::ServerId;
pub use crate::membership::error::MembershipError;
pub use crate::membership::member::{LineError, Member, Role, ServerAddress};
use crate::membership::member::{
    MEMBERS_MAX, TEXT_BYTES_MAX, excerpt, parse_id, parse_number, parse_version,
};
use crate::properties::{Line, Lines};
use crate::quorum::Quorum;

/// Who belongs to the ensemble and what makes a quorum of it. Always valid.
///
/// Two memberships are equal if they are the same in everything, [`Membership::version`] included;
/// for what an election cares about there is [`Membership::same_members`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    /// Ascending by id.
    members: Vec<Member>,
    /// Who is in which group; empty unless quorums are hierarchical.
    groups: BTreeMap<i64, BTreeSet<ServerId>>,
    /// The weight of every participant, and of observers where one was given; empty likewise.
    weights: BTreeMap<ServerId, u64>,
    version: i64,
    text: Bytes,
}

impl Membership {
    /// The most servers that a membership may have. ZooKeeper sets no limit; its ids end at 255.
    pub const MEMBERS_MAX: usize = MEMBERS_MAX;
    /// The longest text of a membership, in bytes: what ZooKeeper accepts in a notification.
    pub const TEXT_BYTES_MAX: usize = TEXT_BYTES_MAX;

    /// Assembles a membership; `groups` and `weights` are empty for plain majorities.
    ///
    /// A participant without a weight has weight 1.
    ///
    /// # Errors
    ///
    /// A [`MembershipError`] that names the servers concerned.
    pub fn build(
        members: impl IntoIterator<Item = Member>,
        groups: impl IntoIterator<Item = (i64, Vec<ServerId>)>,
        weights: impl IntoIterator<Item = (ServerId, u64)>,
        version: i64,
    ) -> Result<Self, MembershipError> {
        let mut builder = MembershipBuilder::new();
        for member in members {
            let key = format!("server.{}", member.id.0);
            let value =
                if member.addresses.is_empty() { String::new() } else { format!("{member}") };
            builder.member(member).map_err(|error| MembershipError::line(0, key, &value, error))?;
        }
        for (group, ids) in groups {
            let shown = format!("{:?}", ids.iter().map(|id| id.0).collect::<Vec<_>>());
            builder.group(group, ids).map_err(|error| {
                MembershipError::line(0, format!("group.{group}"), &shown, error)
            })?;
        }
        for (id, weight) in weights {
            builder.weight(id, weight).map_err(|error| {
                let (key, value) = (format!("weight.{}", id.0), format!("{weight}"));
                MembershipError::line(0, key, &value, error)
            })?;
        }
        builder.version(version);
        builder.finish()
    }

    /// Reads the text of a notification, of NEWLEADER, of a reconfiguration or of a dynamic file.
    ///
    /// Nothing is passed over: a line that is none of the membership's is an error, as it is for
    /// ZooKeeper. A text without a version has version 0.
    ///
    /// # Errors
    ///
    /// A [`MembershipError`] that names the line or the servers concerned.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, MembershipError> {
        let text = text.as_ref();
        if text.len() > Self::TEXT_BYTES_MAX {
            return Err(MembershipError::TooLong { bytes: text.len() });
        }
        let text = core::str::from_utf8(text)
            .map_err(|error| MembershipError::NotText { offset: error.valid_up_to() })?;
        let mut builder = MembershipBuilder::new();
        for line in Lines::new(text) {
            let Line { number, key, value } = line?;
            match builder.line(&key, &value) {
                Ok(true) => {}
                Ok(false) => {
                    let key = excerpt(&key);
                    return Err(MembershipError::UnknownKey { line: number, key });
                }
                Err(error) => return Err(MembershipError::line(number, key, &value, error)),
            }
        }
        builder.finish()
    }

    /// The same members and quorums under another version.
    #[must_use]
    pub fn with_version(&self, version: i64) -> Self {
        let mut new = self.clone();
        new.version = version.max(0);
        new.text = new.write().into();
        new
    }

    /// All servers, ascending by id.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The server `id`, if it is a member.
    pub fn member(&self, id: ServerId) -> Option<&Member> {
        let at = self.members.binary_search_by_key(&id, |member| member.id).ok()?;
        self.members.get(at)
    }

    /// The servers that vote, ascending by id.
    pub fn participants(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.role == Role::Participant)
    }

    /// Whether `id` is a member that votes, be it with weight 0.
    pub fn is_participant(&self, id: ServerId) -> bool {
        self.member(id).is_some_and(|member| member.role == Role::Participant)
    }

    /// The zxid that brought this membership; 0 for one that came from static configuration.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// The canonical text, byte for byte as ZooKeeper writes it: server lines, group lines, weight
    /// lines, each ascending, then the version; without a newline at the end.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// Whether quorums are counted by groups and weights rather than by heads.
    pub fn is_hierarchical(&self) -> bool {
        !self.groups.is_empty()
    }

    /// How many voters are enough: a majority of the participants, or of the weight in a majority of
    /// the groups.
    pub fn quorum(&self) -> Quorum {
        if self.groups.is_empty() {
            let counts = |m: &&Member| m.role == Role::Participant;
            return Quorum::majority(self.members.iter().filter(counts).map(|member| member.id));
        }
        Quorum::hierarchical(
            self.groups
                .values()
                .map(|ids| ids.iter().map(|id| (*id, self.weights.get(id).copied().unwrap_or(1)))),
        )
    }

    /// Whether the same servers in the same roles at the same addresses have the same votes here and
    /// there: if so, going from one to the other leaves elections as they are. Versions and client
    /// addresses do not matter for that.
    pub fn same_members(&self, other: &Self) -> bool {
        let core = |member: &Member| (member.id, member.role, member.addresses.clone());
        self.groups == other.groups
            && self.weights == other.weights
            && self.members.iter().map(core).eq(other.members.iter().map(core))
    }

    fn write(&self) -> String {
        let mut text = String::new();
        for member in &self.members {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "server.{}={member}", member.id.0);
        }
        for (group, ids) in &self.groups {
            let _ = write!(text, "group.{group}=");
            for (at, id) in ids.iter().enumerate() {
                let _ = write!(text, "{}{}", if at == 0 { "" } else { ":" }, id.0);
            }
            text.push('\n');
        }
        for (id, weight) in &self.weights {
            let _ = writeln!(text, "weight.{}={weight}", id.0);
        }
        let _ = write!(text, "version={:x}", self.version);
        text
    }
}

/// Displays [`Membership::text`].
impl fmt::Display for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write())
    }
}

/// Gathers configuration lines in any order and makes a [`Membership`] of them.
///
/// For files in which other lines stand too: offer each line to [`MembershipBuilder::line`], which
/// says whether it was one of the membership's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MembershipBuilder {
    members: BTreeMap<ServerId, Member>,
    groups: BTreeMap<i64, BTreeSet<ServerId>>,
    /// The group of each server that is in one.
    grouped: BTreeMap<ServerId, i64>,
    weights: BTreeMap<ServerId, u64>,
    version: Option<i64>,
}

impl MembershipBuilder {
    /// A builder that has seen no line yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one line; false if it is none of the membership's (`server.`, `group.`, `weight.`,
    /// `version`).
    ///
    /// # Errors
    ///
    /// A [`LineError`] if it is, but cannot be read or says something again.
    pub fn line(&mut self, key: &str, value: &str) -> Result<bool, LineError> {
        if let Some(id) = key.strip_prefix("server.") {
            self.member(Member::parse(parse_id(id)?, value)?)?;
        } else if let Some(group) = key.strip_prefix("group.") {
            let group =
                parse_number(group).ok_or_else(|| LineError::Group { found: excerpt(group) })?;
            let ids = value.split(':').map(parse_id).collect::<Result<Vec<_>, _>>()?;
            self.group(group, ids)?;
        } else if let Some(id) = key.strip_prefix("weight.") {
            let weight = parse_number(value)
                .and_then(|weight| u64::try_from(weight).ok())
                .ok_or_else(|| LineError::Weight { found: excerpt(value) })?;
            self.weight(parse_id(id)?, weight)?;
        } else if key == "version" {
            let version =
                parse_version(value).ok_or_else(|| LineError::Version { found: excerpt(value) })?;
            if self.version.replace(version).is_some() {
                return Err(LineError::Repeated { key: "version".to_owned() });
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Adds a server.
    ///
    /// # Errors
    ///
    /// A [`LineError`] if its id was there before, or no line could say what it says.
    pub fn member(&mut self, member: Member) -> Result<(), LineError> {
        member.check()?;
        if self.members.contains_key(&member.id) {
            return Err(LineError::Repeated { key: format!("server.{}", member.id.0) });
        }
        if self.members.len() >= Membership::MEMBERS_MAX {
            return Err(LineError::TooMany);
        }
        self.members.insert(member.id, member);
        Ok(())
    }

    /// Adds a group of servers; their lines may come later.
    ///
    /// # Errors
    ///
    /// A [`LineError`] if the group was there before, is empty, or one of `ids` is in a group already.
    pub fn group(
        &mut self,
        group: i64,
        ids: impl IntoIterator<Item = ServerId>,
    ) -> Result<(), LineError> {
        if group < 0 {
            return Err(LineError::Group { found: format!("{group}") });
        }
        if self.groups.contains_key(&group) {
            return Err(LineError::Repeated { key: format!("group.{group}") });
        }
        let mut members = BTreeSet::new();
        for id in ids {
            if let Some(first) = self.grouped.insert(id, group) {
                return Err(LineError::InTwoGroups { id, first, second: group });
            }
            if self.grouped.len() > Membership::MEMBERS_MAX {
                return Err(LineError::TooMany);
            }
            members.insert(id);
        }
        if members.is_empty() {
            return Err(LineError::EmptyGroup { group });
        }
        self.groups.insert(group, members);
        Ok(())
    }

    /// Gives a server a weight; its line may come later.
    ///
    /// # Errors
    ///
    /// A [`LineError`] if it had one already, or if ZooKeeper's signed number cannot hold it.
    pub fn weight(&mut self, id: ServerId, weight: u64) -> Result<(), LineError> {
        if i64::try_from(weight).is_err() {
            return Err(LineError::Weight { found: format!("{weight}") });
        }
        if self.weights.len() >= Membership::MEMBERS_MAX {
            return Err(LineError::TooMany);
        }
        if self.weights.insert(id, weight).is_some() {
            return Err(LineError::Repeated { key: format!("weight.{}", id.0) });
        }
        Ok(())
    }

    /// Sets the version, whatever a line said; below 0 counts as 0.
    pub fn version(&mut self, version: i64) {
        self.version = Some(version.max(0));
    }

    /// Whether a line told the version.
    pub fn has_version(&self) -> bool {
        self.version.is_some()
    }

    /// Whether no line told anything but perhaps the version.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.groups.is_empty() && self.weights.is_empty()
    }

    /// The members so far, ascending by id.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// Checks the whole and makes the membership.
    ///
    /// # Errors
    ///
    /// A [`MembershipError`] that names the servers concerned.
    pub fn finish(mut self) -> Result<Membership, MembershipError> {
        self.check_ports()?;
        if !self.members.values().any(|member| member.role == Role::Participant) {
            return Err(MembershipError::NoParticipants { members: self.members.len() });
        }
        if !self.groups.is_empty() || !self.weights.is_empty() {
            self.check_groups()?;
        }
        let mut members: Vec<_> = self.members.into_values().collect();
        for member in &mut members {
            member.addresses.sort();
        }
        let mut membership = Membership {
            members,
            groups: self.groups,
            weights: self.weights,
            version: self.version.unwrap_or(0),
            text: Bytes::new(),
        };
        membership.text = membership.write().into();
        // It may be a little longer than the text it was read from; another version may follow.
        if membership.text.len() + 16 > Membership::TEXT_BYTES_MAX {
            return Err(MembershipError::TooLong { bytes: membership.text.len() });
        }
        Ok(membership)
    }

    fn check_ports(&self) -> Result<(), MembershipError> {
        let mut taken = BTreeMap::new();
        for member in self.members.values() {
            for mut address in member.listens() {
                address.host.make_ascii_lowercase();
                if let Some(first) = taken.insert(address.clone(), member.id) {
                    let second = member.id;
                    return Err(MembershipError::DuplicatePort { address, first, second });
                }
            }
        }
        Ok(())
    }

    /// Checks groups and weights, and gives each participant without a weight its weight of 1.
    fn check_groups(&mut self) -> Result<(), MembershipError> {
        for (id, group) in &self.grouped {
            match self.members.get(id).map(|member| member.role) {
                Some(Role::Participant) => {}
                Some(Role::Observer) => {
                    return Err(MembershipError::ObserverInGroup { id: *id, group: *group });
                }
                None => return Err(MembershipError::UnknownInGroup { id: *id, group: *group }),
            }
        }
        if let Some(id) = self.weights.keys().find(|id| !self.members.contains_key(id)) {
            return Err(MembershipError::UnknownWeight { id: *id });
        }
        for member in self.members.values().filter(|member| member.role == Role::Participant) {
            if !self.grouped.contains_key(&member.id) {
                return Err(MembershipError::InNoGroup { id: member.id });
            }
            self.weights.entry(member.id).or_insert(1);
        }
        let mut any = false;
        for (group, ids) in &self.groups {
            let total = ids
                .iter()
                .filter_map(|id| self.weights.get(id))
                .try_fold(0u64, |sum, weight| sum.checked_add(*weight))
                .filter(|total| i64::try_from(*total).is_ok())
                .ok_or(MembershipError::GroupTooHeavy { group: *group })?;
            any |= total > 0;
        }
        if any { Ok(()) } else { Err(MembershipError::NoWeight) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;
    use crate::properties::EscapeError;
    use crate::rng::Rng;

    /// Captured from ZooKeeper 3.8.0: notifications, and a membership after a reconfiguration.
    const CAPTURED: [&str; 5] = [
        "server.1=127.0.0.1:22021:22031:participant\nserver.2=127.0.0.1:22022:22032:participant\n\
         server.3=127.0.0.1:22023:22033:participant\nserver.4=127.0.0.1:22024:22034:observer\n\
         version=0",
        HIERARCHICAL,
        "server.1=127.0.0.1:22421:22431:participant\nserver.2=127.0.0.1:22422:22432:participant\n\
         server.3=127.0.0.1:22423:22433:participant\nversion=0",
        RECONFIGURED,
        "server.1=127.0.0.1:24191:24201:participant\nserver.2=127.0.0.1:24192:24202:participant\n\
         server.3=127.0.0.1:24193:24203:participant\nserver.4=127.0.0.1:24194:24204:observer\n\
         version=0",
    ];
    const HIERARCHICAL: &str = "server.1=127.0.0.1:22221:22231:participant\nserver.2=127.0.0.1:22222:22232:participant\n\
         server.3=127.0.0.1:22223:22233:participant\ngroup.1=1:2\ngroup.2=3\nweight.1=1\n\
         weight.2=2\nweight.3=0\nversion=0";
    const RECONFIGURED: &str = "server.1=127.0.0.1:22121:22131:participant;127.0.0.1:22111\n\
         server.2=127.0.0.1:22122:22132:participant;127.0.0.1:22112\n\
         server.3=127.0.0.1:22123:22133:participant;127.0.0.1:22113\n\
         server.4=127.0.0.1:22124:22134:observer;127.0.0.1:22114\nversion=100000000";

    fn ids<'a>(members: impl IntoIterator<Item = &'a Member>) -> Vec<i64> {
        members.into_iter().map(|member| member.id.0).collect()
    }

    fn error(text: &str) -> String {
        Membership::parse(text).unwrap_err().to_string()
    }

    /// One line among enough others.
    fn line_error(line: &str) -> String {
        error(&format!("server.7=g:1:2\n{line}"))
    }

    #[test]
    fn texts_of_real_servers_are_read_and_written_byte_for_byte() {
        for text in CAPTURED {
            let membership = Membership::parse(text).unwrap();
            assert_eq!(membership.text(), text.as_bytes());
            assert_eq!(membership.to_string(), text);
        }
    }

    #[test]
    fn a_reconfigured_membership_has_client_addresses_and_a_version() {
        let membership = Membership::parse(RECONFIGURED).unwrap();
        assert_eq!(membership.version(), 0x1_0000_0000);
        assert_eq!(ids(membership.members()), [1, 2, 3, 4]);
        assert_eq!(ids(membership.participants()), [1, 2, 3]);
        assert!(membership.is_participant(ServerId(3)));
        assert!(!membership.is_participant(ServerId(4)) && !membership.is_participant(ServerId(9)));
        let second = membership.member(ServerId(2)).unwrap();
        assert_eq!(second.quorum_address().to_string(), "127.0.0.1:22122");
        assert_eq!(second.election_address().to_string(), "127.0.0.1:22132");
        assert_eq!(second.client.as_ref().unwrap().to_string(), "127.0.0.1:22112");
        assert!(membership.quorum().is_quorum([ServerId(1), ServerId(2)]));
        assert!(!membership.quorum().is_quorum([ServerId(1), ServerId(4)]));
    }

    #[test]
    fn groups_and_weights_make_a_hierarchical_quorum() {
        let membership = Membership::parse(HIERARCHICAL).unwrap();
        assert!(membership.is_hierarchical());
        assert!(membership.quorum().is_quorum([ServerId(2)]));
        assert!(!membership.quorum().is_quorum([ServerId(1), ServerId(3)]));
        assert_eq!(membership.quorum().weight(ServerId(3)), 0);
    }

    #[test]
    fn every_participant_of_a_hierarchy_has_a_weight_line() {
        let text = "group.2=3\ngroup.1=2:1\nserver.3=c:1:2\nserver.1=a:1:2\nserver.2=b:1:2\n\
                    server.4=d:1:2:observer\nweight.2=5";
        assert_eq!(
            Membership::parse(text).unwrap().to_string(),
            "server.1=a:1:2:participant\nserver.2=b:1:2:participant\nserver.3=c:1:2:participant\n\
             server.4=d:1:2:observer\ngroup.1=1:2\ngroup.2=3\nweight.1=1\nweight.2=5\nweight.3=1\n\
             version=0"
        );
    }

    #[test]
    fn forms_of_a_server_line() {
        for (value, canonical) in [
            ("a:1:2", "a:1:2:participant"),
            ("a:1:2:OBSERVER", "a:1:2:observer"),
            ("a:1:2;2181", "a:1:2:participant;0.0.0.0:2181"),
            ("a:1:2:Participant;b:2181", "a:1:2:participant;b:2181"),
            ("a:1:2;b:2181;2281", "a:1:2:participant;b:2181;0.0.0.0:2281"),
            ("a:1:2;;b:2281", "a:1:2:participant;;b:2281"),
            ("[fd00::2]:1:2;[::1]:2181", "[fd00::2]:1:2:participant;[::1]:2181"),
            ("[fe80::2%eth0.1]:1:2", "[fe80::2%eth0.1]:1:2:participant"),
            ("b:1:2|a:1:2:observer", "a:1:2|b:1:2:observer"),
            ("b:1:2:observer|[::1]:3:4:observer", "[::1]:3:4|b:1:2:observer"),
            (
                "zk_1.zk-hs.ns.svc.cluster.local:1:2",
                "zk_1.zk-hs.ns.svc.cluster.local:1:2:participant",
            ),
        ] {
            let text = format!("server.7=g:1:2\nserver.8={value}");
            let membership = Membership::parse(&text).unwrap();
            let shown = membership.member(ServerId(8)).unwrap().to_string();
            assert_eq!(shown, canonical);
            assert_eq!(Membership::parse(membership.text()), Ok(membership));
        }
    }

    #[test]
    fn the_rules_of_properties_files() {
        let text = "# a comment\n  ! another \\\n\r\n\u{c}server.1 = a:1:2 \r\
                    server.2:b\\:1:\\u0032\nserver.3 c:1:\\\n   # 2\nversion   \\\n  =1F";
        let lines: Vec<_> = Lines::new(text).map(|line| line.unwrap()).collect();
        let expected = [
            (4, "server.1", "a:1:2"),
            (5, "server.2", "b:1:2"),
            (6, "server.3", "c:1:# 2"),
            (8, "version", "1F"),
        ];
        let seen: Vec<_> =
            lines.iter().map(|l| (l.number, l.key.as_str(), l.value.as_str())).collect();
        assert_eq!(seen, expected);
        for (text, key, value) in [
            ("a", "a", ""),
            ("a=", "a", ""),
            ("a==b", "a", "=b"),
            ("a = = b", "a", "= b"),
            ("a\\=b=c\\\\", "a=b", "c\\"),
            ("C:\\temp", "C", "emp"),
            ("a=b\\", "a", "b"),
            ("a=b\\\\\\", "a", "b\\"),
            ("=b", "", "b"),
        ] {
            let line = Lines::new(text).next().unwrap().unwrap();
            assert_eq!((line.key.as_str(), line.value.as_str()), (key, value), "{text}");
        }
        assert_eq!(Lines::new("\\\n\\\n").count(), 0);
        assert_eq!(Lines::new("\n a=\\u00zz").next(), Some(Err(EscapeError { line: 2 })));
        assert_eq!(Lines::new("a=\\ud800").next(), Some(Err(EscapeError { line: 1 })));
    }

    #[test]
    fn a_line_that_cannot_be_read_says_what_and_where() {
        for (line, expected) in [
            ("server.x=a:1:2", "\"x\" is not a server id"),
            ("server.-1=a:1:2", "\"-1\" is not a server id"),
            ("server.=a:1:2", "\"\" is not a server id"),
            ("server.9223372036854775808=a:1:2", "\"9223372036854775808\" is not a server id"),
            ("server.7=a:1:2", "server.7 is set twice"),
            ("server.07=a:1:2", "server.7 is set twice"),
            ("server.1=a", "\"a\" is not host:quorumPort:electionPort"),
            ("server.1=a:1", "\"a:1\" is not host:quorumPort:electionPort"),
            ("server.1=", "\"\" is not host:quorumPort:electionPort"),
            ("server.1=::1:2888:3888", "\"::1:2888:3888\" is not host:quorumPort:electionPort"),
            ("server.1=a:1:2;", "\"a:1:2;\" is not host:quorumPort:electionPort"),
            ("server.1=a:1:2;3;4;5", "\"a:1:2;3;4;5\" is not host:quorumPort:electionPort"),
            ("server.1=a:1:2|", "\"\" is not host:quorumPort:electionPort"),
            ("server.1=:1:2", "\"\" is not a host name"),
            ("server.1=a b:1:2", "\"a b\" is not a host name"),
            ("server.1=[a]:1:2", "\"[a]:1:2\" is not a host name"),
            ("server.1=[::1:1:2", "\"[::1:1:2\" is not a host name"),
            ("server.1=a:x:2", "\"x\" is not a port"),
            ("server.1=a:1:65536", "\"65536\" is not a port"),
            ("server.1=a:0:1", "\"0\" is not a port"),
            ("server.1=a:1:2;b:+3", "\"+3\" is not a port"),
            ("server.1=a:1:1", "port 1 cannot be both"),
            ("server.1=a:1:2:voter", "\"voter\" is not a role"),
            ("server.1=a:1:2:observer|b:1:2:participant", "one address says observer, another"),
            ("group.x=7", "\"x\" is not the number of a group"),
            ("group.1=7:", "\"\" is not a server id"),
            ("group.1=7:7", "server 7 is in group 1 already and cannot be in group 1"),
            ("weight.7=-1", "\"-1\" is not a weight"),
            ("weight.7=", "\"\" is not a weight"),
            ("version=0x10", "\"0x10\" is not a version"),
            ("version=8000000000000000", "\"8000000000000000\" is not a version"),
        ] {
            let message = line_error(line);
            let start = format!("line 2: {line}: {expected}");
            assert!(message.starts_with(&start), "{message}\nrather than\n{start}");
        }
        assert_eq!(
            line_error("clientPort=1"),
            "line 2: \"clientPort\" is not a key of a membership"
        );
        let twice = "server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1\ngroup.2=1:2";
        assert!(error(twice).ends_with("server 1 is in group 1 already and cannot be in group 2"));
        let twice = "server.1=a:1:2\ngroup.1=1\ngroup.1=2";
        assert!(error(twice).ends_with("group.1 is set twice"));
        assert!(error("server.1=a:1:2\nversion=1\nversion=1").ends_with("version is set twice"));
        assert!(error("server.1=a:1:2\nweight.1=1\nweight.1=1").ends_with("weight.1 is set twice"));
    }

    #[test]
    fn lines_that_do_not_fit_together_name_the_servers() {
        for (text, expected, key) in [
            ("", "none of the 0 servers is a participant", None),
            ("server.1=a:1:2:observer", "none of the 1 servers is a participant", None),
            (
                "server.1=a:1:2\nserver.2=A:2:3",
                "server.1 and server.2 both use a:2",
                Some("server.2"),
            ),
            ("server.1=a:1:2;2", "server.1 and server.1 both use a:2", Some("server.1")),
            (
                "server.1=a:1:2;9\nserver.2=a:3:4;9",
                "server.1 and server.2 both use a:9",
                Some("server.2"),
            ),
            ("server.1=a:1:2|a:1:3", "server.1 and server.1 both use a:1", Some("server.1")),
            (
                "server.1=a:1:2\ngroup.1=1:2",
                "group.1 names server 2, but there is no server.2",
                Some("group.1"),
            ),
            (
                "server.1=a:1:2\nserver.2=b:1:2:observer\ngroup.1=1:2",
                "group.1 names server 2, which is an observer",
                Some("group.1"),
            ),
            (
                "server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1",
                "server.2 is in no group",
                Some("server.2"),
            ),
            ("server.1=a:1:2\nweight.1=1", "server.1 is in no group", Some("server.1")),
            ("server.1=a:1:2\ngroup.1=1\nweight.2=1", "weight.2 is set, but", Some("weight.2")),
            ("server.1=a:1:2\ngroup.1=1\nweight.1=0", "no group has any weight", None),
            (
                "server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1:2\nweight.1=9223372036854775807",
                "the weights of group.1 add up to more than",
                Some("group.1"),
            ),
        ] {
            let error = Membership::parse(text).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
            assert_eq!(error.key().as_deref(), key);
        }
    }

    #[test]
    fn client_ports_on_different_hosts_may_be_equal() {
        assert!(Membership::parse("server.1=a:1:2;9\nserver.2=b:1:2;9").is_ok());
        assert!(Membership::parse("server.1=a:1:2;0\nserver.2=a:3:4;0").is_ok());
    }

    #[test]
    #[cfg_attr(miri, ignore = "megabytes of text")]
    fn size_is_bounded() {
        let long = alloc::vec![b'#'; Membership::TEXT_BYTES_MAX + 1];
        assert_eq!(Membership::parse(&long), Err(MembershipError::TooLong { bytes: long.len() }));
        let lines =
            |count| (0..count).map(|id| format!("server.{id}=h{id}:1:2\n")).collect::<String>();
        assert_eq!(Membership::parse(lines(1024)).unwrap().members().len(), 1024);
        assert!(error(&lines(1025)).ends_with("more than 1024 servers"));
        let message = line_error(&format!("server.1={}", "x".repeat(100_000)));
        assert!(message.len() < 1_000);
        assert_eq!(Membership::parse(b"a\xff"), Err(MembershipError::NotText { offset: 1 }));
        // Entries that go on for ever take linear time.
        let continued = "\\\\\\\n".repeat(Membership::TEXT_BYTES_MAX / 4);
        assert!(Membership::parse(continued).is_err());
    }

    #[test]
    fn the_builder_checks_what_no_line_could_say() {
        let build = |member| Membership::build([member], [], [], 0);
        let good = Member::new(ServerId(1), Role::Participant, ServerAddress::new("a", 1, 2));
        assert_eq!(
            build(good.clone()).unwrap().to_string(),
            "server.1=a:1:2:participant\nversion=0"
        );
        let bad = |member: Member| build(member).unwrap_err().to_string();
        assert_eq!(
            bad(Member { addresses: vec![], ..good.clone() }),
            "server.1=: a server needs an address"
        );
        assert!(bad(Member { id: ServerId(-3), ..good.clone() }).ends_with("not a server id"));
        let mut torn = good.clone();
        torn.addresses[0].election.host = "b".to_owned();
        assert!(bad(torn).contains("a server has both on one host"));
        let newline = Member::new(ServerId(1), Role::Participant, ServerAddress::new("a\nb", 1, 2));
        assert!(bad(newline).contains("is not a host name"));
        let two = Membership::build([good.clone(), good.clone()], [], [], 0).unwrap_err();
        assert!(two.to_string().ends_with("server.1 is set twice"));
        let grouped = Membership::build([good], [(1, vec![ServerId(1)])], [(ServerId(1), 3)], 0x1f);
        assert_eq!(
            grouped.unwrap().to_string(),
            "server.1=a:1:2:participant\ngroup.1=1\nweight.1=3\nversion=1f"
        );
    }

    #[test]
    fn versions_and_client_addresses_do_not_make_other_members() {
        let parse = |text| Membership::parse(text).unwrap();
        let base = parse("server.1=a:1:2\nserver.2=b:1:2");
        assert!(base.same_members(&parse("server.2=b:1:2;9\nserver.1=a:1:2\nversion=5")));
        assert!(base.same_members(&base.with_version(7)));
        assert_eq!(base.with_version(0x1f), parse("server.1=a:1:2\nserver.2=b:1:2\nversion=1f"));
        for other in [
            "server.1=a:1:2",
            "server.1=a:1:2\nserver.2=b:1:3",
            "server.1=a:1:2\nserver.2=c:1:2",
            "server.1=a:1:2\nserver.2=b:1:2:observer",
            "server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1:2",
        ] {
            assert!(!base.same_members(&parse(other)), "{other}");
        }
    }

    /// Whatever a peer sends, it is a membership that survives its own text, or an error.
    #[test]
    fn damaged_texts_never_panic_and_accepted_ones_round_trip() {
        let mut rng = Rng::new(0x5e);
        let mut below = |n: usize| usize::try_from(rng.below(n as u64)).unwrap();
        let alphabet = b"server.group.weight.version=:;|[]123456789abf\n\\ #u\xc3\xa9";
        let (mut accepted, mut refused) = (0, 0);
        for round in 0..if cfg!(miri) { 20 } else { 20_000 } {
            let mut text = CAPTURED[round % CAPTURED.len()].as_bytes().to_vec();
            for _ in 0..=below(2) {
                let at = below(text.len());
                let byte = alphabet[below(alphabet.len())];
                match below(3) {
                    0 => text[at] = byte,
                    1 => text.insert(at, byte),
                    _ => drop(text.remove(at)),
                }
            }
            match Membership::parse(&text) {
                Ok(membership) => {
                    accepted += 1;
                    assert!(!membership.quorum().is_quorum([]));
                    assert_eq!(Membership::parse(membership.text()), Ok(membership));
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
        assert!(
            cfg!(miri) || accepted > 1_000 && refused > 1_000,
            "{accepted} accepted, {refused} refused"
        );
    }
}

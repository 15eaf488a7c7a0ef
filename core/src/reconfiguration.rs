//! Asking for another membership while the ensemble serves.
//!
//! ```text
//!   joining, leaving ──┐
//!                      ├─ on top of the present membership ─► the next one, or why it stays as it is
//!   a whole membership ┘
//! ```
//!
//! As bytes, in jute, ZooKeeper's encoding:
//!
//! ```text
//!   request, op 16       ustring joining │ ustring leaving │ ustring new members │ i64 version, -1 for any
//!   transaction, kind 16 ustring "/zookeeper/config" │ buffer text │ i32 -1
//! ```
//!
//! The strings of the request are absent where they do not apply; servers stand between commas or lines.
//!
//! What is asked for is judged by the leader, when its turn among all requests has come; the transaction
//! that comes of it carries the text of the whole next membership, whose version is that transaction's
//! zxid. What stands here is the question alone. Who has to agree: [`leader`](crate::leader).
//!
//! In the Java code: `PrepRequestProcessor`, operation `reconfig`.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::id::ServerId;
use crate::membership::{Member, Membership};
use crate::txn::Txn;
use crate::zxid::Zxid;

/// What is to become of the membership.
///
/// ```
/// use quorate_core::id::ServerId;
/// use quorate_core::membership::{Member, Membership};
/// use quorate_core::reconfiguration::Reconfiguration;
///
/// let present = Membership::parse("server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888")?;
/// let four = Member::parse(ServerId(4), "d:2888:3888")?;
/// let next = Reconfiguration::change([four], [ServerId(1)]).apply(&present)?;
/// assert_eq!(next.members().iter().map(|member| member.id.0).collect::<Vec<_>>(), [2, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reconfiguration {
    /// What is asked for.
    pub change: Change,
    /// The version that the present membership must have; any, if none.
    pub version: Option<i64>,
}

/// How another membership is described.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The present one, without some servers and then with others. Only where quorums are majorities.
    Incremental {
        /// Who joins; a member of the same id makes room, so that this is also how one is changed.
        joining: Vec<Member>,
        /// Who leaves; one that is no member may be named too.
        leaving: Vec<ServerId>,
    },
    /// This one, but for its version.
    Whole(Membership),
}

impl Reconfiguration {
    /// Some servers leave, then some join, or change their roles and addresses.
    pub fn change(
        joining: impl IntoIterator<Item = Member>,
        leaving: impl IntoIterator<Item = ServerId>,
    ) -> Self {
        let (joining, leaving) = (joining.into_iter().collect(), leaving.into_iter().collect());
        Self { change: Change::Incremental { joining, leaving }, version: None }
    }

    /// These servers, and no others.
    pub const fn whole(membership: Membership) -> Self {
        Self { change: Change::Whole(membership), version: None }
    }

    /// The same, but only if the present membership has this version.
    #[must_use]
    pub const fn if_version(mut self, version: i64) -> Self {
        self.version = Some(version);
        self
    }

    /// The membership that comes of it on top of `present`, under the version of `present`.
    ///
    /// # Errors
    ///
    /// An [`Unchanged`], as far as the two alone tell.
    pub fn apply(&self, present: &Membership) -> Result<Membership, Unchanged> {
        if self.version.is_some_and(|version| version != present.version()) {
            return Err(Unchanged::Version);
        }
        let next = match &self.change {
            Change::Whole(next) => next.with_version(present.version()),
            Change::Incremental { .. } if present.is_hierarchical() => {
                return Err(Unchanged::Unsuitable);
            }
            Change::Incremental { joining, leaving } => {
                let leaving: BTreeSet<_> = leaving.iter().collect();
                let staying = present.members().iter().filter(|m| !leaving.contains(&m.id));
                let members: BTreeMap<_, _> = staying.chain(joining).map(|m| (m.id, m)).collect();
                let members = members.into_values().cloned();
                Membership::build(members, [], [], present.version())
                    .map_err(|_| Unchanged::Unsuitable)?
            }
        };
        let voters = next.participants().count();
        if voters < VOTERS_MIN { Err(Unchanged::Unsuitable) } else { Ok(next) }
    }

    /// Writes it as the body of a request.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        match &self.change {
            Change::Incremental { joining, leaving } => {
                let joining: Vec<_> =
                    joining.iter().map(|m| format!("server.{}={m}", m.id.0)).collect();
                let leaving: Vec<_> = leaving.iter().map(|id| id.0.to_string()).collect();
                for list in [joining, leaving] {
                    put(&mut out, (!list.is_empty()).then(|| list.join(",")).as_deref());
                }
                put(&mut out, None);
            }
            Change::Whole(membership) => {
                put(&mut out, None);
                put(&mut out, None);
                put(&mut out, Some(&membership.to_string()));
            }
        }
        out.put_i64(self.version.unwrap_or(ANY_VERSION));
        out.freeze()
    }

    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// [`Unchanged::Unsuitable`] if it says nothing that could be done.
    pub fn decode(body: &[u8]) -> Result<Self, Unchanged> {
        let mut at = 0;
        let mut text = || take_text(body, &mut at).ok_or(Unchanged::Unsuitable);
        let (joining, leaving, whole) = (text()?, text()?, text()?);
        let version =
            body.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Unchanged::Unsuitable)?;
        let version = i64::from_be_bytes(*version);
        let change = if let Some(text) = whole {
            let lines = text.replace(',', "\n");
            Change::Whole(Membership::parse(lines).map_err(|_| Unchanged::Unsuitable)?)
        } else {
            let joining = listed(joining).map(|line| {
                let (key, value) = line.split_once('=')?;
                let id = key.trim().strip_prefix("server.")?.parse().ok()?;
                Member::parse(ServerId(id), value.trim()).ok()
            });
            let leaving = listed(leaving).map(|id| id.trim().parse().ok().map(ServerId));
            Change::Incremental {
                joining: joining.collect::<Option<_>>().ok_or(Unchanged::Unsuitable)?,
                leaving: leaving.collect::<Option<_>>().ok_or(Unchanged::Unsuitable)?,
            }
        };
        Ok(Self { change, version: (version != ANY_VERSION).then_some(version) })
    }
}

/// Writes the body of the transaction that brings `next`.
pub fn body_of(next: &Membership) -> Bytes {
    let mut out = BytesMut::new();
    put(&mut out, Some(NODE));
    put(&mut out, Some(&next.to_string()));
    out.put_i32(-1);
    out.freeze()
}

/// The membership that a transaction brings; none if it cannot be read.
pub fn membership_of(txn: &Txn) -> Option<Membership> {
    let mut at = 0;
    take_text(&txn.body, &mut at)??;
    let text = take_text(&txn.body, &mut at)??;
    Some(Membership::parse(text).ok()?.with_version(txn.zxid.0))
}

/// What SNAP carries to learners that [collect](crate::message::LearnerInfo::collects): the text of the membership in
/// force and, behind a zero byte, that of the one seen last if the snapshot has it already, being labelled `label`.
/// What is later comes behind the snapshot.
pub fn with_snapshot(present: &Membership, next: Option<&Membership>, label: Zxid) -> Bytes {
    match next.filter(|next| next.is_change() && next.version() <= label.0) {
        Some(next) => [&present.text()[..], next.text()].join(&0).into(),
        None => present.text().clone(),
    }
}

/// Reads that; none if it cannot be read. ZooKeeper's leaders send nothing, which is no membership.
pub fn from_snapshot(memberships: &Bytes) -> Option<Vec<Membership>> {
    let texts = memberships.split(|byte| *byte == 0).filter(|text| !text.is_empty());
    texts.map(|text| Membership::parse(text).ok()).collect()
}

/// What stands between commas, one after the other.
fn listed(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.into_iter().flat_map(|text| text.split(',')).filter(|item| !item.trim().is_empty())
}

fn put(out: &mut BytesMut, text: Option<&str>) {
    match text {
        Some(text) => {
            // Nothing that long exists; it becomes a length that every receiver refuses.
            out.put_i32(i32::try_from(text.len()).unwrap_or(i32::MAX));
            out.put_slice(text.as_bytes());
        }
        None => out.put_i32(NULL),
    }
}

/// The next string, which may be absent; nothing if it is not there as a whole.
fn take_text<'a>(bytes: &'a [u8], at: &mut usize) -> Option<Option<&'a str>> {
    let length = i32::from_be_bytes(*bytes.get(*at..)?.first_chunk()?);
    *at += 4;
    if length == NULL {
        return Some(None);
    }
    let end = at.checked_add(usize::try_from(length).ok()?)?;
    let text = core::str::from_utf8(bytes.get(*at..end)?).ok()?;
    *at = end;
    Some(Some(text))
}

/// What jute writes in place of the length of a string that is absent.
const NULL: i32 = -1;

/// What stands for any version.
const ANY_VERSION: i64 = -1;

/// The node that holds the text of the membership.
const NODE: &str = "/zookeeper/config";

/// Fewer voters are no ensemble to ZooKeeper, which a reconfiguration never leads to.
const VOTERS_MIN: usize = 2;

/// Why the membership stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Unchanged {
    /// Dynamic membership is off (`reconfigEnabled`).
    #[error("reconfiguration is disabled (reconfigEnabled)")]
    Disabled,
    /// Another change is under way, or the leader is transferring its leadership.
    #[error("another reconfiguration is under way")]
    Underway,
    /// The membership has another version than was expected.
    #[error("the membership has another version than expected")]
    Version,
    /// What was asked for cannot be read, names an address twice, leaves fewer than two voters, is
    /// incremental where quorums are hierarchical, or is too long for a transaction.
    #[error("what was asked for is not a membership with at least two voters")]
    Unsuitable,
    /// A voter with a part in it does not take note of changes: its history has one, and it goes by the membership
    /// it was first told (a ZooKeeper server with `reconfigEnabled=false`). It would acknowledge what it is not
    /// bound by, and could then help to elect a second leader.
    #[error("a voter goes by the membership it was first told (reconfigEnabled is off there)")]
    Blind,
    /// Those of the new voters that follow the leader and have everything are no quorum of them.
    #[error("no quorum of the new membership is connected and synchronised")]
    NoQuorum,
}

impl Unchanged {
    const CODES: [(Self, i32); 6] = [
        (Self::Disabled, -123),
        (Self::Underway, -14),
        (Self::Version, -103),
        (Self::Unsuitable, -8),
        (Self::Blind, -6),
        (Self::NoQuorum, -13),
    ];

    /// ZooKeeper's number for it.
    pub fn code(self) -> i32 {
        Self::CODES.iter().find(|(unchanged, _)| *unchanged == self).map_or(0, |(_, code)| *code)
    }

    /// What such a number says.
    pub fn from_code(code: i32) -> Option<Self> {
        Self::CODES.iter().find(|(_, of)| *of == code).map(|(unchanged, _)| *unchanged)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::rng::Rng;
    use crate::txn::TxnHeader;

    fn member(id: i64, value: &str) -> Member {
        Member::parse(ServerId(id), value).unwrap()
    }

    fn present(ids: &[i64]) -> Membership {
        let lines: String = ids.iter().map(|id| format!("server.{id}=h{id}:1:2\n")).collect();
        Membership::parse(lines + "version=7").unwrap()
    }

    fn ids(membership: &Membership) -> Vec<i64> {
        membership.members().iter().map(|member| member.id.0).collect()
    }

    #[test]
    fn those_who_leave_go_before_those_who_join_come() {
        let asked = Reconfiguration::change(
            [member(4, "h1:1:2"), member(2, "x:1:2:observer")],
            [ServerId(1), ServerId(9)],
        );
        let next = asked.apply(&present(&[1, 2, 3])).unwrap();
        assert_eq!((ids(&next), next.version()), ([2, 3, 4].into(), 7));
        assert_eq!(next.participants().count(), 2, "2 observes now");
        let same = Reconfiguration::change([], []).apply(&present(&[1, 2, 3])).unwrap();
        assert_eq!(same, present(&[1, 2, 3]));
    }

    #[test]
    fn what_is_no_membership_is_refused() {
        let three = present(&[1, 2, 3]);
        let refused = |asked: Reconfiguration| asked.apply(&three).unwrap_err();
        let twice = Reconfiguration::change([member(4, "h1:1:5")], []);
        assert_eq!(refused(twice), Unchanged::Unsuitable);
        let lonely = Reconfiguration::change([], [ServerId(1), ServerId(2)]);
        assert_eq!(refused(lonely.clone()), Unchanged::Unsuitable);
        assert_eq!(refused(Reconfiguration::whole(present(&[1]))), Unchanged::Unsuitable);
        assert_eq!(refused(lonely.if_version(8)), Unchanged::Version, "that is looked at first");
        let groups = Membership::parse("server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1:2").unwrap();
        let four = Reconfiguration::change([member(4, "d:1:2")], []);
        assert_eq!(four.apply(&groups), Err(Unchanged::Unsuitable));
        let whole = Reconfiguration::whole(groups.clone()).if_version(7);
        assert_eq!(whole.apply(&three), Ok(groups.with_version(7)));
    }

    #[test]
    fn reasons_travel_as_zookeepers_numbers() {
        for (unchanged, code) in Unchanged::CODES {
            assert_eq!((unchanged.code(), Unchanged::from_code(code)), (code, Some(unchanged)));
        }
        assert_eq!(Unchanged::from_code(-101), None);
    }

    fn asked() -> [Reconfiguration; 4] {
        let three = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2:observer\nversion=5";
        [
            Reconfiguration::change([], []),
            Reconfiguration::change([member(4, "d:1:2:observer;2181"), member(5, "e:1:2")], []),
            Reconfiguration::change([member(4, "d:1:2")], [ServerId(1), ServerId(2)]).if_version(9),
            Reconfiguration::whole(Membership::parse(three).unwrap()),
        ]
    }

    #[test]
    fn requests_round_trip() {
        for asked in asked() {
            assert_eq!(Reconfiguration::decode(&asked.encode()), Ok(asked));
        }
    }

    /// What Java's client sends for `reconfig -members server.1=…,server.2=…`.
    #[test]
    fn a_whole_membership_may_stand_between_commas() {
        let mut body = BytesMut::new();
        body.put_i32(-1);
        body.put_i32(-1);
        put(&mut body, Some("server.1=a:1:2,server.2=b:1:2"));
        body.put_i64(-1);
        let read = Reconfiguration::decode(&body).unwrap();
        let expected = Membership::parse("server.1=a:1:2\nserver.2=b:1:2").unwrap();
        assert_eq!(read, Reconfiguration::whole(expected));
    }

    #[test]
    fn damaged_requests_are_refused_and_never_panic() {
        let mut rng = Rng::new(3);
        for asked in asked() {
            let body = asked.encode();
            for length in 0..body.len() {
                assert_eq!(Reconfiguration::decode(&body[..length]), Err(Unchanged::Unsuitable));
            }
            for _ in 0..if cfg!(miri) { 10 } else { 2_000 } {
                let mut body = body.to_vec();
                let at = usize::try_from(rng.below(body.len() as u64)).unwrap();
                body[at] = u8::try_from(rng.below(256)).unwrap();
                drop(Reconfiguration::decode(&body));
            }
        }
    }

    #[test]
    fn the_version_is_the_zxid() {
        let next = Membership::parse("server.1=a:1:2\nserver.2=b:1:2\nversion=100000007").unwrap();
        let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: Txn::RECONFIGURATION };
        let body = body_of(&next);
        let txn = Txn { zxid: Zxid(0x1_0000_0007), header, body };
        assert_eq!(membership_of(&txn), Some(next));
        let later = Txn { zxid: Zxid(0x1_0000_0008), ..txn };
        assert_eq!(membership_of(&later).unwrap().version(), 0x1_0000_0008);
        let short = Txn { body: Bytes::from_static(b"short"), ..later };
        assert_eq!(membership_of(&short), None);
    }
}

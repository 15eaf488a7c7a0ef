//! What a leader of ZooKeeper makes of requests: `PrepRequestProcessor`, of 3.8.0.
//!
//! | | here | at a leader of ours |
//! |---|---|---|
//! | a request that cannot be read | a transaction that refuses it | the same; of its own clients none comes so far |
//! | a check outside a multi | a transaction that no server of ZooKeeper can read | refused |
//! | deleteContainer | done, whoever asks | only if the leader itself asks |
//! | createTTL with flags of another | a transaction that ends each server of ZooKeeper that applies it | refused |
//! | a create with the flags of a container | a persistent node, and a digest as of a container | a persistent node |
//! | text that is none, for a quota | taken: the next change below ends servers of ZooKeeper | refused |
//! | an access list that is set | judges requests when it is applied | at once |
//! | a session that ends | its nodes' parents keep their counts of children until it is applied | not |
//! | a session that is not open, or elsewhere, in a multi | an error of its first element | of the request |

use std::collections::BTreeSet;

use bytes::{BufMut, BytesMut};
use quorate_application::Prepared;
use quorate_core::id::Origin;
use quorate_core::message::Request as Asked;
use quorate_core::prepared::{Facts, Rejected};
use quorate_core::time::Instant;
use quorate_service::wire::{Request, code, op, put_acl, put_data, put_text, put_vector};
use quorate_znode::stat::{Owner, StoredStat};
use quorate_znode::{Tree, kind};

use crate::java_leader::Leader;
use crate::java_leader::changes::Record;
use crate::java_leader::checks::{
    check_acl, check_mode, deletable, fix_up, next_version, parent_of, validate,
};
use crate::java_leader::tracker::Refused;

/// `ZooDefs.Perms`.
const READ: i32 = 1;
const WRITE: i32 = 2;
const CREATE: i32 = 4;
const DELETE: i32 = 8;
const ADMIN: i32 = 16;

/// `DigestCalculator.DIGEST_VERSION`.
const DIGEST_VERSION: i32 = 2;

/// A request, and what there is to judge it by.
struct Turn<'a> {
    tree: &'a Tree,
    asked: &'a Asked,
    by: Origin,
    facts: &'a Facts,
}

impl Leader {
    /// `pRequest`: of what fails comes a transaction, too.
    pub(crate) fn prepare(
        &mut self,
        now: Instant,
        tree: &Tree,
        asked: &Asked,
        by: Origin,
        facts: &Facts,
    ) -> Prepared {
        let turn = Turn { tree, asked, by, facts };
        let mut body = BytesMut::new();
        let made = match asked.op {
            op::CREATE_SESSION => self.create_session(now, &turn, &mut body),
            op::CLOSE_SESSION => {
                self.close_session(&turn, &mut body);
                Ok(kind::CLOSE_SESSION)
            }
            op::RECONFIG => return self.reconfig(&turn),
            op::DELETE_CONTAINER => self.delete_container(&turn, &mut body),
            _ => match Request::decode(asked.op, &asked.body) {
                Ok(Some(Request::Multi(elements))) => {
                    self.multi(&turn, &elements, &mut body);
                    Ok(kind::MULTI)
                }
                Ok(Some(request)) => self.write(&turn, &request, &mut body),
                Ok(None) => Err(code::UNIMPLEMENTED),
                Err(_) => Err(code::MARSHALLING_ERROR),
            },
        };
        match made {
            Ok(kind) => {
                body.put_i32(DIGEST_VERSION);
                body.put_u64(self.changes.digest(tree));
                Prepared { kind, body: body.freeze() }
            }
            Err(code) => Prepared::rejected(Rejected(code)),
        }
    }

    /// A session is tracked from here on, before the transaction is proposed; its owner is the learner that asks.
    fn create_session(
        &mut self,
        now: Instant,
        turn: &Turn<'_>,
        body: &mut BytesMut,
    ) -> Result<i32, i32> {
        let session = turn.asked.id.client;
        let timeout = turn.asked.body.first_chunk().ok_or(code::MARSHALLING_ERROR)?;
        let timeout = i32::from_be_bytes(*timeout);
        self.tracker.track(now, session, timeout);
        let owner = matches!(turn.by, Origin::Learner(_)).then_some(turn.by);
        self.tracker.set_owner(session, owner);
        body.put_i32(timeout);
        Ok(kind::CREATE_SESSION)
    }

    /// For any server that asks. The nodes are a `HashSet`: their order is any.
    fn close_session(&mut self, turn: &Turn<'_>, body: &mut BytesMut) {
        let (session, zxid) = (turn.asked.id.client, turn.facts.zxid);
        let mut own: BTreeSet<String> = turn.tree.ephemerals(session).map(str::to_owned).collect();
        for (path, record) in self.changes.records() {
            match record.stat {
                None => drop(own.remove(path)),
                Some(stat) if stat.owner == session => drop(own.insert(path.to_owned())),
                Some(_) => {}
            }
        }
        for path in own.iter().rev() {
            if let Some((parent, mut record)) = parent_of(path)
                .and_then(|parent| Some((parent, self.changes.get(turn.tree, parent)?)))
            {
                if let Some(stat) = &mut record.stat {
                    stat.pzxid = zxid;
                }
                self.changes.add(turn.tree, zxid, parent, record);
            }
            self.changes.add(turn.tree, zxid, path, Record::DELETED);
        }
        put_vector(body, own.iter().rev(), |body, path| put_text(body, Some(path)));
        self.tracker.set_closing(session);
    }

    /// What it does about memberships it has of ours.
    fn reconfig(&mut self, turn: &Turn<'_>) -> Prepared {
        let permitted = self.check_session(turn).and_then(|()| {
            let (_, node) = self.node(turn, "/zookeeper/config")?;
            permit(turn, &node, WRITE)
        });
        match permitted {
            Ok(()) => Prepared::reconfiguration(turn.asked),
            Err(code::NO_AUTH) => {
                Prepared::reconfiguration_denied(turn.asked, Rejected(code::NO_AUTH))
            }
            Err(code) => Prepared::rejected(Rejected(code)),
        }
    }

    /// Without a look at session, access list, or whether it is due. 3.8.0 reads no length before the path, which only
    /// servers of one kind say to each other; here it does.
    fn delete_container(&mut self, turn: &Turn<'_>, body: &mut BytesMut) -> Result<i32, i32> {
        let path = turn.asked.body.get(4..).unwrap_or_default();
        let path = String::from_utf8_lossy(path).into_owned();
        let parent = deletable(&path)?;
        let (stat, node) = self.node(turn, &path)?;
        if node.children > 0 {
            return Err(code::NOT_EMPTY);
        }
        if matches!(Owner::from_stored(stat.owner), Owner::Session(_)) {
            return Err(code::BAD_VERSION);
        }
        let (_, above) = self.node(turn, parent)?;
        self.deletes(turn, &path, (parent, above), body);
        Ok(kind::DELETE_CONTAINER)
    }

    /// Behind an element that fails, none is looked at.
    fn multi(&mut self, turn: &Turn<'_>, elements: &[Request], body: &mut BytesMut) {
        let mut failed = false;
        put_vector(body, elements, |body, element| {
            let mut own = BytesMut::new();
            let made = if failed {
                Err(code::RUNTIME_INCONSISTENCY)
            } else {
                self.write(turn, &in_multi(element), &mut own)
            };
            let kind = made.unwrap_or_else(|code| {
                if !failed {
                    self.changes.roll_back(turn.facts.zxid);
                }
                failed = true;
                own.clear();
                own.put_i32(code);
                kind::ERROR
            });
            body.put_i32(kind);
            put_data(body, Some(&own));
        });
    }

    /// `pRequest2Txn`.
    fn write(
        &mut self,
        turn: &Turn<'_>,
        request: &Request,
        body: &mut BytesMut,
    ) -> Result<i32, i32> {
        if let Request::Create { op, flags, ttl, .. } = request {
            check_mode(*op, *flags, ttl.unwrap_or(-1))?;
        }
        self.check_session(turn)?;
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others are no writes")]
        match request {
            Request::Create { .. } => self.create(turn, request, body),
            Request::Delete { path, version } => {
                let parent = deletable(path)?;
                let (_, above) = self.node(turn, parent)?;
                permit(turn, &above, DELETE)?;
                let (stat, node) = self.node(turn, path)?;
                next_version(stat.version, *version)?;
                if node.children > 0 {
                    return Err(code::NOT_EMPTY);
                }
                self.deletes(turn, path, (parent, above), body);
                Ok(kind::DELETE)
            }
            Request::SetData { path, data, version } => {
                validate(path)?;
                let (mut stat, node) = self.node(turn, path)?;
                permit(turn, &node, WRITE)?;
                stat.version = next_version(stat.version, *version)?;
                (stat.mzxid, stat.mtime) = (turn.facts.zxid, turn.facts.now_ms);
                put_text(body, Some(path));
                put_data(body, data.as_deref());
                body.put_i32(stat.version);
                let node = Record { stat: Some(stat), data: data.clone(), ..node };
                self.changes.add(turn.tree, turn.facts.zxid, path, node);
                Ok(kind::SET_DATA)
            }
            Request::SetAcl { path, acl, version } => {
                validate(path)?;
                let acl = fix_up(acl.as_deref(), turn.asked.identities.as_deref())?;
                let (mut stat, node) = self.node(turn, path)?;
                permit(turn, &node, ADMIN)?;
                stat.aversion = next_version(stat.aversion, *version)?;
                put_text(body, Some(path));
                put_acl(body, &acl);
                body.put_i32(stat.aversion);
                // The list stays what it was, in the record.
                let node = Record { stat: Some(stat), ..node };
                self.changes.add(turn.tree, turn.facts.zxid, path, node);
                Ok(kind::SET_ACL)
            }
            Request::Check { path, version } => {
                validate(path)?;
                let (stat, node) = self.node(turn, path)?;
                permit(turn, &node, READ)?;
                let version = next_version(stat.version, *version)?;
                put_text(body, Some(path));
                body.put_i32(version);
                Ok(kind::CHECK)
            }
            _ => Err(code::UNIMPLEMENTED),
        }
    }

    /// `pRequest2TxnCreate`.
    fn create(
        &mut self,
        turn: &Turn<'_>,
        request: &Request,
        body: &mut BytesMut,
    ) -> Result<i32, i32> {
        let Request::Create { op, path, data, acl, flags, ttl } = request else {
            return Err(code::UNIMPLEMENTED);
        };
        let (zxid, ttl) = (turn.facts.zxid, ttl.unwrap_or(-1));
        let parent = parent_of(path).ok_or(code::BAD_ARGUMENTS)?;
        let acl = fix_up(acl.as_deref(), turn.asked.identities.as_deref())?;
        let (mut above, parent_record) = self.node(turn, parent)?;
        permit(turn, &parent_record, CREATE)?;
        let sequential = matches!(flags, 2 | 3 | 6);
        let number = if sequential { format!("{:010}", above.cversion) } else { String::new() };
        let path = format!("{path}{number}");
        validate(&path)?;
        if self.changes.get(turn.tree, &path).is_some() {
            return Err(code::NODE_EXISTS);
        }
        if matches!(Owner::from_stored(above.owner), Owner::Session(_)) {
            return Err(code::NO_CHILDREN_FOR_EPHEMERALS);
        }
        let ephemeral = matches!(flags, 1 | 3);
        let owner = match flags {
            1 | 3 => Owner::Session(turn.asked.id.client),
            4 => Owner::Container,
            5 | 6 => Owner::Ttl(ttl),
            _ => Owner::None,
        };
        above.cversion = above.cversion.wrapping_add(1);
        above.pzxid = zxid;
        put_text(body, Some(&path));
        put_data(body, data.as_deref());
        put_acl(body, &acl);
        // The operation says what the transaction is, the flags what the record is.
        let kind = match *op {
            op::CREATE_CONTAINER => {
                body.put_i32(above.cversion);
                kind::CREATE_CONTAINER
            }
            op::CREATE_TTL => {
                body.put_i32(above.cversion);
                body.put_i64(ttl);
                kind::CREATE_TTL
            }
            op => {
                body.put_u8(u8::from(ephemeral));
                body.put_i32(above.cversion);
                if op == op::CREATE2 { kind::CREATE2 } else { kind::CREATE }
            }
        };
        let made = match kind {
            kind::CREATE_CONTAINER => owner == Owner::Container,
            kind::CREATE_TTL => matches!(owner, Owner::Ttl(_)),
            _ => matches!(owner, Owner::None | Owner::Session(_)),
        };
        self.miscounts |= !made;
        let children = parent_record.children + 1;
        let parent_record = Record { stat: Some(above), children, ..parent_record };
        self.changes.add(turn.tree, zxid, parent, parent_record);
        let time = turn.facts.now_ms;
        let stat = StoredStat {
            czxid: zxid,
            mzxid: zxid,
            ctime: time,
            mtime: time,
            version: 0,
            cversion: 0,
            aversion: 0,
            owner: owner.to_stored(),
            pzxid: zxid,
        };
        self.changes.add(turn.tree, zxid, &path, Record::of(stat, acl, data.clone()));
        Ok(kind)
    }

    fn deletes(
        &mut self,
        turn: &Turn<'_>,
        path: &str,
        (parent, mut above): (&str, Record),
        body: &mut BytesMut,
    ) {
        put_text(body, Some(path));
        above.children = above.children.saturating_sub(1);
        if let Some(stat) = &mut above.stat {
            stat.pzxid = turn.facts.zxid;
        }
        self.changes.add(turn.tree, turn.facts.zxid, parent, above);
        self.changes.add(turn.tree, turn.facts.zxid, path, Record::DELETED);
    }

    /// `SessionTracker.checkSession`, or `checkGlobalSession`, which is the same without local sessions.
    fn check_session(&mut self, turn: &Turn<'_>) -> Result<(), i32> {
        self.tracker.check(turn.asked.id.client, turn.by).map_err(|refused| match refused {
            Refused::Expired => code::SESSION_EXPIRED,
            Refused::Moved => code::SESSION_MOVED,
        })
    }

    fn node(&self, turn: &Turn<'_>, path: &str) -> Result<(StoredStat, Record), i32> {
        let record = self.changes.get(turn.tree, path).ok_or(code::NO_NODE)?;
        record.stat.map(|stat| (stat, record)).ok_or(code::NO_NODE)
    }
}

/// `Op.Create`: within a multi the flags say what is created. 3.8.0 makes a create of a create2.
fn in_multi(element: &Request) -> Request {
    let mut element = element.clone();
    if let Request::Create { op, flags, ttl, .. } = &mut element {
        *op = match flags {
            4 => op::CREATE_CONTAINER,
            5 | 6 => op::CREATE_TTL,
            _ => op::CREATE,
        };
        *ttl = ttl.filter(|_| *op == op::CREATE_TTL);
    }
    element
}

fn permit(turn: &Turn<'_>, node: &Record, permission: i32) -> Result<(), i32> {
    check_acl(turn.asked.identities.as_deref(), node.acl.as_deref(), permission)
}

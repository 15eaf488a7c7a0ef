//! A server of ZooKeeper that leads: the model of its leader stands between its core and the service.
//!
//! ```text
//!   Prepare ─────────────► the shipped Preparer, of which its own clients' reads are judged ─► not used
//!                     └──► java_leader::Leader ─► Prepared
//!   Touched, Revalidate, frames of its own clients ─► the same Leader, and the service
//!   ends of sessions, answers to REVALIDATE: the Leader's, in place of the service's
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_application::clients::{Event as Told, Output as Wants};
use quorate_application::{Application, Facts, Prepared};
use quorate_core::id::{LinkId, Origin, ServerId};
use quorate_core::message::Request;
use quorate_core::time::Instant;
use quorate_core::txn::{Draft, TxnHeader};
use quorate_service::wire::op;

use crate::java_leader::{Leader, cleans_up};
use crate::rule::Violation;
use crate::world::World;
use crate::world::front::Front;
use crate::world::told::is_heard;

/// A session and its time-out, as learners send them.
const SESSION_BYTES: usize = 12;

impl Front {
    /// Before a service is told: what a leader of ZooKeeper makes of it, and what it answers itself. `session`: that of the
    /// client's connection.
    pub(super) fn leader_hears(
        &mut self,
        shown: Instant,
        told: &Told,
        session: Option<i64>,
    ) -> Option<(LinkId, Bytes)> {
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others are nothing for a leader")]
        match told {
            Told::Serving { leads, epoch, .. } => {
                self.leader = None;
                self.epoch = *epoch;
                if *leads && self.is_java {
                    for txn in cleans_up(self.tree()) {
                        drop(self.zookeeper.apply(&txn));
                    }
                    self.leader = Some(Box::new(Leader::new(shown, self.tick, self.tree())));
                }
            }
            Told::Retired => self.leader = None,
            Told::Received { frames, .. } if frames.iter().any(is_heard) => {
                let timeout = session.and_then(|session| self.tree().session(session));
                if let (Some(leader), Some(session), Some(timeout)) =
                    (&mut self.leader, session, timeout)
                {
                    leader.touch(shown, session, timeout);
                }
            }
            Told::Touched { sessions, .. } => {
                if let Some(leader) = &mut self.leader {
                    for mut entry in sessions.chunks_exact(SESSION_BYTES) {
                        leader.touch(shown, entry.get_i64(), entry.get_i32());
                    }
                }
            }
            Told::Revalidate { from, body } if body.len() >= SESSION_BYTES => {
                let leader = self.leader.as_mut()?;
                let mut asked = body.clone();
                let (session, timeout) = (asked.get_i64(), asked.get_i32());
                let valid = leader.revalidate(shown, session, timeout, Origin::Learner(*from));
                let mut answer = BytesMut::new();
                answer.put_i64(session);
                answer.put_u8(u8::from(valid));
                return Some((*from, answer.freeze()));
            }
            _ => {}
        }
        None
    }

    /// Behind that: the service of a leader of ZooKeeper ends no session, and its own answer is given.
    pub(super) fn leader_says(&mut self, answer: Option<(LinkId, Bytes)>) {
        if self.leader.is_none() {
            return;
        }
        let of_leader = |want: &Wants| match want {
            Wants::Submit { request, .. } => ends_a_session(request),
            Wants::Revalidated { .. } => true,
            Wants::Send { .. }
            | Wants::Close { .. }
            | Wants::Pause(_)
            | Wants::Resume(_)
            | Wants::Sync(_)
            | Wants::Remember(_)
            | Wants::Vacated
            | Wants::Touch(_)
            | Wants::Revalidate(_) => false,
        };
        self.wants.retain(|want| !of_leader(want));
        self.wants.extend(answer.map(|(to, body)| Wants::Revalidated { to, body }));
    }

    /// What a leader of ZooKeeper makes of a request; none if this is none.
    pub(super) fn leader_prepares(
        &mut self,
        shown: Instant,
        facts: &Facts,
        origin: Origin,
        request: &Request,
    ) -> Option<Draft> {
        let leader = self.leader.as_mut()?;
        let tree = self.zookeeper.tree();
        let Prepared { kind, body } = leader.prepare(shown, tree, request, origin, facts);
        let (client, cxid) = (request.id.client, request.id.cxid);
        Some(Draft { header: TxnHeader { client, cxid, time: facts.now_ms, kind }, body })
    }

    /// The sessions that a leader of ZooKeeper takes for silent by now; whether there are any.
    fn leader_expires(&mut self, shown: Instant) -> bool {
        let Some(leader) = &mut self.leader else { return false };
        let epoch = self.epoch;
        let ends: Vec<_> = leader.expire(shown).collect();
        let any = !ends.is_empty();
        self.wants.extend(ends.into_iter().map(|request| Wants::Submit { epoch, request }));
        any
    }
}

impl World {
    /// A leader of ZooKeeper looks for silent sessions in a thread of its own, whatever waits to be read.
    pub(super) fn expires_as_java(
        &mut self,
        id: ServerId,
        shown: Instant,
    ) -> Result<(), Violation> {
        let front = self.servers.get_mut(&id).and_then(|server| server.front.as_mut());
        if front.is_some_and(|front| front.leader_expires(shown)) { self.serve(id) } else { Ok(()) }
    }
}

fn ends_a_session(request: &Request) -> bool {
    request.op == op::CLOSE_SESSION && request.id.cxid == 0
}

//! A server of ZooKeeper that leads: the model of its leader stands between its core and the service.
//!
//! ```text
//!   Prepare ─────────────► the shipped Preparer, of which its own clients' reads are judged ─► not used
//!                     └──► java_leader::Leader ─► Prepared
//!   Touched, Revalidate, frames of its own clients ─► the same Leader, and the service
//!   ends of sessions, answers to REVALIDATE: the Leader's, in place of the service's
//! ```

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_application::clients::{Event as Told, Output as Wants};
use quorate_application::{Application, Facts, Prepared, Restore};
use quorate_core::id::{LinkId, Origin, ServerId};
use quorate_core::input::Event;
use quorate_core::message::Request;
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::txn::{Draft, TxnHeader};
use quorate_service::ZooKeeper;
use quorate_service::wire::op;
use quorate_znode::kind;

use crate::application::State;
use crate::faults::{CrashKind, FaultClass};
use crate::java_leader::{Leader, cleans_up, poison, serializing};
use crate::network::Dialect;
use crate::rule::{Rule, Violation, broken};
use crate::world::front::Front;
use crate::world::server::Server;
use crate::world::told::is_heard;
use crate::world::{What, World};

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
                if let (Some(leader), Some(session)) = (&mut self.leader, session) {
                    leader.touch_own(shown, session);
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
            | Wants::Audit(_)
            | Wants::Remember(_)
            | Wants::Vacated
            | Wants::Touch(_)
            | Wants::Halt(_)
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

    /// A leader of ours makes an error of what ends servers of ZooKeeper, whoever has passed it on.
    pub(super) fn refuses_poison(
        &self,
        id: ServerId,
        request: &Request,
        draft: &Draft,
    ) -> Result<(), Violation> {
        // Its own deletions are in no session.
        let asked = request.identities.is_some() && self.leader.is_none();
        let Some(harm) = poison::of_request(request).filter(|_| asked) else { return Ok(()) };
        let refused = matches!(draft.header.kind, kind::ERROR | kind::MULTI);
        // Of the flags of a container it makes a persistent node.
        if refused || matches!(harm, poison::FLAGS) && poison::is_plain(request) {
            return Ok(());
        }
        let detail = format!("makes {} of {harm}: {request:?}", draft.header.kind);
        broken(Rule::Poison, id, detail)
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

impl Server {
    /// Whether it starts again as the other kind: one time in three. A draw of its own, so that all others stay what they are.
    pub(super) fn changes_kind(&self) -> bool {
        Rng::new(self.config.seed ^ 0x000c_0ffe).below(3) == 0
    }
}

impl World {
    /// A server that is down has its directory taken over by the other kind.
    pub(super) fn becomes_other(&mut self, id: ServerId) {
        let was_java = self.network.old.remove(&id).is_some();
        if !was_java {
            self.network.old.insert(id, Dialect::V38);
            self.network.were_ours.insert(id);
            self.checker.untold.insert(id);
        }
        self.coverage.hit(FaultClass::KindChanged);
        if let Some(server) = self.servers.get_mut(&id) {
            // None is set where a server of ZooKeeper was before.
            server.config.lease = None;
        }
    }

    /// A client of a server of ZooKeeper asks for what ends such servers, so and so often. That server passes it on.
    pub(crate) fn is_poisoned(&mut self, rng: &mut Rng, count: u64) {
        let now = self.agenda.now();
        let Some(crowd) = &mut self.crowd else { return };
        for (id, server) in &self.servers {
            let front = server.front.as_ref().filter(|front| front.is_java && !server.paused);
            let session = front.and_then(|front| {
                let session = crowd.session_at(*id)?;
                front.tree().session(session).map(|_| session)
            });
            let (Some(front), Some(session)) = (front, session) else { continue };
            for _ in 0..count {
                self.poisons += 1;
                let request = poison::draw(rng, session, -100 - self.poisons);
                self.coverage.hit(FaultClass::PoisonAsked);
                let event = Box::new(Event::Submit { epoch: front.epoch, request });
                let incarnation = server.incarnation;
                self.agenda.at(now, What::Answer { id: *id, incarnation, event });
            }
        }
    }

    /// A server of ZooKeeper has ended of what it was to apply, and would at each start: one of ours takes over its directory.
    pub(super) fn ends_of_poison(
        &mut self,
        id: ServerId,
        incarnation: u64,
    ) -> Result<(), Violation> {
        if !self.is_same(id, incarnation) || !self.network.is_java(id) {
            return Ok(());
        }
        self.coverage.hit(FaultClass::PoisonApplied);
        self.crash(id.0, CrashKind::Process)?;
        self.becomes_other(id);
        self.start_after(id.0, Duration::from_millis(500));
        Ok(())
    }

    /// A snapshot has come whole over a link. Where a server of ZooKeeper sends it, what that has applied since it began is in
    /// some of the nodes.
    pub(super) fn goes_on_meanwhile(&mut self, link: LinkId, state: &mut State) {
        let Some(id) = self.network.other_end(link).filter(|id| self.network.is_java(*id)) else {
            return;
        };
        let Some(server) = self.servers.get(&id) else { return };
        let Some(front) = server.front.as_ref().filter(|front| front.leader.is_some()) else {
            return;
        };
        let (held, through) = (server.disk.latest(), front.tree().last_zxid());
        if held.floor > state.label || state.tree.is_empty() {
            return;
        }
        let txns: Vec<_> = held.range(state.label, through).cloned().collect();
        let mut restore = ZooKeeper::restore(state.label);
        let (false, Ok(Some(tree))) = (txns.is_empty(), restore.push(&mut &state.tree[..])) else {
            return;
        };
        let mut rng = Rng::new(self.seed ^ through.0.unsigned_abs() ^ link.0);
        state.tree = serializing::meanwhile(tree, &txns, &mut rng);
        self.coverage.hit(FaultClass::WrittenMeanwhile);
    }

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

//! What must hold of what a service is told and does, where it is told and done.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_application::clients::{ClientId, Event as Told, Frame, Output as Wants};
use quorate_application::{Application, Snapshot};
use quorate_core::id::ServerId;
use quorate_core::message::Request;
use quorate_core::time::Instant;
use quorate_core::zxid::Zxid;
use quorate_service::wire::{AUTH_XID, NOTIFICATION_XID, op};
use quorate_znode::stat::Owner;

use crate::clients::{Crowd, UNWRITTEN_MAX};
use crate::rule::{Rule, Violation, broken};
use crate::world::World;
use crate::world::front::{Front, Order};

/// When the simulated world began, in milliseconds since 1970.
const BEGINNING_MS: i64 = 1_700_000_000_000;

impl Front {
    /// The tree, as a snapshot writes it.
    pub(super) fn state(&self) -> Bytes {
        let (mut bytes, mut snapshot) = (BytesMut::new(), self.zookeeper.snapshot());
        while snapshot.next(&mut bytes).unwrap_or(false) {}
        bytes.freeze()
    }

    /// The wall clock of its server shows so much more than the monotonic one from here on.
    pub(super) fn set_wall(&mut self, shown: Instant, wall: i64, interval: Duration) {
        let most = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        let by = wall.saturating_sub(std::mem::replace(&mut self.wall, wall));
        if by > most {
            self.set_forward = Some((shown, by));
        }
    }

    /// The wall clock when the monotonic one shows this.
    pub(super) fn wall_ms(&self, shown: Instant) -> i64 {
        let since = i64::try_from(shown.since_origin().as_millis()).unwrap_or(0);
        BEGINNING_MS + self.wall + since
    }

    /// A leader asks for the removal of a node. A TTL node's time is not over for a clock that was just set forward:
    /// another look has to confirm it.
    pub(super) fn is_confirmed(
        &self,
        id: ServerId,
        request: &Request,
        interval: Duration,
    ) -> Result<(), Violation> {
        let recent = |at: Instant| self.stepped.since(at) < interval / 10 * 9;
        let set = self.set_forward.filter(|(at, _)| recent(*at));
        let path = request.body.get(4..).map(String::from_utf8_lossy).unwrap_or_default();
        let node = self.tree().get(&path).filter(|_| request.op == op::DELETE_CONTAINER);
        let young = |by: i64| {
            node.is_some_and(|node| match node.owner() {
                Owner::Ttl(ttl) => self.wall_ms(self.stepped) - by - node.stat().mtime <= ttl,
                Owner::None | Owner::Container | Owner::Session(_) => false,
            })
        };
        match set.filter(|(_, by)| young(*by)) {
            None => Ok(()),
            Some((at, by)) => {
                let ago = self.stepped.since(at);
                let detail = format!("removes {path} by a clock set forward {by} ms, {ago:?} ago");
                broken(Rule::Due, id, detail)
            }
        }
    }
}

impl World {
    /// The oracle hears what a service is told of sessions.
    pub(super) fn note_told(&mut self, id: ServerId, shown: Instant, told: &Told) {
        let now = self.agenda.now();
        let Some(crowd) = &mut self.crowd else { return };
        let server = self.servers.get(&id);
        let front = server.and_then(|server| server.front.as_ref());
        let serves = front.is_some_and(|front| front.serves);
        if let Told::Serving { .. } = told {
            // Those that have stayed; what they have said meanwhile is read now.
            for client in front.into_iter().flat_map(|front| front.open.keys()) {
                if let Some(session) = crowd.open_session_of(*client) {
                    crowd.judge.sessions.on_heard(id, session, now);
                }
            }
        }
        let sessions = &mut crowd.judge.sessions;
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others tell nothing of sessions")]
        match told {
            Told::Serving { leads: true, .. } => sessions.on_leads(id, now),
            Told::Retired => sessions.on_retired(id),
            Told::Received { client, frames } if serves && frames.iter().any(is_heard) => {
                if let Some(session) = crowd.open_session_of(*client) {
                    crowd.judge.sessions.on_heard(id, session, now);
                }
            }
            Told::Written { client, bytes } => crowd.on_written(*client, *bytes),
            Told::Revalidate { from, body } => {
                let learner = self.network.at_the_other_end(*from);
                let session = body.first_chunk().copied().map(i64::from_be_bytes);
                if let Some(session) = session {
                    sessions.on_moved(id, session, learner);
                }
            }
            Told::LinkLost(link) => {
                // The network may have forgotten it before its service is told.
                let learner = sessions.learners.remove(&(id, *link));
                if let Some(learner) = learner.or(self.network.at_the_other_end(*link)) {
                    sessions.on_lost(learner, now);
                }
            }
            Told::Touched { from, asked, .. } => {
                let ago = server.map_or(Duration::ZERO, |server| server.ago(shown, *asked));
                if let Some(learner) = self.network.at_the_other_end(*from) {
                    let ago = Instant::from_origin(ago).0;
                    sessions.learners.insert((id, *from), learner);
                    sessions.on_answered(id, learner, Instant(now.0.saturating_sub(ago)));
                }
            }
            _ => {}
        }
    }
}

/// Whether an order is of a connection that is closed.
pub(super) fn is_of(order: &Order, closed: ClientId) -> bool {
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others are of none")]
    match order {
        Order::Tell(Told::Received { client, .. } | Told::Written { client, .. }) => {
            *client == closed
        }
        Order::Tell(Told::Disconnected(client)) => *client == closed,
        _ => false,
    }
}

/// Whether this is about another connection of this one's client, or its session.
pub(super) fn attaches(want: &Wants, client: ClientId, crowd: &Crowd) -> bool {
    let session = crowd.session_of(client);
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others are about no connection")]
    match want {
        Wants::Send { client: other, .. } => {
            *other != client && crowd.have_one_client(*other, client)
        }
        Wants::Revalidate(body) => {
            let asked = body.first_chunk().copied().map(i64::from_be_bytes);
            asked.is_some() && asked == session
        }
        _ => false,
    }
}

/// Whether this ends the connection of a client.
pub(super) fn ends(want: &Wants, client: ClientId) -> bool {
    matches!(want, Wants::Close { client: ended, .. } if *ended == client)
}

/// Whether a session is heard by this: who a client says that it is keeps none alive.
pub(super) fn is_heard(frame: &Frame) -> bool {
    let op = |frame: &Bytes| frame.get(4..8).map(|op| op == op::AUTH.to_be_bytes());
    !matches!(frame, Frame::Whole(frame) if op(frame) == Some(true))
}

/// To a client that does not read events are written on, and nothing else as long as too much waits: but for why its
/// connection ends, which is the last reply.
pub(super) fn holds_back(
    id: ServerId,
    crowd: &mut Crowd,
    client: ClientId,
    bytes: &Bytes,
) -> Result<(), Violation> {
    let Some(waiting) = crowd.waiting(client).filter(|_| crowd.is_answered(client)) else {
        return Ok(());
    };
    let xid = bytes.get(4..8).and_then(|xid| xid.try_into().ok()).map(i32::from_be_bytes);
    match xid {
        Some(NOTIFICATION_XID | AUTH_XID) => {}
        _ if waiting > UNWRITTEN_MAX => {
            let detail = format!("writes on, and {waiting} bytes wait for its client to read");
            return broken(Rule::HeldBack, id, detail);
        }
        _ => crowd.held_back += u64::from(waiting + bytes.len() > UNWRITTEN_MAX),
    }
    Ok(())
}

/// No reply is ahead of what its server has applied.
pub(super) fn shows_what_is_applied(
    id: ServerId,
    has_header: bool,
    bytes: &Bytes,
    applied: Zxid,
) -> Result<(), Violation> {
    let zxid = bytes.get(8..16).and_then(|zxid| zxid.try_into().ok()).map(i64::from_be_bytes);
    match zxid.map(Zxid).filter(|zxid| has_header && *zxid > applied) {
        None => Ok(()),
        Some(zxid) => broken(Rule::View, id, format!("tells of {zxid}, having applied {applied}")),
    }
}

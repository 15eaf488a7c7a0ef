//! A service that keeps sessions, as far as the protocol carries what it says.
//!
//! ```text
//!   learner: Pinged ─► Touch(own id), Revalidate(own id)     leader: Touched ─► judged
//!   learner: Revalidated ─► judged                                   Revalidate ─► Revalidated(the same)
//! ```
//!
//! Each server has one session, whose id is its own: so it shows which learner said what, and whether it came
//! to the right one.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Event;
use quorate_core::time::Instant;

use crate::rule::{Rule, Violation, broken};
use crate::world::{What, World};

/// Its session, as bytes.
fn session_of(id: ServerId) -> Bytes {
    let mut bytes = BytesMut::with_capacity(8);
    bytes.put_i64(id.0);
    bytes.freeze()
}

impl World {
    /// The leader wants to know of sessions; a client of this one asks whether it lives, too.
    pub(super) fn on_pinged(&mut self, id: ServerId) {
        for event in [Event::Touch(session_of(id)), Event::Revalidate(session_of(id))] {
            self.say(id, event);
        }
    }

    /// A learner has heard from sessions: they are its own, and the ping was sent before the answer came.
    pub(super) fn on_touched(
        &self,
        id: ServerId,
        from: LinkId,
        asked: Instant,
        sessions: &Bytes,
    ) -> Result<(), Violation> {
        let Some(server) = self.servers.get(&id) else { return Ok(()) };
        let now = server.clock.shows(self.agenda.now());
        let of = self.network.at_the_other_end(from).map(session_of);
        let whose = sessions.is_empty() || of.is_none_or(|of| of == *sessions);
        if whose && asked <= now {
            return Ok(());
        }
        broken(Rule::Boundary, id, format!("{from} touched {sessions:?}, asked at {asked:?}"))
    }

    /// A learner asks whether a session lives: all do.
    pub(super) fn on_revalidate(&mut self, id: ServerId, from: LinkId, body: Bytes) {
        self.say(id, Event::Revalidated { to: from, body });
    }

    /// The leader has answered.
    pub(super) fn on_revalidated(id: ServerId, body: &Bytes) -> Result<(), Violation> {
        if *body == session_of(id) {
            return Ok(());
        }
        broken(Rule::Boundary, id, format!("is told of a session of another server: {body:?}"))
    }

    fn say(&mut self, id: ServerId, event: Event) {
        let Some(server) = self.servers.get(&id) else { return };
        let (incarnation, event) = (server.incarnation, Box::new(event));
        self.agenda.at(self.agenda.now(), What::Answer { id, incarnation, event });
    }
}

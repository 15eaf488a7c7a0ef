//! What clients have asked for of a server, and is not answered.

use std::collections::btree_map::Entry;

use bytes::Bytes;
use quorate_application::clients::{ClientId, Event as Told, Frame};
use quorate_core::id::ServerId;
use quorate_core::time::Instant;
use quorate_service::wire::NOTIFICATION_XID;

use crate::clients::Crowd;
use crate::rule::{Rule, Violation, broken};
use crate::world::front::Front;

impl Front {
    /// What a connection has asked for since this server serves, behind what it opens with.
    pub(super) fn counts_asked(&mut self, shown: Instant, told: &Told) {
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others ask for nothing")]
        match told {
            Told::Serving { .. } => {
                self.serves = true;
                self.asked.values_mut().for_each(|asked| *asked = 0);
            }
            Told::Retired => self.serves = false,
            Told::Stopping { within } => self.drains = Some(shown + *within * 2),
            Told::Received { client, frames } => {
                let whole = frames.iter().filter(|frame| matches!(frame, Frame::Whole(_)));
                let of_it = self.asked.entry(*client);
                let opens = usize::from(matches!(of_it, Entry::Vacant(_)));
                let asked = of_it.or_default();
                *asked = (*asked + whole.count()).saturating_sub(opens);
            }
            _ => {}
        }
    }

    /// Something is sent on a connection: an answer, unless it is an event.
    pub(super) fn counts_answered(&mut self, client: ClientId, bytes: &Bytes) {
        let is_event = bytes.get(4..8) == Some(&NOTIFICATION_XID.to_be_bytes()[..]);
        if let (Some(asked), false) = (self.asked.get_mut(&client), is_event) {
            *asked = asked.saturating_sub(1);
        }
    }

    /// A connection is ended: by a server that serves behind the last answer, unless the session is not there any more, or
    /// elsewhere. One that is about to stop does not wait for ever. `elsewhere`: its client is heard to have come by
    /// another connection. What ends servers of ZooKeeper ends its connection, too.
    pub(super) fn ends_between_answers(
        &mut self,
        id: ServerId,
        client: ClientId,
        crowd: &Crowd,
        elsewhere: bool,
    ) -> Result<(), Violation> {
        let asked = self.asked.remove(&client).unwrap_or(0);
        let waits = self.serves && self.drains.is_none_or(|end| self.stepped < end);
        let session = crowd.session_of(client).filter(|session| *session != 0);
        let here = session.is_some_and(|session| {
            self.tree().session(session).is_some()
                && crowd.judge.sessions.is_at(session, id)
                && crowd.is_the_only(client, self.stepped)
        });
        if asked == 0 || !waits || elsewhere || !here || crowd.judge.beside_java {
            return Ok(());
        }
        let detail = format!("ends {client:?}, to which it owes {asked} answers");
        broken(Rule::Unanswered, id, detail)
    }
}

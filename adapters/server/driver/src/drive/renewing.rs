//! Links that are closed to be made anew, since their keys are nearly worn or their other side would not be let in now: which
//! one next is decided in `quorate-tls`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use quorate_application::Application;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Plane};
use quorate_core::status::Status;
use quorate_core::vote::ServerState;
use quorate_tls::{Renewals, Worn, WornKind};

use crate::drive::{Driver, Turn};
use crate::net::secure_links::SecureLink;
use crate::runtime::Runtime;

/// What is to be made anew, and when it is looked next.
#[derive(Debug)]
pub(crate) struct Renewing {
    renewals: Renewals,
    next: Option<Instant>,
}

impl Renewing {
    /// Of this server.
    pub(crate) const fn of(own: ServerId) -> Self {
        Self { renewals: Renewals::of(own), next: None }
    }
}

impl<R: Runtime, A: Application> Driver<R, A> {
    /// Closes at most one link, so that its dialler makes it anew.
    pub(super) fn renew_worn(&mut self, turn: &mut Turn) {
        let now = turn.seen.at;
        if self.secure.is_none() || self.renewing.next.is_some_and(|next| now < next) {
            return;
        }
        self.renewing.next = Some(now + EVERY);
        let status = self.peer.status();
        let links = self.shared.secure_links.all();
        let worn = links.iter().filter_map(|(link, secure)| self.worn(*link, secure, &status, now));
        let worn: Vec<_> = worn.collect();
        let is_back = |peer: ServerId, kind| match kind {
            WornKind::Election => status.linked.contains(&peer),
            WornKind::Learner => status.learners.iter().any(|at| at.id == peer && at.synced),
            WornKind::Leader => status.serving,
        };
        let quorum = self.peer.config().quorum();
        let can_do_without = |worn: &Worn| {
            let votes = worn.peer.is_some_and(|peer| quorum.is_voter(peer));
            if worn.kind != WornKind::Learner || !votes {
                return true;
            }
            let others = status.learners.iter().filter(|at| Some(at.id) != worn.peer);
            let here: BTreeSet<_> =
                others.filter(|at| at.voter && at.synced).map(|at| at.id).collect();
            quorum.is_quorum(here.into_iter().chain([status.id]))
        };
        let age = now.saturating_duration_since(self.origin);
        let next = self.renewing.renewals.next(age, &worn, is_back, can_do_without);
        let Some(worn) = next.and_then(|link| worn.iter().find(|worn| worn.link == link)) else {
            return;
        };
        let link = worn.link;
        self.tell_closing(worn, links.iter().find(|(id, _)| *id == link).map(|(_, secure)| secure));
        self.renewing.next = Some(now + AFTER_ONE);
        self.lose(link, Cause::Closed, turn);
    }

    fn tell_closing(&self, worn: &Worn, secure: Option<&SecureLink>) {
        let (sid, link, kind) = (self.shared.id.0, worn.link.0, worn.kind);
        let (peer, records) = (worn.peer.map(|peer| peer.0), worn.records);
        match secure.and_then(|secure| secure.unwanted.as_ref()) {
            Some((why, _)) => tracing::warn!(
                event = "tls.closed",
                sid,
                link,
                peer,
                ?kind,
                "a link is closed, since its other side would not be let in now: {why}"
            ),
            None => tracing::info!(
                event = "tls.renewing",
                sid,
                link,
                peer,
                ?kind,
                records,
                "the keys of a link over TLS 1.2 are nearly worn: it is made anew"
            ),
        }
    }

    /// How worn a link is; none if it does not wear, or another server decides.
    fn worn(
        &self,
        link: LinkId,
        secure: &SecureLink,
        status: &Status,
        now: Instant,
    ) -> Option<Worn> {
        let age = |at: Instant| at.saturating_duration_since(self.origin);
        let unwanted = secure.unwanted.as_ref().map(|(_, since)| age(*since));
        let peer = secure.peer;
        if unwanted.is_none() && (secure.records_max == u64::MAX || peer.is_none()) {
            return None;
        }
        let kind = match (secure.plane, secure.dialled) {
            // Who has dialled makes it anew, and knows best when.
            (Plane::Election, false) if unwanted.is_none() => return None,
            (Plane::Election, _) => WornKind::Election,
            (Plane::Quorum, false) => WornKind::Learner,
            (Plane::Quorum, true) => WornKind::Leader,
        };
        let looks = status.state == ServerState::Looking;
        let is_quiet = match kind {
            WornKind::Election => !looks,
            WornKind::Learner => {
                let waiting = self.links.get(&link).and_then(|outbound| outbound.waiting(now));
                let has_all = status.learners.iter().any(|at| Some(at.id) == peer && at.synced);
                (has_all || peer.is_none()) && waiting.unwrap_or(0) <= FEW
            }
            WornKind::Leader => status.serving,
        };
        let (records, limit) = (secure.records(), secure.records_max);
        Some(Worn { link, peer, records, limit, unwanted, kind, is_quiet })
    }
}

/// How often it is looked, at most.
const EVERY: Duration = Duration::from_millis(200);
/// The same when one was closed.
const AFTER_ONE: Duration = Duration::from_secs(1);
/// How many packets may wait for a learner that has all but them.
const FEW: usize = 16;

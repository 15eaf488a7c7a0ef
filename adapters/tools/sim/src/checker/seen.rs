//! What is known of one server, and what its events add to it.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::id::{LinkId, ServerId, Ticket};
use quorate_core::input::{Event, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::{Message, Packet};
use quorate_core::output::Leadership;
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::Epoch;

use crate::checker::Checker;
use crate::disk::Held;
use crate::ensemble::Ensemble;

/// What is known of one server.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) durable: Held,
    pub(super) round: Round,
    pub(super) state: ServerState,
    pub(super) established: bool,
    /// Who is at the other end, where that was known when the link came up.
    pub(super) links: BTreeMap<LinkId, Option<ServerId>>,
    /// It was told to stop: all of its links are hung up by then.
    pub(super) stops: bool,
    /// The link that has just ended; its hang-up answers.
    pub(super) ended: Option<LinkId>,
    /// Its quorum port accepts nothing.
    pub(super) deaf: bool,
    pub(super) dials: BTreeSet<(Plane, ServerId)>,
    /// The epoch announced on each link.
    pub(super) announced: BTreeMap<LinkId, Epoch>,
    /// Links on which NEWLEADER tells of a membership in which this server votes.
    pub(super) told_to_vote: BTreeSet<LinkId>,
    pub(super) ticket: Ticket,
    /// The oldest vote for itself in each round, over all its incarnations; none where it joined a
    /// leader that others followed, since that is no vote, and where it heard too few to insist on it.
    pub(super) own_votes: BTreeMap<Round, Option<Vote>>,
    /// What it has said last of its leadership, and whether it has said that it serves.
    pub(super) leadership: Option<Leadership>,
    pub(super) serving: bool,
    /// The membership that its disk has, if it is another than the first, and the one that is to follow.
    pub(super) membership: Option<Ensemble>,
    pub(super) next_membership: Option<(i64, Ensemble)>,
}

impl Checker {
    /// A server is about to hear something.
    pub(crate) fn on_event(&mut self, id: ServerId, event: &Event) {
        self.conduct.on_event(id, event);
        let Some(seen) = self.servers.get_mut(&id) else { return };
        match event {
            Event::LinkUp(up) => {
                seen.links.insert(up.link, up.peer);
                if let (true, Some(peer)) = (up.dialled, up.peer) {
                    seen.dials.remove(&(up.plane, peer));
                }
            }
            Event::Shutdown => seen.stops = true,
            Event::LinkDown { link, .. } => {
                seen.ended = (!seen.stops).then_some(*link);
                seen.links.remove(link);
                seen.announced.remove(link);
                seen.told_to_vote.remove(link);
            }
            Event::ListenFailed(Plane::Quorum) => seen.deaf = true,
            Event::Listening(Plane::Quorum) => seen.deaf = false,
            Event::DialFailed { plane, peer } => {
                seen.dials.remove(&(*plane, *peer));
            }
            Event::Received {
                link,
                message: Message::Packet(Packet::LeaderInfo { epoch, .. }),
            } => {
                seen.announced.insert(*link, *epoch);
            }
            Event::Received {
                link,
                message: Message::Packet(Packet::NewLeader { config, .. }),
            } => {
                let told = Membership::parse(config).ok();
                if told.is_some_and(|membership| membership.is_participant(id)) {
                    seen.told_to_vote.insert(*link);
                }
            }
            Event::Received {
                message: Message::Packet(Packet::Snap { memberships, .. }), ..
            } if memberships.is_empty() => {
                // Its leader tells nothing with it.
                self.untold.insert(id);
            }
            Event::Tick
            | Event::Received { .. }
            | Event::Persisted(_)
            | Event::Drained(_)
            | Event::Progress(_)
            | Event::Located { .. }
            | Event::Streamed { .. }
            | Event::Restored { .. }
            | Event::SnapshotTaken(_)
            | Event::TakeSnapshot
            | Event::Applied(_)
            | Event::Replayed { .. }
            | Event::Propose(_)
            | Event::Submit { .. }
            | Event::Prepared { .. }
            | Event::Read(_)
            | Event::Touch(_)
            | Event::Revalidate(_)
            | Event::Revalidated { .. }
            | Event::Oracle(_)
            | Event::Resolved { .. }
            | Event::ListenFailed(_)
            | Event::Listening(_)
            | Event::DiskLow(_)
            | Event::StepDown
            | Event::TransferLeadership(_)
            | Event::Released(_) => {}
        }
    }
}

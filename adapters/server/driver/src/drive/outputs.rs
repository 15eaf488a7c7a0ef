//! Carrying out: the one match over what the core wants done, and what it means for links.

use std::sync::Arc;
use std::time::Instant;

use quorate_application::Application;
use quorate_application::clients::{self, Clients};
use quorate_core::address::HostPort;
use quorate_core::id::{LinkId, ServerId, Ticket};
use quorate_core::input::{Cause, Event, Plane, Unreadable};
use quorate_core::message::{Introduction, Message};
use quorate_core::output::{Output, Write};
use quorate_core::reasons::{Fault, Hangup};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_leadership::FencingToken;

use crate::disk::{self as stream, Pieces};
use crate::drive::{Driver, Turn, elections_at};
use crate::error::ServerError;
use crate::net::events::LoopEvent;
use crate::net::outbound::{Full, Outbound};
use crate::runtime::Runtime;
use crate::status::Counters;

impl<R: Runtime, A: Application> Driver<R, A> {
    pub(super) fn carry_out(&mut self, output: Output, turn: &mut Turn) -> Result<(), ServerError> {
        self.note_output(&output, turn);
        let replica = &mut self.replica;
        match output {
            Output::Send { link, message } => self.send(link, message, turn),
            Output::NotifyDrained(link) => self.queue(link, turn, Outbound::notify_drained),
            Output::Persist { ticket, write } => self.persist(ticket, write, turn.seen.at),
            Output::Deliver(txn) => replica.deliver(txn),
            Output::Adopt { label } => replica.adopt(label),
            Output::Replay { after, through } => replica.replay(after, through),
            Output::Prepare { epoch, zxid, origin, request } => {
                replica.prepare(epoch, zxid, origin, request);
            }
            Output::Accepted(id) => replica.requests.accepted(id),
            Output::Lost(id) => replica.requests.lost(id),
            Output::Unknown { id, doubt } => replica.requests.unknown(id, doubt),
            Output::Refused { id, reason } => replica.requests.refused(id, reason),
            Output::Answer(read) => replica.answer(read),
            Output::ReadRefused { read, reason } => replica.refuse(read, reason.into()),
            Output::Pinged => replica.tell_service(clients::Event::Pinged),
            Output::Touched { from, asked, sessions } => {
                replica.tell_service(clients::Event::Touched { from, asked, sessions });
            }
            Output::Revalidate { from, body } => {
                replica.tell_service(clients::Event::Revalidate { from, body });
            }
            Output::Revalidated(body) => {
                replica.tell_service(clients::Event::Revalidated(body));
            }
            Output::Dial { plane, peer, addresses } => self.dial(plane, peer, addresses),
            Output::CancelDial { plane, peer } => self.dialler.cancel(plane, peer),
            Output::Resolve { link, hosts } => self.dialler.look_up(link, hosts),
            Output::Hangup { link, reason } => self.hang_up(link, reason),
            Output::Locate { link, zxid } => self.locate(link, zxid),
            Output::StreamLog { link, after, through, form } => {
                let pieces = stream::send_log(self.disk.handle(), after, through, form);
                self.stream(link, pieces.map_err(|_| Unreadable), turn);
            }
            Output::SendSnapshot { link, label, memberships, staged: false } => {
                replica.send_snapshot(link, label, memberships);
            }
            Output::SendSnapshot { link, label, memberships, staged: true } => {
                let pieces = replica.send_staged(label, memberships);
                self.stream(link, pieces, turn);
            }
            Output::ReceiveSnapshot { link, label } => self.receive_snapshot(link, label, turn),
            Output::TakeSnapshot(label) => replica.take_snapshot(label),
            Output::Abandon => replica.abandon(),
            Output::Discard => replica.discard(),
            Output::Leadership(leadership) => {
                let lease = leadership.and_then(|leadership| leadership.lease);
                let lease = lease.map(|until| self.time(until));
                self.gate.set(leadership.map(|leadership| token(leadership.epoch)), lease);
            }
            Output::Serving { epoch, leads, marks, membership } => {
                replica.serving(epoch, (leads, marks), membership);
            }
            Output::Retired => replica.tell_service(clients::Event::Retired),
            Output::Release(release) => {
                self.releasing = Some(release);
                self.gate.revoke();
            }
            Output::Keep => {
                self.releasing = None;
                self.gate.reopen();
            }
            Output::Transferred(outcome) => turn.transferred = Some(outcome),
            Output::Report(report) => turn.reports.push(report),
            Output::Halt(fault) => return Err(self.halted(fault)),
        }
        Ok(())
    }

    fn persist(&mut self, ticket: Ticket, write: Write, now: Instant) {
        if let Write::Install { label, .. } = &write {
            self.replica.install(*label);
        }
        let moves = matches!(write, Write::Membership(_));
        self.disk.write_since(now, ticket, write);
        if moves {
            self.move_listeners();
        }
    }

    fn dial(&mut self, plane: Plane, peer: ServerId, addresses: Vec<HostPort>) {
        let introduction = (plane == Plane::Election).then(|| {
            let (id, addresses) = (self.shared.id, self.elections_at.clone());
            self.shared.codec.encode_introduction(&Introduction { id, addresses })
        });
        self.dialler.dial(plane, peer, addresses, introduction);
    }

    /// Why the core cannot go on; of the log, what is in the way.
    fn halted(&mut self, fault: Fault) -> ServerError {
        match (fault, self.replica.unreadable()) {
            (Fault::Unreadable { after }, Some(source)) => {
                ServerError::Unreadable { after, source }
            }
            (fault, _) => ServerError::Halted(fault),
        }
    }

    /// Another membership is in force: listens where our line says, if there is one. Who was removed stays
    /// where it is.
    pub(super) fn move_listeners(&mut self) {
        let config = self.peer.config();
        if let Some(own) = config.membership.member(config.id) {
            self.listeners.move_to(own);
            if A::Clients::SERVES {
                self.clients.move_to(own);
            }
            self.elections_at = elections_at(own, self.multi_address);
        }
    }

    /// Queues a message on its link; ends the link of a peer that does not read.
    fn send(&mut self, link: LinkId, message: Message, turn: &mut Turn) {
        let Some(outbound) = self.links.get_mut(&link).filter(|outbound| !outbound.ended) else {
            return;
        };
        match outbound.send(message) {
            Ok(true) => turn.queued.push(link),
            Ok(false) => {}
            Err(Full) => {
                let remote = outbound.remote;
                Counters::add(&self.shared.counters.overflowed_links);
                let (from, now) = (Some(remote.ip()), self.runtime.now());
                if let Some(suppressed) = self.shared.warnings.permit("link.down", from, now) {
                    tracing::warn!(
                        event = "link.down", sid = self.shared.id.0, peer = %remote, suppressed,
                        "link ended: the peer does not read"
                    );
                }
                self.lose(link, Cause::Silent, turn);
            }
        }
    }

    /// Queues something else on a link.
    fn queue(&mut self, link: LinkId, turn: &mut Turn, act: impl FnOnce(&mut Outbound) -> bool) {
        if self.links.get_mut(&link).is_some_and(act) {
            turn.queued.push(link);
        }
    }

    /// Queues a stream, if there is one.
    pub(super) fn stream(
        &mut self,
        link: LinkId,
        pieces: Result<Pieces, Unreadable>,
        turn: &mut Turn,
    ) {
        match pieces {
            Ok(pieces) => self.queue(link, turn, |outbound| outbound.stream(pieces)),
            Err(unreadable) if self.links.contains_key(&link) => {
                turn.events.push(Event::Streamed { link, outcome: Err(unreadable) });
            }
            Err(_) => {}
        }
    }

    /// Lets every link that has something to write do so.
    pub(super) fn wake_links(&mut self, queued: &mut Vec<LinkId>, now: Instant) {
        for link in queued.drain(..) {
            if let Some(outbound) = self.links.get_mut(&link) {
                if let Some(waiting) = outbound.waiting(now) {
                    self.proposals.queued(link, waiting, now);
                }
                outbound.wake();
            }
        }
    }

    /// A link is of no use any more: the core is told, and closes it.
    pub(super) fn lose(&mut self, link: LinkId, cause: Cause, turn: &mut Turn) {
        if let Some(outbound) = self.links.get_mut(&link).filter(|outbound| !outbound.ended) {
            outbound.ended = true;
            turn.events.push(Event::LinkDown { link, cause });
        }
    }

    /// Asks the disk where a zxid stands.
    fn locate(&self, link: LinkId, zxid: Zxid) {
        let (disk, shared) = (self.disk.handle(), Arc::clone(&self.shared));
        self.dialler.tasks.spawn(async move {
            // The disk answers unless the server ends.
            let Ok(located) = disk.locate(zxid).await else { return };
            // No receiver is left: the server ends.
            drop(shared.events.send(LoopEvent::Event(Event::Located { link, located })).await);
        });
    }

    fn receive_snapshot(&mut self, link: LinkId, label: Zxid, turn: &mut Turn) {
        let Some(outbound) = self.links.get(&link) else { return };
        match self.replica.receive(label) {
            Ok(intake) => outbound.receive(intake),
            Err(error) => {
                tracing::warn!(
                    event = "sync.failed", sid = self.shared.id.0, peer = %outbound.remote, %label,
                    %error,
                    "cannot receive a snapshot"
                );
                self.lose(link, Cause::Garbled, turn);
            }
        }
    }

    fn hang_up(&mut self, link: LinkId, reason: Hangup) {
        let Some(outbound) = self.links.remove(&link) else { return };
        if outbound.plane == Plane::Quorum {
            self.replica.tell_service(clients::Event::LinkLost(link));
        }
        let (sid, remote) = (self.shared.id.0, outbound.remote);
        let peer = outbound.peer.map(|peer| peer.0);
        let event = event_of(reason);
        let (from, now) = (Some(remote.ip()), self.runtime.now());
        if !is_remarkable(reason) {
            tracing::debug!(event, sid, link = link.0, peer, %remote, %reason, "link hung up");
        } else if let Some(suppressed) = self.shared.warnings.permit(event, from, now) {
            tracing::warn!(
                event, sid, link = link.0, peer, %remote, %reason, suppressed,
                "link hung up"
            );
        }
    }
}

/// No two leaderships have the same epoch.
fn token(epoch: Epoch) -> FencingToken {
    FencingToken::elected(u64::try_from(epoch.0).unwrap_or(0))
}

/// What the line of the log is called.
const fn event_of(reason: Hangup) -> &'static str {
    if let Hangup::ForgedIdentity(_) = reason {
        return "exposed.forged_identity";
    }
    if let Hangup::Stranger(_) = reason { "exposed.stranger" } else { "link.down" }
}

/// Whether an operator should hear of it: the peer did what it must not or not what it should, is one
/// of too many, or fits ours in no ordinary way.
fn is_remarkable(reason: Hangup) -> bool {
    match reason {
        Hangup::OwnId(_)
        | Hangup::ReservedId(_)
        | Hangup::NotAtHome(_)
        | Hangup::TooManyNonMembers
        | Hangup::TooManyUnintroduced
        | Hangup::TooManyLearners
        | Hangup::OutOfTurn(_)
        | Hangup::EpochOutOfRange(_)
        | Hangup::NewerConfiguration { .. }
        | Hangup::OlderMembership { .. }
        | Hangup::Untold { .. }
        | Hangup::OldProtocol(_)
        | Hangup::NewerHistory(_)
        | Hangup::OtherApplication(_)
        | Hangup::Stranger(_)
        | Hangup::ForgedIdentity(_)
        | Hangup::Unreadable
        | Hangup::Unacknowledged(_)
        | Hangup::TooManyRequests
        | Hangup::Hole { .. }
        | Hangup::Differs(_)
        | Hangup::CannotCut(_)
        | Hangup::Silent(_)
        | Hangup::Unintroduced
        | Hangup::DiskBehind { .. }
        | Hangup::OldEpoch(_) => true,
        Hangup::PeerDials(_)
        | Hangup::WeDial(_)
        | Hangup::Replaced(_)
        | Hangup::ClaimedAgain(_)
        | Hangup::NotLeading
        | Hangup::RoleEnded
        | Hangup::Ended
        | Hangup::Unwanted
        | Hangup::Shutdown => false,
    }
}

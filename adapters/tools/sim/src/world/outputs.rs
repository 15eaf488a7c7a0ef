//! What servers want done is done.

use bytes::Bytes;
use quorate_application::clients;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Unreadable};
use quorate_core::membership::Membership;
use quorate_core::message::{Message, Packet};
use quorate_core::output::{Form, Leadership, Output, Write};
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use crate::application::State;
use crate::checker::{Around, Standing};
use crate::disk::kept;
use crate::faults::FaultClass;
use crate::network::{Piece, hit, up_to};
use crate::rule::Violation;
use crate::world::front::Order;
use crate::world::server::Server;
use crate::world::{LOOK_UP_MAX, SNAPSHOT_PIECE, What, World};

/// What a write does with changes of the membership that is seldom enough to be counted.
fn changes_lost_or_brought(server: &Server, write: &Write) -> Vec<FaultClass> {
    let mut found = Vec::new();
    let before = server.disk.latest();
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others lose and bring none")]
    match write {
        Write::Truncate(last) if before.changes().any(|change| change > *last) => {
            found.push(FaultClass::ChangeCut);
        }
        Write::Install { label, membership, next } => {
            let brought = [Some(membership), next.as_ref()].into_iter().flatten();
            let brought = brought.filter_map(|text| kept(text)).filter(Membership::is_change);
            let brought: Vec<_> = brought.map(|membership| Zxid(membership.version())).collect();
            let state = server.application.newest();
            let inside = |change: &Zxid| state.changes.iter().any(|(zxid, _)| zxid == change);
            let known = [before.membership.as_ref(), before.next_membership.as_ref()];
            let known = known.into_iter().flatten().map(Membership::version).max().unwrap_or(0);
            if brought.iter().any(|change| change > label) {
                found.push(FaultClass::ChangeAcrossSnapshot);
            }
            if brought.iter().filter(|change| change.0 > known).count() > 1 {
                found.push(FaultClass::TwoChangesAcrossSnapshot);
            }
            if before.changes().any(|change| !inside(&change) && !brought.contains(&change)) {
                found.push(FaultClass::ChangeCut);
            }
        }
        _ => {}
    }
    found
}

impl World {
    pub(super) fn carry_out(
        &mut self,
        id: ServerId,
        output: Output,
        standing: Standing,
    ) -> Result<(), Violation> {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        let around = Around { disk: &server.disk, application: &server.application };
        self.checker.on_done(id, &output, standing, around)?;
        if let Output::Adopt { .. } | Output::Deliver(_) | Output::Replay { .. } = &output {
            self.judge_commits(id, standing)?;
        }
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        match output {
            Output::Dial { plane, peer, addresses } => {
                self.network.dial(now, id, plane, peer, &addresses);
            }
            Output::CancelDial { plane, peer } => self.network.cancel_dial(now, id, plane, peer),
            Output::Resolve { link, hosts } => self.look_up(id, link, &hosts),
            Output::Hangup { link, reason } => {
                let lives = self.network.lives(link);
                self.checker.conduct.on_hangup(id, link, reason, lives)?;
                self.network.hang_up(now, link);
                self.order(id, Order::Tell(clients::Event::LinkLost(link)));
            }
            Output::Send { link, message } => {
                if let Message::Notification(_) | Message::Generation(_) = message {
                    self.election_messages += 1;
                }
                self.network.send(now, link, message);
            }
            Output::NotifyDrained(link) => self.network.notify_drained(now, link),
            // There is nothing that takes it.
            Output::Persist { .. } if server.waits_for_disk => {}
            Output::Persist { ticket, write } => {
                if let Write::Install { .. } = &write {
                    self.coverage.hit(FaultClass::Installed);
                    server.taken.clear();
                    server.application.install();
                }
                for class in changes_lost_or_brought(server, &write) {
                    self.coverage.hit(class);
                }
                if server.disk.persist(ticket, write) {
                    self.begin_sync(id);
                }
            }
            Output::Locate { link, zxid } => {
                let incarnation = server.incarnation;
                let wait = up_to(&mut self.rng, self.application_max);
                self.agenda.after(wait, What::Locate { id, incarnation, link, zxid });
            }
            Output::StreamLog { link, after, through, form } => {
                self.stream_log(id, link, after, through, form);
            }
            Output::Prepare { epoch, zxid, origin, request } if server.front.is_some() => {
                self.order(id, Order::Prepare(epoch, zxid, origin, request));
            }
            Output::Prepare { epoch, request, .. } => {
                let time = i64::try_from(now.since_origin().as_millis()).unwrap_or(0);
                let draft = server.application.prepare(&request, time, self.expands);
                let most = server.config.limits.txn_bytes;
                let draft = draft.fit(most).unwrap_or_else(|refusal| {
                    server.application.void();
                    self.coverage.hit(FaultClass::PreparedTooLong);
                    refusal
                });
                server.drafts.push((epoch, draft));
                if server.drafts.len() == 1 {
                    let incarnation = server.incarnation;
                    let wait = up_to(&mut self.rng, self.application_max);
                    self.agenda.after(wait, What::Prepared { id, incarnation });
                }
            }
            Output::Adopt { label } => self.adopt(id, label)?,
            Output::Deliver(txn) => self.deliver(id, &txn)?,
            Output::Replay { after, through } => self.replay(id, after, through),
            Output::TakeSnapshot(zxid) => {
                let tree = self.tree_of(id)?;
                let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
                let whole = server.front.as_ref().is_some_and(|front| front.tree().is_whole());
                let state = State { tree, whole, ..server.application.state.clone() };
                if hit(&mut self.rng, self.disk.unreadable) {
                    self.coverage.hit(FaultClass::SnapshotFailed);
                    self.answer(id, Event::SnapshotTaken(zxid));
                } else {
                    let incarnation = server.incarnation;
                    let wait = up_to(&mut self.rng, 20 * self.application_max);
                    let state = Box::new(state);
                    self.agenda.after(wait, What::Publish { id, incarnation, state });
                }
            }
            Output::SendSnapshot { link, label, memberships, staged } => {
                if label.is_epoch_start() && label > Zxid::ZERO {
                    self.coverage.hit(FaultClass::SnapOfEpochStart);
                }
                let mut state = server.application.labelled(label, staged);
                if !staged {
                    state.tree = self.tree_of(id)?;
                }
                self.send_snapshot(id, link, &state, memberships);
            }
            Output::ReceiveSnapshot { link, label } => {
                server.application.receiving = Some((link, label));
                server.application.received = None;
                server.disk.discard();
            }
            Output::Abandon => {
                server.application.abandon();
                self.order(id, Order::Abandon);
            }
            Output::Discard => {
                if server.application.discard() {
                    self.coverage.hit(FaultClass::SnapshotAbandoned);
                }
                server.disk.discard();
            }
            Output::Release(release) => self.answer(id, Event::Released(release)),
            Output::Leadership(leadership) => {
                let before = std::mem::replace(&mut server.leadership, leadership);
                if let (None, Some(Leadership { epoch, .. })) = (before, leadership) {
                    self.check_leases(id, epoch)?;
                }
            }
            output if server.front.is_some() && self.tells_front(id, &output) => {}
            Output::Pinged => self.on_pinged(id),
            Output::Touched { from, asked, sessions } => {
                self.on_touched(id, from, asked, &sessions)?;
            }
            Output::Revalidate { from, body } => self.on_revalidate(id, from, body),
            Output::Revalidated(body) => Self::on_revalidated(id, &body)?,
            Output::Lost(_) => self.coverage.hit(FaultClass::RequestLost),
            Output::Unknown { .. } => self.coverage.hit(FaultClass::RequestUnknown),
            Output::Keep => self.coverage.hit(FaultClass::LeadershipKept),
            Output::Transferred(Ok(_)) => self.coverage.hit(FaultClass::LeadershipGiven),
            Output::Serving { .. }
            | Output::Retired
            | Output::Answer(_)
            | Output::Accepted(_)
            | Output::Refused { .. }
            | Output::ReadRefused { .. }
            | Output::Transferred(Err(_))
            | Output::Report(_)
            | Output::Halt(_) => {}
        }
        Ok(())
    }

    /// The tree of a server as a snapshot writes it, when everything that was delivered is applied; none without clients.
    fn tree_of(&mut self, id: ServerId) -> Result<Bytes, Violation> {
        self.work(id)?;
        let front = self.servers.get(&id).and_then(|server| server.front.as_ref());
        Ok(front.map(|front| front.state()).unwrap_or_default())
    }

    /// The application answers in the order in which it was asked.
    pub(super) fn answer(&mut self, id: ServerId, event: Event) {
        let wait = up_to(&mut self.rng, self.application_max);
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.busy_until = server.busy_until.max(self.agenda.now()) + wait;
        let incarnation = server.incarnation;
        let event = Box::new(event);
        self.agenda.at(server.busy_until, What::Answer { id, incarnation, event });
    }

    /// Each server's name is its address; looking it up takes a moment.
    fn look_up(&mut self, id: ServerId, link: LinkId, hosts: &[String]) {
        let wait = up_to(&mut self.names, LOOK_UP_MAX);
        let Some(server) = self.servers.get(&id) else { return };
        let incarnation = server.incarnation;
        let addresses = hosts.iter().filter_map(|host| host.parse().ok()).collect();
        let event = Box::new(Event::Resolved { link, addresses });
        self.agenda.after(wait, What::Answer { id, incarnation, event });
    }

    /// Puts those snapshots on disk that the log has come up to.
    pub(super) fn publish(&mut self, id: ServerId) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        let last = server.disk.durable().last();
        let mut ready = Vec::new();
        server.taken.retain(|state| {
            let now = state.label <= last;
            if now {
                ready.push(state.clone());
            }
            !now
        });
        for state in ready {
            if let Some(server) = self.servers.get_mut(&id) {
                server.disk.publish(&state, self.disk.snapshots);
            }
            self.coverage.hit(FaultClass::SnapshotTaken);
            self.answer(id, Event::SnapshotTaken(state.label));
        }
        Ok(())
    }

    pub(super) fn stream_log(
        &mut self,
        id: ServerId,
        link: LinkId,
        after: Zxid,
        through: Zxid,
        form: Form,
    ) {
        let now = self.agenda.now();
        let Some(server) = self.servers.get(&id) else { return };
        let held = server.disk.durable();
        let packets = |txn: &Txn| match form {
            Form::Proposals => vec![Packet::Proposal(txn.clone())],
            Form::Committed => vec![Packet::Proposal(txn.clone()), Packet::Commit(txn.zxid)],
            Form::Commits => vec![Packet::Commit(txn.zxid)],
            Form::Informs => vec![Packet::Inform(txn.clone())],
        };
        let mut pieces: Vec<_> =
            held.range(after, through).flat_map(packets).map(Piece::packet).collect();
        let mut outcome = Ok(());
        if after < held.floor || held.last() < through {
            pieces.clear();
            outcome = Err(Unreadable);
        } else if hit(&mut self.rng, self.disk.unreadable) {
            let kept = self.rng.below(pieces.len() as u64 + 1);
            pieces.truncate(usize::try_from(kept).unwrap_or(0));
            outcome = Err(Unreadable);
        }
        if outcome.is_err() {
            self.coverage.hit(FaultClass::StreamUnreadable);
        }
        self.coverage.hit(match form {
            Form::Proposals => FaultClass::StreamedProposals,
            Form::Committed => FaultClass::StreamedCommitted,
            Form::Commits => FaultClass::StreamedCommits,
            Form::Informs => FaultClass::StreamedInforms,
        });
        self.network.stream(now, link, pieces, outcome);
    }

    pub(super) fn send_snapshot(
        &mut self,
        id: ServerId,
        link: LinkId,
        state: &State,
        memberships: Bytes,
    ) {
        let now = self.agenda.now();
        let mut bytes = state.encode();
        // A tree is longer than what the pauses between pieces are made for.
        let most = SNAPSHOT_PIECE.max(state.tree.len() / 8);
        let memberships = self.network.told_with_snapshot(id, memberships);
        let mut pieces = vec![Piece::packet(Packet::Snap { label: state.label, memberships })];
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(most));
            pieces.push(Piece { bytes: piece, messages: Vec::new(), moves: true });
        }
        let mut outcome = Ok(());
        if hit(&mut self.rng, self.disk.unreadable) {
            pieces.pop();
            outcome = Err(Unreadable);
            self.coverage.hit(FaultClass::StreamUnreadable);
        }
        self.network.stream(now, link, pieces, outcome);
    }
}

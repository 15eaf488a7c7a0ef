//! One step of the service: what has happened goes to the room that deals with it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::BytesMut;
use quorate_application::clients::{
    AtHand, ClientId, Clients, Close, Event, Frame, Framing, Host, Input, Output,
};
use quorate_core::id::ServerId;
use quorate_core::membership::{Membership, Role as MemberRole};
use quorate_core::message::Request;
use quorate_core::time::Instant;
use quorate_core::txn::{RequestId, Txn};
use quorate_znode::{Applied, ApplyError};

use crate::connection::Connection;
use crate::containers::Containers;
use crate::marks::Marks;
use crate::options::Options;
use crate::service::{Leading, Role, Service, Step};
use crate::sessions::touched;
use crate::tracker::Tracker;
use crate::wire::{self, op};
use crate::zookeeper::ZooKeeper;

/// Takes frames off the bytes of a client's connection.
#[derive(Clone, Debug)]
pub struct ClientFraming(wire::Framing);

impl Framing for ClientFraming {
    fn take(&mut self, bytes: &mut BytesMut) -> Option<Frame> {
        match self.0.take(bytes) {
            Ok(Some(wire::Frame::Word(word))) => Some(Frame::Word(word)),
            Ok(Some(wire::Frame::Frame(frame))) => Some(Frame::Whole(frame)),
            Ok(None) => None,
            Err(_) => Some(Frame::Garbled),
        }
    }

    fn announced(&self, bytes: &[u8]) -> Option<usize> {
        self.0.announced(bytes)
    }
}

impl Clients<ZooKeeper> for Service {
    type Framing = ClientFraming;

    const SERVES: bool = true;

    fn framing(&self) -> ClientFraming {
        ClientFraming(wire::Framing::new(self.frame_bytes_max))
    }

    fn step_into(&mut self, input: Input, state: &mut ZooKeeper, out: &mut Vec<Output>) {
        let Input { at, wall_ms, event } = input;
        let expected = self.due();
        let starts = !core::mem::replace(&mut self.has_started, true);
        self.pauses.step(at, expected);
        let mut step = Step { at, wall_ms, state, out };
        if starts {
            self.audit_server(&mut step, "serverStart", "success");
        }
        self.on_event(&mut step, event);
        self.on_time(&mut step);
        self.go_on(&mut step);
        self.shed(&mut step);
    }

    fn on_applied(
        &mut self,
        at: Instant,
        txn: &Txn,
        effect: &Result<Applied, ApplyError>,
        state: &mut ZooKeeper,
        out: &mut Vec<Output>,
    ) {
        let mut step = Step { at, wall_ms: txn.header.time, state, out };
        self.on_txn(&mut step, txn, effect);
        self.shed(&mut step);
    }

    fn deadline(&self) -> Option<Instant> {
        self.due()
    }

    fn at_hand(&mut self, state: &mut ZooKeeper) -> AtHand {
        self.words_at_hand(state)
    }
}

impl Service {
    /// The service of a server.
    pub fn of(host: Host, options: Options) -> Self {
        Self::new(host, options)
    }

    fn on_event(&mut self, step: &mut Step<'_>, event: Event) {
        match event {
            Event::Tick => self.tell_on(step),
            Event::Connected { client, remote, over } => {
                self.clients.insert(client, Connection::new(remote, step.wall_ms));
                self.certify(step, client, over);
                if self.stops() {
                    self.close(step.out, client, Close::Reset);
                }
            }
            Event::Received { client, frames } => self.on_received(step, client, frames),
            Event::Begun(client) if !self.serves() && !self.keeps_arrivals(step.at) => {
                self.close(step.out, client, Close::AfterWriting);
            }
            Event::Begun(_) => {}
            Event::Heard(client) => self.touch(step.at, client),
            Event::Written { client, bytes } => self.on_written(step.at, client, bytes),
            Event::Disconnected(client) => {
                self.counters.dropped += 1;
                self.close_sessions_asked_for(step, client);
                self.forget(client);
            }
            Event::Serving { epoch, leads, marks, membership } => {
                let again = epoch == self.epoch;
                (self.epoch, self.is_marked) = (epoch, marks);
                self.on_serving(step, leads, &membership);
                self.end_between(step, again);
            }
            Event::Retired => self.retire(step, Some(step.at)),
            // Who has stayed may miss events.
            Event::Replaced => self.let_go_kept(step),
            Event::Synced(sync) => self.on_synced(sync),
            Event::SyncRefused(sync) => self.on_sync_refused(step, sync),
            Event::Pinged => self.on_pinged(step),
            Event::Touched { from, asked, sessions } => {
                if let Some(leading) = self.leading() {
                    leading.tracker.answered(step.at, from, asked);
                    for (session, timeout_ms) in touched(&sessions) {
                        leading.tracker.told(step.at, session, timeout_ms, from);
                    }
                }
            }
            Event::Revalidate { from, body } => self.on_revalidate(step, from, body),
            Event::Revalidated(body) => self.on_revalidated(step, body),
            Event::Noted(note) => self.audit_note(step, &note),
            Event::Shed { percent, within } => self.on_shed(step, percent, within),
            Event::Stopping { within } => {
                self.audit_server(step, "serverStop", "invoked");
                self.on_stopping(step, within);
            }
            Event::LinkLost(link) => {
                if let Some(leading) = self.leading() {
                    leading.tracker.lost(step.at, link);
                }
            }
        }
    }

    fn on_received(&mut self, step: &mut Step<'_>, client: ClientId, frames: Vec<Frame>) {
        for frame in frames {
            match frame {
                Frame::Whole(frame) => self.on_frame(step, client, frame),
                Frame::Word(word) => self.on_word(step, client, word),
                Frame::Garbled => self.close(step.out, client, Close::AfterWriting),
            }
        }
        // Also by what is answered at once, ahead of its turn, it may be full.
        self.has_moved(client);
    }

    /// This server serves: clients may come. A leader gives every session its full time-out from now on.
    fn on_serving(&mut self, step: &mut Step<'_>, leads: bool, membership: &Membership) {
        step.state.becomes_whole();
        let tree = step.state.tree();
        if let Some(reason) = self.unfit(tree) {
            return self.halt(step, reason);
        }
        self.sessions.begin(step.wall_ms, tree.sessions().map(|(id, _)| id));
        step.out.extend(self.sessions.raise_bound().map(Output::Remember));
        self.sessions.forget();
        let voters =
            membership.members().iter().filter(|m| m.role == MemberRole::Participant).count();
        let observes = is_observer(membership, self.id);
        let parts = if voters > 2 && !observes { voters - 1 } else { 1 };
        self.outstanding_max = (self.options.outstanding_max / parts).max(1);
        if !leads {
            self.role = Role::Learner { observes };
            return;
        }
        let tracker = Tracker::new(self.tick, step.at, tree.sessions());
        let containers = Containers::new(step.at, step.wall_ms, &self.options);
        let alone = voters == 1;
        // Left by snapshots that ZooKeeper wrote while sessions were closed: they go the same way at every server.
        let (orphans, epoch): (Vec<_>, _) = (tree.orphans().collect(), self.epoch);
        for session in orphans {
            step.out.push(Output::Submit { epoch, request: close_of(session) });
        }
        self.role =
            Role::Leader(Box::new(Leading { tracker, alone, containers, marks: Marks::default() }));
    }

    /// It serves no longer. Every client with something under way finds another server, or this one again; what it has asked
    /// for may come to pass. The others wait here for the next leader, if that may come soon.
    pub(crate) fn retire(&mut self, step: &mut Step<'_>, since: Option<Instant>) {
        (self.role, self.retired) = (Role::Idle, since);
        self.part(step);
        self.telling.clear();
        self.submitted.clear();
        self.waiting.clear();
        self.syncs.clear();
        self.asked.clear();
        self.sessions.forget();
        self.pings_owed = 0;
    }

    /// The leader wants to know whom we have heard. If we stood still just now, what clients have sent meanwhile is read
    /// first: what is not in the answer was not heard.
    fn on_pinged(&mut self, step: &mut Step<'_>) {
        self.pings_owed += 1;
        self.answer_pings(step);
    }

    fn answer_pings(&mut self, step: &mut Step<'_>) {
        if self.pauses.awake_at(step.at, self.tick / 4).is_none() {
            for _ in 0..core::mem::take(&mut self.pings_owed) {
                step.out.push(Output::Touch(self.sessions.take_touched()));
            }
        }
    }

    /// When to step, if nothing happens before.
    fn due(&self) -> Option<Instant> {
        let awake_at = self.pauses.awake_at(self.pauses.stepped(), self.tick / 4);
        let pings = awake_at.filter(|_| self.pings_owed > 0);
        let of_role = match &self.role {
            Role::Leader(leading) => {
                let sessions = leading.tracker.deadline().map(|at| at.min(self.pauses.next()));
                let containers = leading.containers.due();
                Some(sessions.map_or(containers, |at| at.min(containers)))
            }
            Role::Learner { .. } => (!self.clients.is_empty()).then(|| self.pauses.next()),
            Role::Idle => self.between_until(),
        };
        let of_shares = self.shares.as_ref().and_then(|shares| shares.due(self.pauses.stepped()));
        let telling = (!self.telling.is_empty()).then(|| self.pauses.stepped());
        pings.into_iter().chain(of_role).chain(of_shares).chain(telling).min()
    }

    /// Closes sessions that have been silent for too long, and containers that are due.
    fn on_time(&mut self, step: &mut Step<'_>) {
        if self.pings_owed > 0 {
            self.answer_pings(step);
        }
        if self.between_until().is_some_and(|until| until <= step.at) {
            self.give_up_between(step);
        }
        let (awake_at, epoch) = (self.pauses.awake_at(step.at, self.tick), self.epoch);
        let Some(leading) = self.leading() else { return };
        let mut silent = leading.tracker.expire(step.at, awake_at);
        silent.retain(|session| !leading.marks.is_waited_for(*session));
        for session in silent {
            tracing::info!(
                event = "session.expired",
                session = format_args!("0x{session:x}"),
                "a session expires"
            );
            step.out.push(Output::Submit { epoch, request: close_of(session) });
        }
        for path in leading.containers.take_due(step.at, step.wall_ms, step.state.tree()) {
            step.out.push(Output::Submit { epoch, request: delete_container(&path) });
        }
    }
}

fn is_observer(membership: &Membership, id: ServerId) -> bool {
    membership.member(id).is_some_and(|member| member.role == MemberRole::Observer)
}

/// What closes a session that expires.
fn close_of(session: i64) -> Request {
    let id = RequestId { client: session, cxid: 0 };
    Request { id, op: op::CLOSE_SESSION, body: bytes::Bytes::new(), identities: None }
}

/// What deletes a container, if it is still due.
fn delete_container(path: &str) -> Request {
    let mut body = BytesMut::new();
    wire::put_path(&mut body, path);
    let id = RequestId { client: 0, cxid: 0 };
    Request { id, op: op::DELETE_CONTAINER, body: body.freeze(), identities: None }
}

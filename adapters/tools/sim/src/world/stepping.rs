//! A server starts, and takes a step: its event goes to the machine, what comes out to the checker and the world.

use std::time::Duration;

use quorate_core::config::Config;
use quorate_core::id::ServerId;
use quorate_core::input::{Event, Input};
use quorate_core::message::{Message, Packet};
use quorate_core::output::{Leadership, Output, Write};
use quorate_core::peer::Peer;
use quorate_core::reasons::Hangup;
use quorate_core::rng::Rng;
use quorate_core::status::Status;
use quorate_core::time::Instant;
use quorate_core::txn::Txn;
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};

use crate::application::Application;
use crate::brief::Brief;
use crate::checker::Standing;
use crate::faults::{CrashKind, FaultClass};
use crate::network::{hit, up_to};
use crate::record::{Found, What as Told};
use crate::rule::{Rule, Violation, broken};
use crate::world::World;
use crate::world::events::What;
use crate::world::front::Front;
use crate::world::reference::Reference;
use crate::world::server::Server;

impl World {
    pub(super) fn begin(&mut self, id: ServerId) -> Result<(), Violation> {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if server.peer.is_some() {
            return Ok(());
        }
        if !self.tries_disk(id) {
            return Ok(());
        }
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if let Some(refused) = server.disk.refused() {
            return broken(Rule::Start, id, format!("refuses to start: {refused}"));
        }
        server.incarnation += 1;
        // Every incarnation jitters in its own way, as if seeded by the system.
        let seed = (self.seed ^ (id.0 as u64) << 48).wrapping_add(server.incarnation);
        server.config.seed = Rng::new(seed).next_u64();
        if self.kinds_change && server.incarnation > 1 && server.changes_kind() {
            self.becomes_other(id);
        }
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if self.leases_change && server.incarnation > 1 && !self.network.old.contains_key(&id) {
            let set = self.lease_set.get(&id).copied();
            let drawn = || another_lease(&server.config, self.lease);
            server.config.lease = set.unwrap_or_else(drawn);
            self.coverage.hit(FaultClass::LeaseChanged);
        }
        let contents = server.disk.durable();
        let mut durable = contents.durable(server.config.history.window_count);
        durable.changes.extend(contents.told_by_state().filter(|_| self.tells));
        if server.reference.is_some() {
            server.reference = Some(Reference::default());
            self.network.listens(id, false);
        }
        self.trace.note(now, id, || Told::Start(Found::from(&durable)));
        self.checker.on_start(id, contents)?;
        if durable.current_epoch < durable.last_zxid.epoch() {
            self.coverage.hit(FaultClass::SyncInterrupted);
        }
        if let Some(membership) = &contents.membership {
            server.config.membership = membership.clone();
        }
        server.config.next_membership.clone_from(&contents.next_membership);
        if contents.next_membership.is_some() {
            self.coverage.hit(FaultClass::ChangeUnderway);
        }
        server.application = Application::new(contents.snapshots.last().cloned());
        let (tick, remembered) = (server.config.timing.tick, server.remembered);
        let is_java = self.network.is_java(id);
        let front = || Box::new(Front::new(id, tick, remembered, is_java));
        let label = contents.snapshots.last().map(|state| state.label);
        let went_on = server.front.is_some();
        // The process of a server whose disk has failed is the same.
        let stays = server.front.take().map(|mut front| {
            front.begins_again(label);
            front
        });
        server.front = self.crowd.as_ref().map(|_| stays.unwrap_or_else(front));
        let apart = server.front.is_some() && server.wall != 0;
        self.coverage.hits(FaultClass::WallClocksApart, u64::from(apart));
        (server.busy_until, server.asked, server.leadership) = (now, 0, None);
        (server.committed, server.handed) = (Zxid::ZERO, None);
        server.drafts.clear();
        if let Some(recorder) = &mut server.recorder {
            recorder.starts(&server.config, &durable);
        }
        let peer = match Peer::new(server.config.clone(), durable) {
            Ok(peer) => peer,
            Err(error) => panic!("server {id} refuses to start: {error}"),
        };
        server.brief = Some(Brief::of(&peer.status()));
        server.peer = Some(peer);
        if let Some(odd) = server.odd_clock() {
            self.coverage.hit(odd);
        }
        if server.incarnation > 1 {
            self.coverage.hit(FaultClass::Restart);
        } else if self.leader().is_some() {
            self.coverage.hit(FaultClass::LateStart);
        }
        self.network.host_up(now, id);
        self.enter_network();
        self.schedule_tick(id);
        if went_on {
            self.wake_front(id);
        }
        Ok(())
    }

    pub(super) fn on_tick(&mut self, id: ServerId, token: u64) -> Result<(), Violation> {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if server.token != token || server.tick.take().is_none() {
            return Ok(());
        }
        let shown = server.clock.shows(now);
        if server.deadline().is_some_and(|at| at <= shown) {
            return self.feed(id, Event::Tick);
        }
        self.schedule_tick(id);
        Ok(())
    }

    pub(super) fn schedule_tick(&mut self, id: ServerId) {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return };
        if server.paused {
            return;
        }
        let Some(at) = server.deadline() else { return };
        let at = server.clock.when(at).max(now);
        // A tick that is entered already for an earlier time will look again.
        if server.tick.is_none_or(|entered| at < entered) {
            server.token += 1;
            server.tick = Some(at);
            self.agenda.at(at, What::Tick { id, token: server.token });
        }
    }

    /// Lets a server hear of something, and carries out what it answers.
    pub(super) fn feed(&mut self, id: ServerId, event: Event) -> Result<(), Violation> {
        if self.withholds(id, &event) {
            self.enter_network();
            self.schedule_tick(id);
            return Ok(());
        }
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        let Some(peer) = server.peer.as_mut() else { return Ok(()) };
        if server.paused {
            server.backlog.push_back(event);
            return Ok(());
        }
        self.trace.note(now, id, || Told::Hear(event.clone()));
        self.checker.on_event(id, &event);
        self.trace.mix(&id);
        if let Event::Prepared { epoch, .. } = &event {
            let over = server.brief.is_none_or(|b| !b.serving || b.current_epoch != *epoch);
            self.coverage.hits(FaultClass::PreparedInVain, u64::from(over));
        }
        let up = if let Event::LinkUp(up) = &event { Some(up.link) } else { None };
        server.largest = server.largest.max(brought_by(&event));
        let shown = server.clock.shows(now);
        self.checker.leases.on_event(id, shown, &event);
        let input = Input { at: shown, event };
        self.trace.mix(&input);
        if let Some(recorder) = &mut server.recorder {
            recorder.hears(&input);
        }
        let mut outputs = std::mem::take(&mut self.outputs);
        peer.step_into(input, &mut outputs);
        if let Some(recorder) = &mut server.recorder {
            recorder.does(&outputs);
        }
        self.steps += 1;
        let status = peer.status();
        let served =
            server.brief.is_some_and(|b| b.serving && b.current_epoch == status.current_epoch);
        if status.serving && !served && status.accepted_epoch > status.current_epoch {
            self.coverage.hit(FaultClass::ServedBelowPromise);
        }
        server.keeps_room(id, &status, &outputs)?;
        let standing = Standing::of(server.brief, &status, &outputs);
        server.brief = Some(Brief::of(&status));
        self.trace.mix(&outputs);
        self.checker.on_step(id, &status, &outputs)?;
        for output in &outputs {
            self.coverage.note(output, standing.leads);
        }
        self.after_reference(id, up, &mut outputs);
        // What a leader commits is committed, whatever becomes of its outputs.
        if standing.commits() {
            self.judge_commits(id, standing)?;
        }
        let (fallen, again) = self.carry_out_all(id, &mut outputs, shown, standing)?;
        self.outputs = outputs;
        self.network.end_step(now);
        if !fallen {
            self.judge_commits(id, standing)?;
            self.will_say_applied(id);
        }
        self.enter_network();
        if fallen {
            return self.fall(id, again);
        }
        let bound = self.servers.get(&id).filter(|_| self.may_change);
        if let Some((server, peer)) = bound.and_then(|s| Some((s, s.peer.as_ref()?))) {
            self.checker.on_bound(id, &server.disk, peer.config())?;
        }
        self.schedule_tick(id);
        Ok(())
    }

    /// A server has crashed in the middle of a step.
    fn fall(&mut self, id: ServerId, again: bool) -> Result<(), Violation> {
        self.coverage.hit(FaultClass::CrashInsideStep);
        self.traps.remove(&id);
        let power = self.rng.below(2) == 0;
        self.crash(id.0, if power { CrashKind::Power } else { CrashKind::Process })?;
        if again {
            let wait = up_to(&mut self.rng, self.restart_max);
            self.start_after(id.0, wait);
        }
        Ok(())
    }

    /// Carries out what a step has said, in order. Returns whether the server has fallen meanwhile, and whether it is to
    /// start again by itself.
    fn carry_out_all(
        &mut self,
        id: ServerId,
        outputs: &mut Vec<Output>,
        shown: Instant,
        standing: Standing,
    ) -> Result<(bool, bool), Violation> {
        let (now, epoch) = (self.agenda.now(), standing.epoch);
        let crash_at = (!outputs.is_empty() && hit(&mut self.rng, self.crash_within))
            .then(|| usize::try_from(self.rng.below(outputs.len() as u64 + 1)).unwrap_or(0));
        for (at, output) in outputs.drain(..).enumerate() {
            let trap = self.traps.get(&id).copied().filter(|trap| (trap.at)(&output));
            if crash_at == Some(at) || trap.is_some_and(|trap| !trap.after) {
                return Ok((true, crash_at.is_some()));
            }
            if self.blows(id, &output) {
                return Ok((true, crash_at.is_some()));
            }
            self.trace.note(now, id, || Told::Do(output.clone()));
            self.checker.on_output(id, &output)?;
            self.checker.leases.on_output(id, shown, epoch, &output)?;
            self.carry_out(id, output, standing)?;
            if trap.is_some() {
                return Ok((true, crash_at.is_some()));
            }
        }
        Ok((false, false))
    }

    /// A leader lets those in who do what only one may do, with a lease if there is to be one: no other server
    /// counts on a lease. One whose last acknowledgement came after the next leadership had begun gets none. One that
    /// knows of no leases awaits none: when it wakes from a pause it begins with what it was told before.
    pub(crate) fn check_leases(&mut self, leader: ServerId, epoch: Epoch) -> Result<(), Violation> {
        let awaits = self.servers.get(&leader).is_some_and(|server| {
            // Where they are set anew its followers may have known of none when it was established.
            let has = server.leadership.is_some_and(|leadership| leadership.lease.is_some());
            server.config.lease.is_some() && (has || !self.leases_change)
        });
        let (now, hold) = (self.agenda.now(), self.leases_hold() && awaits);
        // Old servers promise nothing, and a server that was started without a lease counts on none.
        let old = !self.network.old.is_empty() || self.leases_change || self.kinds_change;
        let all_promise = self.lease.is_some() && !old;
        self.checker.leases.on_begun(leader, epoch, hold && all_promise)?;
        for (id, server) in self.servers.iter().filter(|(id, _)| **id != leader) {
            let Some(Leadership { lease, .. }) = server.leadership else { continue };
            self.coverage.hit(FaultClass::TwoLeaderships);
            let shown = server.clock.shows(now);
            if hold && lease.is_some_and(|until| until > shown) {
                let detail = format!("lets work begin while {id} counts on {lease:?}");
                return broken(Rule::Lease, leader, detail);
            }
        }
        Ok(())
    }
}

impl Server {
    /// What it holds beside its disk is bounded: besides what there is room for, the packet that came last; and twice the
    /// room for one that did not serve.
    fn keeps_room(
        &mut self,
        id: ServerId,
        status: &Status,
        outputs: &[Output],
    ) -> Result<(), Violation> {
        let follows = matches!(status.state, ServerState::Following | ServerState::Observing);
        let takes = outputs.iter().map(held_of).sum::<usize>();
        let waits = self.disk.unsynced_bytes() + takes;
        let most = self.config.limits.unsynced_bytes << self.fell_behind.min(16);
        if follows && takes > 0 && waits > most + self.largest {
            let detail = format!("holds {waits} bytes that are not on disk, and {most} may be");
            return broken(Rule::Bounds, id, detail);
        }
        let behind = |output: &Output| {
            matches!(output, Output::Hangup { reason: Hangup::DiskBehind { .. }, .. })
        };
        self.fell_behind += u32::from(outputs.iter().any(behind));
        if status.serving {
            self.fell_behind = 0;
        }
        Ok(())
    }
}

/// How many bytes of transactions are held because of this until they are on disk.
fn held_of(output: &Output) -> usize {
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others carry none")]
    match output {
        Output::Persist { write: Write::Append(txns), .. } => txns.iter().map(Txn::len).sum(),
        Output::Persist { write: Write::AppendStaged(txn), .. } => txn.len(),
        _ => 0,
    }
}

/// How many bytes of transactions a server is sent at once.
fn brought_by(event: &Event) -> usize {
    let Event::Received { message: Message::Packet(packet), .. } = event else { return 0 };
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others bring none")]
    match packet {
        Packet::Proposal(txn) | Packet::Inform(txn) => txn.len(),
        Packet::Proposals(txns) => txns.iter().map(Txn::len).sum(),
        _ => 0,
    }
}

/// What an operator sets who tries out leases: as long as at first, as short as can be, something between, or none.
fn another_lease(config: &Config, first: Option<Duration>) -> Option<Duration> {
    // A draw of its own, so that all others stay what they are.
    let mut rng = Rng::new(config.seed ^ 0x1ea5e);
    let tick = config.timing.tick;
    match rng.below(4) {
        0 => None,
        1 => first,
        2 => Some(tick),
        _ => first.map(|first| (first / 2).max(tick)),
    }
}

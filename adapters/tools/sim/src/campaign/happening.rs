//! The accidents of a run, carried out in the world when their time has come.

use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::rng::Rng;

use crate::campaign::accidents::{Accident, Kind};
use crate::campaign::case::{Purpose, pick};
use crate::campaign::run::Run;
use crate::ensemble::Ensemble;
use crate::faults::CrashKind;
use crate::network::up_to;
use crate::rule::Violation;
use crate::world::World;

impl Run {
    /// Lets the accidents happen, each followed by a while in which clients go on. Those that are left out
    /// leave their while behind, unless nothing comes after it.
    pub(super) fn meet_accidents(&mut self) -> Result<(), Violation> {
        let accidents = std::mem::take(&mut self.accidents);
        let allowed = |accident: &Accident| self.case.allows(accident.number);
        let last = accidents.iter().rposition(allowed).map_or(0, |last| last + 1);
        for mut accident in accidents.into_iter().take(last) {
            self.asking = self.case.fork(Purpose::Clients, accident.number);
            if self.case.allows(accident.number) {
                self.happens(&mut accident)?;
                self.ports_fail(accident.number)?;
                self.certificates_are_refused(accident.number);
                self.disks_fill(accident.number)?;
                self.is_poisoned(accident.number);
                self.is_drained(accident.number)?;
            }
            self.pass(accident.pause)?;
        }
        self.asking = self.case.fork(Purpose::Clients, 1);
        Ok(())
    }

    /// Lets an accident happen.
    fn happens(&mut self, accident: &mut Accident) -> Result<(), Violation> {
        let Accident { kind, rng, .. } = accident;
        let id = self.ids[pick(rng, self.ids.len())];
        let leader = self.world.leader().map_or(id, |leader| leader.0);
        let crash = if rng.below(2) == 0 { CrashKind::Process } else { CrashKind::Power };
        let soon = up_to(rng, Duration::from_secs(1));
        match kind {
            Kind::Crash => {
                self.world.crash(id, crash)?;
                if rng.below(4) > 0 {
                    self.world.start_after(id, soon);
                }
            }
            Kind::LeaderCrash => {
                self.world.crash(leader, crash)?;
                self.world.start_after(leader, soon);
            }
            Kind::EverybodyCrashes => self.crash_all(rng, crash)?,
            Kind::LongAbsence => self.crash_for_long(id, crash, soon)?,
            Kind::Wipe => self.wipe_an_observer(crash)?,
            Kind::Forgetting => self.forget(id, crash, soon)?,
            Kind::Partition => self.partition_at_random(rng),
            Kind::OneIsAlone => self.isolate(id),
            // It goes on for a while, and logs what no other server has.
            Kind::LeaderIsAlone => self.isolate(leader),
            Kind::OneWay => {
                let other = self.ids[pick(rng, self.ids.len())];
                self.world.block(id, other);
            }
            Kind::Star => self.world.star(id),
            Kind::Heal => self.heal_and_start(soon),
            Kind::Cuts => (0..=rng.below(8)).for_each(|_| self.world.cut_any()),
            Kind::BlackHole => self.world.black_hole(id, rng.below(2) == 0),
            Kind::Pause => {
                self.world.pause(id);
                self.pass(2 * soon)?;
                self.world.resume(id)?;
            }
            Kind::ClockJump => self.jump_a_clock(rng, id, leader)?,
            Kind::Suspension => self.suspend(if rng.below(2) == 0 { leader } else { id }, soon)?,
            Kind::FullDisk => {
                self.world.fill_disk(id, true);
                self.pass(2 * soon)?;
                self.world.fill_disk(id, false);
            }
            Kind::HangingDisk => {
                let which = if rng.below(2) == 0 { leader } else { id };
                self.world.hang_disk(which, true);
                self.pass(2 * soon)?;
                self.world.hang_disk(which, false);
            }
            Kind::Transfer => self.transfer(rng, leader, id, soon)?,
            Kind::MembersChange => self.change_members(rng, id)?,
            Kind::TwoChanges => {
                self.change_members(rng, id)?;
                self.pass(soon / 20)?;
                self.change_members(rng, leader)?;
            }
            Kind::ChangeAcrossSnapshot => self.change_across_snapshot(rng, crash, soon)?,
            Kind::TwoChangesAcrossSnapshot => {
                self.change_twice_across_snapshot(rng, crash, soon)?
            }
            Kind::ChangeThatIsCut => self.cut_a_change(rng, leader, crash, soon)?,
            Kind::WallClock => self.set_a_wall_clock(rng, id, leader),
            Kind::LeaderPause => self.leader_stands_still(rng, leader)?,
            Kind::LostAtExpiry => self.leader_is_lost_at_expiry(rng, leader, id)?,
            Kind::LeaderDisk => self.leader_cannot_write(rng, leader, soon)?,
        }
        Ok(())
    }

    fn crash_all(&mut self, rng: &mut Rng, crash: CrashKind) -> Result<(), Violation> {
        self.world.crash_all(&self.ids.clone(), crash)?;
        for id in self.ids.clone() {
            let wait = up_to(rng, Duration::from_millis(300));
            self.world.start_after(id, wait);
        }
        Ok(())
    }

    fn crash_for_long(
        &mut self,
        id: i64,
        crash: CrashKind,
        soon: Duration,
    ) -> Result<(), Violation> {
        self.world.crash(id, crash)?;
        self.pass(2 * soon)?;
        self.world.start(id);
        Ok(())
    }

    /// Only a server that is in no quorum may forget what it has.
    fn wipe_an_observer(&mut self, crash: CrashKind) -> Result<(), Violation> {
        let observer = self.world.ensemble().members().iter().find(|member| !member.voter);
        let may_be = |id: &i64| self.may_wipe && self.world.is_voter_to_none(*id);
        if let Some(id) = observer.map(|member| member.id.0).filter(may_be) {
            self.world.crash(id, crash)?;
            self.world.wipe(id);
            self.world.start(id);
        }
        Ok(())
    }

    fn forget(&mut self, id: i64, crash: CrashKind, soon: Duration) -> Result<(), Violation> {
        self.world.crash(id, crash)?;
        self.pass(2 * soon)?;
        if self.world.may_wipe(id) {
            self.world.forget(id);
        }
        self.world.start(id);
        Ok(())
    }

    fn partition_at_random(&mut self, rng: &mut Rng) {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for id in &self.ids {
            if rng.below(2) == 0 { left.push(*id) } else { right.push(*id) }
        }
        self.world.partition(&[&left, &right]);
    }

    fn heal_and_start(&mut self, soon: Duration) {
        self.world.heal();
        for id in self.ids.clone() {
            self.world.start_after(id, soon);
        }
    }

    fn jump_a_clock(&mut self, rng: &mut Rng, id: i64, leader: i64) -> Result<(), Violation> {
        let most = [50, 1_000, 30_000][pick(rng, 3)];
        let which = if rng.below(2) == 0 { leader } else { id };
        self.world.jump_clock(which, up_to(rng, Duration::from_millis(most)))
    }

    fn suspend(&mut self, id: i64, soon: Duration) -> Result<(), Violation> {
        self.world.suspend(id);
        self.pass(2 * soon)?;
        self.world.resume(id)
    }

    /// The leader is asked to give its leadership to a server, or to any; one of both may crash on the way.
    fn transfer(
        &mut self,
        rng: &mut Rng,
        leader: i64,
        id: i64,
        soon: Duration,
    ) -> Result<(), Violation> {
        let to = (rng.below(2) == 0).then_some(id);
        self.world.transfer(leader, to)?;
        let victim = if rng.below(2) == 0 { leader } else { id };
        self.may_crash_soon(rng, victim, 20);
        // The successor may be lost on the way to it.
        if rng.below(4) == 0 {
            self.pass(soon / 50)?;
            self.isolate(id);
        }
        Ok(())
    }

    fn change_across_snapshot(
        &mut self,
        rng: &mut Rng,
        crash: CrashKind,
        soon: Duration,
    ) -> Result<(), Violation> {
        let alone = rng.below(3) > 0;
        let (id, leader) = self.bring_up_by_snapshot(rng, crash, alone, soon)?;
        for _ in 0..=rng.below(3) {
            self.change_members(rng, leader)?;
            let wait = up_to(rng, soon / 8);
            self.pass(wait)?;
        }
        match rng.below(4) {
            0 => self.isolate(leader),
            1 => self.isolate(id),
            2 => {
                let with: Vec<i64> =
                    self.ids.iter().copied().filter(|_| rng.below(2) == 0).collect();
                let other = |id: &&i64| !with.contains(id);
                let rest: Vec<i64> = self.ids.iter().filter(other).copied().collect();
                self.world.partition(&[&with, &rest]);
            }
            _ => {}
        }
        Ok(())
    }

    fn change_twice_across_snapshot(
        &mut self,
        rng: &mut Rng,
        crash: CrashKind,
        soon: Duration,
    ) -> Result<(), Violation> {
        let (id, leader) = self.bring_up_by_snapshot(rng, crash, true, soon)?;
        self.change_one_twice(id, leader, soon)?;
        match rng.below(4) {
            0 => self.isolate(leader),
            1 => self.isolate(id),
            2 => self.may_crash_soon(rng, id, 30),
            _ => {}
        }
        Ok(())
    }

    fn cut_a_change(
        &mut self,
        rng: &mut Rng,
        leader: i64,
        crash: CrashKind,
        soon: Duration,
    ) -> Result<(), Violation> {
        self.isolate(leader);
        self.change_members(rng, leader)?;
        self.pass(soon / 10)?;
        self.world.crash(leader, crash)?;
        if rng.below(2) == 0 {
            self.pass(2 * soon)?;
            self.world.heal();
        }
        self.world.start_after(leader, soon);
        Ok(())
    }

    /// A server is missing for a while, and comes back to where only a snapshot may help: with something that it has
    /// `alone`, of an epoch that is over then. Returns it and the leader, as soon as the snapshot is on its way.
    fn bring_up_by_snapshot(
        &mut self,
        rng: &mut Rng,
        crash: CrashKind,
        alone: bool,
        soon: Duration,
    ) -> Result<(i64, i64), Violation> {
        let leader = self.world.leader().map_or(self.ids[0], |leader| leader.0);
        let others: Vec<_> = self.ids.iter().copied().filter(|id| *id != leader).collect();
        let mut id = others[pick(rng, others.len())];
        if alone {
            id = leader;
            self.isolate(leader);
            self.world.propose(leader, 1)?;
            self.pass(soon / 10)?;
        }
        self.world.crash(id, crash)?;
        self.world.heal();
        let noticed = self.noticing;
        self.world.run_until(|w| w.leader().is_some_and(|now| now.0 != id), noticed)?;
        let leader = self.world.leader().map_or(leader, |leader| leader.0);
        self.world.propose(leader, 1)?;
        self.pass(soon / 2)?;
        self.world.start(id);
        self.world.run_until(|w| w.is_receiving(id), soon)?;
        Ok((id, leader))
    }

    /// A member other than these becomes an observer and a voter again, the second only when the first is in force.
    fn change_one_twice(&mut self, id: i64, leader: i64, soon: Duration) -> Result<(), Violation> {
        let mut members = self.world.ensemble().members().iter();
        let other = members.find(|member| member.voter && ![id, leader].contains(&member.id.0));
        let Some(other) = other.map(|member| member.id) else { return Ok(()) };
        let in_force = |w: &World| {
            let disk = w.durable(leader);
            disk.and_then(|disk| disk.membership.as_ref()).map(Membership::version)
        };
        for voter in [false, true] {
            let before = in_force(&self.world);
            let change = Reconfiguration::change(vec![Ensemble::line_of(other, voter)], vec![]);
            self.world.reconfigure(leader, &change)?;
            self.world.run_until(|w| in_force(w) != before, soon)?;
        }
        Ok(())
    }

    fn isolate(&mut self, id: i64) {
        let others: Vec<i64> = self.ids.iter().copied().filter(|other| *other != id).collect();
        self.world.partition(&[&others, &[id]]);
    }

    /// Half of the time a server crashes somewhere on the way of what it was asked for.
    fn may_crash_soon(&mut self, rng: &mut Rng, victim: i64, outputs: u64) {
        let (drawn, outputs) = (rng.below(4), rng.below(outputs));
        let again = Some(up_to(rng, Duration::from_secs(1)));
        match drawn {
            0 => self.world.crash_after_outputs(victim, outputs, again),
            1 => self.world.crash_after_writes(victim, outputs / 2, again),
            _ => {}
        }
    }

    /// Some become voters, some observers, some leave; or one of them does.
    fn change_members(&mut self, rng: &mut Rng, at: i64) -> Result<(), Violation> {
        let (mut joining, mut leaving) = (Vec::new(), Vec::new());
        let alone = (rng.below(2) == 0).then(|| self.ids[pick(rng, self.ids.len())]);
        for id in self.ids.iter().filter(|id| alone.is_none_or(|alone| alone == **id)) {
            let is_member = self.world.ensemble().member(ServerId(*id)).is_some();
            let (voter, drawn) = (rng.below(3) > 0, rng.below(12));
            let changes = drawn < 4 || alone.is_some();
            if changes && is_member && drawn % 2 == 0 && (drawn == 0 || alone.is_some()) {
                leaving.push(ServerId(*id));
            } else if changes {
                joining.push(Ensemble::line_of(ServerId(*id), voter || !is_member));
            }
        }
        self.world.reconfigure(at, &Reconfiguration::change(joining, leaving))?;
        let any = self.ids[pick(rng, self.ids.len())];
        let victim = if rng.below(2) == 0 { any } else { at };
        self.may_crash_soon(rng, victim, 30);
        Ok(())
    }
}

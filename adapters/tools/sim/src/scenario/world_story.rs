//! A story among real servers.

use std::time::Duration;

use quorate_core::id::{ReadId, ServerId};
use quorate_core::input::{Event, Plane};
use quorate_core::message::{Message, Packet};
use quorate_core::output::{Output, Write};
use quorate_core::time::Instant;
use quorate_core::txn::RequestId;
use quorate_core::zxid::Zxid;

use super::Problem;
use super::command::{self, Command, Condition, Outcome, Point, Trap};
use super::condition::{Place, Whole, look};
use super::course::Course;
use super::hearing::Hearing;
use crate::brief::Brief;
use crate::disk::Contents;
use crate::faults::CrashKind;
use crate::ledger::{Answer, Outcome as Became};
use crate::record::Moment;
use crate::world::World;

/// A world, and what was asked for last.
#[derive(Debug)]
pub(super) struct WorldStory {
    pub(super) world: World,
    pub(super) write: Option<RequestId>,
    pub(super) read: Option<(i64, ReadId)>,
    hearing: Hearing,
}

impl WorldStory {
    pub(super) fn new(world: World) -> Self {
        Self { world, write: None, read: None, hearing: Hearing::default() }
    }

    /// Everything that happened since this was asked last.
    pub(super) fn listen(&mut self) -> Vec<Moment> {
        self.hearing.hear(self.world.record());
        self.hearing.take()
    }

    /// Crashes a server when it comes to a point.
    fn trap(&mut self, id: i64, trap: Trap) {
        let at: fn(&Output) -> bool = match trap.at {
            Point::AcceptedEpoch => {
                |output| matches!(output, Output::Persist { write: Write::AcceptedEpoch(_), .. })
            }
            Point::CurrentEpoch => {
                |output| matches!(output, Output::Persist { write: Write::CurrentEpoch(_), .. })
            }
            Point::Append => {
                |output| matches!(output, Output::Persist { write: Write::Append(_), .. })
            }
            Point::Install => {
                |output| matches!(output, Output::Persist { write: Write::Install { .. }, .. })
            }
            Point::LeaderInfo => |output| {
                matches!(
                    output,
                    Output::Send { message: Message::Packet(Packet::LeaderInfo { .. }), .. }
                )
            },
            Point::Ack => |output| {
                matches!(output, Output::Send { message: Message::Packet(Packet::Ack(_)), .. })
            },
            Point::NewLeader => |output| {
                matches!(
                    output,
                    Output::Send { message: Message::Packet(Packet::NewLeader { .. }), .. }
                )
            },
        };
        if trap.after {
            self.world.crash_after(id, at);
        } else {
            self.world.crash_before(id, at);
        }
    }
}

/// What can be asked where all servers are real.
impl Whole for WorldStory {
    fn applied(&self, id: i64) -> Option<u64> {
        self.world.applied(id).map(|state| state.count)
    }
    fn leader(&self) -> Option<i64> {
        self.world.leader().map(|id| id.0)
    }
    fn is_settled(&self, ids: &[i64]) -> bool {
        if ids.is_empty() {
            return self.world.is_settled();
        }
        self.world.is_settled_among(ids.iter().copied().map(command::id))
    }
    fn is_level(&self) -> bool {
        self.world.is_level()
    }
    fn links(&self, a: i64, b: i64, plane: Plane) -> usize {
        self.world.links_between(a, b, plane)
    }
    fn written(&self) -> Result<Outcome, Problem> {
        let none = || Problem::Impossible("no write was asked for".to_owned());
        let id = self.write.ok_or_else(none)?;
        Ok(match self.world.checker().outcome(id) {
            None | Some(Became::Asked) => Outcome::Open,
            Some(Became::Accepted) => Outcome::Accepted,
            Some(Became::Applied(zxid)) => Outcome::Done(Some(zxid)),
            Some(Became::Refused | Became::TooLong(_)) => Outcome::Refused,
            Some(Became::Lost) => Outcome::Lost,
            Some(Became::Unknown) => Outcome::Unknown,
        })
    }
    fn was_read(&self) -> Result<Outcome, Problem> {
        let none = || Problem::Impossible("no read was asked for".to_owned());
        let (id, read) = self.read.ok_or_else(none)?;
        Ok(match self.world.checker().answer(id, read) {
            None | Some(Answer::Asked) => Outcome::Open,
            Some(Answer::Read(zxid)) => Outcome::Done(Some(zxid)),
            Some(Answer::Refused) => Outcome::Refused,
        })
    }
}

impl WorldStory {
    /// These are servers of this world.
    ///
    /// # Errors
    ///
    /// If one is not.
    pub(super) fn all_known(&self, ids: &[i64]) -> Result<(), Problem> {
        let unknown = |id: &&i64| self.world.servers().all(|known| known != ServerId(**id));
        match ids.iter().find(unknown) {
            Some(id) => Err(Problem::Impossible(format!("there is no server {id}"))),
            None => Ok(()),
        }
    }

    /// This is one of them, and it runs.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub(super) fn up(&self, id: i64) -> Result<(), Problem> {
        self.known(id)?;
        if self.world.is_up(id) {
            Ok(())
        } else {
            Err(Problem::Impossible(format!("server {id} is down")))
        }
    }

    /// This is one of them, and it does not run.
    ///
    /// # Errors
    ///
    /// If it does.
    pub(super) fn down(&self, id: i64) -> Result<(), Problem> {
        self.known(id)?;
        if self.world.is_up(id) {
            return Err(Problem::Impossible(format!("server {id} runs")));
        }
        Ok(())
    }

    /// This is one of them and runs, and stands still or not.
    ///
    /// # Errors
    ///
    /// If it is not so.
    pub(super) fn standing_still(&self, id: i64, still: bool) -> Result<(), Problem> {
        self.up(id)?;
        match (self.world.is_paused(id), still) {
            (true, false) => Err(Problem::Impossible(format!("server {id} stands still already"))),
            (false, true) => Err(Problem::Impossible(format!("server {id} does not stand still"))),
            (true, true) | (false, false) => Ok(()),
        }
    }
}

/// What a command does here.
impl WorldStory {
    /// Carries a command out.
    ///
    /// # Errors
    ///
    /// If it is for another kind of story, or cannot be carried out as things are, or a rule is broken.
    pub(super) fn carry_out(&mut self, command: &Command) -> Result<(), Problem> {
        match command {
            Command::Start(ids) => self.start(ids)?,
            Command::Crash(ids, kind) => self.crash(ids, *kind)?,
            Command::Restart(ids, _) => {
                self.crash(ids, CrashKind::Process)?;
                self.start(ids)?;
            }
            Command::Trap(id, trap) => self.set_trap(*id, *trap)?,
            Command::Wipe(id) => {
                self.down(*id)?;
                self.world.wipe(*id);
            }
            Command::Pause(id) => {
                self.standing_still(*id, false)?;
                self.world.pause(*id);
            }
            Command::Resume(id) => {
                self.standing_still(*id, true)?;
                self.world.resume(*id)?;
            }
            Command::Cut(ways) => self.cut(ways)?,
            Command::Split(groups) => self.split(groups)?,
            Command::Break(a, b) => {
                self.all_known(&[*a, *b])?;
                self.world.cut(*a, *b);
            }
            Command::Heal => self.world.heal(),
            Command::NonMembers { crowd, to, plane, pieces } => {
                self.known(*to)?;
                self.world.visit(*to, *plane, pieces, *crowd);
            }
            Command::BlackHole(id, on) => {
                self.known(*id)?;
                self.world.black_hole(*id, *on);
            }
            Command::Advertise(id, address) => {
                self.known(*id)?;
                self.world.advertise(*id, address.clone());
            }
            Command::Write(..)
            | Command::Read(_)
            | Command::Transfer(..)
            | Command::Reconfigure(..)
            | Command::StepDown(_) => self.ask(command)?,
            Command::WriteHere
            | Command::Hears { .. }
            | Command::HangsUp(_)
            | Command::Connects(_)
            | Command::Snapshot(_)
            | Command::Sync => {
                return Err(Problem::Impossible("only on a stage can that be done".to_owned()));
            }
            Command::Stop(_)
            | Command::CutOff(_)
            | Command::BreakOff(_)
            | Command::CallFault { .. }
            | Command::Delete(_)
            | Command::End(_)
            | Command::Linger(_)
            | Command::Guards(..) => return Err(Problem::needs_a_store()),
        }
        // What happens at once is told at once.
        self.at_once()
    }

    /// A client or an operator asks a server for something.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the others are carried out where this is called"
    )]
    fn ask(&mut self, command: &Command) -> Result<(), Problem> {
        match command {
            Command::Write(id, cell) => {
                self.up(*id)?;
                self.write = self.world.propose(*id, *cell)?;
            }
            Command::Read(id) => {
                self.up(*id)?;
                self.read = self.world.read(*id)?.map(|read| (*id, read));
            }
            Command::Transfer(from, to) => {
                self.up(*from)?;
                to.map_or(Ok(()), |to| self.known(to))?;
                self.world.transfer(*from, *to)?;
            }
            Command::Reconfigure(id, asked) => {
                self.up(*id)?;
                self.write = self.world.reconfigure(*id, asked)?;
            }
            Command::StepDown(id) => {
                self.up(*id)?;
                self.world.tell(*id, Event::StepDown)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, ids: &[i64]) -> Result<(), Problem> {
        ids.iter().try_for_each(|id| self.down(*id))?;
        self.world.start_all(ids.iter().copied());
        Ok(())
    }

    fn crash(&mut self, ids: &[i64], kind: CrashKind) -> Result<(), Problem> {
        ids.iter().try_for_each(|id| self.up(*id))?;
        for id in ids {
            self.world.crash(*id, kind)?;
        }
        Ok(())
    }

    fn set_trap(&mut self, id: i64, trap: Trap) -> Result<(), Problem> {
        self.known(id)?;
        if self.world.is_trapped(id) {
            let why = format!("server {id} has a trap before it already");
            return Err(Problem::Impossible(why));
        }
        self.trap(id, trap);
        Ok(())
    }

    fn cut(&mut self, ways: &[(i64, i64)]) -> Result<(), Problem> {
        for (from, to) in ways {
            self.all_known(&[*from, *to])?;
            self.world.block(*from, *to);
        }
        Ok(())
    }

    fn split(&mut self, groups: &[Vec<i64>]) -> Result<(), Problem> {
        groups.iter().try_for_each(|group| self.all_known(group))?;
        let groups: Vec<&[i64]> = groups.iter().map(Vec::as_slice).collect();
        self.world.partition(&groups);
        Ok(())
    }
}

impl Place for WorldStory {
    fn known(&self, id: i64) -> Result<(), Problem> {
        self.all_known(&[id])
    }

    fn brief(&self, id: i64) -> Result<Option<Brief>, Problem> {
        self.known(id)?;
        Ok(self.world.brief(id))
    }

    fn contents(&self, id: i64) -> Result<&Contents, Problem> {
        let unknown = || Problem::Impossible(format!("there is no server {id}"));
        self.world.durable(id).ok_or_else(unknown)
    }

    fn committed(&self) -> Zxid {
        self.world.checker().committed()
    }

    fn world(&self) -> Result<&dyn Whole, Problem> {
        Ok(self)
    }
}

impl Course for WorldStory {
    fn now(&self) -> Instant {
        self.world.now()
    }

    fn go_on(&mut self, most: Duration) -> Result<(), Problem> {
        let mut steps = 0;
        let done = self.world.run_until(|_| std::mem::replace(&mut steps, 1) == 1, most);
        self.hearing.hear(self.world.record());
        done?;
        Ok(())
    }

    fn at_once(&mut self) -> Result<(), Problem> {
        Ok(self.world.run_for(Duration::ZERO)?)
    }

    fn look(&self, condition: &Condition) -> Result<(bool, String), Problem> {
        look(self, condition)
    }
}

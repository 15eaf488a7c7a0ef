//! Plays a story, command by command.

use std::collections::BTreeSet;
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::input::Event;

use super::command::{Command, Setting};
use super::condition::test;
use super::electing::Electing;
use super::settings::Settings;
use super::staging::Staging;
use super::worldly::{Worldly, known};
use super::{Problem, Step};
use crate::disk::Survival;
use crate::record::{Happening, Moment, Teller, Topic};
use crate::world::CrashKind;

/// How often a condition that must hold all the time is tested.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What is told unless a story says otherwise.
const TOPICS: [Topic; 3] = [Topic::Fate, Topic::Votes, Topic::Phases];

/// Where a story takes place.
#[derive(Debug)]
enum Cast {
    World(Box<Worldly>),
    Stage(Box<Staging>),
    Store(Box<Electing>),
}

/// Plays one story.
#[derive(Debug)]
pub struct Player {
    settings: Settings,
    cast: Option<Cast>,
    /// How much of the record has been told.
    heard: usize,
    teller: Teller,
    topics: BTreeSet<Topic>,
    told: Vec<Moment>,
}

impl Default for Player {
    fn default() -> Self {
        Self::new()
    }
}

impl Player {
    /// Nothing has happened yet.
    pub fn new() -> Self {
        Self {
            settings: Settings::default(),
            cast: None,
            heard: 0,
            teller: Teller::default(),
            topics: TOPICS.into_iter().collect(),
            told: Vec::new(),
        }
    }

    /// The same, in a world in which ways, disks and applications take their own time, and whatever is left to
    /// chance comes from this seed. What the story sets, and what it waits for, is as it says.
    pub fn perturbed(seed: u64) -> Self {
        let mut player = Self::new();
        player.settings.perturb(seed);
        player
    }

    /// Carries out one command; returns what is to be told of it, also if it failed.
    pub fn play(&mut self, step: &Step) -> (Vec<Moment>, Result<(), Problem>) {
        let done = self.carry_out(&step.command, &step.text);
        let moments = self.listen();
        let shown = |moment: &&Moment| self.topics.contains(&moment.topic());
        let shown = moments.iter().filter(shown).cloned().collect();
        self.told.extend(moments);
        (shown, done)
    }

    /// What is asked when the last command is done: that all has happened that was prepared to.
    ///
    /// # Errors
    ///
    /// What has not.
    pub fn end(&self) -> Result<(), Problem> {
        let unused = match &self.cast {
            Some(Cast::World(cast)) => {
                let trapped = cast.world.trapped();
                trapped.map(|id| format!("{id} has not come to its trap"))
            }
            Some(Cast::Store(cast)) => cast.unused(),
            Some(Cast::Stage(_)) | None => None,
        };
        match unused {
            Some(found) => {
                let expected = "what was prepared to happen".to_owned();
                Err(Problem::Otherwise { expected, found })
            }
            None => Ok(()),
        }
    }

    /// Everybody in the story, ascending.
    pub fn servers(&self) -> Vec<ServerId> {
        if let Some(Cast::Store(cast)) = &self.cast {
            return cast.ids().map(ServerId).collect();
        }
        let all = self.settings.ensemble.ids().chain(self.settings.spares.iter().copied());
        let all: BTreeSet<_> = all.collect();
        all.into_iter().collect()
    }

    /// Everything that happened, about whatever.
    pub fn moments(&self) -> &[Moment] {
        &self.told
    }

    /// The trace of some moments, as it stands in a file.
    pub fn trace(moments: &[Moment]) -> Vec<String> {
        moments.iter().map(|moment| format!("{:>9}  {moment}", moment.time())).collect()
    }

    fn listen(&mut self) -> Vec<Moment> {
        let record = match &mut self.cast {
            None => return Vec::new(),
            Some(Cast::Store(cast)) => return cast.listen(),
            Some(Cast::World(cast)) => cast.world.record(),
            Some(Cast::Stage(cast)) => match cast.record() {
                Some(record) => record,
                None => return Vec::new(),
            },
        };
        let teller = &mut self.teller;
        let mut new: Vec<Moment> = Vec::new();
        for moment in record.after(self.heard).flat_map(|entry| teller.tell(entry)) {
            if !new.last_mut().is_some_and(|last| takes_in(last, &moment)) {
                new.push(moment);
            }
        }
        self.heard = record.count();
        new
    }

    fn carry_out(&mut self, command: &Command, text: &str) -> Result<(), Problem> {
        match (command, &mut self.cast) {
            (Command::Show(topics), _) => {
                self.topics = topics.iter().copied().collect();
                Ok(())
            }
            (Command::Set(Setting::DiskByHand), Some(Cast::Stage(cast))) => cast.by_hand(),
            (Command::Set(setting), None) => {
                self.settings.set(setting);
                Ok(())
            }
            (Command::Set(Setting::Servers(ensemble)), Some(Cast::World(cast))) => {
                cast.world.agree_on(ensemble.clone());
                Ok(())
            }
            (Command::Set(Setting::View(id, view)), Some(Cast::World(cast))) => {
                if cast.world.is_up(*id) || !cast.world.show(*id, view) {
                    let why = format!("server {id} runs, or there is none");
                    return Err(Problem::Impossible(why));
                }
                Ok(())
            }
            (Command::Set(_) | Command::Stage(_) | Command::Elect(..), Some(_)) => {
                Err(Problem::Impossible("something has started already".to_owned()))
            }
            (Command::Stage(id), None) => {
                if self.settings.ensemble.seat(ServerId(*id)).is_none() {
                    return Err(Problem::Impossible(format!("there is no server {id}")));
                }
                let stage = Staging::new(*id, self.settings.stage(*id));
                self.cast = Some(Cast::Stage(Box::new(stage)));
                Ok(())
            }
            (Command::Elect(count, means), None) => {
                let cast = Electing::new(*count, *means, &self.settings);
                self.cast = Some(Cast::Store(Box::new(cast)));
                Ok(())
            }
            (_, None) => {
                let world = Worldly::new(self.settings.world());
                self.cast = Some(Cast::World(Box::new(world)));
                self.carry_out(command, text)
            }
            (_, Some(Cast::Store(cast))) => cast.carry_out(command, about(text)),
            (_, Some(Cast::World(cast))) => in_world(cast, command, text),
            (_, Some(Cast::Stage(cast))) => on_stage(cast, command, text, self.settings.survival()),
        }
    }
}

/// Whether the ways of one server that open or close at once are told as one.
fn takes_in(last: &mut Moment, next: &Moment) -> bool {
    let same = (last.at, last.server) == (next.at, next.server);
    match (&mut last.what, &next.what) {
        (Happening::Way { to, open }, Happening::Way { to: more, open: too })
            if same && open == too =>
        {
            to.extend(more);
            true
        }
        _ => false,
    }
}

fn no_store() -> Problem {
    Problem::Impossible("only candidates that elect through a store can do that".to_owned())
}

/// The condition in a command, as it is written.
fn about(text: &str) -> &str {
    text.split_once(' ').map_or(text, |(_, condition)| condition)
}

fn in_world(cast: &mut Worldly, command: &Command, text: &str) -> Result<(), Problem> {
    let world = &mut cast.world;
    match command {
        Command::Start(ids) => {
            known(world, ids)?;
            world.start_all(ids.iter().copied());
        }
        Command::Crash(ids, kind) => {
            known(world, ids)?;
            for id in ids {
                world.crash(*id, *kind)?;
            }
        }
        Command::Restart(ids, _) => {
            known(world, ids)?;
            for id in ids {
                world.crash(*id, CrashKind::Process)?;
            }
            world.start_all(ids.iter().copied());
        }
        Command::Trap(id, trap) => {
            if world.is_trapped(*id) {
                let why = format!("server {id} has a trap before it already");
                return Err(Problem::Impossible(why));
            }
            cast.trap(*id, *trap);
        }
        Command::Wipe(id) if world.is_up(*id) => {
            return Err(Problem::Impossible(format!("server {id} runs")));
        }
        Command::Wipe(id) => world.wipe(*id),
        Command::Pause(id) => world.pause(*id),
        Command::Resume(id) => world.resume(*id)?,
        Command::Cut(ways) => ways.iter().for_each(|(from, to)| world.block(*from, *to)),
        Command::Split(groups) => {
            let groups: Vec<&[i64]> = groups.iter().map(Vec::as_slice).collect();
            world.partition(&groups);
        }
        Command::Break(a, b) => world.cut(*a, *b),
        Command::Heal => world.heal(),
        Command::Strangers { crowd, to, plane, pieces } => {
            known(world, &[*to])?;
            world.visit(*to, *plane, pieces, *crowd);
        }
        Command::BlackHole(id, on) => world.black_hole(*id, *on),
        Command::Advertise(id, address) => world.advertise(*id, address.clone()),
        Command::Write(id, cell) => {
            cast.write = world.propose(*id, *cell)?;
            if cast.write.is_none() {
                return Err(Problem::Impossible(format!("server {id} is down")));
            }
        }
        Command::Read(id) => cast.read = world.read(*id)?.map(|read| (*id, read)),
        Command::HandOver(from, to) => world.hand_over(*from, *to)?,
        Command::Reconfigure(id, asked) => cast.write = world.reconfigure(*id, asked)?,
        Command::StepDown(id) => world.tell(*id, Event::StepDown)?,
        Command::Run(time) => return Ok(world.run_for(*time)?),
        Command::Expect(condition) => return test(&*cast, condition, about(text)),
        Command::Until(condition, limit) => {
            let end = world.now() + *limit;
            loop {
                match test(&*cast, condition, about(text)) {
                    Ok(()) => return Ok(()),
                    Err(problem) if cast.world.now() >= end => return Err(problem),
                    Err(_) => {}
                }
                let left = end - cast.world.now();
                let mut steps = 0;
                cast.world.run_until(|_| std::mem::replace(&mut steps, 1) == 1, left)?;
            }
        }
        Command::Holds(condition, time) => {
            let end = world.now() + *time;
            while cast.world.now() < end {
                test(&*cast, condition, about(text))?;
                cast.world.run_for(LOOK_EVERY.min(end - cast.world.now()))?;
            }
            return test(&*cast, condition, about(text));
        }
        Command::Hears(..)
        | Command::HangsUp(_)
        | Command::Connects(_)
        | Command::Snapshot(_)
        | Command::Sync
        | Command::Set(_)
        | Command::Stage(_)
        | Command::Show(_) => {
            return Err(Problem::Impossible("only a stage has scripted servers".to_owned()));
        }
        Command::Elect(..)
        | Command::Stop(_)
        | Command::CutOff(_)
        | Command::BreakOff(_)
        | Command::Mishap { .. }
        | Command::Delete(_)
        | Command::End(_)
        | Command::Linger(_)
        | Command::Guards(..) => return Err(no_store()),
    }
    // What happens at once is told at once.
    Ok(cast.world.run_for(Duration::ZERO)?)
}

fn on_stage(
    cast: &mut Staging,
    command: &Command,
    text: &str,
    survival: Survival,
) -> Result<(), Problem> {
    match command {
        Command::Hears(peer, line) => cast.hears(*peer, line),
        Command::HangsUp(peer) => cast.hangs_up(*peer),
        Command::Connects(peer) => cast.connects(*peer),
        Command::Snapshot(label) => cast.snapshot(*label),
        Command::Sync => cast.sync(),
        Command::Write(0, _) => cast.write(),
        Command::Restart(_, chosen) => {
            cast.restart(chosen.unwrap_or(survival));
            Ok(())
        }
        Command::Run(time) => cast.pass(*time),
        Command::Expect(condition) => test(cast, condition, about(text)),
        Command::Until(condition, limit) => {
            let mut left = *limit;
            while let Err(problem) = test(cast, condition, about(text)) {
                if left.is_zero() {
                    return Err(problem);
                }
                let time = LOOK_EVERY.min(left);
                cast.pass(time)?;
                left -= time;
            }
            Ok(())
        }
        Command::Holds(condition, time) => {
            let mut left = *time;
            while !left.is_zero() {
                test(cast, condition, about(text))?;
                let time = LOOK_EVERY.min(left);
                cast.pass(time)?;
                left -= time;
            }
            test(cast, condition, about(text))
        }
        Command::Set(_)
        | Command::Stage(_)
        | Command::Show(_)
        | Command::Start(_)
        | Command::Crash(..)
        | Command::Trap(..)
        | Command::Wipe(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Cut(_)
        | Command::Split(_)
        | Command::Break(..)
        | Command::Heal
        | Command::Strangers { .. }
        | Command::BlackHole(..)
        | Command::Advertise(..)
        | Command::Write(..)
        | Command::Read(_)
        | Command::HandOver(..)
        | Command::Reconfigure(..)
        | Command::StepDown(_) => {
            Err(Problem::Impossible("on a stage only one server is real".to_owned()))
        }
        Command::Elect(..)
        | Command::Stop(_)
        | Command::CutOff(_)
        | Command::BreakOff(_)
        | Command::Mishap { .. }
        | Command::Delete(_)
        | Command::End(_)
        | Command::Linger(_)
        | Command::Guards(..) => Err(no_store()),
    }
}

//! Plays a story, command by command.

use std::collections::BTreeSet;

use quorate_core::id::ServerId;

use super::command::{Command, Demand, Setting};
use super::course::{Course, Time, test};
use super::settings::Settings;
use super::stage_story::StageStory;
use super::store_story::StoreStory;
use super::world_story::WorldStory;
use super::{Problem, Step};
use crate::disk::Survival;
use crate::record::{Moment, Topic};

/// What is told unless a story says otherwise.
const TOPICS: [Topic; 3] = [Topic::Fate, Topic::Votes, Topic::Phases];

/// Where a story takes place.
#[derive(Debug)]
enum Cast {
    World(Box<WorldStory>),
    Stage(Box<StageStory>),
    Store(Box<StoreStory>),
}

/// Plays one story.
#[derive(Debug)]
pub struct Player {
    settings: Settings,
    cast: Option<Cast>,
    /// How much may still happen.
    time: Time,
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
            time: Time::default(),
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

    /// The same, if no more than this happens: what is left when it has, is refused.
    #[must_use]
    pub fn at_most(mut self, events: u32) -> Self {
        self.time = Time::of(events);
        self
    }

    /// Carries out one command; returns what is to be told of it, also if it failed.
    pub fn play(&mut self, step: &Step) -> (Vec<Moment>, Result<(), Problem>) {
        let done = self.carry_out(&step.demand);
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
        match &mut self.cast {
            None => Vec::new(),
            Some(Cast::Store(cast)) => cast.listen(),
            Some(Cast::World(cast)) => cast.listen(),
            Some(Cast::Stage(cast)) => cast.listen(),
        }
    }

    fn carry_out(&mut self, demand: &Demand) -> Result<(), Problem> {
        match demand {
            Demand::Show(topics) => {
                self.topics = topics.iter().copied().collect();
                Ok(())
            }
            Demand::Set(setting) => self.set(setting),
            Demand::Stage(id) => {
                self.begins()?;
                let stage = self.settings.stage(*id)?;
                let all = self.servers();
                self.cast = Some(Cast::Stage(Box::new(StageStory::new(*id, all, stage))));
                Ok(())
            }
            Demand::Elect(count, means) => {
                self.begins()?;
                let cast = StoreStory::new(*count, *means, &self.settings)?;
                self.cast = Some(Cast::Store(Box::new(cast)));
                Ok(())
            }
            Demand::Run(time) => {
                let (cast, left) = self.cast()?;
                left.run(cast.course(), *time)
            }
            Demand::Until(expected, limit) => {
                let (cast, left) = self.cast()?;
                left.until(cast.course(), expected, *limit)
            }
            Demand::Holds(expected, time) => {
                let (cast, left) = self.cast()?;
                left.hold(cast.course(), expected, *time)
            }
            Demand::Expect(expected) => test(self.cast()?.0.course(), expected),
            Demand::Do(command) => {
                let survival = self.settings.survival();
                match self.cast()?.0 {
                    Cast::World(cast) => cast.carry_out(command),
                    Cast::Stage(cast) => on_stage(cast, command, survival),
                    Cast::Store(cast) => cast.carry_out(command),
                }
            }
        }
    }

    fn set(&mut self, setting: &Setting) -> Result<(), Problem> {
        match (&mut self.cast, setting) {
            (None, setting) => {
                self.settings.set(setting);
                Ok(())
            }
            (Some(Cast::Stage(cast)), Setting::DiskByHand) => cast.by_hand(),
            (Some(Cast::World(cast)), Setting::Servers(ensemble)) => {
                let ids: Vec<i64> = ensemble.ids().map(|id| id.0).collect();
                cast.all_known(&ids)?;
                cast.world.agree_on(ensemble.clone());
                Ok(())
            }
            (Some(Cast::World(cast)), Setting::View(id, view)) => {
                if cast.world.is_up(*id) || !cast.world.show(*id, view) {
                    let why = format!("server {id} runs, or there is none");
                    return Err(Problem::Impossible(why));
                }
                Ok(())
            }
            (Some(_), _) => self.begins(),
        }
    }

    /// What comes before everything else.
    fn begins(&self) -> Result<(), Problem> {
        match &self.cast {
            None => Ok(()),
            Some(_) => Err(Problem::Impossible("something has started already".to_owned())),
        }
    }

    /// Where the story takes place, and how much may still happen there; a world, if nothing else was asked for.
    fn cast(&mut self) -> Result<(&mut Cast, &mut Time), Problem> {
        let cast = match self.cast.take() {
            Some(cast) => cast,
            None => Cast::World(Box::new(WorldStory::new(self.settings.world()?))),
        };
        Ok((self.cast.insert(cast), &mut self.time))
    }
}

impl Cast {
    fn course(&mut self) -> &mut dyn Course {
        match self {
            Self::World(cast) => &mut **cast,
            Self::Stage(cast) => &mut **cast,
            Self::Store(cast) => &mut **cast,
        }
    }
}

fn on_stage(cast: &mut StageStory, command: &Command, survival: Survival) -> Result<(), Problem> {
    match command {
        Command::Hears { id, peer, line } => {
            cast.real(*id)?;
            cast.hears(*peer, line)
        }
        Command::HangsUp(peer) => cast.hangs_up(*peer),
        Command::Connects(peer) => cast.connects(*peer),
        Command::Snapshot(label) => cast.snapshot(*label),
        Command::Sync => cast.sync(),
        Command::WriteHere => cast.write(),
        Command::Restart(ids, chosen) => {
            ids.iter().try_for_each(|id| cast.real(*id))?;
            cast.restart(chosen.unwrap_or(survival));
            Ok(())
        }
        Command::Start(_)
        | Command::Crash(..)
        | Command::Trap(..)
        | Command::Wipe(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Cut(_)
        | Command::Split(_)
        | Command::Break(..)
        | Command::Heal
        | Command::NonMembers { .. }
        | Command::BlackHole(..)
        | Command::Advertise(..)
        | Command::Write(..)
        | Command::Read(_)
        | Command::Transfer(..)
        | Command::Reconfigure(..)
        | Command::StepDown(_) => {
            Err(Problem::Impossible("on a stage only one server is real".to_owned()))
        }
        Command::Stop(_)
        | Command::CutOff(_)
        | Command::BreakOff(_)
        | Command::CallFault { .. }
        | Command::Delete(_)
        | Command::End(_)
        | Command::Linger(_)
        | Command::Guards(..) => Err(Problem::needs_a_store()),
    }
}

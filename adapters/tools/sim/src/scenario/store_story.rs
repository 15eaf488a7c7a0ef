//! A story of candidates that elect through a store; it is modelled, they are real.

use std::time::Duration;

use quorate_core::recipe::ConfigError;
use quorate_core::recipe::lease::{self, Expiry};
use quorate_core::recipe::offer::{self, Naming};
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::vote::ServerState;

use super::Problem;
use super::command::{Being, Command, Condition, Means};
use super::course::Course;
use super::settings::Settings;
use crate::faults::CrashKind;
use crate::record::Moment;
use crate::store::{Election, Lease, Offers, Plan, Recipe, Stand};

/// An election, and how much of it was told.
#[derive(Debug)]
pub(super) struct StoreStory {
    election: Election<Box<dyn Recipe>>,
    candidates: i64,
    heard: usize,
}

impl StoreStory {
    /// So many candidates that use these means.
    ///
    /// # Errors
    ///
    /// If something was set with which they cannot work.
    pub(super) fn new(candidates: i64, means: Means, settings: &Settings) -> Result<Self, Problem> {
        settings.fit(candidates, means)?;
        let plan = Plan {
            seed: settings.seed(),
            timeout: settings.session,
            counter: settings.counter,
            drift: if settings.is_perturbed() { drift(settings) } else { 0 },
            // In etcd a lease is on no connection.
            late: matches!(means, Means::Offers(Naming::Lease)),
            ..Plan::quiet(usize::try_from(candidates).unwrap_or(0))
        };
        let even = !settings.is_perturbed();
        let candidate = |number: usize, seed| -> Result<Box<dyn Recipe>, ConfigError> {
            let identity = (number + 1).to_string();
            let unique = (number as u128 + 1) << 64;
            Ok(match means {
                Means::Offers(naming) => Box::new(Offers::new(offer::Config {
                    naming,
                    margin: settings.margin,
                    seed,
                    ..offer::Config::new(identity, unique)
                })?),
                Means::Lease(expiry) => {
                    let own = settings.leases.get(&number).filter(|_| expiry == Expiry::Observed);
                    let duration = own.copied().unwrap_or(settings.session);
                    Box::new(Lease::new(lease::Config {
                        expiry,
                        margin: settings.margin,
                        seed,
                        ..lease::Config::new(identity, unique, duration)
                    })?)
                }
            })
        };
        let mut election = Election::scripted(plan, even, candidate)
            .map_err(|error| Problem::Impossible(error.to_string()))?;
        if matches!(means, Means::Offers(Naming::Lease)) {
            election.give_root();
        }
        Ok(Self { election, candidates, heard: 0 })
    }

    /// The numbers of all candidates.
    pub(super) fn ids(&self) -> impl Iterator<Item = i64> + use<> {
        1..=self.candidates
    }

    /// What has happened since this was asked last.
    pub(super) fn listen(&mut self) -> Vec<Moment> {
        let moments = self.election.moments();
        let new = moments.get(self.heard..).unwrap_or_default().to_vec();
        self.heard = moments.len();
        new
    }

    pub(super) fn carry_out(&mut self, command: &Command) -> Result<(), Problem> {
        match command {
            Command::Start(ids) => self.tell_to(ids, true)?,
            Command::Stop(ids) => self.tell_to(ids, false)?,
            Command::Crash(_, CrashKind::Power) => {
                let why = "candidates have no power to lose, only processes that end";
                return Err(Problem::Impossible(why.to_owned()));
            }
            Command::Crash(ids, CrashKind::Process) => {
                for id in ids {
                    self.election.kill(self.up(*id)?);
                }
            }
            Command::Pause(id) => {
                self.election.pause(self.one(*id, |it| !it.paused, "stands still")?);
            }
            Command::Resume(id) => {
                let client = self.one(*id, |it| it.paused, "does not stand still")?;
                self.election.unpause(client)?;
            }
            Command::CutOff(id) => {
                self.election.cut(self.one(*id, |it| !it.away, "is cut off already")?);
            }
            Command::BreakOff(id) => {
                self.election.break_off(self.one(*id, |it| it.linked, "has no connection")?);
            }
            Command::Heal => self.heal()?,
            Command::CallFault { id, kind, part, what } => {
                let client = self.up(*id)?;
                if self.election.trap_of(client).is_some() {
                    let why = format!("candidate {id} has a fault before it already");
                    return Err(Problem::Impossible(why));
                }
                self.election.trap(client, *kind, *part, *what);
            }
            Command::Delete(id) => self.delete_nodes_of(*id)?,
            Command::End(id) => self.end_session_of(*id)?,
            Command::Linger(on) => self.linger(*on)?,
            Command::Guards(id, time) => self.election.keep(self.up(*id)?, *time),
            Command::Restart(..)
            | Command::Trap(..)
            | Command::Wipe(_)
            | Command::Cut(_)
            | Command::Split(_)
            | Command::Break(..)
            | Command::BlackHole(..)
            | Command::NonMembers { .. }
            | Command::Advertise(..)
            | Command::Write(..)
            | Command::WriteHere
            | Command::Read(_)
            | Command::Transfer(..)
            | Command::Reconfigure(..)
            | Command::StepDown(_)
            | Command::Hears { .. }
            | Command::HangsUp(_)
            | Command::Connects(_)
            | Command::Snapshot(_)
            | Command::Sync => {
                let why = "the candidates of a store are no servers".to_owned();
                return Err(Problem::Impossible(why));
            }
        }
        // What happens at once is told at once.
        self.pass(Duration::ZERO)
    }

    /// Candidates are to lead, or to stop.
    fn tell_to(&mut self, ids: &[i64], lead: bool) -> Result<(), Problem> {
        for id in ids {
            let client = self.one(*id, |it| !it.paused, "stands still")?;
            if lead {
                self.one(*id, |it| !it.wanted, "is to lead already")?;
            } else {
                self.one(*id, |it| it.wanted, "is not to lead")?;
            }
            self.election.tell_to(client, lead)?;
        }
        Ok(())
    }

    fn heal(&mut self) -> Result<(), Problem> {
        if !self.ids().any(|id| self.known(id).is_ok_and(|it| self.election.stand(it).away)) {
            return Err(Problem::Impossible("nothing is cut".to_owned()));
        }
        self.election.heal();
        Ok(())
    }

    fn delete_nodes_of(&mut self, id: i64) -> Result<(), Problem> {
        let client = self.known(id)?;
        if self.election.nodes_of(client).is_empty() {
            return Err(Problem::Impossible(format!("candidate {id} has no node")));
        }
        self.election.delete_of(client);
        Ok(())
    }

    fn end_session_of(&mut self, id: i64) -> Result<(), Problem> {
        let client = self.known(id)?;
        if !self.election.stand(client).in_session {
            return Err(Problem::Impossible(format!("candidate {id} has no session")));
        }
        self.election.end_session(client);
        Ok(())
    }

    fn linger(&mut self, on: bool) -> Result<(), Problem> {
        if self.election.lingers() == on {
            let why = if on { "it stays already" } else { "nothing stays" };
            return Err(Problem::Impossible(why.to_owned()));
        }
        self.election.linger(on);
        Ok(())
    }

    fn pass(&mut self, time: Duration) -> Result<(), Problem> {
        Ok(self.election.run_for(time)?)
    }

    fn known(&self, id: i64) -> Result<usize, Problem> {
        let number = usize::try_from(id - 1).ok().filter(|_| id <= self.candidates);
        number.ok_or_else(|| Problem::Impossible(format!("there is no candidate {id}")))
    }

    fn up(&self, id: i64) -> Result<usize, Problem> {
        let client = self.known(id)?;
        if self.election.stand(client).down {
            return Err(Problem::Impossible(format!("candidate {id} is down")));
        }
        Ok(client)
    }

    /// One that is up and of which this holds.
    fn one(&self, id: i64, so: fn(&Stand) -> bool, otherwise: &str) -> Result<usize, Problem> {
        let client = self.up(id)?;
        if !so(&self.election.stand(client)) {
            return Err(Problem::Impossible(format!("candidate {id} {otherwise}")));
        }
        Ok(client)
    }

    /// What a story has prepared for a call that was not made.
    pub(super) fn unused(&self) -> Option<String> {
        self.ids().find_map(|id| {
            let (kind, part) = self.election.trap_of(self.known(id).ok()?)?;
            Some(format!("{id} has made no call to {kind:?} whose {part:?} fails"))
        })
    }

    fn asked(&self, condition: &Condition) -> Result<(bool, String), Problem> {
        // Where an operator had a hand in it two may believe that they lead: the newer one does.
        let token = |id: &i64| self.known(*id).ok().and_then(|it| self.election.stand(it).leads);
        let leader = self.ids().filter(|id| token(id).is_some()).max_by_key(token);
        let led =
            leader.map_or("no candidate leads".to_owned(), |leader| format!("{leader} leads"));
        let count = |expected: u64, found: u64| (expected == found, format!("it is {found}"));
        Ok(match condition {
            Condition::Led(None) => (leader.is_some(), led),
            Condition::Led(Some(who)) => {
                self.known(*who)?;
                (leader == Some(*who), led)
            }
            Condition::NoLeader => (leader.is_none(), led),
            Condition::Settled(ids) if ids.is_empty() => match self.election.settled() {
                Ok(()) => (true, led),
                Err(why) => (false, why.to_string()),
            },
            Condition::Is(id, being) => {
                let stand = self.election.stand(self.known(*id)?);
                let holds = match being {
                    Being::In(ServerState::Leading) => stand.leads.is_some(),
                    Being::Suspended => stand.has_term && stand.leads.is_none(),
                    Being::Waiting => stand.waits,
                    Being::Stopped => stand.stopped,
                    Being::Working => stand.works,
                    Being::Idle => !stand.works,
                    Being::Down => stand.down,
                    Being::In(
                        ServerState::Looking | ServerState::Following | ServerState::Observing,
                    )
                    | Being::Serving
                    | Being::NotServing => return Err(of_servers()),
                };
                (holds, describe(*id, stand))
            }
            Condition::Nodes(expected) => {
                count(*expected, self.election.store().nodes().len() as u64)
            }
            Condition::NodesOf(id, expected) => {
                count(*expected, self.election.nodes_of(self.known(*id)?).len() as u64)
            }
            Condition::Made(expected) => count(*expected, self.election.made()),
            Condition::Terms(expected) => count(*expected, self.election.standing().terms),
            Condition::Settled(_)
            | Condition::Level
            | Condition::Follows(..)
            | Condition::Round(..)
            | Condition::Votes(..)
            | Condition::Links(..)
            | Condition::LogIs(..)
            | Condition::LogEnds(..)
            | Condition::Epochs(..)
            | Condition::Applied(..)
            | Condition::Voters(..)
            | Condition::NextVoters(..)
            | Condition::Committed(_)
            | Condition::LastWrite(_)
            | Condition::LastRead(_) => {
                return Err(of_servers());
            }
        })
    }
}

/// By how many thousandths clocks run faster or slower in this world: as far apart as those of campaigns at most,
/// and never so far that the margin does not cover it.
fn drift(settings: &Settings) -> u64 {
    let longest = settings.leases.values().copied().fold(settings.session, Duration::max);
    let margin = settings.margin.map_or(100, |margin| {
        let thousandths = margin.as_millis() * 1_000 / longest.as_millis().max(1);
        u64::try_from(thousandths).unwrap_or(u64::MAX)
    });
    // One is fast and the other slow, and each by so much.
    let most = margin.min(100) * 2 / 5;
    Rng::new(settings.seed() ^ 0xc10c_0000_0000_0001).below(most + 1)
}

impl Course for StoreStory {
    fn now(&self) -> Instant {
        self.election.now()
    }

    fn go_on(&mut self, most: Duration) -> Result<(), Problem> {
        Ok(self.election.pass(most)?)
    }

    fn at_once(&mut self) -> Result<(), Problem> {
        self.pass(Duration::ZERO)
    }

    fn look(&self, condition: &Condition) -> Result<(bool, String), Problem> {
        self.asked(condition)
    }
}

fn of_servers() -> Problem {
    let why = "that can be asked of servers, not of the candidates of a store";
    Problem::Impossible(why.to_owned())
}

fn describe(id: i64, stand: Stand) -> String {
    let works = if stand.works { ", and works" } else { "" };
    let is = match stand {
        Stand { down: true, .. } => "down",
        Stand { leads: Some(_), .. } => "leading",
        Stand { has_term: true, .. } => "suspended",
        Stand { stopped: true, .. } => "stopped",
        Stand { waits: true, .. } => "waiting",
        Stand { .. } => "neither leading nor waiting",
    };
    format!("{id} is {is}{works}")
}

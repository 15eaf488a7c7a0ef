//! The machines of both recipes of the core, as one.
//!
//! What it does not do: decide. It translates inputs and outputs to one set of names.

use std::time::Duration;

use quorate_core::recipe::offer::{Notice, Session, State as OfferState};
use quorate_core::recipe::{Attempt, ConfigError, Failure, Leader, LeadershipChange, lease, offer};
use quorate_core::time::Instant;

use crate::events::State;
use crate::reporter::StoreEvent;
use crate::settings::{Recipe, Settings};

/// What happened to a candidate.
#[derive(Debug)]
pub(crate) enum Input {
    Tick,
    Start,
    Stop,
    Released,
    Store(StoreEvent),
}

/// What the machine orders.
#[derive(Debug)]
pub(crate) enum Output {
    Offer(Attempt, offer::Call),
    Lease(Attempt, lease::Call),
    Leadership(LeadershipChange),
    Notice(Notice),
    Leads(Option<Leader>),
    Trouble(Failure, Option<Duration>),
    Stopped,
}

/// The machine of one candidate.
#[derive(Debug)]
pub(crate) enum Machine {
    Offer(Box<offer::Candidate>),
    /// For a lease, once the store has said how long its sessions last.
    Lease {
        settings: Settings,
        unique: u128,
        machine: Option<Box<lease::Candidate>>,
        started: bool,
    },
}

impl Machine {
    /// No other candidate has this `unique`.
    pub(crate) fn new(settings: &Settings, unique: u128) -> Result<Self, ConfigError> {
        Ok(match settings.recipe {
            Recipe::Offer(naming) => {
                Self::Offer(Box::new(offer::Candidate::new(settings.of_offers(naming, unique))?))
            }
            Recipe::Lease => {
                // Refuses now what would be refused when the session is there.
                lease::Candidate::new(settings.of_leases(settings.session_timeout, unique))?;
                Self::Lease { settings: settings.clone(), unique, machine: None, started: false }
            }
        })
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Offer(machine) => machine.deadline(),
            Self::Lease { machine, .. } => machine.as_ref()?.deadline(),
        }
    }

    pub(crate) fn confirmed_until(&self) -> Option<Instant> {
        match self {
            Self::Offer(machine) => machine.confirmed_until(),
            Self::Lease { machine, .. } => machine.as_ref()?.confirmed_until(),
        }
    }

    pub(crate) fn state(&self) -> State {
        match self {
            Self::Offer(machine) => match machine.state() {
                OfferState::Stop => State::Stop,
                OfferState::Start => State::Start,
                OfferState::Offer => State::Offer,
                OfferState::Determine => State::Determine,
                OfferState::Elected => State::Elected,
                OfferState::Ready => State::Ready,
                OfferState::Failed => State::Failed,
            },
            Self::Lease { started: false, .. } => State::Stop,
            Self::Lease { machine: None, .. } => State::Start,
            Self::Lease { machine: Some(machine), .. } => {
                if machine.leads().is_some() {
                    State::Elected
                } else {
                    State::Ready
                }
            }
        }
    }

    /// The name of our offer, if we have one.
    pub(crate) fn offer(&self) -> Option<&str> {
        match self {
            Self::Offer(machine) => machine.offer(),
            Self::Lease { .. } => None,
        }
    }

    pub(crate) fn step(&mut self, at: Instant, input: Input) -> Vec<Output> {
        match self {
            Self::Offer(machine) => {
                let Some(event) = offer_event(input) else { return Vec::new() };
                let outputs = machine.step(offer::Input { at, event });
                outputs.into_iter().map(offer_output).collect()
            }
            Self::Lease { settings, unique, machine, started } => {
                let starts = match input {
                    Input::Start => Some(true),
                    Input::Stop => Some(false),
                    Input::Tick | Input::Released | Input::Store(_) => None,
                };
                *started = starts.unwrap_or(*started);
                let Some(machine) = machine else {
                    if let Input::Store(StoreEvent::Session(Session::Connected {
                        timeout, ..
                    })) = input
                    {
                        return Self::begin_lease(
                            at, settings, *unique, timeout, machine, *started,
                        );
                    }
                    let stops = matches!(input, Input::Stop);
                    return if stops { vec![Output::Stopped] } else { Vec::new() };
                };
                let Some(event) = lease_event(input) else { return Vec::new() };
                let outputs = machine.step(lease::Input { at, event });
                outputs.into_iter().map(lease_output).collect()
            }
        }
    }

    /// Makes the machine of a lease: the store has said how long its sessions last.
    fn begin_lease(
        at: Instant,
        settings: &Settings,
        unique: u128,
        timeout: Duration,
        machine: &mut Option<Box<lease::Candidate>>,
        started: bool,
    ) -> Vec<Output> {
        let Ok(mut candidate) = lease::Candidate::new(settings.of_leases(timeout, unique)) else {
            // The margin is too long for so short a session.
            return vec![Output::Trouble(Failure::Rejected, None)];
        };
        let outputs = if started {
            candidate.step(lease::Input { at, event: lease::Event::Start })
        } else {
            Vec::new()
        };
        *machine = Some(Box::new(candidate));
        outputs.into_iter().map(lease_output).collect()
    }
}

fn offer_event(input: Input) -> Option<offer::Event> {
    Some(match input {
        Input::Tick => offer::Event::Tick,
        Input::Start => offer::Event::Start,
        Input::Stop => offer::Event::Stop,
        Input::Released => offer::Event::Released,
        Input::Store(StoreEvent::Session(session)) => offer::Event::Session(session),
        Input::Store(StoreEvent::Offer { attempt, result }) => {
            offer::Event::Done { attempt, result }
        }
        Input::Store(StoreEvent::Fired { attempt, gone }) => offer::Event::Fired { attempt, gone },
        Input::Store(StoreEvent::Lease { .. } | StoreEvent::Trouble(_) | StoreEvent::Over) => {
            return None;
        }
    })
}

fn lease_event(input: Input) -> Option<lease::Event> {
    Some(match input {
        Input::Tick => lease::Event::Tick,
        Input::Start => lease::Event::Start,
        Input::Stop => lease::Event::Stop,
        Input::Released => lease::Event::Released,
        Input::Store(StoreEvent::Session(Session::Suspended)) => lease::Event::Suspended,
        Input::Store(StoreEvent::Session(Session::Expired)) => lease::Event::Expired,
        Input::Store(StoreEvent::Session(Session::Renewed { sent, .. })) => {
            lease::Event::Counted { sent }
        }
        Input::Store(StoreEvent::Lease { attempt, result }) => {
            lease::Event::Done { attempt, result }
        }
        Input::Store(StoreEvent::Fired { attempt, gone }) => lease::Event::Fired { attempt, gone },
        // The machine of a lease renews by calls of its own.
        Input::Store(
            StoreEvent::Session(Session::Connected { .. })
            | StoreEvent::Offer { .. }
            | StoreEvent::Trouble(_)
            | StoreEvent::Over,
        ) => return None,
    })
}

fn offer_output(output: offer::Output) -> Output {
    match output {
        offer::Output::Call { attempt, call } => Output::Offer(attempt, call),
        offer::Output::Leadership(change) => Output::Leadership(change),
        offer::Output::Notice(notice) => Output::Notice(notice),
        offer::Output::Trouble { failure, again } => Output::Trouble(failure, again),
        offer::Output::Stopped => Output::Stopped,
    }
}

fn lease_output(output: lease::Output) -> Output {
    match output {
        lease::Output::Call { attempt, call } => Output::Lease(attempt, call),
        lease::Output::Leadership(change) => Output::Leadership(change),
        lease::Output::Leads(leader) => Output::Leads(leader),
        lease::Output::Trouble { failure, again } => Output::Trouble(failure, again),
        lease::Output::Stopped => Output::Stopped,
    }
}

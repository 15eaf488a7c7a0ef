//! The two machines of the core, as one.
//!
//! What it does not do: decide. Everything is handed on under one name instead of two.

use std::time::Duration;

use quorate_core::recipe::offer::{Notice, Session, State as OfferState};
use quorate_core::recipe::{Attempt, ConfigError, Failure, Leader, Seat, lease, offer};
use quorate_core::time::Instant;

use crate::news::State;
use crate::settings::{Recipe, Settings};
use crate::store::Happened;

/// What happened to a candidate.
#[derive(Debug)]
pub(crate) enum Input {
    Tick,
    Start,
    Stop,
    Released,
    Store(Happened),
}

/// What it wants.
#[derive(Debug)]
pub(crate) enum Output {
    Offer(Attempt, offer::Call),
    Lease(Attempt, lease::Call),
    Seat(Seat),
    Notice(Notice),
    Leads(Option<Leader>),
    Trouble(Failure, Option<Duration>),
    Stopped,
}

/// A candidate.
#[derive(Debug)]
pub(crate) enum Machine {
    Offer(Box<offer::Candidate>),
    /// One for a lease, once the store has said how long its sessions last.
    Lease {
        settings: Settings,
        unique: u128,
        machine: Option<Box<lease::Candidate>>,
        started: bool,
    },
}

impl Machine {
    /// `unique` is nobody else's.
    pub(crate) fn new(settings: &Settings, unique: u128) -> Result<Self, ConfigError> {
        Ok(match settings.recipe {
            Recipe::Offer(naming) => {
                Self::Offer(Box::new(offer::Candidate::new(settings.offer(naming, unique))?))
            }
            Recipe::Lease => {
                // To say now what is wrong.
                lease::Candidate::new(settings.lease(settings.session_timeout, unique))?;
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
                    if let Input::Store(Happened::Session(Session::Connected { timeout, .. })) =
                        input
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

    /// The store has said how long a session of ours lasts.
    fn begin_lease(
        at: Instant,
        settings: &Settings,
        unique: u128,
        timeout: Duration,
        machine: &mut Option<Box<lease::Candidate>>,
        started: bool,
    ) -> Vec<Output> {
        let Ok(mut candidate) = lease::Candidate::new(settings.lease(timeout, unique)) else {
            // A margin that is too long for so short a session.
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
        Input::Store(Happened::Session(session)) => offer::Event::Session(session),
        Input::Store(Happened::Offer { attempt, result }) => offer::Event::Done { attempt, result },
        Input::Store(Happened::Fired { attempt, gone }) => offer::Event::Fired { attempt, gone },
        Input::Store(Happened::Lease { .. } | Happened::Trouble(_)) => return None,
    })
}

fn lease_event(input: Input) -> Option<lease::Event> {
    Some(match input {
        Input::Tick => lease::Event::Tick,
        Input::Start => lease::Event::Start,
        Input::Stop => lease::Event::Stop,
        Input::Released => lease::Event::Released,
        Input::Store(Happened::Session(Session::Suspended)) => lease::Event::Suspended,
        Input::Store(Happened::Session(Session::Expired)) => lease::Event::Expired,
        Input::Store(Happened::Session(Session::Renewed { sent, .. })) => {
            lease::Event::Counted { sent }
        }
        Input::Store(Happened::Lease { attempt, result }) => lease::Event::Done { attempt, result },
        Input::Store(Happened::Fired { attempt, gone }) => lease::Event::Fired { attempt, gone },
        // It renews by calls of its own.
        Input::Store(
            Happened::Session(Session::Connected { .. })
            | Happened::Offer { .. }
            | Happened::Trouble(_),
        ) => return None,
    })
}

fn offer_output(output: offer::Output) -> Output {
    match output {
        offer::Output::Call { attempt, call } => Output::Offer(attempt, call),
        offer::Output::Seat(seat) => Output::Seat(seat),
        offer::Output::Notice(notice) => Output::Notice(notice),
        offer::Output::Trouble { failure, again } => Output::Trouble(failure, again),
        offer::Output::Stopped => Output::Stopped,
    }
}

fn lease_output(output: lease::Output) -> Output {
    match output {
        lease::Output::Call { attempt, call } => Output::Lease(attempt, call),
        lease::Output::Seat(seat) => Output::Seat(seat),
        lease::Output::Leads(leader) => Output::Leads(leader),
        lease::Output::Trouble { failure, again } => Output::Trouble(failure, again),
        lease::Output::Stopped => Output::Stopped,
    }
}

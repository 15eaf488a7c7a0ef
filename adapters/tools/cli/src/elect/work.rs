//! Competes, and runs the command while this process leads.
//!
//! ```text
//!   compete ──► leads: start the command ──► it ends ──────────────────────────► its exit code
//!      ▲                     └── leadership lost ──► SIGTERM ── grace ── SIGKILL ──► 1
//!      └─────────────────────────── --restart on-failure, always ◄──────────────────┘
//! ```

use std::ffi::OsString;
use std::time::{Duration, Instant};

use quorate_recipes::{Backoff, Candidate, Event, Leadership, Loss, Lost, Store};
use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::Restart;
use super::child::{Child, Ended};
use super::page;
use crate::failure::Failure;

/// What to run, and how.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) command: Vec<OsString>,
    pub(crate) identity: String,
    pub(crate) path: String,
    pub(crate) restart: Restart,
    /// Between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
    /// Whether events are told, and whether as JSON.
    pub(crate) told: Option<bool>,
}

/// How a leadership ended here.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// The command has ended.
    Done(Ended),
    /// Leadership was lost, and the command was ended.
    Lost(Lost),
    /// This process was told to end, and passed that on.
    Passed(Ended),
}

/// Competes until there is nothing more to do.
pub(crate) async fn run<S: Store>(config: S::Config, work: Work) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let candidate =
        Candidate::<S>::start(config).await.map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(json) = work.told {
        tokio::spawn(page::write_events(candidate.events(), json));
    }
    let mut backoff = Backoff::new();
    loop {
        let leadership = tokio::select! {
            leadership = candidate.leadership() => leadership,
            signal = signals.final_one() => {
                candidate.stop().await;
                return Err(Failure { code: 128 + number(signal), message: String::new() });
            }
        };
        let Ok(leadership) = leadership else {
            return Err(Failure::failed("the election has ended"));
        };
        let ending = lead(&candidate, &leadership, &work, &mut signals).await;
        drop(leadership);
        let failure = match ending {
            Ok(Ending::Done(ended)) => {
                if ended.code == 0 {
                    backoff.reset();
                }
                if !work.restart.again(ended.code) {
                    candidate.stop().await;
                    return exit(ended.code);
                }
                ended.code != 0
            }
            Ok(Ending::Lost(lost)) => {
                tracing::warn!("{lost}");
                if work.restart == Restart::Never {
                    candidate.stop().await;
                    return Err(Failure::failed(format!("leadership was lost: {lost}")));
                }
                false
            }
            Ok(Ending::Passed(ended)) => {
                candidate.stop().await;
                return exit(ended.code);
            }
            Err(failure) => {
                candidate.stop().await;
                return Err(failure);
            }
        };
        if failure {
            backoff.wait().await;
        }
    }
}

impl Restart {
    const fn again(self, code: u8) -> bool {
        match self {
            Self::Never => false,
            Self::OnFailure => code != 0,
            Self::Always => true,
        }
    }
}

fn exit(code: u8) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(Failure { code, message: String::new() }) }
}

/// Runs the command for as long as it leads.
async fn lead<S: Store>(
    candidate: &Candidate<S>,
    leadership: &Leadership,
    work: &Work,
    signals: &mut Signals,
) -> Result<Ending, Failure> {
    let mut events = candidate.events();
    let token = leadership.token();
    let environment = [
        ("QUORATE_FENCING_TOKEN", token.to_string()),
        ("QUORATE_LEADER", work.identity.clone()),
        ("QUORATE_ELECTION", work.path.clone()),
    ];
    if let Err(lost) = leadership.check() {
        return Ok(Ending::Lost(lost));
    }
    let mut child = Child::start(&work.command, &environment)?;
    let mut ending = false;
    let lost = loop {
        tokio::select! {
            // The loss first: what is ready at the same time came too late.
            biased;
            lost = leadership.lost() => break lost,
            ended = child.ended() => {
                let ended = ended?;
                return Ok(if ending { Ending::Passed(ended) } else { Ending::Done(ended) });
            }
            signal = signals.any() => {
                ending |= signal == Signal::TERM || signal == Signal::INT;
                child.signal(signal);
            }
        }
    };
    let grace = if is_over(&mut events).await { Duration::ZERO } else { work.grace };
    child.signal(Signal::TERM);
    let begun = Instant::now();
    let ended = loop {
        let left = grace.saturating_sub(begun.elapsed());
        tokio::select! {
            ended = child.ended() => break ended?,
            () = tokio::time::sleep(left) => {
                child.signal(Signal::KILL);
                break child.ended().await?;
            }
            signal = signals.any() => {
                ending |= signal == Signal::TERM || signal == Signal::INT;
                child.signal(signal);
            }
        }
    };
    Ok(if ending { Ending::Passed(ended) } else { Ending::Lost(lost) })
}

/// Whether leadership was lost with the session: another candidate may lead already, and there is no time left.
async fn is_over(events: &mut quorate_recipes::Events) -> bool {
    let mut over = false;
    // All events so far are there already.
    while let Ok(Some(event)) = tokio::time::timeout(Duration::ZERO, events.next()).await {
        over |= event == Event::Lost(Loss::Expired);
    }
    over
}

/// The signals that this process is sent, for the command.
struct Signals {
    terminate: Stream,
    interrupt: Stream,
    hang_up: Stream,
    user_1: Stream,
    user_2: Stream,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let on = |kind| {
            signal(kind)
                .map_err(|error| Failure::failed(format!("cannot wait for signals: {error}")))
        };
        Ok(Self {
            terminate: on(SignalKind::terminate())?,
            interrupt: on(SignalKind::interrupt())?,
            hang_up: on(SignalKind::hangup())?,
            user_1: on(SignalKind::user_defined1())?,
            user_2: on(SignalKind::user_defined2())?,
        })
    }

    async fn any(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.hang_up.recv() => Signal::HUP,
            _ = self.user_1.recv() => Signal::USR1,
            _ = self.user_2.recv() => Signal::USR2,
        }
    }

    /// One that means the end where there is no command.
    async fn final_one(&mut self) -> Signal {
        loop {
            let signal = self.any().await;
            if signal == Signal::TERM || signal == Signal::INT || signal == Signal::HUP {
                return signal;
            }
        }
    }
}

fn number(signal: Signal) -> u8 {
    u8::try_from(signal.as_raw()).unwrap_or(0)
}

//! A moment: one thing that happened, when, at which server, in words.

use std::fmt;

use quorate_core::id::ServerId;
use quorate_core::input::{Event, Plane};
use quorate_core::message::{Message, Packet, Request};
use quorate_core::output::{Output, Write};
use quorate_core::reasons::{Fault, Hangup};
use quorate_core::report::{Change, Reason, Report};
use quorate_core::status::Phase;
use quorate_core::time::Instant;
use quorate_core::zxid::Zxid;

use super::candidacy::Candidacy;
use super::topic::Topic;
use super::words::{For, Said, Short, Written, millis, shortened};
use super::{Entry, Found, What};

use crate::faults::CrashKind;

/// Something worth telling, in the order in which it happened.
#[derive(Clone, Debug)]
pub struct Moment {
    /// When.
    pub at: Instant,
    /// To whom; the receiver of a message that arrived, the sender of any other.
    pub server: ServerId,
    /// What.
    pub what: Happening,
}

/// What happened.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "they are told one by one, not kept")]
pub enum Happening {
    /// The server starts.
    Start(Found),
    /// It crashes.
    Crash(CrashKind),
    /// It stops, since going on would be unsafe.
    Halt(Fault),
    /// Its disk is emptied.
    Wipe,
    /// It stands still.
    Pause,
    /// It goes on.
    Resume,
    /// Whether anything passes from it to other servers.
    Way {
        /// To whom.
        to: Vec<ServerId>,
        /// Whether.
        open: bool,
    },
    /// Its connections with another server break.
    Break(ServerId),
    /// Some who are no members connect to it and say something.
    Visit {
        /// How many.
        crowd: usize,
        /// To which port.
        plane: Plane,
        /// How much each of them says.
        bytes: usize,
    },
    /// Something has changed, and why.
    Change(Report),
    /// A message between two servers.
    Message(Arrow),
    /// These writes are durable.
    Durable(Vec<Write>),
    /// Its application gets everything through this.
    Deliver(Zxid),
    /// It ends a link, for this reason.
    HangUp {
        /// With whom, if that is known.
        with: Option<ServerId>,
        /// Why.
        reason: Hangup,
    },
    /// Something about a candidate in an election through a store; its number is the server's.
    Candidate(Candidacy),
    /// Anything else: dials, links, timers.
    Other(Entry),
}

/// A message, from its sending to its end.
#[derive(Clone, Debug)]
pub struct Arrow {
    /// Who sent it.
    pub from: ServerId,
    /// To whom.
    pub to: ServerId,
    /// What.
    pub message: Message,
    /// When it was sent; unknown if a script said it.
    pub sent: Option<Instant>,
    /// What came of it.
    pub fate: Fate,
}

impl Arrow {
    /// The message in few words.
    pub fn words(&self) -> String {
        Said(&self.message).to_string()
    }
}

/// What came of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived, at the time of the moment.
    Arrived,
    /// It arrived a second time.
    Repeated,
    /// It was lost with its connection, which ended at the time of the moment.
    Lost,
    /// A newer vote took its place before it was written.
    Replaced,
    /// It was still on its way when the record ended.
    UnderWay,
}

impl Moment {
    /// What it is about.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others are of one kind")]
    pub fn topic(&self) -> Topic {
        match &self.what {
            Happening::Start(_)
            | Happening::Crash(_)
            | Happening::Halt(_)
            | Happening::Wipe
            | Happening::Pause
            | Happening::Resume
            | Happening::Way { .. }
            | Happening::Break(_)
            | Happening::Visit { .. } => Topic::Fate,
            Happening::Change(report) => match report.change {
                Change::State { .. }
                | Change::Vote { .. }
                | Change::Round { .. }
                | Change::BackIntoRound(_) => Topic::Votes,
                // Said by the state, too.
                Change::Phase { to: Phase::Election, .. } => Topic::Rest,
                Change::Phase { .. }
                | Change::AcceptedEpoch(_)
                | Change::CurrentEpoch(_)
                | Change::Configuration(_)
                | Change::NextConfiguration(_)
                | Change::Sync { .. }
                | Change::Ignored { .. }
                | Change::Learner { .. } => Topic::Phases,
            },
            Happening::Message(arrow) => {
                if arrow.fate == Fate::Replaced || is_heartbeat(&arrow.message) {
                    Topic::Rest
                } else {
                    Topic::Messages
                }
            }
            Happening::Durable(_) => Topic::Disk,
            Happening::Deliver(_) => Topic::Deliveries,
            // Which of two links stays is a matter between them.
            Happening::HangUp {
                reason:
                    Hangup::PeerDials(_)
                    | Hangup::WeDial(_)
                    | Hangup::Replaced(_)
                    | Hangup::ClaimedAgain(_)
                    | Hangup::RoleEnded
                    | Hangup::Unwanted,
                ..
            } => Topic::Rest,
            // The end of a link is told where it came from.
            Happening::HangUp { reason: Hangup::Ended, .. } => Topic::Rest,
            Happening::HangUp { .. } => Topic::Phases,
            Happening::Candidate(candidacy) => candidacy.topic(),
            Happening::Other(entry) => match &entry.what {
                What::Do(
                    Output::Answer(_)
                    | Output::Accepted(_)
                    | Output::Lost(_)
                    | Output::Unknown { .. }
                    | Output::Refused { .. }
                    | Output::ReadRefused { .. }
                    | Output::Transferred(_),
                )
                | What::Hear(
                    Event::Propose(_)
                    | Event::Submit { .. }
                    | Event::Read(_)
                    | Event::TransferLeadership(_)
                    | Event::StepDown,
                ) => Topic::Clients,
                _ => Topic::Rest,
            },
        }
    }

    /// The time in milliseconds, to a tenth of one.
    pub fn time(&self) -> String {
        millis(self.at)
    }
}

fn is_heartbeat(message: &Message) -> bool {
    matches!(
        message,
        Message::Packet(Packet::Ping { .. } | Packet::Lease { .. } | Packet::MayLead(_))
            | Message::Probe(_)
    )
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.server;
        match &self.what {
            Happening::Start(found) => started(who, found, f),
            Happening::Crash(CrashKind::Process) => write!(f, "{who} is killed"),
            Happening::Crash(CrashKind::Power) => write!(f, "{who} loses power"),
            Happening::Halt(fault) => write!(f, "{who} stops: {}", shortened(&fault.to_string())),
            Happening::Wipe => write!(f, "the disk of {who} is emptied"),
            Happening::Pause => write!(f, "{who} stands still"),
            Happening::Resume => write!(f, "{who} goes on"),
            Happening::Way { to, open } => {
                let to: Vec<_> = to.iter().map(ToString::to_string).collect();
                let what = if *open { "all passes again" } else { "nothing passes" };
                write!(f, "{what} from {who} to {}", to.join(", "))
            }
            Happening::Break(with) => write!(f, "the connections of {who} and {with} break"),
            Happening::Visit { crowd, plane, bytes } => visited(who, *crowd, *plane, *bytes, f),
            Happening::Change(report) => {
                write!(f, "{who} ")?;
                changed(who, report, f)
            }
            Happening::Message(Arrow { from, to, message, fate, .. }) => {
                let said = Said(message);
                match fate {
                    Fate::Arrived => write!(f, "{to} hears {from}: {said}"),
                    Fate::Repeated => write!(f, "{to} hears {from} again: {said}"),
                    Fate::Lost => write!(f, "lost from {from} to {to}: {said}"),
                    Fate::Replaced => write!(f, "never written by {from} to {to}: {said}"),
                    Fate::UnderWay => write!(f, "on its way from {from} to {to}: {said}"),
                }
            }
            Happening::Durable(writes) => {
                write!(f, "the disk of {who} has ")?;
                for (at, write) in writes.iter().enumerate() {
                    if at > 0 {
                        f.write_str(", ")?;
                    }
                    Written(write).fmt(f)?;
                }
                Ok(())
            }
            Happening::Deliver(zxid) => {
                write!(f, "{who} delivers everything through {}", Short(*zxid))
            }
            Happening::HangUp { with: Some(with), reason } => {
                write!(f, "{who} hangs up on {with}: {}", shortened(&reason.to_string()))
            }
            Happening::HangUp { with: None, reason } => {
                write!(f, "{who} hangs up: {}", shortened(&reason.to_string()))
            }
            Happening::Candidate(candidacy) => candidacy.say(who, f),
            Happening::Other(entry) => {
                if let Some(text) = asked(&entry.what) {
                    return write!(f, "{who} {text}");
                }
                let line = entry.to_string();
                let tail = line.split_once("server ").map_or(&*line, |(_, tail)| tail);
                f.write_str(&shortened(tail))
            }
        }
    }
}

fn started(who: ServerId, found: &Found, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Found { accepted_epoch, current_epoch, last, .. } = found;
    if (*last, accepted_epoch.0) == (Zxid::ZERO, 0) {
        return write!(f, "{who} starts with an empty disk");
    }
    let last = Short(*last);
    write!(f, "{who} starts: log through {last}, ")?;
    write!(f, "accepted epoch {accepted_epoch}, current epoch {current_epoch}")
}

fn visited(
    who: ServerId,
    crowd: usize,
    plane: Plane,
    bytes: usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let port = match plane {
        Plane::Election => "election",
        Plane::Quorum => "quorum",
    };
    let non_members = match crowd {
        1 => "a non-member says".to_owned(),
        _ => format!("{crowd} non-members say"),
    };
    let said = match bytes {
        0 => "nothing".to_owned(),
        1 => "1 byte".to_owned(),
        _ => format!("{bytes} bytes"),
    };
    write!(f, "{non_members} {said} to the {port} port of {who}")
}

/// What is said between a server and the clients and operators that ask it for something.
#[allow(clippy::wildcard_enum_match_arm, reason = "the others are told as they are")]
fn asked(what: &What) -> Option<String> {
    Some(match what {
        What::Hear(Event::Propose(request)) if request.op == Request::RECONFIGURE => {
            "is asked for another membership".to_owned()
        }
        What::Hear(Event::Propose(_)) => "is asked for a write".to_owned(),
        What::Hear(Event::Read(_)) => "is asked to read".to_owned(),
        What::Hear(Event::StepDown) => "is asked to step down".to_owned(),
        What::Hear(Event::TransferLeadership(None)) => {
            "is asked to transfer its leadership".to_owned()
        }
        What::Hear(Event::TransferLeadership(Some(to))) => {
            format!("is asked to transfer its leadership to {to}")
        }
        What::Do(Output::Accepted(_)) => "accepts the write: it may come to pass".to_owned(),
        What::Do(Output::Lost(_)) => "gives the write up: it never comes to pass".to_owned(),
        What::Do(Output::Unknown { doubt, .. }) => format!("cannot tell of the write: {doubt}"),
        What::Do(Output::Refused { reason, .. }) => format!("refuses the write: {reason}"),
        What::Do(Output::Answer(_)) => "answers the read".to_owned(),
        What::Do(Output::ReadRefused { reason, .. }) => format!("refuses the read: {reason}"),
        What::Do(Output::Transferred(Ok(to))) => format!("has transferred its leadership to {to}"),
        What::Do(Output::Transferred(Err(why))) => format!("keeps its leadership: {why}"),
        _ => return None,
    })
}

fn changed(who: ServerId, report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match &report.change {
        Change::State { to, .. } => write!(f, "is {to}")?,
        Change::Vote { to, .. } => write!(f, "votes {}", For(to))?,
        Change::Round { to, .. } => write!(f, "is in round {to}")?,
        Change::BackIntoRound(round) => write!(f, "goes back into round {round}")?,
        Change::Phase { to: Phase::Broadcast, .. } => f.write_str("serves")?,
        Change::Phase { to, .. } => write!(f, "begins {to}")?,
        Change::AcceptedEpoch(epoch) => write!(f, "promises epoch {epoch}")?,
        Change::CurrentEpoch(epoch) => write!(f, "takes over epoch {epoch}")?,
        Change::Sync { id, how } if *id == who => write!(f, "is brought up by {how}")?,
        Change::Sync { id, how } => write!(f, "brings up {id} by {how}")?,
        Change::Learner { id, synced: true } => write!(f, "counts {id} as synchronised")?,
        Change::Learner { id, synced: false } => write!(f, "has lost learner {id}")?,
        change @ (Change::Configuration(_)
        | Change::NextConfiguration(_)
        | Change::Ignored { .. }) => {
            write!(f, "says {}", shortened(&change.to_string()))?;
        }
    }
    // A round that begins says so by itself.
    if report.reason == Reason::OwnVote {
        return Ok(());
    }
    write!(f, ": {}", shortened(&report.reason.to_string()))
}

//! An entry of a record in one line, for a log.

use std::fmt;

use quorate_core::input::Event;
use quorate_core::output::{Output, Write};

use super::words::{Said, Zxids};
use super::{Entry, Found, What};

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.at.since_origin().as_micros();
        write!(f, "{:>8}.{:03} ms  server {} ", micros / 1000, micros % 1000, self.server)?;
        match &self.what {
            What::Start(found) => write!(f, "START {found}"),
            What::Crash(kind) => write!(f, "CRASH ({kind:?})"),
            What::DiskFails => f.write_str("DISK fails"),
            What::Wipe => f.write_str("WIPED"),
            What::Clock(by) => write!(f, "CLOCK jumps by {by:?}"),
            What::Pause => f.write_str("PAUSE"),
            What::Resume => f.write_str("RESUME"),
            What::Block(to) => write!(f, "BLOCKED towards {to}"),
            What::Unblock(to) => write!(f, "UNBLOCKED towards {to}"),
            What::Break(with) => write!(f, "CUT from {with}"),
            What::Visit { crowd, plane, bytes } => {
                write!(f, "VISITED by {crowd} ({plane:?}, {bytes} bytes)")
            }
            What::Meet { link, plane, peer } => write!(f, "{link} is server {peer} ({plane:?})"),
            What::Hear(event) => write!(f, "<- {}", Happened(event)),
            What::Do(output) => write!(f, "  -> {}", Done(output)),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted_epoch, current_epoch, last, floor, snapshot } = self;
        write!(f, "accepted {accepted_epoch}, current {current_epoch}, last {last}, ")?;
        write!(f, "floor {floor}, snapshot {snapshot}")
    }
}

/// An event in one line.
pub(super) struct Happened<'a>(pub(super) &'a Event);

impl fmt::Display for Happened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Event::Tick => f.write_str("tick"),
            Event::LinkUp(up) => {
                let how = if up.dialled { "dialled" } else { "accepted" };
                write!(f, "{} up ({:?}, {how}", up.link, up.plane)?;
                match up.peer {
                    Some(peer) => write!(f, ", server {peer})"),
                    None => f.write_str(")"),
                }
            }
            Event::LinkDown { link, cause } => write!(f, "{link} down ({cause:?})"),
            Event::DialFailed { plane, peer } => {
                write!(f, "dial failed ({plane:?}, server {peer})")
            }
            Event::Received { link, message } => write!(f, "{link} {}", Said(message)),
            Event::Persisted(ticket) => write!(f, "{ticket} durable"),
            Event::Propose(request) => write!(f, "propose {}", request.id),
            Event::Submit { request, .. } => write!(f, "submit {}", request.id),
            Event::Prepared { epoch, drafts } => {
                write!(f, "prepared {} in epoch {epoch}", drafts.len())
            }
            Event::Applied(through) => write!(f, "applied through {through}"),
            Event::Replayed { through, outcome } => {
                write!(f, "replayed through {through}: {outcome:?}")
            }
            Event::Oracle(yes) => write!(f, "oracle {yes}"),
            Event::StepDown => f.write_str("step down"),
            Event::TakeSnapshot => f.write_str("take a snapshot"),
            Event::TransferLeadership(None) => f.write_str("hand over"),
            Event::TransferLeadership(Some(to)) => write!(f, "hand over to {to}"),
            Event::Released(release) => write!(f, "released ({})", release.0),
            Event::Shutdown => f.write_str("shutdown"),
            Event::Resolved { .. }
            | Event::ListenFailed(_)
            | Event::Listening(_)
            | Event::DiskLow(_)
            | Event::Drained(_)
            | Event::Progress(_)
            | Event::Located { .. }
            | Event::Streamed { .. }
            | Event::Restored { .. }
            | Event::SnapshotTaken(_)
            | Event::Touch(_)
            | Event::Revalidate(_)
            | Event::Revalidated { .. }
            | Event::Read(_) => write!(f, "{:?}", self.0),
        }
    }
}

/// An output in one line.
pub(super) struct Done<'a>(pub(super) &'a Output);

impl fmt::Display for Done<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Output::Dial { plane, peer, .. } => write!(f, "dial server {peer} ({plane:?})"),
            Output::CancelDial { plane, peer } => {
                write!(f, "call off the dial of {peer} ({plane:?})")
            }
            Output::Resolve { link, hosts } => write!(f, "{link} look up {hosts:?}"),
            Output::Hangup { link, reason } => write!(f, "{link} hang up: {reason}"),
            Output::Send { link, message } => write!(f, "{link} {}", Said(message)),
            Output::Persist { ticket, write: Write::Append(txns) } => {
                write!(f, "{ticket} append {}", Zxids(txns))
            }
            Output::Persist { ticket, write: Write::AppendStaged(txn) } => {
                write!(f, "{ticket} append {} beside", txn.zxid)
            }
            Output::Persist { ticket, write } => write!(f, "{ticket} {write:?}"),
            Output::Prepare { epoch, request, .. } => {
                write!(f, "prepare {} in epoch {epoch}", request.id)
            }
            Output::NotifyDrained(_)
            | Output::Locate { .. }
            | Output::StreamLog { .. }
            | Output::Adopt { .. }
            | Output::Deliver(_)
            | Output::Replay { .. }
            | Output::Discard
            | Output::TakeSnapshot(_)
            | Output::SendSnapshot { .. }
            | Output::ReceiveSnapshot { .. }
            | Output::Abandon
            | Output::Answer(_)
            | Output::Accepted(_)
            | Output::Lost(_)
            | Output::Unknown { .. }
            | Output::Refused { .. }
            | Output::Release(_)
            | Output::Leadership(_)
            | Output::Serving { .. }
            | Output::Retired
            | Output::Keep
            | Output::Transferred(_)
            | Output::Pinged
            | Output::Touched { .. }
            | Output::Revalidate { .. }
            | Output::Revalidated(_)
            | Output::ReadRefused { .. } => write!(f, "{:?}", self.0),
            Output::Report(report) => report.fmt(f),
            Output::Halt(fault) => write!(f, "halt: {fault}"),
        }
    }
}

//! Accounting of what is carried out: transactions that are logged, committed and applied, states that are sent and
//! kept, and what clients are told.

use quorate_core::id::ServerId;
use quorate_core::message::{Message, Packet};
use quorate_core::output::{Output, Write};
use quorate_core::report::{Change, How};
use quorate_core::status::Status;
use quorate_core::txn::Txn;
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};

use crate::application::{Application, State};
use crate::brief::Brief;
use crate::checker::{Checker, is_beginning};
use crate::disk::Disk;
use crate::rule::Violation;

/// What a server was when it said what it wants done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// It served as a leader before: what it commits last may end its leadership.
    led: bool,
    pub(crate) leads: bool,
    pub(crate) serving: bool,
    /// It has decided in this step that a learner is to get a snapshot; others may be sent that waited for their turn.
    decides_snapshot: bool,
    pub(crate) epoch: Epoch,
}

impl Standing {
    /// Of a server that has taken a step, and stood there before.
    pub(crate) fn of(before: Option<Brief>, status: &Status, outputs: &[Output]) -> Self {
        let leading = before.filter(|brief| brief.state == ServerState::Leading);
        Self {
            led: leading.is_some_and(|brief| brief.serving || outputs.iter().any(is_beginning)),
            leads: status.state == ServerState::Leading,
            serving: status.serving,
            decides_snapshot: outputs.iter().any(is_snapshot_decided),
            epoch: status.current_epoch,
        }
    }

    /// Whether it may have committed in this step, as a leader; its last may be what ends its leadership.
    pub(crate) fn commits(self) -> bool {
        self.led || (self.leads && self.serving)
    }

    /// Whether it may have given a transaction its number.
    fn mints(self, txn: &Txn) -> bool {
        self.leads && self.serving && self.epoch == txn.zxid.epoch()
    }
}

/// What surrounds a server: its disk and its application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around<'a> {
    pub(crate) disk: &'a Disk,
    pub(crate) application: &'a Application,
}

impl Checker {
    /// A server's output is about to be carried out.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the others are about nothing that is booked"
    )]
    pub(crate) fn on_done(
        &mut self,
        id: ServerId,
        output: &Output,
        standing: Standing,
        around: Around<'_>,
    ) -> Result<(), Violation> {
        let ledger = &mut self.ledger;
        let Around { disk, application } = around;
        match output {
            Output::Send { message, .. } => {
                let proposed: &[Txn] = match message {
                    Message::Packet(Packet::Proposal(txn)) => std::slice::from_ref(txn),
                    Message::Packet(Packet::Proposals(txns)) => txns,
                    Message::Packet(_)
                    | Message::Notification(_)
                    | Message::Generation(_)
                    | Message::Probe(_) => &[],
                };
                for txn in proposed.iter().filter(|txn| standing.mints(txn)) {
                    ledger.on_logged(id, txn, true)?;
                }
            }
            Output::Persist { write, .. } => match write {
                Write::Append(txns) => {
                    for txn in &**txns {
                        ledger.on_logged(id, txn, standing.mints(txn))?;
                    }
                }
                Write::AppendStaged(txn) => ledger.on_logged(id, txn, standing.mints(txn))?,
                Write::CurrentEpoch(epoch) if standing.leads => {
                    ledger.on_leadership(id, *epoch, disk.latest())?;
                }
                Write::Install { .. }
                | Write::Truncate(_)
                | Write::CurrentEpoch(_)
                | Write::AcceptedEpoch(_)
                | Write::GrantedVote { .. }
                | Write::Lease(_)
                | Write::Membership(_)
                | Write::NextMembership(_) => {}
            },
            Output::TakeSnapshot(zxid) => ledger.on_state(id, &application.state, *zxid)?,
            Output::SendSnapshot { link, label, staged, .. } => {
                let established = standing.leads && standing.serving && standing.decides_snapshot;
                let established = established.then_some(standing.epoch);
                let readable = !ledger.unreadable;
                let held = disk.latest();
                self.conduct.on_snapshot(id, *link, *label, established, held, readable)?;
                ledger.on_state(id, &application.labelled(*label, *staged), *label)?;
            }
            Output::Answer(read) => ledger.on_answer(id, *read, &application.state)?,
            Output::Accepted(request) => ledger.on_accepted(id, *request)?,
            Output::Lost(request) => ledger.on_lost(id, *request)?,
            Output::Unknown { id: request, .. } => ledger.on_unknown(id, *request)?,
            Output::Refused { id: request, .. } => ledger.on_refused(id, *request)?,
            Output::ReadRefused { read, .. } => ledger.on_read_refused(id, *read)?,
            _ => {}
        }
        Ok(())
    }

    /// A server knows that everything through a transaction is committed. Returns whether it is a leader whose own disk
    /// does not have it yet.
    pub(crate) fn on_committed(
        &mut self,
        id: ServerId,
        through: Zxid,
        standing: Standing,
        disk: &Disk,
    ) -> Result<bool, Violation> {
        let leads = standing.commits();
        let (log, ledger) = (disk.latest(), &mut self.ledger);
        ledger.on_committed(id, through, leads, standing.epoch, log, &self.ensemble)?;
        Ok(leads && through > disk.durable().last())
    }

    /// A server's application has gone on from a staged state; everything through `committed` is
    /// committed.
    pub(crate) fn on_adopted(
        &mut self,
        id: ServerId,
        state: &State,
        committed: Zxid,
    ) -> Result<(), Violation> {
        self.ledger.on_adopted(id, state, committed)
    }

    /// A server's application has applied a transaction; `in_turn` if it counts it as the next. Returns whether it was
    /// asked for there.
    pub(crate) fn on_applied(
        &mut self,
        id: ServerId,
        txn: &Txn,
        incarnation: u64,
        in_turn: bool,
    ) -> Result<bool, Violation> {
        self.ledger.on_applied(id, txn, incarnation, in_turn)
    }
}

fn is_snapshot_decided(output: &Output) -> bool {
    let decided = |change: &Change| matches!(change, Change::Sync { how: How::Snap, .. });
    matches!(output, Output::Report(report) if decided(&report.change))
}

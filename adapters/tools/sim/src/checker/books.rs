//! What is done goes into the books: transactions that are logged and delivered, states that are sent and
//! kept, and what clients are told.

use quorate_core::id::ServerId;
use quorate_core::message::{Message, Packet};
use quorate_core::output::{Output, Write};
use quorate_core::report::Status;
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
    /// It served as a leader before: what it commits last may end its reign.
    led: bool,
    pub(crate) leads: bool,
    pub(crate) serving: bool,
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
            epoch: status.current_epoch,
        }
    }

    /// Whether it may have given a transaction its number.
    fn mints(self, txn: &Txn) -> bool {
        self.leads && self.serving && self.epoch == txn.zxid.epoch()
    }
}

/// What surrounds a server: its disk and its application, in one of its lives.
#[derive(Debug)]
pub(crate) struct Around<'a> {
    pub(crate) disk: &'a Disk,
    pub(crate) application: &'a mut Application,
    pub(crate) incarnation: u64,
}

/// What came of a delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    /// A leader has committed what its own disk does not have yet.
    pub(crate) elsewhere_first: bool,
    /// A state was kept apart, and became the application's unless it was older.
    pub(crate) adopted: Option<bool>,
    /// How many transactions were asked for here.
    pub(crate) asked_here: u64,
}

impl Checker {
    /// A server's output is carried out now. Its application hears of what it has to; the disk does not yet.
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
    ) -> Result<Delivered, Violation> {
        let ledger = &mut self.ledger;
        let Around { disk, application, .. } = &around;
        match output {
            Output::Send { message, .. } => {
                let proposed: &[Txn] = match message {
                    Message::Packet(Packet::Proposal(txn)) => std::slice::from_ref(txn),
                    Message::Packet(Packet::Proposals(txns)) => txns,
                    Message::Packet(_)
                    | Message::Notification(_)
                    | Message::Letter(_)
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
                Write::Beside(txn) => ledger.on_logged(id, txn, standing.mints(txn))?,
                Write::CurrentEpoch(epoch) if standing.leads => {
                    ledger.on_reign(id, *epoch, disk.latest())?;
                }
                Write::Install { .. } => {
                    around.application.apart = around.application.received.take();
                }
                Write::Truncate(_)
                | Write::CurrentEpoch(_)
                | Write::AcceptedEpoch(_)
                | Write::GrantedVote { .. }
                | Write::Lease(_)
                | Write::Membership(_)
                | Write::NextMembership(_) => {}
            },
            Output::DeliverThrough(zxid) => return self.on_delivered(id, *zxid, standing, around),
            Output::TakeSnapshot(zxid) => ledger.on_state(id, application.newest(), *zxid)?,
            Output::SendSnapshot { link, label, .. } => {
                let established = (standing.leads && standing.serving).then_some(standing.epoch);
                let readable = !ledger.unreadable;
                let held = disk.latest();
                self.conduct.on_snapshot(id, *link, *label, established, held, readable)?;
                ledger.on_state(id, &application.labelled(*label), *label)?;
            }
            Output::Answer(read) => ledger.on_answer(id, *read, &application.state)?,
            Output::Accepted(request) => ledger.on_accepted(id, *request)?,
            Output::Lost(request) => ledger.on_lost(id, *request)?,
            Output::Unknown { id: request, .. } => ledger.on_unknown(id, *request)?,
            Output::Refused { id: request, .. } => ledger.on_refused(id, *request)?,
            Output::ReadRefused { read, .. } => ledger.on_read_refused(id, *read)?,
            _ => {}
        }
        Ok(Delivered::default())
    }

    /// Everything through a transaction is committed: the application gets it.
    fn on_delivered(
        &mut self,
        id: ServerId,
        through: Zxid,
        standing: Standing,
        around: Around<'_>,
    ) -> Result<Delivered, Violation> {
        let Around { disk, application, incarnation } = around;
        let ledger = &mut self.ledger;
        let leads = standing.led || (standing.leads && standing.serving);
        ledger.on_deliver(id, through, leads, standing.epoch, disk.latest(), &self.ensemble)?;
        let apart = application.apart.take();
        let newer = |apart: &State| apart.label > application.state.label;
        let adopted = apart.as_ref().map(newer);
        if let Some(apart) = apart.filter(newer) {
            ledger.on_adopted(id, &apart, through)?;
            application.state = apart;
        }
        let (after, mut asked_here) = (application.state.label, 0);
        for txn in disk.latest().range(after, through) {
            let in_turn = application.apply(txn);
            asked_here += u64::from(ledger.on_applied(id, txn, incarnation, in_turn)?);
        }
        ledger.on_state(id, &application.state, application.state.label)?;
        let elsewhere_first = leads && through > disk.durable().last();
        Ok(Delivered { elsewhere_first, adopted, asked_here })
    }
}

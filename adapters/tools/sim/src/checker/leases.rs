//! A voter that has promised a lease takes no part in establishing another leader until that is over.
//!
//! ```text
//!   hears LEASE(length) at t, answers it ─► bound to that leadership until t + length, by its own clock
//!   hears that leader close, transfer its leadership, or leave with a change ─► free
//! ```
//!
//! The server keeps such a promise in memory, and takes a start for one; here it outlasts its start. So what
//! is tested is the promise itself, and not how it is remembered.

use std::collections::BTreeMap;

use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event};
use quorate_core::message::{Message, Packet};
use quorate_core::output::Output;
use quorate_core::report::{Change, Reason};
use quorate_core::status::Phase;
use quorate_core::time::Instant;
use quorate_core::zxid::Epoch;

use crate::rule::{Rule, Violation, broken};

/// What voters have promised, and which leaderships have let work begin.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// The epoch that was announced on a link.
    announced: BTreeMap<(ServerId, LinkId), Epoch>,
    /// What was asked for on a link last: in which epoch, and when it would be over.
    asked: BTreeMap<(ServerId, LinkId), (Epoch, Instant)>,
    promised: BTreeMap<ServerId, (Epoch, Instant)>,
    /// The last leadership of each server that let work begin that only one may do.
    begun: BTreeMap<ServerId, Epoch>,
}

impl Leases {
    /// A server starts: its links are gone, its promise is not.
    pub(crate) fn on_start(&mut self, id: ServerId) {
        self.announced.retain(|(server, _), _| *server != id);
        self.asked.retain(|(server, _), _| *server != id);
    }

    /// A server's disk is emptied, and on that stood how long it may be bound.
    pub(crate) fn on_wipe(&mut self, id: ServerId) {
        self.promised.remove(&id);
    }

    /// A server is about to hear something, at this time by its own clock.
    #[allow(clippy::wildcard_enum_match_arm, reason = "nothing else is about leases")]
    pub(crate) fn on_event(&mut self, id: ServerId, shown: Instant, event: &Event) {
        match event {
            Event::LinkDown { link, cause } => {
                let epoch = self.announced.remove(&(id, *link));
                self.asked.remove(&(id, *link));
                if *cause == Cause::Closed {
                    self.release(id, epoch);
                }
            }
            Event::Received { link, message: Message::Packet(packet) } => {
                let leadership = self.announced.get(&(id, *link)).copied();
                match packet {
                    Packet::LeaderInfo { epoch, .. } => {
                        self.announced.insert((id, *link), *epoch);
                    }
                    Packet::Lease { length, .. } => {
                        let until = leadership.map(|epoch| (epoch, shown + *length));
                        self.asked.extend(until.map(|until| ((id, *link), until)));
                    }
                    Packet::Transfer { .. }
                    | Packet::CommitAndActivate { .. }
                    | Packet::InformAndActivate { .. } => self.release(id, leadership),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn release(&mut self, id: ServerId, by: Option<Epoch>) {
        if self.promised.get(&id).is_some_and(|(epoch, _)| Some(*epoch) == by) {
            self.promised.remove(&id);
        }
    }

    /// A server's output is about to be carried out, at this time by its clock, in this epoch of its own.
    #[allow(clippy::wildcard_enum_match_arm, reason = "nothing else takes part")]
    pub(crate) fn on_output(
        &mut self,
        id: ServerId,
        shown: Instant,
        epoch: Epoch,
        output: &Output,
    ) -> Result<(), Violation> {
        let helps = match output {
            Output::Send { link, message: Message::Packet(Packet::Lease { .. }) } => {
                // A leader asks with the same word.
                if let Some((leadership, until)) = self.asked.remove(&(id, *link)) {
                    let before = self.promised.get(&id).map_or(until, |(_, before)| *before);
                    self.promised.insert(id, (leadership, until.max(before)));
                }
                return Ok(());
            }
            Output::Send { message: Message::Packet(Packet::Ack(zxid)), .. } => {
                zxid.is_epoch_start().then(|| zxid.epoch())
            }
            Output::Report(report) => match (&report.change, &report.reason) {
                (Change::Phase { to: Phase::Broadcast, .. }, Reason::Acknowledged { members }) => {
                    members.contains(&id).then_some(epoch)
                }
                _ => None,
            },
            _ => None,
        };
        let (Some(helps), Some((leadership, until))) = (helps, self.promised.get(&id)) else {
            return Ok(());
        };
        if helps == *leadership || *until <= shown {
            return Ok(());
        }
        let detail = format!(
            "helps to establish epoch {helps} at {shown:?}, bound to {leadership} until {until:?}"
        );
        broken(Rule::Lease, id, detail)
    }

    /// A leader lets work begin; its epoch is the token that comes with it. Where leases hold, tokens come in
    /// their order; elsewhere a resource that has seen a later one refuses it.
    pub(crate) fn on_begun(
        &mut self,
        id: ServerId,
        epoch: Epoch,
        hold: bool,
    ) -> Result<(), Violation> {
        let before = |(other, begun): (&ServerId, &Epoch)| {
            (*begun >= epoch && (hold || *other == id || *begun == epoch))
                .then_some((*other, *begun))
        };
        if let Some((other, begun)) = self.begun.iter().find_map(before) {
            let detail = format!("lets work begin in epoch {epoch}, {other} did in {begun}");
            return broken(Rule::Token, id, detail);
        }
        self.begun.insert(id, epoch);
        Ok(())
    }
}

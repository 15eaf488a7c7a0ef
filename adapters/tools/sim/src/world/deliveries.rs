//! What the servers' applications get from the core, and when they say that they have applied it.
//!
//! A transaction is applied when it is delivered; that it is applied is said later, once for all that a step has
//! delivered. What is to be replayed is read from the disk later, when another history may be there.

use quorate_core::id::ServerId;
use quorate_core::input::{Event, Unreadable};
use quorate_core::peer::Peer;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use crate::application::State;
use crate::checker::Standing;
use crate::faults::FaultClass;
use crate::network::{hit, up_to};
use crate::rule::{Rule, Violation, broken};
use crate::world::front::Order;
use crate::world::{What, World};

impl World {
    /// What a server knows to be committed by now is judged, before its application or another server can act on it.
    pub(super) fn judge_commits(
        &mut self,
        id: ServerId,
        standing: Standing,
    ) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        let through = server.peer.as_ref().map_or(Zxid::ZERO, Peer::committed);
        if std::mem::replace(&mut server.committed, through) == through {
            return Ok(());
        }
        if self.checker.on_committed(id, through, standing, &server.disk)? {
            self.coverage.hit(FaultClass::CommittedElsewhereFirst);
        }
        if let Some(crowd) = &mut self.crowd {
            for txn in server.disk.latest().range(crowd.judge.last(), through) {
                crowd.judge.commit(id, txn)?;
            }
        }
        Ok(())
    }

    /// The staged state is the application's from here on.
    pub(super) fn adopt(&mut self, id: ServerId, label: Zxid) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if !server.application.adopt(label) {
            return broken(Rule::Boundary, id, format!("adopts {label}, which is not staged"));
        }
        self.checker.on_adopted(id, &server.application.state, server.committed)?;
        server.handed = Some(label);
        let State { tree, whole, .. } = server.application.state.clone();
        self.order(id, Order::Adopt { label, tree, whole });
        self.coverage.hit(FaultClass::Adopted);
        Ok(())
    }

    /// The application applies a transaction.
    pub(super) fn deliver(&mut self, id: ServerId, txn: &Txn) -> Result<(), Violation> {
        self.apply(id, txn)?;
        if let Some(server) = self.servers.get_mut(&id) {
            server.handed = Some(txn.zxid);
        }
        Ok(())
    }

    fn apply(&mut self, id: ServerId, txn: &Txn) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if server.application.overtakes() {
            self.coverage.hit(FaultClass::Overtaken);
        }
        // What ZooKeeper prepares has no numbers.
        let in_turn = server.application.apply(txn) || server.front.is_some();
        let asked_here = self.checker.on_applied(id, txn, server.incarnation, in_turn)?;
        self.coverage.hits(FaultClass::RequestApplied, u64::from(asked_here));
        if self.crowd.is_some() {
            self.order(id, Order::Apply(txn.clone()));
        }
        Ok(())
    }

    /// The application is to apply what the log has; it takes its time to read it.
    pub(super) fn replay(&mut self, id: ServerId, after: Zxid, through: Zxid) {
        let long = hit(&mut self.appliers, 4_000);
        let most = if long { 50 } else { 4 } * self.application_max;
        let wait = up_to(&mut self.appliers, most);
        let Some(server) = self.servers.get(&id) else { return };
        let incarnation = server.incarnation;
        self.coverage.hit(FaultClass::Replayed);
        self.agenda.after(wait, What::Replay { id, incarnation, after, through });
    }

    /// The log is read; not if a snapshot has taken its place meanwhile.
    pub(super) fn on_replay(
        &mut self,
        id: ServerId,
        incarnation: u64,
        after: Zxid,
        through: Zxid,
    ) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id).filter(|s| s.is(incarnation)) else {
            return Ok(());
        };
        let held = server.disk.durable();
        if after < held.floor {
            self.coverage.hit(FaultClass::ReplayOvertaken);
            return self.feed(id, Event::Replayed { through: after, outcome: Err(Unreadable) });
        }
        let txns: Vec<Txn> = held.range(after, through).cloned().collect();
        for txn in &txns {
            self.apply(id, txn)?;
        }
        self.work(id)?;
        self.feed(id, Event::Replayed { through, outcome: Ok(()) })
    }

    /// What a step has delivered will be applied.
    pub(super) fn will_say_applied(&mut self, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let Some(through) = server.handed.take() else { return };
        if server.disk.latest().range(through, server.committed).next().is_some() {
            self.coverage.hit(FaultClass::DeliveryHeldBack);
        }
        let incarnation = server.incarnation;
        let wait = up_to(&mut self.appliers, self.application_max);
        let event = Box::new(Event::Applied(through));
        self.agenda.after(wait, What::Answer { id, incarnation, event });
    }
}

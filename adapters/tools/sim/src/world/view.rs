//! What is the case in a world.

use quorate_core::id::{ReadId, ServerId};
use quorate_core::input::Plane;
use quorate_core::membership::Membership;
use quorate_core::status::Status;
use quorate_core::time::Instant;
use quorate_core::txn::RequestId;
use quorate_core::vote::ServerState;

use crate::application::State;
use crate::brief::Brief;
use crate::checker::Checker;
use crate::disk::{Contents, Disk};
use crate::ensemble::Ensemble;
use crate::faults::{Coverage, FaultClass};
use crate::record::Record;
use crate::rule::Violation;
use crate::world::World;

impl World {
    /// The time.
    pub fn now(&self) -> Instant {
        self.agenda.now()
    }

    /// How many steps servers have taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// A number that two runs of one seed have in common, and practically no others.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    /// The last lines of the log; empty if none is kept.
    pub fn log_tail(&self, lines: usize) -> String {
        self.trace.record.tail(lines)
    }

    /// What happened so far; empty if no log is kept.
    pub fn record(&self) -> &Record {
        &self.trace.record
    }

    /// How often which fault has happened.
    pub fn coverage(&self) -> Coverage {
        let mut all = self.coverage.clone();
        all.add(&self.network.coverage);
        all.hits(FaultClass::Joined, self.checker.ledger.joined);
        all.hits(FaultClass::Left, self.checker.ledger.left);
        self.count_clients(&mut all);
        all
    }

    /// What the checker has seen.
    pub fn checker(&self) -> &Checker {
        &self.checker
    }

    /// The ensemble, as it is now.
    pub fn ensemble(&self) -> &Ensemble {
        self.checker.ensemble()
    }

    /// Everybody, in the ensemble or not.
    pub fn servers(&self) -> impl Iterator<Item = ServerId> + '_ {
        self.servers.keys().copied()
    }

    /// Whether a server elects as those of ZooKeeper do.
    pub fn refers(&self, id: i64) -> bool {
        self.servers.get(&ServerId(id)).is_some_and(|server| server.reference.is_some())
    }

    /// Where a server stands; none while it is down.
    pub fn brief(&self, id: i64) -> Option<Brief> {
        self.servers.get(&ServerId(id))?.brief
    }

    /// Everything that a server says of itself; none while it is down.
    pub fn status(&self, id: i64) -> Option<Status> {
        Some(self.servers.get(&ServerId(id))?.peer.as_ref()?.status())
    }

    /// What is durable on a server's disk.
    pub fn durable(&self, id: i64) -> Option<&Contents> {
        Some(self.servers.get(&ServerId(id))?.disk.durable())
    }

    /// What a server has applied; none while it is down.
    pub fn applied(&self, id: i64) -> Option<&State> {
        let server = self.servers.get(&ServerId(id))?;
        server.peer.as_ref().map(|_| &server.application.state)
    }

    /// Whether all servers that run have applied everything that is committed.
    pub fn is_level(&self) -> bool {
        let commits = self.checker.commits();
        let running = self.servers.values().filter(|server| server.peer.is_some());
        let mut counts = running.map(|server| server.application.state.count);
        counts.all(|count| count == commits)
    }

    /// Whether a server runs.
    pub fn is_up(&self, id: i64) -> bool {
        self.brief(id).is_some()
    }

    /// Whether a server runs and was told to stand still.
    pub fn is_paused(&self, id: i64) -> bool {
        self.servers.get(&ServerId(id)).is_some_and(|server| server.paused)
    }

    /// How many connections of a plane join two servers, known to both.
    pub fn links_between(&self, a: i64, b: i64, plane: Plane) -> usize {
        self.network.links_between(ServerId(a), ServerId(b), plane)
    }

    /// Whether two servers have an election link, as the network knows, and each of them knows.
    pub fn are_linked(&self, a: i64, b: i64) -> bool {
        let knows = |id: i64, other: i64| {
            let peer = self.servers.get(&ServerId(id)).and_then(|server| server.peer.as_ref());
            peer.is_some_and(|peer| peer.status().linked.contains(&ServerId(other)))
        };
        self.links_between(a, b, Plane::Election) > 0 && knows(a, b) && knows(b, a)
    }

    /// How many connections there are, whether open, being opened or being closed.
    pub fn connections(&self) -> usize {
        self.network.connections()
    }

    /// How often servers have dialled so far.
    #[must_use]
    pub const fn dials(&self) -> u64 {
        self.network.dials()
    }

    /// The server that leads and serves; the one of the latest epoch if an older one has not noticed.
    pub fn leader(&self) -> Option<ServerId> {
        let leads = |b: &Brief| b.state == ServerState::Leading && b.serving;
        self.servers
            .iter()
            .filter_map(|(id, server)| server.brief.filter(leads).map(|b| (b.current_epoch, *id)))
            .max()
            .map(|(_, id)| id)
    }

    /// Whether one server leads and every other of `ids` serves under it.
    pub fn is_settled_among(&self, ids: impl IntoIterator<Item = ServerId>) -> bool {
        let Some(leader) = self.leader() else { return false };
        let epoch = self.brief(leader.0).map(|brief| brief.current_epoch);
        ids.into_iter().all(|id| {
            self.brief(id.0).is_some_and(|b| {
                b.serving && b.leader == Some(leader) && Some(b.current_epoch) == epoch
            })
        })
    }

    /// Whether one server leads and every other serves under it, all being up.
    pub fn is_settled(&self) -> bool {
        self.is_settled_among(self.servers.keys().copied())
    }

    /// What clients of a server asked for and have heard nothing about.
    pub fn unanswered(&self, id: i64) -> (Vec<RequestId>, Vec<ReadId>) {
        let incarnation = self.servers.get(&ServerId(id)).map_or(0, |server| server.incarnation);
        self.checker.ledger.unanswered((ServerId(id), incarnation))
    }

    /// Whether a snapshot is on its way to a server.
    pub(crate) fn is_receiving(&self, id: i64) -> bool {
        let server = self.servers.get(&ServerId(id));
        server.is_some_and(|server| server.peer.is_some() && server.application.receiving.is_some())
    }

    /// Whether a server goes by an older membership than the one in force, and takes over none that it is told of in an
    /// election.
    pub(crate) fn is_left_behind(&self, id: ServerId) -> bool {
        let Some(server) = self.servers.get(&id) else { return false };
        let known = server.disk.durable().membership.as_ref().map_or(0, Membership::version);
        !server.config.reconfig_enabled && known < self.checker.changed_at().0
    }

    /// Whether a disk has a newer membership than this server's, in force or to follow, and the server takes over none
    /// that it is told of in an election.
    pub(crate) fn knows_less(&self, id: ServerId) -> bool {
        let newest = |disk: &Disk| {
            let held = disk.durable();
            let all = held.membership.iter().chain(&held.next_membership);
            all.map(Membership::version).max().unwrap_or(0)
        };
        let known = self.servers.values().map(|server| newest(&server.disk)).max();
        let server = self.servers.get(&id);
        server.is_some_and(|server| {
            !server.config.reconfig_enabled && Some(newest(&server.disk)) < known
        })
    }

    /// Whether one order explains all that clients have read and written; of how many operations.
    ///
    /// # Errors
    ///
    /// If none does.
    pub fn check_history(&self) -> Result<usize, Violation> {
        self.checker.ledger.on_end()
    }
}

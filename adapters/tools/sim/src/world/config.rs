//! The configuration of a world: members, disks, network, clients, timing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_core::config::{Election, HistoryLimits, Limits, Timing};
use quorate_core::id::ServerId;
use quorate_core::membership::{Membership, MembershipError};
use quorate_core::zxid::Zxid;

use crate::disk::{Contents, DiskConfig};
use crate::ensemble::Ensemble;
use crate::network::{Dialect, NetworkConfig};

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Who takes part.
    pub ensemble: Ensemble,
    /// What the disks hold at first; empty where nothing is said.
    pub disks: BTreeMap<ServerId, Contents>,
    /// Servers whose configuration shows them another ensemble.
    pub views: BTreeMap<ServerId, Ensemble>,
    /// Servers that are no members at first, and know those who are.
    pub spares: Vec<ServerId>,
    /// The durations of all servers.
    pub timing: Timing,
    /// How much servers are wished to lead, where that is not 0.
    pub priorities: BTreeMap<ServerId, u8>,
    /// The lease that voters promise their leader, if any.
    pub lease: Option<Duration>,
    /// Whether servers that start again may have been given another lease, or none.
    pub leases_change: bool,
    /// How it is found out who is to lead.
    pub election: Election,
    /// Whether the membership may change.
    pub may_change: bool,
    /// Who does not let it be changed, as a leader, and takes over no other that it is told of in an election.
    pub unwilling: BTreeSet<ServerId>,
    /// Whether the application keeps the membership in its state, as ZooKeeper's tree does.
    pub tells: bool,
    /// Two of three servers have a service that keeps sessions: what one says meets one that does not expect it.
    pub keeps_sessions: bool,
    /// How many clients of ZooKeeper there are; if any, all servers run its tree and its service.
    pub clients: usize,
    /// How far their wall clocks are apart at first, at most.
    pub walls_apart: Duration,
    /// How much history the servers keep at hand.
    pub history: HistoryLimits,
    /// How many bytes a follower holds before its disk has them.
    pub unsynced_bytes: usize,
    /// The longest that an application takes for anything.
    pub application_max: Duration,
    /// The longest transaction, in bytes, if applications make more of some requests than was asked for, and
    /// of some too much.
    pub expands: Option<usize>,
    /// Whether elections end as soon as nothing can change them.
    pub finish_when_settled: bool,
    /// How the network behaves.
    pub network: NetworkConfig,
    /// How the disks behave.
    pub disk: DiskConfig,
    /// How far clocks may be off, in millionths of their speed.
    pub drift: u64,
    /// Who speaks as older versions of ZooKeeper do.
    pub old: BTreeMap<ServerId, Dialect>,
    /// Whether servers that start again may do so as the other kind, of ZooKeeper or of ours.
    pub kinds_change: bool,
    /// Whether those elect as ZooKeeper's servers do, too.
    pub old_elect: bool,
    /// How often a non-member connects, about; never, if none.
    pub non_members: Option<Duration>,
    /// Whether a [record](crate::World::record) is kept of each event, to be printed if the test fails.
    pub keep_log: bool,
}

impl WorldConfig {
    /// A friendly world for an ensemble: empty disks, a fast network, no faults.
    pub fn new(ensemble: Ensemble) -> Self {
        Self {
            ensemble,
            disks: BTreeMap::new(),
            views: BTreeMap::new(),
            spares: Vec::new(),
            timing: Timing::default(),
            priorities: BTreeMap::new(),
            lease: None,
            leases_change: false,
            election: Election::Fast,
            may_change: false,
            unwilling: BTreeSet::new(),
            tells: false,
            keeps_sessions: false,
            clients: 0,
            walls_apart: Duration::ZERO,
            history: HistoryLimits::default(),
            unsynced_bytes: Limits::default().unsynced_bytes,
            application_max: Duration::from_millis(1),
            expands: None,
            finish_when_settled: true,
            network: NetworkConfig::default(),
            disk: DiskConfig::default(),
            drift: 0,
            old: BTreeMap::new(),
            kinds_change: false,
            old_elect: false,
            non_members: None,
            keep_log: true,
        }
    }

    /// What a server is configured with: its view; a spare knows the others, and itself.
    ///
    /// # Errors
    ///
    /// If that is no ensemble, say without a voter.
    pub(crate) fn membership_of(&self, id: ServerId) -> Result<Membership, MembershipError> {
        match self.of_spare(id) {
            Some(ensemble) => ensemble.membership(),
            None => self.views.get(&id).unwrap_or(&self.ensemble).membership(),
        }
    }

    /// What a spare is configured with; none if the server is none.
    pub(crate) fn of_spare(&self, id: ServerId) -> Option<Ensemble> {
        let view = self.views.get(&id).unwrap_or(&self.ensemble);
        self.spares.contains(&id).then(|| view.clone().with_voter(id))
    }

    /// The same with a server whose log ends at `last`; its epochs are that of `last`.
    #[must_use]
    pub fn with_history(self, id: i64, last: Zxid) -> Self {
        let epoch = last.epoch().0;
        self.with_disk(id, Contents::ending(epoch, epoch, last))
    }

    /// The same with a server whose disk holds this.
    #[must_use]
    pub fn with_disk(mut self, id: i64, contents: Contents) -> Self {
        self.disks.insert(ServerId(id), contents);
        self
    }
}

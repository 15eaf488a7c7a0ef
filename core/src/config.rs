//! What one server is told before it starts, checked once.
//!
//! Values only. Where they come from (a `zoo.cfg`, a builder) is not known here, and neither are paths,
//! resolved addresses or anything else that only a driver needs.

use core::time::Duration;

use thiserror::Error;

use crate::id::ServerId;
use crate::membership::Membership;
use crate::message::{LearnerInfo, Request};
use crate::quorum::Quorum;
use crate::txn::Txn;
use crate::zxid::Counter;

/// The configuration of one [`Peer`](crate::peer::Peer). `Peer::new` refuses one that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Who we are (`myid`).
    pub id: ServerId,
    /// The ensemble as it is committed.
    pub membership: Membership,
    /// The ensemble as it will be, while a change is under way.
    pub next_membership: Option<Membership>,
    /// Every duration.
    pub timing: Timing,
    /// End an election at once when nothing that could change its outcome is outstanding, instead of
    /// after [`Timing::finalize_wait`]. Invisible on the wire; on by default.
    pub finish_when_settled: bool,
    /// Whether this server, as a leader, may be asked to change the membership, and takes over the newer one that a
    /// peer tells of in an election (`reconfigEnabled`).
    ///
    /// It does not decide who knows of a change: every server is bound by each change in its history. A voter that
    /// logs and acknowledges one without being bound by it helps to make two leaders. (ZooKeeper's servers with
    /// `reconfigEnabled=false` are such voters: switch it on at all servers, or at none.)
    pub reconfig_enabled: bool,
    /// Changes up to this version bind this server no more, on the operator's word: it goes by the membership that
    /// it was told, and by a leader that knows of none of them. Safe only where the ensemble is certain to be another
    /// one from here on.
    pub forgotten: i64,
    /// Whether an outside arbiter decides for a two-server ensemble (`oraclePath`).
    pub oracle: bool,
    /// Every bound on what others can make us hold.
    pub limits: Limits,
    /// How much history is kept at hand, and how often the application's state is put on disk.
    pub history: HistoryLimits,
    /// What we say we speak: [`LearnerInfo::PROTOCOL`](crate::message::LearnerInfo::PROTOCOL) where the
    /// application is ZooKeeper's data tree, and
    /// [`LearnerInfo::OTHER_APPLICATION`](crate::message::LearnerInfo::OTHER_APPLICATION) where it is
    /// not: its snapshots mean nothing to a ZooKeeper server, so the two are kept apart. What all
    /// servers of ours speak beside it is added, see [`Config::spoken`].
    pub protocol: i32,
    /// How much this server is wished to lead. A leader hands its seat over to a voter that is wished more
    /// and has everything; who is elected does not depend on it, so beside ZooKeeper servers it
    /// changes nothing that they see.
    pub priority: u8,
    /// For how long voters promise their leader, at each ping, to take no part in establishing another; none
    /// for not at all. To the millisecond; at least a tick, at most `syncLimit`, and the same at all
    /// servers.
    ///
    /// With it a leader knows by its own clock when its reign is over, and gives it up before another can
    /// have been established. What it costs: after a crash of the leader's machine (not of its process,
    /// which closes its links) and after a restart of the ensemble, no leader is established for so long. A server
    /// that is started with less than before, or with none, waits for the longest that it may ever have promised:
    /// that is kept beside its epochs.
    /// Voters that are not ours promise nothing; where they are needed for a quorum there are no leases.
    pub lease: Option<Duration>,
    /// How it is found out who is to lead: the same at all servers.
    pub election: Election,
    /// Where every jitter comes from: the same seed and the same inputs are the same run. No two servers should have
    /// the same; [`Config::new`] sets it to the id.
    pub seed: u64,
}

/// How it is found out who is to lead. What follows (discovery, synchronisation, broadcast) is the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Election {
    /// ZooKeeper's: all tell their votes until all have the best one. Understood by ZooKeeper servers.
    #[default]
    Fast,
    /// One vote for each server and generation, and heartbeats from the leader. Among servers of ours only.
    Generation(Generations),
}

/// Time-outs and policies of elections by generation. The same at all servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Generations {
    /// Silence of the leader after which a server asks to lead, at least; no voter votes against a leader that
    /// was heard in this time.
    pub timeout_min: Duration,
    /// The same, at most: each server draws anew each time. A leader that no quorum has answered for so long
    /// gives up.
    pub timeout_max: Duration,
    /// How often a leader says that it leads; a few times in the shortest time-out.
    pub heartbeat: Duration,
    /// How long after one another servers ask to lead whose leader has closed its links: by rank, which is the
    /// order of their ids, the highest at once.
    pub stagger: Duration,
    /// A server asks first whether it would be elected, and raises the generation only if so: one that was cut
    /// off does not depose a leader when it comes back (Raft's *pre-vote*).
    pub pre_vote: bool,
    /// Who leads of those that are equally new.
    pub ties: Ties,
}

/// Who leads of those that are equally new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ties {
    /// The one with the higher id, as with ZooKeeper's election, unless it tries in vain. It is a pre-vote's
    /// answer, so there is no preference without pre-votes.
    BetterRanked,
    /// The server that asks first, as in Raft.
    FirstCome,
}

impl Default for Generations {
    fn default() -> Self {
        Self::within(Duration::from_millis(1000), Duration::from_millis(2000))
    }
}

impl Generations {
    /// The defaults for these time-outs: four heartbeats in the shortest.
    pub fn within(timeout_min: Duration, timeout_max: Duration) -> Self {
        Self {
            timeout_min,
            timeout_max,
            heartbeat: timeout_min / 4,
            stagger: Duration::from_millis(3),
            pre_vote: true,
            ties: Ties::BetterRanked,
        }
    }
}

/// Every duration of the protocol. The defaults are ZooKeeper's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// The unit of the limits below (`tickTime`).
    pub tick: Duration,
    /// Ticks that connecting to a leader and synchronising may take (`initLimit`).
    pub init_limit: u32,
    /// Ticks of silence after which a leader or learner is given up (`syncLimit`).
    pub sync_limit: u32,
    /// Ticks that reaching the leader may take (`connectToLearnerMasterLimit`); `init_limit` if none.
    pub connect_limit: Option<u32>,
    /// The first wait of an election for notifications (`fastleader.minNotificationInterval`).
    pub notification_min: Duration,
    /// The longest such wait; each is twice the one before (`fastleader.maxNotificationInterval`).
    pub notification_max: Duration,
    /// How long a server that counts a quorum waits for a better vote.
    pub finalize_wait: Duration,
    /// An observer waits up to this long before it takes part in a new election
    /// (`observer.election.DelayMs`).
    pub observer_delay: Duration,
    /// The first wait before a broken link is dialled again.
    pub redial_min: Duration,
    /// The longest such wait.
    pub redial_max: Duration,
    /// The first wait before a leader that could not be reached is dialled again.
    pub connect_retry_min: Duration,
    /// The longest such wait.
    pub connect_retry_max: Duration,
    /// How long a learner that comes before our election has ended is kept waiting.
    pub early_learner_max: Duration,
    /// How long a leader that hands its seat over holds requests back, at most, before it leads on.
    pub hand_over_max: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            tick: Duration::from_millis(3000),
            init_limit: 10,
            sync_limit: 5,
            connect_limit: None,
            notification_min: Duration::from_millis(200),
            notification_max: Duration::from_secs(60),
            finalize_wait: Duration::from_millis(200),
            observer_delay: Duration::from_millis(200),
            redial_min: Duration::from_millis(10),
            redial_max: Duration::from_secs(1),
            connect_retry_min: Duration::from_millis(10),
            connect_retry_max: Duration::from_millis(100),
            early_learner_max: Duration::from_secs(1),
            hand_over_max: Duration::from_secs(1),
        }
    }
}

impl Timing {
    /// How long connecting and synchronising may be silent.
    pub fn init_time(&self) -> Duration {
        self.tick.saturating_mul(self.init_limit)
    }

    /// How long a member of an established ensemble may be silent.
    pub fn sync_time(&self) -> Duration {
        self.tick.saturating_mul(self.sync_limit)
    }

    /// How long a learner tries to reach its leader.
    pub fn connect_time(&self) -> Duration {
        self.tick.saturating_mul(self.connect_limit.filter(|l| *l > 0).unwrap_or(self.init_limit))
    }

    /// What was heard within so long was heard lately: two ticks.
    pub fn recent(&self) -> Duration {
        self.tick.saturating_mul(2)
    }

    /// How often a leader pings: twice per tick.
    pub fn ping_interval(&self) -> Duration {
        self.tick / 2
    }
}

/// Every bound on what others can make us hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Election links of servers that are no members (probes, servers that want to join). The
    /// oldest makes room.
    pub strangers: usize,
    /// Quorum links that have not said yet who they are. The oldest makes room.
    pub unintroduced: usize,
    /// Learners of one leader.
    pub learners: usize,
    /// The longest body of a request that a caller at this server asks for, in bytes (`jute.maxbuffer`).
    pub request_bytes: usize,
    /// The longest transaction that this server proposes as a leader, in bytes, with its header:
    /// `jute.maxbuffer` and what it may be exceeded by (`zookeeper.jute.maxbuffer.extrasize`). At least
    /// [`Limits::TXN_BYTES_MIN`], at most [`Limits::TXN_BYTES_MAX`]. The same at all servers, or what one proposes
    /// another cannot read.
    pub txn_bytes: usize,
    /// Bytes of transactions that a follower or observer holds before its disk has them, besides the packet that
    /// came last. When another comes it gives up its leader, and comes back when the disk has caught up; if it did not
    /// serve yet, with twice the room. Much more than the longest transaction, so that an ordinary moment of a disk
    /// costs nothing.
    pub unsynced_bytes: usize,
}

impl Limits {
    /// What [`Limits::txn_bytes`] has to allow for: ZooKeeper's least extra size.
    pub const TXN_BYTES_MIN: usize = 1024;
    /// The most that [`Limits::txn_bytes`] may be: a length is an `i32` on the wire and on disk.
    pub const TXN_BYTES_MAX: usize = i32::MAX as usize;

    /// The longest transaction, and the longest buffer of a packet, that this server reads, in bytes: what it may
    /// propose itself, and never less than what every server of ZooKeeper writes by default
    /// ([`Txn::BYTES_MAX`]).
    pub fn read_bytes(&self) -> usize {
        self.txn_bytes.max(Txn::BYTES_MAX)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            strangers: 64,
            unintroduced: 64,
            learners: 1024,
            request_bytes: Request::BODY_BYTES_MAX,
            txn_bytes: Txn::BYTES_MAX,
            unsynced_bytes: 64 << 20,
        }
    }
}

/// How much history is kept, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HistoryLimits {
    /// How many committed transactions are kept in memory for learners (`zookeeper.commitLogCount`).
    pub window_count: usize,
    /// How many bytes they may take together.
    pub window_bytes: usize,
    /// How many bytes of transactions may be handed to the application beyond what it has said that it has applied. As
    /// many are kept in memory for it before the log on disk has to do.
    pub delivery_bytes: usize,
    /// A learner is served from the log on disk if that is not more than this many hundredths of the
    /// newest snapshot (`zookeeper.snapshotSizeFactor`); never, if none.
    pub size_percent: Option<u64>,
    /// A snapshot is taken after between half as many and as many transactions (`snapCount`); the
    /// servers of an ensemble should not all do it at once.
    pub snap_count: u64,
    /// How many observers may be sent snapshots at a time (`zookeeper.leader.maxConcurrentSnapSyncs`);
    /// voters always may.
    pub observer_snapshots: usize,
    /// How many bytes of transactions may be under way to one learner before it has read them.
    pub pace_bytes: usize,
    /// How many requests of one server may be under way.
    pub requests: usize,
    /// How many transactions we propose in one reign, as many as there are counters at most
    /// ([`Counter::LAST`]); then we make room for a new epoch. Less is for those who want to see that
    /// and cannot wait for four billion (ZooKeeper has `zookeeper.testingonly.initialZxid`).
    pub reign_count: u32,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self {
            window_count: 500,
            window_bytes: 16 << 20,
            delivery_bytes: 64 << 20,
            size_percent: Some(33),
            snap_count: 100_000,
            observer_snapshots: 10,
            pace_bytes: 1 << 20,
            requests: 4096,
            reign_count: Counter::LAST.0,
        }
    }
}

impl Config {
    /// The defaults for server `id` of `membership`.
    pub fn new(id: ServerId, membership: Membership) -> Self {
        Self {
            id,
            membership,
            next_membership: None,
            timing: Timing::default(),
            finish_when_settled: true,
            reconfig_enabled: false,
            forgotten: 0,
            oracle: false,
            limits: Limits::default(),
            history: HistoryLimits::default(),
            protocol: LearnerInfo::PROTOCOL,
            priority: 0,
            lease: None,
            election: Election::Fast,
            seed: id.0 as u64,
        }
    }

    /// What this server says it speaks.
    pub const fn spoken(&self) -> i32 {
        LearnerInfo::ours(self.protocol, self.priority, self.lease.is_some())
    }

    /// Whether this server is a voter of the committed configuration.
    pub fn is_voter(&self) -> bool {
        self.membership.is_participant(self.id)
    }

    /// Whether a server is a member of the committed configuration or of the next.
    pub fn is_member(&self, id: ServerId) -> bool {
        let next = self.next_membership.as_ref();
        self.membership.member(id).is_some() || next.is_some_and(|next| next.member(id).is_some())
    }

    /// Who has to agree: a quorum of the committed configuration and, while a change is under way, one of
    /// the next.
    pub fn quorum(&self) -> Quorum {
        let present = self.membership.quorum();
        let quorum = match &self.next_membership {
            Some(next) if !next.same_members(&self.membership) => {
                Quorum::joint(&present, &next.quorum())
            }
            Some(_) | None => present,
        };
        if self.oracle { quorum.with_oracle() } else { quorum }
    }

    /// The configuration seen last, in force or not.
    pub fn last_seen(&self) -> &Membership {
        self.next_membership.as_ref().unwrap_or(&self.membership)
    }

    /// Refuses what cannot work.
    ///
    /// # Errors
    ///
    /// Names the field and its value.
    pub fn check(&self) -> Result<(), ConfigError> {
        let t = &self.timing;
        for (field, value) in [
            ("tick", t.tick),
            ("notification_min", t.notification_min),
            ("redial_min", t.redial_min),
            ("connect_retry_min", t.connect_retry_min),
        ] {
            if value < Duration::from_millis(1) {
                return Err(ConfigError::TooShort { field, value });
            }
        }
        for (field, value) in [("init_limit", t.init_limit), ("sync_limit", t.sync_limit)] {
            if value == 0 {
                return Err(ConfigError::NoTicks { field });
            }
        }
        for (field, min, max) in [
            ("notification", t.notification_min, t.notification_max),
            ("redial", t.redial_min, t.redial_max),
            ("connect_retry", t.connect_retry_min, t.connect_retry_max),
        ] {
            if min > max {
                return Err(ConfigError::MinAboveMax { field, min, max });
            }
        }
        for (field, value) in [
            ("strangers", self.limits.strangers),
            ("unintroduced", self.limits.unintroduced),
            ("learners", self.limits.learners),
            ("request_bytes", self.limits.request_bytes),
            ("unsynced_bytes", self.limits.unsynced_bytes),
        ] {
            if value == 0 {
                return Err(ConfigError::NoRoom { field });
            }
        }
        let (min, max) = (Limits::TXN_BYTES_MIN, Limits::TXN_BYTES_MAX);
        let bytes = self.limits.txn_bytes;
        if bytes < min || bytes > max {
            return Err(ConfigError::TxnBytes { bytes, min, max });
        }
        if let Some(lease) = self.lease {
            let (min, max) = (t.tick, t.sync_time().min(t.init_time()));
            if lease < min || lease > max {
                return Err(ConfigError::Lease { lease, min, max });
            }
        }
        if let Election::Generation(rules) = &self.election {
            let (min, max) = (rules.timeout_min, rules.timeout_max);
            for (field, value) in [("timeout_min", min), ("heartbeat", rules.heartbeat)] {
                if value < Duration::from_millis(1) {
                    return Err(ConfigError::TooShort { field, value });
                }
            }
            if min > max {
                return Err(ConfigError::MinAboveMax { field: "timeout", min, max });
            }
            if rules.heartbeat > min / 2 {
                return Err(ConfigError::Heartbeat { heartbeat: rules.heartbeat, max: min / 2 });
            }
        }
        if self.history.reign_count == 0 {
            return Err(ConfigError::NoRoom { field: "reign_count" });
        }
        if self.id == ServerId::NONE || self.id == ServerId::ANONYMOUS_OBSERVER || self.id.0 < 0 {
            return Err(ConfigError::ReservedId(self.id));
        }
        Ok(())
    }
}

/// Why a [`Config`] cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A duration below a millisecond would make a server spin.
    #[error("{field} is {value:?}, at least 1 ms is needed")]
    TooShort {
        /// The field of [`Timing`].
        field: &'static str,
        /// What it says.
        value: Duration,
    },
    /// A limit of no ticks gives up before it begins.
    #[error("{field} is 0 ticks, at least 1 is needed")]
    NoTicks {
        /// The field of [`Timing`].
        field: &'static str,
    },
    /// The first wait is longer than the longest.
    #[error("{field}_min is {min:?}, more than {field}_max, which is {max:?}")]
    MinAboveMax {
        /// The pair of fields of [`Timing`].
        field: &'static str,
        /// The first wait.
        min: Duration,
        /// The longest wait.
        max: Duration,
    },
    /// A bound of 0, which would admit nothing.
    #[error("the limit of {field} is 0, at least 1 is needed")]
    NoRoom {
        /// The field of [`Limits`] or [`HistoryLimits`].
        field: &'static str,
    },
    /// Transactions that others could not read, or too short for anything.
    #[error("transactions of {bytes} bytes at most, {min} to {max} would do")]
    TxnBytes {
        /// What [`Limits::txn_bytes`] says.
        bytes: usize,
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// A lease that pings cannot renew in time, or that outlasts the patience of others.
    #[error("the lease is {lease:?}, {min:?} to {max:?} would do (a tick to syncLimit)")]
    Lease {
        /// What it says.
        lease: Duration,
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// A leader that says so seldom that it lives is given up though it does.
    #[error(
        "the heartbeat is {heartbeat:?}, at most {max:?} would do (half of the shortest time-out)"
    )]
    Heartbeat {
        /// What it says.
        heartbeat: Duration,
        /// The longest.
        max: Duration,
    },
    /// Negative ids and the largest belong to observers without an id.
    #[error("server id {0} is reserved")]
    ReservedId(ServerId),
}

//! What one server is told before it starts, checked once.
//!
//! ```text
//!   Config ─┬─ membership, the next one while a change is under way
//!           ├─ timing      ticks, waits, time-outs
//!           ├─ election    fast leader election, or elections by generation
//!           ├─ limits      what others can make us hold
//!           ├─ strangers   what servers may do that no membership names
//!           └─ history     what of the history is kept at hand
//! ```
//!
//! Values only. Where they come from (a `zoo.cfg`, a builder) is not known here, and neither are paths,
//! resolved addresses or anything else that only a driver needs.

mod check;
mod election;
mod error;
mod limits;
mod strangers;
mod timing;

use core::time::Duration;

pub use crate::config::election::{Election, Generations, Ties};
pub use crate::config::error::ConfigError;
pub use crate::config::limits::{HistoryLimits, Limits};
pub use crate::config::strangers::{Forged, Strangers};
pub use crate::config::timing::Timing;
use crate::id::ServerId;
use crate::membership::Membership;
use crate::message::LearnerInfo;
use crate::quorum::Quorum;

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
    /// Whether a service above keeps sessions of clients. If so, it is told of pings
    /// ([`Pinged`](crate::output::Output::Pinged)) and of what learners answer
    /// ([`Touched`](crate::output::Output::Touched)), and of sessions that are to be looked up
    /// ([`Revalidate`](crate::output::Output::Revalidate)). If not, pings are answered here, without sessions.
    pub keeps_sessions: bool,
    /// Changes up to this version bind this server no more, on the operator's word: it goes by the membership that
    /// it was told, and by a leader that knows of none of them. Safe only where the ensemble is certain to be another
    /// one from here on.
    pub forgotten: i64,
    /// Whether an outside arbiter decides for a two-server ensemble (`oraclePath`).
    pub oracle: bool,
    /// What servers may do that are in no configuration, while this server leads.
    pub strangers: Strangers,
    /// Every bound on what others can make us hold.
    pub limits: Limits,
    /// How much history is kept at hand, and how often the application's state is put on disk.
    pub history: HistoryLimits,
    /// What we say we speak: [`LearnerInfo::PROTOCOL`](crate::message::LearnerInfo::PROTOCOL) where the
    /// application is ZooKeeper's data tree, and
    /// [`LearnerInfo::OTHER_APPLICATION`](crate::message::LearnerInfo::OTHER_APPLICATION) where it is
    /// not: its snapshots mean nothing to a ZooKeeper server, so the two are staged. What all
    /// servers of ours speak beside it is added, see [`Config::spoken`].
    pub protocol: i32,
    /// How much this server is wished to lead. A leader transfers its leadership to a voter that is wished more
    /// and has everything; who is elected does not depend on it, so beside ZooKeeper servers it
    /// changes nothing that they see.
    pub priority: u8,
    /// For how long voters promise their leader, at each ping, to take no part in establishing another; none
    /// for not at all. To the millisecond; at least a tick, at most `syncLimit`, and the same at all
    /// servers.
    ///
    /// With it a leader knows by its own clock when its leadership is over, and gives it up before another can
    /// have been established. What it costs: after a crash of the leader's machine (not of its process,
    /// which closes its links) and after a restart of the ensemble, no leader is established for so long. A server
    /// that is started with less than before, or with none, waits for the longest that it may ever have promised:
    /// that is kept beside its epochs.
    /// Voters that are not ours promise nothing; where they are needed for a quorum there are no leases. As a leader, a
    /// server without leases, ZooKeeper's say, begins when it hears of its quorum, however late that is: of its beginning
    /// no lease of another tells anything.
    pub lease: Option<Duration>,
    /// How it is found out who is to lead: the same at all servers.
    pub election: Election,
    /// Where every jitter comes from: the same seed and the same inputs are the same run. No two servers should have
    /// the same; [`Config::new`] sets it to the id.
    pub seed: u64,
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
            keeps_sessions: false,
            forgotten: 0,
            oracle: false,
            strangers: Strangers::default(),
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
}

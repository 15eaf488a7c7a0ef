//! Every duration of the protocol: ticks and what is counted in them, waits, and pauses between attempts.
//!
//! The defaults, and most of the names, are ZooKeeper's.

use core::time::Duration;

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
    /// How long a leader that transfers its leadership holds requests back, at most, before it leads on.
    pub transfer_max: Duration,
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
            transfer_max: Duration::from_secs(1),
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

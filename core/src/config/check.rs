//! Whether a configuration can work: each duration, limit and id in its bounds.
//!
//! Refused is what would make a server spin, give up before it begins, or admit nothing; what is only slow is the
//! operator's choice.

use core::time::Duration;

use crate::config::{Config, ConfigError, Election, Limits};
use crate::id::ServerId;

impl Config {
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
            ("non_members", self.limits.non_members),
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
        if self.history.epoch_count == 0 {
            return Err(ConfigError::NoRoom { field: "epoch_count" });
        }
        if self.id == ServerId::NONE || self.id == ServerId::ANONYMOUS_OBSERVER || self.id.0 < 0 {
            return Err(ConfigError::ReservedId(self.id));
        }
        Ok(())
    }
}

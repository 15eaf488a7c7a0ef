//! The configuration of a network: latency, and how often which fault happens.

use std::time::Duration;

/// How the network behaves. Chances are in 65536ths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    /// The shortest way.
    pub latency_min: Duration,
    /// The longest way on a good day.
    pub latency_max: Duration,
    /// The chance that a message takes much longer.
    pub spike: u64,
    /// How much longer, at most.
    pub spike_max: Duration,
    /// The chance, per message, that the connection breaks around it.
    pub reset: u64,
    /// The chance that what arrives last on a connection that breaks is only a part of a message.
    pub cut_inside: u64,
    /// The chance that what is under way on a connection that ends takes much longer from then on.
    pub linger: u64,
    /// How much longer, at most.
    pub linger_max: Duration,
    /// The chance that a connection carries little.
    pub slow_link: u64,
    /// How many bytes such a one carries in a millisecond, at least.
    pub slow_rate: u64,
    /// The chance that a dial takes much longer.
    pub slow_dial: u64,
    /// How much longer, at most.
    pub slow_dial_max: Duration,
    /// The chance that a message of a member is damaged, so that it cannot be read.
    pub damage: u64,
    /// The chance that a notification arrives twice.
    pub duplicate: u64,
    /// The chance that a message arrives in two pieces.
    pub split: u64,
    /// Whether packets that have come together are read as runs.
    pub runs: bool,
    /// The shortest pause between two pieces of a snapshot.
    pub stream_gap_min: Duration,
    /// The longest. Between two of the log it is a hundredth of that.
    pub stream_gap_max: Duration,
    /// The longest that writing a notification to its socket takes.
    pub write_max: Duration,
    /// When a dial that hears nothing is given up (`cnxTimeout`).
    pub dial_timeout: Duration,
    /// The soonest that an end gives up a connection on which nothing is acknowledged.
    pub silent_min: Duration,
    /// The latest.
    pub silent_max: Duration,
    /// The chance that a connection which carried something across a partition goes on after it.
    pub resume: u64,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            latency_min: Duration::from_micros(100),
            latency_max: Duration::from_millis(2),
            spike: 0,
            spike_max: Duration::from_millis(200),
            reset: 0,
            cut_inside: 0x8000,
            linger: 0,
            linger_max: Duration::from_secs(1),
            slow_link: 0,
            slow_rate: 10,
            slow_dial: 0,
            slow_dial_max: Duration::from_millis(1500),
            damage: 0,
            duplicate: 0,
            split: 0,
            runs: true,
            stream_gap_min: Duration::ZERO,
            stream_gap_max: Duration::from_micros(200),
            write_max: Duration::from_micros(50),
            dial_timeout: Duration::from_secs(5),
            silent_min: Duration::from_secs(1),
            silent_max: Duration::from_secs(8),
            resume: 0x8000,
        }
    }
}

//! What lines of the log are called: one closed list of names, on which programs that read logs may rely.
//!
//! A line of a library that knows nothing of this is [`OTHER`].

/// All names, in order.
pub(crate) const EVENTS: [&str; 62] = [
    "auth.refused",
    "client.ahead",
    "client.closed",
    "client.refused",
    "clock.jumped",
    "config.changed",
    "config.loaded",
    "config.proposed",
    "config.refused",
    "config.reloaded",
    "config.warning",
    "disk.slow",
    "disk.warning",
    "election.decided",
    "election.failed",
    "election.phase_changed",
    "election.round_joined",
    "election.vote_changed",
    "epoch.established",
    "epoch.promised",
    "follower.lost_leader",
    "leader.stepped_down",
    "learner.lost",
    "link.down",
    "link.refused",
    "link.unreadable",
    "link.up",
    "log.level_changed",
    "log.unreadable",
    "operator.answered",
    "operator.failed",
    "oracle.changed",
    "other",
    "port.failed",
    "port.opened",
    "purge.done",
    "reply.too_long",
    "request.dropped",
    "server.failed",
    "server.serving",
    "server.starting",
    "server.stopped",
    "server.stopping",
    "session.expired",
    "session.many_parents",
    "snapshot.failed",
    "snapshot.taken",
    "snapshot.unreadable",
    "sync.failed",
    "sync.finished",
    "sync.ignored",
    "sync.started",
    "tls.identity",
    "tls.notice",
    "tls.refused",
    "tls.refused_by_peer",
    "tls.reload_failed",
    "tls.reloaded",
    "tree.differs",
    "txn.unknown",
    "txn.without_effect",
    "watch.refused",
];

/// What has no name of its own.
pub(crate) const OTHER: &str = "other";

/// The name itself if it is one, else [`OTHER`].
pub(crate) fn known(name: &str) -> &'static str {
    EVENTS.iter().find(|known| **known == name).copied().unwrap_or(OTHER)
}

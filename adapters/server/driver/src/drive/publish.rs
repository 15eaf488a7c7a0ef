//! Publishing: the status that other tasks read, and the log lines that an operator reads.

use std::iter;
use std::time::{Duration, Instant, SystemTime};

use quorate_application::Application;
use quorate_application::clients::{self, Note};
use quorate_core::membership::Membership;
use quorate_core::report::{Change, Report};

use crate::drive::Driver;
use crate::runtime::Runtime;
use crate::status::event_of;
use crate::wall_clock::Step;

impl<R: Runtime, A: Application> Driver<R, A> {
    /// Tells people how things stand: at once if there is something to tell, otherwise now and then.
    pub(super) fn publish_in_time(&mut self, reports: &mut Vec<Report>, now: Instant) {
        self.know_members();
        let due = *self.publish_at.get_or_insert(now + PUBLISH_AFTER);
        if !reports.is_empty() || due <= now || self.warn_at.is_some_and(|at| at <= now) {
            self.publish_at = None;
            self.look_at_clock(now);
            self.publish(std::mem::take(reports), now);
        }
    }

    /// Says so if the wall clock was set since the last look: the times of transactions, and of this log, go by it.
    fn look_at_clock(&mut self, now: Instant) {
        if let Some(Step { by, forward }) = self.wall_steps.look(now, SystemTime::now()) {
            let way = if forward { "forward" } else { "back" };
            let sid = self.shared.id.0;
            tracing::warn!(event = "clock.jumped", sid, ?by, way, "the wall clock was set");
        }
    }

    /// Certificates are judged by what this server knows of the membership at that moment, and so are addresses.
    fn know_members(&mut self) {
        let config = self.peer.config();
        let next = config.next_membership.as_ref();
        let known = (config.membership.version(), next.map(Membership::version));
        if self.known != known {
            self.known = known;
            let memberships = iter::once(&config.membership).chain(next);
            self.shared.members.know(memberships.clone());
            if let Some(secure) = &self.secure {
                secure.know(memberships.cloned().collect());
            }
        }
    }

    /// Another membership is in force. The first leader of all gives the one of the files a version, and that is no news.
    fn adopt_membership(&mut self) {
        let (before, after) = (self.published.membership(), &self.peer.config().membership);
        self.published.publish_membership(after);
        if !self.shared.is_audited || before.with_version(after.version()) == *after {
            return;
        }
        let others = |of: &Membership, than: &Membership| {
            let ids = of.members().iter().map(|member| member.id);
            let ids = ids.filter(|id| than.member(*id).is_none());
            ids.map(|id| id.to_string()).collect::<Vec<_>>().join(",")
        };
        let fields = vec![
            ("joined", others(after, &before)),
            ("removed", others(&before, after)),
            ("before", before.to_string()),
            ("after", after.to_string()),
        ];
        let note = Note { operation: "configuration", fields, result: "success" };
        self.replica.tell_service(clients::Event::Noted(note));
    }

    fn publish(&mut self, reports: Vec<Report>, now: Instant) {
        let status = self.peer.status();
        for Report { change, reason } in &reports {
            tracing::info!(
                event = event_of(change), sid = status.id.0, round = status.round.0,
                epoch = status.current_epoch.0, %reason,
                "{change}"
            );
        }
        if reports.iter().any(|report| matches!(report.change, Change::Configuration(_))) {
            self.adopt_membership();
        }
        self.published.publish(status, reports, now);
        let since = self.published.looking_since().filter(|_| self.outage.is_none());
        let Some(since) = since else {
            self.warn_at = None;
            return;
        };
        let due = self.warn_at.get_or_insert(since + WARN_AFTER);
        if *due <= now {
            *due = now + WARN_AFTER;
            let looking_for = now.saturating_duration_since(since);
            let status = self.peer.status();
            tracing::warn!(
                event = "election.failed", sid = status.id.0, round = status.round.0, ?looking_for,
                linked = ?status.linked.iter().map(|id| id.0).collect::<Vec<_>>(),
                voters = status.voters,
                "leader election failed so far: fewer than a quorum of voters can be heard, or the \
                 election port is not reachable in both directions"
            );
        }
    }
}

/// How long people may be told what was a moment ago, while nothing notable happens.
const PUBLISH_AFTER: Duration = Duration::from_millis(50);
/// After how long an election is worth a warning, and how often.
const WARN_AFTER: Duration = Duration::from_secs(30);

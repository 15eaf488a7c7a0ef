//! Probes: whether a server is alive, ready, or in a role, for those that restart it and those that send clients to it.
//!
//! | path | 200 when |
//! |---|---|
//! | `/healthy` | the loop turns, and no write hangs longer than a peer may be silent; whatever other servers do. A server that waits for its disk, which is full or fails, is healthy: a restart would not help |
//! | `/ready` | it serves, does not end, does not wait for its disk, and both of the above hold |
//! | `/leader`, `/follower`, `/observer` | it has that role, and serves |
//!
//! A liveness probe that needs a quorum restarts every server of an ensemble that has just lost one.

use std::time::Duration;

use quorate_driver::Status;
use quorate_driver::core::status::Phase;
use quorate_driver::core::vote::ServerState;
use serde::Serialize;

use crate::exchange::{Answer, Request};

/// What probes judge by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// What the loop has published; none before the server has started, while it reads its disk.
    pub status: Option<Status>,
    /// Whether the loop has given a sign of life within a second.
    pub turns: bool,
    /// Longer than this no write may take: as long as a peer may be silent.
    pub disk_patience: Duration,
}

/// One thing that is looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// How it is, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    Healthy,
    Ready,
    Role(ServerState),
}

impl Health {
    /// The answer, if this is a probe.
    pub fn probe(&self, request: &Request) -> Option<Answer> {
        let probe = Probe::of(&request.path)?;
        let checks = self.checks(probe);
        let wrong = checks.iter().find(|check| !check.ok);
        let status = if wrong.is_none() { 200 } else { 503 };
        let local = request.is_local();
        if request.accepts_json && local {
            return Some(Answer::json(status, &self.whole(checks)));
        }
        let mut body = match wrong {
            None => "ok\n".to_owned(),
            Some(Check { found: Some(found), .. }) => format!("{}: {found}\n", probe.not()),
            Some(Check { name, .. }) => format!("{}: {name}\n", probe.not()),
        };
        if local && request.value("verbose").is_some() {
            body.clear();
            for Check { name, ok, found } in &checks {
                let found = found.as_ref().map(|found| format!(": {found}")).unwrap_or_default();
                body += &format!("[{}]{name}{found}\n", if *ok { '+' } else { '-' });
            }
        }
        Some(Answer::text(status, body))
    }

    /// Whether it is asked for a probe.
    pub(crate) fn is_probe(path: &str) -> bool {
        Probe::of(path).is_some()
    }

    /// All checks, as JSON tells them.
    pub(crate) fn all(&self) -> impl Serialize + use<> {
        self.whole(self.checks(Probe::Ready))
    }

    fn whole(&self, checks: Vec<Check>) -> impl Serialize + use<> {
        #[derive(Serialize)]
        struct Whole {
            ok: bool,
            role: &'static str,
            has_leader: bool,
            checks: Vec<Check>,
        }
        let status = self.status.as_ref();
        Whole {
            ok: checks.iter().all(|check| check.ok),
            role: status.map_or("starting", |status| role(status.peer.state)),
            has_leader: status.is_some_and(|status| status.peer.serving),
            checks,
        }
    }

    fn checks(&self, probe: Probe) -> Vec<Check> {
        let mut checks = vec![self.turning(), self.disk()];
        if probe == Probe::Healthy {
            return checks;
        }
        let fault = self.status.as_ref().and_then(|status| status.metrics.disk_fault);
        let said = || fault.map_or_else(String::new, |fault| fault.to_string());
        checks.push(check("writes", fault.is_none(), said));
        checks.push(self.serving());
        if let Some(status) = &self.status {
            let stays = !status.metrics.ending;
            checks.push(check("stays", stays, || "it is about to stop".to_owned()));
            if let Probe::Role(wanted) = probe {
                let state = status.peer.state;
                checks.push(check("role", state == wanted, || role(state).to_owned()));
                // The disk of one that leads all the same is no matter of who asks for the leader.
                checks.retain(|check| matches!(check.name, "serving" | "role"));
            }
        }
        checks
    }

    fn turning(&self) -> Check {
        check("loop", self.turns, || "the loop does not answer".to_owned())
    }

    fn disk(&self) -> Check {
        let busy = self.status.as_ref().map_or(Duration::ZERO, |status| status.metrics.disk_busy);
        check("disk", busy <= self.disk_patience, || format!("a write hangs for {}", seconds(busy)))
    }

    fn serving(&self) -> Check {
        let Some(status) = &self.status else {
            return check("serving", false, || "starting".to_owned());
        };
        let peer = &status.peer;
        check("serving", peer.serving, || match peer.phase {
            Phase::Election => match status.metrics.looking_for {
                Some(time) => format!("looking for a leader for {}", seconds(time)),
                None => "looking for a leader".to_owned(),
            },
            Phase::Discovery => "agreeing on an epoch".to_owned(),
            Phase::Synchronization | Phase::Broadcast => "synchronising".to_owned(),
        })
    }
}

impl Probe {
    fn of(path: &str) -> Option<Self> {
        Some(match path {
            "/healthy" | "/healthz" | "/live" | "/livez" => Self::Healthy,
            "/ready" | "/readyz" => Self::Ready,
            "/leader" => Self::Role(ServerState::Leading),
            "/follower" => Self::Role(ServerState::Following),
            "/observer" => Self::Role(ServerState::Observing),
            _ => return None,
        })
    }

    const fn not(self) -> &'static str {
        match self {
            Self::Healthy => "not healthy",
            Self::Ready => "not ready",
            Self::Role(ServerState::Following) => "no follower",
            Self::Role(ServerState::Observing) => "no observer",
            Self::Role(ServerState::Leading | ServerState::Looking) => "no leader",
        }
    }
}

fn check(name: &'static str, ok: bool, found: impl FnOnce() -> String) -> Check {
    Check { name, ok, found: (!ok).then(found) }
}

/// What a server does, in a word.
pub(crate) const fn role(state: ServerState) -> &'static str {
    match state {
        ServerState::Looking => "looking",
        ServerState::Following => "following",
        ServerState::Leading => "leading",
        ServerState::Observing => "observing",
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quorate_driver::DiskFault;
    use quorate_driver::core::config::Config;
    use quorate_driver::core::durable::Durable;
    use quorate_driver::core::id::ServerId;
    use quorate_driver::core::membership::Membership;
    use quorate_driver::core::peer::Peer;

    use super::*;
    use crate::exchange::Method;

    /// A server that looks for a leader, or serves.
    fn health(serving: bool) -> Health {
        let membership = Membership::parse("server.1=a:2888:3888:participant\nversion=0").unwrap();
        let peer = Peer::new(Config::new(ServerId(1), membership), Durable::default()).unwrap();
        let mut peer = peer.status();
        if serving {
            (peer.serving, peer.state) = (true, ServerState::Following);
        }
        let metrics = quorate_driver::Metrics::default();
        let status = Status { peer: Arc::new(peer), sync: None, metrics };
        Health { status: Some(status), turns: true, disk_patience: Duration::from_secs(1) }
    }

    fn ask(health: &Health, path: &str, from: &str, verbose: bool) -> (u16, String) {
        ask_for(health, path, from, verbose, false)
    }

    fn ask_for(
        health: &Health,
        path: &str,
        from: &str,
        verbose: bool,
        accepts_json: bool,
    ) -> (u16, String) {
        let request = Request {
            method: Method::Get,
            path: path.to_owned(),
            query: if verbose { vec![("verbose".to_owned(), String::new())] } else { vec![] },
            accepts_json,
            authorization: None,
            last_event_id: None,
            remote: from.parse().unwrap(),
        };
        let answer = health.probe(&request).unwrap();
        (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
    }

    #[test]
    fn a_write_that_hangs_makes_a_server_unfit_and_the_loop_that_stands_still() {
        let at = "127.0.0.1:1";
        let mut hanging = health(true);
        hanging.status.as_mut().unwrap().metrics.disk_busy = Duration::from_secs(3);
        let said = |what: &str| (503, format!("not {what}: a write hangs for 3.0 s\n"));
        assert_eq!(ask(&hanging, "/healthy", at, false), said("healthy"));
        assert_eq!(ask(&hanging, "/ready", at, false), said("ready"));
        assert_eq!(ask(&hanging, "/follower", at, false).0, 200);
        let stuck = Health { turns: false, ..health(true) };
        let said = (503, "not healthy: the loop does not answer\n".to_owned());
        assert_eq!(ask(&stuck, "/live", at, false), said);
        let looking = health(false);
        assert_eq!(ask(&looking, "/healthy", at, false).0, 200);
        assert_eq!(ask(&looking, "/ready", at, false).0, 503);
        assert_eq!(ask(&looking, "/leader", at, false).0, 503);
    }

    #[test]
    fn a_server_that_waits_for_its_disk_is_healthy_and_not_ready() {
        let at = "127.0.0.1:1";
        let mut waiting = health(false);
        waiting.status.as_mut().unwrap().metrics.disk_fault = Some(DiskFault::Full);
        assert_eq!(ask(&waiting, "/healthy", at, false).0, 200);
        let said = (503, "not ready: disk full\n".to_owned());
        assert_eq!(ask(&waiting, "/ready", at, false), said);
        assert_eq!(ask(&waiting, "/leader", at, false).0, 503);
    }

    #[test]
    fn checks_are_listed_to_who_asks_from_this_machine_alone() {
        let looking = health(false);
        for near in ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            let (_, listed) = ask(&looking, "/ready", near, true);
            let expected = "[+]loop\n[+]disk\n[+]writes\n[-]serving: looking for";
            assert!(listed.starts_with(expected), "{listed}");
        }
        for health in [looking, health(true)] {
            let plain = ask(&health, "/ready", "10.0.0.1:1", false);
            assert_eq!(plain.1.lines().count(), 1, "{plain:?}");
            for (verbose, json) in [(true, false), (false, true), (true, true)] {
                assert_eq!(ask_for(&health, "/ready", "10.0.0.1:1", verbose, json), plain);
            }
        }
    }
}

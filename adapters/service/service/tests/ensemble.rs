//! Several servers and their clients, in memory: what one has asked for, all apply.

use std::collections::VecDeque;
use std::time::Duration;

use quorate_application::clients::{ClientId, Event, Output};
use quorate_core::id::{LinkId, Origin};
use quorate_core::message::Request as Submitted;
use quorate_core::time::Instant;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use quorate_service::wire::{ConnectResponse, Request};

use crate::stand::{Part, Stand, TICK};

/// A leader, a follower and an observer. Who leads is told by [`lead`](Self::lead).
pub(crate) struct Ensemble {
    pub(crate) servers: Vec<Stand>,
    leader: usize,
    /// What the leader was asked for, in the order in which it came.
    pub(crate) asked: VecDeque<(usize, Submitted)>,
    /// What is proposed and not applied everywhere.
    pub(crate) proposed: VecDeque<Txn>,
    pub(crate) last: Zxid,
    epoch: i64,
    /// Links never come back: a learner's link in this epoch.
    links: u64,
}

impl Ensemble {
    pub(crate) fn new() -> Self {
        let servers = (1..=3).map(|id| Stand::idle(id, |_| {})).collect();
        let mut ensemble = Self {
            servers,
            leader: 0,
            asked: VecDeque::new(),
            proposed: VecDeque::new(),
            last: Zxid::ZERO,
            epoch: 0,
            links: 0,
        };
        ensemble.lead(0);
        ensemble
    }

    /// Another leads from now on, and what was under way is lost.
    pub(crate) fn lead(&mut self, leader: usize) {
        for server in &mut self.servers {
            server.tell(Event::Retired);
            quorate_application::Application::abandon(&mut server.state);
            server.submitted.clear();
            server.syncs.clear();
            server.asked.clear();
        }
        self.asked.clear();
        self.proposed.clear();
        self.leader = leader;
        self.epoch += 1;
        self.links += 10;
        self.last = Zxid(self.epoch << 32);
        for (at, server) in self.servers.iter_mut().enumerate() {
            server.serve_as(match at {
                _ if at == leader => Part::Leader,
                2 => Part::Observer,
                _ => Part::Follower,
            });
        }
        self.settle();
    }

    pub(crate) fn link(&self, server: usize) -> LinkId {
        LinkId(self.links + server as u64)
    }

    fn origin(&self, server: usize) -> Origin {
        if server == self.leader { Origin::Service } else { Origin::Learner(self.link(server)) }
    }

    /// What the servers want of one another arrives.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the stand carries out the others")]
    pub(crate) fn pass(&mut self) {
        for at in 0..self.servers.len() {
            while let Some(request) = self.servers[at].submitted.pop_front() {
                self.asked.push_back((at, request));
            }
            for output in std::mem::take(&mut self.servers[at].asked) {
                let (leader, from) = (self.leader, self.link(at));
                match output {
                    Output::Revalidate(body) => {
                        self.servers[leader].tell(Event::Revalidate { from, body });
                    }
                    Output::Revalidated { to, body } => {
                        let to = usize::try_from(to.0 - self.links).unwrap();
                        self.servers[to].tell(Event::Revalidated(body));
                    }
                    Output::Touch(sessions) => {
                        let asked = self.servers[leader].now;
                        self.servers[leader].tell(Event::Touched { from, asked, sessions });
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    /// The leader makes a transaction of what it was asked for first.
    pub(crate) fn propose(&mut self) -> bool {
        let Some((at, request)) = self.asked.pop_front() else { return false };
        self.last = Zxid(self.last.0 + 1);
        let (origin, last) = (self.origin(at), self.last);
        let txn = self.servers[self.leader].prepare(&request, origin, last);
        self.proposed.push_back(txn);
        true
    }

    /// All apply what was proposed first, and say the same of their states.
    pub(crate) fn apply(&mut self) -> bool {
        let Some(txn) = self.proposed.pop_front() else { return false };
        for server in &mut self.servers {
            server.apply(&txn);
        }
        self.are_equal();
        true
    }

    #[track_caller]
    pub(crate) fn are_equal(&self) {
        let sessions = |tree: &quorate_znode::Tree| tree.sessions().collect::<Vec<_>>();
        let first = self.servers[0].tree();
        for server in &self.servers {
            let tree = server.tree();
            assert_eq!(tree.digest(), first.digest());
            assert_eq!(sessions(tree), sessions(first));
            for owner in tree.owners() {
                assert!(tree.session(owner).is_some(), "0x{owner:x} owns and is not");
            }
        }
    }

    /// Until nothing is asked for any more.
    pub(crate) fn settle(&mut self) {
        loop {
            self.pass();
            if self.propose() || self.apply() {
                continue;
            }
            let mut still = true;
            for server in &mut self.servers {
                if let Some(sync) = server.syncs.pop_front() {
                    server.tell(Event::Synced(sync));
                    still = false;
                }
                still &= server.asked.is_empty() && server.submitted.is_empty();
            }
            if still {
                return;
            }
        }
    }

    /// Time passes everywhere; the leader pings twice a tick.
    pub(crate) fn wait(&mut self, time: Duration) {
        let until = self.now() + time;
        while self.now() < until {
            for server in &mut self.servers {
                server.wait(TICK / 10);
            }
            if self.now().0 % Instant::from_origin(TICK / 2).0 == 0 {
                self.ping();
            }
            self.settle();
        }
    }

    pub(crate) fn ping(&mut self) {
        for at in (0..self.servers.len()).filter(|at| *at != self.leader) {
            self.servers[at].tell(Event::Pinged);
        }
        self.pass();
    }

    pub(crate) fn now(&self) -> Instant {
        self.servers[0].now
    }

    /// A client with a session of so many milliseconds.
    pub(crate) fn client(&mut self, server: usize, timeout_ms: i32) -> (ClientId, i64) {
        let (client, answer) = self.attach(server, 0, timeout_ms);
        (client, answer.session)
    }

    /// A connection that asks for a session, and its answer.
    pub(crate) fn attach(
        &mut self,
        server: usize,
        session: i64,
        timeout_ms: i32,
    ) -> (ClientId, ConnectResponse) {
        let client = self.servers[server].connect();
        self.servers[server].ask(client, session, timeout_ms);
        self.settle();
        (client, self.servers[server].answer(client).unwrap())
    }

    /// Requests, answered.
    pub(crate) fn told(
        &mut self,
        server: usize,
        client: ClientId,
        requests: &[(i32, Request)],
    ) -> Vec<String> {
        self.servers[server].request(client, requests);
        self.settle();
        self.servers[server].told(client)
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.servers[0].tree().get(path).is_some()
    }

    pub(crate) fn lives(&self, session: i64) -> bool {
        self.servers[0].tree().session(session).is_some()
    }
}

/// What a server submits of a client's request.
pub(crate) fn submitted(request: &Request, session: i64) -> Submitted {
    let id = quorate_core::txn::RequestId { client: session, cxid: 1 };
    let body = request.frame(1).slice(12..);
    Submitted { id, op: request.op(), body, identities: Some(Vec::new()) }
}

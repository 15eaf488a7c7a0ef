//! Sessions as the world sees them: who was heard when, who is connected where, and who has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_application::clients::ClientId;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::time::Instant;
use quorate_core::txn::{RequestId, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_znode::Outcome;

use crate::rule::{Rule, Violation, broken};

/// What is known of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    opened: BTreeMap<i64, Zxid>,
    closed: BTreeMap<i64, Zxid>,
    /// Their end was prepared somewhere, whether it comes to pass or not.
    closing: BTreeSet<i64>,
    timeouts: BTreeMap<i64, Duration>,
    /// When each was heard, at which server.
    heard: BTreeMap<(i64, ServerId), Vec<Instant>>,
    /// When the newest ping was sent that this leader knows the learner to have answered.
    answered: BTreeMap<(ServerId, ServerId), Instant>,
    /// Who has answered pings, at which leader, by which link.
    pub(crate) learners: BTreeMap<(ServerId, LinkId), ServerId>,
    /// When a server was lost to its leader, with what it had heard.
    lost: BTreeMap<ServerId, Instant>,
    /// Since when a server leads.
    leads: BTreeMap<ServerId, Instant>,
    /// Where each leader was asked last whether a session lives, or has said so itself; nowhere if the link is gone by
    /// which it was asked.
    owners: BTreeMap<(ServerId, i64), Option<ServerId>>,
    /// To which server each request was sent.
    sent: BTreeMap<RequestId, ServerId>,
    /// Which sessions this leader has taken for silent.
    ending: BTreeSet<(ServerId, i64)>,
    /// By which connection each request was sent that its client had been welcomed on.
    by: BTreeMap<RequestId, ClientId>,
    /// The newest connection on which each session was welcomed; of servers of ours alone.
    welcomed: BTreeMap<i64, ClientId>,
    /// Requests that were prepared when their session was at another server already.
    stale: BTreeSet<RequestId>,
    /// How many of those there were; how many sessions have moved, expired, and were closed by their clients.
    pub(crate) stale_writes: u64,
    pub(crate) moved: u64,
    pub(crate) expired: u64,
    pub(crate) asked_to_end: u64,
}

impl Sessions {
    /// The transactions of sessions: each is opened once, and writes nothing behind its end.
    pub(super) fn on_committed(
        &mut self,
        server: ServerId,
        zxid: Zxid,
        header: TxnHeader,
        outcome: &Outcome,
    ) -> Result<(), Violation> {
        let session = header.client;
        if matches!(outcome, Outcome::SessionClosed { .. }) {
            self.closed.entry(session).or_insert(zxid);
            self.asked_to_end += u64::from(header.cxid != 0);
            return Ok(());
        }
        if outcome.error().is_some() {
            return Ok(());
        }
        if let Some(closed) = self.closed.get(&session) {
            let detail = format!(
                "{zxid}, {outcome:?}, is of session {session:x}, which has ended with {closed}"
            );
            return broken(Rule::Closed, server, detail);
        }
        if let Outcome::SessionOpened { timeout } = outcome {
            let timeout = Duration::from_millis(u64::try_from(*timeout).unwrap_or(0));
            self.timeouts.insert(session, timeout);
            if let Some(first) = self.opened.insert(session, zxid) {
                let detail = format!("{zxid} opens session {session:x}, as did {first}");
                return broken(Rule::Closed, server, detail);
            }
        }
        if self.stale.contains(&header.request()) {
            let detail = format!("{zxid} is by a connection that session {session:x} has left");
            return broken(Rule::Owner, server, detail);
        }
        let newest = self.welcomed.get(&session);
        let left = self.by.get(&header.request()).filter(|by| newest.is_some_and(|at| *by < at));
        if let (Some(left), Some(newest)) = (left, newest) {
            let detail = format!(
                "{zxid} is by connection {left:?} of session {session:x}, which was welcomed on {newest:?} before"
            );
            return broken(Rule::Owner, server, detail);
        }
        Ok(())
    }

    /// Those that have ended, and with which transaction.
    pub(crate) fn ended(&self) -> impl Iterator<Item = (i64, Zxid)> + '_ {
        self.closed.iter().map(|(session, zxid)| (*session, *zxid))
    }

    /// A client sends a request. `by`: the connection, if it has its session there.
    pub(crate) fn on_sent(&mut self, id: RequestId, to: ServerId, by: Option<ClientId>) {
        self.sent.insert(id, to);
        self.by.extend(by.map(|by| (id, by)));
    }

    /// A server has told a client on this connection that it has its session. What the client sent by older ones has
    /// happened by now, or never will.
    pub(crate) fn on_moved_here(&mut self, session: i64, client: ClientId) {
        let newest = self.welcomed.entry(session).or_insert(client);
        *newest = client.max(*newest);
    }

    /// A session is at this server from here on, as a leader says; at none any more if the link has gone meanwhile.
    pub(crate) fn on_moved(&mut self, leader: ServerId, session: i64, to: Option<ServerId>) {
        let before = self.owners.insert((leader, session), to);
        self.moved += u64::from(before.is_some_and(|before| before != to));
    }

    /// A leader makes a transaction of a request. `closes`: of one that ends its session. A session ends for its silence
    /// only where this leader, in this leadership, has taken it for silent.
    pub(crate) fn on_prepared(
        &mut self,
        leader: ServerId,
        id: RequestId,
        closes: bool,
    ) -> Result<(), Violation> {
        if closes {
            // From whichever connection: it is not looked at.
            self.closing.insert(id.client);
            let lives =
                self.opened.contains_key(&id.client) && !self.closed.contains_key(&id.client);
            if id.cxid == 0 && lives && !self.ending.contains(&(leader, id.client)) {
                let detail = format!("ends session {:x}, which others took for silent", id.client);
                return broken(Rule::Expiry, leader, detail);
            }
            // From here on nothing keeps it alive.
            self.ending.insert((leader, id.client));
            return Ok(());
        }
        let owner = self.owners.get(&(leader, id.client));
        let (Some(by), Some(Some(at))) = (self.sent.get(&id), owner) else { return Ok(()) };
        if by != at && self.stale.insert(id) {
            self.stale_writes += 1;
        }
        Ok(())
    }

    /// A server tells a client that it has its session, having applied everything through `applied`.
    pub(crate) fn on_welcome(
        &self,
        server: ServerId,
        session: i64,
        applied: Zxid,
    ) -> Result<(), Violation> {
        match self.closed.get(&session).filter(|closed| **closed <= applied) {
            None => Ok(()),
            Some(closed) => {
                let detail = format!("welcomes session {session:x}, which has ended with {closed}");
                broken(Rule::Closed, server, detail)
            }
        }
    }

    /// A server tells a client that there is no such session, having applied everything through `applied`. One that does
    /// not know that it leads no more cannot know of sessions that were opened since.
    pub(crate) fn on_refused(
        &self,
        server: ServerId,
        session: i64,
        applied: Zxid,
    ) -> Result<(), Violation> {
        let known = self.opened.get(&session).is_some_and(|opened| *opened <= applied);
        if !known || self.closed.contains_key(&session) || self.closing.contains(&session) {
            return Ok(());
        }
        broken(Rule::Expiry, server, format!("does not know session {session:x}, which lives"))
    }

    /// A server reads something of a session's client.
    pub(crate) fn on_heard(&mut self, server: ServerId, session: i64, now: Instant) {
        // A leader tells its own clients that their sessions are elsewhere.
        if self.owners.get(&(server, session)).is_some_and(|owner| *owner != Some(server)) {
            return;
        }
        let heard = self.heard.entry((session, server)).or_default();
        if heard.len() > 200 {
            heard.drain(..100);
        }
        heard.push(now);
    }

    /// A server serves no longer, and closes the connections of its clients. What it has heard since it was separated from
    /// the leader no leader will hear of: that counted the time-outs of its sessions from when it was lost.
    pub(crate) fn on_retired(&mut self, server: ServerId) {
        self.heard.retain(|(_, at), _| *at != server);
    }

    /// A server ends, or its link to the leader does. A leader of ours counts the time-outs of its sessions from then on; one
    /// of ZooKeeper from what it was told before.
    pub(crate) fn on_lost(&mut self, server: ServerId, now: Instant) {
        self.lost.insert(server, now);
    }

    /// Whether a session does not end, and is nowhere but at this server, as far as leaders were told.
    pub(crate) fn is_at(&self, session: i64, server: ServerId) -> bool {
        let mut said = self.owners.iter().filter(|((_, of), _)| *of == session);
        !self.closing.contains(&session) && said.all(|(_, at)| *at == Some(server))
    }

    /// A server begins to lead.
    pub(crate) fn on_leads(&mut self, leader: ServerId, now: Instant) {
        self.answered.retain(|(at, _), _| *at != leader);
        self.owners.retain(|(at, _), _| *at != leader);
        self.ending.retain(|(at, _)| *at != leader);
        self.leads.insert(leader, now);
    }

    /// A leader knows that a learner has answered a ping.
    pub(crate) fn on_answered(&mut self, leader: ServerId, learner: ServerId, asked: Instant) {
        let known = self.answered.entry((leader, learner)).or_insert(asked);
        *known = asked.max(*known);
    }

    /// Where and when a session was heard within its time-out, by a learner that follows and whose answer this leader has not
    /// read.
    fn unread(
        &self,
        leader: ServerId,
        session: i64,
        last: Instant,
        timeout: Duration,
    ) -> Option<(ServerId, Instant)> {
        let in_time = last + timeout * 9 / 10;
        let owner = self.owners.get(&(leader, session)).copied();
        let of_it = self.heard.iter().filter(|((of, at), _)| *of == session && *at != leader);
        of_it.into_iter().find_map(|((_, server), heard)| {
            let known = *self.answered.get(&(leader, *server))?;
            // One whose link has ended may not know it yet; another has the session meanwhile.
            if owner.is_some_and(|owner| owner != Some(*server))
                || self.lost.get(server).is_some_and(|lost| *lost > known)
            {
                return None;
            }
            let unread = |at: &&Instant| **at > last.max(known) && **at <= in_time;
            heard.iter().find(unread).map(|at| (*server, *at))
        })
    }

    /// A leader takes a session for silent: it was for its time-out, as far as the leader can know. A tenth is the clocks'.
    pub(crate) fn on_expired(
        &mut self,
        leader: ServerId,
        session: i64,
        now: Instant,
        by_java: bool,
    ) -> Result<(), Violation> {
        self.expired += 1;
        if by_java {
            // It is closing from here on, whether its end is asked for yet or not.
            self.closing.insert(session);
        }
        // What asks for its end again: the first time was judged.
        if !self.ending.insert((leader, session)) {
            return Ok(());
        }
        let Some(timeout) = self.timeouts.get(&session) else { return Ok(()) };
        let mut last = self.leads.get(&leader).copied().unwrap_or(Instant::ORIGIN);
        for ((of, server), heard) in &self.heard {
            if *of != session {
                continue;
            }
            let known = self.answered.get(&(leader, *server)).copied();
            let known = if *server == leader { Some(now) } else { known };
            let lost = self.lost.get(server).copied().filter(|_| by_java);
            let told = |at: &&Instant| {
                known.is_some_and(|known| **at <= known) && lost.is_none_or(|lost| **at > lost)
            };
            let heard = heard.iter().rev().find(told);
            last = last.max(heard.copied().unwrap_or(last));
        }
        if now.since(last) >= *timeout * 9 / 10 {
            return match self.unread(leader, session, last, *timeout) {
                Some((server, at)) if !by_java && now.since(last) < *timeout * 18 / 10 => {
                    let detail = format!(
                        "session {session:x} was silent for {:?} as far as is known, of {timeout:?}, but was heard by \
                         {server} at {at:?}, which has not answered since: now is {now:?}, its last answer is to what was asked at {:?}",
                        now.since(last),
                        self.answered.get(&(leader, server))
                    );
                    broken(Rule::Expiry, leader, detail)
                }
                _ => Ok(()),
            };
        }
        let silent = now.since(last);
        let of_it = self.heard.iter().filter(|((of, _), _)| *of == session);
        let heard: Vec<_> = of_it.map(|((_, at), heard)| (at, heard.last())).collect();
        let answers: Vec<_> = self.answered.iter().filter(|((at, _), _)| *at == leader).collect();
        let detail = format!(
            "session {session:x} was silent for {silent:?} only of {timeout:?}: now is {now:?}, it leads \
             since {:?}, the session was last heard at {heard:?}, and pings were answered: {answers:?}",
            self.leads.get(&leader)
        );
        broken(Rule::Expiry, leader, detail)
    }
}

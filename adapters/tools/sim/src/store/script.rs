//! Elections that a story directs: which candidate starts when, and what goes wrong, instead of chance.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::recipe::{Attempt, SessionId, Token};
use quorate_core::time::Instant;

use super::agenda::Happens;
use super::call_faults::{CallFault, CallKind, Leg};
use super::candidates::{Happening as Hears, Recipe};
use super::client::Term;
use super::plan::Plan;
use super::world::{Election, MS, name, nanos};
use crate::call::Op;
use crate::record::{Candidacy, Happening, Moment};
use crate::store::broken::{Broken, broken};

/// The story of an election.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// Every way takes one millisecond, and nothing is left to chance.
    even: bool,
    pub(super) candidates: Vec<CandidateScript>,
    pub(super) moments: Vec<Moment>,
    /// Whose sessions are alive, as far as that was told.
    pub(super) sessions: BTreeMap<SessionId, usize>,
    /// Who has written the nodes that are there.
    pub(super) owners: BTreeMap<String, usize>,
    /// How much of the store's log was told.
    pub(super) told: usize,
    /// How many nodes were made.
    pub(super) made: u64,
}

/// What a story does to one candidate.
#[derive(Clone, Debug, Default)]
pub(super) struct CandidateScript {
    started: bool,
    /// It has stopped, and its lease with it: it has no connection until it starts again.
    rests: bool,
    /// Nothing passes between it and the store.
    away: bool,
    /// How long its guarded work takes to end.
    keeps: u64,
    trap: Option<(CallKind, Leg, CallFault)>,
    /// What it has asked.
    pub(super) asked: BTreeMap<Attempt, Op>,
    /// The node that it waits for to go.
    pub(super) waits_for: Option<String>,
}

/// How a candidate stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stand {
    /// Its process has ended.
    pub(crate) down: bool,
    /// It has stopped, or never started.
    pub(crate) stopped: bool,
    /// It has started, and was not told to stop since.
    pub(crate) wanted: bool,
    /// Its process stands still.
    pub(crate) paused: bool,
    /// Nothing passes between it and the store.
    pub(crate) away: bool,
    /// It believes that it has a connection.
    pub(crate) linked: bool,
    /// The store keeps its session.
    pub(crate) in_session: bool,
    /// It is connected, and has nothing to do but to wait for a node to go.
    pub(crate) waits: bool,
    /// It has a term.
    pub(crate) has_term: bool,
    /// The token of the term, if that is confirmed, by its own clock.
    pub(crate) leads: Option<Token>,
    /// What only a leader may do is done there.
    pub(crate) works: bool,
}

impl Script {
    pub(super) const fn is_even(&self) -> bool {
        self.even
    }
}

impl<R: Recipe> Election<R> {
    /// Candidates of which none has started, and no accident but those that are asked for. If it is even, every
    /// way takes a millisecond; otherwise its own time.
    ///
    /// # Errors
    ///
    /// If a candidate cannot be made.
    pub(crate) fn scripted<E>(
        plan: Plan,
        even: bool,
        candidate: impl Fn(usize, u64) -> Result<R, E>,
    ) -> Result<Self, E> {
        let mut election = Self::of(plan, candidate)?;
        election.agenda.clear();
        election.quiet = true;
        for client in &mut election.clients {
            (client.wanted, client.stopped) = (false, true);
        }
        election.script = Some(Script {
            even,
            candidates: vec![CandidateScript::default(); election.clients.len()],
            moments: Vec::new(),
            sessions: BTreeMap::new(),
            owners: BTreeMap::new(),
            told: 0,
            made: 0,
        });
        election.plan_at(0, Happens::Expire);
        Ok(election)
    }

    /// Goes on to whatever happens next, or for this time if nothing does.
    ///
    /// # Errors
    ///
    /// What does not hold, and when.
    pub(crate) fn pass(&mut self, most: Duration) -> Result<(), Broken> {
        let next = self.agenda.keys().next().map_or(u64::MAX, |(at, _)| *at);
        let wait = next.saturating_sub(self.now).min(nanos(most));
        self.run_for(Duration::from_nanos(wait))
    }

    /// The time.
    pub(crate) const fn now(&self) -> Instant {
        Instant(self.now)
    }

    /// A candidate is to lead, or to stop.
    ///
    /// # Errors
    ///
    /// What does not hold, and when.
    pub(crate) fn tell_to(&mut self, client: usize, lead: bool) -> Result<(), Broken> {
        self.tell(client, || if lead { Candidacy::Starts } else { Candidacy::Stops });
        let begins = self.hand(client).is_some_and(|hand| {
            // What it waited for before it does not wait for now.
            hand.waits_for = None;
            !std::mem::replace(&mut hand.started, true)
        });
        if begins {
            self.plan_at(self.now, Happens::Dial(client));
            self.plan_at(self.now + nanos(self.plan.timeout) / 4, Happens::Ping(client));
        } else if self.hand(client).is_some_and(|hand| lead && std::mem::take(&mut hand.rests)) {
            self.plan_at(self.now, Happens::Dial(client));
        }
        self.want(client, lead)
    }

    /// A candidate has ended its session. In a story it has no other before it starts again.
    pub(super) fn rest(&mut self, client: usize) {
        let Some(hand) = self.hand(client) else { return };
        hand.rests = true;
        self.hang_up(self.clients[client].link, true);
        (self.clients[client].link, self.clients[client].session) = (0, None);
        self.here(client, Hears::Expired);
    }

    /// A candidate's process stands still.
    pub(crate) fn pause(&mut self, client: usize) {
        self.tell_so(client, || Happening::Pause);
        self.clients[client].paused = true;
    }

    /// It goes on.
    ///
    /// # Errors
    ///
    /// What does not hold, and when.
    pub(crate) fn unpause(&mut self, client: usize) -> Result<(), Broken> {
        self.tell_so(client, || Happening::Resume);
        self.resume(client)
    }

    /// Nothing passes any more between a candidate and the store; it is not told.
    pub(crate) fn cut(&mut self, client: usize) {
        self.hang_up(self.clients[client].link, true);
        if let Some(hand) = self.hand(client) {
            hand.away = true;
        }
        self.tell(client, || Candidacy::Way { open: false });
    }

    /// Everything passes again. What was cut is found out to be broken.
    pub(crate) fn heal(&mut self) {
        for client in 0..self.clients.len() {
            if !self.hand(client).is_some_and(|hand| std::mem::take(&mut hand.away)) {
                continue;
            }
            self.tell(client, || Candidacy::Way { open: true });
            self.lose_connection(client);
        }
    }

    /// The connection of a candidate breaks, or it notices that.
    pub(crate) fn break_off(&mut self, client: usize) {
        self.lose_connection(client);
    }

    /// The store has its root from the beginning: what numbers no names needs none.
    pub(crate) const fn give_root(&mut self) {
        self.store.root = true;
    }

    /// What becomes of the next call of this kind.
    pub(crate) fn trap(&mut self, client: usize, kind: CallKind, part: Leg, fault: CallFault) {
        if let Some(hand) = self.hand(client) {
            hand.trap = Some((kind, part, fault));
        }
    }

    /// The call of a candidate of which something is to become, if it has not made it.
    pub(crate) fn trap_of(&self, client: usize) -> Option<(CallKind, Leg)> {
        let hand = &self.script.as_ref()?.candidates[client];
        hand.trap.map(|(kind, part, _)| (kind, part))
    }

    /// How long guarded work takes to end.
    pub(crate) fn keep(&mut self, client: usize, time: Duration) {
        if let Some(hand) = self.hand(client) {
            hand.keeps = nanos(time);
        }
    }

    /// An operator deletes what a candidate has written.
    pub(crate) fn delete_of(&mut self, client: usize) {
        for name in self.nodes_of(client) {
            self.tell(client, || Candidacy::Deleted(name.clone()));
            self.delete(name);
        }
        self.follow();
    }

    /// An operator ends the session of a candidate. As with a node that an operator deletes, it may learn of that
    /// after the next has begun.
    pub(crate) fn end_session(&mut self, client: usize) {
        if let Some(session) = self.clients[client].session {
            // A node that goes with no session is as good as before.
            let its = self.store.nodes.values().filter(|node| node.owner == Some(session));
            self.deleted.extend(its.map(|node| node.created));
            self.store.end(session);
        }
        self.follow();
    }

    /// Whether nodes of sessions that are over stay where they are.
    pub(crate) const fn lingers(&self) -> bool {
        self.store.late.is_some()
    }

    /// Nodes of sessions that are over stay where they are; or go, at last.
    pub(crate) fn linger(&mut self, on: bool) {
        self.store.linger(on);
        self.follow();
    }

    /// The nodes that a candidate has written last.
    pub(crate) fn nodes_of(&self, client: usize) -> Vec<String> {
        let its = |version: u64| self.authors.get(&version) == Some(&client);
        let nodes = self.store.nodes.iter().filter(|(_, node)| its(node.version));
        nodes.map(|(name, _)| name.clone()).collect()
    }

    /// How many nodes were made, whatever has become of them.
    pub(crate) fn made(&self) -> u64 {
        self.script.as_ref().map_or(0, |script| script.made)
    }

    /// How a candidate stands.
    pub(crate) fn stand(&self, number: usize) -> Stand {
        let client = &self.clients[number];
        let is_confirmed = |term: &Term| !term.suspended && self.clock(number) < term.until;
        let hand = self.script.as_ref().map(|script| &script.candidates[number]);
        let away = hand.is_some_and(|hand| hand.away);
        let linked = client.link != 0;
        let idles = client.wanted && !client.crashed && client.term.is_none();
        Stand {
            down: client.crashed,
            stopped: client.stopped,
            wanted: client.wanted,
            paused: client.paused,
            away,
            linked,
            in_session: client.session.is_some_and(|session| self.store.is_alive(session)),
            waits: idles && linked && !away && hand.is_some_and(|hand| hand.waits_for.is_some()),
            has_term: client.term.is_some(),
            leads: client.term.filter(is_confirmed).map(|term| term.token),
            works: client.guards.is_some(),
        }
    }

    /// What is not yet as it is when nothing has happened for a while.
    ///
    /// # Errors
    ///
    /// What that is.
    pub(crate) fn settled(&self) -> Result<(), Broken> {
        for number in 0..self.clients.len() {
            let (who, stand) = (name(number), self.stand(number));
            if stand.wanted && !stand.down {
                if stand.away {
                    return broken(format!("{who} is cut off from the store"));
                }
                if stand.paused {
                    return broken(format!("{who} stands still"));
                }
                let leads = stand.leads.is_some() && stand.linked;
                if !stand.waits && !leads {
                    return broken(format!("{who} has something to do"));
                }
            }
            if let Some((kind, part)) = self.trap_of(number) {
                return broken(format!("{who} has made no call to {kind:?} whose {part:?} fails"));
            }
        }
        self.at_rest()
    }

    // --- what the others ask ---

    fn hand(&mut self, client: usize) -> Option<&mut CandidateScript> {
        self.script.as_mut().map(|script| &mut script.candidates[client])
    }

    /// Whether a candidate cannot be reached.
    pub(super) fn is_away(&self, client: usize) -> bool {
        self.script.as_ref().is_some_and(|script| script.candidates[client].away)
    }

    /// How long guarded work takes to end, if a story says that.
    pub(super) fn keeps(&self, client: usize) -> Option<u64> {
        self.script.as_ref().map(|script| script.candidates[client].keeps)
    }

    /// What becomes of this call, if it is the one that a story has in mind.
    pub(super) fn fault(&mut self, client: usize, part: Leg, op: &Op) -> Option<CallFault> {
        let hand = self.hand(client)?;
        let meant = |(kind, on, _): &(CallKind, Leg, CallFault)| *on == part && kind.is(op);
        hand.trap.take_if(|trap| meant(trap)).map(|(_, _, fault)| fault)
    }

    /// Copies come behind the store, each in its time.
    pub(super) fn spread(&mut self) {
        for server in 0..self.store.servers.len() {
            let at = self.now + MS + self.chance(100 * MS);
            self.plan_at(at, Happens::CatchUp(server));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quorate_core::recipe::{ConfigError, LeadershipChange};

    use super::*;
    use crate::call::Reply;
    use crate::store::{Happening, Wish};

    /// A candidate that writes a node which goes with no session, and leads with it, whichever other one does.
    #[derive(Debug)]
    struct Usurper(usize);

    impl Recipe for Usurper {
        fn deadline(&self) -> Option<Instant> {
            None
        }

        fn step(&mut self, at: Instant, happening: Happening) -> Vec<Wish> {
            if matches!(happening, Happening::Connected(..)) {
                let (name, data) = (self.0.to_string(), Bytes::new());
                let make = Op::Create { name, numbered: false, owner: None, data };
                return vec![Wish::Op(Attempt(1), make)];
            }
            let Happening::Done(_, Ok(Reply::Made(_, node))) = happening else {
                return Vec::new();
            };
            let until = at + Duration::from_secs(100);
            vec![Wish::Leadership(LeadershipChange::Taken { token: Token(node.created), until })]
        }

        fn leads(&self) -> Option<Token> {
            None
        }

        fn node(&self) -> Option<&str> {
            None
        }

        fn goes_with_its_session(&self) -> bool {
            false
        }
    }

    /// The end of a session excuses no candidate whose node stays: two that lead are two that lead.
    #[test]
    fn the_end_of_a_session_excuses_nobody_whose_node_stays() {
        let second = Duration::from_secs(1);
        let usurper = |number, _| Ok::<_, ConfigError>(Usurper(number));
        let mut election = Election::scripted(Plan::quiet(2), true, usurper).unwrap();
        election.tell_to(0, true).unwrap();
        election.run_for(second).unwrap();
        assert!(election.stand(0).leads.is_some());
        election.end_session(0);
        election.run_for(second).unwrap();
        election.tell_to(1, true).unwrap();
        let wrong = election.run_for(second).unwrap_err();
        assert_eq!(wrong.to_string(), "2 and 1 lead");
    }
}

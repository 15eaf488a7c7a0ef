//! What must hold whenever a candidate leads, when one makes an offer, and at rest.

use quorate_core::recipe::{Attempt, LeadershipChange, Loss, Token};

use super::agenda::Happens;
use super::candidates::{Happening, Recipe};
use super::client::Term;
use super::world::{Election, SECOND, name};
use crate::call::Reply;
use crate::store::broken::{Broken, broken};

impl<R: Recipe> Election<R> {
    /// What must hold when nothing has happened for a while.
    pub(super) fn at_rest(&self) -> Result<(), Broken> {
        let mut nodes: Vec<&String> = self.store.nodes.keys().collect();
        let wrong = |what: String| broken(what);
        let live = || self.clients.iter().enumerate().filter(|(_, client)| !client.crashed);
        // With leases no candidate has a node of its own.
        let own = live().filter(|(_, client)| client.recipe.node().is_some()).count();
        for (number, client) in live() {
            if client.wanted == client.stopped {
                return wrong(format!("candidate {} should have stopped, or not", name(number)));
            }
            if let Some(own) = client.recipe.node() {
                let Some(at) = nodes.iter().position(|name| *name == own) else {
                    return wrong(format!("candidate {} believes in {own}", name(number)));
                };
                nodes.swap_remove(at);
            } else if client.wanted && own > 0 {
                return wrong(format!("candidate {} has no node", name(number)));
            }
            let waits = self.store.watches_on(client.link) || client.recipe.deadline().is_some();
            if client.wanted && !waits {
                return wrong(format!("candidate {} waits for nothing", name(number)));
            }
        }
        let keys = usize::from(own == 0);
        if nodes.len() > keys {
            return wrong(format!("left behind: {nodes:?}"));
        }
        let leaders = live().filter(|(_, client)| client.recipe.leads().is_some()).count();
        if leaders != 1 {
            return wrong(format!("{leaders} lead"));
        }
        let (waiting, idle) = self.store.watches();
        if idle > 0 || waiting > 6 * self.clients.len() {
            return wrong(format!("{waiting} watches, {idle} on what is not there"));
        }
        Ok(())
    }

    /// Takes note of what may be a reason to make another offer.
    pub(super) fn note(&mut self, number: usize, happening: &Happening) {
        let client = &mut self.clients[number];
        let nodes = &self.store.nodes;
        let known = [client.recipe.node(), client.offered.as_deref()];
        if known.into_iter().flatten().any(|own| !nodes.contains_key(own)) {
            (client.may_offer, client.offered) = (true, None);
        }
        match happening {
            Happening::Start | Happening::Expired => client.may_offer = true,
            Happening::Done(attempt, result) if client.offering == Some(*attempt) => {
                client.offering = None;
                client.may_offer |= result.is_err();
                if let Ok(Reply::Made(name, _)) = result {
                    client.offered = Some(name.clone());
                }
            }
            Happening::Done(..)
            | Happening::Tick
            | Happening::Stop
            | Happening::Released
            | Happening::Connected(..)
            | Happening::Suspended
            | Happening::Renewed(..)
            | Happening::Fired(..) => {}
        }
    }

    /// An offer is made once for each reason.
    pub(super) fn on_offer(&mut self, number: usize, attempt: Attempt) -> Result<(), Broken> {
        let client = &mut self.clients[number];
        // It may have waited for an answer for long enough.
        let reason = std::mem::take(&mut client.may_offer) || client.offering.is_some();
        client.offering = Some(attempt);
        if reason {
            Ok(())
        } else {
            broken(format!("{} makes another offer without a reason", name(number)))
        }
    }

    pub(super) fn on_leadership(
        &mut self,
        client: usize,
        change: LeadershipChange,
    ) -> Result<(), Broken> {
        let who = name(client);
        self.tell_leadership(client, change);
        match change {
            LeadershipChange::Taken { token, until } => {
                self.standing.terms += 1;
                if self.clients[client].guards.is_some() {
                    return broken(format!(
                        "{who} leads again while guards of its last term are there"
                    ));
                }
                let by_hand = self.deleted.contains(&token.0);
                if self.last_token.is_some_and(|last| last >= token) && !by_hand {
                    return broken(format!("{who} leads with {token} after {:?}", self.last_token));
                }
                self.last_token = self.last_token.max(Some(token));
                self.clients[client].term = Some(Term { token, until, suspended: false });
                self.clients[client].guards = Some((self.clients[client].session, token));
                self.alone(client)?;
            }
            LeadershipChange::Confirmed { until } => {
                let Some(term) = &mut self.clients[client].term else {
                    return broken(format!("{who} is confirmed and does not lead"));
                };
                (term.until, term.suspended) = (until, false);
                self.alone(client)?;
            }
            LeadershipChange::Suspended => {
                if let Some(term) = &mut self.clients[client].term {
                    term.suspended = true;
                }
            }
            LeadershipChange::Release => self.send_guards_away(client),
            LeadershipChange::Lost(loss) => {
                self.clients[client].may_offer = true;
                if self.clients[client].term.take().is_none() {
                    return broken(format!("{who} loses what it does not have"));
                }
                let stopped = loss == Loss::Stopped;
                if stopped && self.clients[client].guards.is_some() {
                    return broken(format!("{who} gave up its leadership and guards are there"));
                }
                if !stopped {
                    self.send_guards_away(client);
                }
            }
        }
        Ok(())
    }

    pub(super) fn send_guards_away(&mut self, client: usize) {
        let most = if !self.quiet && self.rng.below(5) == 0 { 30 } else { 1 };
        let wait = self.chance(most * SECOND);
        let wait = self.keeps(client).unwrap_or(wait);
        if let Some((_, token)) = self.clients[client].guards {
            self.plan_at(self.now + wait, Happens::GuardsGone(client, token));
        }
    }

    /// No other candidate leads by its own clock, or works though the store still keeps what its term rested on.
    pub(super) fn alone(&self, client: usize) -> Result<(), Broken> {
        let by_hand = |token: Token| self.deleted.contains(&token.0);
        if self.clients[client].term.is_some_and(|term| by_hand(term.token)) {
            return Ok(());
        }
        for (number, other) in self.clients.iter().enumerate().filter(|(n, _)| *n != client) {
            let term = other.term.filter(|term| !by_hand(term.token));
            if term.is_some_and(|term| self.clock(number) < term.until) {
                return broken(format!("{} and {} lead", name(client), name(number)));
            }
            let Some((Some(session), token)) = other.guards.filter(|(_, token)| !by_hand(*token))
            else {
                continue;
            };
            if other.recipe.goes_with_its_session() && self.store.is_alive(session) {
                return broken(format!(
                    "{} leads while {} works with {token}",
                    name(client),
                    name(number)
                ));
            }
        }
        Ok(())
    }
}

//! Accidents from a seed: lost connections, pauses, stopped candidates, deleted nodes, servers without the leader.

use super::agenda::Happens;
use super::candidates::Recipe;
use super::plan::SYNC_LIMIT;
use super::world::{Election, name, nanos, pick};
use crate::store::broken::Broken;

impl<R: Recipe> Election<R> {
    pub(super) fn accident(&mut self) -> Result<(), Broken> {
        let anybody = pick(&mut self.rng, self.clients.len());
        // The leader is who matters.
        let client = self.leader().filter(|_| self.rng.below(3) == 0).unwrap_or(anybody);
        match self.rng.below(if self.plan.cuts { 13 } else { 10 }) {
            0..4 => self.lose_connection(client),
            4..6 => {
                if !self.clients[client].paused {
                    self.say(|| format!("{}: paused", name(client)));
                    self.clients[client].paused = true;
                    let most = 2 * nanos(self.plan.timeout);
                    let wait = self.rng.below(most);
                    self.plan_at(self.now + wait, Happens::Resume(client));
                }
            }
            6..8 => {
                let wanted = !self.clients[client].wanted;
                if !self.clients[client].paused {
                    return self.want(client, wanted);
                }
            }
            8 => {
                for client in 0..self.clients.len() {
                    self.lose_connection(client);
                }
            }
            9 => self.delete_something(),
            _ => self.cut_off(client),
        }
        Ok(())
    }

    /// The server of this client loses the leader.
    fn cut_off(&mut self, client: usize) {
        let Some(server) = self.links.get(&self.clients[client].link).map(|link| link.server)
        else {
            return;
        };
        if self.store.servers[server].cut_until > self.now {
            return;
        }
        self.say(|| format!("server {server}: cut off"));
        let most = 3 * nanos(SYNC_LIMIT);
        self.store.servers[server].cut_until = self.now + self.rng.below(most);
        self.plan_at(self.now + nanos(SYNC_LIMIT), Happens::GiveUp(server));
    }

    pub(super) fn give_up(&mut self, server: usize) {
        if self.store.servers[server].cut_until <= self.now {
            return;
        }
        self.say(|| format!("server {server}: serves no more"));
        for client in 0..self.clients.len() {
            let its = self.links.get(&self.clients[client].link);
            if its.is_some_and(|link| link.server == server) {
                self.lose_connection(client);
            }
        }
    }

    /// An operator deletes a node.
    pub(super) fn delete_something(&mut self) {
        if !self.plan.deletions || self.store.nodes.is_empty() {
            return;
        }
        let at = pick(&mut self.rng, self.store.nodes.len());
        let Some(name) = self.store.nodes.keys().nth(at).cloned() else { return };
        self.delete(name);
    }

    pub(super) fn delete(&mut self, name: String) {
        let Some(node) = self.store.nodes.get(&name) else { return };
        let (created, owner) = (node.created, node.owner);
        self.say(|| format!("operator: deletes {name}"));
        self.deleted.insert(created);
        for client in self.clients.iter_mut().filter(|client| client.session == owner) {
            client.may_offer = true;
        }
        self.store.change(name, None);
    }
}

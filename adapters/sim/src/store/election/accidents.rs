//! What goes wrong: connections, pauses, people who stop and start candidates, or delete nodes.

use super::{Election, Happens, nanos, pick};
use crate::store::Recipe;

impl<R: Recipe> Election<R> {
    pub(super) fn accident(&mut self) -> Result<(), String> {
        let anybody = pick(&mut self.rng, self.clients.len());
        // The leader is who matters.
        let client = self.leader().filter(|_| self.rng.below(3) == 0).unwrap_or(anybody);
        match self.rng.below(10) {
            0..4 => self.lose_connection(client),
            4..6 => {
                if !self.clients[client].paused {
                    self.say(|| format!("{client}: paused"));
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
            _ => self.delete_something(),
        }
        Ok(())
    }

    /// An operator deletes a node.
    pub(super) fn delete_something(&mut self) {
        if !self.plan.deletions || self.store.nodes.is_empty() {
            return;
        }
        let at = pick(&mut self.rng, self.store.nodes.len());
        let Some((name, node)) = self.store.nodes.iter().nth(at) else { return };
        let (name, created, owner) = (name.clone(), node.created, node.owner);
        self.say(|| format!("operator: deletes {name}"));
        self.deleted.insert(created);
        for client in self.clients.iter_mut().filter(|client| client.session == owner) {
            client.may_offer = true;
        }
        self.store.change(name, None);
    }
}

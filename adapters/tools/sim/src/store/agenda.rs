//! The agenda: what is due when, and what is done then; the clocks of the candidates.

use quorate_core::recipe::{Failure, Token};
use quorate_core::time::Instant;

use super::candidates::{Happening, Recipe};
use super::client::Client;
use super::network::{Message, Request};
use super::script::Script;
use super::servers::Server;
use super::world::{Election, MS, SECOND, nanos, pick};
use crate::call::{Op, Reply};
use crate::record::Candidacy;
use crate::store::broken::Broken;

#[derive(Clone, Debug)]
pub(super) enum Happens {
    AtServer(Request),
    AtLeader(Request, u64),
    AtServerAgain(Request, Result<Reply, Failure>, usize),
    AtClient(usize, u64, Message),
    CatchUp(usize),
    Wake(usize),
    Ping(usize),
    /// On this connection.
    Beat(usize, u64),
    /// A server tells the leader whom it has heard.
    Touch(usize),
    Dial(usize),
    /// This connection of a client.
    Break(usize, u64),
    Resume(usize),
    /// A server that is still cut off sends its clients away.
    GiveUp(usize),
    /// Of the term with this token.
    GuardsGone(usize, Token),
    Expire,
    Accident,
}

impl<R: Recipe> Election<R> {
    pub(super) fn plan_at(&mut self, at: u64, happens: Happens) {
        self.order += 1;
        self.agenda.insert((at, self.order), happens);
    }

    /// What a client's clock shows.
    pub(super) fn clock(&self, client: usize) -> Instant {
        let Client { offset, rate, .. } = self.clients[client];
        Instant(offset + self.now / 1_000 * rate)
    }

    /// When a client's clock shows this.
    pub(super) fn when(&self, client: usize, instant: Instant) -> u64 {
        let Client { offset, rate, .. } = self.clients[client];
        (instant.0.saturating_sub(offset) / rate + 1) * 1_000
    }

    pub(super) fn delay(&mut self) -> u64 {
        if !self.quiet && self.rng.below(25) == 0 {
            return self.chance(4 * SECOND);
        }
        MS + self.chance(20 * MS)
    }

    /// A number below this one; the first of them where a story leaves nothing to chance.
    pub(super) fn chance(&mut self, below: u64) -> u64 {
        let even = self.script.as_ref().is_some_and(Script::is_even);
        if even { 0 } else { self.rng.below(below) }
    }

    pub(super) fn happen(&mut self, happens: Happens) -> Result<(), Broken> {
        match happens {
            Happens::AtServer(request) => self.at_server(request),
            Happens::AtLeader(request, again) => self.at_leader(request, again),
            Happens::AtServerAgain(request, result, end) => {
                self.at_server_again(request, result, end)
            }
            Happens::AtClient(client, link, message) => {
                return self.at_client(client, link, message);
            }
            Happens::CatchUp(server) => self.catch_up(server),
            Happens::Wake(client) => return self.wake(client),
            Happens::Ping(client) => {
                let Client { link, session, paused, crashed, .. } = self.clients[client];
                if link != 0 && session.is_some() && !paused && !crashed {
                    self.send(client, None, Op::Ping);
                }
                let next = nanos(self.plan.timeout) / 4;
                self.plan_at(self.now + next, Happens::Ping(client));
            }
            Happens::Beat(client, link) => self.beat(client, link),
            Happens::Touch(server) => self.touch(server),
            Happens::Dial(client) => self.dial(client),
            Happens::Break(client, link) => {
                if self.clients[client].link == link {
                    self.lose_connection(client);
                }
            }
            Happens::Resume(client) => return self.resume(client),
            Happens::GiveUp(server) => self.give_up(server),
            Happens::GuardsGone(client, token) => {
                if self.clients[client].paused {
                    self.plan_at(self.now + SECOND, Happens::GuardsGone(client, token));
                } else if self.clients[client].guards.is_some_and(|(_, of)| of == token) {
                    self.clients[client].guards = None;
                    self.tell(client, || Candidacy::Released);
                    return self.deliver(client, Happening::Released);
                }
            }
            Happens::Expire => {
                self.store.expire(self.now);
                self.plan_at(self.now + 20 * MS, Happens::Expire);
            }
            Happens::Accident => {
                let next = 100 * MS + self.rng.below(3 * SECOND);
                self.plan_at(self.now + next, Happens::Accident);
                if !self.quiet {
                    return self.accident();
                }
            }
        }
        Ok(())
    }

    /// A server applies more of the log; all that there is, when no accidents happen any more.
    fn catch_up(&mut self, server: usize) {
        let (from, to) = (self.store.servers[server].applied, self.store.log.len());
        let more = if self.quiet { to - from } else { pick(&mut self.rng, to - from + 1) };
        if self.store.servers[server].cut_until <= self.now {
            let fired = self.store.apply(server, from + more);
            self.fire(fired);
        }
        if self.script.is_some() {
            // It comes again when there is something to catch up with.
            return;
        }
        let next = if self.quiet { 10 } else { 5 + self.rng.below(400) };
        self.plan_at(self.now + next * MS, Happens::CatchUp(server));
    }

    /// A client pings on this connection, if it still has that.
    fn beat(&mut self, client: usize, link: u64) {
        let Client { link: present, paused, crashed, .. } = self.clients[client];
        if link == present && paused {
            self.plan_at(self.now + SECOND, Happens::Beat(client, link));
        } else if link == present && !crashed {
            self.send(client, None, Op::Ping);
        }
    }

    /// A server tells the leader which sessions it has heard, unless it is cut off.
    fn touch(&mut self, server: usize) {
        let Server { cut_until, heard, .. } = &mut self.store.servers[server];
        if *cut_until <= self.now {
            for (session, link) in std::mem::take(heard) {
                self.store.hear(session, link, self.now);
            }
        }
        self.plan_at(self.now + nanos(self.plan.timeout) / 5, Happens::Touch(server));
    }
}

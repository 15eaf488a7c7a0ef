//! What reaches a candidate, when by its clock, and what it does about it.

use std::collections::VecDeque;

use quorate_core::recipe::{Failure, SessionId};
use quorate_core::time::Instant;

use super::agenda::Happens;
use super::candidates::{Happening, Recipe, Wish};
use super::network::{Message, Request};
use super::plan::Plan;
use super::world::{Election, MS, name, nanos};
use crate::call::{Op, Reply};
use crate::record::Candidacy;
use crate::store::broken::Broken;

impl<R: Recipe> Election<R> {
    pub(super) fn at_client(
        &mut self,
        number: usize,
        link: u64,
        message: Message,
    ) -> Result<(), Broken> {
        let client = &self.clients[number];
        let lost = link != 0 && (link != client.link || self.is_away(number));
        if client.crashed || lost {
            return Ok(());
        }
        let client = &mut self.clients[number];
        if client.paused {
            client.backlog.push_back((link, message));
            return Ok(());
        }
        match message {
            Message::Connected(session, sent) => {
                client.session = Some(session);
                (client.counted, client.beats) = (sent, VecDeque::new());
                if self.plan.touches {
                    self.plan_at(self.now, Happens::Beat(number, link));
                }
                let timeout = self.plan.timeout;
                self.deliver(number, Happening::Connected(session, timeout))?;
                self.deliver(number, Happening::Renewed(session, sent))
            }
            Message::SessionOver => {
                client.session = None;
                self.hang_up(link, true);
                self.clients[number].link = 0;
                self.plan_at(self.now + MS, Happens::Dial(number));
                self.deliver(number, Happening::Expired)
            }
            Message::Answer(request, result, seen) => {
                self.on_answer(number, link, request, result, seen)
            }
            Message::Fired(attempt, gone) => {
                self.standing.woken += 1;
                self.deliver(number, Happening::Fired(attempt, gone))
            }
            Message::Here(happening) => self.deliver(number, happening),
        }
    }

    /// A call, or a ping, is answered.
    fn on_answer(
        &mut self,
        number: usize,
        link: u64,
        request: Request,
        result: Result<Reply, Failure>,
        seen: usize,
    ) -> Result<(), Broken> {
        let client = &mut self.clients[number];
        client.seen = client.seen.max(seen);
        match (request.attempt, request.session, result) {
            (Some(attempt), _, result) => {
                client.in_flight.retain(|in_flight| *in_flight != attempt);
                let passed = matches!(request.op, Op::Ping | Op::Create { .. });
                if let (Some(session), Ok(_), true) = (request.session, &result, passed) {
                    self.counts(number, session, request.sent)?;
                }
                self.deliver(number, Happening::Done(attempt, result))
            }
            (None, Some(session), Ok(_)) => {
                if !self.plan.touches {
                    return self.deliver(number, Happening::Renewed(session, request.sent));
                }
                let next = self.now + nanos(self.plan.timeout) / 8;
                self.plan_at(next, Happens::Beat(number, link));
                self.counts(number, session, request.sent)?;
                let answered = self.clock(number);
                self.clients[number].beats.push_back((request.sent, answered));
                Ok(())
            }
            (None, _, _) => {
                // One that comes late may be of a connection that is gone already.
                if request.link == self.clients[number].link {
                    self.lose_connection(number);
                }
                Ok(())
            }
        }
    }

    /// What was sent then has passed the leader and is answered: a heartbeat that was answered a quarter of the
    /// time-out before counts.
    fn counts(&mut self, number: usize, session: SessionId, sent: Instant) -> Result<(), Broken> {
        let Plan { touches, hasty, timeout, .. } = self.plan;
        let client = &mut self.clients[number];
        let is_past = |(_, answered): &&(Instant, Instant)| *answered + timeout / 4 <= sent;
        while let Some((beat, _)) = client.beats.front().filter(is_past) {
            client.counted = *beat;
            client.beats.pop_front();
        }
        let counted = if hasty { sent } else { client.counted };
        if touches {
            return self.deliver(number, Happening::Renewed(session, counted));
        }
        Ok(())
    }

    pub(super) fn wake(&mut self, client: usize) -> Result<(), Broken> {
        self.clients[client].wake_at = None;
        if self.clients[client].paused || self.clients[client].crashed {
            return Ok(());
        }
        let due = self.clients[client].recipe.deadline();
        if due.is_some_and(|due| due <= self.clock(client)) {
            return self.deliver(client, Happening::Tick);
        }
        self.set_alarm(client);
        Ok(())
    }

    pub(super) fn set_alarm(&mut self, client: usize) {
        let Some(due) = self.clients[client].recipe.deadline() else { return };
        let at = self.when(client, due).max(self.now + 1_000);
        if self.clients[client].wake_at.is_none_or(|wake_at| at < wake_at) {
            self.clients[client].wake_at = Some(at);
            self.plan_at(at, Happens::Wake(client));
        }
    }

    pub(super) fn resume(&mut self, client: usize) -> Result<(), Broken> {
        if !std::mem::take(&mut self.clients[client].paused) {
            return Ok(());
        }
        self.say(|| format!("{}: goes on", name(client)));
        // What it finds first is up to the machine that it runs on.
        if self.chance(2) == 0 {
            self.deliver(client, Happening::Tick)?;
        }
        for (link, message) in std::mem::take(&mut self.clients[client].backlog) {
            self.at_client(client, link, message)?;
        }
        self.deliver(client, Happening::Tick)
    }

    pub(super) fn want(&mut self, client: usize, wanted: bool) -> Result<(), Broken> {
        if self.clients[client].wanted == wanted {
            return Ok(());
        }
        self.clients[client].wanted = wanted;
        self.clients[client].stopped = false;
        self.deliver(client, if wanted { Happening::Start } else { Happening::Stop })
    }

    /// A candidate is told something, and does what it does about it.
    pub(super) fn deliver(&mut self, client: usize, happening: Happening) -> Result<(), Broken> {
        let at = self.clock(client);
        self.say(|| format!("{}: {happening:?}", name(client)));
        self.note(client, &happening);
        let watched = self.tell_heard(client, &happening);
        let wishes = self.clients[client].recipe.step(at, happening);
        self.tell_waits(client, watched, &wishes);
        for wish in wishes {
            self.say(|| format!("{}:     {wish:?}", name(client)));
            match wish {
                Wish::Op(attempt, op) => {
                    self.tell_asked(client, attempt, &op);
                    self.standing.calls += 1;
                    self.standing.lists += u64::from(matches!(op, Op::List { .. }));
                    self.standing.creates += u64::from(matches!(op, Op::Create { .. }));
                    if let Op::Delete { name, .. } = &op {
                        // What it deletes itself is no reason to make another.
                        self.clients[client].offered.take_if(|offered| offered == name);
                    }
                    if matches!(op, Op::Create { numbered: true, .. }) {
                        self.on_offer(client, attempt)?;
                    }
                    self.send(client, Some(attempt), op);
                }
                Wish::Leadership(change) => self.on_leadership(client, change)?,
                Wish::Stopped => {
                    let wanted = self.clients[client].wanted;
                    self.clients[client].stopped = !wanted;
                    self.tell(client, || Candidacy::Stopped);
                    if let Some(session) =
                        self.clients[client].session.filter(|_| self.plan.late && !wanted)
                    {
                        self.store.end(session);
                        self.rest(client);
                    }
                }
            }
        }
        self.set_alarm(client);
        Ok(())
    }
}

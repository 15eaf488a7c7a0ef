//! What is told of an election that a story is about: what candidates hear, ask and are, and what becomes of
//! their nodes and sessions.

use quorate_core::id::ServerId;
use quorate_core::recipe::{Attempt, LeadershipChange};
use quorate_core::time::Instant;

use super::candidates::{Happening as Hears, Recipe, Wish};
use super::world::{Election, name};
use crate::call::{Op, Reply};
use crate::record::{Candidacy, Happening, Moment};

impl<R: Recipe> Election<R> {
    /// What was told so far.
    pub(crate) fn moments(&self) -> &[Moment] {
        self.script.as_ref().map_or(&[], |script| &script.moments)
    }

    pub(super) fn tell(&mut self, client: usize, what: impl FnOnce() -> Candidacy) {
        self.tell_so(client, || Happening::Candidate(what()));
    }

    pub(super) fn tell_so(&mut self, client: usize, what: impl FnOnce() -> Happening) {
        let at = Instant(self.now);
        if let (Some(script), Ok(number)) = (&mut self.script, i64::try_from(name(client))) {
            script.moments.push(Moment { at, server: ServerId(number), what: what() });
        }
    }

    /// Tells what a candidate hears; returns the node that it now watches, if it does.
    pub(super) fn tell_heard(&mut self, client: usize, heard: &Hears) -> Option<String> {
        let asked = &self.script.as_ref()?.candidates[client].asked;
        let mut watched = None;
        let told = match heard {
            Hears::Connected(session, _) => Candidacy::Connected(*session),
            Hears::Suspended => Candidacy::Suspended,
            Hears::Expired => Candidacy::Expired,
            Hears::Done(attempt, result) => {
                let op = asked.get(attempt)?.clone();
                if let (Op::Read { name, watch: true }, Ok(Reply::Read(_))) = (&op, result) {
                    watched = Some(name.clone());
                }
                Candidacy::Hears(op, result.clone())
            }
            Hears::Fired(attempt, _) => match asked.get(attempt)? {
                Op::Read { name, .. } => Candidacy::Fired(name.clone()),
                Op::Root
                | Op::Create { .. }
                | Op::Write { .. }
                | Op::Delete { .. }
                | Op::List { .. }
                | Op::Ping => return None,
            },
            Hears::Tick | Hears::Start | Hears::Stop | Hears::Released | Hears::Renewed(..) => {
                return None;
            }
        };
        if let Some(script) = &mut self.script {
            if let Hears::Connected(session, _) = heard {
                script.sessions.insert(*session, client);
            }
            if matches!(heard, Hears::Connected(..) | Hears::Suspended | Hears::Expired) {
                script.candidates[client].waits_for = None;
            }
        }
        self.tell(client, || told);
        watched
    }

    /// Tells that a candidate waits, if it has nothing to do but to watch another candidate's node.
    pub(super) fn tell_waits(&mut self, client: usize, watched: Option<String>, wishes: &[Wish]) {
        let recipe = &self.clients[client].recipe;
        let busy = wishes.iter().any(|wish| matches!(wish, Wish::Op(..)));
        let own = |name: &String| recipe.node() == Some(name) || recipe.leads().is_some();
        let Some(name) = watched.filter(|name| !busy && !own(name)) else { return };
        let Some(script) = &mut self.script else { return };
        if script.candidates[client].waits_for.replace(name.clone()).as_ref() != Some(&name) {
            self.tell(client, || Candidacy::Waits(name));
        }
    }

    pub(super) fn tell_asked(&mut self, client: usize, attempt: Attempt, op: &Op) {
        if let Some(script) = &mut self.script {
            let hand = &mut script.candidates[client];
            hand.asked.insert(attempt, op.clone());
            hand.waits_for.take_if(|known| !matches!(op, Op::Read { name, .. } if name == known));
        }
        self.tell(client, || Candidacy::Asks(op.clone()));
    }

    pub(super) fn tell_leadership(&mut self, client: usize, change: LeadershipChange) {
        let until = |until| Instant(self.when(client, until));
        let told = match (change, self.clients[client].term) {
            (LeadershipChange::Taken { token, until: by }, _) => {
                Candidacy::Leads { token, until: until(by), again: false }
            }
            (LeadershipChange::Confirmed { until: by }, Some(term)) if term.suspended => {
                Candidacy::Leads { token: term.token, until: until(by), again: true }
            }
            (LeadershipChange::Confirmed { until: by }, _) => Candidacy::Confirmed(until(by)),
            (LeadershipChange::Suspended, _) => Candidacy::Unconfirmed,
            (LeadershipChange::Release, _) => Candidacy::GivesUp,
            (LeadershipChange::Lost(loss), _) => Candidacy::Lost(loss),
        };
        self.tell(client, || told);
    }

    /// Tells what has happened in the store since, and has its copies come behind.
    pub(super) fn follow(&mut self) {
        let Some(script) = &mut self.script else { return };
        let mut told = Vec::new();
        let store = &self.store;
        script.sessions.retain(|session, client| {
            let alive = store.is_alive(*session);
            if !alive {
                told.push((*client, Candidacy::Ended(*session)));
            }
            alive
        });
        let new = &store.log[script.told..];
        for change in new {
            let name = change.name.clone();
            let new = change.node.as_ref().is_some_and(|node| node.created == node.version);
            script.made += u64::from(new);
            let author = change.node.as_ref().and_then(|node| self.authors.get(&node.version));
            let before = match author {
                Some(author) => script.owners.insert(name.clone(), *author),
                None => script.owners.remove(&name),
            };
            told.extend(match (author, before) {
                (Some(author), Some(before)) if *author == before => {
                    Some((before, Candidacy::Written(name)))
                }
                (Some(author), _) => Some((*author, Candidacy::Made(name))),
                (None, Some(before)) => Some((before, Candidacy::Gone(name))),
                (None, None) => None,
            });
        }
        script.told = store.log.len();
        if !new.is_empty() {
            self.spread();
        }
        for (client, what) in told {
            self.tell(client, || what);
        }
    }
}

//! Answers of the store to calls, and watches that fire.
//!
//! They change what is known of our offer, of the row, and of the root. The next step is decided afterwards, in one
//! place.

use alloc::string::String;
use alloc::vec::Vec;

use crate::recipe::boundary::{Attempt, Failure, SessionId, Token};
use crate::recipe::offer::Candidate;
use crate::recipe::offer::boundary::{Answer, Notice, Output, State};
use crate::recipe::offer::names::Entry;
use crate::recipe::offer::row::{Own, Pending, Phase, Place, Root, Stray, What, claims};

impl Candidate {
    pub(super) fn on_done(
        &mut self,
        attempt: Attempt,
        result: Result<Answer, Failure>,
        out: &mut Vec<Output>,
    ) {
        if self.pending.as_ref().is_some_and(|pending| pending.attempt == attempt) {
            self.answered(result, out);
        }
    }

    pub(super) fn answered(&mut self, result: Result<Answer, Failure>, out: &mut Vec<Output>) {
        let (Some(Pending { attempt, what, .. }), Some(live)) = (self.pending.take(), self.session)
        else {
            return;
        };
        match (what, result) {
            (_, Err(Failure::Expired)) => self.expire(out),
            (What::Root, Ok(_)) => self.root = Root::Ensured,
            (What::Create, Ok(Answer::Created { name })) => self.hold(name, None, out),
            (What::Create, Err(Failure::Absent)) if self.root == Root::Assumed => {
                self.root = Root::Missing
            }
            (What::Search, Ok(Answer::Listed(entries))) => {
                let claims = claims(self.config.naming, &self.prefix(live.id), &entries);
                self.own = Own::Unknown { claims: Some(claims) };
            }
            (What::Search, Err(Failure::Absent)) => {
                (self.own, self.root) = (Own::None, Root::Missing)
            }
            (What::Claim(name), Ok(Answer::Read { data, owner, created })) => {
                let telling = self.config.naming.is_telling();
                if owner == Some(live.id) && (telling || data == self.config.identity) {
                    self.hold(name, Some(created), out);
                } else if telling {
                    self.strays.push(Stray { name, created: Some(created) });
                }
            }
            (What::List { fresh }, Ok(Answer::Listed(entries))) => {
                self.on_listed(fresh, &entries, live.id, out);
            }
            (What::Verify, Ok(Answer::Read { owner, created, .. })) => {
                if owner == Some(live.id) {
                    if let Own::Held { watch, created: known, .. } = &mut self.own {
                        (*watch, *known) = (Some(attempt), Some(created));
                    }
                    self.confirm(out);
                } else {
                    self.own_is_gone(out);
                }
            }
            (What::List { .. } | What::Verify, Err(Failure::Absent)) => self.own_is_gone(out),
            (What::Watch, Ok(Answer::Read { created, .. })) => {
                self.wait_behind(attempt, created, out);
            }
            (What::Watch, Err(Failure::Absent)) => {
                self.place = Place::STALE;
            }
            (What::Delete(gone), Ok(_) | Err(Failure::Absent)) => {
                self.strays.retain(|stray| *stray != gone);
            }
            (What::Claim(_), Err(Failure::Absent | Failure::Denied)) => {}
            (what, Err(failure)) => self.on_failure(&what, failure, out),
            (what, Ok(_)) => self.on_failure(&what, Failure::Rejected, out),
        }
    }

    /// Our offer is in the store.
    fn hold(&mut self, name: String, created: Option<Token>, out: &mut Vec<Output>) {
        self.own = Own::Held { name, watch: None, created };
        (self.place, self.root) = (Place::STALE, Root::Assumed);
        if self.is_running() {
            out.push(Output::Notice(Notice::OfferComplete));
        }
    }

    fn on_listed(&mut self, fresh: bool, entries: &[Entry], id: SessionId, out: &mut Vec<Output>) {
        let prefix = self.prefix(id);
        let Own::Held { name, watch, .. } = &mut self.own else { return };
        if self.config.naming.is_telling() {
            let is_other = |it: &&Entry| it.name.starts_with(&prefix) && it.name != *name;
            let stray =
                |it: &Entry| Stray { name: it.name.clone(), created: it.created.map(Token) };
            self.strays.extend(entries.iter().filter(is_other).map(stray));
        }
        let Some(place) = Place::of(name, entries) else {
            if fresh {
                return self.own_is_gone(out);
            }
            self.place = Place::Stale { fresh: true };
            return;
        };
        if place == Place::First {
            // Our own node, on which leadership will rest, is read once more behind the listing.
            *watch = None;
        }
        self.place = place;
        self.determining = false;
        out.push(Output::Notice(Notice::DetermineComplete));
    }

    fn wait_behind(&mut self, attempt: Attempt, found: Token, out: &mut Vec<Output>) {
        let Place::Behind { created, watch, .. } = &mut self.place else { return };
        if created.is_some_and(|created| created != found) {
            // Where names come back, the neighbour may stand behind us by now, and wait for us.
            self.place = Place::STALE;
            return;
        }
        *watch = Some(attempt);
        self.backoff.reset();
        if self.state != State::Ready {
            self.state = State::Ready;
            out.push(Output::Notice(Notice::ReadyStart));
            out.push(Output::Notice(Notice::ReadyComplete));
        }
    }

    pub(super) fn on_fired(&mut self, attempt: Attempt, gone: bool, out: &mut Vec<Output>) {
        if let Own::Held { watch, .. } = &mut self.own {
            if *watch == Some(attempt) {
                *watch = None;
                if gone {
                    return self.own_is_gone(out);
                }
            }
        }
        if let Place::Behind { watch, .. } = &mut self.place {
            if *watch == Some(attempt) {
                *watch = None;
                if gone {
                    self.place = Place::STALE;
                }
            }
        }
    }

    fn on_failure(&mut self, what: &What, failure: Failure, out: &mut Vec<Output>) {
        let lost = matches!(failure, Failure::Unknown | Failure::Exists);
        let finds_out = !matches!(what, What::Delete(_)) && !self.leadership.is_held();
        if lost && *what == What::Create {
            self.own = Own::Unknown { claims: None };
        } else if !lost && finds_out {
            self.fail(out);
        }
        if matches!(what, What::Claim(_)) {
            // It is searched for again, with a new listing.
            self.own = Own::Unknown { claims: None };
        }
        if *what == What::Create && self.root == Root::Ensured {
            self.root = Root::Assumed;
        }
        let waits = matches!(self.phase, Phase::Failed { again: false }) && self.is_clear();
        let connected = self.session.is_some_and(|live| live.connected);
        let again = (connected && !waits).then(|| self.backoff.next_delay());
        self.retry_at = again.map(|delay| self.now + delay);
        out.push(Output::Trouble { failure, again });
    }
}

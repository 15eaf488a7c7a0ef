//! What the store says: answers to calls, and watches that fire.
//!
//! They change what is known: of the key, and of our claim to it. What is done about it is decided afterwards, in
//! one place.

use alloc::vec::Vec;

use crate::recipe::lease::boundary::{Answer, Expiry, Held, Output};
use crate::recipe::lease::{Candidate, Key, Pending, What, tell};
use crate::recipe::terms::{Attempt, Failure, Loss, Token};
use crate::time::Instant;

impl Candidate {
    pub(super) fn answered(&mut self, result: Result<Answer, Failure>, out: &mut Vec<Output>) {
        let Some(Pending { attempt, sent, what, .. }) = self.pending.take() else { return };
        match (what, result) {
            (_, Err(Failure::Expired)) => self.on_expired(out),
            (What::Read { watch }, Ok(Answer::Found(found))) => {
                self.watch = Some(attempt).filter(|_| watch);
                self.on_read(found, out);
            }
            (What::Take, Ok(Answer::Written { version, .. })) => {
                self.hear(sent);
                self.key = Key::Ours { version, token: Token(version), released: false };
                self.watch = None;
            }
            (What::Renew, Ok(Answer::Written { version: now, .. })) => {
                if let Key::Ours { version, .. } = &mut self.key {
                    *version = now;
                }
                self.hear(sent);
                self.confirm(out);
                if self.held_until().is_none() {
                    // It is kept, and what is counted is too old.
                    self.rest_until = Some(self.now + self.pace.rest());
                }
            }
            (What::Mark, Ok(Answer::Written { version: now, .. })) => {
                if let Key::Ours { version, released, .. } = &mut self.key {
                    (*version, *released) = (now, true);
                }
            }
            (What::Delete, Ok(Answer::Done) | Err(Failure::Absent)) => self.key = Key::Free,
            (What::Take, Err(Failure::Conflict | Failure::Exists | Failure::Absent)) => {
                self.key = Key::Unread;
                self.races += 1;
                if self.races > 1 {
                    // Somebody's normal luck, but not again and again.
                    self.rest_until = Some(self.now + self.pace.rest());
                }
            }
            (What::Renew, Err(Failure::Absent)) => self.on_read(None, out),
            (What::Renew | What::Mark | What::Delete, Err(Failure::Conflict | Failure::Absent)) => {
                // Perhaps it is a write of our own that no answer came to.
                self.key = Key::Unread;
                tell(self.tenure.suspend(), out);
            }
            (what, Err(failure)) => self.on_failure(what, sent, failure, out),
            (what, Ok(_)) => self.on_failure(what, sent, Failure::Rejected, out),
        }
    }

    fn on_read(&mut self, found: Option<Held>, out: &mut Vec<Output>) {
        let Some(held) = found else {
            self.lose(Loss::Deleted, out);
            self.key = Key::Free;
            return;
        };
        if held.record.holder == self.claim.holder {
            // Without an answer of its own it is as old as the first attempt at it.
            if let (None, Some(sent)) = (self.claim.contact, self.claim.unsure) {
                self.hear(sent);
            }
            let (version, released) = (held.version, held.record.released);
            self.key = Key::Ours { version, token: held.token(), released };
            return;
        }
        self.lose(Loss::Taken, out);
        let earlier = held.record.holder.wrapping_sub(self.config.unique);
        if earlier < self.claim.holder.wrapping_sub(self.config.unique) {
            self.key = Key::Stray { version: held.version };
            return;
        }
        let over_at = match (self.config.expiry, &self.key) {
            (Expiry::Store, _) => None,
            (Expiry::Observed, _) if held.record.released => Some(self.now),
            (Expiry::Observed, Key::Foreign { held: known, over_at }) if *known == held => *over_at,
            (Expiry::Observed, _) => {
                let silence = held.record.duration;
                Some(self.now + silence + self.pace.stagger(self.config.jitter))
            }
        };
        (self.races, self.key) = (0, Key::Foreign { held, over_at });
        self.pace.reset();
    }

    pub(super) fn on_fired(&mut self, attempt: Attempt, gone: bool, out: &mut Vec<Output>) {
        if self.watch != Some(attempt) {
            return;
        }
        self.watch = None;
        let released = matches!(&self.key, Key::Foreign { held, .. } if held.record.released);
        if !gone {
            // Who holds it is read anew, since there is no watch; till then nothing changes.
        } else if matches!(self.key, Key::Ours { .. }) {
            self.on_read(None, out);
        } else if released {
            self.key = Key::Free;
        } else if matches!(self.key, Key::Foreign { .. }) {
            self.key = Key::Gone { look_at: self.now + self.pace.stagger(self.config.jitter) };
        }
    }

    fn on_failure(&mut self, what: What, sent: Instant, failure: Failure, out: &mut Vec<Output>) {
        if failure == Failure::Unknown {
            match what {
                What::Take => {
                    self.claim.unsure = self.claim.unsure.or(Some(sent));
                    self.key = Key::Unread;
                }
                What::Mark | What::Delete => self.key = Key::Unread,
                What::Renew | What::Read { .. } => {}
            }
        }
        if !matches!(what, What::Read { .. }) || failure == Failure::Unknown {
            tell(self.tenure.suspend(), out);
        }
        let rest = self.pace.rest();
        self.rest_until = Some(self.now + rest);
        out.push(Output::Trouble { failure, again: Some(rest) });
    }
}

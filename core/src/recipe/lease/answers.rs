//! Answers of the store to calls, and watches that fire.
//!
//! They change what is known of the key, and of our claim to it. The next step is decided afterwards, in one place.

use alloc::vec::Vec;

use crate::recipe::boundary::{Attempt, Failure, Loss, Token};
use crate::recipe::lease::boundary::{Answer, Expiry, Held, Output};
use crate::recipe::lease::claim::{Key, Pending, What};
use crate::recipe::lease::{Candidate, tell};
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
                    // The key is kept, but what the store counts is too old to rely upon.
                    self.retry_at = Some(self.now + self.backoff.next_delay());
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
                    // Once is normal; again and again is a contest that needs a delay.
                    self.retry_at = Some(self.now + self.backoff.next_delay());
                }
            }
            (What::Renew, Err(Failure::Absent)) => self.on_read(None, out),
            (What::Renew | What::Mark | What::Delete, Err(Failure::Conflict | Failure::Absent)) => {
                // Perhaps a write of our own took effect, and its answer was lost.
                self.key = Key::Unread;
                tell(self.leadership.suspend(), out);
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
            // Its own answer was lost: it counts from the first attempt.
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
                Some(self.now + silence + self.backoff.stagger(self.config.jitter))
            }
        };
        (self.races, self.key) = (0, Key::Foreign { held, over_at });
        self.backoff.reset();
    }

    pub(super) fn on_fired(&mut self, attempt: Attempt, gone: bool, out: &mut Vec<Output>) {
        if self.watch != Some(attempt) {
            return;
        }
        self.watch = None;
        let released = matches!(&self.key, Key::Foreign { held, .. } if held.record.released);
        if !gone {
            // The holder is read again, since there is no watch; until then nothing changes.
        } else if matches!(self.key, Key::Ours { .. }) {
            self.on_read(None, out);
        } else if released {
            self.key = Key::Free;
        } else if matches!(self.key, Key::Foreign { .. }) {
            self.key = Key::Gone { look_at: self.now + self.backoff.stagger(self.config.jitter) };
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
            tell(self.leadership.suspend(), out);
        }
        let delay = self.backoff.next_delay();
        self.retry_at = Some(self.now + delay);
        out.push(Output::Trouble { failure, again: Some(delay) });
    }
}

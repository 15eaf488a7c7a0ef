//! What waits to be written to an election link.
//!
//! ```text
//!   put(vote 1), put(vote 2), put(vote 3) ──► [ 3 ] ──► take() ──► the wire
//! ```
//!
//! It holds messages and knows no connection; who writes them, and when, is up to the caller.

use alloc::vec::Vec;

use crate::generation_message::GenerationMessage;
use crate::message::{Notification, Probe};

/// What an election link has to carry: at most one notification, the newest, or one message of each kind; and one
/// probe.
///
/// A vote that was not sent before the next one is of no use to anybody; keeping it would make an
/// election among N servers cost N³ messages instead of N². Driver, simulator and benches all send
/// through this type, one for each link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mailbox {
    newest: Option<Notification>,
    /// Where servers elect by generation: of each kind the newest, the longest waiting first.
    messages: Vec<GenerationMessage>,
    /// Where the other end knows them.
    probe: Option<Probe>,
}

impl Mailbox {
    /// Puts in a notification; returns whether it took the place of one that was not yet sent.
    pub fn put(&mut self, notification: Notification) -> bool {
        self.newest.replace(notification).is_some()
    }

    /// Takes out what is to be sent next.
    pub fn take(&mut self) -> Option<Notification> {
        self.newest.take()
    }

    /// Puts in a message; returns whether it took the place of one of its kind that was not yet sent.
    pub fn post(&mut self, message: GenerationMessage) -> bool {
        let kind = message.body.kind();
        match self.messages.iter_mut().find(|waiting| waiting.body.kind() == kind) {
            Some(waiting) => {
                *waiting = message;
                true
            }
            None => {
                self.messages.push(message);
                false
            }
        }
    }

    /// Takes out the message that is to be sent next.
    pub fn take_generation(&mut self) -> Option<GenerationMessage> {
        (!self.messages.is_empty()).then(|| self.messages.remove(0))
    }

    /// Puts in a probe; returns whether it took the place of one that was not yet sent.
    pub fn put_probe(&mut self, probe: Probe) -> bool {
        self.probe.replace(probe).is_some()
    }

    /// Takes out the probe that is to be sent: after what elections say.
    pub fn take_probe(&mut self) -> Option<Probe> {
        self.probe.take()
    }

    /// Whether nothing is to be sent.
    pub fn is_empty(&self) -> bool {
        self.newest.is_none() && self.messages.is_empty() && self.probe.is_none()
    }
}

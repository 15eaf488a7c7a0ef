//! One other member: the link to it, where to dial it, and when to try again.
//!
//! ```text
//!             ┌── it held: at once; something was heard: after the shortest wait ──┐
//!             ▼                                                                    │
//!   dialled ──┬── comes up ──► linked ──► the link ends ──┬────────────────────────┘
//!      ▲      └── comes to nothing ──┐                    │
//!      └── 10 ms, 20 ms, … 1 s ──────┴────────────────────┘ neither
//! ```
//!
//! A link that ends with nothing heard on it is no better than a dial that failed: where the other end refuses a
//! certificate, TLS 1.3 has the dialler believe that the link is up, and each dial costs both ends a handshake.
//!
//! Each wait is drawn around its length, so that servers which lost each other do not meet again and
//! again. Nothing is dialled here, and which of two connections stays is decided above: this is the
//! memory of one neighbour.

use alloc::vec::Vec;
use core::time::Duration;

use crate::address::HostPort;
use crate::id::LinkId;
use crate::links::answers::Answers;
use crate::message::Probe;
use crate::rng::Rng;
use crate::time::Instant;

/// Another member, as far as connections go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Neighbour {
    /// Whether we want a link by ourselves: it has a vote.
    pub(super) wanted: bool,
    pub(super) configured: Vec<HostPort>,
    pub(super) advertised: Option<HostPort>,
    pub(super) link: Option<Up>,
    pub(super) redial_at: Option<Instant>,
    wait: Duration,
    /// The last link to it ended soon and without a word.
    mute: bool,
    /// It was asked to dial us since there was a link.
    pub(super) asked: bool,
    /// It knew probes when it last said anything that tells: on a new link, too, it has to be heard.
    knows_probes: bool,
    /// What it may have without a vote.
    answers: Answers,
}

/// A link that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Up {
    pub(super) link: LinkId,
    pub(super) since: Instant,
    pub(super) dialled: bool,
    /// The other end has said on it that it knows probes.
    knows_probes: bool,
    /// When it last said that it hears us, in a probe; when the link came up, if never.
    hears_us: Instant,
}

impl Up {
    /// It has just come up: both ends have heard each other.
    pub(super) const fn new(link: LinkId, since: Instant, dialled: bool) -> Self {
        Self { link, since, dialled, knows_probes: false, hears_us: since }
    }

    /// A probe has come.
    pub(super) const fn on_probe(&mut self, now: Instant, probe: Probe) {
        if probe.hears_you {
            self.hears_us = now;
        }
    }

    /// Whether it has lived long.
    pub(super) fn held(&self, now: Instant) -> bool {
        now.since(self.since) >= HELD
    }

    /// Whether to probe it.
    pub(super) const fn knows_probes(&self) -> bool {
        self.knows_probes
    }

    /// Whether both ends have heard each other within so long. Servers of ZooKeeper say nothing when an election is
    /// over: with them it is enough that the link stands, which keep-alives see to. One that was none of them does not
    /// pass for one because its new link is silent.
    pub(super) fn is_heard(&self, now: Instant, recent: Duration) -> bool {
        !self.knows_probes || now.since(self.hears_us) <= recent
    }
}

impl Neighbour {
    /// One that we know nothing of, and do not want by ourselves.
    pub(super) const fn new(shortest: Duration) -> Self {
        Self {
            wanted: false,
            configured: Vec::new(),
            advertised: None,
            link: None,
            redial_at: None,
            wait: shortest,
            mute: false,
            asked: false,
            knows_probes: false,
            answers: Answers::new(Instant::ORIGIN),
        }
    }

    /// The link to it, if it may be answered now: those with a vote always may.
    pub(super) fn may_answer(&mut self, now: Instant) -> Option<LinkId> {
        let link = self.link?.link;
        (self.wanted || self.answers.take(now)).then_some(link)
    }

    /// Where to dial it: what the configuration says, then what it says of itself.
    pub(super) fn addresses(&self) -> Vec<HostPort> {
        let mut addresses = self.configured.clone();
        addresses.extend(self.advertised.clone().filter(|a| !addresses.contains(a)));
        addresses
    }

    /// When it is to be dialled, unless that is under way.
    pub(super) fn due(&self) -> Option<Instant> {
        self.redial_at.filter(|_| self.link.is_none())
    }

    /// A dial came to nothing: the next one is made later, and later each time.
    pub(super) fn put_off(&mut self, now: Instant, longest: Duration, rng: &mut Rng) {
        self.redial_at = Some(now + rng.around(self.wait));
        self.wait = (self.wait * 2).min(longest);
    }

    /// It is dialled afresh: the waits begin anew.
    pub(super) const fn hope(&mut self, shortest: Duration) {
        self.wait = shortest;
        self.mute = false;
    }

    /// Whether it has let links end without a word, and has said nothing since.
    pub(super) const fn is_mute(&self) -> bool {
        self.mute
    }

    /// Whether the next dial has its own time, that grows: what came of the last one is no failure that tells of a network that
    /// was.
    pub(super) const fn keeps_its_pace(&self) -> bool {
        self.mute || self.asked
    }

    /// It says something; whether it was mute.
    pub(super) const fn speaks(&mut self) -> bool {
        core::mem::replace(&mut self.mute, false)
    }

    /// A link has come up and stays; returns the one whose place it takes.
    pub(super) const fn on_up(&mut self, up: Up) -> Option<Up> {
        self.redial_at = None;
        self.asked = false;
        self.link.replace(Up { knows_probes: self.knows_probes, ..up })
    }

    /// It has said on this link whether it knows probes.
    pub(super) fn on_marked(&mut self, link: LinkId, knows_probes: bool) {
        if let Some(up) = self.link.as_mut().filter(|up| up.link == link) {
            (self.knows_probes, up.knows_probes) = (knows_probes, knows_probes);
        }
    }

    /// Whether it knew probes when it last said anything that tells.
    pub(super) const fn knows_probes(&self) -> bool {
        self.knows_probes
    }

    /// A link to it has ended soon, and without a word.
    pub(super) fn on_mute(&mut self, now: Instant, longest: Duration, rng: &mut Rng) {
        self.mute = true;
        if self.is_missed() {
            self.put_off(now, longest, rng);
        }
    }

    /// A link to it has ended on which something was heard, or which held.
    pub(super) fn on_down(&mut self, now: Instant, held: bool, rng: &mut Rng) {
        if self.is_missed() {
            // A link that held is dialled again at once: an election may be waiting to know
            // whether that server lives. One that did not hold may not hold again.
            let wait = if held { Duration::ZERO } else { rng.around(self.wait) };
            self.redial_at = Some(now + wait);
        }
    }

    /// Whether there ought to be a link, and it is not known when it is dialled.
    fn is_missed(&self) -> bool {
        self.link.is_none() && self.wanted && self.redial_at.is_none()
    }
}

/// A link that lived this long is dialled again at once when it ends.
const HELD: Duration = Duration::from_millis(100);

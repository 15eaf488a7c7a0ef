//! Makes moments of entries: finds the end of each message and of each write.
//!
//! ```text
//!   Do(Send A) ─┐  per link, in order         Do(Persist 7) ─┐
//!   Do(Send B) ─┤                             Do(Persist 8) ─┤
//!   Hear(B) ◄───┘  A was replaced, B arrived  Hear(8) ◄──────┘  both are durable
//! ```

use std::collections::{BTreeMap, VecDeque};

use quorate_core::id::{LinkId, ServerId, Ticket};
use quorate_core::input::Event;
use quorate_core::message::{Message, Packet, Run};
use quorate_core::output::{Output, Write};
use quorate_core::time::Instant;
use quorate_core::txn::{Txn, Txns};

use super::moment::{Arrow, Fate, Happening, Moment};
use super::{Entry, What};
use crate::network::other_end;

/// One end of a connection.
#[derive(Clone, Copy, Debug)]
struct End {
    /// Whose.
    server: ServerId,
    /// Who is at the other end, if that is known from this one.
    peer: Option<ServerId>,
    /// Whether that is a script, whose hearing is not told.
    scripted: bool,
}

/// Something that was sent on a link and has not arrived.
#[derive(Clone, Debug)]
enum Sent {
    Message(Instant, Message),
    /// A part of the log, or a snapshot: more messages than one, made by the driver.
    Stream(Instant),
}

/// Retells entries, in their order, as moments.
#[derive(Debug, Default)]
pub struct Teller {
    ends: BTreeMap<LinkId, End>,
    sent: BTreeMap<LinkId, VecDeque<Sent>>,
    writes: BTreeMap<ServerId, VecDeque<(Ticket, Write)>>,
}

impl Teller {
    /// What there is to tell once this has happened, too.
    pub fn tell(&mut self, entry: &Entry) -> Vec<Moment> {
        let Entry { at, server, what } = entry;
        let (at, server) = (*at, *server);
        let mut told = Vec::new();
        let happening = match what {
            What::Start(found) => Some(Happening::Start(*found)),
            What::Crash(kind) => {
                self.writes.remove(&server);
                let own: Vec<_> =
                    self.ends.iter().filter(|(_, end)| end.server == server).collect();
                let links: Vec<_> = own.into_iter().map(|(link, _)| *link).collect();
                for link in links {
                    self.closed(at, link, &mut told);
                }
                Some(Happening::Crash(*kind))
            }
            What::DiskFails => {
                self.writes.remove(&server);
                Some(Happening::Other(entry.clone()))
            }
            What::Wipe => Some(Happening::Wipe),
            What::Clock(_) => Some(Happening::Other(entry.clone())),
            What::Pause => Some(Happening::Pause),
            What::Resume => Some(Happening::Resume),
            What::Block(to) => Some(Happening::Way { to: vec![*to], open: false }),
            What::Unblock(to) => Some(Happening::Way { to: vec![*to], open: true }),
            What::Break(with) => Some(Happening::Break(*with)),
            What::Visit { crowd, plane, bytes } => {
                Some(Happening::Visit { crowd: *crowd, plane: *plane, bytes: *bytes })
            }
            What::Meet { link, peer, .. } => {
                let end = End { server, peer: Some(*peer), scripted: true };
                self.ends.insert(*link, end);
                None
            }
            What::Hear(event) => self.heard(entry, event, &mut told),
            What::Do(output) => self.done(entry, output, &mut told),
        };
        told.extend(happening.map(|what| Moment { at, server, what }));
        told
    }

    /// What is still under way.
    pub fn rest(self) -> Vec<Moment> {
        let mut rest = Vec::new();
        for (link, sent) in &self.sent {
            for one in sent {
                if let Sent::Message(at, message) = one {
                    rest.extend(self.arrow(*at, *link, *at, message, Fate::UnderWay));
                }
            }
        }
        rest.sort_by_key(|moment| moment.at);
        rest
    }

    fn heard(&mut self, entry: &Entry, event: &Event, told: &mut Vec<Moment>) -> Option<Happening> {
        let Entry { at, server, .. } = entry;
        let (at, server) = (*at, *server);
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others are told as they are")]
        match event {
            Event::LinkUp(up) => {
                let back = self.ends.get_mut(&other_end(up.link));
                let peer = up.peer.or(back.as_ref().map(|end| end.server));
                if let Some(back) = back {
                    back.peer = Some(server);
                }
                self.ends.entry(up.link).or_insert(End { server, peer, scripted: false });
                Some(Happening::Other(entry.clone()))
            }
            Event::LinkDown { link, .. } => {
                self.closed(at, *link, told);
                Some(Happening::Other(entry.clone()))
            }
            Event::Received { link, message } => {
                for part in parts(message) {
                    self.arrived(at, server, *link, part, told);
                }
                join_runs(told);
                None
            }
            Event::Persisted(ticket) => {
                let writes = self.writes.entry(server).or_default();
                let behind = writes.partition_point(|(issued, _)| issued <= ticket);
                let durable: Vec<_> = writes.drain(..behind).map(|(_, write)| write).collect();
                (!durable.is_empty()).then_some(Happening::Durable(durable))
            }
            _ => Some(Happening::Other(entry.clone())),
        }
    }

    fn done(
        &mut self,
        entry: &Entry,
        output: &Output,
        told: &mut Vec<Moment>,
    ) -> Option<Happening> {
        let (at, server) = (entry.at, entry.server);
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others are told as they are")]
        match output {
            Output::Report(report) => Some(Happening::Change(report.clone())),
            Output::Halt(fault) => Some(Happening::Halt(*fault)),
            Output::Deliver(Txn { zxid, .. })
            | Output::Adopt { label: zxid }
            | Output::Replay { through: zxid, .. } => Some(Happening::Deliver(*zxid)),
            Output::Send { link, message } => {
                if self.ends.get(link).is_some_and(|end| end.scripted) {
                    told.extend(self.arrow(at, *link, at, message, Fate::Arrived));
                } else {
                    let queue = self.sent.entry(*link).or_default();
                    queue.extend(parts(message).map(|part| Sent::Message(at, part)));
                }
                None
            }
            Output::StreamLog { link, .. } | Output::SendSnapshot { link, .. } => {
                self.sent.entry(*link).or_default().push_back(Sent::Stream(at));
                Some(Happening::Other(entry.clone()))
            }
            Output::Persist { ticket, write } => {
                self.writes.entry(server).or_default().push_back((*ticket, write.clone()));
                Some(Happening::Other(entry.clone()))
            }
            Output::Hangup { link, reason } => {
                let with = self.ends.get(link).and_then(|end| end.peer);
                self.closed(at, *link, told);
                Some(Happening::HangUp { with, reason: *reason })
            }
            _ => Some(Happening::Other(entry.clone())),
        }
    }

    /// A message has come on a link: what was sent before it on that way has not.
    fn arrived(
        &mut self,
        at: Instant,
        to: ServerId,
        link: LinkId,
        message: Message,
        told: &mut Vec<Moment>,
    ) {
        let end = self.ends.get(&link).copied();
        let back = other_end(link);
        let from = self.ends.get(&back).map(|end| end.server).or(end.and_then(|end| end.peer));
        let Some(from) = from else { return };
        let queue = self.sent.entry(back).or_default();
        let is_it = |sent: &Sent| matches!(sent, Sent::Message(_, m) if *m == message);
        let (mut sent, mut fate) = (None, Fate::Arrived);
        if let Some(before) = queue.iter().position(is_it) {
            let earlier: Vec<_> = queue.drain(..=before).collect();
            for one in earlier {
                match one {
                    Sent::Message(when, m) if m == message => sent = Some(when),
                    Sent::Message(when, m) => {
                        told.extend(self.arrow(at, back, when, &m, Fate::Replaced));
                    }
                    Sent::Stream(_) => {}
                }
            }
        } else if let Some(Sent::Stream(when)) = queue.front() {
            sent = Some(*when);
        } else if end.is_some_and(|end| !end.scripted) {
            fate = Fate::Repeated;
        }
        let arrow = Arrow { from, to, message, sent, fate };
        told.push(Moment { at, server: to, what: Happening::Message(arrow) });
    }

    /// One end is closed: what has not come to it never does, nor what it sent if the other one was.
    fn closed(&mut self, at: Instant, link: LinkId, told: &mut Vec<Moment>) {
        let back = other_end(link);
        self.lost(at, back, told);
        if !self.ends.contains_key(&back) {
            self.lost(at, link, told);
        }
        self.ends.remove(&link);
    }

    fn lost(&mut self, at: Instant, link: LinkId, told: &mut Vec<Moment>) {
        for one in self.sent.remove(&link).unwrap_or_default() {
            if let Sent::Message(when, message) = one {
                told.extend(self.arrow(at, link, when, &message, Fate::Lost));
            }
        }
    }

    /// A message that was sent from an end.
    fn arrow(
        &self,
        at: Instant,
        link: LinkId,
        sent: Instant,
        message: &Message,
        fate: Fate,
    ) -> Option<Moment> {
        let end = self.ends.get(&link)?;
        let to = end.peer.or_else(|| self.ends.get(&other_end(link)).map(|end| end.server))?;
        let arrow =
            Arrow { from: end.server, to, message: message.clone(), sent: Some(sent), fate };
        Some(Moment { at, server: end.server, what: Happening::Message(arrow) })
    }
}

/// What the other end may read one by one.
#[allow(clippy::wildcard_enum_match_arm, reason = "the others are one each")]
fn parts(message: &Message) -> std::vec::IntoIter<Message> {
    let all: Vec<_> = match message {
        Message::Packet(Packet::Acks(run)) => run.zxids().map(Packet::Ack).collect(),
        Message::Packet(Packet::Commits(run)) => run.zxids().map(Packet::Commit).collect(),
        Message::Packet(Packet::Proposals(txns)) => {
            txns.iter().map(|txn| Packet::Proposal(txn.clone())).collect()
        }
        other => return vec![other.clone()].into_iter(),
    };
    all.into_iter().map(Message::Packet).collect::<Vec<_>>().into_iter()
}

/// Puts together again what came as one run, from one sending.
fn join_runs(told: &mut Vec<Moment>) {
    let mut at = 1;
    while at < told.len() {
        let (before, behind) = told.split_at_mut(at);
        if before.last_mut().is_some_and(|first| joined(first, &behind[0])) {
            told.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Whether the second could be taken into the first.
fn joined(first: &mut Moment, second: &Moment) -> bool {
    let (Happening::Message(a), Happening::Message(b)) = (&mut first.what, &second.what) else {
        return false;
    };
    if (a.sent, a.fate, a.from, a.to) != (b.sent, b.fate, b.from, b.to) {
        return false;
    }
    let (Message::Packet(one), Message::Packet(more)) = (&a.message, &b.message) else {
        return false;
    };
    #[allow(clippy::wildcard_enum_match_arm, reason = "only these make runs")]
    let both = match (one, more) {
        (Packet::Ack(first), Packet::Ack(last)) => Packet::Acks(Run { first: *first, last: *last }),
        (Packet::Acks(run), Packet::Ack(last)) => Packet::Acks(Run { last: *last, ..*run }),
        (Packet::Commit(first), Packet::Commit(last)) => {
            Packet::Commits(Run { first: *first, last: *last })
        }
        (Packet::Commits(run), Packet::Commit(last)) => {
            Packet::Commits(Run { last: *last, ..*run })
        }
        (Packet::Proposal(first), Packet::Proposal(last)) => {
            Packet::Proposals(Txns::from(vec![first.clone(), last.clone()]))
        }
        (Packet::Proposals(txns), Packet::Proposal(last)) => {
            let mut all = txns.to_vec();
            all.push(last.clone());
            Packet::Proposals(Txns::from(all))
        }
        _ => return false,
    };
    a.message = Message::Packet(both);
    true
}

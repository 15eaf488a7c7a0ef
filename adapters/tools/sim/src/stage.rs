//! One real server among scripted ones.
//!
//! Some accidents need peers that say precisely the wrong thing at the right time. On a stage there is
//! one real [`Peer`]; links, messages, time and the disk do what the script says and nothing else.
//! Messages pass through the codec all the same.

mod said;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_core::config::Config;
use quorate_core::generation_message::{Attempt, Body, Generation, GenerationMessage};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, Input, LinkUp, Plane};
use quorate_core::message::{Message, Notification, Packet, Request};
use quorate_core::output::{Leadership, Output};
use quorate_core::peer::Peer;
use quorate_core::reasons::{Fault, Hangup};
use quorate_core::report::Report;
use quorate_core::rng::Rng;
use quorate_core::status::Status;
use quorate_core::time::Instant;
use quorate_core::timers::Timer;
use quorate_core::txn::{Draft, RequestId, TxnHeader};
use quorate_core::vote::ServerState;
use quorate_core::wire;
use quorate_core::zxid::Zxid;

use crate::application::{KIND, State};
use crate::disk::{Contents, Disk, Survival};
use crate::ensemble::Ensemble;
use crate::faults::CrashKind;
use crate::record::{Found, Record, What};

pub use said::{Said, learner_info, says, txn};

/// One real server, and everything that it has done.
#[derive(Debug)]
pub struct Stage {
    config: Config,
    peer: Peer,
    now: Instant,
    disk: Disk,
    /// Whether writes become durable at once; on at first.
    pub sync_at_once: bool,
    issued: u64,
    dialling: BTreeSet<(Plane, ServerId)>,
    sent: BTreeMap<LinkId, Vec<Message>>,
    hung_up: BTreeMap<LinkId, Hangup>,
    reports: Vec<Report>,
    asked: Vec<Output>,
    fault: Option<Fault>,
    record: Record,
}

impl Stage {
    /// A server of an ensemble, started with what its disk holds; its first election has begun.
    ///
    /// # Panics
    ///
    /// If that cannot be a server.
    pub fn new(ensemble: &Ensemble, id: i64, contents: Contents) -> Self {
        Self::with(ensemble, id, contents, |_| {})
    }

    /// The same, with something else in its configuration.
    ///
    /// # Panics
    ///
    /// If that cannot be a server.
    pub fn with(
        ensemble: &Ensemble,
        id: i64,
        contents: Contents,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let membership = match ensemble.membership() {
            Ok(membership) => membership,
            Err(error) => panic!("{error}: {ensemble:?}"),
        };
        let mut config = Config::new(ServerId(id), membership);
        change(&mut config);
        Self::start(config, Disk::new(contents), Instant::ORIGIN, Record::default())
    }

    fn start(config: Config, disk: Disk, now: Instant, mut record: Record) -> Self {
        let durable = disk.durable().durable(config.history.window_count);
        record.note(now, config.id, What::Start(Found::from(&durable)));
        let peer = match Peer::new(config.clone(), durable) {
            Ok(peer) => peer,
            Err(error) => panic!("refuses to start: {error}"),
        };
        let mut stage = Self {
            config,
            peer,
            now,
            disk,
            sync_at_once: true,
            issued: 0,
            dialling: BTreeSet::new(),
            sent: BTreeMap::new(),
            hung_up: BTreeMap::new(),
            reports: Vec::new(),
            asked: Vec::new(),
            fault: None,
            record,
        };
        stage.feed(Event::Tick);
        stage
    }

    /// The server crashes and starts again; the writes under way are there or not.
    #[must_use]
    pub fn restarted(mut self, survival: Survival) -> Self {
        self.disk.crash(survival, &mut Rng::new(0), &mut Rng::new(0));
        self.record.note(self.now, self.config.id, What::Crash(CrashKind::Power));
        Self::start(self.config, self.disk, self.now, self.record)
    }

    // ---- what the script does ----

    /// Tells the server anything.
    pub fn feed(&mut self, event: Event) {
        let (now, id) = (self.now, self.config.id);
        self.record.note(now, id, What::Hear(event.clone()));
        let outputs = self.peer.step(Input { at: now, event });
        // Its application is quick.
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others are not for it to answer")]
        let applied = outputs.iter().rev().find_map(|output| match output {
            Output::Deliver(txn) => Some(Event::Applied(txn.zxid)),
            Output::Adopt { label } => Some(Event::Applied(*label)),
            Output::Replay { through, .. } => {
                Some(Event::Replayed { through: *through, outcome: Ok(()) })
            }
            _ => None,
        });
        for output in outputs {
            self.record.note(now, id, What::Do(output.clone()));
            match output {
                Output::Dial { plane, peer, .. } => {
                    assert!(self.dialling.insert((plane, peer)), "a second dial of {peer}");
                }
                Output::Hangup { link, reason } => {
                    self.hung_up.insert(link, reason);
                }
                Output::Send { link, message } => self.sent.entry(link).or_default().push(message),
                Output::Persist { ticket, write } => {
                    self.asked.push(Output::Persist { ticket, write: write.clone() });
                    self.disk.persist(ticket, write);
                }
                Output::Report(report) => self.reports.push(report),
                Output::Halt(fault) => {
                    assert!(!matches!(fault, Fault::Broken(_)), "{fault}");
                    self.fault = Some(fault);
                }
                Output::CancelDial { .. }
                | Output::Resolve { .. }
                | Output::NotifyDrained(_)
                | Output::Locate { .. }
                | Output::StreamLog { .. }
                | Output::Prepare { .. }
                | Output::Adopt { .. }
                | Output::Deliver(_)
                | Output::Replay { .. }
                | Output::Discard
                | Output::TakeSnapshot(_)
                | Output::SendSnapshot { .. }
                | Output::ReceiveSnapshot { .. }
                | Output::Abandon
                | Output::Release(_)
                | Output::Leadership(_)
                | Output::Serving { .. }
                | Output::Retired
                | Output::Keep
                | Output::Transferred(_)
                | Output::Pinged
                | Output::Touched { .. }
                | Output::Revalidate { .. }
                | Output::Revalidated(_)
                | Output::Answer(_)
                | Output::Accepted(_)
                | Output::Lost(_)
                | Output::Unknown { .. }
                | Output::Refused { .. }
                | Output::ReadRefused { .. } => self.asked.push(output),
            }
        }
        if self.sync_at_once {
            self.sync();
        }
        if let Some(applied) = applied {
            self.feed(applied);
        }
    }

    /// Everything that was written becomes durable.
    pub fn sync(&mut self) {
        if self.disk.begin() {
            if let (_, Some(ticket)) = self.disk.complete() {
                self.feed(Event::Persisted(ticket));
            }
        }
    }

    /// A client at this server, which leads, asks for a write; its application prepares it at once.
    pub fn write(&mut self) {
        self.issued += 1;
        let id = RequestId { client: 1, cxid: i32::try_from(self.issued).unwrap_or(0) };
        let body = Bytes::from_static(b"write");
        let before = self.asked.len();
        self.feed(Event::Propose(Request { id, op: KIND, body, identities: None }));
        let prepare = self.asked[before..].iter().find_map(|output| {
            if let Output::Prepare { epoch, request, .. } = output {
                Some((*epoch, request.clone()))
            } else {
                None
            }
        });
        if let Some((epoch, Request { id, body, .. })) = prepare {
            let RequestId { client, cxid } = id;
            let header = TxnHeader { client, cxid, time: 0, kind: KIND };
            self.feed(Event::Prepared { epoch, drafts: vec![Draft { header, body }] });
        }
    }

    /// The snapshot that a leader sends on a link has come whole.
    pub fn restore(&mut self, link: LinkId, state: State) {
        self.disk.stage(state);
        self.feed(Event::restored(link));
    }

    /// Lets time pass, with a tick at each deadline; returns the deadlines and what they were for.
    pub fn pass(&mut self, time: Duration) -> Vec<(Instant, Timer)> {
        let (end, mut met) = (self.now + time, Vec::new());
        while let Some((at, timer)) = self.peer.deadline().filter(|(at, _)| *at <= end) {
            self.now = self.now.max(at);
            met.push((at, timer));
            self.feed(Event::Tick);
        }
        self.now = end;
        met
    }

    /// The time.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// When something is due next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.peer.deadline().map(|(at, _)| at)
    }

    /// A server has connected; on the election plane it has introduced itself.
    pub fn accept(&mut self, plane: Plane, from: i64) -> LinkId {
        self.link_up(plane, false, ServerId(from))
    }

    /// The server's own dial succeeds.
    ///
    /// # Panics
    ///
    /// If it has not dialled.
    pub fn answer(&mut self, plane: Plane, peer: i64) -> LinkId {
        assert!(self.dialling.remove(&(plane, ServerId(peer))), "{plane:?} of {peer} not dialled");
        self.link_up(plane, true, ServerId(peer))
    }

    /// The server's own dial fails, if there is one.
    pub fn refuse(&mut self, plane: Plane, peer: i64) {
        if self.dialling.remove(&(plane, ServerId(peer))) {
            self.feed(Event::DialFailed { plane, peer: ServerId(peer) });
        }
    }

    fn link_up(&mut self, plane: Plane, dialled: bool, peer: ServerId) -> LinkId {
        self.issued += 1;
        // The odd ones would be the other ends.
        let link = LinkId(2 * self.issued);
        self.record.note(self.now, self.config.id, What::Meet { link, plane, peer });
        // Who connects to the quorum port has yet to say who it is.
        let peer = (dialled || plane == Plane::Election).then_some(peer);
        let up = LinkUp { link, plane, dialled, peer, advertised: None, remote: None };
        self.feed(Event::LinkUp(up));
        link
    }

    /// An election link with a member, whichever of both has to dial: the one with the larger id.
    pub fn meet(&mut self, peer: i64) -> LinkId {
        if ServerId(peer) > self.config.id {
            self.accept(Plane::Election, peer)
        } else {
            self.answer(Plane::Election, peer)
        }
    }

    /// A link ends.
    pub fn close(&mut self, link: LinkId) {
        self.feed(Event::LinkDown { link, cause: Cause::Closed });
    }

    /// A peer says something; it passes through the codec.
    ///
    /// # Panics
    ///
    /// If the codec returns something else.
    pub fn hear(&mut self, link: LinkId, message: impl Into<Said>) {
        let Said(message) = message.into();
        let mut bytes = BytesMut::new();
        let decoded = match &message {
            Message::Notification(notification) => {
                wire::encode_notification(notification, &mut bytes);
                wire::take_notification(&mut bytes).map(|n| n.map(Message::Notification))
            }
            Message::Generation(message) => {
                wire::encode_generation(message, &mut bytes);
                wire::take_generation(&mut bytes).map(|n| n.map(Message::Generation))
            }
            Message::Probe(probe) => {
                wire::encode_probe(probe, &mut bytes);
                Ok(wire::take_probe(&mut bytes).map(Message::Probe))
            }
            Message::Packet(packet) => {
                wire::encode_packet(packet, &mut bytes);
                wire::decode_packet(&mut bytes, wire::MAX_DATA).map(|p| p.map(Message::Packet))
            }
        };
        assert_eq!(decoded, Ok(Some(message.clone())), "the codec changed it");
        self.feed(Event::Received { link, message });
    }

    // ---- what the server did ----

    /// Where the server stands.
    pub fn status(&self) -> Status {
        self.peer.status()
    }

    /// Its leadership, if it leads.
    pub fn leadership(&self) -> Option<Leadership> {
        self.peer.leadership()
    }

    /// Whether the server is looking.
    pub fn is_looking(&self) -> bool {
        self.status().state == ServerState::Looking
    }

    /// What is on its disk.
    pub fn durable(&self) -> &Contents {
        self.disk.durable()
    }

    /// How many writes are not durable yet.
    pub fn writes_under_way(&self) -> usize {
        self.disk.under_way()
    }

    /// What the server has asked its disk, its application and its clients since the last call.
    pub fn asked(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.asked)
    }

    /// What it has told its application to deliver since the start of what [`asked`](Self::asked) would
    /// return; the latest.
    pub fn delivered(&self) -> Option<Zxid> {
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others deliver nothing")]
        self.asked.iter().rev().find_map(|output| match output {
            Output::Deliver(txn) => Some(txn.zxid),
            Output::Adopt { label } => Some(*label),
            Output::Replay { through, .. } => Some(*through),
            _ => None,
        })
    }

    /// Why the server has stopped, if it has.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The packets sent on a link since the last call.
    pub fn packets(&mut self, link: LinkId) -> Vec<Packet> {
        self.take_sent(link, |message| match message {
            Message::Packet(packet) => Some(packet),
            Message::Notification(_) | Message::Generation(_) | Message::Probe(_) => None,
        })
    }

    /// The last vote, or pre-vote, that the server has asked for in a generation.
    pub(crate) fn attempt(&self, generation: Generation, pre: bool) -> Option<Attempt> {
        let asked = |message: &Message| {
            let Message::Generation(GenerationMessage { body: Body::VoteRequest(attempt), .. }) =
                message
            else {
                return None;
            };
            (attempt.generation == generation && attempt.pre == pre).then_some(*attempt)
        };
        self.sent.values().flatten().filter_map(asked).max_by_key(|attempt| attempt.number)
    }

    /// The notifications sent on a link since the last call.
    pub fn notifications(&mut self, link: LinkId) -> Vec<Notification> {
        self.take_sent(link, |message| match message {
            Message::Notification(notification) => Some(notification),
            Message::Packet(_) | Message::Generation(_) | Message::Probe(_) => None,
        })
    }

    /// The messages sent on a link since the last call.
    pub fn messages(&mut self, link: LinkId) -> Vec<GenerationMessage> {
        self.take_sent(link, |message| match message {
            Message::Generation(message) => Some(message),
            Message::Packet(_) | Message::Notification(_) | Message::Probe(_) => None,
        })
    }

    fn take_sent<T>(&mut self, link: LinkId, pick: fn(Message) -> Option<T>) -> Vec<T> {
        self.sent.remove(&link).unwrap_or_default().into_iter().filter_map(pick).collect()
    }

    /// Why the server hung up a link, if it did.
    pub fn hang_up_of(&self, link: LinkId) -> Option<Hangup> {
        self.hung_up.get(&link).copied()
    }

    /// Whether the server is dialling a peer.
    pub fn is_dialling(&self, plane: Plane, peer: i64) -> bool {
        self.dialling.contains(&(plane, ServerId(peer)))
    }

    /// What happened so far.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// What the server has reported since the last call.
    pub fn reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }
}

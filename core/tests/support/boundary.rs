//! What the bench holds a server to, whatever a test is about: its side of the boundary.
//!
//! ```text
//!   disk       every write is one that can be done: appended is what follows, cut is what was not
//!              delivered, installed is what was received
//!   promises   nothing is acknowledged that is not durable, and nothing twice
//!   learners   each gets what follows what it has, once, and a COMMIT for each, once; nothing is said
//!              on a link on which the driver copies a part of the log or a snapshot
//!   callers    each request and each read is answered once
//!   leadership first of its step, and nothing but what the server says when it is asked; service begins and ends
//!              in turns
//! ```
//!
//! It is written from the words of the boundary, not from the code behind it, and knows the history
//! only from the writes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, Origin, ReadId, ReleaseId, ServerId, Ticket};
use quorate_core::input::{Event, Place, Plane};
use quorate_core::message::{Message, Packet, Request};
use quorate_core::output::{Form, Leadership, Output, Write};
use quorate_core::reasons::Fault;
use quorate_core::status::Status;
use quorate_core::txn::{RequestId, Txn};
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};

/// Everything that a server has asked for and what became of it.
#[derive(Clone, Debug)]
pub struct Boundary {
    pub up: BTreeMap<LinkId, Plane>,
    pub dialling: BTreeSet<(Plane, ServerId)>,
    /// Names that are to be looked up, each for a link.
    pub resolving: BTreeMap<LinkId, Vec<String>>,
    pub disk: Disk,
    /// What is known to be committed.
    pub delivered: Zxid,
    /// What the application has got.
    pub position: Zxid,
    /// What it has yet to say.
    pub applying: VecDeque<Event>,
    /// The label of what is staged for the application, or of what it started from.
    staged: Zxid,
    /// The learners of a leader, as far as their links tell.
    pub courses: BTreeMap<LinkId, Course>,
    /// What the driver copies to a link now.
    pub streams: BTreeMap<LinkId, Stream>,
    /// Zxids that the disk is asked for.
    pub locating: VecDeque<(LinkId, Zxid)>,
    /// Paces that were not answered.
    pub paces: BTreeMap<LinkId, u32>,
    /// The snapshot that comes on a link.
    pub receiving: Option<(LinkId, Zxid)>,
    /// The snapshot that is being taken.
    pub taking: Option<Zxid>,
    /// What the application has to prepare, in order; also of leaderships that are over.
    pub preparing: VecDeque<(Epoch, Origin, Request)>,
    /// Callers without an answer.
    pub requests: Vec<RequestId>,
    /// Those that were accepted and not given up.
    accepted: Vec<RequestId>,
    pub reads: BTreeSet<ReadId>,
    /// Where we have acknowledged a leader's history, and which transaction last.
    pub acknowledged: BTreeSet<LinkId>,
    /// A ping waits for the sessions that were heard from.
    pub pinged: bool,
    /// The link that has just ended, until it is hung up.
    ended: Option<LinkId>,
    acked: BTreeMap<LinkId, Zxid>,
    /// What it said last of its leadership.
    pub leadership: Option<Leadership>,
    /// The last question whether those are gone who do what only a leader may.
    pub release: ReleaseId,
    serving: bool,
    halted: bool,
}

/// What a disk has been asked to hold, and how far it does.
#[derive(Clone, Debug)]
pub struct Disk {
    pub accepted: Epoch,
    pub current: Epoch,
    /// From here on its log can be read.
    pub floor: Zxid,
    /// What is before is not known here one by one.
    pub base: Zxid,
    pub log: Vec<Txn>,
    /// What was received and written beside the history.
    pub beside: Option<(Zxid, Vec<Txn>)>,
    pub durable: Mark,
    /// What was in the log, all of it durable, when the last epoch was promised.
    promise: Mark,
    pending: VecDeque<(Ticket, Mark)>,
    issued: u64,
}

/// What a disk holds durably.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub accepted: Epoch,
    pub current: Epoch,
    pub last: Zxid,
}

/// What a learner has been sent by the leader on the bench.
#[derive(Clone, Debug, Default)]
pub struct Course {
    pub observer: bool,
    /// What it said in ACKEPOCH.
    last: Zxid,
    /// Whether it has said that.
    pub promised: bool,
    /// Whether it has acknowledged NEWLEADER, and what it acknowledged last.
    pub acknowledged: bool,
    pub acked: Zxid,
    /// Whether DIFF, TRUNC or SNAP was sent.
    begun: bool,
    trunc: bool,
    pub sent: Zxid,
    pub told: Zxid,
    pub new_leader: bool,
    pub up_to_date: bool,
}

/// What the driver copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Log { after: Zxid, through: Zxid, form: Form },
    Snapshot { label: Zxid },
}

impl Disk {
    fn new(durable: &Durable) -> Self {
        let log: Vec<_> = durable.window.iter().cloned().collect();
        let last = durable.last_zxid.max(Zxid::ZERO);
        let base = log.first().map_or(last, |first| Zxid(first.zxid.0 - 1));
        let mark = Mark { accepted: durable.accepted_epoch, current: durable.current_epoch, last };
        Self {
            accepted: mark.accepted,
            current: mark.current,
            floor: durable.floor,
            base,
            log,
            beside: None,
            durable: mark,
            promise: mark,
            pending: VecDeque::new(),
            issued: 0,
        }
    }

    pub fn last(&self) -> Zxid {
        self.log.last().map_or(self.base, |txn| txn.zxid)
    }

    /// The transactions after this, as far as they are known.
    pub fn after(&self, zxid: Zxid) -> &[Txn] {
        &self.log[self.log.partition_point(|txn| txn.zxid <= zxid)..]
    }

    pub fn holds(&self, zxid: Zxid) -> bool {
        zxid <= self.base || self.log.binary_search_by_key(&zxid, |txn| txn.zxid).is_ok()
    }

    /// Where a zxid stands in the log, as far as it is durable.
    pub fn locate(&self, zxid: Zxid) -> Place {
        if zxid < self.floor {
            return Place::BelowFloor;
        }
        let log = self.log.iter().map(|txn| txn.zxid);
        let held = log.filter(|held| *held > self.floor && *held <= self.durable.last);
        let held: Vec<_> = std::iter::once(self.floor).chain(held).collect();
        match held.binary_search(&zxid) {
            Ok(_) => Place::Held,
            Err(at) if at == held.len() => Place::Beyond,
            Err(at) => Place::Absent { previous: held[at - 1] },
        }
    }

    pub fn writes_pending(&self) -> usize {
        self.pending.len()
    }

    /// The last write that was asked for.
    pub fn newest(&self) -> Option<Ticket> {
        self.pending.back().map(|(ticket, _)| *ticket)
    }

    /// The oldest write that is under way.
    pub fn oldest(&self) -> Option<Ticket> {
        self.pending.front().map(|(ticket, _)| *ticket)
    }

    #[track_caller]
    fn write(&mut self, ticket: Ticket, write: &Write, delivered: Zxid, staged: &mut Zxid) {
        assert!(ticket.0 > self.issued, "{ticket} after {}", self.issued);
        self.issued = ticket.0;
        match write {
            Write::AcceptedEpoch(epoch) => {
                assert!(*epoch > self.accepted, "{write:?} after {:?}", self.accepted);
                self.accepted = *epoch;
                let Mark { current, last, .. } = self.durable;
                assert_eq!((current, last), (self.current, self.last()), "{write:?} too early");
                self.promise = Mark { accepted: *epoch, current, last };
            }
            Write::CurrentEpoch(epoch) => {
                assert!(*epoch >= self.current, "{write:?} after {:?}", self.current);
                assert!(*epoch <= self.accepted, "{write:?}, but {:?} is promised", self.accepted);
                self.current = *epoch;
            }
            Write::Append(txns) => {
                assert!(!txns.is_empty(), "nothing is appended");
                for txn in &**txns {
                    let last = self.last();
                    assert!(txn.zxid.follows(last), "{} is appended to {last}", txn.zxid);
                    assert!(txn.zxid.epoch() <= self.accepted, "{} is not promised", txn.zxid);
                    self.log.push(txn.clone());
                }
            }
            Write::Truncate(zxid) => {
                assert!(*zxid >= delivered, "cut at {zxid}, and {delivered} was delivered");
                assert!(*zxid >= *staged, "cut at {zxid}, and {staged} is where we start");
                assert!(*zxid <= self.last() && self.holds(*zxid), "cut at {zxid}: {self:?}");
                self.log.retain(|txn| txn.zxid <= *zxid);
                (self.base, self.floor) = (self.base.min(*zxid), self.floor.min(*zxid));
            }
            Write::AppendStaged(txn) => {
                let (label, txns) = self.beside.as_mut().expect("a snapshot was received");
                let last = txns.last().map_or(*label, |txn| txn.zxid);
                assert!(txn.zxid.follows(last), "{} is written beside, to {last}", txn.zxid);
                assert!(txn.zxid.epoch() <= self.accepted, "{} is not promised", txn.zxid);
                txns.push(txn.clone());
            }
            Write::Install { label, .. } => {
                let (received, txns) = self.beside.take().expect("a snapshot was received");
                assert_eq!(*label, received, "what is installed is what was received");
                assert!(label.epoch() <= self.accepted, "{label} is not promised");
                (self.base, self.floor, self.log) = (received, received, txns);
                *staged = received;
                let last = self.last();
                // The start of an epoch stands for the history that it began with, under that one's name.
                let bare = delivered.is_epoch_start() && last.epoch() < delivered.epoch();
                assert!(
                    bare || last >= delivered,
                    "{last} is installed, {delivered} was delivered"
                );
            }
            Write::GrantedVote { .. }
            | Write::Lease(_)
            | Write::Membership(_)
            | Write::NextMembership(_) => {}
        }
        let (accepted, current, last) = (self.accepted, self.current, self.last());
        self.pending.push_back((ticket, Mark { accepted, current, last }));
    }

    fn persisted(&mut self, ticket: Ticket) {
        while self.pending.front().is_some_and(|(pending, _)| *pending <= ticket) {
            if let Some((_, mark)) = self.pending.pop_front() {
                self.durable = mark;
            }
        }
    }
}

impl Boundary {
    pub fn new(durable: &Durable) -> Self {
        Self {
            up: BTreeMap::new(),
            dialling: BTreeSet::new(),
            resolving: BTreeMap::new(),
            disk: Disk::new(durable),
            delivered: Zxid::ZERO,
            position: Zxid::ZERO,
            applying: VecDeque::new(),
            staged: durable.snapshot,
            courses: BTreeMap::new(),
            streams: BTreeMap::new(),
            locating: VecDeque::new(),
            paces: BTreeMap::new(),
            receiving: None,
            taking: None,
            preparing: VecDeque::new(),
            requests: Vec::new(),
            accepted: Vec::new(),
            reads: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            pinged: false,
            ended: None,
            acked: BTreeMap::new(),
            leadership: None,
            release: ReleaseId(0),
            serving: false,
            halted: false,
        }
    }

    /// Takes note of what is about to happen.
    #[track_caller]
    pub fn before(&mut self, event: &Event) {
        match event {
            Event::Persisted(ticket) => self.disk.persisted(*ticket),
            Event::Applied(_) | Event::Replayed { .. } if self.applying.front() == Some(event) => {
                drop(self.applying.pop_front());
            }
            Event::LinkDown { link, .. } => self.ended = Some(*link),
            Event::Received { link, message: Message::Packet(packet) } => match packet {
                Packet::FollowerInfo(_) => drop(self.courses.entry(*link).or_default()),
                Packet::ObserverInfo(_) => self.courses.entry(*link).or_default().observer = true,
                Packet::AckEpoch { last, .. } => {
                    let course = self.courses.entry(*link).or_default();
                    (course.last, course.promised) = (*last, true);
                }
                Packet::Ack(zxid) => {
                    let course = self.courses.entry(*link).or_default();
                    course.acknowledged |= course.new_leader;
                    course.acked = course.acked.max(*zxid);
                }
                Packet::Acks(run) => {
                    let course = self.courses.entry(*link).or_default();
                    course.acked = course.acked.max(run.last);
                }
                _ => {}
            },
            Event::Streamed { link, outcome } => {
                let stream = self.streams.remove(link);
                let (Some(stream), Some(course)) = (stream, self.courses.get_mut(link)) else {
                    panic!("nothing is streamed on {link}");
                };
                if outcome.is_ok() {
                    course.streamed(stream);
                }
            }
            Event::Drained(link) => {
                let paces = self.paces.get_mut(link).expect("a pace was asked for");
                *paces = paces.checked_sub(1).expect("a pace was asked for");
            }
            Event::Located { link, .. } => self.locating.retain(|(of, _)| of != link),
            Event::Restored { link, .. } => {
                let (of, label) = self.receiving.take().expect("a snapshot is coming");
                assert_eq!(of, *link);
                self.disk.beside = Some((label, Vec::new()));
            }
            Event::SnapshotTaken(_) => self.taking = None,
            Event::Resolved { link, .. } => {
                self.resolving.remove(link).expect("somebody wants to know");
            }
            Event::Propose(request) => self.requests.push(request.id),
            Event::Touch(_) => self.pinged = false,
            Event::Read(read) => assert!(self.reads.insert(*read), "{read:?} comes once"),
            _ => {}
        }
    }

    /// Looks at what was done about it.
    #[track_caller]
    pub fn after(&mut self, outputs: &[Output], status: &Status, committed: Zxid) {
        self.delivered = committed;
        let late = outputs.iter().skip(1).find(|output| matches!(output, Output::Leadership(_)));
        assert_eq!(late, None, "others may have heard by then");
        // A PROPOSAL may stand before the write of the same transaction.
        for output in outputs {
            self.write(output);
        }
        for output in outputs {
            self.look(output, status);
        }
        if self.halted {
            return;
        }
        assert_eq!(self.ended, None, "a link that has ended is hung up");
        if self.applying.is_empty() {
            assert_eq!(self.serving, status.serving, "what it says of its service");
        }
        if status.state == ServerState::Looking {
            // What was confirmed is answered behind everything delivered before it.
            let due = self.applying.is_empty();
            assert!(!due || self.reads.is_empty(), "{:?} wait for nothing", self.reads);
            assert!(self.courses.values().all(|c| !c.begun), "a learner without a leader");
        }
    }

    #[track_caller]
    fn write(&mut self, output: &Output) {
        match output {
            Output::Persist { ticket, write } => {
                self.disk.write(*ticket, write, self.delivered, &mut self.staged);
                if let Write::Install { .. } = write {
                    // What the start of an epoch stood for goes by another name now.
                    self.delivered = self.delivered.min(self.disk.last());
                }
            }
            Output::Deliver(txn) => {
                assert!(txn.zxid > self.position, "{} behind {}", txn.zxid, self.position);
                assert!(txn.zxid <= self.delivered, "{} is not committed", txn.zxid);
                let before = self.disk.after(self.position).first().map(|txn| txn.zxid);
                assert_eq!(before, Some(txn.zxid), "after {}", self.position);
                self.position = txn.zxid;
                self.applying.push_back(Event::Applied(txn.zxid));
            }
            Output::Adopt { label } => {
                assert!(*label > self.position && *label == self.staged, "{output:?}");
                assert!(*label <= self.delivered, "{output:?} is not committed");
                self.position = *label;
                self.applying.push_back(Event::Applied(*label));
            }
            Output::Replay { after, through } => {
                assert_eq!(*after, self.position);
                assert!(*through > *after && *through <= self.disk.durable.last, "{output:?}");
                self.position = *through;
                let outcome = Ok(());
                self.applying.push_back(Event::Replayed { through: *through, outcome });
            }
            Output::TakeSnapshot(zxid) => {
                // More may have been committed since, in the same step.
                let has = self.position.max(self.staged);
                let next = self.disk.after(has).first().map(|txn| txn.zxid);
                assert!(*zxid >= has && *zxid <= self.delivered.max(self.staged), "{output:?}");
                assert!(next.is_none_or(|next| next > *zxid), "{output:?}, without {next:?}");
                assert_eq!(self.taking.replace(*zxid), None, "one snapshot at a time");
            }
            Output::ReceiveSnapshot { link, label } => {
                assert_eq!(self.receiving.replace((*link, *label)), None, "one at a time");
            }
            Output::Discard => {
                self.receiving = None;
                self.disk.beside = None;
            }
            _ => {}
        }
    }

    #[track_caller]
    fn look(&mut self, output: &Output, status: &Status) {
        match output {
            Output::Dial { plane, peer, addresses } => {
                assert!(!addresses.is_empty(), "{output:?} leads nowhere");
                assert!(self.dialling.insert((*plane, *peer)), "{output:?} is under way");
            }
            Output::CancelDial { plane, peer } => {
                assert!(self.dialling.contains(&(*plane, *peer)), "{output:?}, but it is over");
            }
            Output::Resolve { link, hosts } => {
                assert!(!hosts.is_empty() && self.up.contains_key(link), "{output:?}");
                let before = self.resolving.insert(*link, hosts.clone());
                assert_eq!(before, None, "{output:?} is under way");
            }
            Output::Hangup { link, .. } => {
                let answers = self.ended.take_if(|ended| *ended == *link).is_some();
                assert!(answers || self.up.contains_key(link), "{output:?}, but that is not up");
                self.forget(*link);
            }
            Output::Send { link, message } => {
                assert!(self.up.contains_key(link), "{output:?}, but that is not up");
                let stream = self.streams.get(link);
                assert!(stream.is_none(), "{output:?}, but {stream:?} is on its way");
                if let Message::Packet(packet) = message {
                    self.promised(*link, packet);
                    self.said(*link, packet, status);
                }
            }
            Output::NotifyDrained(link) => {
                assert!(self.up.contains_key(link), "{output:?}, but that is not up");
                let paces = self.paces.entry(*link).or_default();
                *paces += 1;
                assert!(*paces <= 2, "{paces} paces on {link}");
            }
            Output::Locate { link, zxid } => {
                assert!(self.up.contains_key(link), "{output:?}, but that is not up");
                assert!(self.locating.iter().all(|(of, _)| of != link), "once at a time");
                self.locating.push_back((*link, *zxid));
            }
            Output::StreamLog { link, after, through, form } => {
                let (after, through, form) = (*after, *through, *form);
                assert!(after < through, "{output:?} is nothing");
                let durable = self.disk.durable.last;
                assert!(through <= durable && self.disk.holds(through), "{output:?}: {durable}");
                self.stream(*link, Stream::Log { after, through, form });
                self.courses[link].may_stream(after, through, form);
            }
            Output::SendSnapshot { link, label, .. } => {
                let ours = self.delivered.max(self.staged);
                let begun = if status.serving { start(status.current_epoch) } else { ours };
                assert_eq!(*label, ours.max(begun), "the label is the content");
                self.stream(*link, Stream::Snapshot { label: *label });
                let course = self.courses.get_mut(link).expect("it has introduced itself");
                assert!(!course.begun, "{output:?}: {course:?}");
                course.begun = true;
            }
            Output::ReceiveSnapshot { link, .. } => {
                assert!(self.up.contains_key(link), "{output:?}, but that is not up");
            }
            Output::Prepare { epoch, zxid, origin, request } => {
                assert!(status.serving && *epoch == status.current_epoch, "{output:?}");
                let proposed = self.disk.log.last().map_or(Zxid::ZERO, |txn| txn.zxid);
                let before = proposed.max(Zxid::start_of(*epoch)).0;
                let waiting = self.preparing.iter().filter(|(of, ..)| of == epoch).count();
                let waiting = i64::try_from(waiting).expect("few wait");
                assert_eq!(zxid.0, before + waiting + 1, "each becomes one transaction, in order");
                self.preparing.push_back((*epoch, *origin, request.clone()));
            }
            Output::Pinged => self.pinged = true,
            Output::Touched { from, .. } => {
                assert!(self.up.contains_key(from), "{output:?}, but that is not up");
            }
            Output::Revalidate { .. } | Output::Revalidated(_) => {}
            Output::Answer(read) | Output::ReadRefused { read, .. } => {
                assert!(self.reads.remove(read), "{output:?}: nobody waits");
            }
            Output::Accepted(id) | Output::Refused { id, .. } => {
                let at = self.requests.iter().position(|asked| asked == id);
                self.requests.remove(at.expect("somebody asked"));
                if let Output::Accepted(_) = output {
                    self.accepted.push(*id);
                }
            }
            Output::Lost(id) | Output::Unknown { id, .. } => {
                let at = self.accepted.iter().position(|accepted| accepted == id);
                self.accepted.remove(at.expect("it was accepted"));
            }
            Output::Halt(fault) => {
                assert!(!matches!(fault, Fault::Broken(_)), "{fault}");
                self.halted = true;
            }
            Output::Leadership(leadership) => {
                assert_ne!(self.leadership, *leadership, "it is said once");
                self.leadership = *leadership;
            }
            Output::Serving { .. } => {
                assert!(!std::mem::replace(&mut self.serving, true), "it serves already");
            }
            Output::Retired => {
                assert!(std::mem::replace(&mut self.serving, false), "it does not serve");
            }
            Output::Release(release) => {
                assert!(*release > self.release, "{release:?} comes back");
                self.release = *release;
            }
            Output::Persist { .. }
            | Output::Adopt { .. }
            | Output::Deliver(_)
            | Output::Replay { .. }
            | Output::Discard
            | Output::TakeSnapshot(_)
            | Output::Abandon
            | Output::Keep
            | Output::Transferred(_)
            | Output::Report(_) => {}
        }
    }

    #[track_caller]
    fn stream(&mut self, link: LinkId, stream: Stream) {
        assert!(self.up.contains_key(&link), "{stream:?}, but {link} is not up");
        let before = self.streams.insert(link, stream);
        assert_eq!(before, None, "{stream:?} on {link}");
    }

    /// Whatever promises something says what is on the disk.
    #[track_caller]
    fn promised(&mut self, link: LinkId, packet: &Packet) {
        let durable = self.disk.durable;
        match packet {
            Packet::LeaderInfo { epoch, .. } => {
                assert!(durable.accepted >= *epoch, "{packet:?}, but {durable:?}");
            }
            Packet::AckEpoch { current_epoch: Some(current), last } => {
                let promise = self.disk.promise;
                assert_eq!(durable.accepted, promise.accepted, "{packet:?} is no promise yet");
                // A server that may have lost its history does not tell where it ends.
                let told = if *last == Zxid::UNKNOWN { promise.last } else { *last };
                assert_eq!((promise.current, promise.last), (*current, told), "{packet:?}");
            }
            Packet::Ack(zxid) => self.acknowledged(link, *zxid, *zxid),
            Packet::Acks(run) => self.acknowledged(link, run.first, run.last),
            _ => {}
        }
    }

    #[track_caller]
    fn acknowledged(&mut self, link: LinkId, first: Zxid, last: Zxid) {
        let durable = self.disk.durable;
        if last.is_epoch_start() {
            assert_eq!(durable.current, last.epoch(), "NEWLEADER is acknowledged: {durable:?}");
            self.acknowledged.insert(link);
            return;
        }
        assert!(first <= last && first.epoch() == last.epoch(), "{first}..{last}");
        assert!(durable.last >= last && self.disk.holds(last), "{last} is not on {durable:?}");
        if let Some(before) = self.acked.insert(link, last) {
            assert!(first.follows(before), "{first} is acknowledged after {before}");
        }
    }

    /// What a leader says to a learner.
    #[track_caller]
    fn said(&mut self, link: LinkId, packet: &Packet, status: &Status) {
        let (disk, delivered) = (&self.disk, self.delivered);
        let Some(course) = self.courses.get_mut(&link) else { return };
        // Before a quorum has acknowledged it, a leader's whole history counts as committed.
        let processed = if status.serving { status.processed } else { disk.last() };
        match packet {
            Packet::Diff(label) => {
                assert!(!course.begun, "{packet:?}: {course:?}");
                // Who stands at the bare start of an epoch has what counts as committed, and no more.
                let bare = *label == course.last && label.is_epoch_start() && !status.serving;
                assert!(*label <= processed || bare, "{packet:?}, but {processed}");
                (course.begun, course.sent) = (true, course.last.max(Zxid::ZERO));
                course.told = course.sent.min(processed);
            }
            Packet::Trunc(to) => {
                assert!(!course.begun && course.last > *to, "{packet:?}: {course:?}");
                (course.begun, course.trunc) = (true, true);
                (course.sent, course.told) = (*to, (*to).min(processed));
                assert!(disk.holds(*to), "{packet:?} to what we do not have");
            }
            Packet::Proposal(txn) => course.proposed(disk, std::slice::from_ref(txn)),
            Packet::Proposals(txns) => course.proposed(disk, txns),
            Packet::Commit(zxid) | Packet::CommitAndActivate { zxid, .. } => {
                course.committed(disk, *zxid, processed);
            }
            Packet::Commits(run) => {
                for zxid in run.zxids() {
                    course.committed(disk, zxid, processed);
                }
            }
            Packet::Inform(txn) | Packet::InformAndActivate { txn, .. } => {
                assert!(course.observer && course.new_leader, "{packet:?}: {course:?}");
                assert!(txn.zxid <= delivered, "{packet:?}, but {delivered}");
                course.next(disk, course.sent, txn);
                course.next(disk, course.told, txn);
                (course.sent, course.told) = (txn.zxid, txn.zxid);
            }
            Packet::NewLeader { zxid, .. } => {
                assert!(course.begun && !course.new_leader, "{packet:?}: {course:?}");
                course.new_leader = true;
                assert_eq!(zxid.epoch(), disk.current, "{packet:?}");
                let due = disk.log.iter().rev().find(|txn| txn.zxid <= processed);
                let due = due.map_or(disk.base.min(processed), |txn| txn.zxid);
                assert!(course.sent >= due, "{packet:?} before {due}: {course:?}");
                assert!(course.trunc || course.told >= due, "{packet:?}: {due}, {course:?}");
            }
            Packet::UpToDate => {
                assert!(course.new_leader && !course.up_to_date, "{packet:?}: {course:?}");
                course.up_to_date = true;
            }
            _ => {}
        }
    }

    fn forget(&mut self, link: LinkId) {
        self.up.remove(&link);
        self.resolving.remove(&link);
        self.streams.remove(&link);
        self.courses.remove(&link);
        self.paces.remove(&link);
        self.acknowledged.remove(&link);
        self.acked.remove(&link);
        self.locating.retain(|(of, _)| *of != link);
    }
}

impl Course {
    /// What comes next after `after` is this.
    #[track_caller]
    fn next(&self, disk: &Disk, after: Zxid, txn: &Txn) {
        assert!(self.begun && txn.zxid > after, "{} after {after}: {self:?}", txn.zxid);
        if after >= disk.base {
            assert_eq!(disk.after(after).first(), Some(txn), "after {after}: {self:?}");
        }
    }

    #[track_caller]
    fn proposed(&mut self, disk: &Disk, txns: &[Txn]) {
        assert!(!self.observer || !self.new_leader, "a live observer gets INFORM: {self:?}");
        assert!(!txns.is_empty());
        for txn in txns {
            self.next(disk, self.sent, txn);
            self.sent = txn.zxid;
        }
    }

    #[track_caller]
    fn committed(&mut self, disk: &Disk, zxid: Zxid, processed: Zxid) {
        assert!(zxid > self.told && zxid <= self.sent, "COMMIT {zxid}: {self:?}");
        assert!(zxid <= processed, "COMMIT {zxid}, but {processed}");
        assert!(self.new_leader || !self.trunc, "COMMIT {zxid} after a TRUNC: {self:?}");
        if self.told >= disk.base {
            let next = disk.after(self.told).first().map(|txn| txn.zxid);
            assert_eq!(next, Some(zxid), "COMMIT after {}", self.told);
        }
        self.told = zxid;
    }

    #[track_caller]
    fn may_stream(&self, after: Zxid, through: Zxid, form: Form) {
        let live = self.observer && self.new_leader;
        let (fits, informs) = match form {
            Form::Proposals => (after == self.sent, false),
            Form::Committed => (after == self.sent && after == self.told, false),
            Form::Commits => (after == self.told && through <= self.sent, live),
            Form::Informs => (after == self.sent && after == self.told, true),
        };
        assert!(self.begun && fits && informs == live, "{after} to {through}, {form:?}: {self:?}");
        let commits = matches!(form, Form::Committed | Form::Commits);
        assert!(!commits || self.new_leader || !self.trunc, "{form:?} after a TRUNC: {self:?}");
    }

    fn streamed(&mut self, stream: Stream) {
        match stream {
            Stream::Snapshot { label } => (self.sent, self.told) = (label, label),
            Stream::Log { through, form: Form::Proposals, .. } => self.sent = through,
            Stream::Log { through, form: Form::Commits, .. } => self.told = through,
            Stream::Log { through, form: Form::Committed | Form::Informs, .. } => {
                (self.sent, self.told) = (through, through);
            }
        }
    }
}

const fn start(epoch: Epoch) -> Zxid {
    Zxid::start_of(epoch)
}

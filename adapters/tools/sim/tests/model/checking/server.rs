//! One server: the shipped [`Peer`], its disk, and what its driver and its application do at once.
//!
//! ```text
//!   Happening ─► Peer ─► outputs ─┬─► writes, under way to the disk
//!                 ▲               ├─► Effects: what concerns the others
//!                 └── Prepared, Located, Streamed, Restored: answered at once
//! ```
//!
//! What a server promises is compared with its own disk here, at the moment at which it leaves.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::members::{Members, is_majority, voters};
use super::rules::Rule;
use super::state::link_peer;
use super::store::{Op, Store};
use super::tables::Table;
use super::{Electing, NEXT};
use quorate_core::config::{Config, Election, Generations, Timing};
use quorate_core::generation_message::{Body, GrantedVote};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::{Message, Packet, Request};
use quorate_core::output::{Form, Output, Write};
use quorate_core::peer::Peer;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::report::{Change, Reason};
use quorate_core::time::Instant;
use quorate_core::timers::Timer;
use quorate_core::txn::{Draft, RequestId, Txn, TxnHeader};
use quorate_core::vote::{ServerState, Vote};
use quorate_core::zxid::{Epoch, Zxid};

/// The time of everything: the clock stands, see [`Peer::fire`]. Starts happen at the origin, and nothing has lasted for
/// long since.
const NOW: Instant = Instant(1_000_000);

/// Every timer that may be set, in the order of its bit in [`Brief::due`].
pub const TIMERS: [Timer; 13] = [
    Timer::Start,
    Timer::Backoff,
    Timer::Notification,
    Timer::Finalize,
    Timer::Redial,
    Timer::Introduction,
    Timer::Connect,
    Timer::ConnectLimit,
    Timer::Silence,
    Timer::Init,
    Timer::Ping,
    Timer::Candidacy,
    Timer::Heartbeat,
];

/// What goes over a link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GenerationMessage {
    /// The other end has closed it.
    End,
    /// A message.
    Message(Message),
    /// The snapshot that SNAP announced: its label, and every transaction in it.
    Snapshot(Zxid, Vec<Txn>),
}

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happening {
    /// A message comes, by its number.
    Comes(LinkId, u32),
    /// A connection is open.
    Up(LinkId, Plane, bool, u8),
    /// Our dial came to nothing.
    DialFailed(Plane, u8),
    /// The next write is durable.
    Persisted,
    /// A deadline passes.
    Due(Timer),
    /// It ends; of its writes under way so many are durable.
    Crash(u8),
    /// It starts.
    Start,
    /// A client asks for a transaction with this payload.
    Ask(u8),
    /// An operator asks for these members; the number of the request.
    Change(u8, Members),
    /// The snapshot that it sends is out.
    Streamed,
}

/// What a server does that concerns others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It dials.
    Dial(Plane, u8),
    /// It sends a message, by its number.
    Send(LinkId, u32),
    /// It closes a link.
    Hangup(LinkId),
    /// It was elected in this round or generation, by these servers' votes.
    Elected(i64, Vote, Vec<ServerId>),
    /// It takes over its own history in this epoch, which a quorum has promised.
    Begins(Epoch),
    /// This epoch has become the current one on its disk.
    Enters(Epoch),
    /// It is established in this epoch.
    Established(Epoch),
    /// It acknowledges the history of the leader of this epoch.
    Acknowledges(LinkId, Epoch),
    /// It applies everything through this; whether it led when it heard what has come of it.
    Deliver(Zxid, bool),
    /// A membership that this transaction brought has been put in force on its disk.
    Puts(Zxid),
    /// What must not be.
    Broken(Rule),
}

/// What is often asked of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Brief {
    /// Whether it runs.
    pub up: bool,
    /// What it is doing.
    pub state: ServerState,
    /// Its round.
    pub round: i64,
    /// Its vote.
    pub vote: Vote,
    /// The epoch in which it leads an established ensemble.
    pub leadership: Option<Epoch>,
    /// Whether it serves.
    pub serves: bool,
    /// Whether it leads such an ensemble, and too few follow.
    pub deserted: bool,
    /// Which of [`TIMERS`] are set.
    pub due: u16,
    /// How many writes are under way.
    pub writes: u8,
    /// Who votes in the membership in force and in the one seen, the same if there is none; bits.
    pub binding: [u8; 2],
    /// The version of the membership in force.
    pub in_force: i64,
    /// Whether a change is seen and not in force.
    pub changing: bool,
    /// Whether it sends a snapshot.
    pub streaming: bool,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Whom it takes itself for; from 0.
    pub id: u8,
    first: Members,
    electing: Electing,
    slow: bool,
    /// What runs.
    pub peer: Option<Peer>,
    /// What is durable.
    pub store: Store,
    pending: Vec<Op>,
    delivered: Zxid,
    receiving: Option<(LinkId, Zxid)>,
    streaming: Option<LinkId>,
    /// What is often asked.
    pub brief: Brief,
}

/// The name of a server.
pub fn name(id: u8) -> ServerId {
    ServerId(i64::from(id) + 1)
}

/// The number of a server.
pub fn number(id: ServerId) -> u8 {
    u8::try_from(id.0 - 1).unwrap_or(u8::MAX)
}

/// What a learner gets of a transaction in the log.
fn packets(txn: &Txn, form: Form) -> Vec<Packet> {
    match form {
        Form::Proposals => vec![Packet::Proposal(txn.clone())],
        Form::Committed => vec![Packet::Proposal(txn.clone()), Packet::Commit(txn.zxid)],
        Form::Commits => vec![Packet::Commit(txn.zxid)],
        Form::Informs => vec![Packet::Inform(txn.clone())],
    }
}

impl Server {
    /// A server that has not started, with this on its disk; `first` is what it was configured with. Where streams
    /// are `slow`, a snapshot takes its time.
    pub fn new(id: u8, first: Members, electing: Electing, slow: bool, store: Store) -> Self {
        let brief = Brief {
            up: false,
            state: ServerState::Looking,
            round: 0,
            vote: Vote::ABSTENTION,
            leadership: None,
            serves: false,
            deserted: false,
            due: 0,
            writes: 0,
            binding: [first.voters; 2],
            in_force: 0,
            changing: false,
            streaming: false,
        };
        let (peer, pending, delivered) = (None, Vec::new(), Zxid::ZERO);
        let (receiving, streaming) = (None, None);
        Self {
            id,
            first,
            electing,
            slow,
            peer,
            store,
            pending,
            delivered,
            receiving,
            streaming,
            brief,
        }
    }

    /// What the disk will hold when everything under way is durable.
    pub fn latest(&self) -> Store {
        let mut store = self.store.clone();
        self.pending.iter().for_each(|op| store.apply(op));
        store
    }

    /// Every duration that doubles stays as it is, so that there is an end to states.
    fn config(&self) -> Config {
        let mut config = Config::new(name(self.id), self.first.membership(0));
        if let Some(membership) = &self.store.membership {
            config.membership = membership.clone();
        }
        config.next_membership.clone_from(&self.store.next);
        config.reconfig_enabled = true;
        let timing = &mut config.timing;
        timing.notification_max = timing.notification_min;
        timing.redial_max = timing.redial_min;
        timing.connect_retry_max = timing.connect_retry_min;
        config.timing = Timing { ..timing.clone() };
        if let Electing::Generation { pre_vote } = self.electing {
            let rules = Generations::default();
            let timeout_max = rules.timeout_min;
            config.election = Election::Generation(Generations { timeout_max, pre_vote, ..rules });
        }
        config
    }

    /// What becomes of it, and what it does. None if it cannot happen now.
    pub fn after(
        &self,
        what: Happening,
        messages: &Table<GenerationMessage>,
    ) -> (Self, Vec<Effect>) {
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            let mut next = self.clone();
            let effects = next.happen(what, messages);
            next.brief = next.summary();
            (next, effects)
        }));
        let (next, mut effects) =
            stepped.unwrap_or_else(|_| (self.clone(), vec![Effect::Broken(Rule::Panicked)]));
        if let (Some(epoch), true) =
            (next.brief.leadership, next.brief.leadership != self.brief.leadership)
        {
            effects.insert(0, Effect::Established(epoch));
        }
        if !next.is_bound() {
            effects.push(Effect::Broken(Rule::Membership));
        }
        (next, effects)
    }

    /// Whether every change of the membership in its history binds it: on its disk, as that will be, and by what it
    /// goes itself.
    fn is_bound(&self) -> bool {
        let latest = self.latest();
        let config = self.peer.as_ref().map(Peer::config);
        let goes_by = |config: &Config| {
            latest.is_bound_by(Some(&config.membership), config.next_membership.as_ref())
        };
        self.store.is_bound() && latest.is_bound() && config.is_none_or(goes_by)
    }

    fn happen(&mut self, what: Happening, messages: &Table<GenerationMessage>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let event = match what {
            Happening::Crash(survivors) => {
                let survivors: Vec<_> = self.pending.drain(..usize::from(survivors)).collect();
                survivors.iter().for_each(|op| self.keep(op, &mut effects));
                let mut store = self.store.clone();
                store.close();
                *self = Self::new(self.id, self.first, self.electing, self.slow, store);
                return effects;
            }
            Happening::Start => {
                let peer = Peer::new(self.config(), self.store.durable());
                self.peer = Some(peer.expect("a good configuration"));
                return effects;
            }
            Happening::Due(timer) => {
                let outputs = self.peer.as_mut().and_then(|peer| peer.fire(timer));
                self.carry_out(outputs.unwrap_or_default(), messages, &mut effects);
                return effects;
            }
            Happening::Persisted => {
                let op = self.pending.remove(0);
                self.keep(&op, &mut effects);
                let Op::Write(ticket, write) = op else { return effects };
                if let Write::CurrentEpoch(epoch) = write {
                    effects.push(Effect::Enters(epoch));
                }
                Event::Persisted(ticket)
            }
            Happening::Comes(link, message) => match messages.get(message) {
                GenerationMessage::End => Event::LinkDown { link, cause: Cause::Closed },
                GenerationMessage::Message(message) => {
                    Event::Received { link, message: message.clone() }
                }
                GenerationMessage::Snapshot(label, history) => {
                    if self.receiving.take() != Some((link, *label)) {
                        return effects;
                    }
                    self.pending.push(Op::Stage(*label, history.clone()));
                    Event::restored(link)
                }
            },
            Happening::Up(link, plane, dialled, peer) => {
                let known = dialled || plane == Plane::Election;
                let peer = known.then_some(name(peer));
                Event::LinkUp(LinkUp { link, plane, dialled, peer, advertised: None, remote: None })
            }
            Happening::DialFailed(plane, peer) => Event::DialFailed { plane, peer: name(peer) },
            Happening::Ask(payload) => Event::Propose(Request {
                id: RequestId { client: 0, cxid: i32::from(payload) },
                op: 5,
                body: bytes::Bytes::new(),
                identities: None,
            }),
            Happening::Change(number, members) => Event::Propose(Request {
                id: RequestId { client: 0, cxid: i32::from(NEXT + number) },
                op: Request::RECONFIGURE,
                body: Reconfiguration::whole(members.membership(0)).encode(),
                identities: None,
            }),
            Happening::Streamed => {
                let Some(link) = self.streaming.take() else { return effects };
                Event::Streamed { link, outcome: Ok(()) }
            }
        };
        self.step(event, messages, &mut effects);
        effects
    }

    /// Something is durable. The vote in a generation stays what it is, and no earlier one follows.
    fn keep(&mut self, op: &Op, effects: &mut Vec<Effect>) {
        let before = self.store.granted_vote;
        let in_force = self.store.in_force();
        self.store.apply(op);
        if self.store.in_force() > in_force {
            effects.push(Effect::Puts(Zxid(self.store.in_force())));
        }
        let now = self.store.granted_vote;
        if now != before && now.generation <= before.generation {
            effects.push(Effect::Broken(Rule::GrantedVote));
        }
    }

    fn step(
        &mut self,
        event: Event,
        messages: &Table<GenerationMessage>,
        effects: &mut Vec<Effect>,
    ) {
        let mut events = VecDeque::from([event]);
        while let (Some(event), Some(peer)) = (events.pop_front(), &mut self.peer) {
            let outputs = peer.step(Input { at: NOW, event });
            events.extend(self.carry_out(outputs, messages, effects));
        }
    }

    /// Does what the core wants; what is answered at once is answered before anything else happens.
    fn carry_out(
        &mut self,
        outputs: Vec<Output>,
        messages: &Table<GenerationMessage>,
        effects: &mut Vec<Effect>,
    ) -> Vec<Event> {
        if let Some(peer) = &mut self.peer {
            peer.rewind();
        }
        let mut events = Vec::new();
        for output in outputs {
            match output {
                Output::Dial { plane, peer, .. } => effects.push(Effect::Dial(plane, number(peer))),
                // Here a dial ends whenever that is tried.
                Output::CancelDial { .. } => {}
                // Whoever waits for the place of another waits for its end, which always comes here.
                Output::Resolve { .. } => {}
                Output::Hangup { link, .. } => effects.push(Effect::Hangup(link)),
                // They count for transfers only, and nobody asks for one here.
                Output::Send {
                    message: Message::Probe(_) | Message::Packet(Packet::MayLead(_)),
                    ..
                } => {}
                Output::Send { link, message } => {
                    self.judge(link, &message, effects);
                    let message = messages.number(GenerationMessage::Message(message));
                    effects.push(Effect::Send(link, message));
                }
                Output::Persist { ticket, write } => self.pending.push(Op::Write(ticket, write)),
                Output::NotifyDrained(link) => events.push(Event::Drained(link)),
                Output::Locate { link, zxid } => {
                    events.push(Event::Located { link, located: self.latest().locate(zxid) });
                }
                Output::Prepare { epoch, request, .. } => {
                    let RequestId { client, cxid } = request.id;
                    let changes = request.op == Request::RECONFIGURE;
                    let kind = if changes { Txn::RECONFIGURATION } else { 5 };
                    let header = TxnHeader { client, cxid, time: 0, kind };
                    let drafts = vec![Draft { header, body: request.body }];
                    events.push(Event::Prepared { epoch, drafts });
                }
                Output::Deliver(Txn { zxid, .. }) | Output::Adopt { label: zxid } => {
                    self.delivered = self.delivered.max(zxid);
                    effects.push(Effect::Deliver(zxid, self.brief.leadership.is_some()));
                    events.push(Event::Applied(zxid));
                }
                Output::Replay { through, .. } => {
                    self.delivered = self.delivered.max(through);
                    effects.push(Effect::Deliver(through, self.brief.leadership.is_some()));
                    events.push(Event::Replayed { through, outcome: Ok(()) });
                }
                Output::TakeSnapshot(zxid) => events.push(Event::SnapshotTaken(zxid)),
                Output::SendSnapshot { link, label, memberships, .. } => {
                    let snap = Packet::Snap { label, memberships };
                    let snap = GenerationMessage::Message(Message::Packet(snap));
                    effects.push(Effect::Send(link, messages.number(snap)));
                    let latest = self.latest();
                    let content = latest.through(self.delivered.max(latest.label)).to_vec();
                    let snapshot = GenerationMessage::Snapshot(label, content);
                    effects.push(Effect::Send(link, messages.number(snapshot)));
                    if !self.slow || self.streaming.is_some() {
                        events.push(Event::Streamed { link, outcome: Ok(()) });
                    } else {
                        self.streaming = Some(link);
                    }
                }
                Output::ReceiveSnapshot { link, label } => self.receiving = Some((link, label)),
                Output::Discard => self.receiving = None,
                Output::Abandon => {}
                Output::Release(release) => events.push(Event::Released(release)),
                Output::StreamLog { link, after, through, form } => {
                    if self.store.last() < through {
                        effects.push(Effect::Broken(Rule::Promise));
                    }
                    let behind = self.store.through(after).len();
                    for txn in &self.store.through(through)[behind..] {
                        for packet in packets(txn, form) {
                            let message = GenerationMessage::Message(Message::Packet(packet));
                            effects.push(Effect::Send(link, messages.number(message)));
                        }
                    }
                    events.push(Event::Streamed { link, outcome: Ok(()) });
                }
                Output::Report(report) => {
                    if let Change::State { to: ServerState::Leading, .. } = report.change {
                        if let Reason::Quorum { members, .. } | Reason::Settled { members, .. } =
                            report.reason
                        {
                            let standing = self.peer.as_ref().map(Peer::standing);
                            effects.extend(
                                standing.map(|s| Effect::Elected(s.round.0, s.vote, members)),
                            );
                        }
                    }
                }
                Output::Halt(_) => effects.push(Effect::Broken(Rule::Halted)),
                Output::Answer(_)
                | Output::Accepted(_)
                | Output::Lost(_)
                | Output::Unknown { .. }
                | Output::Refused { .. }
                | Output::ReadRefused { .. }
                | Output::Keep
                | Output::Leadership(_)
                | Output::Serving { .. }
                | Output::Retired
                // The servers here keep no sessions.
                | Output::Pinged
                | Output::Touched { .. }
                | Output::Revalidate { .. }
                | Output::Revalidated(_)
                | Output::Transferred(_) => {}
            }
        }
        events
    }

    /// Compares what it says with what is on its disk.
    fn judge(&self, link: LinkId, message: &Message, effects: &mut Vec<Effect>) {
        let disk = &self.store;
        let holds = |zxid: Zxid| disk.through(zxid).last().is_some_and(|txn| txn.zxid == zxid);
        let voted = |generation, vote| disk.granted_vote == GrantedVote { generation, vote };
        let kept = match message {
            Message::Notification(notification) => {
                let standing = &notification.standing;
                let own = standing.vote.leader == name(self.id);
                let looks = standing.state == ServerState::Looking;
                !own || !looks
                    || (standing.vote.peer_epoch, standing.vote.zxid) == (disk.current, disk.last())
            }
            Message::Packet(Packet::LeaderInfo { epoch, .. }) => disk.accepted >= *epoch,
            Message::Packet(Packet::AckEpoch { last, current_epoch: Some(current) }) => {
                let promised = self.peer.as_ref().map(|peer| peer.status().accepted_epoch);
                (*current, *last) == (disk.current, disk.last()) && Some(disk.accepted) == promised
            }
            Message::Packet(Packet::NewLeader { zxid, .. }) => {
                effects.push(Effect::Begins(zxid.epoch()));
                disk.accepted >= zxid.epoch()
            }
            Message::Packet(Packet::Ack(zxid)) if zxid.is_epoch_start() => {
                effects.push(Effect::Acknowledges(link, zxid.epoch()));
                disk.current >= zxid.epoch()
            }
            Message::Packet(Packet::Ack(zxid)) => holds(*zxid),
            Message::Packet(Packet::Acks(run)) => run.zxids().all(holds),
            Message::Generation(message) => match message.body {
                Body::VoteRequest(attempt) => {
                    attempt.pre || voted(attempt.generation, name(self.id))
                }
                Body::VoteResponse { attempt, granted } => {
                    let to = name(link_peer(link));
                    !granted || attempt.pre || voted(attempt.generation, to)
                }
                Body::Heartbeat { .. } => true,
            },
            Message::Packet(_) | Message::Probe(_) => true,
        };
        if !kept {
            effects.push(Effect::Broken(Rule::Promise));
        }
    }

    fn summary(&self) -> Brief {
        let new = Self::new(self.id, self.first, self.electing, self.slow, Store::default()).brief;
        let Some(peer) = &self.peer else { return new };
        let (standing, status) = (peer.standing(), peer.status());
        let leads = status.serving && status.state == ServerState::Leading;
        let leadership = leads.then_some(status.current_epoch);
        let config = peer.config();
        let next = config.next_membership.as_ref();
        let binding = [voters(&config.membership), voters(config.last_seen())];
        let synced = status.learners.iter().filter(|member| member.synced).map(|member| member.id);
        let synced = synced.fold(1 << self.id, |all: u8, id| all | 1u8 << number(id));
        let due = TIMERS.iter().enumerate().filter(|(_, timer)| peer.due(**timer).is_some());
        Brief {
            up: true,
            state: status.state,
            round: standing.round.0,
            vote: standing.vote,
            leadership,
            serves: status.serving,
            deserted: leadership.is_some() && !is_majority(synced, binding),
            due: due.fold(0, |due, (bit, _)| due | 1 << bit),
            writes: u8::try_from(self.pending.len()).unwrap_or(u8::MAX),
            binding,
            in_force: config.membership.version(),
            changing: next.is_some_and(Membership::is_change),
            streaming: self.streaming.is_some(),
        }
    }
}

//! An ensemble as a model: servers, what is under way between them, and what may happen next.
//!
//! ```text
//!   State   servers (by number) · links, each way in order · dials · who led · what is committed
//!   Action  deliver · lose, repeat, overtake (votes) · write · deadline · dial · crash, start, break, ask,
//!           change, stream
//! ```
//!
//! A link of the election plane carries one notification on the wire and one in the mailbox, where the newest
//! takes the place of the one before; of the messages of elections by generation, one of each kind. A link of the quorum plane carries packets in order. What an end that
//! is gone has sent may still come, or the rest of it be lost.

use quorate_core::generation_message::Body;
use quorate_core::id::LinkId;
use quorate_core::input::Plane;
use quorate_core::message::Message;
use quorate_core::timers::Timer;
use quorate_core::txn::Txn;
use stateright::{Model, Property};

use super::Scope;
use super::members::{is_majority, voters};
use super::rules::Rule;
use super::server::{Effect, GenerationMessage, Happening, Server, TIMERS};
use super::state::{Action, EPOCHS, Key, Link, MOST, NONE, Spent, State, link_id};
use super::store::{Store, change};
use super::tables::{Memory, Table};

/// What becomes of a server, by number, and what it does that concerns others.
#[derive(Clone, Copy, Debug)]
struct Step {
    server: u32,
    effects: u32,
}

/// The model of an ensemble.
#[derive(Debug)]
pub struct Ensemble {
    pub(super) scope: Scope,
    servers: Table<Server>,
    messages: Table<GenerationMessage>,
    queues: Table<Vec<u32>>,
    pub(super) histories: Table<Vec<Txn>>,
    effects: Table<Vec<Effect>>,
    steps: Memory<(u32, Happening), Step>,
    /// Who votes when a history is committed.
    pub(super) electorates: Memory<u32, u8>,
}

impl Ensemble {
    /// A model with these bounds.
    pub fn new(scope: Scope) -> Self {
        let model = Self {
            scope,
            servers: Table::new(),
            messages: Table::new(),
            queues: Table::new(),
            histories: Table::new(),
            effects: Table::new(),
            steps: Memory::new(),
            electorates: Memory::new(),
        };
        assert_eq!(model.messages.number(GenerationMessage::End), NONE);
        assert_eq!(model.queues.number(Vec::new()), NONE);
        assert_eq!(model.histories.number(Vec::new()), NONE);
        model
    }

    /// How many states single servers were found in.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// What a function makes of one server.
    pub fn server<R>(&self, state: &State, id: usize, f: impl FnOnce(&Server) -> R) -> R {
        f(self.servers.get(state.servers[id]))
    }

    /// Whether a message like this is under way.
    pub fn is_under_way(&self, state: &State, like: impl Fn(&GenerationMessage) -> bool) -> bool {
        let queues = state.links.iter().flat_map(|link| link.inbound).filter(|q| *q != NONE);
        queues.into_iter().any(|queue| {
            let messages = self.queues.get(queue);
            messages.iter().any(|message| like(self.messages.get(*message)))
        })
    }

    fn is_up(&self, state: &State, id: u8) -> bool {
        self.servers.get(state.servers[usize::from(id)]).brief.up
    }

    // ---- what may happen ----

    fn dial_bit(from: u8, plane: Plane, to: u8) -> u64 {
        let plane = u64::from(plane == Plane::Quorum);
        1 << (u64::from(to) + 5 * (u64::from(from) + 5 * plane))
    }

    fn offer_deliveries(&self, state: &State, actions: &mut Vec<Action>) {
        let scope = &self.scope;
        for link in &state.links {
            let key = link.key;
            for end in [0, 1] {
                let queue = link.inbound[usize::from(end)];
                if queue == NONE {
                    continue;
                }
                actions.push(Action::Deliver(key, end));
                let queue = self.queues.get(queue);
                let ends = queue.len() > 1 && queue.last() == Some(&NONE);
                let may = scope.mischief.is_none_or(|most| state.spent.mischief < most);
                let vote = may && key.plane == Plane::Election && queue[0] != NONE;
                let second = queue.get(1).is_some_and(|message| *message != NONE);
                if vote && scope.lossy {
                    actions.push(Action::Lose(key, end));
                }
                if vote && scope.repeating {
                    actions.push(Action::Repeat(key, end));
                }
                if vote && scope.reordering && second {
                    actions.push(Action::Overtake(key, end));
                }
                if ends {
                    actions.push(Action::Cut(key, end));
                }
            }
            let may_break = !scope.prompt || key.plane == Plane::Quorum;
            if link.up == [true, true] && may_break && state.spent.breaks < scope.breaks {
                actions.push(Action::Break(key));
            }
        }
    }

    fn offer_steps(&self, state: &State, id: u8, actions: &mut Vec<Action>) {
        let (scope, spent) = (&self.scope, &state.spent);
        let brief = self.server(state, usize::from(id), |server| server.brief);
        if !brief.up {
            actions.push(Action::Start(id));
            return;
        }
        if brief.writes > 0 {
            actions.push(Action::Write(id));
        }
        for (bit, timer) in TIMERS.iter().enumerate().filter(|(bit, _)| brief.due >> bit & 1 == 1) {
            let may = match timer {
                Timer::Ping => brief.deserted,
                Timer::Connect => scope.recovery,
                // Whoever was elected by the votes of one that has ended since waits for nobody.
                Timer::Init if !scope.recovery => scope.crashes > 0,
                Timer::ConnectLimit | Timer::Silence | Timer::Init | Timer::Introduction => {
                    scope.recovery && spent.timeouts < scope.timeouts
                }
                Timer::Candidacy => spent.candidacies < scope.candidacies,
                Timer::Start
                | Timer::Backoff
                | Timer::Listening
                | Timer::Notification
                | Timer::Finalize
                | Timer::Redial
                | Timer::Claim
                | Timer::Transfer
                | Timer::Heartbeat
                | Timer::Lease => true,
            };
            if may {
                actions.push(Action::Due(id, TIMERS[bit]));
            }
        }
        for plane in [Plane::Election, Plane::Quorum] {
            for peer in (0..5).filter(|peer| state.dials & Self::dial_bit(id, plane, *peer) != 0) {
                actions.push(Action::Dial(id, plane, peer));
                if spent.breaks < scope.breaks && self.is_up(state, peer) {
                    actions.push(Action::Miss(id, plane, peer));
                }
            }
        }
        if spent.crashes < scope.crashes {
            actions.extend((0..=brief.writes).map(|survivors| Action::Crash(id, survivors)));
        }
        if brief.leadership.is_some() && spent.transactions < scope.transactions {
            actions.push(Action::Ask(id));
        }
        let asked = usize::from(spent.changes);
        if brief.leadership.is_some() && !brief.changing && asked < scope.changes.len() {
            actions.push(Action::Change(id));
        }
        if brief.streaming {
            actions.push(Action::Stream(id));
        }
    }

    // ---- what comes of it ----

    /// Something happens to a server, and what it does about it happens to the others.
    fn happen(&self, state: &mut State, id: u8, what: Happening) {
        let at = usize::from(id);
        let question = (state.servers[at], what);
        let step = self.steps.recall(question, |(server, what)| {
            let (next, effects) = self.servers.get(*server).after(*what, &self.messages);
            Step { server: self.servers.number(next), effects: self.effects.number(effects) }
        });
        state.servers[at] = step.server;
        for effect in self.effects.get(step.effects) {
            match effect {
                Effect::Dial(Plane::Quorum, _) if !self.scope.recovery => {}
                Effect::Dial(plane, peer) => state.dials |= Self::dial_bit(id, *plane, *peer),
                Effect::Send(link, message) => self.send(state, at, *link, *message),
                Effect::Hangup(link) => self.close(state, at, *link),
                Effect::Elected(..)
                | Effect::Begins(_)
                | Effect::Enters(_)
                | Effect::Established(_)
                | Effect::Acknowledges(..)
                | Effect::Deliver(..)
                | Effect::Puts(_)
                | Effect::Broken(_) => {}
            }
            if state.broken.is_none() {
                state.broken = self.judge(state, at, effect);
            }
        }
    }

    fn send(&self, state: &mut State, from: usize, link: LinkId, message: u32) {
        let found = state.links.iter_mut().find_map(|l| Some((l.end(from, link)?, l)));
        let Some((end, link)) = found.filter(|(end, link)| link.up[1 - end]) else { return };
        let wire = (link.key.plane == Plane::Election).then_some(self.scope.wire);
        let inbound = &mut link.inbound[1 - end];
        let mut queue = self.queues.get(*inbound).to_vec();
        if queue.last() == Some(&NONE) {
            return;
        }
        let kind = self.kind(message);
        let waiting = wire.and_then(|wire| {
            (wire.saturating_sub(1)..queue.len())
                .find(|at| kind.is_some() && self.kind(queue[*at]) == kind)
        });
        if let Some(at) = waiting {
            queue[at] = message;
            queue.dedup();
        } else if queue.last() != Some(&message) || wire.is_none() {
            queue.push(message);
        }
        *inbound = self.queues.number(queue);
    }

    /// What a mailbox holds one of: a notification, or a message of each kind.
    fn kind(&self, message: u32) -> Option<usize> {
        match self.messages.get(message) {
            GenerationMessage::Message(Message::Notification(_)) => Some(Body::KINDS),
            GenerationMessage::Message(Message::Generation(message)) => Some(message.body.kind()),
            GenerationMessage::Message(Message::Packet(_) | Message::Probe(_))
            | GenerationMessage::Snapshot(..)
            | GenerationMessage::End => None,
        }
    }

    /// One end of a link is closed: it hears no more, and what it has sent still comes.
    fn close(&self, state: &mut State, at: usize, link: LinkId) {
        let found = state.links.iter().position(|l| l.end(at, link).is_some());
        let Some(found) = found else { return };
        let link = &mut state.links[found];
        let end = usize::from(usize::from(link.key.servers[1]) == at);
        self.close_end(link, end);
        if link.up == [false, false] {
            state.links.remove(found);
        }
    }

    fn close_end(&self, link: &mut Link, end: usize) {
        link.up[end] = false;
        link.inbound[end] = NONE;
        if link.up[1 - end] {
            self.end_inbound(link, 1 - end);
        }
    }

    fn end_inbound(&self, link: &mut Link, end: usize) {
        let mut queue = self.queues.get(link.inbound[end]).to_vec();
        if queue.last() != Some(&NONE) {
            queue.push(NONE);
            link.inbound[end] = self.queues.number(queue);
        }
    }

    /// Takes a message off a queue, the first or the second, and transfers it.
    fn deliver(&self, state: &mut State, key: Key, end: u8, at: usize, keep: bool) {
        let end = usize::from(end);
        let Some(found) = state.links.iter().position(|link| link.key == key) else { return };
        let mut queue = self.queues.get(state.links[found].inbound[end]).to_vec();
        let message = if keep { queue[at] } else { queue.remove(at) };
        state.links[found].inbound[end] = self.queues.number(queue);
        if message == NONE {
            let link = &mut state.links[found];
            link.up[end] = false;
            if !link.up[1 - end] {
                state.links.remove(found);
            }
        }
        self.happen(state, key.servers[end], Happening::Comes(key.id(end), message));
    }

    fn connect(&self, state: &mut State, from: u8, plane: Plane, to: u8) {
        let slot = |server: u8, peer: u8| {
            let taken = |slot: &u8| {
                let id = link_id(plane, peer, *slot);
                state.links.iter().any(|link| link.end(usize::from(server), id).is_some())
            };
            (0..8).find(|slot| !taken(slot)).unwrap_or(7)
        };
        let key = Key { plane, servers: [from, to], slots: [slot(from, to), slot(to, from)] };
        let at = state.links.partition_point(|link| link.key < key);
        state.links.insert(at, Link { key, up: [true, true], inbound: [NONE, NONE] });
        self.happen(state, to, Happening::Up(key.id(1), plane, false, from));
        self.happen(state, from, Happening::Up(key.id(0), plane, true, to));
    }

    fn crash(&self, state: &mut State, id: u8, survivors: u8) {
        state.spent.crashes += 1;
        for plane in [Plane::Election, Plane::Quorum] {
            (0..5).for_each(|peer| state.dials &= !Self::dial_bit(id, plane, peer));
        }
        for link in &mut state.links {
            if let Some(end) = (0..2).find(|end| link.up[*end] && link.key.servers[*end] == id) {
                self.close_end(link, end);
            }
        }
        state.links.retain(|link| link.up != [false, false]);
        self.happen(state, id, Happening::Crash(survivors));
    }

    fn act(&self, state: &mut State, action: Action) {
        if let (Action::Lose(..) | Action::Repeat(..) | Action::Overtake(..), Some(_)) =
            (action, self.scope.mischief)
        {
            state.spent.mischief += 1;
        }
        match action {
            Action::Deliver(key, end) => self.deliver(state, key, end, 0, false),
            Action::Repeat(key, end) => self.deliver(state, key, end, 0, true),
            Action::Overtake(key, end) => self.deliver(state, key, end, 1, false),
            Action::Lose(key, end) => {
                if let Some(link) = state.links.iter_mut().find(|link| link.key == key) {
                    let inbound = &mut link.inbound[usize::from(end)];
                    let queue = self.queues.get(*inbound)[1..].to_vec();
                    *inbound = self.queues.number(queue);
                }
            }
            Action::Cut(key, end) => {
                if let Some(link) = state.links.iter_mut().find(|link| link.key == key) {
                    link.inbound[usize::from(end)] = self.queues.number(vec![NONE]);
                }
                self.deliver(state, key, end, 0, false);
            }
            Action::Write(id) => self.happen(state, id, Happening::Persisted),
            Action::Due(id, timer) => {
                let limit = matches!(
                    timer,
                    Timer::ConnectLimit | Timer::Silence | Timer::Init | Timer::Introduction
                );
                state.spent.timeouts += u8::from(limit && self.scope.recovery);
                state.spent.candidacies += u8::from(timer == Timer::Candidacy);
                self.happen(state, id, Happening::Due(timer));
            }
            Action::Dial(from, plane, to) => self.dial(state, from, plane, to),
            Action::Miss(from, plane, to) => {
                state.spent.breaks += 1;
                state.dials &= !Self::dial_bit(from, plane, to);
                self.happen(state, from, Happening::DialFailed(plane, to));
            }
            Action::Crash(id, survivors) => self.crash(state, id, survivors),
            Action::Start(id) => {
                self.happen(state, id, Happening::Start);
                self.happen(state, id, Happening::Due(Timer::Start));
            }
            Action::Break(key) => {
                state.spent.breaks += 1;
                if let Some(link) = state.links.iter_mut().find(|link| link.key == key) {
                    self.end_inbound(link, 0);
                    self.end_inbound(link, 1);
                }
            }
            Action::Ask(id) => {
                state.spent.transactions += 1;
                self.happen(state, id, Happening::Ask(state.spent.transactions));
            }
            Action::Change(id) => {
                let members = self.scope.changes[usize::from(state.spent.changes)];
                state.spent.changes += 1;
                self.happen(state, id, Happening::Change(state.spent.changes, members));
            }
            Action::Stream(id) => self.happen(state, id, Happening::Streamed),
        }
        if self.scope.prompt || self.scope.prompt_dials {
            self.settle(state);
        }
        if state.broken.is_none() {
            state.broken = self.judge_disks(state);
        }
    }

    /// Everything that is under way on the election plane comes, where it is prompt, and every dial there is
    /// answered.
    fn settle(&self, state: &mut State) {
        for _ in 0..1000 {
            let under_way = state.links.iter().find_map(|link| {
                let end = (0..2).find(|end| link.inbound[*end] != NONE)?;
                (self.scope.prompt && link.key.plane == Plane::Election).then_some((link.key, end))
            });
            let pairs = (0..5).flat_map(|from| (0..5).map(move |to| (from, to)));
            let mut dials = pairs.filter(|(from, to)| {
                state.dials & Self::dial_bit(*from, Plane::Election, *to) != 0
            });
            if let Some((key, end)) = under_way {
                self.deliver(state, key, u8::from(end == 1), 0, false);
            } else if let Some((from, to)) = dials.next() {
                self.dial(state, from, Plane::Election, to);
            } else {
                return;
            }
        }
        state.broken = state.broken.or(Some(Rule::Storm));
    }

    fn dial(&self, state: &mut State, from: u8, plane: Plane, to: u8) {
        state.dials &= !Self::dial_bit(from, plane, to);
        if self.is_up(state, to) {
            self.connect(state, from, plane, to);
        } else {
            self.happen(state, from, Happening::DialFailed(plane, to));
        }
    }

    /// All servers run, and have links with one another; none has begun to look.
    fn begin(&self, disks: &[Store]) -> State {
        let servers = u8::try_from(self.scope.servers()).unwrap_or(0);
        let mut state = State {
            servers: [u32::MAX; MOST],
            links: Vec::new(),
            dials: 0,
            leaderships: [0; EPOCHS],
            led: [0; EPOCHS],
            brought: [NONE; EPOCHS],
            committed: NONE,
            spent: Spent::default(),
            broken: None,
        };
        let (first, electing, slow) =
            (self.scope.first(), self.scope.electing, self.scope.slow_streams);
        for (id, disk) in (0..servers).zip(disks) {
            let server = Server::new(id, first, electing, slow, disk.clone());
            state.servers[usize::from(id)] = self.servers.number(server);
        }
        for id in 0..servers {
            self.happen(&mut state, id, Happening::Start);
        }
        for from in 0..servers {
            (0..from).for_each(|to| self.connect(&mut state, from, Plane::Election, to));
        }
        // What a quorum has on disk may have been committed by somebody who has told nobody else.
        let newest = disks.iter().max_by_key(|disk| disk.in_force());
        let in_force = newest.map_or(0, Store::in_force);
        let present = newest.and_then(|disk| disk.membership.as_ref()).map_or(first.voters, voters);
        let kept = |txns: &&[Txn]| {
            let with = (0u8..).zip(disks).filter(|(_, disk)| disk.history.starts_with(txns));
            let with = with.fold(0, |all, (id, _)| all | 1 << id);
            let later = txns.iter().filter_map(change).filter(|later| later.version() > in_force);
            txns.last().map_or(0, |txn| txn.zxid.0) >= in_force
                && later.map(|later| voters(&later)).all(|next| is_majority(with, [present, next]))
                && is_majority(with, [present; 2])
        };
        let prefixes = disks.iter().flat_map(|d| (0..=d.history.len()).map(|n| &d.history[..n]));
        let committed = prefixes.filter(kept).max_by_key(|txns| txns.len()).unwrap_or(&[]);
        state.committed = self.histories.number(committed.to_vec());
        for disk in disks {
            if let Some(slot) =
                state.leaderships.get_mut(usize::try_from(disk.current.0).unwrap_or(0))
            {
                *slot = u8::MAX;
            }
        }
        state.leaderships[0] = 0;
        state
    }

    /// What an action is, for people: with the message, if there is one.
    pub fn tell(&self, state: &State, action: &Action) -> String {
        let (key, end, at) = match action {
            Action::Deliver(key, end) | Action::Repeat(key, end) | Action::Lose(key, end) => {
                (*key, usize::from(*end), 0)
            }
            Action::Overtake(key, end) => (*key, usize::from(*end), 1),
            Action::Cut(..)
            | Action::Write(_)
            | Action::Due(..)
            | Action::Dial(..)
            | Action::Miss(..)
            | Action::Crash(..)
            | Action::Start(_)
            | Action::Break(_)
            | Action::Ask(_)
            | Action::Change(_)
            | Action::Stream(_) => return format!("{action:?}"),
        };
        let link = state.links.iter().find(|link| link.key == key);
        let message = link.map(|link| self.queues.get(link.inbound[end])[at]);
        let message = message.map(|message| self.messages.get(message));
        let verb = format!("{action:?}");
        let verb = verb.split('(').next().unwrap_or_default();
        let (from, to) = (key.servers[1 - end], key.servers[end]);
        format!("{verb} from {from} to {to}: {message:?}")
    }
}

impl Model for Ensemble {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        self.scope.disks().iter().map(|disks| self.begin(disks)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        self.offer_deliveries(state, actions);
        for id in 0..self.scope.servers() {
            self.offer_steps(state, u8::try_from(id).unwrap_or(0), actions);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.act(&mut next, action);
        // What the leader refuses is a transaction as any other.
        if let Action::Change(id) = action {
            if !self.server(&next, usize::from(id), |server| server.brief.changing) {
                return None;
            }
        }
        let within = |id| self.server(&next, id, |server| server.brief.round <= self.scope.rounds);
        (0..self.scope.servers()).all(within).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        super::properties(&self.scope)
    }
}

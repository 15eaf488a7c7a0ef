//! One server that elects by generation, under arbitrary events: it votes once in a generation, says nothing
//! of a vote that is not on its disk, votes for no candidate with an older history, and leads only where a
//! quorum has granted its last request. A crash leaves it what is on the disk.

use std::collections::VecDeque;
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use bytes::{Bytes, BytesMut};
use quorate_core::config::{Generations, Ties};
use quorate_core::generation::{
    ClockConfig, ClockEvent, ClockOutput, Cue, GenerationClock, Recipient,
};
use quorate_core::generation_message::{
    Attempt, Body, Claim, Generation, GenerationMessage, GrantedVote,
};
use quorate_core::id::ServerId;
use quorate_core::quorum::Quorum;
use quorate_core::time::Instant;
use quorate_core::vote::{ServerState, Vote};
use quorate_core::wire::{encode_generation, take_generation};
use quorate_core::zxid::{Epoch, Zxid};

/// A run: the server's id among how many, and what happens.
#[derive(Arbitrary, Debug)]
struct Run {
    id: u8,
    voters: u8,
    granted_vote: (u8, u8),
    pre_vote: bool,
    first_come: bool,
    seed: u8,
    happens: Vec<Happens>,
}

/// Small numbers, so that they meet.
#[derive(Arbitrary, Debug)]
enum Happens {
    Time { ms: u16 },
    Due,
    Look { cue: u8, newer: bool },
    Kept,
    Reachable { peer: u8 },
    Oracle { yes: bool },
    Retires,
    Request { from: u8, claim: (u8, u8), up: i8, number: u8, pre: bool },
    Answer { from: u8, up: i8, same: bool, number: u8, pre: bool, granted: bool },
    Standing { from: u8, leader: u8, up: i8, echoed: bool, beat: u16 },
    Odd { from: u8, generation: i64, other: i64, number: u64, kind: u8 },
    Bytes { from: u8, bytes: Vec<u8> },
    Restart,
}

/// More than this is never said at once.
const OUTPUTS_MAX: usize = 32;

/// The server and what is known of it from outside.
struct Case {
    config: ClockConfig,
    clock: GenerationClock,
    now: Instant,
    /// What is on its disk, and what is on the way there.
    disk: GrantedVote,
    writing: VecDeque<GrantedVote>,
    claim: Claim,
    /// Its last request, and the voters that have granted exactly that.
    asked: Option<Attempt>,
    granted: Vec<ServerId>,
    /// The time that it said last that it leads.
    beat: u64,
}

/// Lets happen what these bytes say.
pub fn feed(data: &[u8]) {
    let Ok(run) = Run::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let mut case = Case::new(&run);
    for happens in run.happens {
        case.happens(happens);
    }
}

fn server(id: u8) -> ServerId {
    ServerId(i64::from(id % 7))
}

impl Case {
    fn new(run: &Run) -> Self {
        let voters = 1 + i64::from(run.voters % 5);
        let id = ServerId(1 + i64::from(run.id) % voters);
        let rules = Generations {
            pre_vote: run.pre_vote,
            ties: if run.first_come { Ties::FirstCome } else { Ties::BetterRanked },
            ..Generations::default()
        };
        let config = ClockConfig {
            id,
            observer: false,
            quorum: Quorum::majority((1..=voters).map(ServerId)),
            rules,
            seed: u64::from(run.seed),
        };
        let (generation, vote) = run.granted_vote;
        let disk =
            GrantedVote { generation: Generation(i64::from(generation % 4)), vote: server(vote) };
        let disk = if disk.generation == Generation(0) { GrantedVote::NONE } else { disk };
        Self {
            clock: GenerationClock::new(config.clone(), disk),
            config,
            now: Instant::ORIGIN,
            disk,
            writing: VecDeque::new(),
            claim: Claim { current_epoch: Epoch(2), last: Zxid(0x2_0000_0004) },
            asked: None,
            granted: Vec::new(),
            beat: 0,
        }
    }

    fn generation(&self, up: i8) -> Generation {
        Generation(self.clock.generation().0.saturating_add(i64::from(up)))
    }

    fn happens(&mut self, happens: Happens) {
        let event = match happens {
            Happens::Time { ms } => {
                self.now = self.now + Duration::from_millis(u64::from(ms));
                ClockEvent::Tick
            }
            Happens::Due => {
                self.now = self.clock.deadline().map_or(self.now, |(at, _)| self.now.max(at));
                ClockEvent::Tick
            }
            Happens::Look { cue, newer } => self.look(cue, newer),
            Happens::Kept => {
                let Some(granted_vote) = self.writing.pop_front() else { return };
                self.disk = granted_vote;
                ClockEvent::Kept(granted_vote)
            }
            Happens::Reachable { peer } => ClockEvent::Reachable(server(peer)),
            Happens::Oracle { yes } => ClockEvent::Oracle(yes),
            Happens::Retires => {
                self.clock.retire();
                return;
            }
            Happens::Request { from, claim: (epoch, zxid), up, number, pre } => {
                let current_epoch = Epoch(i64::from(epoch % 4));
                let last = Zxid(0x2_0000_0000 + i64::from(zxid % 16));
                let generation = self.generation(up);
                let attempt = Attempt { generation, number: u64::from(number), pre };
                let claim = Claim { current_epoch, last };
                self.message(from, generation, claim, Body::VoteRequest(attempt))
            }
            Happens::Answer { from, up, same, number, pre, granted } => {
                let generation = self.generation(up);
                let attempt = Attempt { generation, number: u64::from(number), pre };
                let attempt = self.asked.filter(|_| same).unwrap_or(attempt);
                if granted && self.asked == Some(attempt) {
                    self.granted.push(server(from));
                }
                self.message(from, generation, self.claim, Body::VoteResponse { attempt, granted })
            }
            Happens::Standing { from, leader, up, echoed, beat } => {
                let leader = if leader % 8 == 7 { ServerId::NONE } else { server(leader) };
                let beat = if echoed { self.beat } else { u64::from(beat) << 20 };
                let body = Body::Heartbeat { leader, beat };
                self.message(from, self.generation(up), self.claim, body)
            }
            Happens::Odd { from, generation, other, number, kind } => {
                let body = odd(other, number, kind);
                self.message(from, Generation(generation), self.claim, body)
            }
            Happens::Bytes { from, bytes } => {
                let Some(event) = self.bytes(from, &bytes) else { return };
                event
            }
            Happens::Restart => {
                self.clock = GenerationClock::new(self.config.clone(), self.disk);
                self.writing.clear();
                (self.asked, self.granted) = (None, Vec::new());
                return;
            }
        };
        self.step(event);
    }

    /// The server begins to look for a leader, perhaps with a newer history.
    fn look(&mut self, cue: u8, newer: bool) -> ClockEvent {
        if newer && !self.clock.is_looking() {
            self.claim.last = Zxid(self.claim.last.0 + 1);
        }
        let (Claim { current_epoch: peer_epoch, last: zxid }, leader) =
            (self.claim, self.config.id);
        let own = Vote { peer_epoch, zxid, leader };
        let cue = [Cue::Fresh, Cue::Silence, Cue::Closed, Cue::Appointed(server(cue / 4))]
            [usize::from(cue % 4)];
        ClockEvent::Look { own, cue }
    }

    /// A peer sends what these bytes are, if they are a message.
    fn bytes(&mut self, from: u8, bytes: &[u8]) -> Option<ClockEvent> {
        let message = take_generation(&mut BytesMut::from(bytes)).ok()??;
        if let Body::VoteResponse { attempt, granted: true } = message.body {
            if self.asked == Some(attempt) && message.from == server(from) {
                self.granted.push(message.from);
            }
        }
        Some(ClockEvent::Heard { from: server(from), message })
    }

    fn message(&self, from: u8, generation: Generation, claim: Claim, body: Body) -> ClockEvent {
        let from = server(from);
        ClockEvent::Heard {
            from,
            message: GenerationMessage {
                from,
                generation,
                claim,
                body,
                config: Bytes::new(),
                knows_probes: false,
            },
        }
    }

    fn step(&mut self, event: ClockEvent) {
        if let ClockEvent::Heard { from: peer, .. } | ClockEvent::Reachable(peer) = &event {
            // There is no link to oneself.
            if *peer == self.config.id {
                return;
            }
        }
        let (before, ticks) = (self.clock.generation(), matches!(event, ClockEvent::Tick));
        let asks = if let ClockEvent::Heard { message, .. } = &event {
            if let Body::VoteRequest(attempt) = message.body {
                Some((attempt, message.claim))
            } else {
                None
            }
        } else {
            None
        };
        let outputs = self.clock.step(self.now, event);
        assert!(outputs.len() <= OUTPUTS_MAX, "{} outputs", outputs.len());
        assert!(self.clock.generation() >= before, "it goes back");
        let due = self.clock.deadline().map(|(at, _)| at);
        assert!(!ticks || due.is_none_or(|due| due > self.now), "it is due for ever");
        for output in outputs {
            self.carry_out(output, asks);
        }
    }

    fn carry_out(&mut self, output: ClockOutput, asks: Option<(Attempt, Claim)>) {
        match output {
            ClockOutput::Send { to, message } => {
                assert_eq!(message.from, self.config.id);
                assert_ne!(to, Recipient::One(self.config.id), "a message to oneself");
                let mut bytes = BytesMut::new();
                encode_generation(&message, &mut bytes);
                assert_eq!(take_generation(&mut bytes), Ok(Some(message.clone())));
                match message.body {
                    Body::VoteRequest(attempt) => self.on_asks(attempt),
                    Body::VoteResponse { attempt, granted } => {
                        if granted {
                            self.on_grants(to, attempt, asks);
                        }
                    }
                    Body::Heartbeat { leader, beat } => {
                        if leader == self.config.id {
                            self.beat = beat;
                        }
                    }
                }
            }
            ClockOutput::Keep(granted_vote) => {
                let last = self.writing.back().copied().unwrap_or(self.disk);
                let follows = granted_vote.generation > last.generation || granted_vote == last;
                assert!(follows, "{granted_vote:?} after {last:?}");
                self.writing.push_back(granted_vote);
            }
            ClockOutput::Decided(standing) => {
                if standing.state == ServerState::Leading {
                    self.leads(Generation(standing.round.0));
                }
            }
            ClockOutput::Leave(..) => self.clock.retire(),
            ClockOutput::Redial | ClockOutput::Changed(..) => {}
        }
    }

    fn on_asks(&mut self, attempt: Attempt) {
        if self.asked != Some(attempt) {
            self.granted.clear();
        }
        self.asked = Some(attempt);
        let own = GrantedVote { generation: attempt.generation, vote: self.config.id };
        assert!(attempt.pre || self.disk == own, "{attempt:?} with {:?} on disk", self.disk);
    }

    /// A grant; one that had to wait for the disk was judged when it was asked for.
    fn on_grants(&self, to: Recipient, attempt: Attempt, asks: Option<(Attempt, Claim)>) {
        let Recipient::One(candidate) = to else { panic!("a grant for {to:?}") };
        let granted_vote = GrantedVote { generation: attempt.generation, vote: candidate };
        assert!(
            attempt.pre || self.disk == granted_vote,
            "{granted_vote:?} with {:?} on disk",
            self.disk
        );
        if let Some((asked, claim)) = asks.filter(|(asked, _)| *asked == attempt) {
            assert!(claim >= self.claim, "{asked:?} of {claim}, ours is {}", self.claim);
        }
    }

    fn leads(&self, generation: Generation) {
        let own = GrantedVote { generation, vote: self.config.id };
        assert_eq!(self.disk, own, "it leads without its own vote");
        let others = self.granted.iter().copied().filter(|id| *id != self.config.id);
        let behind = others.chain([self.config.id]);
        let asked = self.asked.filter(|attempt| !attempt.pre && attempt.generation == generation);
        let alone = self.config.quorum.is_quorum([self.config.id]);
        let has = asked.is_some() && self.config.quorum.is_quorum(behind);
        assert!(has || alone, "elected by {:?}, asked {:?}", self.granted, self.asked);
    }
}

/// A message with numbers that no server of ours sends.
fn odd(other: i64, number: u64, kind: u8) -> Body {
    let attempt = Attempt { generation: Generation(other), number, pre: kind & 4 > 0 };
    match kind % 3 {
        0 => Body::VoteRequest(attempt),
        1 => Body::VoteResponse { attempt, granted: false },
        _ => Body::Heartbeat { leader: ServerId(other), beat: number },
    }
}

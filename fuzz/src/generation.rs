//! One server that elects by generation, under arbitrary events: it votes once in a generation, says nothing
//! of a vote that is not on its disk, votes for no candidate with an older history, and leads only where a
//! quorum has granted its last request. A crash leaves it what is on the disk.

use std::collections::VecDeque;
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use bytes::{Bytes, BytesMut};
use quorate_core::ballot::{Ballot, Body, Claim, Generation, Letter, Poll};
use quorate_core::config::{Generations, Ties};
use quorate_core::generation::{
    ClockConfig, ClockEvent, ClockOutput, Cue, GenerationClock, Recipient,
};
use quorate_core::id::ServerId;
use quorate_core::quorum::Quorum;
use quorate_core::time::Instant;
use quorate_core::vote::{ServerState, Vote};
use quorate_core::wire::{encode_letter, take_letter};
use quorate_core::zxid::{Epoch, Zxid};

/// A run: the server's id among how many, and what happens.
#[derive(Arbitrary, Debug)]
struct Run {
    id: u8,
    voters: u8,
    ballot: (u8, u8),
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
    Request { from: u8, claim: (u8, u8), up: i8, attempt: u8, pre: bool },
    Answer { from: u8, up: i8, same: bool, attempt: u8, pre: bool, granted: bool },
    Standing { from: u8, leader: u8, up: i8, echoed: bool, beat: u16 },
    Odd { from: u8, generation: i64, other: i64, attempt: u64, kind: u8 },
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
    disk: Ballot,
    writing: VecDeque<Ballot>,
    claim: Claim,
    /// Its last request, and the voters that have granted exactly that.
    asked: Option<Poll>,
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
        let (generation, vote) = run.ballot;
        let disk = Ballot { generation: Generation(i64::from(generation % 4)), vote: server(vote) };
        let disk = if disk.generation == Generation(0) { Ballot::NONE } else { disk };
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
                let Some(ballot) = self.writing.pop_front() else { return };
                self.disk = ballot;
                ClockEvent::Kept(ballot)
            }
            Happens::Reachable { peer } => ClockEvent::Reachable(server(peer)),
            Happens::Oracle { yes } => ClockEvent::Oracle(yes),
            Happens::Retires => {
                self.clock.retire();
                return;
            }
            Happens::Request { from, claim: (epoch, zxid), up, attempt, pre } => {
                let current_epoch = Epoch(i64::from(epoch % 4));
                let last = Zxid(0x2_0000_0000 + i64::from(zxid % 16));
                let generation = self.generation(up);
                let poll = Poll { generation, attempt: u64::from(attempt), pre };
                let claim = Claim { current_epoch, last };
                self.letter(from, generation, claim, Body::Request(poll))
            }
            Happens::Answer { from, up, same, attempt, pre, granted } => {
                let generation = self.generation(up);
                let poll = Poll { generation, attempt: u64::from(attempt), pre };
                let poll = self.asked.filter(|_| same).unwrap_or(poll);
                if granted && self.asked == Some(poll) {
                    self.granted.push(server(from));
                }
                self.letter(from, generation, self.claim, Body::Answer { poll, granted })
            }
            Happens::Standing { from, leader, up, echoed, beat } => {
                let leader = if leader % 8 == 7 { ServerId::NONE } else { server(leader) };
                let beat = if echoed { self.beat } else { u64::from(beat) << 20 };
                let body = Body::Standing { leader, beat };
                self.letter(from, self.generation(up), self.claim, body)
            }
            Happens::Odd { from, generation, other, attempt, kind } => {
                let body = odd(other, attempt, kind);
                self.letter(from, Generation(generation), self.claim, body)
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
        let letter = take_letter(&mut BytesMut::from(bytes)).ok()??;
        if let Body::Answer { poll, granted: true } = letter.body {
            if self.asked == Some(poll) && letter.from == server(from) {
                self.granted.push(letter.from);
            }
        }
        Some(ClockEvent::Heard { from: server(from), letter })
    }

    fn letter(&self, from: u8, generation: Generation, claim: Claim, body: Body) -> ClockEvent {
        let from = server(from);
        ClockEvent::Heard {
            from,
            letter: Letter {
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
        let asks = if let ClockEvent::Heard { letter, .. } = &event {
            if let Body::Request(poll) = letter.body { Some((poll, letter.claim)) } else { None }
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

    fn carry_out(&mut self, output: ClockOutput, asks: Option<(Poll, Claim)>) {
        match output {
            ClockOutput::Send { to, letter } => {
                assert_eq!(letter.from, self.config.id);
                assert_ne!(to, Recipient::One(self.config.id), "a letter to oneself");
                let mut bytes = BytesMut::new();
                encode_letter(&letter, &mut bytes);
                assert_eq!(take_letter(&mut bytes), Ok(Some(letter.clone())));
                match letter.body {
                    Body::Request(poll) => self.on_asks(poll),
                    Body::Answer { poll, granted } => {
                        if granted {
                            self.on_grants(to, poll, asks);
                        }
                    }
                    Body::Standing { leader, beat } => {
                        if leader == self.config.id {
                            self.beat = beat;
                        }
                    }
                }
            }
            ClockOutput::Keep(ballot) => {
                let last = self.writing.back().copied().unwrap_or(self.disk);
                let follows = ballot.generation > last.generation || ballot == last;
                assert!(follows, "{ballot:?} after {last:?}");
                self.writing.push_back(ballot);
            }
            ClockOutput::Decided(standing) => {
                if standing.state == ServerState::Leading {
                    self.leads(Generation(standing.round.0));
                }
            }
            ClockOutput::Leave(_) => self.clock.retire(),
            ClockOutput::Redial | ClockOutput::Changed(..) => {}
        }
    }

    fn on_asks(&mut self, poll: Poll) {
        if self.asked != Some(poll) {
            self.granted.clear();
        }
        self.asked = Some(poll);
        let own = Ballot { generation: poll.generation, vote: self.config.id };
        assert!(poll.pre || self.disk == own, "{poll:?} with {:?} on disk", self.disk);
    }

    /// A grant; one that had to wait for the disk was judged when it was asked for.
    fn on_grants(&self, to: Recipient, poll: Poll, asks: Option<(Poll, Claim)>) {
        let Recipient::One(candidate) = to else { panic!("a grant for {to:?}") };
        let ballot = Ballot { generation: poll.generation, vote: candidate };
        assert!(poll.pre || self.disk == ballot, "{ballot:?} with {:?} on disk", self.disk);
        if let Some((asked, claim)) = asks.filter(|(asked, _)| *asked == poll) {
            assert!(claim >= self.claim, "{asked:?} of {claim}, ours is {}", self.claim);
        }
    }

    fn leads(&self, generation: Generation) {
        let own = Ballot { generation, vote: self.config.id };
        assert_eq!(self.disk, own, "it leads without its own vote");
        let others = self.granted.iter().copied().filter(|id| *id != self.config.id);
        let behind = others.chain([self.config.id]);
        let asked = self.asked.filter(|poll| !poll.pre && poll.generation == generation);
        let alone = self.config.quorum.is_quorum([self.config.id]);
        let has = asked.is_some() && self.config.quorum.is_quorum(behind);
        assert!(has || alone, "elected by {:?}, asked {:?}", self.granted, self.asked);
    }
}

/// A message with numbers that no server of ours sends.
fn odd(other: i64, attempt: u64, kind: u8) -> Body {
    let poll = Poll { generation: Generation(other), attempt, pre: kind & 4 > 0 };
    match kind % 3 {
        0 => Body::Request(poll),
        1 => Body::Answer { poll, granted: false },
        _ => Body::Standing { leader: ServerId(other), beat: attempt },
    }
}

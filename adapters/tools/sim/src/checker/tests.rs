//! Each rule is broken once, by what a broken server would do, and is seen to be.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::id::{LinkId, ReadId, ServerId, Ticket};
use quorate_core::input::{Cause, Event, LinkUp, Plane};
use quorate_core::message::{Message, Packet};
use quorate_core::output::{Output, Write};
use quorate_core::reasons::{Fault, Hangup};
use quorate_core::report::{Change, Reason, Report};
use quorate_core::status::{Phase, Status};
use quorate_core::time::Instant;
use quorate_core::txn::{RequestId, Txn, TxnHeader};
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::{Counter, Epoch, Zxid};

use super::*;
use crate::application::{KIND, State, written_before};
use crate::disk::{Disk, Survival};

const ONE: Zxid = z(1, 1);
const TWO: Zxid = z(1, 2);

const fn z(epoch: i64, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), Counter(counter))
}

/// Three servers with their disks; what a test lets them do is checked as in a run.
struct Scene {
    checker: Checker,
    disks: BTreeMap<ServerId, Disk>,
    tickets: u64,
}

fn scene() -> Scene {
    let mut scene = Scene {
        checker: Checker::new(Ensemble::majority(3), &BTreeMap::new()),
        disks: BTreeMap::new(),
        tickets: 0,
    };
    for id in 1..=3 {
        scene.disks.insert(ServerId(id), Disk::new(Contents::default()));
        scene.starts(id).unwrap();
    }
    scene
}

/// Server 3 leads epoch 1, and the others follow.
fn leadership() -> Scene {
    let mut scene = scene();
    for id in 1..=3 {
        scene.writes(id, Write::AcceptedEpoch(Epoch(1))).unwrap();
    }
    scene.checker.ledger.on_leadership(ServerId(3), Epoch(1), &Contents::default()).unwrap();
    for id in 1..=3 {
        scene.writes(id, Write::CurrentEpoch(Epoch(1))).unwrap();
    }
    scene.serves(3, 1).unwrap();
    scene
}

type Checked = Result<(), Violation>;

impl Scene {
    fn starts(&mut self, id: i64) -> Checked {
        let id = ServerId(id);
        self.checker.on_start(id, self.disks[&id].durable())
    }

    /// A write becomes durable.
    fn writes(&mut self, id: i64, write: Write) -> Checked {
        self.tickets += 1;
        let Some(disk) = self.disks.get_mut(&ServerId(id)) else { return Ok(()) };
        disk.persist(Ticket(self.tickets), write);
        disk.begin();
        let (done, _) = disk.complete();
        done.iter().try_for_each(|done| self.checker.on_durable(ServerId(id), done))
    }

    /// A leader proposes a transaction; it becomes durable at these.
    fn proposes(&mut self, txn: &Txn, at: &[i64]) -> Checked {
        self.checker.ledger.on_logged(ServerId(3), txn, true)?;
        at.iter().try_for_each(|id| self.writes(*id, Write::Append([txn.clone()].into())))
    }

    fn delivers(&mut self, id: i64, through: Zxid, leads: bool) -> Checked {
        let id = ServerId(id);
        let ensemble = Ensemble::majority(3);
        let log = self.disks[&id].latest();
        self.checker.ledger.on_committed(id, through, leads, Epoch(1), log, &ensemble)
    }

    fn applies(&mut self, id: i64, txn: &Txn) -> Checked {
        self.checker.ledger.on_applied(ServerId(id), txn, 1, true).map(|_| ())
    }

    fn steps(&mut self, status: Status, outputs: &[Output]) -> Checked {
        self.checker.on_step(status.id, &status, outputs)?;
        outputs.iter().try_for_each(|output| self.checker.on_output(status.id, output))
    }

    fn serves(&mut self, id: i64, epoch: i64) -> Checked {
        let status = Status { serving: true, ..status(id, ServerState::Leading, epoch) };
        self.steps(status, &[])
    }

    /// A link to this server comes up.
    fn link(&mut self, id: i64, link: u64, peer: i64) -> LinkId {
        let (link, peer) = (LinkId(link), Some(ServerId(peer)));
        let up = LinkUp {
            link,
            plane: Plane::Quorum,
            dialled: true,
            peer,
            advertised: None,
            remote: None,
        };
        self.checker.on_event(ServerId(id), &Event::LinkUp(up));
        link
    }

    fn hears(&mut self, id: i64, link: LinkId, packet: Packet) {
        let message = Message::Packet(packet);
        self.checker.on_event(ServerId(id), &Event::Received { link, message });
    }

    fn sends(&mut self, id: i64, link: LinkId, packet: Packet) -> Checked {
        let message = Message::Packet(packet);
        self.checker.on_output(ServerId(id), &Output::Send { link, message })
    }
}

fn status(id: i64, state: ServerState, epoch: i64) -> Status {
    let (id, epoch) = (ServerId(id), Epoch(epoch));
    let leader = (state != ServerState::Looking).then_some(ServerId(3));
    Status {
        id,
        state,
        phase: Phase::Election,
        round: Round(1),
        vote: Vote { peer_epoch: epoch, zxid: Zxid::ZERO, leader: ServerId(3) },
        leader,
        accepted_epoch: epoch,
        current_epoch: epoch,
        last: Zxid::ZERO,
        processed: Zxid::ZERO,
        serving: false,
        voter: true,
        voters: 3,
        learners: Vec::new(),
        linked: Vec::new(),
    }
}

/// A transaction that a client of server 1 has asked for.
fn asked(zxid: Zxid, cxid: i32, number: u64) -> Txn {
    let header = TxnHeader { client: 1, cxid, time: 0, kind: KIND };
    let mut body = number.to_be_bytes().to_vec();
    body.push(7);
    Txn { zxid, header, body: Bytes::from(body) }
}

fn report(change: Change, reason: Reason) -> Output {
    Output::Report(Report { change, reason })
}

fn elected(members: &[i64]) -> Output {
    let change = Change::State { from: ServerState::Looking, to: ServerState::Leading };
    let members = members.iter().copied().map(ServerId).collect();
    report(change, Reason::Quorum { members, leader: ServerId(3) })
}

#[track_caller]
fn breaks(rule: Rule, checked: Checked) {
    match checked {
        Err(violation) => assert_eq!(violation.rule, rule, "{violation}"),
        Ok(()) => panic!("nobody has noticed; {rule:?} is broken"),
    }
}

#[test]
fn a_leadership_as_it_should_be_breaks_nothing() {
    let mut scene = leadership();
    let first = written_before(ONE, 1);
    scene.proposes(&first, &[2, 3]).unwrap();
    scene.delivers(3, ONE, true).unwrap();
    scene.applies(3, &first).unwrap();
    scene.starts(2).unwrap();
}

#[test]
fn two_leaders_of_one_epoch() {
    breaks(Rule::Leadership, leadership().serves(2, 1));
    let mut scene = leadership();
    let again = scene.checker.ledger.on_leadership(ServerId(2), Epoch(1), &Contents::default());
    breaks(Rule::Leadership, again);
}

#[test]
fn a_promise_that_is_not_on_disk() {
    let mut scene = scene();
    let link = scene.link(3, 1, 1);
    let protocol = 0x10000;
    breaks(Rule::Promise, scene.sends(3, link, Packet::LeaderInfo { epoch: Epoch(1), protocol }));
    breaks(Rule::Promise, scene.sends(3, link, Packet::Ack(ONE)));
    scene.hears(3, link, Packet::LeaderInfo { epoch: Epoch(1), protocol });
    let promise = Packet::AckEpoch { last: Zxid::ZERO, current_epoch: Some(Epoch::ZERO) };
    breaks(Rule::Promise, scene.sends(3, link, promise));
}

#[test]
fn one_epoch_promised_to_two_leaders() {
    let mut scene = scene();
    scene.writes(1, Write::AcceptedEpoch(Epoch(1))).unwrap();
    let promise = || Packet::AckEpoch { last: Zxid::ZERO, current_epoch: Some(Epoch::ZERO) };
    for (number, leader) in [(1, 3), (2, 2)] {
        let link = scene.link(1, number, leader);
        scene.hears(1, link, Packet::LeaderInfo { epoch: Epoch(1), protocol: 0x10000 });
        let sent = scene.sends(1, link, promise());
        if leader == 3 {
            sent.unwrap()
        } else {
            breaks(Rule::Promise, sent)
        }
        // It has ended meanwhile, which changes nothing.
        scene.starts(1).unwrap();
    }
}

#[test]
fn a_leader_counts_a_promise_that_nobody_has_on_disk() {
    let mut scene = scene();
    for id in [1, 3] {
        scene.writes(id, Write::AcceptedEpoch(Epoch(1))).unwrap();
    }
    let promised = |members: &[i64]| {
        let change = Change::Phase { from: Phase::Discovery, to: Phase::Synchronization };
        let members = members.iter().copied().map(ServerId).collect();
        [report(change, Reason::Promised { members })]
    };
    let leads = || status(3, ServerState::Leading, 0);
    scene.steps(leads(), &promised(&[1, 3])).unwrap();
    breaks(Rule::Promise, scene.steps(leads(), &promised(&[2, 3])));
    breaks(Rule::Quorum, scene.steps(leads(), &promised(&[3])));
}

#[test]
fn a_disk_that_went_back() {
    let mut scene = leadership();
    breaks(Rule::Durability, scene.writes(1, Write::AcceptedEpoch(Epoch(0))));
    // After a crash, too, and of the log as of the epochs.
    let mut scene = leadership();
    scene.disks.insert(ServerId(1), Disk::new(Contents::ending(1, 0, Zxid::ZERO)));
    breaks(Rule::Durability, scene.starts(1));
    let mut scene = leadership();
    scene.proposes(&written_before(ONE, 1), &[1, 2]).unwrap();
    if let Some(disk) = scene.disks.get_mut(&ServerId(1)) {
        let (mut rng, mut pages) = (quorate_core::rng::Rng::new(1), quorate_core::rng::Rng::new(1));
        disk.crash(Survival::Everything, &mut rng, &mut pages);
        disk.forget();
    }
    breaks(Rule::Durability, scene.starts(1));
}

#[test]
fn elected_or_established_without_a_quorum() {
    let leads = || status(3, ServerState::Leading, 0);
    scene().steps(leads(), &[elected(&[1, 3])]).unwrap();
    breaks(Rule::Quorum, scene().steps(leads(), &[elected(&[3])]));
    let mut scene = scene();
    scene.writes(3, Write::AcceptedEpoch(Epoch(1))).unwrap();
    scene.writes(3, Write::CurrentEpoch(Epoch(1))).unwrap();
    breaks(Rule::Quorum, scene.serves(3, 1));
}

#[test]
fn a_round_that_ends_at_once_with_those_who_go_on() {
    let settled = |members: &[i64]| {
        let reason = Reason::Settled {
            members: members.iter().copied().map(ServerId).collect(),
            leader: ServerId(3),
            unreachable: vec![ServerId(1)],
        };
        let change = Change::State { from: ServerState::Looking, to: ServerState::Following };
        Output::Report(Report { change, reason })
    };
    let follows = || status(2, ServerState::Following, 0);
    let mut scene = scene();
    scene.steps(follows(), &[settled(&[2, 3])]).unwrap();
    scene.checker.foreign.insert(ServerId(3));
    scene.steps(follows(), &[settled(&[1, 2, 3])]).unwrap();
    breaks(Rule::Haste, scene.steps(follows(), &[settled(&[2, 3])]));
}

/// While a change of the membership is not in force both memberships have to agree.
#[test]
fn a_quorum_of_the_old_membership_alone() {
    let mut scene = scene();
    let next = Ensemble::majority(5).membership().unwrap().with_version(0x1_0000_0001);
    let write = Write::NextMembership(Some(next.text().clone()));
    let leads = || status(3, ServerState::Leading, 0);
    let outputs = |members| [Output::Persist { ticket: Ticket(9), write }, elected(members)];
    breaks(Rule::Quorum, scene.steps(leads(), &outputs(&[1, 3])));
}

#[test]
fn a_leader_with_an_older_history_than_those_who_elected_it() {
    let mut scene = scene();
    scene.disks.insert(ServerId(1), Disk::new(Contents::ending(1, 1, ONE)));
    scene.checker.on_wipe(ServerId(1));
    let held = BTreeMap::from([(ServerId(1), Contents::ending(1, 1, ONE))]);
    scene.checker.ledger = Ledger::new(&held);
    scene.starts(1).unwrap();
    scene.steps(status(1, ServerState::Looking, 1), &[]).unwrap();
    let leads = status(3, ServerState::Leading, 0);
    breaks(Rule::Newest, scene.steps(leads, &[elected(&[1, 3])]));
}

#[test]
fn a_round_that_went_back() {
    let mut scene = scene();
    let looks = |round| Status { round: Round(round), ..status(1, ServerState::Looking, 0) };
    scene.steps(looks(5), &[]).unwrap();
    breaks(Rule::Rounds, scene.steps(looks(4), &[]));
}

#[test]
fn service_under_nobody() {
    let follows = Status { serving: true, ..status(1, ServerState::Following, 1) };
    leadership().steps(follows.clone(), &[]).unwrap();
    breaks(Rule::Service, scene().steps(follows, &[]));
}

#[test]
fn outputs_that_make_no_sense() {
    let mut scene = scene();
    let link = LinkId(4);
    let hangup = Output::Hangup { link, reason: Hangup::TooManyNonMembers };
    breaks(Rule::Boundary, scene.checker.on_output(ServerId(1), &hangup));
    let write = || Write::AcceptedEpoch(Epoch(1));
    let again = [1, 1].map(|ticket| Output::Persist { ticket: Ticket(ticket), write: write() });
    breaks(Rule::Boundary, scene.steps(status(1, ServerState::Looking, 0), &again));
    let fault = Output::Halt(Fault::EpochsExhausted(Epoch::MAX));
    breaks(Rule::Progress, scene.checker.on_output(ServerId(1), &fault));
    let many = vec![Output::Keep; OUTPUTS_MAX + 1];
    breaks(Rule::Bounds, scene.steps(status(1, ServerState::Looking, 0), &many));
}

#[test]
fn two_transactions_of_one_number_or_one_that_nobody_proposed() {
    let mut scene = leadership();
    scene.proposes(&written_before(ONE, 1), &[]).unwrap();
    breaks(Rule::Integrity, scene.proposes(&written_before(ONE, 2), &[]));
    let ledger = &mut scene.checker.ledger;
    breaks(Rule::Integrity, ledger.on_logged(ServerId(2), &written_before(TWO, 2), false));
}

#[test]
fn what_is_committed_is_not_on_a_quorum_of_disks_or_is_cut() {
    let mut scene = leadership();
    scene.proposes(&written_before(ONE, 1), &[3]).unwrap();
    breaks(Rule::Committed, scene.delivers(3, ONE, true));
    let mut scene = leadership();
    scene.proposes(&written_before(ONE, 1), &[2, 3]).unwrap();
    scene.delivers(3, ONE, true).unwrap();
    breaks(Rule::Committed, scene.writes(2, Write::Truncate(Zxid::ZERO)));
    // And the next leader has it, whichever server that is.
    for id in 1..=3 {
        scene.writes(id, Write::AcceptedEpoch(Epoch(2))).unwrap();
        scene.writes(id, Write::CurrentEpoch(Epoch(2))).unwrap();
    }
    breaks(Rule::Committed, scene.serves(1, 2));
}

/// Server 1 has promised epoch 1 only, and has what the leader of epoch 2 commits with server 2.
#[test]
fn who_was_not_counted_gives_up_what_is_committed_while_a_quorum_has_it_and_no_longer() {
    let mut scene = leadership();
    scene.proposes(&written_before(ONE, 1), &[1, 2, 3]).unwrap();
    for id in 2..=3 {
        scene.writes(id, Write::AcceptedEpoch(Epoch(2))).unwrap();
    }
    let (log, ensemble) = (scene.disks[&ServerId(3)].latest(), Ensemble::majority(3));
    let ledger = &mut scene.checker.ledger;
    ledger.on_committed(ServerId(3), ONE, true, Epoch(2), log, &ensemble).unwrap();
    scene.writes(1, Write::Truncate(Zxid::ZERO)).unwrap();
    breaks(Rule::Committed, scene.writes(2, Write::Truncate(Zxid::ZERO)));

    let mut scene = leadership();
    scene.proposes(&written_before(ONE, 1), &[1, 2, 3]).unwrap();
    let log = scene.disks[&ServerId(3)].latest();
    let ledger = &mut scene.checker.ledger;
    ledger.on_committed(ServerId(3), ONE, true, Epoch(2), log, &ensemble).unwrap();
    scene.checker.on_wipe(ServerId(2));
    breaks(Rule::Committed, scene.writes(1, Write::Truncate(Zxid::ZERO)));
}

#[test]
fn applied_before_it_is_committed_or_out_of_turn() {
    let mut scene = leadership();
    let (first, second) = (written_before(ONE, 1), written_before(TWO, 2));
    scene.proposes(&first, &[2, 3]).unwrap();
    scene.proposes(&second, &[2, 3]).unwrap();
    breaks(Rule::PrefixConsistency, scene.applies(2, &first));
    let mut scene = leadership();
    scene.proposes(&first, &[2, 3]).unwrap();
    breaks(Rule::PrefixConsistency, scene.delivers(2, ONE, false));
    let mut scene = leadership();
    scene.proposes(&first, &[2, 3]).unwrap();
    scene.proposes(&second, &[2, 3]).unwrap();
    scene.delivers(3, TWO, true).unwrap();
    breaks(Rule::PrefixConsistency, scene.applies(2, &second));
}

#[test]
fn newleader_acknowledged_without_the_history() {
    let mut scene = leadership();
    scene.proposes(&written_before(ONE, 1), &[3]).unwrap();
    let held = scene.disks[&ServerId(3)].durable().clone();
    scene.checker.ledger.on_leadership(ServerId(3), Epoch(2), &held).unwrap();
    breaks(Rule::Synchronised, scene.checker.ledger.on_history_ack(ServerId(1), Epoch(2)));
    breaks(Rule::Synchronised, scene.checker.ledger.on_history_ack(ServerId(1), Epoch(7)));
}

#[test]
fn a_log_with_a_hole() {
    breaks(
        Rule::Contiguous,
        leadership().writes(1, Write::Append([written_before(TWO, 2)].into())),
    );
}

#[test]
fn a_snapshot_that_holds_something_else() {
    let mut scene = leadership();
    scene.proposes(&written_before(ONE, 1), &[2, 3]).unwrap();
    scene.delivers(3, ONE, true).unwrap();
    let state = State { label: ONE, count: 1, ..State::default() };
    breaks(Rule::Snapshot, scene.checker.ledger.on_state(ServerId(2), &state, ONE));
}

/// Server 1 has written once and been told.
fn acknowledged() -> Scene {
    let mut scene = leadership();
    let (request, txn) = (RequestId { client: 1, cxid: 1 }, asked(ONE, 1, 1));
    scene.checker.ledger.on_asked((ServerId(1), 1), request, Some(7));
    scene.checker.ledger.on_accepted(ServerId(1), request).unwrap();
    scene.proposes(&txn, &[1, 2, 3]).unwrap();
    scene.delivers(3, ONE, true).unwrap();
    scene.applies(1, &txn).unwrap();
    scene
}

#[test]
fn a_read_that_misses_what_was_acknowledged() {
    let ledger = &mut acknowledged().checker.ledger;
    ledger.on_read(ServerId(2), ReadId(1), 7);
    breaks(Rule::Read, ledger.on_answer(ServerId(2), ReadId(1), &State::default()));
}

#[test]
fn a_client_is_told_what_is_not_so() {
    let mut scene = acknowledged();
    let request = RequestId { client: 1, cxid: 1 };
    breaks(Rule::Outcome, scene.checker.ledger.on_refused(ServerId(1), request));
    let request = RequestId { client: 1, cxid: 2 };
    scene.checker.ledger.on_asked((ServerId(1), 1), request, Some(7));
    scene.checker.ledger.on_refused(ServerId(1), request).unwrap();
    scene.proposes(&asked(TWO, 2, 2), &[2, 3]).unwrap();
    scene.delivers(3, TWO, true).unwrap();
    breaks(Rule::Outcome, scene.applies(1, &asked(TWO, 2, 2)));
}

/// A follower of epoch 1 that has promised a lease of ten seconds at second 1, and its link.
fn bound() -> (Leases, LinkId) {
    let (mut leases, link) = (Leases::default(), LinkId(1));
    let at = Instant::ORIGIN + Duration::from_secs(1);
    let hears = |packet| Event::Received { link, message: Message::Packet(packet) };
    let info = Packet::LeaderInfo { epoch: Epoch(1), protocol: 0 };
    leases.on_event(ServerId(1), at, &hears(info));
    let promise =
        Packet::Lease { zxid: z(1, 0), length: Duration::from_secs(10), sessions: Bytes::new() };
    leases.on_event(ServerId(1), at, &hears(promise.clone()));
    let answer = Output::Send { link, message: Message::Packet(promise) };
    leases.on_output(ServerId(1), at, Epoch(1), &answer).unwrap();
    (leases, link)
}

fn helps(leases: &mut Leases, second: u64, epoch: i64) -> Checked {
    let message = Message::Packet(Packet::Ack(Zxid::start_of(Epoch(epoch))));
    let shown = Instant::ORIGIN + Duration::from_secs(second);
    leases.on_output(ServerId(1), shown, Epoch(1), &Output::Send { link: LinkId(9), message })
}

#[test]
fn a_voter_helps_to_establish_another_than_it_has_promised() {
    let (mut leases, link) = bound();
    breaks(Rule::Lease, helps(&mut leases, 10, 2));
    helps(&mut leases, 10, 1).unwrap();
    helps(&mut leases, 11, 2).unwrap();

    // Its links may break, and it may start anew; only its leader can do without.
    let down = |cause| Event::LinkDown { link, cause };
    let (mut leases, _) = bound();
    leases.on_event(ServerId(1), Instant::ORIGIN, &down(Cause::Reset));
    leases.on_start(ServerId(1));
    breaks(Rule::Lease, helps(&mut leases, 10, 2));
    let (mut leases, _) = bound();
    leases.on_event(ServerId(1), Instant::ORIGIN, &down(Cause::Closed));
    helps(&mut leases, 2, 2).unwrap();

    // The leader that it establishes may be itself.
    let own = report(
        Change::Phase { from: Phase::Synchronization, to: Phase::Broadcast },
        Reason::Acknowledged { members: vec![ServerId(1), ServerId(2)] },
    );
    let (mut leases, _) = bound();
    let shown = Instant::ORIGIN + Duration::from_secs(5);
    breaks(Rule::Lease, leases.on_output(ServerId(1), shown, Epoch(2), &own));
}

#[test]
fn a_token_that_is_not_higher_than_those_before() {
    let begun = |hold, all: &[(i64, i64)]| {
        let mut leases = Leases::default();
        let mut all = all.iter().map(|(id, epoch)| (ServerId(*id), Epoch(*epoch)));
        all.try_for_each(|(id, epoch)| leases.on_begun(id, epoch, hold))
    };
    begun(true, &[(3, 1), (2, 2), (3, 3)]).unwrap();
    breaks(Rule::Token, begun(true, &[(3, 2), (2, 1)]));
    begun(false, &[(3, 2), (2, 1)]).unwrap();
    breaks(Rule::Token, begun(false, &[(3, 2), (3, 1)]));
    breaks(Rule::Token, begun(false, &[(3, 2), (2, 2)]));
}

#[test]
fn one_request_becomes_two_transactions() {
    let mut scene = acknowledged();
    scene.proposes(&asked(TWO, 1, 2), &[2, 3]).unwrap();
    breaks(Rule::Once, scene.delivers(3, TWO, true));
}

#[test]
fn a_leader_proposes_out_of_order_or_before_it_has_what_was_committed() {
    let mut scene = leadership();
    breaks(Rule::PrimaryIntegrity, scene.proposes(&written_before(TWO, 1), &[]));
    // An earlier leader's transaction is committed that the next one has not delivered.
    let mut scene = acknowledged();
    breaks(Rule::PrimaryIntegrity, scene.proposes(&written_before(z(2, 1), 2), &[]));
    // And one that an earlier leader commits when the next one has proposed already.
    let mut scene = leadership();
    scene.proposes(&written_before(ONE, 1), &[2, 3]).unwrap();
    scene.proposes(&written_before(z(2, 1), 1), &[]).unwrap();
    breaks(Rule::PrimaryIntegrity, scene.delivers(3, ONE, true));
}

#[test]
fn a_read_of_what_was_overwritten_before_it_began() {
    let mut scene = acknowledged();
    let request = RequestId { client: 1, cxid: 2 };
    let ledger = &mut scene.checker.ledger;
    ledger.on_asked((ServerId(1), 1), request, Some(7));
    ledger.on_accepted(ServerId(1), request).unwrap();
    let second = asked(TWO, 2, 2);
    scene.proposes(&second, &[1, 2, 3]).unwrap();
    scene.delivers(3, TWO, true).unwrap();
    scene.applies(1, &second).unwrap();
    let ledger = &mut scene.checker.ledger;
    assert_eq!(ledger.on_end(), Ok(2));
    ledger.on_read(ServerId(1), ReadId(1), 7);
    // Its server has applied everything, and shows what it was before.
    let state = State { cells: BTreeMap::from([(7, ONE)]), ..State::default() };
    ledger.on_answer(ServerId(1), ReadId(1), &state).unwrap();
    breaks(Rule::Linear, ledger.on_end().map(|_| ()));
}

#[test]
fn an_answer_to_what_nobody_asked() {
    let mut scene = leadership();
    let request = RequestId { client: 9, cxid: 9 };
    breaks(Rule::Outcome, scene.checker.ledger.on_accepted(ServerId(1), request));
}

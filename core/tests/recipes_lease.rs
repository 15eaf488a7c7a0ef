//! The lease recipe, step by step: what a candidate does about what it is told.
//!
//! The failures are those that users of Kubernetes' leases and of etcd's locks have had, by the number under
//! which they were reported.
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]
#![allow(clippy::wildcard_enum_match_arm, reason = "one kind of output is looked for at a time")]

use std::time::Duration;

use bytes::Bytes;
use quorate_core::recipe::lease::{
    Answer, Call, Candidate, Config, Event, Expiry, Held, Input, Output, Record,
};
use quorate_core::recipe::{Attempt, ConfigError, Failure, Leader, LeadershipChange, Loss, Token};
use quorate_core::time::Instant;

const UNIQUE: u128 = 0xabc;
const DURATION: Duration = Duration::from_secs(15);

/// One candidate, and everything that it has said.
#[derive(Clone)]
struct Bench {
    candidate: Candidate,
    now: Instant,
    outputs: Vec<Output>,
    changes: Vec<LeadershipChange>,
    calls: Vec<Call>,
    leaders: Vec<Option<Leader>>,
    pending: Option<(Attempt, Call)>,
}

fn at(seconds: u64) -> Instant {
    Instant::ORIGIN + Duration::from_secs(seconds)
}

fn config(expiry: Expiry) -> Config {
    // As client-go has it: 15 s, given up 10 s after the last renewal, tried every 2 s.
    Config {
        expiry,
        margin: Some(Duration::from_secs(5)),
        renew_every: Some(Duration::from_secs(2)),
        call_deadline: Some(Duration::from_secs(5)),
        seed: 5,
        ..Config::new(&b"us"[..], UNIQUE, DURATION)
    }
}

/// Somebody else's record, with this version.
fn theirs(version: u64) -> Held {
    let record = Record {
        holder: 0xdef,
        identity: Bytes::from_static(b"they"),
        duration: DURATION,
        taken: 0,
        released: false,
    };
    Held { record, version, created: 1 }
}

fn found(held: &Held) -> Result<Answer, Failure> {
    Ok(Answer::Found(Some(held.clone())))
}

const NOTHING: Result<Answer, Failure> = Ok(Answer::Found(None));

fn written(version: u64) -> Result<Answer, Failure> {
    Ok(Answer::Written { version, created: version })
}

impl Bench {
    fn new(expiry: Expiry) -> Self {
        let mut bench = Self {
            candidate: Candidate::new(config(expiry)).unwrap(),
            now: at(0),
            outputs: Vec::new(),
            changes: Vec::new(),
            calls: Vec::new(),
            leaders: Vec::new(),
            pending: None,
        };
        bench.say(Event::Start);
        bench
    }

    fn store() -> Self {
        Self::new(Expiry::Store)
    }

    fn observed() -> Self {
        Self::new(Expiry::Observed)
    }

    /// It has created the key, as version 7.
    fn leading(mut self) -> Self {
        self.answer(NOTHING).answer(written(7));
        assert_eq!(self.candidate.leads(), Some(Token(7)));
        self
    }

    fn say(&mut self, event: Event) -> &mut Self {
        let new = self.candidate.step(Input { at: self.now, event });
        for output in &new {
            match output {
                Output::Call { attempt, call } => {
                    self.calls.push(call.clone());
                    self.pending = Some((*attempt, call.clone()));
                }
                Output::Leadership(change) => self.changes.push(*change),
                Output::Leads(leader) => self.leaders.push(leader.clone()),
                Output::Trouble { .. } | Output::Stopped => {}
            }
        }
        self.outputs.extend(new);
        self
    }

    fn call(&self) -> Call {
        self.pending.clone().expect("a call is under way").1
    }

    fn attempt(&self) -> Attempt {
        self.pending.clone().expect("a call is under way").0
    }

    fn answer(&mut self, result: Result<Answer, Failure>) -> &mut Self {
        let (attempt, _) = self.pending.take().expect("a call is under way");
        self.say(Event::Done { attempt, result })
    }

    fn tick_at(&mut self, now: Instant) -> &mut Self {
        self.now = now;
        self.say(Event::Tick)
    }

    /// Lets the time pass until something is due.
    fn rest(&mut self) -> &mut Self {
        let due = self.candidate.deadline().expect("something is due");
        self.tick_at(due)
    }

    fn record(&self) -> Record {
        match self.call() {
            Call::Put { record, .. } | Call::Renew { record, .. } => record,
            other => panic!("{other:?}"),
        }
    }

    fn expects(&self) -> Option<u64> {
        match self.call() {
            Call::Put { expect, .. } => expect,
            other => panic!("{other:?}"),
        }
    }

    fn has_stopped(&self) -> bool {
        self.outputs.contains(&Output::Stopped)
    }
}

#[test]
fn a_lease_that_cannot_be_kept_is_refused() {
    let wrong = |config| Candidate::new(config).unwrap_err();
    assert_eq!(wrong(Config::new(Bytes::new(), UNIQUE, DURATION)), ConfigError::NoIdentity);
    let config = config(Expiry::Store);
    let margin = Some(Duration::from_secs(14));
    assert_eq!(wrong(Config { margin, ..config.clone() }), ConfigError::TooShort);
    let backoff_min = Duration::ZERO;
    assert_eq!(wrong(Config { backoff_min, ..config }), ConfigError::Backoff);
}

#[test]
fn the_first_to_create_the_key_leads_and_renews_it() {
    let mut bench = Bench::store();
    assert_eq!(bench.call(), Call::Read { watch: true });
    bench.answer(NOTHING);
    assert_eq!(bench.expects(), None);
    bench.answer(written(7));
    assert_eq!(bench.changes, [LeadershipChange::Taken { token: Token(7), until: at(10) }]);
    let us = Leader { identity: Bytes::from_static(b"us"), token: Token(7), designated: false };
    assert_eq!(bench.leaders, [Some(us)]);
    assert_eq!(bench.call(), Call::Read { watch: true }, "whether it is deleted");
    let ours = Held { record: record_of(&bench), version: 7, created: 7 };
    bench.answer(found(&ours));
    for seconds in [2, 4, 6] {
        bench.rest();
        assert_eq!(bench.now, at(seconds));
        assert!(matches!(bench.call(), Call::Renew { version: 7, .. }));
        bench.answer(written(7));
        assert_eq!(
            bench.changes.last(),
            Some(&LeadershipChange::Confirmed { until: at(seconds + 10) })
        );
    }
}

/// The holder renews, which is its heartbeat; who waits asks for nothing, unless it has to count itself.
#[test]
fn in_quiet_times_nothing_is_asked_for_but_renewals() {
    let mut holder = Bench::store().leading();
    holder.answer(found(&Held { record: record_of(&holder), version: 7, created: 7 }));
    let asked = holder.calls.len();
    for renewals in 1..1_000 {
        holder.rest();
        assert!(matches!(holder.call(), Call::Renew { .. }), "{:?}", holder.call());
        holder.answer(written(7));
        assert_eq!((holder.calls.len() - asked, holder.now), (renewals, at(2 * renewals as u64)));
    }
    let mut waiter = Bench::store();
    waiter.answer(found(&theirs(3)));
    let asked = waiter.calls.len();
    for second in 1..1_000 {
        waiter.tick_at(at(10 * second));
    }
    assert_eq!(waiter.calls.len(), asked, "{:?}", waiter.calls.last());
}

/// What the candidate wrote when it took the key.
fn record_of(bench: &Bench) -> Record {
    let put = bench.calls.iter().rev().find_map(|call| match call {
        Call::Put { record, .. } if !record.released => Some(record.clone()),
        _ => None,
    });
    put.expect("it has written")
}

#[test]
fn others_read_who_it_is_and_watch() {
    let mut bench = Bench::store();
    bench.answer(found(&theirs(3)));
    let they = Leader { identity: Bytes::from_static(b"they"), token: Token(3), designated: false };
    assert_eq!((bench.leaders.last(), bench.pending.as_ref()), (Some(&Some(they)), None));
    assert_eq!(bench.candidate.deadline(), None, "the store tells when it goes");
}

/// The key is deleted between the create that came too late and the read of who was faster.
#[test]
fn a_key_that_goes_between_exists_and_read_is_run_for_again() {
    let mut bench = Bench::store();
    bench.answer(NOTHING).answer(Err(Failure::Exists));
    assert_eq!(bench.call(), Call::Read { watch: true });
    bench.answer(NOTHING);
    bench.answer(written(9));
    assert_eq!(bench.candidate.leads(), Some(Token(9)));
}

#[test]
fn whoever_is_slower_again_and_again_takes_a_rest() {
    let mut bench = Bench::store();
    bench.answer(NOTHING).answer(Err(Failure::Conflict));
    bench.answer(NOTHING).answer(Err(Failure::Conflict));
    assert_eq!(bench.pending, None);
    bench.rest();
    assert_eq!(bench.call(), Call::Read { watch: true });
}

#[test]
fn after_a_release_the_key_is_taken_in_one_round_trip() {
    let mut bench = Bench::store();
    bench.answer(found(&theirs(3)));
    let watch = Attempt(1);
    bench.say(Event::Fired { attempt: watch, gone: false });
    let mut released = theirs(4);
    released.record.released = true;
    let watch = bench.attempt();
    bench.answer(found(&released));
    assert_eq!(bench.leaders.last(), Some(&None));
    bench.say(Event::Fired { attempt: watch, gone: true });
    assert_eq!(bench.expects(), None);
    bench.answer(written(6));
    assert_eq!(bench.candidate.leads(), Some(Token(6)));
}

#[test]
fn after_an_expiry_candidates_do_not_come_all_at_once() {
    let mut bench = Bench::store();
    bench.answer(found(&theirs(3)));
    bench.say(Event::Fired { attempt: Attempt(1), gone: true });
    assert_eq!(bench.pending, None);
    bench.rest();
    assert!(bench.now > at(0) && bench.now.since_origin() <= DURATION / 10);
    bench.answer(NOTHING).answer(written(5));
    assert_eq!(bench.candidate.leads(), Some(Token(5)));
}

#[test]
fn a_lost_answer_to_a_create_is_resolved_by_our_own_number() {
    let mut bench = Bench::store();
    bench.answer(NOTHING);
    let record = bench.record();
    bench.answer(Err(Failure::Unknown));
    bench.rest();
    assert_eq!(bench.call(), Call::Read { watch: true });
    bench.answer(found(&Held { record, version: 7, created: 7 }));
    assert_eq!(
        bench.changes,
        [LeadershipChange::Taken { token: Token(7), until: at(10) }],
        "from when it was sent"
    );
}

#[test]
fn what_was_written_long_ago_is_renewed_before_anybody_leads() {
    let mut bench = Bench::store();
    bench.answer(NOTHING);
    let record = bench.record();
    bench.tick_at(at(5)).rest();
    bench.now = at(12);
    bench.answer(found(&Held { record, version: 7, created: 7 }));
    assert_eq!(bench.candidate.leads(), None);
    assert!(matches!(bench.call(), Call::Renew { version: 7, .. }));
    bench.answer(written(7));
    assert_eq!(bench.changes, [LeadershipChange::Taken { token: Token(7), until: at(22) }]);
}

/// The same mistake as CURATOR-696: what an earlier session of ours wrote goes with that session.
#[test]
fn a_key_of_an_earlier_session_gives_no_leadership() {
    let mut bench = Bench::store();
    bench.answer(NOTHING);
    let record = bench.record();
    bench.answer(Err(Failure::Unknown));
    bench.say(Event::Expired);
    bench.rest();
    bench.answer(found(&Held { record, version: 7, created: 7 }));
    assert_eq!(bench.candidate.leads(), None);
    assert_eq!(bench.call(), Call::Delete { version: 7 }, "it is out of the way");
}

#[test]
fn an_answer_that_is_not_waited_for_is_dropped() {
    let mut bench = Bench::store().leading();
    let stale = Attempt(2);
    bench.say(Event::Done { attempt: stale, result: Err(Failure::Conflict) });
    bench.say(Event::Fired { attempt: Attempt(1), gone: true });
    assert_eq!(bench.candidate.leads(), Some(Token(7)));
}

#[test]
fn the_holder_stops_before_the_lease_is_over_counted_from_the_sending() {
    let mut bench = Bench::observed().leading();
    bench.rest();
    assert_eq!(bench.now, at(2));
    bench.now = at(6);
    bench.answer(written(8));
    assert_eq!(
        bench.changes.last(),
        Some(&LeadershipChange::Confirmed { until: at(12) }),
        "sent at 2"
    );
}

/// ZooKeeper's leader counts what its followers have told it of, which is older than what it has answered.
#[test]
fn the_holder_counts_from_what_the_store_counts_if_that_is_older_than_what_it_has_answered() {
    let mut bench = Bench::store();
    bench.now = at(4);
    bench.say(Event::Counted { sent: at(1) });
    bench.answer(NOTHING).answer(written(7));
    assert_eq!(bench.changes, [LeadershipChange::Taken { token: Token(7), until: at(11) }]);
    bench.answer(found(&Held { record: record_of(&bench), version: 7, created: 7 }));
    // It is renewed in its time all the same.
    for (renewed, counted) in [(6, 5), (8, 5), (10, 20)] {
        bench.rest();
        assert_eq!(bench.now, at(renewed));
        bench.say(Event::Counted { sent: at(counted) });
        bench.answer(written(7));
        let until = at(renewed.min(counted) + 10);
        assert_eq!(bench.changes.last(), Some(&LeadershipChange::Confirmed { until }), "{renewed}");
    }

    // Who learns that nothing counts takes a rest.
    let mut bench = Bench::store();
    bench.now = at(30);
    bench.say(Event::Counted { sent: at(1) });
    bench.answer(NOTHING).answer(written(9));
    assert!(matches!(bench.call(), Call::Renew { .. }), "{:?}", bench.call());
    bench.answer(written(9));
    assert_eq!((bench.pending.as_ref(), bench.candidate.leads()), (None, None));

    // The write whose answer was lost, too.
    let mut bench = Bench::store();
    bench.now = at(4);
    bench.say(Event::Counted { sent: at(1) });
    bench.answer(NOTHING);
    let record = bench.record();
    bench.answer(Err(Failure::Unknown));
    bench.rest();
    bench.answer(found(&Held { record, version: 7, created: 7 }));
    assert_eq!(bench.changes, [LeadershipChange::Taken { token: Token(7), until: at(11) }]);
}

/// kubernetes/client-go: no renewal succeeds from 0 on, and each call takes five seconds.
#[test]
fn the_holder_stops_in_time_though_a_call_is_under_way() {
    let mut bench = Bench::observed().leading();
    while bench.candidate.leads().is_some() {
        bench.rest();
    }
    assert_eq!(bench.now, at(10));
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Unconfirmed)));
    assert!(bench.changes.contains(&LeadershipChange::Suspended), "the first failure was told");
}

#[test]
fn a_renewal_that_is_answered_after_the_end_changes_nothing() {
    let mut bench = Bench::observed().leading();
    bench.rest();
    let (late, _) = bench.pending.clone().unwrap();
    bench.tick_at(at(7)).tick_at(at(10));
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Unconfirmed)));
    bench.say(Event::Done { attempt: late, result: written(8) });
    assert_eq!(bench.candidate.leads(), None);
}

/// The lease was taken over at 12, and then a renewal with the old version arrives.
#[test]
fn a_late_renewal_fails_and_the_end_comes_before_the_next_term() {
    let mut bench = Bench::observed().leading();
    bench.rest();
    bench.answer(Err(Failure::Conflict));
    assert_eq!(bench.call(), Call::Read { watch: false });
    bench.answer(found(&theirs(8)));
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Taken)));
    assert_eq!(bench.pending, None, "the guards have not gone");
    bench.say(Event::Released);
    assert_eq!(bench.call(), Call::Read { watch: true });
    let mut released = theirs(9);
    released.record.released = true;
    bench.answer(found(&released)).answer(written(10));
    let lost = bench
        .changes
        .iter()
        .position(|change| matches!(change, LeadershipChange::Lost(_)))
        .unwrap();
    let again = bench
        .changes
        .iter()
        .rposition(|change| matches!(change, LeadershipChange::Taken { .. }))
        .unwrap();
    assert!(lost < again);
    assert_eq!(bench.candidate.leads(), Some(Token(10)));
}

#[test]
fn a_renewal_of_our_own_whose_answer_was_lost_is_no_theft() {
    let mut bench = Bench::observed().leading();
    bench.rest();
    let record = bench.record();
    bench.answer(Err(Failure::Unknown));
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Suspended));
    bench.rest();
    bench.answer(Err(Failure::Conflict));
    bench.answer(found(&Held { record, version: 8, created: 7 }));
    assert!(matches!(bench.call(), Call::Renew { version: 8, .. }));
    bench.answer(written(9));
    assert!(matches!(bench.changes.last(), Some(LeadershipChange::Confirmed { .. })));
    assert_eq!(bench.candidate.leads(), Some(Token(7)), "the same term");
}

/// kubernetes/kubernetes#67651: the holder writes 30 s, and who waits is configured for 15 s.
#[test]
fn who_waits_counts_with_the_holders_duration() {
    let mut bench = Bench::observed();
    let mut held = theirs(3);
    held.record.duration = Duration::from_secs(30);
    bench.now = at(4);
    bench.answer(found(&held));
    let due = bench.candidate.deadline().unwrap();
    assert!(due >= at(34) && due < at(36), "{due:?}");
    bench.tick_at(due);
    assert_eq!(bench.expects(), Some(3));
}

#[test]
fn every_change_of_the_record_begins_the_count_anew() {
    let mut bench = Bench::observed();
    bench.answer(found(&theirs(3)));
    for (seconds, version) in [(10, 4), (20, 5), (30, 6)] {
        let watch = Attempt(version - 3);
        bench.now = at(seconds);
        bench.say(Event::Fired { attempt: watch, gone: false });
        bench.answer(found(&theirs(version)));
        assert!(bench.candidate.deadline().unwrap() >= at(seconds + 15));
    }
    bench.now = at(40);
    bench.say(Event::Fired { attempt: Attempt(4), gone: false });
    let due = bench.candidate.deadline();
    bench.answer(found(&theirs(6)));
    assert!(bench.candidate.deadline().unwrap() < at(47), "seen before, at 30: {due:?}");
}

/// pinniped #800, cilium #42920: the lease was released while the guarded work still ran.
#[test]
fn the_key_is_given_back_when_the_guarded_work_has_ended() {
    for expiry in [Expiry::Store, Expiry::Observed] {
        let mut bench = Bench::new(expiry).leading();
        if expiry == Expiry::Store {
            let ours = Held { record: record_of(&bench), version: 7, created: 7 };
            bench.answer(found(&ours));
        }
        bench.say(Event::Stop);
        assert_eq!(bench.changes.last(), Some(&LeadershipChange::Release));
        assert_eq!(bench.pending, None);
        bench.rest();
        assert!(matches!(bench.call(), Call::Renew { .. }), "the work takes three seconds");
        bench.answer(written(7));
        bench.now = at(3);
        bench.say(Event::Released);
        assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Stopped)));
        assert!(
            matches!(bench.call(), Call::Put { expect: Some(7), ref record } if record.released)
        );
        bench.answer(written(9));
        if expiry == Expiry::Store {
            assert_eq!(bench.call(), Call::Delete { version: 9 });
            bench.answer(Ok(Answer::Done));
        }
        assert!(bench.has_stopped());
        assert_eq!(bench.candidate.deadline(), None);
    }
}

#[test]
fn a_deleted_key_ends_the_term_at_once() {
    let mut bench = Bench::store().leading();
    let watch = bench.attempt();
    let ours = Held { record: record_of(&bench), version: 7, created: 7 };
    bench.answer(found(&ours));
    bench.say(Event::Fired { attempt: watch, gone: true });
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Deleted)));
}

#[test]
fn a_key_that_was_overwritten_by_hand_ends_the_term() {
    let mut bench = Bench::store().leading();
    let watch = bench.attempt();
    let ours = Held { record: record_of(&bench), version: 7, created: 7 };
    bench.answer(found(&ours));
    bench.say(Event::Fired { attempt: watch, gone: false });
    bench.answer(found(&theirs(8)));
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Taken)));
}

/// A process that was stopped for longer than the lease lasts, and goes on.
#[test]
fn a_paused_holder_says_lost_before_anything_else_and_its_token_is_the_smaller() {
    let mut bench = Bench::observed().leading();
    let old = bench.candidate.leads().unwrap();
    bench.outputs.clear();
    bench.tick_at(at(60));
    assert_eq!(bench.outputs[0], Output::Leadership(LeadershipChange::Lost(Loss::Unconfirmed)));
    bench.say(Event::Released);
    bench.answer(Err(Failure::Conflict));
    bench.answer(found(&theirs(8)));
    let leader = bench.leaders.last().unwrap().clone().unwrap();
    assert!(leader.token > old);
}

/// That nobody works was said while the term went on, when it means nothing: somebody may have begun since.
#[test]
fn guards_that_were_gone_before_the_term_was_over_may_be_there_again() {
    let mut bench = Bench::store().leading();
    bench.now = at(60);
    bench.say(Event::Released);
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Unconfirmed)));
    let given_back = |bench: &Bench| matches!(&bench.pending, Some((_, Call::Put { record, .. })) if record.released);
    assert!(!given_back(&bench), "they are waited for");
    bench.say(Event::Released);
    assert!(given_back(&bench));
}

#[test]
fn a_term_of_our_own_that_is_over_is_given_back_and_the_next_has_a_greater_token() {
    let mut bench = Bench::store().leading();
    bench.tick_at(at(60)).say(Event::Released);
    assert!(matches!(bench.call(), Call::Put { expect: Some(7), ref record } if record.released));
    let first = record_of(&bench).holder;
    bench.answer(written(8));
    bench.answer(Ok(Answer::Done));
    bench.answer(written(9));
    assert_eq!(bench.candidate.leads(), Some(Token(9)));
    assert_ne!(record_of(&bench).holder, first);
}

/// What a term of ours wrote comes to be after that term: our own session would keep it for ever.
#[test]
fn a_write_of_an_earlier_term_that_comes_late_is_deleted() {
    let mut bench = Bench::store();
    bench.answer(NOTHING);
    let late = bench.record();
    bench.answer(Err(Failure::Unknown)).rest();
    bench.answer(NOTHING).answer(written(7));
    let watch = bench.attempt();
    bench.answer(found(&Held { record: late.clone(), version: 7, created: 7 }));
    bench.say(Event::Fired { attempt: watch, gone: true }).say(Event::Released);
    bench.answer(Err(Failure::Conflict));
    bench.answer(found(&Held { record: late, version: 9, created: 9 }));
    assert_eq!(bench.call(), Call::Delete { version: 9 });
    bench.answer(Ok(Answer::Done)).answer(written(11));
    assert_eq!(bench.candidate.leads(), Some(Token(11)));
}

#[test]
fn a_lost_connection_is_told_and_leadership_confirmed_by_a_renewal() {
    let mut bench = Bench::store().leading();
    bench.answer(Err(Failure::Unknown));
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Suspended));
    assert_eq!(bench.candidate.confirmed_until(), None);
    bench.rest();
    assert!(matches!(bench.call(), Call::Renew { .. }));
    bench.answer(written(7));
    assert!(matches!(bench.changes.last(), Some(LeadershipChange::Confirmed { .. })));
}

#[test]
fn a_lease_that_the_store_has_ended_ends_the_term() {
    for event in [true, false] {
        let mut bench = Bench::store().leading();
        if event {
            bench.say(Event::Expired);
        } else {
            bench.answer(Err(Failure::Unknown)).rest();
            bench.answer(Err(Failure::Expired));
        }
        assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Expired)));
    }
}

#[test]
fn a_stop_at_every_step_gives_back_what_was_taken() {
    for steps in 0..3 {
        let mut bench = Bench::observed();
        let script = [NOTHING, written(7)];
        for result in &script[..steps] {
            bench.answer(result.clone());
        }
        bench.say(Event::Stop);
        if steps == 1 {
            assert!(!bench.has_stopped(), "it may have been taken");
            bench.answer(written(7));
        }
        if steps == 2 {
            bench.say(Event::Released);
        }
        if steps > 0 {
            bench.answer(Err(Failure::Unknown)).rest();
            let record = Record { released: false, ..record_of(&bench) };
            bench.answer(found(&Held { record, version: 7, created: 7 }));
            bench.answer(written(8));
        }
        assert!(bench.has_stopped(), "after {steps} answers");
    }
}

#[test]
fn a_store_that_refuses_is_asked_less_and_less_often() {
    let mut bench = Bench::store();
    bench.answer(NOTHING);
    for _ in 0..8 {
        bench.answer(Err(Failure::Denied));
        bench.rest();
    }
    let waited = bench.now.since(at(0));
    assert!(waited > Duration::from_secs(8), "{waited:?}");
}

#[test]
fn a_record_survives_its_bytes() {
    for identity in [&b"host 1"[..], b"", b"\xff\xfe two  words ", "ünï".as_bytes()] {
        let record = Record {
            holder: u128::MAX - 5,
            identity: Bytes::copy_from_slice(identity),
            duration: Duration::from_millis(12_345),
            taken: 99,
            released: true,
        };
        assert_eq!(Record::decode(&record.encode()), Some(record));
    }
    for other in [&b""[..], b"host", b"quorate-lease 1", b"quorate-lease 1 zz 5 0 held x"] {
        assert_eq!(Record::decode(other), None);
    }
    let two = b"quorate-lease 2 00000000000000000000000000000001 5 0 held x";
    assert_eq!(Record::decode(two), None, "another form");
}

#[test]
fn who_leads_has_the_token_of_the_write_that_took_the_key() {
    let mut held = theirs(3);
    assert_eq!(held.leader().unwrap().token, Token(3));
    (held.record.taken, held.version) = (3, 9);
    assert_eq!(held.leader().unwrap().token, Token(3), "renewed since");
    held.record.released = true;
    assert_eq!(held.leader(), None);
}

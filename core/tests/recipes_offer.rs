//! The offer recipe, step by step: what a candidate does about what it is told.
//!
//! The examples with figures are those of ZooKeeper's LeaderElectionSupport; the failures are those that
//! Curator, kazoo and others have had, by the number under which they were reported.
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]
#![allow(clippy::wildcard_enum_match_arm, reason = "one kind of output is looked for at a time")]

use std::time::Duration;

use bytes::Bytes;
use quorate_core::recipe::offer::{
    Answer, Call, Candidate, Config, Entry, Event, Input, Naming, Notice, Output, Session, State,
    queue,
};
use quorate_core::recipe::{
    Attempt, ConfigError, Failure, LeadershipChange, Loss, SessionId, Token,
};
use quorate_core::time::Instant;

const GUID: u128 = 0xabc;
const OURS: SessionId = SessionId(0x51);
const TIMEOUT: Duration = Duration::from_secs(40);

/// One candidate, and everything that it has said.
#[derive(Clone)]
struct Bench {
    candidate: Candidate,
    now: Instant,
    /// What was said since somebody looked.
    outputs: Vec<Output>,
    /// All events for listeners.
    notices: Vec<Notice>,
    /// All that the guards were told.
    changes: Vec<LeadershipChange>,
    /// All calls.
    calls: Vec<Call>,
    pending: Option<(Attempt, Call)>,
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn at(seconds: u64) -> Instant {
    Instant::ORIGIN + Duration::from_secs(seconds)
}

fn name(counter: i32) -> String {
    format!("n_{counter:010}")
}

fn listed(counters: &[i32]) -> Result<Answer, Failure> {
    let entry = |counter: &i32| Entry { name: name(*counter), created: None };
    Ok(Answer::Listed(counters.iter().map(entry).collect()))
}

fn named(names: &[&str]) -> Result<Answer, Failure> {
    let entry = |name: &&str| Entry { name: (*name).to_owned(), created: None };
    Ok(Answer::Listed(names.iter().map(entry).collect()))
}

fn created(name: &str) -> Result<Answer, Failure> {
    Ok(Answer::Created { name: name.to_owned() })
}

/// The node that a call deletes.
fn deleted(call: Call) -> String {
    let Call::Delete { name, .. } = call else { panic!("{call:?} deletes nothing") };
    name
}

/// A node of this session; the token is as good as any.
fn node(owner: SessionId, token: u64) -> Result<Answer, Failure> {
    let data = Bytes::from_static(b"host");
    Ok(Answer::Read { data, owner: Some(owner), created: Token(token) })
}

impl Bench {
    fn with(config: Config) -> Self {
        let candidate = Candidate::new(config).unwrap();
        Self {
            candidate,
            now: at(0),
            outputs: Vec::new(),
            notices: Vec::new(),
            changes: Vec::new(),
            calls: Vec::new(),
            pending: None,
        }
    }

    /// A candidate with Java's names, as the examples have them.
    fn java() -> Self {
        Self::with(Config { naming: Naming::Java, ..Config::new(&b"host"[..], GUID) })
    }

    fn guid() -> Self {
        Self::with(Config::new(&b"host"[..], GUID))
    }

    /// Started and connected.
    fn up(mut self) -> Self {
        self.say(Event::Start);
        self.connect(OURS);
        self
    }

    /// With an offer of this number.
    fn offering(mut self, counter: i32) -> Self {
        self = self.up();
        let Call::Create { name, .. } = self.call() else { panic!("{:?}", self.calls) };
        self.answer(created(&format!("{name}{counter:010}")));
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
                Output::Notice(notice) => self.notices.push(*notice),
                Output::Leadership(change) => self.changes.push(*change),
                Output::Trouble { .. } | Output::Stopped => {}
            }
        }
        self.outputs.extend(new);
        self
    }

    fn connect(&mut self, session: SessionId) -> &mut Self {
        self.say(Event::Session(Session::Connected { session, timeout: TIMEOUT }));
        self.say(Event::Session(Session::Renewed { session, sent: self.now }))
    }

    fn renew(&mut self, sent: Instant) -> &mut Self {
        self.say(Event::Session(Session::Renewed { session: OURS, sent }))
    }

    /// The call that waits for its answer.
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

    fn has_stopped(&self) -> bool {
        self.outputs.contains(&Output::Stopped)
    }

    fn creates(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call, Call::Create { .. })).count()
    }

    fn lists(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call, Call::List { .. })).count()
    }

    /// Alone in the root, and leading.
    fn leading(mut self) -> Self {
        self = self.offering(1);
        let own = self.candidate.offer().unwrap().to_owned();
        self.answer(named(&[&own]));
        self.answer(node(OURS, 7));
        assert_eq!(self.candidate.leads(), Some(Token(7)));
        self
    }

    /// Behind number 3, as number 7.
    fn ready(mut self) -> (Self, Attempt, Attempt) {
        self = self.offering(7);
        self.answer(listed(&[7, 3]));
        let own = self.attempt();
        self.answer(node(OURS, 70));
        let neighbour = self.attempt();
        assert_eq!(self.call(), Call::Read { name: name(3), watch: true });
        self.answer(node(SessionId(3), 30));
        assert_eq!(self.candidate.state(), State::Ready);
        (self, own, neighbour)
    }
}

use Notice::{
    DetermineComplete, DetermineStart, ElectedComplete, ElectedStart, OfferComplete, OfferStart,
    ReadyComplete, ReadyStart, Start, StopComplete, StopStart,
};

#[test]
fn a_candidate_without_an_identity_is_refused() {
    let refused = Candidate::new(Config::new(Bytes::new(), GUID)).unwrap_err();
    assert_eq!(refused, ConfigError::NoIdentity);
    assert!(refused.to_string().contains("identity"));
}

/// A session is kept alive by whoever keeps it; nothing else is asked of the store, by who leads or who waits.
#[test]
fn in_quiet_times_a_candidate_asks_for_nothing() {
    for mut bench in [Bench::java().leading(), Bench::java().ready().0] {
        let asked = bench.calls.len();
        let (state, notices) = (bench.candidate.state(), bench.notices.len());
        for second in 1..1_000 {
            bench.tick_at(at(10 * second));
            bench.renew(at(10 * second));
        }
        assert_eq!(bench.calls.len(), asked, "{:?}", bench.calls.last());
        assert_eq!((bench.candidate.state(), bench.notices.len()), (state, notices));
    }
}

#[test]
fn a_follower_that_becomes_leader_says_the_twelve_events_in_order() {
    let (mut bench, _, neighbour) = Bench::java().ready();
    bench.say(Event::Fired { attempt: neighbour, gone: true });
    bench.answer(listed(&[7]));
    bench.answer(node(OURS, 70));
    bench.say(Event::Stop);
    bench.say(Event::Released);
    bench.answer(Ok(Answer::Done));
    assert_eq!(
        bench.notices,
        [
            Start,
            OfferStart,
            OfferComplete,
            DetermineStart,
            DetermineComplete,
            ReadyStart,
            ReadyComplete,
            DetermineStart,
            DetermineComplete,
            ElectedStart,
            ElectedComplete,
            StopStart,
            StopComplete,
        ]
    );
    assert!(bench.has_stopped());
    assert_eq!(bench.candidate.state(), State::Stop);
}

#[test]
fn a_neighbour_that_goes_between_list_and_watch_is_no_reason_to_be_ready() {
    let mut bench = Bench::java().offering(7);
    bench.answer(listed(&[3, 7]));
    bench.answer(node(OURS, 70));
    bench.answer(Err(Failure::Absent));
    bench.answer(listed(&[7]));
    bench.answer(node(OURS, 70));
    let determined = [
        DetermineStart,
        DetermineComplete,
        DetermineStart,
        DetermineComplete,
        ElectedStart,
        ElectedComplete,
    ];
    assert_eq!(bench.notices[3..], determined);
    assert_eq!(bench.creates(), 1);
}

#[test]
fn numbers_with_gaps_are_a_row_and_the_neighbour_need_not_be_the_leader() {
    let mut bench = Bench::java().offering(12);
    bench.answer(listed(&[12, 3, 7]));
    bench.answer(node(OURS, 120));
    let watch = bench.attempt();
    assert_eq!(bench.call(), Call::Read { name: name(7), watch: true });
    bench.answer(node(SessionId(7), 70));

    let lists = bench.lists();
    bench.say(Event::Fired { attempt: watch, gone: true });
    bench.answer(listed(&[12, 3]));
    let watch = bench.attempt();
    assert_eq!(bench.call(), Call::Read { name: name(3), watch: true });
    bench.answer(node(SessionId(3), 30));
    assert_eq!((bench.lists() - lists, bench.candidate.leads()), (1, None));

    bench.say(Event::Fired { attempt: watch, gone: true });
    bench.answer(listed(&[12]));
    bench.answer(node(OURS, 120));
    assert_eq!(bench.candidate.leads(), Some(Token(120)));
}

#[test]
fn taking_over_takes_two_round_trips() {
    let (mut bench, _, neighbour) = Bench::java().ready();
    let before = bench.calls.len();
    bench.say(Event::Fired { attempt: neighbour, gone: true });
    bench.answer(listed(&[7]));
    bench.answer(node(OURS, 70));
    assert_eq!(bench.candidate.state(), State::Elected);
    assert_eq!(bench.calls.len() - before, 2);
}

#[test]
fn a_neighbour_that_changes_is_watched_again_and_nothing_is_listed() {
    let (mut bench, _, neighbour) = Bench::java().ready();
    let (lists, notices) = (bench.lists(), bench.notices.len());
    bench.say(Event::Fired { attempt: neighbour, gone: false });
    assert_eq!(bench.call(), Call::Read { name: name(3), watch: true });
    bench.answer(node(SessionId(3), 30));
    assert_eq!((bench.lists(), bench.notices.len()), (lists, notices));
    assert_eq!(bench.candidate.state(), State::Ready);
}

#[test]
fn our_own_deletion_is_not_our_neighbours() {
    let (mut bench, own, _) = Bench::java().ready();
    bench.say(Event::Fired { attempt: own, gone: true });
    assert!(matches!(bench.call(), Call::Create { .. }), "{:?}", bench.call());
    assert_eq!(bench.notices.last(), Some(&OfferStart));
}

#[test]
fn an_offer_that_is_missing_is_looked_for_behind_everything_and_then_made_anew() {
    let mut bench = Bench::java().offering(7);
    bench.answer(listed(&[3]));
    assert_eq!(bench.call(), Call::List { fresh: true }, "the server may lag");
    bench.answer(listed(&[3]));
    assert!(matches!(bench.call(), Call::Create { .. }));
    assert_eq!(bench.candidate.state(), State::Offer);
}

#[test]
fn a_root_that_is_missing_is_made() {
    let mut bench = Bench::java().up();
    bench.answer(Err(Failure::Absent));
    assert_eq!(bench.call(), Call::EnsureRoot);
    bench.answer(Ok(Answer::Done));
    bench.answer(created(&name(0)));
    assert_eq!(bench.notices, [Start, OfferStart, OfferComplete, DetermineStart]);
}

#[test]
fn a_root_that_is_missing_though_it_was_made_is_no_reason_to_hurry() {
    let mut bench = Bench::java().up();
    bench.answer(Err(Failure::Absent));
    bench.answer(Ok(Answer::Done));
    bench.answer(Err(Failure::Absent));
    assert_eq!(bench.pending, None);
    assert!(matches!(bench.outputs.last(), Some(Output::Trouble { again: Some(_), .. })));
}

// --- whose node it is ---

/// CURATOR-696: the store still shows the node of a session that is about to be ended.
#[test]
fn a_node_of_an_earlier_session_gives_no_leadership() {
    let mut bench = Bench::java().leading();
    bench.say(Event::Session(Session::Suspended));
    bench.connect(SessionId(0x52));
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Expired)));
    bench.say(Event::Released);
    assert!(
        matches!(bench.call(), Call::Create { session: SessionId(0x52), .. }),
        "a new offer, whatever is there"
    );
    bench.answer(created(&name(2)));
    bench.answer(listed(&[1, 2]));
    bench.answer(node(SessionId(0x52), 20));
    assert_eq!(bench.call(), Call::Read { name: name(1), watch: true });
    bench.answer(node(OURS, 7));
    assert_eq!((bench.candidate.state(), bench.candidate.leads()), (State::Ready, None));
}

#[test]
fn an_offer_that_another_session_owns_is_not_ours() {
    let mut bench = Bench::guid().offering(1);
    let own = bench.candidate.offer().unwrap().to_owned();
    bench.answer(named(&[&own]));
    bench.answer(node(SessionId(0x50), 7));
    assert_eq!(bench.candidate.leads(), None);
    assert!(matches!(bench.call(), Call::Create { .. }));
}

#[test]
fn what_an_earlier_session_of_ours_left_behind_is_deleted() {
    let mut bench = Bench::guid().offering(2);
    let own = bench.candidate.offer().unwrap().to_owned();
    let old = own.replace("0000000002", "0000000001");
    bench.answer(named(&[&old, &own]));
    assert_eq!(deleted(bench.call()), old);
}

// --- one thing at a time ---

/// CURATOR-653: one callback found us first in the row, and another one deleted what it had found.
#[test]
fn an_answer_from_before_the_reconnection_is_dropped() {
    let mut bench = Bench::java().offering(1);
    bench.answer(listed(&[1]));
    let (before, _) = bench.pending.clone().unwrap();
    bench.say(Event::Session(Session::Suspended));
    bench.connect(OURS);
    let calls = bench.calls.len();
    bench.say(Event::Done { attempt: before, result: node(OURS, 7) });
    assert_eq!((bench.calls.len(), bench.candidate.leads()), (calls, None));
    assert_eq!(bench.call(), Call::List { fresh: false });
}

/// CURATOR-644: each of two made a new offer behind the other's, for ever.
#[test]
fn a_missing_neighbour_is_a_reason_to_list_and_never_to_offer() {
    let mut bench = Bench::java().offering(9);
    for gone in [8, 7, 6, 5, 4] {
        bench.answer(listed(&[gone, 9]));
        if gone == 8 {
            bench.answer(node(OURS, 90));
        }
        assert_eq!(bench.call(), Call::Read { name: name(gone), watch: true });
        bench.answer(Err(Failure::Absent));
        assert_eq!(bench.call(), Call::List { fresh: false });
    }
    assert_eq!(bench.creates(), 1);
}

#[test]
fn a_connection_event_makes_at_most_one_offer() {
    let mut bench = Bench::guid().up();
    for session in 0x60..0x70 {
        let creates = bench.creates();
        bench.connect(SessionId(session));
        bench.connect(SessionId(session));
        assert!(bench.creates() - creates <= 1);
        bench.answer(created(&format!("{GUID:032x}-n_{session:010}")));
    }
}

// --- answers that never come ---

/// The note on GUIDs of ZooKeeper's recipes page; CURATOR-45.
#[test]
fn an_offer_whose_answer_was_lost_is_found_by_its_name() {
    let mut bench = Bench::guid().up();
    let Call::Create { name: prefix, .. } = bench.call() else { panic!("no offer") };
    bench.answer(Err(Failure::Unknown));
    bench.rest();
    assert_eq!(bench.call(), Call::List { fresh: true });
    let ours = format!("{prefix}0000000004");
    bench.answer(named(&["n_0000000002", &ours]));
    assert_eq!(bench.call(), Call::Read { name: ours.clone(), watch: false });
    bench.answer(node(OURS, 40));
    assert_eq!((bench.candidate.offer(), bench.creates()), (Some(&*ours), 1));
}

#[test]
fn an_offer_whose_answer_was_lost_is_found_by_its_owner_where_names_do_not_tell() {
    let mut bench = Bench::java().up();
    bench.answer(Err(Failure::Unknown));
    bench.rest();
    bench.answer(listed(&[2, 4, 5]));
    assert_eq!(bench.call(), Call::Read { name: name(5), watch: false }, "the youngest first");
    bench.answer(node(SessionId(9), 50));
    bench.answer(node(OURS, 40));
    assert_eq!((bench.candidate.offer(), bench.creates()), (Some(&*name(4)), 1));
}

#[test]
fn an_offer_that_was_never_made_is_made_when_that_is_certain() {
    let mut bench = Bench::java().up();
    bench.answer(Err(Failure::Unknown));
    bench.rest();
    bench.answer(listed(&[2]));
    bench.answer(Err(Failure::Absent));
    assert!(matches!(bench.call(), Call::Create { .. }));
    assert_eq!(bench.creates(), 2);
}

#[test]
fn a_connection_that_is_lost_while_our_offer_is_looked_for_ends_in_no_second_one() {
    for stops in [false, true] {
        let mut bench = Bench::guid().up();
        let Call::Create { name: prefix, .. } = bench.call() else { panic!("no offer") };
        bench.answer(Err(Failure::Unknown));
        bench.rest();
        bench.answer(named(&[&format!("{prefix}0000000004")]));
        if stops {
            bench.say(Event::Stop);
            assert!(!bench.has_stopped(), "there may be one");
        } else {
            bench.say(Event::Session(Session::Suspended));
            bench.connect(OURS);
        }
        assert_eq!((bench.call(), bench.creates()), (Call::List { fresh: true }, 1));
    }
}

#[test]
fn an_offer_that_turns_up_late_is_deleted() {
    let mut bench = Bench::guid().up();
    bench.answer(Err(Failure::Unknown));
    bench.rest();
    bench.answer(named(&[]));
    let Call::Create { name: prefix, .. } = bench.call() else { panic!("no offer") };
    let (first, second) = (format!("{prefix}0000000001"), format!("{prefix}0000000002"));
    bench.answer(created(&second));
    bench.answer(named(&[&first, &second]));
    assert_eq!(deleted(bench.call()), first);
}

#[test]
fn a_stop_waits_for_the_answer_to_a_create_and_deletes_what_was_made() {
    let mut bench = Bench::guid().up();
    bench.say(Event::Stop);
    assert!(!bench.has_stopped());
    bench.answer(created("whatever-0000000001"));
    assert_eq!(deleted(bench.call()), "whatever-0000000001".to_owned());
    bench.answer(Ok(Answer::Done));
    assert!(bench.has_stopped());
}

#[test]
fn a_delete_is_repeated_until_it_is_confirmed() {
    let (mut bench, ..) = Bench::java().ready();
    bench.say(Event::Stop);
    for _ in 0..5 {
        assert_eq!(deleted(bench.call()), name(7));
        bench.answer(Err(Failure::Unknown));
        assert!(!bench.has_stopped());
        bench.rest();
    }
    bench.answer(Err(Failure::Absent));
    assert!(bench.has_stopped());
}

#[test]
fn a_delete_need_not_be_confirmed_when_the_session_is_over() {
    let (mut bench, ..) = Bench::java().ready();
    bench.say(Event::Stop);
    bench.say(Event::Session(Session::Suspended));
    assert!(!bench.has_stopped());
    bench.say(Event::Session(Session::Expired));
    assert!(bench.has_stopped());
}

/// kazoo 9b0a793: a watch for a node to appear stays on a node that never does.
#[test]
fn a_watch_is_left_only_with_a_read_of_what_is_there() {
    let (bench, ..) = Bench::java().ready();
    assert!(bench.calls.iter().all(|call| match call {
        Call::Read { .. } => true,
        other => !format!("{other:?}").contains("watch"),
    }));
}

#[test]
fn a_stop_at_every_step_leaves_nothing_behind() {
    let script: [Result<Answer, Failure>; 6] = [
        Err(Failure::Absent),
        Ok(Answer::Done),
        created(&name(7)),
        listed(&[3, 7]),
        node(OURS, 70),
        node(SessionId(3), 30),
    ];
    for steps in 0..=script.len() {
        let mut bench = Bench::java().up();
        for result in &script[..steps] {
            bench.answer(result.clone());
        }
        bench.say(Event::Stop);
        if let Some((_, Call::Create { .. })) = bench.pending {
            bench.answer(created(&name(7)));
        }
        if steps != 1 {
            assert_eq!(deleted(bench.call()), name(7), "after {steps} answers");
            bench.answer(Ok(Answer::Done));
        }
        assert!(bench.has_stopped(), "after {steps} answers");
        assert_eq!(bench.notices.last(), Some(&StopComplete));
        assert_eq!(bench.candidate.deadline(), None);
    }
}

// --- until when ---

/// CURATOR-444, CURATOR-460: the store counts from when it heard of us, not from when we noticed.
#[test]
fn leadership_ends_before_the_store_can_end_the_session() {
    let mut bench = Bench::java().leading();
    assert_eq!(bench.candidate.confirmed_until(), Some(at(36)));
    // What was sent at 0 is answered at 10; the connection is lost at 13.
    bench.now = at(10);
    bench.renew(at(0));
    bench.now = at(13);
    bench.say(Event::Session(Session::Suspended));
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Suspended));
    assert_eq!(
        (bench.candidate.confirmed_until(), bench.candidate.deadline()),
        (None, Some(at(36)))
    );
    bench.tick_at(at(36));
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Unconfirmed)));
    assert_eq!(bench.notices.last(), Some(&Notice::Failed));
}

#[test]
fn leadership_lasts_as_long_as_the_store_confirms_the_session() {
    let mut bench = Bench::java().leading();
    for seconds in (10..200).step_by(10) {
        bench.now = at(seconds);
        bench.renew(at(seconds - 1));
        assert_eq!(
            bench.changes.last(),
            Some(&LeadershipChange::Confirmed { until: at(seconds + 35) })
        );
    }
}

#[test]
fn a_renewal_of_another_session_confirms_nothing() {
    let mut bench = Bench::java().leading();
    bench.now = at(10);
    bench.say(Event::Session(Session::Renewed { session: SessionId(0x99), sent: at(10) }));
    assert_eq!(bench.candidate.confirmed_until(), Some(at(36)));
}

/// Servers of one ensemble may bound what they grant differently.
#[test]
fn a_session_that_is_taken_up_again_for_a_shorter_time_is_relied_on_no_longer() {
    let mut bench = Bench::java().leading();
    bench.now = at(5);
    bench.say(Event::Session(Session::Suspended));
    let timeout = TIMEOUT / 4;
    bench.say(Event::Session(Session::Connected { session: OURS, timeout }));
    let over = at(9);
    assert_eq!(
        bench.candidate.deadline(),
        Some(over),
        "nine tenths of ten seconds from the contact"
    );
    bench.now = over;
    bench.say(Event::Tick);
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Unconfirmed)));
}

#[test]
fn after_a_reconnection_leadership_is_confirmed_when_our_node_was_read_again() {
    let mut bench = Bench::java().leading();
    bench.now = at(5);
    bench.say(Event::Session(Session::Suspended));
    bench.now = at(6);
    bench.connect(OURS);
    assert_eq!(
        bench.changes.last(),
        Some(&LeadershipChange::Suspended),
        "a watch may have been missed"
    );
    bench.answer(node(OURS, 7));
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Confirmed { until: at(42) }));
    assert_eq!(bench.changes.len(), 3, "the same term");
}

#[test]
fn nobody_is_elected_whose_session_was_not_confirmed() {
    let mut bench = Bench::java();
    bench.say(Event::Start);
    bench.say(Event::Session(Session::Connected { session: OURS, timeout: TIMEOUT }));
    bench.answer(created(&name(1)));
    bench.answer(listed(&[1]));
    bench.answer(node(OURS, 7));
    assert_eq!(bench.candidate.leads(), None);
    bench.renew(at(0));
    assert_eq!(bench.candidate.leads(), Some(Token(7)));
}

/// A process that was stopped for longer than its session lasts, and goes on.
#[test]
fn a_paused_leader_says_lost_before_anything_else() {
    let mut bench = Bench::java().leading();
    let own = bench.candidate.offer().unwrap().to_owned();
    bench.outputs.clear();
    bench.now = at(100);
    bench.renew(at(99));
    assert_eq!(bench.outputs[0], Output::Leadership(LeadershipChange::Lost(Loss::Unconfirmed)));
    bench.say(Event::Released);
    assert_eq!(deleted(bench.call()), own, "its term is over, and so is its node");
}

/// That nobody works was said while the term went on, when it means nothing: somebody may have begun since.
#[test]
fn guards_that_were_gone_before_the_term_was_over_may_be_there_again() {
    let mut bench = Bench::java().leading();
    bench.now = at(100);
    bench.say(Event::Released);
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Unconfirmed)));
    assert_eq!(bench.pending, None, "they are waited for");
    bench.say(Event::Released);
    assert!(matches!(bench.call(), Call::Delete { .. }));
}

// --- the end of a term ---

#[test]
fn a_deleted_offer_ends_the_term_at_once() {
    let mut bench = Bench::java().offering(1);
    bench.answer(listed(&[1]));
    let own = bench.attempt();
    bench.answer(node(OURS, 7));
    bench.say(Event::Fired { attempt: own, gone: true });
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Deleted)));
    bench.say(Event::Released);
    assert!(matches!(bench.call(), Call::Create { .. }));
}

/// Jepsen's analysis of etcd 3.4.3: a waiter whose own key was gone was told that it had the lock.
#[test]
fn a_waiter_whose_offer_is_gone_does_not_lead_when_its_neighbour_goes() {
    let (mut bench, _, neighbour) = Bench::java().ready();
    bench.say(Event::Fired { attempt: neighbour, gone: true });
    bench.answer(listed(&[]));
    bench.answer(listed(&[]));
    assert_eq!(bench.candidate.leads(), None);
    assert!(matches!(bench.call(), Call::Create { .. }));
}

#[test]
fn a_node_is_given_back_when_the_guarded_work_has_ended() {
    let mut bench = Bench::java().leading();
    bench.say(Event::Stop);
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Release));
    assert_eq!(bench.pending, None, "the work still runs");
    bench.renew(at(0));
    bench.now = at(20);
    bench.renew(at(20));
    assert_eq!(
        bench.changes.last(),
        Some(&LeadershipChange::Confirmed { until: at(56) }),
        "it is kept meanwhile"
    );
    bench.say(Event::Released);
    assert_eq!(bench.changes.last(), Some(&LeadershipChange::Lost(Loss::Stopped)));
    assert!(matches!(bench.call(), Call::Delete { .. }));
}

#[test]
fn a_new_term_begins_after_the_guards_of_the_last_have_gone() {
    let mut bench = Bench::java().leading();
    bench.say(Event::Session(Session::Expired));
    bench.connect(SessionId(0x52));
    assert_eq!(bench.pending, None);
    bench.say(Event::Released);
    assert!(matches!(bench.call(), Call::Create { .. }));
}

#[test]
fn a_candidate_that_is_not_to_start_again_withdraws_and_waits() {
    let mut bench = Bench::with(Config {
        naming: Naming::Java,
        restart: false,
        ..Config::new(&b"host"[..], GUID)
    });
    bench = bench.offering(1);
    bench.answer(Err(Failure::Denied));
    assert_eq!(
        (bench.notices.last(), bench.candidate.state()),
        (Some(&Notice::Failed), State::Failed)
    );
    bench.rest();
    assert_eq!(deleted(bench.call()), name(1));
    bench.answer(Ok(Answer::Done));
    assert_eq!((bench.pending.clone(), bench.candidate.deadline()), (None, None));
    bench.say(Event::Start);
    assert!(matches!(bench.call(), Call::Create { .. }));
}

#[test]
fn a_store_that_refuses_is_asked_less_and_less_often() {
    for failure in [Failure::Denied, Failure::Unauthenticated, Failure::Rejected] {
        let mut bench = Bench::guid().up();
        let mut rests = Vec::new();
        for _ in 0..10 {
            bench.answer(Err(failure));
            let Some(Output::Trouble { again: Some(rest), .. }) = bench.outputs.last() else {
                panic!("{:?}", bench.outputs.last());
            };
            rests.push(*rest);
            bench.rest();
        }
        assert!(rests[0] >= ms(75) && rests[0] <= ms(125), "{rests:?}");
        assert!(rests[9] >= ms(7_500) && rests[9] <= ms(12_500), "{rests:?}");
    }
}

/// The offer can be made, and what follows cannot: the next offer is made after a longer rest.
#[test]
fn a_neighbour_that_may_not_be_read_makes_no_flood_of_offers() {
    let mut bench = Bench::java().up();
    for number in 10..20 {
        bench.answer(created(&name(number)));
        bench.answer(listed(&[3, number]));
        bench.answer(node(OURS, 70));
        assert_eq!(bench.call(), Call::Read { name: name(3), watch: true });
        bench.answer(Err(Failure::Denied));
        bench.rest();
        assert_eq!(deleted(bench.call()), name(number));
        bench.answer(Ok(Answer::Done));
    }
    assert!(bench.now > at(30), "{:?}", bench.now);
}

#[test]
fn a_call_that_is_never_answered_is_taken_for_lost() {
    let mut bench = Bench::guid().up();
    let (attempt, _) = bench.pending.clone().unwrap();
    bench.rest();
    assert_eq!(bench.now, at(10));
    bench.rest();
    assert_eq!(bench.call(), Call::List { fresh: true });
    let calls = bench.calls.len();
    bench.say(Event::Done { attempt, result: created("late-n_0000000001") });
    assert_eq!((bench.calls.len(), bench.candidate.offer()), (calls, None), "it is looked for");
}

#[test]
fn a_start_during_a_stop_comes_after_it() {
    let (mut bench, ..) = Bench::java().ready();
    bench.say(Event::Stop).say(Event::Start);
    bench.answer(Ok(Answer::Done));
    assert!(bench.has_stopped());
    assert!(matches!(bench.call(), Call::Create { .. }));
}

#[test]
fn after_a_stop_a_start_makes_another_offer_in_the_same_session() {
    let mut bench = Bench::java().leading();
    bench.say(Event::Stop).say(Event::Released);
    bench.answer(Ok(Answer::Done));
    assert!(bench.has_stopped());
    bench.say(Event::Start);
    assert!(matches!(bench.call(), Call::Create { session: OURS, .. }));
    bench.answer(created(&name(2)));
    bench.answer(listed(&[2]));
    bench.answer(node(OURS, 20));
    assert_eq!(bench.candidate.leads(), Some(Token(20)), "the session is still confirmed");
}

// --- names ---

fn order(names: &[&str]) -> Vec<String> {
    let entries: Vec<Entry> =
        names.iter().map(|name| Entry { name: (*name).to_owned(), created: None }).collect();
    queue(&entries).into_iter().map(|entry| entry.name.clone()).collect()
}

#[test]
fn offers_of_all_kinds_stand_in_one_row_and_the_rest_is_ignored() {
    let row = order(&[
        "n_0000000012",
        "67f2c3d4-n_0000000003",
        "100004e8a3b0001-0000000007",
        "_c_67f2c3d4-1111-latch-0000000009",
        "67f2c3d4__lock__0000000005",
        "n_12",
        "n_00000000013",
        "n_",
        "0000000001",
        "config",
        "n_000000000x",
        "n_999999999999",
        "naïve-ünï",
        "",
    ]);
    let counters: Vec<_> = row.iter().map(|name| &name[name.len() - 10..]).collect();
    assert_eq!(counters, ["0000000003", "0000000005", "0000000007", "0000000009", "0000000012"]);
}

/// Curator takes a name for its own only with a UUID in it (`ProtectedUtils.isProtectedZNode`); kazoo has no dashes.
#[test]
fn beside_curator_and_kazoo_our_offers_are_called_as_theirs_are() {
    let guid = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
    for (naming, expected) in [
        (Naming::Latch, "_c_01234567-89ab-cdef-0123-456789abcdef-latch-"),
        (Naming::Kazoo, "0123456789abcdef0123456789abcdef__lock__"),
    ] {
        let bench = Bench::with(Config { naming, ..Config::new(&b"host"[..], guid) }).up();
        let Call::Create { name, .. } = bench.call() else { panic!("no offer") };
        assert_eq!(name, expected);
    }
}

/// The counter is a Java `int`: after 2147483647 comes -2147483648, with eleven characters.
#[test]
fn the_row_goes_on_when_the_counter_wraps() {
    let names = ["n_-2147483648", "n_2147483647", "n_-2147483647", "n_2147483646"];
    let row = order(&names);
    assert_eq!(row, ["n_2147483646", "n_2147483647", "n_-2147483648", "n_-2147483647"]);
    assert_eq!(order(&["n_0000000001", "n_-000000002", "n_-000000001"])[0], "n_-000000002");
    let dashed = order(&["5f-0000000000", "5f--000000001", "5f-0000000001"]);
    assert_eq!(dashed, ["5f--000000001", "5f-0000000000", "5f-0000000001"]);
}

#[test]
fn where_the_store_tells_when_keys_were_created_names_do_not_matter() {
    let entry = |name: &str, created| Entry { name: name.to_owned(), created: Some(created) };
    let entries = [entry("694d7f", 90), entry("694d00", 12), entry("anything", 40)];
    let row: Vec<_> = queue(&entries).into_iter().map(|entry| &*entry.name).collect();
    assert_eq!(row, ["694d00", "anything", "694d7f"]);
}

#[test]
fn a_key_that_is_named_like_its_lease_is_ours_if_it_is_there_already() {
    let mut bench =
        Bench::with(Config { naming: Naming::Lease, ..Config::new(&b"host"[..], GUID) }).up();
    assert!(matches!(bench.call(), Call::Create { name, .. } if name == "51"));
    bench.answer(Err(Failure::Exists));
    bench.rest();
    let entry = |name: &str, created| Entry { name: name.to_owned(), created: Some(created) };
    bench.answer(Ok(Answer::Listed(vec![entry("511", 4), entry("51", 9)])));
    bench.answer(node(OURS, 9));
    assert_eq!(bench.candidate.offer(), Some("51"));
}

/// Both went and came back under their names, and each would wait for the other.
#[test]
fn a_neighbour_that_came_back_behind_us_under_its_name_is_not_waited_for() {
    let mut bench =
        Bench::with(Config { naming: Naming::Lease, ..Config::new(&b"host"[..], GUID) }).up();
    bench.answer(created("51"));
    let entry = |name: &str, created| Entry { name: name.to_owned(), created: Some(created) };
    bench.answer(Ok(Answer::Listed(vec![entry("44", 4), entry("51", 9)])));
    bench.answer(node(OURS, 9));
    assert_eq!(bench.call(), Call::Read { name: "44".to_owned(), watch: true });
    bench.answer(node(SessionId(0x44), 12));
    assert_eq!(bench.call(), Call::List { fresh: false });
    bench.answer(Ok(Answer::Listed(vec![entry("44", 12), entry("51", 9)])));
    bench.answer(node(OURS, 9));
    assert_eq!(bench.candidate.leads(), Some(Token(9)));
}

/// Calls of one client may overtake each other in etcd: a delete whose connection was lost arrives when the same
/// lease has made its key anew, and leads with it.
#[test]
fn a_delete_says_which_of_the_keys_of_one_name_is_meant() {
    let mut bench =
        Bench::with(Config { naming: Naming::Lease, ..Config::new(&b"host"[..], GUID) }).up();
    bench.answer(created("51"));
    let entry = |created| Entry { name: "51".to_owned(), created: Some(created) };
    bench.answer(Ok(Answer::Listed(vec![entry(9)])));
    bench.answer(node(OURS, 9));
    assert_eq!(bench.candidate.leads(), Some(Token(9)));
    bench.say(Event::Stop).say(Event::Released);
    assert_eq!(bench.call(), Call::Delete { name: "51".to_owned(), created: Some(Token(9)) });
}

#[test]
fn a_key_that_was_never_read_is_read_before_it_is_deleted() {
    let mut bench =
        Bench::with(Config { naming: Naming::Lease, ..Config::new(&b"host"[..], GUID) }).up();
    bench.say(Event::Stop);
    bench.answer(created("51"));
    assert_eq!(bench.call(), Call::List { fresh: true });
    let entry = Entry { name: "51".to_owned(), created: Some(9) };
    bench.answer(Ok(Answer::Listed(vec![entry])));
    assert_eq!(bench.call(), Call::Read { name: "51".to_owned(), watch: false });
    bench.answer(node(OURS, 9));
    assert_eq!(bench.call(), Call::Delete { name: "51".to_owned(), created: Some(Token(9)) });
    bench.answer(Ok(Answer::Done));
    assert!(bench.has_stopped());
}

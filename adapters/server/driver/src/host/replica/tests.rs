//! Orders, carried out in the loop and on the thread, and what comes of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use async_channel::{Receiver, bounded};
use bytes::{Bytes, BytesMut};
use futures_lite::future::block_on;
use quorate_application::clients::{
    AtHand, ClientId, Clients, Close, Frame, Host, Input, NoClients, Output,
};
use quorate_application::clients::{SyncId, Transport};
use quorate_application::{Facts, Prepared, Restore, RestoreError, Snapshot, SnapshotError};
use quorate_core::id::{ServerId, Ticket};
use quorate_core::message::LearnerInfo;
use quorate_core::output::Write;
use quorate_core::txn::{RequestId, TxnHeader};
use tempfile::TempDir;

use super::*;
use crate::disk::Disk;
use crate::host::callers::read_closure;
use crate::permits::Permits;

/// Notes what it is told to do. A state is the last transaction in it, as eight bytes.
struct Notes {
    told: Told,
    /// Waits for a word before each transaction, if there is a sender.
    gate: Receiver<()>,
    /// Hears that it begins to wait.
    waits: Sender<()>,
}

/// Notes what it is told of clients, and closes the connection of one that sends what is no frame.
struct Noted {
    told: Told,
    deadline: Option<CoreInstant>,
}

impl Clients<Notes> for Noted {
    type Framing = NoClients;

    const SERVES: bool = true;

    fn framing(&self) -> NoClients {
        NoClients
    }

    fn step_into(&mut self, input: Input, application: &mut Notes, out: &mut Vec<Output>) {
        let Input { at, event, .. } = input;
        let note = if let clients::Event::Connected { client, .. } = event {
            self.deadline = Some(CoreInstant(5));
            format!("client {}", client.0)
        } else if let clients::Event::Received { client, frames } = event {
            if frames.contains(&Frame::Garbled) {
                out.push(Output::Close { client, how: Close::Reset });
            }
            out.push(Output::Sync(SyncId(client.0)));
            format!("frames {}", frames.len())
        } else if event == clients::Event::Tick {
            self.deadline = None;
            format!("tick {}", at.0)
        } else {
            format!("{event:?}")
        };
        application.note(note);
    }

    fn on_applied(
        &mut self,
        _: CoreInstant,
        txn: &Txn,
        (): &(),
        _: &mut Notes,
        out: &mut Vec<Output>,
    ) {
        if txn.body == "told" {
            self.told.lock().unwrap().push(format!("told of {}", txn.zxid.0));
        }
        if txn.body == "halt" {
            out.extend([Output::Vacated, Output::Halt("as asked for".to_owned())]);
        }
    }

    fn deadline(&self) -> Option<CoreInstant> {
        self.deadline
    }

    fn at_hand(&mut self, _: &mut Notes) -> AtHand {
        let answer = |text: &'static [u8]| vec![(*b"word", Bytes::from_static(text))];
        AtHand { now: answer(b"serves"), retired: answer(b"does not") }
    }
}

const A_LONG_TIME: Duration = Duration::from_secs(3600);

type Told = Arc<Mutex<Vec<String>>>;

struct State(i64);

impl Snapshot for State {
    fn next(&mut self, out: &mut BytesMut) -> Result<bool, SnapshotError> {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(false)
    }
}

impl Notes {
    fn note(&self, what: String) {
        self.told.lock().unwrap().push(what);
    }
}

/// The bytes of a state.
#[derive(Default)]
struct Eight(Vec<u8>);

impl Restore for Eight {
    type State = i64;

    fn push(&mut self, bytes: &mut &[u8]) -> Result<Option<i64>, RestoreError> {
        let (now, later) = bytes.split_at(bytes.len().min(8 - self.0.len()));
        self.0.extend_from_slice(now);
        *bytes = later;
        Ok(self.0.first_chunk().map(|state| i64::from_be_bytes(*state)))
    }
}

impl Application for Notes {
    type Snapshot = State;
    type Staged = i64;
    type Restore = Eight;
    type Effect = ();
    type Clients = Noted;

    const PROTOCOL: i32 = LearnerInfo::OTHER_APPLICATION;

    fn clients(&mut self, _: Host) -> Noted {
        Noted { told: Arc::clone(&self.told), deadline: None }
    }

    fn prepare(&mut self, request: &Request, _: Origin, _: &Facts) -> Prepared {
        self.note(format!("prepare {}", request.id.cxid));
        Prepared { kind: 5, body: request.body.clone() }
    }

    fn apply(&mut self, txn: &Txn) {
        let _ = self.waits.try_send(());
        let _ = self.gate.recv_blocking();
        assert_ne!(txn.body, "panic", "as asked for");
        self.note(format!("apply {}", txn.zxid.0));
    }

    fn reply((): &()) -> Bytes {
        Bytes::new()
    }

    fn void(&mut self) {
        self.note("void".to_owned());
    }

    fn abandon(&mut self) {
        self.note("abandon".to_owned());
    }

    fn snapshot(&self) -> State {
        State(0)
    }

    fn restore(_label: Zxid) -> Eight {
        Eight::default()
    }

    fn staged_snapshot(staged: &i64) -> State {
        State(*staged)
    }

    fn adopt(&mut self, staged: i64) {
        self.note(format!("adopt {staged}"));
    }
}

struct Stage {
    replica: Replica<Notes>,
    told: Told,
    /// While it is there, each transaction waits for a word.
    gate: Option<Sender<()>>,
    waits: Receiver<()>,
    woken: Receiver<()>,
    /// How often the clock was looked at.
    looks: Arc<AtomicU64>,
    disk: Disk,
    tickets: u64,
    _dir: TempDir,
}

impl Stage {
    fn new(staged: Option<i64>) -> Self {
        let (disk, dir) = stream::tests::disk();
        let (wake, woken) = bounded(1);
        let told = Told::default();
        let ((gate, gate_kept), (begins, waits)) = (bounded(1), bounded(1));
        let looks = Arc::new(AtomicU64::new(0));
        let looked = Arc::clone(&looks);
        let mut application = Notes { told: Arc::clone(&told), gate: gate_kept, waits: begins };
        let host = Host {
            id: ServerId(1),
            tick: Duration::ZERO,
            frame_bytes_max: 0,
            txn_bytes_max: 0,
            remembered: None,
        };
        let mut replica = Replica::new(ReplicaParts {
            clients: application.clients(host),
            clock: Arc::new(move || {
                looked.fetch_add(1, Ordering::Relaxed);
                CoreInstant(7)
            }),
            application,
            staged: staged.map(|label| (Zxid(label), label)),
            client: 7,
            txn_bytes_max: Txn::BYTES_MAX,
            alone: false,
            disk: disk.handle(),
            inbox: Arc::new(Inbox::new(move || _ = wake.try_send(()))),
            keep_alive: KeepAlive::idle(),
        });
        drop(gate);
        // However slow this machine is: what is to be slow says so.
        replica.pace = Pace { inline: A_LONG_TIME, slow: A_LONG_TIME };
        Self { replica, told, gate: None, waits, woken, looks, disk, tickets: 0, _dir: dir }
    }

    /// From now on, transactions wait.
    fn close_gate(&mut self) {
        let (gate, kept) = bounded(1);
        self.replica.worker.as_mut().unwrap().application.gate = kept;
        self.gate = Some(gate);
    }

    fn write(&mut self, write: Write) {
        self.tickets += 1;
        if let Write::Install { label, .. } = &write {
            self.replica.install(*label);
        }
        self.disk.write(Ticket(self.tickets), write);
    }

    fn append(&mut self, zxids: impl IntoIterator<Item = i64>) {
        self.write(Write::Append(zxids.into_iter().map(txn).collect()));
    }

    /// Until all that was written is durable.
    fn sync(&mut self) {
        loop {
            if block_on(self.disk.durable()).unwrap() == Ticket(self.tickets) {
                return;
            }
        }
    }

    fn run(&mut self) -> ReplicaOutput {
        let mut then = ReplicaOutput::default();
        self.replica.run(&mut then).unwrap();
        then
    }

    fn deliver(&mut self, zxids: impl IntoIterator<Item = i64>) -> Vec<Event> {
        for zxid in zxids {
            self.replica.deliver(txn(zxid));
        }
        self.run().events
    }

    /// What comes of all that is under way, until this does.
    fn until(&mut self, event: &Event) -> Vec<Event> {
        let mut events = self.run().events;
        while !events.contains(event) {
            self.woken.recv_blocking().unwrap();
            events.extend(self.run().events);
        }
        events
    }

    /// Runs until the application has come so far.
    fn until_applied(&mut self, zxid: i64) {
        drop(self.run());
        while self.replica.applied() < Zxid(zxid) {
            self.woken.recv_blocking().unwrap();
            drop(self.run());
        }
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }

    fn read_local(&mut self) -> Result<(), ReadError> {
        let permit = block_on(Permits::new(1).take());
        let (read, mut outcome) = read_closure(permit, |_: &Notes| ());
        self.replica.read_local(read);
        drop(self.run());
        outcome.try_recv().unwrap().expect("it was answered").map(|_| ())
    }

    /// Receives a snapshot, from its first byte to its signature.
    fn receive(&mut self, label: i64) {
        let intake = self.replica.receive(Zxid(label)).unwrap();
        intake.put(&label.to_be_bytes());
        intake.put(b"\0\0\0\x0aBenWasHererest");
        assert_eq!(block_on(intake.done()).unwrap().unread, "rest");
    }
}

fn install(label: i64) -> Write {
    let membership = Bytes::from_static(b"server.1=127.0.0.1:2888:3888\nversion=0");
    Write::Install { label: Zxid(label), membership, next: None }
}

fn txn(zxid: i64) -> Txn {
    let header = TxnHeader { client: 7, cxid: 1000, time: 1, kind: 5 };
    Txn { zxid: Zxid(zxid), header, body: Bytes::from_static(&[0; 100]) }
}

fn request(cxid: i32) -> Request {
    let id = RequestId { client: 7, cxid };
    Request { id, op: 5, body: Bytes::from_static(b"body"), identities: None }
}

fn applies(zxids: impl IntoIterator<Item = i64>) -> Vec<String> {
    zxids.into_iter().map(|zxid| format!("apply {zxid}")).collect()
}

#[test]
fn the_clock_is_looked_at_once_for_all_that_is_applied_together() {
    let mut stage = Stage::new(None);
    for deliveries in [1..=1, 2..=100, 101..=300] {
        let before = stage.looks.load(Ordering::Relaxed);
        drop(stage.deliver(deliveries.clone()));
        assert_eq!(stage.replica.applied(), Zxid(*deliveries.end()));
        assert_eq!(stage.looks.load(Ordering::Relaxed) - before, 1, "{deliveries:?}");
    }
    let before = stage.looks.load(Ordering::Relaxed);
    drop(stage.run());
    assert_eq!(stage.looks.load(Ordering::Relaxed), before, "there was nothing to do");
}

#[test]
fn a_quick_application_is_done_at_once_and_in_order() {
    let mut stage = Stage::new(None);
    stage.replica.deliver(txn(1));
    stage.replica.prepare(Epoch(1), Zxid(1 << 32 | 1), Origin::Here, request(8));
    stage.replica.prepare(Epoch(1), Zxid(1 << 32 | 2), Origin::Here, request(9));
    stage.replica.deliver(txn(2));
    stage.replica.deliver(txn(3));
    let then = stage.run();
    let expected = ["apply 1", "prepare 8", "prepare 9", "apply 2", "apply 3"];
    assert_eq!(stage.told(), expected);
    assert_eq!(stage.replica.applied(), Zxid(3));
    let [Event::Prepared { epoch: Epoch(1), drafts }, Event::Applied(Zxid(3))] = &then.events[..]
    else {
        panic!("{:?}", then.events)
    };
    assert_eq!(drafts.iter().map(|draft| draft.header.cxid).collect::<Vec<_>>(), [8, 9]);
    assert!(stage.replica.thread.is_none(), "there was nothing for another thread");
    assert_eq!(stage.run().events, [], "it is said once");
}

#[test]
fn a_slow_application_leaves_the_loop() {
    let mut stage = Stage::new(None);
    stage.close_gate();
    stage.replica.quick = false;
    for zxid in 1..=50 {
        assert_eq!(stage.deliver([zxid]), []);
    }
    assert_eq!(stage.replica.applied(), Zxid(0));
    stage.gate = None;
    stage.until_applied(50);
    assert_eq!(stage.told(), applies(1..=50));
    assert!(stage.replica.quick, "it has been quick again");
}

#[test]
fn where_the_service_halts_the_server_ends_by_name_and_nothing_behind_that_is_done() {
    for (quick, replayed) in [(true, false), (false, false), (false, true)] {
        let mut stage = Stage::new(None);
        stage.replica.quick = quick;
        let halt = Txn { body: Bytes::from_static(b"halt"), ..txn(2) };
        if replayed {
            stage.write(Write::Append(vec![txn(1), halt, txn(3)].into()));
            stage.sync();
            stage.replica.replay(Zxid(0), Zxid(3));
        } else {
            stage.replica.deliver(txn(1));
            stage.replica.deliver(halt);
            stage.replica.deliver(txn(3));
        }
        let mut then = ReplicaOutput::default();
        let error = loop {
            match stage.replica.run(&mut then) {
                Ok(()) => stage.woken.recv_blocking().unwrap(),
                Err(error) => break error,
            }
        };
        assert_eq!(error.to_string(), "halted by its service: as asked for");
        assert_eq!(stage.told(), applies(1..=2));
        assert_eq!(then.events, [], "the core hears of nothing more");
    }
}

#[test]
fn what_the_log_has_is_replayed_in_its_turn() {
    let mut stage = Stage::new(None);
    stage.append(1..=200);
    stage.sync();
    stage.replica.deliver(txn(1));
    stage.replica.replay(Zxid(1), Zxid(150));
    stage.replica.prepare(Epoch(1), Zxid(1 << 32 | 3), Origin::Here, request(8));
    let through = Event::Replayed { through: Zxid(150), outcome: Ok(()) };
    stage.until(&through);
    stage.deliver([151]);
    stage.until_applied(151);
    let mut expected = applies(1..=150);
    expected.extend(["prepare 8".to_owned(), "apply 151".to_owned()]);
    assert_eq!(stage.told(), expected);
}

#[test]
fn where_the_log_ends_too_early_the_core_is_told_how_far_it_went() {
    let mut stage = Stage::new(None);
    stage.append(1..=3);
    stage.sync();
    stage.replica.replay(Zxid(0), Zxid(9));
    let unreadable = Event::Replayed { through: Zxid(0), outcome: Err(Unreadable) };
    stage.until(&unreadable);
    assert!(stage.replica.unreadable().is_some(), "an operator is told why");
}

#[test]
fn a_state_on_disk_is_the_applications_when_the_core_says_so() {
    let mut stage = Stage::new(Some(5));
    assert_eq!(stage.read_local(), Err(ReadError::Behind));
    assert_eq!(stage.told(), [""; 0]);
    stage.replica.adopt(Zxid(5));
    assert_eq!(stage.deliver([6, 7]), [Event::Applied(Zxid(7))]);
    assert_eq!(stage.told(), ["adopt 5", "Replaced", "apply 6", "apply 7"]);
    assert_eq!(stage.read_local(), Ok(()));
}

#[test]
fn a_snapshot_that_is_installed_waits_apart() {
    let mut stage = Stage::new(None);
    stage.deliver(1..=10);
    stage.told();

    stage.receive(15);
    assert_eq!(stage.read_local(), Ok(()), "it is not installed yet");
    stage.write(install(15));
    assert_eq!((stage.told(), stage.read_local()), (vec![], Err(ReadError::Behind)));
    assert!(stage.replica.send_staged(Zxid(15), Bytes::new()).is_ok());
    stage.replica.adopt(Zxid(15));
    stage.deliver([16, 17]);
    assert_eq!(stage.told(), ["adopt 15", "Replaced", "apply 16", "apply 17"]);
    stage.sync();
    assert_eq!(stage.disk.handle().newest_snapshot().unwrap().unwrap().label, Zxid(15));
}

/// A snapshot is to be taken of a slow application, and then another history is installed. On 953d248 it was
/// published under its label, from which nothing can start.
#[test]
fn a_snapshot_that_was_to_be_taken_of_a_history_that_is_gone_is_not_published() {
    let mut stage = Stage::new(None);
    stage.append(1..=12);
    stage.deliver(1..=10);
    stage.receive(15);
    stage.replica.deliver(txn(12));
    stage.replica.take_snapshot(Zxid(12));
    stage.write(install(15));
    stage.until(&Event::SnapshotTaken(Zxid(12)));
    stage.sync();
    let names = std::fs::read_dir(stage._dir.path().join("version-2")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let snapshots: Vec<_> = names.filter(|name| name.starts_with("snapshot")).collect();
    assert_eq!(snapshots, ["snapshot.f"]);
}

#[test]
fn an_application_that_has_come_further_keeps_its_own_state() {
    let mut stage = Stage::new(None);
    stage.deliver(1..=18);
    stage.told();
    stage.receive(15);
    stage.write(install(15));
    assert_eq!(stage.read_local(), Ok(()));
    stage.deliver([19]);
    assert_eq!(stage.told(), ["apply 19"]);
}

#[test]
fn what_was_received_and_not_installed_is_forgotten_when_the_core_says_so() {
    let mut stage = Stage::new(None);
    stage.receive(15);
    stage.replica.prepare(Epoch(1), Zxid(1 << 32 | 4), Origin::Here, request(1));
    stage.replica.discard();
    stage.replica.abandon();
    assert_eq!(stage.run().events, [], "nobody wants to know any more");
    assert_eq!(stage.told(), ["abandon"]);
    // The next leader sends another one, of the same label.
    stage.receive(15);
    stage.write(install(15));
    stage.replica.adopt(Zxid(15));
    drop(stage.run());
    assert_eq!(stage.told(), ["adopt 15", "Replaced"]);
    stage.sync();
}

#[test]
fn a_snapshot_that_is_not_wanted_any_more_changes_nothing() {
    let mut stage = Stage::new(None);
    let intake = stage.replica.receive(Zxid(15)).unwrap();
    intake.put(&15_i64.to_be_bytes());
    stage.replica.discard();
    intake.put(b"\0\0\0\x0aBenWasHere");
    assert!(block_on(intake.done()).is_err());
    drop(intake);
    stage.receive(16);
    assert_eq!(stage.replica.reception.as_ref().unwrap().label, Zxid(16));
}

#[test]
fn a_panic_on_the_thread_is_one_of_the_server() {
    let mut stage = Stage::new(None);
    stage.replica.quick = false;
    stage.replica.deliver(Txn { body: Bytes::from_static(b"panic"), ..txn(1) });
    drop(stage.run());
    stage.woken.recv_blocking().unwrap();
    let caught = catch_unwind(AssertUnwindSafe(|| drop(stage.run())));
    assert!(caught.is_err());
}

#[test]
fn a_snapshot_is_written_beside_the_application() {
    let mut stage = Stage::new(None);
    stage.append(1..=3);
    stage.sync();
    stage.deliver(1..=3);
    stage.replica.take_snapshot(Zxid(3));
    stage.until(&Event::SnapshotTaken(Zxid(3)));
    assert_eq!(stage.disk.handle().newest_snapshot().unwrap().unwrap().label, Zxid(3));
}

fn garbled(client: u64) -> clients::Event {
    let frames = vec![Frame::Garbled];
    clients::Event::Received { client: ClientId(client), frames }
}

fn connected(client: u64) -> clients::Event {
    let remote = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    clients::Event::Connected { client: ClientId(client), remote, over: Transport::Plain }
}

#[test]
fn the_service_is_told_in_order_with_what_is_applied() {
    let mut stage = Stage::new(None);
    let told = |zxid| Txn { body: Bytes::from_static(b"told"), ..txn(zxid) };
    stage.replica.deliver(told(1));
    stage.replica.tell_service(connected(4));
    stage.replica.deliver(told(2));
    drop(stage.run());
    let expected = ["apply 1", "told of 1", "client 4", "apply 2", "told of 2"];
    assert_eq!(stage.told(), expected);
}

#[test]
fn a_connection_that_the_service_has_closed_says_nothing_more() {
    let mut stage = Stage::new(None);
    stage.replica.tell_service(connected(4));
    for _ in 0..2 {
        stage.replica.tell_service(garbled(4));
    }
    stage.replica.tell_service(clients::Event::Disconnected(ClientId(4)));
    let ReplicaOutput { clients, events, .. } = stage.run();
    assert_eq!(clients, [Output::Close { client: ClientId(4), how: Close::Reset }]);
    assert_eq!(stage.told(), ["client 4", "frames 1"]);

    // What it has asked is answered all the same: that is no word of the connection.
    let [Event::Read(read)] = events[..] else { panic!("{events:?}") };
    stage.replica.answer(read);
    drop(stage.run());
    assert_eq!(stage.told(), ["Synced(SyncId(4))"]);
}

#[test]
fn a_tick_comes_when_it_is_due_and_once() {
    let mut stage = Stage::new(None);
    stage.replica.tell_service(connected(4));
    drop(stage.run());
    assert_eq!(stage.replica.deadline(), Some(CoreInstant(5)));
    stage.replica.quick = false;
    for now in [4, 5, 6] {
        stage.replica.tick(CoreInstant(now));
        assert_eq!(stage.replica.deadline().is_some(), now == 4);
    }
    drop(stage.run());
    while stage.replica.worker.is_none() {
        stage.woken.recv_blocking().unwrap();
        drop(stage.run());
    }
    assert_eq!(stage.told(), ["client 4", "tick 7"]);
    assert_eq!(stage.replica.deadline(), None);
}

/// It is at work on its thread, and much waits for it.
fn busy() -> Stage {
    let mut stage = Stage::new(None);
    stage.close_gate();
    (stage.replica.quick, stage.replica.pace.slow) = (false, Duration::ZERO);
    for zxid in 1..=3 {
        stage.replica.deliver(txn(zxid));
    }
    assert_eq!(stage.run().clients, []);
    stage.replica.tick(CoreInstant::ORIGIN);
    stage.replica.tell_service(connected(4));
    stage
}

#[test]
fn a_word_waits_for_what_is_being_done_and_for_nothing_else() {
    let mut stage = busy();
    stage.replica.tell_word(ClientId(4), *b"else");
    stage.replica.tell_service(connected(5));
    assert_eq!(stage.run().clients, []);
    assert_eq!(stage.replica.words_due(), None, "nothing is at hand for it");
    // Longer than the thread works before it comes home.
    stage.waits.recv_blocking().unwrap();
    std::thread::sleep(Duration::from_millis(10));
    stage.gate.as_ref().unwrap().send_blocking(()).unwrap();
    while stage.replica.worker.is_none() && stage.replica.heard == 0 {
        stage.woken.recv_blocking().unwrap();
        drop(stage.run());
    }
    stage.gate = None;
    stage.until_applied(3);
    while stage.replica.heard < stage.replica.told_service {
        stage.woken.recv_blocking().unwrap();
        drop(stage.run());
    }
    let expected = ["apply 1", "client 4", "frames 1", "apply 2", "apply 3", "client 5"];
    assert_eq!(stage.told(), expected);
}

#[test]
fn a_word_is_answered_with_what_is_at_hand_if_the_application_is_slow() {
    let time = Duration::from_millis(200);
    for (retires, answer) in [(false, "serves"), (true, "does not")] {
        let mut stage = busy();
        if retires {
            stage.replica.tell_service(clients::Event::Retired);
        }
        stage.replica.tell_word(ClientId(4), *b"word");
        assert_eq!(stage.run().clients, [], "it may come home");
        assert_eq!(stage.replica.words_due(), Some(CoreInstant::ORIGIN + time));
        stage.replica.tick(CoreInstant::ORIGIN + time);
        let client = ClientId(4);
        let said = [
            Output::Send { client, bytes: Bytes::from_static(answer.as_bytes()) },
            Output::Close { client, how: Close::AfterWriting },
        ];
        assert_eq!(stage.run().clients, said);
        assert_eq!(stage.replica.words_due(), None);
        stage.gate = None;
        stage.until_applied(3);
        while stage.replica.heard < stage.replica.told_service {
            stage.woken.recv_blocking().unwrap();
            drop(stage.run());
        }
        let told = stage.told();
        assert!(!told.contains(&"frames 1".to_owned()), "{told:?}");
        assert_eq!(told.last().unwrap(), "Disconnected(ClientId(4))");
    }
}

#[test]
fn clients_wait_while_the_service_is_behind() {
    let mut stage = Stage::new(None);
    stage.close_gate();
    stage.replica.quick = false;
    stage.replica.deliver(txn(1));
    drop(stage.run());
    let mut told = 0;
    while stage.replica.hears_clients() {
        stage.replica.tell_service(connected(told));
        told += 1;
    }
    assert_eq!(told, 256);
    drop(stage.gate.take());
    stage.until(&Event::Applied(Zxid(1)));
    while !stage.replica.hears_clients() {
        stage.woken.recv_blocking().unwrap();
        drop(stage.run());
    }
}

/// What clients send in a turn and what is committed are carried out in the order in which they came, and of either only so
/// much may come before the other: of clients so many events, of transactions as many as the core hands out at a time.
#[test]
fn neither_clients_nor_commits_are_carried_out_before_more_of_the_other_than_there_was() {
    let mut stage = busy();
    let mut events = 1;
    while stage.replica.hears_clients() {
        stage.replica.tell_service(connected(4 + events));
        events += 1;
    }
    stage.replica.deliver(txn(4));
    stage.replica.deliver(txn(5));
    stage.gate = None;
    stage.until_applied(5);
    stage.replica.tell_service(connected(1000));
    stage.replica.deliver(txn(6));
    stage.until_applied(6);
    let clients = (0..events).map(|nth| format!("client {}", 4 + nth));
    let mut expected = applies(1..=3);
    expected.extend(clients);
    expected.extend(applies(4..=5));
    expected.push("client 1000".to_owned());
    expected.extend(applies([6]));
    assert_eq!(stage.told(), expected);
    assert_eq!(events, 256);
}

//! The load: sessions on threads of their own, each with an ephemeral node and watches, which write at their pace.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quorate_service::wire::{Request, code};
use quorate_tokio::core::zxid::Zxid;

use super::session::Session;
use crate::raw::{ephemeral, exists, plain, set};

/// How much of it.
#[derive(Clone, Debug)]
pub(super) struct Size {
    pub(super) sessions: usize,
    /// Of all together in a second.
    pub(super) writes: usize,
    /// How often watches are fired; each session has one for each time.
    pub(super) rounds: usize,
    /// The time-out of the sessions.
    pub(super) timeout: Duration,
}

/// What all share.
#[derive(Debug)]
struct Shared {
    size: Size,
    ports: Vec<u16>,
    state: AtomicU8,
    /// Which part of the course it is.
    part: AtomicUsize,
    /// The longest wait of a client in each, in microseconds.
    waits: Vec<AtomicU64>,
    acknowledged: AtomicUsize,
    /// How often each watch has told its session, by session and round.
    told: Vec<AtomicU32>,
    standing: Barrier,
}

/// Writing.
const RUNS: u8 = 0;
/// Staying alive.
const HOLDS: u8 = 1;
const ENDS: u8 = 2;

/// What a session knows to be true when it holds.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) nth: usize,
    pub(super) session: i64,
    /// The transaction that created its ephemeral node.
    pub(super) created: Zxid,
    /// The nodes whose creation was acknowledged.
    pub(super) creations: Vec<usize>,
    /// The last number that was set.
    pub(super) last: usize,
    /// How many setData were acknowledged, and how many may have been carried out besides.
    pub(super) sets: (usize, usize),
}

/// The threads.
#[derive(Debug)]
pub(super) struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    records: Receiver<Record>,
}

impl Load {
    /// Opens the sessions, and returns when all stand and begin to write. `parts`: of the course.
    pub(super) fn start(size: &Size, ports: &[u16], parts: usize) -> Self {
        let mut admin = Session::open(ports, 0, size.timeout, pause(size));
        for path in ["/n", "/d", "/e", "/w"] {
            admin.ask(&plain(path)).0.unwrap();
        }
        let shared = Arc::new(Shared {
            size: size.clone(),
            ports: ports.to_vec(),
            state: AtomicU8::new(RUNS),
            part: AtomicUsize::new(0),
            waits: (0..parts).map(|_| AtomicU64::new(0)).collect(),
            acknowledged: AtomicUsize::new(0),
            told: (0..size.sessions * size.rounds).map(|_| AtomicU32::new(0)).collect(),
            standing: Barrier::new(size.sessions + 1),
        });
        let (sender, records) = channel();
        let threads = (0..size.sessions)
            .map(|nth| {
                let (shared, sender) = (Arc::clone(&shared), sender.clone());
                let thread = std::thread::Builder::new().stack_size(256 << 10);
                thread.spawn(move || Client::open(nth, shared).run(&sender)).unwrap()
            })
            .collect();
        shared.standing.wait();
        Self { shared, threads, records }
    }

    /// From here on it is this part of the course.
    pub(super) fn begin_part(&self, part: usize) {
        self.shared.part.store(part, Ordering::Relaxed);
    }

    /// The longest wait of a client in a part.
    pub(super) fn longest_wait(&self, part: usize) -> Duration {
        Duration::from_micros(self.shared.waits[part].load(Ordering::Relaxed))
    }

    /// How many writes were acknowledged.
    pub(super) fn acknowledged(&self) -> usize {
        self.shared.acknowledged.load(Ordering::Relaxed)
    }

    /// The sessions that were not told in this round, and those that were told more than once.
    pub(super) fn told(&self, round: usize) -> (Vec<usize>, Vec<usize>) {
        let Size { sessions, rounds, .. } = self.shared.size;
        let count = |nth: usize| self.shared.told[nth * rounds + round].load(Ordering::Relaxed);
        (
            (0..sessions).filter(|nth| count(*nth) == 0).collect(),
            (0..sessions).filter(|nth| count(*nth) > 1).collect(),
        )
    }

    /// Whether a thread has ended, which only one does that has found something lost.
    pub(super) fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Lets all finish what they have under way, and write no more; what each knows then.
    pub(super) fn hold(&self) -> Vec<Record> {
        self.shared.state.store(HOLDS, Ordering::Relaxed);
        let mut records = Vec::new();
        while records.len() < self.shared.size.sessions {
            match self.records.recv_timeout(Duration::from_secs(1)) {
                Ok(record) => records.push(record),
                Err(_) => assert!(!self.has_failed(), "a session has failed"),
            }
        }
        records
    }

    /// Ends all, each with its session alive.
    pub(super) fn end(self) {
        self.shared.state.store(ENDS, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// How long a client waits when no server has taken it: so that all of them leave the machine to the servers.
fn pause(size: &Size) -> Duration {
    Duration::from_micros(50 * u64::try_from(size.sessions).unwrap())
}

/// One session.
struct Client {
    nth: usize,
    shared: Arc<Shared>,
    session: Session,
    record: Record,
}

impl Client {
    /// With its nodes and watches.
    fn open(nth: usize, shared: Arc<Shared>) -> Self {
        let Size { timeout, rounds, .. } = shared.size;
        let mut session = Session::open(&shared.ports, nth, timeout, pause(&shared.size));
        for path in [format!("/n/{nth}"), format!("/d/{nth}"), format!("/w/{nth}")] {
            session.ask(&plain(&path)).0.unwrap();
        }
        let path = format!("/e/{nth}");
        session.ask(&ephemeral(&path)).0.unwrap();
        let stat = super::audit::stat(session.ask(&exists(&path)).0.unwrap());
        assert_eq!(stat.ephemeral_owner, session.id);
        for round in 0..rounds {
            let path = format!("/w/{nth}/{round}");
            match Watch::of(nth, round, rounds) {
                Watch::Data => {
                    session.ask(&plain(&path)).0.unwrap();
                    session.watch_data(&path);
                }
                Watch::Absent => session.watch_absent(&path),
                Watch::Children => {
                    session.ask(&plain(&path)).0.unwrap();
                    session.watch_children(&path);
                }
                Watch::Below => {
                    session.ask(&plain(&path)).0.unwrap();
                    session.watch_below(&path);
                }
            }
        }
        let record = Record {
            nth,
            session: session.id,
            created: stat.czxid,
            creations: Vec::new(),
            last: 0,
            sets: (0, 0),
        };
        session.without = Duration::ZERO;
        Self { nth, shared, session, record }
    }

    fn run(mut self, records: &Sender<Record>) {
        self.shared.standing.wait();
        let Size { sessions, writes, .. } = self.shared.size;
        let interval = Duration::from_secs(1).mul_f64(sessions as f64 / writes as f64);
        // Spread over the first interval.
        let mut due = Instant::now() + interval.mul_f64(self.nth as f64 / sessions as f64);
        for number in 1.. {
            self.session.idle(due);
            if self.shared.state.load(Ordering::Relaxed) != RUNS {
                break;
            }
            self.write(number);
            self.note();
            // One that was held up does not make up for it.
            due = (due + interval).max(Instant::now());
        }
        let Self { nth, record, session, .. } = &mut self;
        let (session, creations) = (session.id, std::mem::take(&mut record.creations));
        drop(records.send(Record { creations, session, nth: *nth, ..*record }));
        while self.shared.state.load(Ordering::Relaxed) != ENDS {
            self.session.idle(Instant::now() + Duration::from_millis(200));
            self.session.ask(&Request::Ping).0.unwrap();
            self.note();
        }
    }

    /// A write, until it is acknowledged.
    fn write(&mut self, number: usize) {
        let begun = Instant::now();
        if number % 4 == 0 {
            let path = format!("/d/{}/{number}", self.nth);
            match self.session.ask(&plain(&path)) {
                (Ok(_), _) | (Err(code::NODE_EXISTS), true) => {}
                (Err(err), lost) => panic!("{path}: {err}, a connection lost before: {lost}"),
            }
            self.record.creations.push(number);
        } else {
            let request = set(&format!("/n/{}", self.nth), &number.to_string());
            while self.session.try_ask(&request).map(Result::unwrap).is_none() {
                // It comes back before it tries again.
                self.record.sets.1 += 1;
                self.session.ask(&Request::Ping).0.unwrap();
            }
            (self.record.sets.0, self.record.last) = (self.record.sets.0 + 1, number);
        }
        self.shared.acknowledged.fetch_add(1, Ordering::Relaxed);
        self.waited(begun.elapsed());
    }

    fn waited(&self, wait: Duration) {
        let part = self.shared.part.load(Ordering::Relaxed);
        let wait = u64::try_from(wait.as_micros()).unwrap();
        self.shared.waits[part].fetch_max(wait, Ordering::Relaxed);
    }

    /// Counts what it was told, and how long it was without a server.
    fn note(&mut self) {
        let without = std::mem::take(&mut self.session.without);
        self.waited(without);
        for event in std::mem::take(&mut self.session.events) {
            let mut parts = event.path.split('/').skip(1);
            assert_eq!(parts.next(), Some("w"), "{event:?}");
            assert_eq!(parts.next(), Some(&*self.nth.to_string()), "{event:?}");
            let round: usize = parts.next().unwrap().parse().unwrap();
            let at = self.nth * self.shared.size.rounds + round;
            self.shared.told[at].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What a watch waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// Other data.
    Data,
    /// A node that is not there.
    Absent,
    /// A child.
    Children,
    /// Anything below a node: what happens while it has no server it is not told.
    Below,
}

impl Watch {
    /// That of a session for a round.
    pub(super) const fn of(nth: usize, round: usize, rounds: usize) -> Self {
        if round + 1 == rounds {
            return Self::Below;
        }
        match (nth + round) % 3 {
            0 => Self::Data,
            1 => Self::Absent,
            _ => Self::Children,
        }
    }

    /// What it waits for.
    pub(super) fn change(self, path: &str) -> Request {
        match self {
            Self::Data => set(path, "changed"),
            Self::Absent => plain(path),
            Self::Children | Self::Below => plain(&format!("{path}/child")),
        }
    }
}

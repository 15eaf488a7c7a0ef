//! The words of four letters that operators and their monitoring send: what the service knows, as text.
//!
//! | word | tells |
//! |---|---|
//! | ruok, isro | whether it runs; whether it takes writes |
//! | srvr, stat | how it does; and its connections |
//! | cons, wchs, wchc, wchp, dump | connections; watches, in figures, by session, by path; sessions and their nodes |
//! | mntr, conf, envi, dirs | figures for monitoring; settings; surroundings; how much is on disk |
//! | crst, srst | set figures back |
//!
//! A figure that is not known here is left out rather than made up.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use bytes::Bytes;
use quorate_application::clients::{AtHand, ClientId, Close};
use quorate_core::time::Instant;
use quorate_core::zxid::Zxid;

use crate::connection::Connection;
use crate::service::{Role, Service, Step};
use crate::version;
use crate::wire::op;
use crate::zookeeper::ZooKeeper;

impl Service {
    /// A word instead of a client's first frame: answered, and the connection is closed.
    pub(crate) fn on_word(&mut self, step: &mut Step<'_>, client: ClientId, word: [u8; 4]) {
        let text = match core::str::from_utf8(&word) {
            Ok(word) => self.word(step, word),
            Err(_) => String::new(),
        };
        self.send(step.out, client, Bytes::from(text));
        self.close(step.out, client, Close::AfterWriting);
    }

    fn word(&mut self, step: &Step<'_>, word: &str) -> String {
        if !self.options.words.allow(word) {
            return format!("{word} is not executed because it is not in the whitelist.\n");
        }
        let beneath = self.options.beneath.clone();
        match word {
            "ruok" => return "imok".into(),
            "isro" => return if self.serves() { "rw" } else { "null" }.into(),
            "envi" => return environment(),
            "mntr" => return self.figures(step.at, step.state).words(),
            _ if !self.serves() => {
                return "This ZooKeeper instance is not currently serving requests\n".into();
            }
            _ => {}
        }
        match word {
            "conf" => beneath.map(|beneath| beneath.configuration()).unwrap_or_default(),
            "dirs" => beneath.map(|beneath| beneath.directories()).unwrap_or_default(),
            "hash" => self.digests.text(),
            "srvr" => self.server(step, false),
            "stat" => self.server(step, true),
            "cons" => self.connections(true) + "\n",
            "wchs" => {
                let (clients, paths, watches) = self.watches.summary();
                format!("{clients} connections watching {paths} paths\nTotal watches:{watches}\n")
            }
            "wchc" => self.watches_by_session(),
            "wchp" => self.watches_by_path(),
            "dump" => self.dump(step),
            "crst" => {
                self.reset_connections();
                "Connection stats reset.\n".into()
            }
            "srst" => {
                self.reset_figures();
                "Server stats reset.\n".into()
            }
            _ => String::new(),
        }
    }

    /// Answers to the words that probes ask for; when this server serves, and when it serves no longer.
    pub(crate) fn words_at_hand(&mut self, state: &mut ZooKeeper) -> AtHand {
        let mut out = Vec::new();
        let step = Step { at: Instant::ORIGIN, wall_ms: 0, state, out: &mut out };
        let answers = |service: &mut Self| {
            let answer = |word: &[u8; 4]| {
                let text = core::str::from_utf8(word).map(|word| service.word(&step, word));
                (*word, Bytes::from(text.unwrap_or_default()))
            };
            [b"ruok", b"isro", b"srvr"].map(answer).into()
        };
        let now = answers(self);
        let role = core::mem::replace(&mut self.role, Role::Idle);
        let retired = answers(self);
        self.role = role;
        AtHand { now, retired }
    }

    pub(crate) const fn mode(&self) -> &'static str {
        match &self.role {
            Role::Idle => "looking",
            Role::Learner { observes: true } => "observer",
            Role::Learner { observes: false } => "follower",
            Role::Leader(leading) if leading.alone => "standalone",
            Role::Leader(_) => "leader",
        }
    }

    /// `srvr`, and `stat` with the connections.
    fn server(&self, step: &Step<'_>, connections: bool) -> String {
        let tree = step.state.tree();
        let mut text = format!("Zookeeper version: {}\n", version::long());
        if connections {
            text.push_str("Clients:\n");
            text.push_str(&self.connections(false));
            text.push('\n');
        }
        let counters = &self.counters;
        let (min, max) = (counters.latency_min_ms.unwrap_or(0), counters.latency_max_ms);
        let _ = write!(
            text,
            "Latency min/avg/max: {min}/{:?}/{max}\nReceived: {}\nSent: {}\nConnections: {}\nOutstanding: {}\n\
             Zxid: 0x{:x}\nMode: {}\nNode count: {}\n",
            counters.average(),
            counters.received,
            counters.sent,
            self.clients.len(),
            self.submitted.len(),
            tree.last_zxid().max(Zxid::start_of(self.epoch)).0,
            self.mode(),
            // The root has two names, and ZooKeeper counts both.
            tree.len() + 1,
        );
        text
    }

    fn connections(&self, whole: bool) -> String {
        let mut text = String::new();
        for connection in self.clients.values() {
            line_of(connection, whole, &mut text);
        }
        text
    }

    fn watches_by_session(&self) -> String {
        let mut sessions: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
        for (path, clients) in self.watches.by_path() {
            for client in clients {
                if let Some(session) = self.clients.get(&client).and_then(Connection::session) {
                    sessions.entry(session).or_default().insert(path);
                }
            }
        }
        let mut text = String::new();
        for (session, paths) in sessions {
            let _ = writeln!(text, "0x{session:x}");
            for path in paths {
                let _ = writeln!(text, "\t{path}");
            }
        }
        text + "\n"
    }

    fn watches_by_path(&self) -> String {
        let mut text = String::new();
        for (path, clients) in self.watches.by_path() {
            let _ = writeln!(text, "{path}");
            for client in clients {
                if let Some(session) = self.clients.get(&client).and_then(Connection::session) {
                    let _ = writeln!(text, "\t0x{session:x}");
                }
            }
        }
        text + "\n"
    }

    /// Sessions, on a leader by the time when they expire, and what they own.
    fn dump(&self, step: &Step<'_>) -> String {
        let tree = step.state.tree();
        let mut text = String::from("SessionTracker dump:\n");
        if let Role::Leader(leading) = &self.role {
            let mut sets: BTreeMap<Instant, BTreeSet<i64>> = BTreeMap::new();
            for (at, session) in leading.tracker.by_deadline() {
                sets.entry(at).or_default().insert(session);
            }
            let sessions: usize = sets.values().map(BTreeSet::len).sum();
            let _ = writeln!(text, "Session Sets ({})/({sessions}):", sets.len());
            for (at, sessions) in sets {
                let left = at.since(step.at).as_millis();
                let _ = writeln!(text, "{} expire in {left}ms:", sessions.len());
                for session in sessions {
                    let _ = writeln!(text, "\t0x{session:x}");
                }
            }
        } else {
            let _ = writeln!(text, "Global Sessions({}):", tree.session_count());
            for (session, timeout) in tree.sessions() {
                let _ = writeln!(text, "0x{session:x}\t{timeout}ms");
            }
        }
        let owners: BTreeSet<i64> = tree.owners().collect();
        let _ =
            writeln!(text, "ephemeral nodes dump:\nSessions with Ephemerals ({}):", owners.len());
        for session in owners {
            let _ = writeln!(text, "0x{session:x}:");
            for path in tree.ephemerals(session) {
                let _ = writeln!(text, "\t{path}");
            }
        }
        let _ = writeln!(text, "Connections dump:\nConnections ({}):", self.clients.len());
        for connection in self.clients.values() {
            let session = connection.session().unwrap_or(0);
            let _ = writeln!(text, "\tip: /{} sessionId: 0x{session:x}", connection.remote);
        }
        text
    }
}

fn line_of(connection: &Connection, whole: bool, text: &mut String) {
    let figures = &connection.figures;
    let interest = u8::from(!connection.paused);
    let _ = write!(
        text,
        " /{}[{interest}](queued={},recved={},sent={}",
        connection.remote,
        connection.queue.len(),
        figures.received,
        figures.sent
    );
    if let Some(session) = connection.session().filter(|_| whole) {
        let _ = write!(
            text,
            ",sid=0x{session:x},lop={},est={},to={},lcxid=0x{:x},lzxid=0x{:x},lresp={},llat={},\
             minlat={},avglat={},maxlat={}",
            op_name(figures.last_op),
            figures.established_ms,
            connection.timeout_ms,
            figures.last_xid,
            figures.last_zxid,
            figures.last_response_ms,
            figures.latencies.last,
            figures.latencies.min(),
            figures.latencies.average(),
            figures.latencies.max
        );
    }
    text.push_str(")\n");
}

/// ZooKeeper's names of operations, of four letters mostly.
pub(crate) const fn op_name(op: i32) -> &'static str {
    match op {
        op::CREATE | op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => "CREA",
        op::CREATE_SESSION => "SESS",
        op::PING => "PING",
        op::DELETE => "DELE",
        op::SET_DATA => "SETD",
        op::RECONFIG => "RECO",
        op::SET_ACL => "SETA",
        op::CLOSE_SESSION => "CLOS",
        op::SYNC => "SYNC",
        op::CHECK => "CHEC",
        op::EXISTS => "EXIS",
        op::GET_DATA => "GETD",
        op::SET_WATCHES => "SETW",
        op::SET_WATCHES2 => "STW2",
        op::ADD_WATCH => "ADDW",
        op::GET_ACL => "GETA",
        op::GET_CHILDREN | op::GET_CHILDREN2 => "GETC",
        op::GET_ALL_CHILDREN_NUMBER => "GETACN",
        op::CHECK_WATCHES => "CHKW",
        op::REMOVE_WATCHES => "REMW",
        op::WHO_AM_I => "HOMI",
        op::GET_EPHEMERALS => "GETE",
        op::MULTI => "MULT",
        op::MULTI_READ => "MLTR",
        _ => "NA",
    }
}

fn environment() -> String {
    format!("Environment:\nzookeeper.version={}\n", version::long())
}

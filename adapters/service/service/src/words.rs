//! The words of four letters that operators and their monitoring send: what the service knows, as text.
//!
//! | word | tells |
//! |---|---|
//! | ruok, isro | whether it runs; whether it takes writes |
//! | srvr, stat | how it does; and its connections |
//! | cons, wchc, wchp, dump | connections; watches by session, by path; sessions and their nodes: in portions |
//! | wchs | watches in figures |
//! | mntr, conf, envi, dirs | figures for monitoring; settings; surroundings; how much is on disk |
//! | crst, srst | set figures back |
//! | gtmk, stmk | that nothing is traced |
//!
//! A figure that is not known here is left out rather than made up.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use bytes::Bytes;
use quorate_application::clients::{AtHand, ClientId, Close};
use quorate_core::time::Instant;
use quorate_core::zxid::Zxid;

use crate::connection::Connection;
use crate::portion::Next;
use crate::proofs::Scheme;
use crate::service::{Counters, Role, Service, Step};
use crate::wire::op;
use crate::zookeeper::ZooKeeper;

/// The compatible version, which clients and monitoring read, and ours behind it. Clients look for a date behind it; a build
/// that can be repeated has none.
macro_rules! version {
    () => {
        concat!("3.8.0-quorate-", env!("CARGO_PKG_VERSION"), ", built on 1970-01-01 00:00 UTC")
    };
}

/// The first line of `srvr` and `stat`.
pub(crate) const HEAD: &str = concat!("Zookeeper version: ", version!(), "\n");

impl Service {
    /// A word instead of a client's first frame: answered, and the connection is closed.
    pub(crate) fn on_word(&mut self, step: &mut Step<'_>, client: ClientId, word: [u8; 4]) {
        let word = core::str::from_utf8(&word).unwrap_or_default();
        if let Some(first) =
            Next::of(word).filter(|_| self.serves() && self.options.words.allow(word))
        {
            return self.tell_portion(step, client, first);
        }
        let text = self.word(step, word);
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
            "envi" => return ENVIRONMENT.into(),
            "mntr" => {
                let more = beneath.map(|beneath| beneath.figures()).unwrap_or_default();
                return self.figures(step) + &more;
            }
            _ if !self.serves() => {
                return "This ZooKeeper instance is not currently serving requests\n".into();
            }
            _ => {}
        }
        match word {
            "conf" => beneath.map(|beneath| beneath.configuration()).unwrap_or_default(),
            "dirs" => beneath.map(|beneath| beneath.directories()).unwrap_or_default(),
            "hash" => self.digests.text(),
            "srvr" => {
                let mut text = String::from(HEAD);
                self.status(step, &mut text);
                text
            }
            "wchs" => {
                let (clients, paths, watches) = self.watches.summary();
                format!("{clients} connections watching {paths} paths\nTotal watches:{watches}\n")
            }
            // What ZooTrace would trace. There is no such thing here, and none can be turned on.
            "gtmk" | "stmk" => "0".into(),
            "crst" => {
                self.clients.values_mut().for_each(|connection| connection.figures.reset());
                "Connection stats reset.\n".into()
            }
            "srst" => {
                self.counters = Counters::default();
                self.proofs.reset();
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

    const fn mode(&self) -> &'static str {
        match &self.role {
            Role::Idle => "looking",
            Role::Learner { observes: true } => "observer",
            Role::Learner { observes: false } => "follower",
            Role::Leader(leading) if leading.alone => "standalone",
            Role::Leader(_) => "leader",
        }
    }

    /// `srvr` behind its [`HEAD`].
    pub(crate) fn status(&self, step: &Step<'_>, text: &mut String) {
        let tree = step.state.tree();
        let counters = &self.counters;
        let (min, max) = (counters.latency_min_ms.unwrap_or(0), counters.latency_max_ms);
        let _ = write!(
            text,
            "Latency min/avg/max: {min}/{}/{max}\nReceived: {}\nSent: {}\nConnections: {}\nOutstanding: {}\n\
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
    }

    /// `mntr`, as far as the service knows.
    fn figures(&self, step: &Step<'_>) -> String {
        let (tree, counters) = (step.state.tree(), &self.counters);
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "zk_{name}\t{value}");
        };
        line("version", version!());
        line("server_state", self.mode());
        line("avg_latency", &counters.average());
        line("max_latency", &counters.latency_max_ms.to_string());
        line("min_latency", &counters.latency_min_ms.unwrap_or(0).to_string());
        line("packets_received", &counters.received.to_string());
        line("packets_sent", &counters.sent.to_string());
        line("num_alive_connections", &self.clients.len().to_string());
        line("outstanding_requests", &self.submitted.len().to_string());
        line("znode_count", &(tree.len() + 1).to_string());
        line("watch_count", &self.watches.len().to_string());
        let of_kinds = self.watches.counts();
        for (kind, count) in [
            ("data", of_kinds.data),
            ("child", of_kinds.children),
            ("persistent", of_kinds.persistent),
            ("recursive", of_kinds.recursive),
        ] {
            line(&format!("watch_count_{kind}"), &count.to_string());
        }
        line("ephemerals_count", &tree.ephemeral_count().to_string());
        line("global_sessions", &tree.session_count().to_string());
        line("auth_failed_count", &self.proofs.count().to_string());
        for (name, scheme) in
            [("digest", Scheme::Digest), ("x509", Scheme::X509), ("other", Scheme::Other)]
        {
            line(&format!("auth_failed_{name}"), &self.proofs.of(scheme).to_string());
        }
        line("digest_mismatches_count", &self.digests.differed().to_string());
        line("clients_ahead", &counters.ahead.to_string());
        line("sessions_moved", &counters.moved.to_string());
        line("watch_events_sent", &counters.events.to_string());
        line("watch_events_kept_back", &counters.events_kept_back.to_string());
        line("clients_cut_off", &counters.cut_off.to_string());
        line("long_replies", &counters.long_replies.to_string());
        line("watches_refused", &counters.watches_refused.to_string());
        text
    }
}

impl Counters {
    /// A request is answered, so long after it came.
    pub(crate) fn answered(&mut self, after: core::time::Duration) {
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.requests += 1;
        self.latency_sum_ms = self.latency_sum_ms.saturating_add(millis);
        self.latency_min_ms = Some(self.latency_min_ms.map_or(millis, |min| min.min(millis)));
        self.latency_max_ms = self.latency_max_ms.max(millis);
    }

    /// The average latency in milliseconds, at least one decimal and at most four.
    fn average(&self) -> String {
        let scaled = (self.latency_sum_ms * 10_000).checked_div(self.requests).unwrap_or(0);
        let (whole, rest) = (scaled / 10_000, scaled % 10_000);
        let rest = format!("{rest:04}");
        let rest = rest.trim_end_matches('0');
        format!("{whole}.{}", if rest.is_empty() { "0" } else { rest })
    }
}

/// A line of `cons`; not `whole`: of `stat`.
pub(crate) fn line_of(connection: &Connection, whole: bool, text: &mut String) {
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
const fn op_name(op: i32) -> &'static str {
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

const ENVIRONMENT: &str = concat!("Environment:\nzookeeper.version=", version!(), "\n");

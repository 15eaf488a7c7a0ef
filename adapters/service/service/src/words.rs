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
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use bytes::Bytes;
use quorate_application::clients::{AtHand, ClientId, Close};
use quorate_core::time::Instant;
use quorate_core::zxid::Zxid;

use crate::connection::Connection;
use crate::portion::Next;
use crate::service::{Role, Service, Step};
use crate::version;
use crate::wire::op;
use crate::zookeeper::ZooKeeper;

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
            "srvr" => {
                let mut text = head();
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

    /// `srvr` behind its [`head`].
    pub(crate) fn status(&self, step: &Step<'_>, text: &mut String) {
        let tree = step.state.tree();
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

/// The first line of `srvr` and `stat`.
pub(crate) fn head() -> String {
    format!("Zookeeper version: {}\n", version::long())
}

fn environment() -> String {
    format!("Environment:\nzookeeper.version={}\n", version::long())
}

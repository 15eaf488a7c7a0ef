//! A session over as many connections as it takes: what a client of ZooKeeper does when its server goes, and what it keeps.
//!
//! It comes back with its id and password to the next server, sets its watches again in the same write, and waits for
//! nothing in between but a moment when no server has taken it.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};
use quorate_service::wire::{
    ConnectRequest, ConnectResponse, NOTIFICATION_XID, PING_XID, ReplyHeader, Request, Response,
    SET_WATCHES_XID, WatcherEvent, op, split_reply,
};
use quorate_tokio::core::zxid::Zxid;

/// One client.
#[derive(Debug)]
pub(super) struct Session {
    ports: Vec<u16>,
    /// Which of them is next.
    at: usize,
    wire: Option<Wire>,
    pub(super) id: i64,
    password: Bytes,
    timeout: Duration,
    /// The last transaction that it has heard of.
    seen: Zxid,
    xid: i32,
    /// How long it waits when no server has taken it.
    pause: Duration,
    watches: Watches,
    /// What it was told and has not looked at.
    pub(super) events: Vec<WatcherEvent>,
    /// The longest time without a server that it had since this was looked at.
    pub(super) without: Duration,
}

/// What is set again on another connection.
#[derive(Debug, Default)]
struct Watches {
    data: BTreeSet<String>,
    exist: BTreeSet<String>,
    child: BTreeSet<String>,
    recursive: BTreeSet<String>,
}

/// How a connection can begin.
enum Begun {
    Yes(Wire, ConnectResponse),
    Closed,
}

impl Session {
    /// A new session, at the server that is `nth` among these.
    pub(super) fn open(ports: &[u16], nth: usize, timeout: Duration, pause: Duration) -> Self {
        let mut session = Self {
            ports: ports.to_vec(),
            at: nth % ports.len(),
            wire: None,
            id: 0,
            password: vec![0; 16].into(),
            timeout,
            seen: Zxid::ZERO,
            xid: 0,
            pause,
            watches: Watches::default(),
            events: Vec::new(),
            without: Duration::ZERO,
        };
        session.connect();
        session
    }

    /// Goes from server to server until one takes it.
    fn connect(&mut self) {
        let begun = Instant::now();
        for tried in 1.. {
            let port = self.ports[self.at];
            self.at = (self.at + 1) % self.ports.len();
            if let Begun::Yes(wire, answer) = self.begin(port) {
                assert!(answer.timeout_ms > 0, "session 0x{:x} is lost, says {port}", self.id);
                assert!(self.id == 0 || self.id == answer.session, "another session");
                (self.id, self.wire) = (answer.session, Some(wire));
                self.password = Bytes::copy_from_slice(&answer.password);
                self.without = self.without.max(begun.elapsed());
                return;
            }
            assert!(begun.elapsed() < GIVE_UP, "session 0x{:x}: no server takes it", self.id);
            if tried % self.ports.len() == 0 {
                std::thread::sleep(self.pause);
            }
        }
    }

    fn begin(&self, port: u16) -> Begun {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let Ok(stream) = TcpStream::connect_timeout(&at, self.timeout) else {
            return Begun::Closed;
        };
        stream.set_nodelay(true).unwrap();
        let mut wire = Wire { stream, bytes: BytesMut::new() };
        let request = ConnectRequest {
            protocol: 0,
            last_zxid: self.seen,
            timeout_ms: i32::try_from(self.timeout.as_millis()).unwrap(),
            session: self.id,
            password: self.password.clone(),
            read_only: Some(false),
        };
        let mut bytes = request.encode().to_vec();
        bytes.extend_from_slice(&self.rewatch());
        if wire.stream.write_all(&bytes).is_err() {
            return Begun::Closed;
        }
        match wire.next(Instant::now() + self.patience()) {
            Got::Frame(frame) => Begun::Yes(wire, ConnectResponse::decode(&frame).unwrap()),
            Got::Nothing | Got::Closed => Begun::Closed,
        }
    }

    /// The frame that sets all watches again; nothing if there are none.
    fn rewatch(&self) -> Bytes {
        let Watches { data, exist, child, recursive } = &self.watches;
        if [data, exist, child, recursive].iter().all(|paths| paths.is_empty()) {
            return Bytes::new();
        }
        let list = |paths: &BTreeSet<String>| paths.iter().cloned().map(Some).collect();
        let request = Request::SetWatches {
            op: op::SET_WATCHES2,
            relative_zxid: self.seen,
            data: list(data),
            exist: list(exist),
            child: list(child),
            persistent: Vec::new(),
            recursive: list(recursive),
        };
        request.frame(SET_WATCHES_XID)
    }

    /// How long it hears nothing from a server that owes it something before it goes to another.
    fn patience(&self) -> Duration {
        self.timeout * 2 / 3
    }

    /// Sends a request and waits for its reply; none if the connection was lost, so that it may have been carried out.
    pub(super) fn try_ask(&mut self, request: &Request) -> Option<Result<Response, i32>> {
        let xid = if matches!(request, Request::Ping) {
            PING_XID
        } else {
            self.xid += 1;
            self.xid
        };
        let until = Instant::now() + self.patience();
        let sent = self.wire.as_mut()?.stream.write_all(&request.frame(xid)).is_ok();
        if sent {
            while let Got::Frame(frame) = self.wire.as_mut()?.next(until) {
                if let Some((header, body)) = self.heard(frame, xid) {
                    return Some(match header.err {
                        0 => Ok(Response::decode(request.op(), &body).unwrap().unwrap()),
                        err => Err(err),
                    });
                }
            }
        }
        self.wire = None;
        None
    }

    /// The same until there is a reply, on as many connections as it takes; whether one was lost.
    pub(super) fn ask(&mut self, request: &Request) -> (Result<Response, i32>, bool) {
        let mut lost = false;
        loop {
            if self.wire.is_none() {
                self.connect();
            }
            match self.try_ask(request) {
                Some(answer) => return (answer, lost),
                None => lost = true,
            }
        }
    }

    /// A frame that was read: the reply to `xid`, or something else that is kept or passed over.
    fn heard(&mut self, frame: Bytes, xid: i32) -> Option<(ReplyHeader, Bytes)> {
        let (header, body) = split_reply(frame).unwrap();
        if header.xid == NOTIFICATION_XID {
            let event = WatcherEvent::decode(&body).unwrap();
            for paths in [&mut self.watches.data, &mut self.watches.exist, &mut self.watches.child]
            {
                paths.remove(&event.path);
            }
            self.events.push(event);
            return None;
        }
        if header.zxid > self.seen {
            self.seen = header.zxid;
        }
        if header.xid == SET_WATCHES_XID {
            assert_eq!(header.err, 0, "watches are set again");
            return None;
        }
        assert_eq!(header.xid, xid, "replies come in order");
        Some((header, body))
    }

    /// Hears what it is told until then; comes back to another server if its own goes.
    pub(super) fn idle(&mut self, until: Instant) {
        while Instant::now() < until {
            let Some(wire) = &mut self.wire else {
                self.connect();
                continue;
            };
            match wire.next(until) {
                Got::Frame(frame) => {
                    let reply = self.heard(frame, 0);
                    assert!(reply.is_none(), "nothing was asked");
                }
                Got::Nothing => return,
                Got::Closed => self.wire = None,
            }
        }
    }

    /// Reads a node's data and watches it.
    pub(super) fn watch_data(&mut self, path: &str) {
        let path = path.to_owned();
        self.ask(&Request::GetData { path: path.clone(), watch: true }).0.unwrap();
        self.watches.data.insert(path);
    }

    /// Waits for a node that is not there.
    pub(super) fn watch_absent(&mut self, path: &str) {
        let path = path.to_owned();
        assert!(self.ask(&Request::Exists { path: path.clone(), watch: true }).0.is_err());
        self.watches.exist.insert(path);
    }

    /// Lists a node's children and watches them.
    pub(super) fn watch_children(&mut self, path: &str) {
        let path = path.to_owned();
        self.ask(&Request::GetChildren { path: path.clone(), watch: true }).0.unwrap();
        self.watches.child.insert(path);
    }

    /// Watches a node and all below it, until the end.
    pub(super) fn watch_below(&mut self, path: &str) {
        let path = path.to_owned();
        self.ask(&Request::AddWatch { path: path.clone(), mode: 1 }).0.unwrap();
        self.watches.recursive.insert(path);
    }
}

/// A connection, and what was read from it and is no whole frame yet.
#[derive(Debug)]
struct Wire {
    stream: TcpStream,
    bytes: BytesMut,
}

enum Got {
    Frame(Bytes),
    Nothing,
    Closed,
}

impl Wire {
    /// The next frame, if it comes until then.
    fn next(&mut self, until: Instant) -> Got {
        loop {
            if let Some(length) = self.bytes.first_chunk().copied().map(u32::from_be_bytes) {
                let length = usize::try_from(length).unwrap();
                if self.bytes.len() >= 4 + length {
                    self.bytes.advance(4);
                    return Got::Frame(self.bytes.split_to(length).freeze());
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Got::Nothing;
            }
            self.stream.set_read_timeout(Some(left)).unwrap();
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece) {
                Ok(0) => return Got::Closed,
                Ok(read) => self.bytes.extend_from_slice(&piece[..read]),
                Err(err) if matches!(err.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(err) if err.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Got::Closed,
            }
        }
    }
}

/// A session that no server takes for so long is given up, and the test with it.
const GIVE_UP: Duration = Duration::from_secs(60);

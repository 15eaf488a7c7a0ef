//! A client in frames: it sends what no client of others would, and sees each reply and each end of a connection.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use quorate_service::wire::{
    AUTH_XID, ConnectRequest, ConnectResponse, NOTIFICATION_XID, ReplyHeader, Request, Response,
    SET_WATCHES_XID, WatcherEvent, op, split_reply,
};
use quorate_tokio::core::zxid::Zxid;
use quorate_znode::acl::Acl;

use crate::common::until;

/// What makes a session again on another connection.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) session: i64,
    pub(crate) password: Bytes,
    pub(crate) timeout_ms: i32,
}

/// A connection with a session.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    pub(crate) ticket: Ticket,
    /// The last transaction that a reply told of.
    pub(crate) seen: Zxid,
    xid: i32,
    /// Those that came since it was last looked.
    pub(crate) events: Vec<WatcherEvent>,
}

/// How a connection begins.
#[derive(Debug)]
pub(crate) enum Connected {
    Yes(Client),
    /// The session has ended, or this is not its password.
    Refused,
    /// The server closed the connection without a word.
    Closed,
}

impl Client {
    /// Opens a session.
    pub(crate) fn open(port: u16, timeout_ms: i32) -> Self {
        let nobody = Ticket { session: 0, password: vec![0; 16].into(), timeout_ms };
        match Self::connect(port, &nobody, Zxid::ZERO) {
            Connected::Yes(client) => client,
            other @ (Connected::Refused | Connected::Closed) => {
                panic!("no session at {port}: {other:?}")
            }
        }
    }

    /// Goes on with a session at this server.
    pub(crate) fn moved(&self, port: u16) -> Self {
        match Self::settled(port, &self.ticket, self.seen) {
            Connected::Yes(client) => client,
            other @ (Connected::Refused | Connected::Closed) => {
                panic!("session {:x} at {port}: {other:?}", self.ticket.session)
            }
        }
    }

    /// Connects until the server says something: one that has seen less than the client says nothing.
    pub(crate) fn settled(port: u16, ticket: &Ticket, seen: Zxid) -> Connected {
        until("a server that has caught up", || match Self::connect(port, ticket, seen) {
            Connected::Closed => None,
            other @ (Connected::Yes(_) | Connected::Refused) => Some(other),
        })
    }

    /// Goes on with a session, or opens one if it is 0.
    pub(crate) fn connect(port: u16, ticket: &Ticket, seen: Zxid) -> Connected {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
            return Connected::Closed;
        };
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let request = ConnectRequest {
            protocol: 0,
            last_zxid: seen,
            timeout_ms: ticket.timeout_ms,
            session: ticket.session,
            password: ticket.password.clone(),
            read_only: Some(false),
        };
        // A server that closes at once may have done so by now.
        drop(stream.write_all(&request.encode()));
        Self::connected(stream, seen)
    }

    /// Waits for the answer to the first frame.
    pub(crate) fn connected(mut stream: TcpStream, seen: Zxid) -> Connected {
        let Some(frame) = next(&mut stream) else { return Connected::Closed };
        let ConnectResponse { timeout_ms, session, password, .. } =
            ConnectResponse::decode(&frame).unwrap();
        if timeout_ms <= 0 {
            return Connected::Refused;
        }
        let password = Bytes::copy_from_slice(&password);
        let ticket = Ticket { session, password, timeout_ms };
        Connected::Yes(Self { stream, ticket, seen, xid: 0, events: Vec::new() })
    }

    /// Sends a request, and waits for no reply.
    pub(crate) fn send(&mut self, request: &Request) {
        let xid = match request.op() {
            op::AUTH => AUTH_XID,
            op::SET_WATCHES | op::SET_WATCHES2 => SET_WATCHES_XID,
            _ => self.next_xid(),
        };
        self.stream.write_all(&request.frame(xid)).unwrap();
    }

    /// Sends these bytes as the body of a request.
    pub(crate) fn send_raw(&mut self, op: i32, body: &[u8]) {
        let mut frame = BytesMut::new();
        frame.put_i32(i32::try_from(8 + body.len()).unwrap());
        frame.put_i32(self.next_xid());
        frame.put_i32(op);
        frame.put_slice(body);
        self.stream.write_all(&frame).unwrap();
    }

    const fn next_xid(&mut self) -> i32 {
        self.xid += 1;
        self.xid
    }

    /// The next reply; none if the server has closed the connection.
    pub(crate) fn reply(&mut self) -> Option<(ReplyHeader, Bytes)> {
        loop {
            let (header, body) = split_reply(next(&mut self.stream)?).unwrap();
            if header.xid == NOTIFICATION_XID {
                self.events.push(WatcherEvent::decode(&body).unwrap());
                continue;
            }
            if header.zxid > self.seen {
                self.seen = header.zxid;
            }
            return Some((header, body));
        }
    }

    /// Waits for a reply to a request of this operation; none if the server has closed the connection.
    pub(crate) fn answer(&mut self, op: i32) -> Option<Result<Response, i32>> {
        let (header, body) = self.reply()?;
        Some(match header.err {
            0 => Ok(Response::decode(op, &body).unwrap().unwrap()),
            err => Err(err),
        })
    }

    /// Asks, and waits for the reply; none if the server closes the connection.
    pub(crate) fn try_ask(&mut self, request: &Request) -> Option<Result<Response, i32>> {
        self.send(request);
        self.answer(request.op())
    }

    /// Asks, and waits for the reply.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Response, i32> {
        let answer = self.try_ask(request);
        answer.unwrap_or_else(|| panic!("closed: {request:?}"))
    }

    /// Waits for the next event.
    pub(crate) fn event(&mut self) -> WatcherEvent {
        while self.events.is_empty() {
            // Its reply comes behind what happened before.
            self.ask(&Request::Ping).unwrap();
        }
        self.events.remove(0)
    }

    /// Waits for the server to have all that the leader had.
    pub(crate) fn sync(&mut self) {
        self.ask(&Request::Sync { path: Some("/".into()) }).unwrap();
    }

    /// The connection, to write to it and to read from it on two threads.
    pub(crate) fn stream(&self) -> TcpStream {
        self.stream.try_clone().unwrap()
    }
}

/// The next frame; none if the server has closed the connection.
pub(crate) fn next(stream: &mut TcpStream) -> Option<Bytes> {
    let mut length = [0; 4];
    let mut body = Vec::new();
    let read = stream.read_exact(&mut length).and_then(|()| {
        body.resize(usize::try_from(i32::from_be_bytes(length)).unwrap(), 0);
        stream.read_exact(&mut body)
    });
    match read {
        Ok(()) => Some(body.into()),
        Err(err) if matches!(err.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("waited for a reply")
        }
        Err(_) => None,
    }
}

/// To create a node that everybody may do everything with.
pub(crate) fn create(op: i32, path: &str, flags: i32) -> Request {
    let ttl = (op == op::CREATE_TTL).then_some(3_600_000);
    let (path, data) = (path.to_owned(), Some(Bytes::from_static(b"data")));
    Request::Create { op, path, data, acl: Some(vec![Acl::world(31)]), flags, ttl }
}

/// To create a persistent one.
pub(crate) fn plain(path: &str) -> Request {
    create(op::CREATE, path, 0)
}

/// To create one that goes with its session.
pub(crate) fn ephemeral(path: &str) -> Request {
    create(op::CREATE, path, 1)
}

pub(crate) fn set(path: &str, data: &str) -> Request {
    let data = Some(Bytes::copy_from_slice(data.as_bytes()));
    Request::SetData { path: path.to_owned(), data, version: -1 }
}

pub(crate) fn exists(path: &str) -> Request {
    Request::Exists { path: path.to_owned(), watch: false }
}

pub(crate) fn get(path: &str) -> Request {
    Request::GetData { path: path.to_owned(), watch: false }
}

pub(crate) fn delete(path: &str) -> Request {
    Request::Delete { path: path.to_owned(), version: -1 }
}

/// To prove to be somebody.
pub(crate) fn auth(proof: &'static str) -> Request {
    Request::Auth {
        kind: 0,
        scheme: Some("digest".into()),
        auth: Bytes::from_static(proof.as_bytes()),
    }
}

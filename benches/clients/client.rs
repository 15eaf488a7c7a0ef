//! A client that waits for each reply.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use quorate_core::zxid::Zxid;
use quorate_service::wire::{ConnectRequest, Request, op};
use quorate_znode::acl::Acl;

use crate::Outcome;

/// A client's connection, with a session.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    held: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(port: u16) -> Outcome<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut client = Self { stream, held: Vec::new() };
        let request = ConnectRequest {
            protocol: 0,
            last_zxid: Zxid::ZERO,
            timeout_ms: 30_000,
            session: 0,
            password: Bytes::from(vec![0; 16]),
            read_only: Some(false),
        };
        client.stream.write_all(&request.encode())?;
        client.reply()?;
        Ok(client)
    }

    /// Asks, and waits for the body of the reply behind its header.
    pub(crate) fn ask(&mut self, request: &Request) -> Outcome<Vec<u8>> {
        self.send(request)?;
        self.answer()
    }

    pub(crate) fn send(&mut self, request: &Request) -> Outcome<()> {
        Ok(self.stream.write_all(&request.frame(1))?)
    }

    /// The body of the next reply.
    pub(crate) fn answer(&mut self) -> Outcome<Vec<u8>> {
        let frame = self.reply()?;
        match code(&frame) {
            0 => Ok(frame.get(20..).unwrap_or_default().to_vec()),
            code => Err(format!("refused: {code}").into()),
        }
    }

    /// Creates a node of so many bytes.
    pub(crate) fn create(&mut self, path: &str, bytes: usize) -> Outcome<()> {
        self.ask(&create(path, bytes)).map(drop)
    }

    /// The version of a node's data.
    pub(crate) fn version(&mut self, path: &str) -> Outcome<i32> {
        let stat = self.ask(&Request::Exists { path: path.into(), watch: false })?;
        let version = stat.get(32..36).and_then(<[u8]>::first_chunk).ok_or("no stat")?;
        Ok(i32::from_be_bytes(*version))
    }

    /// The next frame, with its length.
    fn reply(&mut self) -> Outcome<Vec<u8>> {
        let mut chunk = [0; 4 << 10];
        loop {
            if let Some(whole) = whole(&self.held) {
                return Ok(self.held.drain(..whole).collect());
            }
            let read = self.stream.read(&mut chunk)?;
            if read == 0 {
                return Err("the server has closed the connection".into());
            }
            self.held.extend_from_slice(&chunk[..read]);
        }
    }
}

/// How long the first frame is with its length, if it has come whole.
pub(crate) fn whole(held: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(*held.first_chunk()?);
    let whole = usize::try_from(length).ok()?.checked_add(4)?;
    (held.len() >= whole).then_some(whole)
}

/// The error in the header of a reply.
pub(crate) fn code(frame: &[u8]) -> i32 {
    frame.get(16..).and_then(<[u8]>::first_chunk).copied().map_or(-1, i32::from_be_bytes)
}

/// To create a node of so many bytes.
pub(crate) fn create(path: &str, bytes: usize) -> Request {
    let (data, acl) = (Some(Bytes::from(vec![7; bytes])), Some(vec![Acl::world(31)]));
    Request::Create { op: op::CREATE, path: path.into(), data, acl, flags: 0, ttl: None }
}

/// To set a node's data.
pub(crate) fn set(path: &str, bytes: usize) -> Request {
    Request::SetData { path: path.into(), data: Some(Bytes::from(vec![7; bytes])), version: -1 }
}

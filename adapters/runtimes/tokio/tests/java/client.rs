//! A client of ZooKeeper's own protocol: as much as a test needs to write, and to read a whole tree.

use std::collections::BTreeMap;
use std::io;

use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::zxid::Zxid;
use quorate_znode::acl::Acl;
use quorate_znode::stat::Stat;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A node as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Znode {
    pub data: Option<Vec<u8>>,
    pub acl: Vec<Acl>,
    pub stat: Stat,
}

/// All nodes by path.
pub type Znodes = BTreeMap<String, Znode>;

/// A connection with a session of its own. It sends no pings: it is meant to live for seconds.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    /// The last request sent.
    xid: i32,
}

/// What the server answers: a body, or an error code.
pub type Answer = Result<Vec<u8>, i32>;

pub const EPHEMERAL: i32 = 1;
pub const SEQUENTIAL: i32 = 2;

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const GET_DATA: i32 = 4;
const SET_DATA: i32 = 5;
const GET_ACL: i32 = 6;
const GET_CHILDREN: i32 = 8;
const SYNC: i32 = 9;
const RECONFIGURE: i32 = 16;
const ADD_AUTH: i32 = 100;
const CLOSE: i32 = -11;

/// The setting of a server by which [`Client::rise`] may do anything.
pub const SUPER: &str =
    "DigestAuthenticationProvider.superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4=";

impl Client {
    /// Opens a session, which is a transaction. Fails if the server does not serve.
    pub async fn connect(port: u16) -> io::Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let mut hello = Body::default().int(0).long(0).int(10_000).long(0).buffer(&[0; 16]).0;
        hello.push(0);
        stream.write_all(&framed(&hello)).await?;
        let mut client = Self { stream, xid: 0 };
        let welcome = client.frame().await?;
        // The negotiated timeout; none if the session is refused.
        if int(&mut &welcome[4..]) == 0 {
            return Err(io::Error::other("the session was refused"));
        }
        Ok(client)
    }

    pub async fn create(&mut self, path: &str, data: &[u8], flags: i32) -> Result<String, i32> {
        let created = self.ask(CREATE, create(path, data, flags)).await?;
        Ok(string(&mut &created[..]))
    }

    pub async fn set(&mut self, path: &str, data: &[u8], version: i32) -> Result<(), i32> {
        let body = Body::default().buffer(path.as_bytes()).buffer(data).int(version);
        self.ask(SET_DATA, body).await.map(drop)
    }

    pub async fn delete(&mut self, path: &str, version: i32) -> Result<(), i32> {
        let body = Body::default().buffer(path.as_bytes()).int(version);
        self.ask(DELETE, body).await.map(drop)
    }

    /// Waits until this server has everything that the leader had committed before.
    pub async fn sync(&mut self) -> Result<(), i32> {
        self.ask(SYNC, Body::default().buffer(b"/")).await.map(drop)
    }

    /// Creates so many nodes below one, which is made for them; all of them are asked for at once.
    pub async fn fill(&mut self, parent: &str, count: usize) {
        self.create(parent, b"many", 0).await.unwrap();
        for _ in 0..count {
            self.send(CREATE, create(&format!("{parent}/n-"), &[7; 20], SEQUENTIAL)).await.unwrap();
        }
        for _ in 0..count {
            self.answer().await.unwrap().unwrap();
        }
    }

    /// Creates all these, which go with the session; some hundreds are on their way at a time.
    pub async fn hold(&mut self, paths: impl Iterator<Item = String>) {
        let mut under_way = 0;
        for path in paths {
            self.send(CREATE, create(&path, b"", EPHEMERAL)).await.unwrap();
            under_way += 1;
            if under_way > 500 {
                self.answer().await.unwrap().unwrap();
                under_way -= 1;
            }
        }
        for _ in 0..under_way {
            self.answer().await.unwrap().unwrap();
        }
    }

    /// Everything that there is.
    pub async fn znodes(&mut self) -> Znodes {
        let mut znodes = Znodes::new();
        let mut level = vec!["/".to_owned()];
        while !level.is_empty() {
            for path in &level {
                for (op, watch) in [(GET_DATA, true), (GET_ACL, false), (GET_CHILDREN, true)] {
                    let mut body = Body::default().buffer(path.as_bytes());
                    body.0.extend(watch.then_some(0));
                    self.send(op, body).await.unwrap();
                }
            }
            let mut below = Vec::new();
            for path in level {
                let mut answers = [const { Vec::new() }; 3];
                for answer in &mut answers {
                    *answer = self.answer().await.unwrap().unwrap_or_else(|code| {
                        panic!("{path} cannot be read: {code}");
                    });
                }
                let [data, acl, children] = &mut answers.each_ref().map(Vec::as_slice);
                for _ in 0..int(children) {
                    let name = string(children);
                    below.push(format!("{}/{name}", path.trim_end_matches('/')));
                }
                let data = (buffer(data), stat(data));
                let acl = (0..int(acl)).map(|_| Acl {
                    perms: int(acl),
                    scheme: string(acl).into(),
                    id: string(acl).into(),
                });
                znodes.insert(path, Znode { data: data.0, acl: acl.collect(), stat: data.1 });
            }
            level = below;
        }
        znodes
    }

    /// Says who it is, so that it may do anything; see [`SUPER`].
    pub async fn rise(&mut self) {
        let body = Body::default().int(0).buffer(b"digest").buffer(b"super:secret");
        let request = [&Body::default().int(-4).int(ADD_AUTH).0[..], &body.0].concat();
        self.stream.write_all(&framed(&request)).await.unwrap();
        self.answer().await.unwrap().unwrap();
    }

    /// Changes the membership; the text of the next one.
    pub async fn reconfigure(&mut self, asked: &Reconfiguration) -> Result<String, i32> {
        self.send_reconfigure(asked).await.unwrap();
        let answer = self.answer().await.unwrap()?;
        Ok(string(&mut &answer[..]))
    }

    /// Sends that and does not wait for what becomes of it.
    pub async fn send_reconfigure(&mut self, asked: &Reconfiguration) -> io::Result<()> {
        self.send(RECONFIGURE, Body(asked.encode().to_vec())).await
    }

    /// Ends the session.
    pub async fn close(mut self) {
        self.ask(CLOSE, Body::default()).await.unwrap();
    }

    /// Asks and waits for the answer.
    ///
    /// # Panics
    ///
    /// If the connection ends: the server does not serve any more.
    async fn ask(&mut self, op: i32, body: Body) -> Answer {
        self.send(op, body).await.unwrap();
        self.answer().await.unwrap()
    }

    async fn send(&mut self, op: i32, body: Body) -> io::Result<()> {
        self.xid += 1;
        let request = [&Body::default().int(self.xid).int(op).0[..], &body.0].concat();
        self.stream.write_all(&framed(&request)).await
    }

    /// Sends a create and does not wait for what becomes of it.
    pub async fn send_create(&mut self, path: &str) -> io::Result<()> {
        self.send(CREATE, create(path, b"", 0)).await
    }

    /// The answer to the oldest request that has none yet.
    pub async fn answer(&mut self) -> io::Result<Answer> {
        let frame = self.frame().await?;
        let (head, body) = frame.split_at(16);
        match int(&mut &head[12..]) {
            0 => Ok(Ok(body.to_vec())),
            code => Ok(Err(code)),
        }
    }

    async fn frame(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.stream.read_i32().await?).map_err(io::Error::other)?;
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame).await?;
        Ok(frame)
    }
}

/// The body of a create, as a request.
pub fn create(path: &str, data: &[u8], flags: i32) -> Body {
    let body = Body::default().buffer(path.as_bytes()).buffer(data);
    body.int(1).int(31).buffer(b"world").buffer(b"anyone").int(flags)
}

/// Something that is being written.
#[derive(Debug, Default)]
pub struct Body(pub Vec<u8>);

impl Body {
    fn int(mut self, int: i32) -> Self {
        self.0.extend(int.to_be_bytes());
        self
    }

    fn long(mut self, long: i64) -> Self {
        self.0.extend(long.to_be_bytes());
        self
    }

    fn buffer(self, bytes: &[u8]) -> Self {
        let mut body = self.int(i32::try_from(bytes.len()).unwrap());
        body.0.extend(bytes);
        body
    }
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    Body::default().buffer(bytes).0
}

fn chunk<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (chunk, after) = rest.split_first_chunk().unwrap();
    *rest = after;
    *chunk
}

fn int(rest: &mut &[u8]) -> i32 {
    i32::from_be_bytes(chunk(rest))
}

fn long(rest: &mut &[u8]) -> i64 {
    i64::from_be_bytes(chunk(rest))
}

fn buffer(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(int(rest)).ok()?;
    let (buffer, after) = rest.split_at(length);
    *rest = after;
    Some(buffer.to_vec())
}

fn string(rest: &mut &[u8]) -> String {
    String::from_utf8(buffer(rest).unwrap()).unwrap()
}

fn stat(rest: &mut &[u8]) -> Stat {
    Stat {
        czxid: Zxid(long(rest)),
        mzxid: Zxid(long(rest)),
        ctime: long(rest),
        mtime: long(rest),
        version: int(rest),
        cversion: int(rest),
        aversion: int(rest),
        ephemeral_owner: long(rest),
        data_length: int(rest),
        num_children: int(rest),
        pzxid: Zxid(long(rest)),
    }
}

//! A service for the scenarios: what its clients ask is answered in order, each as far as it can be.
//!
//! ```text
//!   i32 length · u8 what is asked · body            p  put: a transaction       g  get: how many there are
//!   i32 length · the same letter · the answer       s  sync, then get           b  so many bytes
//!                                                   h  hold: read nothing more of this client before a put
//!                                                   t  at the next tick         v  ask the leader
//!   k  keep a number; the one that was kept before
//!                                                   w  when a learner tells of sessions     l  when a link is lost
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_application::clients::{
    ClientId, Clients, Close, Event, Frame, Framing, Host, Input, Output, SyncId, Transport,
};
use quorate_core::id::Origin;
use quorate_core::message::Request;
use quorate_core::time::Instant;
use quorate_core::txn::{RequestId, Txn};
use quorate_core::zxid::{Epoch, Zxid};

use super::journal::{App, Journal};
use crate::{Application, Facts, Prepared, Replicated};

/// A journal with a service in front of it.
#[derive(Debug)]
pub struct Echo(App);

impl Default for Echo {
    fn default() -> Self {
        Self(Replicated::new("journal", Journal::default()))
    }
}

impl Application for Echo {
    type Snapshot = <App as Application>::Snapshot;
    type Staged = <App as Application>::Staged;
    type Restore = <App as Application>::Restore;
    type Effect = Bytes;
    type Clients = Answers;

    const PROTOCOL: i32 = App::PROTOCOL;

    fn clients(&mut self, host: Host) -> Answers {
        Answers {
            id: host.id.0,
            frame_bytes_max: host.frame_bytes_max,
            kept: host.remembered.unwrap_or(0),
            ..Answers::default()
        }
    }

    fn prepare(&mut self, request: &Request, origin: Origin, facts: &Facts) -> Prepared {
        self.0.prepare(request, origin, facts)
    }

    fn void(&mut self) {
        self.0.void();
    }

    fn apply(&mut self, txn: &Txn) -> Bytes {
        self.0.apply(txn)
    }

    fn reply(effect: &Bytes) -> Bytes {
        effect.clone()
    }

    fn abandon(&mut self) {
        self.0.abandon();
    }

    fn snapshot(&self) -> Self::Snapshot {
        self.0.snapshot()
    }

    fn restore(label: Zxid) -> Self::Restore {
        App::restore(label)
    }

    fn staged_snapshot(staged: &Self::Staged) -> Self::Snapshot {
        App::staged_snapshot(staged)
    }

    fn adopt(&mut self, staged: Self::Staged) {
        self.0.adopt(staged);
    }
}

/// A length, and as many bytes; a length that cannot be is no frame: twice as many as others may have can be.
#[derive(Clone, Debug, Default)]
pub struct Lengths {
    max: usize,
}

impl Framing for Lengths {
    fn take(&mut self, bytes: &mut BytesMut) -> Option<Frame> {
        let length = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
        if length == 0 || length > self.max {
            return Some(Frame::Garbled);
        }
        if bytes.len() < 4 + length {
            return None;
        }
        bytes.advance(4);
        Some(Frame::Whole(bytes.split_to(length).freeze()))
    }

    fn announced(&self, bytes: &[u8]) -> Option<usize> {
        let length = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
        (1..=self.max).contains(&length).then_some(4 + length)
    }
}

/// The clients of one server.
#[derive(Debug, Default)]
pub struct Answers {
    id: i64,
    frame_bytes_max: usize,
    kept: i64,
    serves: bool,
    epoch: Option<Epoch>,
    leads: bool,
    clients: BTreeMap<ClientId, Client>,
    tick: Option<Instant>,
    /// When it stops waiting for its clients.
    stops: Option<Instant>,
    syncs: BTreeMap<SyncId, ClientId>,
    next_sync: u64,
    /// How many clients had begun a frame before it was whole.
    begun: u64,
}

#[derive(Debug, Default)]
struct Client {
    asked: VecDeque<Bytes>,
    /// What the first of them waits for.
    waits: Option<u8>,
    /// How many puts there were.
    puts: i32,
    /// How many bytes are not written.
    unwritten: usize,
    held: bool,
    over: Transport,
}

impl Answers {
    fn session(&self, client: ClientId) -> i64 {
        (self.id << 48) | i64::try_from(client.0).unwrap()
    }

    /// Answers what can be answered.
    fn go_on(&mut self, client: ClientId, at: Instant, count: u64, out: &mut Vec<Output>) {
        let session = self.session(client);
        let Some(of) = self.clients.get_mut(&client) else { return };
        while of.waits.is_none() && of.unwritten <= HELD_BACK {
            let Some(question) = of.asked.front() else { return };
            let (letter, body) = (question[0], question.slice(1..));
            match letter {
                b'p' => {
                    of.puts += 1;
                    let id = RequestId { client: session, cxid: of.puts };
                    let op = quorate_application::SET_DATA;
                    let request = Request { id, op, body: body.clone(), identities: None };
                    out.push(Output::Submit { epoch: self.epoch.unwrap_or(Epoch::ZERO), request });
                }
                b's' => {
                    let sync = SyncId(self.next_sync);
                    self.next_sync += 1;
                    self.syncs.insert(sync, client);
                    out.push(Output::Sync(sync));
                }
                b'h' => {
                    of.held = true;
                    out.push(Output::Pause(client));
                }
                b'k' => out.push(Output::Remember((&body[..]).get_i64())),
                b't' => self.tick = Some(at + TICK),
                b'v' if !self.leads => out.push(Output::Revalidate(body.clone())),
                _ => {}
            }
            let now = match letter {
                b'g' => Some(Bytes::copy_from_slice(&count.to_be_bytes())),
                b'e' => Some(Bytes::copy_from_slice(&self.begun.to_be_bytes())),
                b'b' => Some(vec![0; (&body[..]).get_u32() as usize].into()),
                b'h' => Some(Bytes::new()),
                b'i' => Some(of.who()),
                b'k' => Some(Bytes::copy_from_slice(&self.kept.to_be_bytes())),
                b'v' if self.leads => Some(body),
                _ => None,
            };
            match now {
                Some(answer) => of.answer(client, &answer, out),
                None => of.waits = Some(letter),
            }
        }
    }

    /// What so many wait for has come.
    fn come(&mut self, letter: u8, answer: &[u8], out: &mut Vec<Output>) -> Vec<ClientId> {
        let waiting = self.clients.iter_mut().filter(|(_, of)| of.waits == Some(letter));
        waiting
            .map(|(client, of)| {
                of.answer(*client, answer, out);
                *client
            })
            .collect()
    }
}

impl Client {
    /// Whose certificate it has shown.
    fn who(&self) -> Bytes {
        Bytes::copy_from_slice(match &self.over {
            Transport::Plain => b"plain",
            Transport::Tls { subject: None } => b"nobody",
            Transport::Tls { subject: Some(subject) } => subject.as_bytes(),
        })
    }

    fn answer(&mut self, client: ClientId, answer: &[u8], out: &mut Vec<Output>) {
        self.waits = None;
        let letter = self.asked.pop_front().unwrap()[0];
        let mut bytes = BytesMut::new();
        bytes.put_u32(u32::try_from(answer.len() + 1).unwrap());
        bytes.put_u8(letter);
        bytes.put_slice(answer);
        self.unwritten += bytes.len();
        out.push(Output::Send { client, bytes: bytes.freeze() });
    }
}

impl Clients<Echo> for Answers {
    type Framing = Lengths;

    const SERVES: bool = true;

    fn framing(&self) -> Lengths {
        Lengths { max: 2 * self.frame_bytes_max }
    }

    fn step_into(&mut self, input: Input, application: &mut Echo, out: &mut Vec<Output>) {
        let Input { at, event, .. } = input;
        let count = application.0.machine().entries.len() as u64;
        let stirred = match event {
            Event::Connected { client, over, .. } => {
                self.clients.insert(client, Client { over, ..Client::default() });
                if !self.serves {
                    out.push(Output::Close { client, how: Close::Reset });
                }
                vec![client]
            }
            Event::Received { client, frames } => {
                for frame in frames {
                    match frame {
                        Frame::Whole(question) => {
                            self.clients.get_mut(&client).unwrap().asked.push_back(question);
                        }
                        Frame::Word(_) | Frame::Garbled => {
                            out.push(Output::Send { client, bytes: Bytes::from_static(b"bad!") });
                            out.push(Output::Close { client, how: Close::AfterWriting });
                            self.clients.remove(&client);
                        }
                    }
                }
                vec![client]
            }
            Event::Begun(_) => {
                self.begun += 1;
                vec![]
            }
            Event::Heard(_) => vec![],
            Event::Written { client, bytes } => {
                self.clients.get_mut(&client).unwrap().unwritten -= bytes;
                vec![client]
            }
            Event::Disconnected(client) => {
                assert!(self.clients.remove(&client).is_some(), "told once");
                vec![]
            }
            Event::Serving { epoch, leads, .. } => {
                (self.serves, self.epoch, self.leads) = (true, Some(epoch), leads);
                vec![]
            }
            Event::Replaced => vec![],
            Event::Retired => {
                self.serves = false;
                for (client, _) in std::mem::take(&mut self.clients) {
                    out.push(Output::Close { client, how: Close::Reset });
                }
                vec![]
            }
            Event::Tick if self.stops.is_some_and(|stops| stops <= at) => vec![],
            Event::Tick => {
                assert!(self.tick.take().is_some_and(|due| due <= at), "when it is due");
                self.come(b't', b"", out)
            }
            Event::Synced(sync) => {
                let client = self.syncs.remove(&sync).unwrap();
                let of = self.clients.get_mut(&client);
                if let Some(of) = of {
                    of.answer(client, &count.to_be_bytes(), out);
                }
                vec![client]
            }
            Event::SyncRefused(sync) => {
                let client = self.syncs.remove(&sync).unwrap();
                if self.clients.remove(&client).is_some() {
                    out.push(Output::Close { client, how: Close::Reset });
                }
                vec![]
            }
            Event::Pinged => {
                out.push(Output::Touch(Bytes::from_static(b"\0\0\0\0\0\0\0\x07\0\0\0\x09")));
                vec![]
            }
            Event::Touched { sessions, .. } => self.come(b'w', &sessions, out),
            Event::Revalidate { from, body } => {
                out.push(Output::Revalidated { to: from, body });
                vec![]
            }
            Event::Revalidated(body) => self.come(b'v', &body, out),
            Event::LinkLost(_) => self.come(b'l', b"", out),
            Event::Noted(_) | Event::Shed { .. } => vec![],
            Event::Stopping { within } => {
                self.stops = Some(at + within);
                vec![]
            }
        };
        for client in stirred {
            self.go_on(client, at, count, out);
        }
        let waits = !self.clients.is_empty() && self.stops.is_some_and(|stops| at < stops);
        if self.stops.is_some() && !waits {
            self.stops = None;
            out.push(Output::Vacated);
        }
    }

    fn on_applied(
        &mut self,
        at: Instant,
        txn: &Txn,
        effect: &Bytes,
        application: &mut Echo,
        out: &mut Vec<Output>,
    ) {
        let count = application.0.machine().entries.len() as u64;
        let ids: Vec<_> = self.clients.keys().copied().collect();
        for client in ids {
            let mine = self.session(client) == txn.header.client;
            let Some(of) = self.clients.get_mut(&client) else { continue };
            if std::mem::take(&mut of.held) {
                out.push(Output::Resume(client));
            }
            if mine && of.waits == Some(b'p') {
                assert_eq!(of.puts, txn.header.cxid, "in order");
                of.answer(client, effect, out);
                self.go_on(client, at, count, out);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.tick.into_iter().chain(self.stops).min()
    }
}

/// While more is not written, nothing more is answered.
const HELD_BACK: usize = 1 << 20;
/// When the tick comes that is asked for.
const TICK: Duration = Duration::from_millis(20);

//! A server's service without the server: what it submits is prepared and applied at once or when it is said, and clients
//! are what they send and hear.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_application::clients::{
    ClientId, Clients, Event, Frame, Framing, Host, Input, Output, SyncId, Transport,
};
use quorate_application::{Application, Facts};
use quorate_core::id::{LinkId, Origin, ServerId};
use quorate_core::membership::Membership;
use quorate_core::message::Request as Submitted;
use quorate_core::time::Instant;
use quorate_core::txn::{RequestId, Txn, TxnHeader};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_service::wire::{
    ConnectRequest, ConnectResponse, ReplyHeader, Request, Response, WatcherEvent, op, split_reply,
};
use quorate_service::{Options, Service, Words, ZooKeeper};
use quorate_znode::Tree;

/// A tick.
pub(crate) const TICK: Duration = Duration::from_millis(500);

/// What a server is to its ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Leader,
    Follower,
    Observer,
}

impl Part {
    pub(crate) const ALL: [Self; 3] = [Self::Leader, Self::Follower, Self::Observer];
}

/// One server that leads or follows, and its clients.
pub(crate) struct Stand {
    pub(crate) state: ZooKeeper,
    pub(crate) service: Service,
    pub(crate) now: Instant,
    pub(crate) wall_ms: i64,
    /// Submitted, and not applied.
    pub(crate) submitted: VecDeque<Submitted>,
    pub(crate) syncs: VecDeque<SyncId>,
    /// What is asked of the leader, or told a learner.
    pub(crate) asked: Vec<Output>,
    /// The audit log.
    pub(crate) audited: String,
    /// How often it stepped because time had passed.
    pub(crate) ticks: usize,
    /// Where the bytes lie that were sent last, and to whom.
    pub(crate) places: Vec<(ClientId, *const u8)>,
    next_zxid: i64,
    next_client: u64,
    /// What each client was sent, and whether its connection was closed.
    heard: BTreeMap<ClientId, (BytesMut, bool)>,
    paused: BTreeMap<ClientId, bool>,
    id: ServerId,
    /// Of the leader that it served under last.
    epoch: Epoch,
    /// Its leaders leave marks.
    pub(crate) marks: bool,
    /// What the last step wanted done.
    pub(crate) last: Vec<Output>,
}

/// What a client hears.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    Event(i32, String),
    Reply(i32, i32, Bytes),
    Closed,
}

impl Stand {
    /// A server that serves.
    pub(crate) fn new(leads: bool) -> Self {
        Self::with(leads, |_| {})
    }

    pub(crate) fn with(leads: bool, set: impl FnOnce(&mut Options)) -> Self {
        let mut stand = Self::idle(1, set);
        stand.serve(leads);
        stand
    }

    /// A server that is this to its ensemble.
    pub(crate) fn part(part: Part) -> Self {
        let mut stand = Self::idle(1, |options| options.extended_types = true);
        stand.serve_as(part);
        stand
    }

    /// A server that does not serve yet.
    pub(crate) fn idle(id: i64, set: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options { words: Words::All, ..Options::default() };
        set(&mut options);
        Self::of(id, ZooKeeper::with(options))
    }

    fn of(id: i64, mut state: ZooKeeper) -> Self {
        let id = ServerId(id);
        let host = Host {
            id,
            tick: TICK,
            frame_bytes_max: 1_048_575,
            txn_bytes_max: Txn::BYTES_MAX,
            remembered: None,
        };
        let service = state.clients(host);
        Self {
            state,
            service,
            now: Instant::ORIGIN,
            wall_ms: 1_700_000_000_000,
            submitted: VecDeque::new(),
            syncs: VecDeque::new(),
            asked: Vec::new(),
            audited: String::new(),
            ticks: 0,
            places: Vec::new(),
            next_zxid: 0x1_0000_0001,
            next_client: 1,
            heard: BTreeMap::new(),
            paused: BTreeMap::new(),
            id,
            epoch: Epoch(0),
            marks: true,
            last: Vec::new(),
        }
    }

    /// The same server after a restart, from its snapshot: it does not serve yet.
    pub(crate) fn restarted(&self) -> Self {
        let mut bytes = Vec::new();
        self.tree().write_snapshot(&mut bytes).unwrap();
        let mut state = ZooKeeper::with(Options { words: Words::All, ..Options::default() });
        state.adopt(Tree::restore(&bytes[..], self.tree().last_zxid()).unwrap());
        let again = Self::of(self.id.0, state);
        Self { now: self.now, wall_ms: self.wall_ms, next_zxid: self.next_zxid, ..again }
    }

    pub(crate) fn serve(&mut self, leads: bool) {
        self.serve_as(if leads { Part::Leader } else { Part::Follower });
    }

    pub(crate) fn serve_as(&mut self, part: Part) {
        let own = if part == Part::Observer { "observer" } else { "participant" };
        let others: Vec<_> = (1..=4).filter(|id| *id != self.id.0).collect();
        let others = others
            .iter()
            .map(|id| format!("server.{id}=127.0.0.1:{}:{}:participant\n", id * 10, id * 10 + 1));
        let id = self.id.0;
        let text = format!(
            "server.{id}=127.0.0.1:{}:{}:{own}\n{}version=0",
            id * 10,
            id * 10 + 1,
            others.collect::<String>()
        );
        let membership = Box::new(Membership::parse(text.into_bytes()).unwrap());
        let leads = part == Part::Leader;
        self.epoch = Epoch(self.epoch.0 + 1);
        let (epoch, marks) = (self.epoch, self.marks);
        self.tell(Event::Serving { epoch, leads, marks, membership });
    }

    /// It has found the leader that it served under last again.
    pub(crate) fn serve_again(&mut self) {
        self.epoch = Epoch(self.epoch.0 - 1);
        self.serve(false);
    }

    /// It serves as the only server that there is.
    pub(crate) fn serve_alone(&mut self) {
        let text = format!("server.{}=127.0.0.1:10:11:participant\nversion=0", self.id.0);
        let membership = Box::new(Membership::parse(text.into_bytes()).unwrap());
        self.tell(Event::Serving { epoch: Epoch(1), leads: true, marks: true, membership });
    }

    /// The text of the membership, as the server writes it for itself.
    pub(crate) fn state_configuration(&mut self, text: &str, version: i64) {
        self.state.set_configuration(text, version, self.wall_ms);
    }

    pub(crate) fn tree(&self) -> &Tree {
        self.state.tree()
    }

    /// Something happens.
    pub(crate) fn tell(&mut self, event: Event) {
        let mut out = Vec::new();
        let input = Input { at: self.now, wall_ms: self.wall_ms, event };
        self.service.step_into(input, &mut self.state, &mut out);
        self.carry_out(out);
    }

    fn carry_out(&mut self, out: Vec<Output>) {
        self.last.clone_from(&out);
        self.places.clear();
        for output in out {
            match output {
                Output::Send { client, bytes } => {
                    let (heard, closed) = self.heard.entry(client).or_default();
                    assert!(!*closed, "{client:?} is told something behind its end");
                    heard.extend_from_slice(&bytes);
                    self.places.push((client, bytes.as_ptr()));
                }
                Output::Close { client, .. } => self.heard.entry(client).or_default().1 = true,
                Output::Pause(client) => drop(self.paused.insert(client, true)),
                Output::Resume(client) => drop(self.paused.insert(client, false)),
                Output::Submit { request, .. } => self.submitted.push_back(request),
                Output::Sync(sync) => self.syncs.push_back(sync),
                Output::Audit(line) => self.audited.push_str(&String::from_utf8_lossy(&line)),
                Output::Remember(_) | Output::Vacated | Output::Halt(_) => {}
                Output::Touch(_) | Output::Revalidate(_) | Output::Revalidated { .. } => {
                    self.asked.push(output);
                }
            }
        }
    }

    /// A learner asks for a session for a client of its own, and it is opened.
    pub(crate) fn open_by(&mut self, link: LinkId, session: i64, timeout_ms: i32) {
        let id = RequestId { client: session, cxid: 0 };
        let body = Bytes::copy_from_slice(&timeout_ms.to_be_bytes());
        let request = Submitted { id, op: op::CREATE_SESSION, body, identities: None };
        self.commit_of(&request, Origin::Learner(link));
    }

    /// Time passes, in steps of a tenth of a tick.
    pub(crate) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now = self.now + TICK / 10;
            self.wall_ms += i64::try_from((TICK / 10).as_millis()).unwrap();
            if self.service.deadline().is_some_and(|at| at <= self.now) {
                self.ticks += 1;
                self.tell(Event::Tick);
            }
        }
    }

    /// When the service wants to step.
    pub(crate) fn service_deadline(&self) -> Option<Instant> {
        self.service.deadline()
    }

    /// The oldest request becomes a transaction, and is applied.
    pub(crate) fn commit(&mut self) -> Option<Zxid> {
        let request = self.submitted.pop_front()?;
        Some(self.commit_of(&request, Origin::Service))
    }

    /// A request becomes a transaction, and is applied.
    pub(crate) fn commit_of(&mut self, request: &Submitted, origin: Origin) -> Zxid {
        let txn = self.prepare(request, origin, Zxid(self.next_zxid));
        self.next_zxid += 1;
        self.apply(&txn);
        txn.zxid
    }

    /// A request becomes a transaction.
    pub(crate) fn prepare(&mut self, request: &Submitted, origin: Origin, zxid: Zxid) -> Txn {
        let facts = Facts { zxid, now_ms: self.wall_ms, bytes_max: 2_097_150 };
        let prepared = self.state.prepare(request, origin, &facts);
        let RequestId { client, cxid } = request.id;
        let header = TxnHeader { client, cxid, time: self.wall_ms, kind: prepared.kind };
        Txn { zxid, header, body: prepared.body }
    }

    /// A transaction is applied.
    pub(crate) fn apply(&mut self, txn: &Txn) {
        let effect = self.state.apply(txn);
        let mut out = Vec::new();
        self.service.on_applied(self.now, txn, &effect, &mut self.state, &mut out);
        self.carry_out(out);
    }

    /// Everything that is submitted is applied, and what that brings; read points come.
    pub(crate) fn settle(&mut self) {
        loop {
            if self.commit().is_some() {
                continue;
            }
            let Some(sync) = self.syncs.pop_front() else { return };
            self.tell(Event::Synced(sync));
        }
    }

    /// A client that has connected, and said nothing.
    pub(crate) fn connect(&mut self) -> ClientId {
        self.connect_over(Transport::Plain)
    }

    /// The same, through this.
    pub(crate) fn connect_over(&mut self, over: Transport) -> ClientId {
        let client = ClientId(self.next_client);
        self.next_client += 1;
        let remote: SocketAddr = "10.0.0.7:4711".parse().unwrap();
        self.heard.insert(client, Default::default());
        self.tell(Event::Connected { client, remote, over });
        client
    }

    /// Sends bytes as they come off a socket.
    pub(crate) fn send(&mut self, client: ClientId, frames: Vec<Frame>) {
        self.tell(Event::Received { client, frames });
    }

    /// Asks for a session, a new one or one that there is.
    pub(crate) fn ask(&mut self, client: ClientId, session: i64, timeout_ms: i32) {
        let password = quorate_service::wire::password(session).to_vec().into();
        let request = ConnectRequest {
            protocol: 0,
            last_zxid: Zxid::ZERO,
            timeout_ms,
            session,
            password,
            read_only: Some(false),
        };
        let mut framing = self.service.framing();
        let frame = framing.take(&mut BytesMut::from(&request.encode()[..])).unwrap();
        self.send(client, vec![frame]);
    }

    /// Sends the same with other things in it.
    pub(crate) fn ask_with(
        &mut self,
        client: ClientId,
        session: i64,
        set: impl FnOnce(&mut ConnectRequest),
    ) {
        let password = quorate_service::wire::password(session).to_vec().into();
        let mut request = ConnectRequest {
            protocol: 0,
            last_zxid: Zxid::ZERO,
            timeout_ms: 4000,
            session,
            password,
            read_only: Some(false),
        };
        set(&mut request);
        let frame = request.encode().slice(4..);
        self.send(client, vec![Frame::Whole(frame)]);
    }

    /// Whether the connection has ended without a byte that was not looked at.
    pub(crate) fn is_closed_without_a_byte(&self, client: ClientId) -> bool {
        let (heard, closed) = &self.heard[&client];
        heard.is_empty() && *closed
    }

    /// What the server answers to that, if it has.
    pub(crate) fn answer(&mut self, client: ClientId) -> Option<ConnectResponse> {
        self.frame(client).map(|frame| ConnectResponse::decode(&frame).unwrap())
    }

    /// A client with a session.
    #[track_caller]
    pub(crate) fn client(&mut self) -> (ClientId, i64) {
        let client = self.connect();
        self.ask(client, 0, 4000);
        self.settle();
        let session = self.answer(client).unwrap().session;
        (client, session)
    }

    /// Requests in one go, with xids from 1 on.
    pub(crate) fn request(&mut self, client: ClientId, requests: &[(i32, Request)]) {
        let frames =
            requests.iter().map(|(xid, request)| Frame::Whole(request.frame(*xid).slice(4..)));
        let frames = frames.collect();
        self.send(client, frames);
    }

    /// A request with this operation and these bytes for its body.
    pub(crate) fn raw(&mut self, client: ClientId, xid: i32, op: i32, body: &[u8]) {
        let frame = [&xid.to_be_bytes()[..], &op.to_be_bytes(), body].concat();
        self.send(client, vec![Frame::Whole(frame.into())]);
    }

    /// The headers of the replies that the client has heard since the last time.
    pub(crate) fn headers(&mut self, client: ClientId) -> Vec<(i32, i64, i32)> {
        let mut all = Vec::new();
        while let Some(frame) = self.frame(client) {
            let header = split_reply(frame).unwrap().0;
            all.push((header.xid, header.zxid.0, header.err));
        }
        all
    }

    /// What the client has heard since the last time.
    pub(crate) fn heard(&mut self, client: ClientId) -> Vec<Heard> {
        let mut all = Vec::new();
        while let Some(frame) = self.frame(client) {
            let (ReplyHeader { xid, err, .. }, body) = split_reply(frame).unwrap();
            all.push(match xid {
                -1 => {
                    let event = WatcherEvent::decode(&body).unwrap();
                    Heard::Event(event.kind, event.path)
                }
                _ => Heard::Reply(xid, err, body),
            });
        }
        if self.heard[&client].1 {
            all.push(Heard::Closed);
        }
        all
    }

    /// Of which zxids the replies are that the client has heard since the last time.
    pub(crate) fn zxids(&mut self, client: ClientId) -> Vec<Zxid> {
        let mut all = Vec::new();
        while let Some(frame) = self.frame(client) {
            all.push(split_reply(frame).unwrap().0.zxid);
        }
        all
    }

    /// The same, of replies the xid and the error alone.
    pub(crate) fn told(&mut self, client: ClientId) -> Vec<String> {
        let heard = self.heard(client).into_iter();
        heard
            .map(|heard| match heard {
                Heard::Event(kind, path) => format!("{} {path}", kind_name(kind)),
                Heard::Reply(xid, 0, _) => format!("{xid} ok"),
                Heard::Reply(xid, err, _) => format!("{xid} {err}"),
                Heard::Closed => "closed".to_owned(),
            })
            .collect()
    }

    /// A request, answered.
    #[track_caller]
    pub(crate) fn call(&mut self, client: ClientId, request: Request) -> Result<Response, i32> {
        self.request(client, &[(77, request.clone())]);
        self.settle();
        let replies: Vec<_> = self.heard(client);
        for heard in replies {
            if let Heard::Reply(_, err, body) = heard {
                if err != 0 {
                    return Err(err);
                }
                return Ok(Response::decode(request.op(), &body).unwrap().unwrap());
            }
        }
        panic!("{request:?} is not answered")
    }

    pub(crate) fn is_paused(&self, client: ClientId) -> bool {
        self.paused.get(&client).copied().unwrap_or(false)
    }

    pub(crate) fn frame(&mut self, client: ClientId) -> Option<Bytes> {
        let (heard, _) = self.heard.get_mut(&client)?;
        let length = u32::from_be_bytes(*heard.first_chunk()?) as usize;
        let frame = heard.split_to(4 + length).freeze();
        Some(frame.slice(4..))
    }

    /// The text that a client was sent.
    pub(crate) fn text(&mut self, client: ClientId) -> String {
        let (heard, closed) = self.heard.get_mut(&client).unwrap();
        assert!(*closed);
        String::from_utf8(heard.split().to_vec()).unwrap()
    }
}

fn kind_name(kind: i32) -> &'static str {
    match kind {
        1 => "created",
        2 => "deleted",
        3 => "changed",
        4 => "children",
        _ => "?",
    }
}

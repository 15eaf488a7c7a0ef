//! One client: it connects, keeps its session, asks in bursts, stands still, moves, and judges what it hears.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use quorate_application::clients::ClientId;
use quorate_core::id::ServerId;
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::txn::RequestId;
use quorate_core::zxid::Zxid;
use quorate_service::wire::{
    AUTH_XID, ConnectRequest, ConnectResponse, NOTIFICATION_XID, PING_XID, ReplyHeader, Request,
    SET_WATCHES_XID, WatcherEvent, code, password, split_reply,
};

use crate::clients::access::Who;
use crate::clients::asking::{draw, frame as frame_of, is_write, make_large, poisoned, read_large};
use crate::clients::history::{act, told};
use crate::clients::link::{News, Said};
use crate::clients::watching::Watching;
use crate::clients::{Crowd, replies};
use crate::linear::nodes::Act;
use crate::network::up_to;
use crate::rule::{Rule, Violation, broken};

/// A request that is not answered.
#[derive(Debug)]
struct Sent {
    xid: i32,
    request: Request,
    /// The greatest zxid that any client had seen.
    floor: Zxid,
    at: Instant,
    /// Its number among those that one order has to explain.
    op: Option<usize>,
}

/// A client and its session.
#[derive(Debug)]
pub(crate) struct Client {
    rng: Rng,
    pub(super) who: Who,
    /// 0 while it has none.
    pub(crate) session: i64,
    pub(super) timeout: Duration,
    pub(crate) link: Option<ClientId>,
    /// The connection has the session.
    open: bool,
    /// The greatest zxid of a reply, and of a write of its own.
    seen: Zxid,
    wrote: Zxid,
    next_xid: i32,
    sent: VecDeque<Sent>,
    buffer: BytesMut,
    watching: Watching,
    /// What it watched before this connection, until that is set again.
    kept: Option<Watching>,
    /// Since when the connection is asked for.
    since: Instant,
    heard: Instant,
    said: Instant,
    /// When a request was answered last.
    pub(super) served: Instant,
    /// It stands still.
    pub(super) paused: Option<Instant>,
    missed: Vec<(ClientId, Said)>,
    /// Events may have come ahead of the replies to what was asked for until then: those were held back.
    pub(super) ahead: Option<Instant>,
    /// It has asked to end its session.
    closes: bool,
}

impl Client {
    pub(super) fn new(mut rng: Rng, tick: Duration) -> Self {
        let ticks = 2 + u32::try_from(rng.below(5)).unwrap_or(0);
        let who = match rng.below(3) {
            0 => Who::Anyone,
            1 => Who::Bob,
            _ => Who::Noc,
        };
        Self {
            rng,
            who,
            session: 0,
            timeout: tick * ticks,
            link: None,
            open: false,
            seen: Zxid::ZERO,
            wrote: Zxid::ZERO,
            next_xid: 1,
            sent: VecDeque::new(),
            buffer: BytesMut::new(),
            watching: Watching::default(),
            kept: None,
            since: Instant::ORIGIN,
            heard: Instant::ORIGIN,
            said: Instant::ORIGIN,
            served: Instant::ORIGIN,
            paused: None,
            missed: Vec::new(),
            ahead: None,
            closes: false,
        }
    }

    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// What was not answered, and has to be explained.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = (RequestId, usize)> + '_ {
        let id = |sent: &Sent| RequestId { client: self.session, cxid: sent.xid };
        self.sent.iter().filter_map(move |sent| sent.op.map(|op| (id(sent), op)))
    }

    /// Where it stands.
    pub(super) fn state(&self) -> String {
        let Self { session, seen, open, link, heard, served, paused, .. } = self;
        format!(
            "session {session:x}, open {open} on {link:?}, has seen {seen}, heard {heard:?}, served {served:?}, paused {paused:?}"
        )
    }

    /// Its session has ended: it begins anew, as another program would.
    fn begin_anew(&mut self) {
        (self.session, self.next_xid) = (0, 1);
        (self.seen, self.wrote) = (Zxid::ZERO, Zxid::ZERO);
        (self.watching, self.kept) = (Watching::default(), None);
    }
}

impl Crowd {
    /// A client does what it has to do, or wants to.
    pub(super) fn act(&mut self, at: usize, now: Instant) -> Result<(), Violation> {
        if self.over {
            return Ok(());
        }
        let client = &mut self.clients[at];
        let again = Duration::from_millis(1) + up_to(&mut client.rng, client.timeout / 6);
        self.scheduled.push((now + again, News::Act(at)));
        if client.paused.is_some_and(|until| until > now) {
            return Ok(());
        }
        if client.paused.take().is_some() {
            for (link, said) in std::mem::take(&mut client.missed) {
                self.hears(at, link, said, now)?;
            }
        }
        let client = &mut self.clients[at];
        let Some(link) = client.link else {
            self.connect(at, now);
            return Ok(());
        };
        // As Java's clients do: two thirds of the time-out without a word are too long.
        if now.since(client.heard.max(client.since)) > client.timeout * 2 / 3 {
            return self.lose(at, link, now);
        }
        if client.open { self.ask(at, link, now) } else { Ok(()) }
    }

    fn ask(&mut self, at: usize, link: ClientId, now: Instant) -> Result<(), Violation> {
        let calm = self.calm;
        let client = &mut self.clients[at];
        if client.closes {
            return Ok(());
        }
        match client.rng.below(100) {
            0..4 if !calm => {
                let burst = client.rng.below(3);
                self.burst(at, link, burst, now);
                self.lose(at, link, now)?;
            }
            4..5 if !calm => self.cut(link),
            5..7 if !calm => {
                let most = client.timeout * 3 / 2;
                client.paused = Some(now + up_to(&mut client.rng, most));
            }
            7..8 if !calm => {
                client.closes = true;
                self.send(at, link, Request::CloseSession, now);
                // What is sent behind it is not carried out.
                self.burst(at, link, 2, now);
            }
            8..9 if !calm => {
                let most = client.timeout / 2;
                let until = now + up_to(&mut client.rng, most);
                self.stop_reading(at, link, until, now);
            }
            // In the end servers that lag have to keep up.
            9..51 if !calm || client.rng.below(4) == 0 => {
                let burst = 1 + client.rng.below(6);
                self.burst(at, link, burst, now);
            }
            _ => {}
        }
        let client = &mut self.clients[at];
        if client.link == Some(link) && now.since(client.said) > client.timeout / 4 {
            self.send(at, link, Request::Ping, now);
        }
        Ok(())
    }

    fn burst(&mut self, at: usize, link: ClientId, count: u64, now: Instant) {
        for _ in 0..count {
            let client = &mut self.clients[at];
            let request = draw(&mut client.rng, client.who);
            self.send(at, link, request, now);
        }
    }

    /// A client asks on and reads nothing. Some ask for so much that servers have to hold it back.
    fn stop_reading(&mut self, at: usize, link: ClientId, until: Instant, now: Instant) {
        let Some(open) = self.links.get_mut(&link) else { return };
        if open.unread.is_some() {
            return;
        }
        open.unread = Some(Vec::new());
        self.unread += 1;
        self.scheduled.push((until, News::Reads(link)));
        if self.clients[at].rng.below(3) == 0 {
            self.send(at, link, make_large(), now);
            for _ in 0..6 {
                self.send(at, link, read_large(), now);
            }
        }
        self.burst(at, link, 4, now);
    }

    fn connect(&mut self, at: usize, now: Instant) {
        if self.clients[at].rng.below(3) > 0 {
            return;
        }
        let id = self.open_link(at, now);
        let client = &mut self.clients[at];
        (client.link, client.open, client.since, client.heard) = (Some(id), false, now, now);
        client.buffer.clear();
        let request = ConnectRequest {
            protocol: 0,
            last_zxid: client.seen,
            timeout_ms: i32::try_from(client.timeout.as_millis()).unwrap_or(i32::MAX),
            session: client.session,
            password: Bytes::copy_from_slice(&password(client.session)),
            read_only: Some(false),
        };
        let (seen, who) = (client.seen, client.who);
        let again = client.watching.again(seen);
        let before = std::mem::take(&mut client.watching);
        client.watching.begin(seen, who);
        self.say_up(id, Said::Bytes(request.encode()), now);
        if let Some(proof) = who.proof() {
            let (scheme, auth) = (Some("digest".to_owned()), Bytes::from_static(proof.as_bytes()));
            let frame = Request::Auth { kind: 0, scheme, auth }.frame(AUTH_XID);
            self.say_up(id, Said::Bytes(frame), now);
        }
        if let Some(again) = again {
            self.clients[at].kept = Some(before);
            self.send(at, id, again, now);
        }
    }

    fn send(&mut self, at: usize, link: ClientId, request: Request, now: Instant) {
        let server = self.server_of(link);
        let request = if self.judge.beside_java { poisoned(request) } else { request };
        let client = &mut self.clients[at];
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others are counted")]
        let xid = match &request {
            Request::Ping => PING_XID,
            Request::SetWatches { .. } => SET_WATCHES_XID,
            _ => {
                client.next_xid += 1;
                client.next_xid
            }
        };
        client.said = now;
        let frame = frame_of(&request, xid);
        let id = RequestId { client: client.session, cxid: xid };
        let by = Some(link).filter(|_| client.open);
        self.judge.sessions.on_sent(id, server, by);
        self.judge.who.insert(id.client, client.who);
        let is_point = |act: &Act| !(self.judge.beside_java && matches!(act, Act::Sync));
        let act = act(&request).filter(is_point);
        let op = act.and_then(|act| self.judge.linear.call(client.session, act));
        let floor = if self.judge.beside_java { Zxid::ZERO } else { self.judge.seen };
        client.sent.push_back(Sent { xid, request, floor, at: now, op });
        self.say_up(link, Said::Bytes(frame), now);
    }

    /// A client gives up its connection, or has lost it.
    fn lose(&mut self, at: usize, link: ClientId, now: Instant) -> Result<(), Violation> {
        self.leave(link, now);
        let server = self.server_of(link);
        let client = &mut self.clients[at];
        if client.link != Some(link) {
            return Ok(());
        }
        (client.link, client.open) = (None, false);
        let ahead = client.ahead.take().is_some();
        let unanswered: Vec<_> = client.unanswered().collect();
        self.judge.unanswered.extend(unanswered);
        self.judge.linear.lost(client.session);
        client.sent.clear();
        if let Some(mut kept) = client.kept.take() {
            kept.forget(&mut client.watching);
            client.watching = kept;
        } else if ahead {
            // Some may be of watches whose replies never came.
            client.watching.give_up();
        } else {
            client.watching.lose(&self.judge, server)?;
        }
        if std::mem::take(&mut client.closes) {
            client.begin_anew();
        }
        Ok(())
    }

    /// Something comes to a client.
    pub(super) fn hears(
        &mut self,
        at: usize,
        link: ClientId,
        said: Said,
        now: Instant,
    ) -> Result<(), Violation> {
        let client = &mut self.clients[at];
        if self.over || client.link != Some(link) {
            return Ok(());
        }
        if client.paused.is_some() {
            client.missed.push((link, said));
            return Ok(());
        }
        let bytes = match said {
            Said::Up => return Ok(()),
            Said::End => return self.lose(at, link, now),
            Said::Bytes(bytes) => bytes,
        };
        client.heard = now;
        client.buffer.extend_from_slice(&bytes);
        while let Some(frame) = frame(&mut self.clients[at].buffer) {
            if self.clients[at].link == Some(link) {
                self.on_frame(at, link, frame, now)?;
            }
        }
        Ok(())
    }

    fn on_frame(
        &mut self,
        at: usize,
        link: ClientId,
        frame: Bytes,
        now: Instant,
    ) -> Result<(), Violation> {
        let server = self.server_of(link);
        if !self.clients[at].open {
            return self.on_answer(at, link, &frame, now);
        }
        let Ok((header, body)) = split_reply(frame) else {
            return broken(Rule::Reply, server, "a reply without a header".to_owned());
        };
        if header.xid == NOTIFICATION_XID {
            self.judge.events += 1;
            return match WatcherEvent::decode(&body) {
                Ok(event) => {
                    self.clients[at].watching.hear(event);
                    Ok(())
                }
                Err(error) => broken(Rule::EventOrder, server, error.to_string()),
            };
        }
        if header.xid == AUTH_XID {
            if header.err == 0 {
                return Ok(());
            }
            return broken(Rule::Reply, server, format!("does not know an identity: {header:?}"));
        }
        self.on_reply(at, server, header, &body)?;
        self.clients[at].served = now;
        Ok(())
    }

    /// The server says whether the connection has a session.
    fn on_answer(
        &mut self,
        at: usize,
        link: ClientId,
        frame: &Bytes,
        now: Instant,
    ) -> Result<(), Violation> {
        let server = self.server_of(link);
        let client = &mut self.clients[at];
        let answer = match ConnectResponse::decode(frame) {
            Ok(answer) => answer,
            Err(error) => return broken(Rule::Reply, server, error.to_string()),
        };
        if answer.session == 0 {
            self.lose(at, link, now)?;
            self.clients[at].begin_anew();
            return Ok(());
        }
        if client.session != 0 && answer.session != client.session {
            let detail = format!("{:x} instead of {:x}", answer.session, client.session);
            return broken(Rule::Reply, server, detail);
        }
        (client.session, client.open) = (answer.session, true);
        client.served = client.served.max(now);
        client.timeout = Duration::from_millis(u64::try_from(answer.timeout_ms).unwrap_or(0));
        Ok(())
    }

    fn on_reply(
        &mut self,
        at: usize,
        server: ServerId,
        header: ReplyHeader,
        body: &Bytes,
    ) -> Result<(), Violation> {
        let (client, judge) = (&mut self.clients[at], &mut self.judge);
        judge.replies += 1;
        // Answered when it is read, ahead of others; and the connection ends.
        let lone =
            |sent: &Sent| sent.xid == header.xid && matches!(sent.request, Request::Check { .. });
        let refused = (code::UNIMPLEMENTED, Zxid(-1)) == (header.err, header.zxid);
        if refused && client.sent.iter().any(lone) {
            judge.screened += 1;
            return Ok(());
        }
        let Some(Sent { xid, request, floor, at: asked, op }) = client.sent.pop_front() else {
            let detail = format!("a reply to {}, and no request waits", header.xid);
            return broken(Rule::ReplyOrder, server, detail);
        };
        if xid != header.xid {
            let detail = format!("a reply to {}, and {xid} is next", header.xid);
            return broken(Rule::ReplyOrder, server, detail);
        }
        let zxid = header.zxid;
        if zxid < client.wrote {
            let detail = format!("{request:?} as of {zxid}, behind its own {}", client.wrote);
            return broken(Rule::OwnWrite, server, detail);
        }
        if zxid < client.seen && !judge.is_alike(zxid, client.seen) {
            let detail = format!("{request:?} as of {zxid}, behind {}", client.seen);
            return broken(Rule::View, server, detail);
        }
        if matches!(request, Request::Sync { .. }) && zxid < floor {
            let detail = format!("sync as of {zxid}, and {floor} was shown before");
            return broken(Rule::SyncPoint, server, detail);
        }
        client.seen = zxid.max(client.seen);
        if !zxid.is_epoch_start() {
            judge.seen = zxid.max(judge.seen);
        }
        client.watching.advance(judge, server, zxid, &request)?;
        if client.ahead.is_some_and(|until| asked > until) {
            client.ahead = None;
        }
        if client.ahead.is_none() {
            client.watching.nothing_more(server, zxid)?;
        }
        judge.hidden += std::mem::take(&mut client.watching.hidden);
        judge.denied += u64::from(header.err == code::NO_AUTH);
        if let Request::SetWatches { .. } = request {
            judge.set_again += 1;
            client.kept = None;
            return Ok(());
        }
        let id = RequestId { client: client.session, cxid: xid };
        let response = replies::judge(judge, server, id, client.who, &request, header, body)?;
        if let (Some(at), Some(act)) = (op, act(&request)) {
            let by_java = judge.is_by_java(zxid.epoch());
            if let Some(told) = told(&act, header.err, response.as_ref(), by_java) {
                judge.linear.told(client.session, at, told, zxid.0);
            }
        }
        client.watching.set(&request, header.err);
        if is_write(&request) && header.err == 0 {
            client.wrote = zxid;
        }
        Ok(())
    }
}

/// Takes a frame without its length.
fn frame(bytes: &mut BytesMut) -> Option<Bytes> {
    let length = usize::try_from(u32::from_be_bytes(*bytes.first_chunk()?)).ok()?;
    if bytes.len() < 4 + length {
        return None;
    }
    bytes.advance(4);
    Some(bytes.split_to(length).freeze())
}

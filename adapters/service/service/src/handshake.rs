//! How a connection comes to its session: a new one, or one that lives already.
//!
//! | first test that holds | what becomes of the connection |
//! |---|---|
//! | this server does not serve | closed without a byte, or kept until it does: see [`between`](crate::between) |
//! | the client has seen what is not applied here | closed without a byte: it finds a server that is further |
//! | it has no session | createSession goes to the leader; answered when it is applied here |
//! | the password is another | refused, its session lives |
//! | this server leads | if the session lives it belongs to this server from then on; answered when its [mark](crate::marks) is applied |
//! | otherwise | the leader is asked: REVALIDATE, which it answers in the same way |

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_application::clients::{ClientId, Close, Output};
use quorate_core::id::{LinkId, Origin};
use quorate_core::message::Request;
use quorate_core::txn::RequestId;
use quorate_core::zxid::Zxid;

use crate::connection::State;
use crate::marks::{Comer, mark_of};
use crate::service::{Role, Service, Step, Submitted};
use crate::wire::{ConnectRequest, ConnectResponse, op, password};

impl Service {
    /// The first frame of a connection.
    pub(crate) fn connect(&mut self, step: &mut Step<'_>, client: ClientId, frame: &Bytes) {
        let asked = match ConnectRequest::decode(frame) {
            Ok(asked) if self.serves() => asked,
            Ok(_) if self.wait_between(step.at, client, frame) => return,
            Ok(_) | Err(_) => return self.close(step.out, client, Close::AfterWriting),
        };
        // What the epoch has inherited is applied here: a server that was brought up by a snapshot labelled with its start
        // has no more, and its clients would be refused everywhere else until something is written.
        let applied = step.state.tree().last_zxid().max(Zxid::start_of(self.epoch));
        if asked.last_zxid > applied {
            self.counters.ahead += 1;
            if let Some(suppressed) = self.said_ahead.permit(step.at) {
                tracing::info!(
                    event = "client.ahead",
                    seen = %asked.last_zxid, %applied, suppressed,
                    "a client has seen more than this server has: its connection is closed"
                );
            }
            return self.close(step.out, client, Close::AfterWriting);
        }
        let (min, max) = self.timeouts();
        let Some(connection) = self.clients.get_mut(&client) else { return };
        connection.timeout_ms = asked.timeout_ms.clamp(min, max.max(min));
        if asked.session == 0 {
            self.open(step, client, asked.read_only);
        } else {
            self.attach(step, client, &asked);
        }
    }

    /// A new session.
    fn open(&mut self, step: &mut Step<'_>, client: ClientId, read_only: Option<bool>) {
        let tree = step.state.tree();
        let session = self.sessions.next(step.wall_ms, |id| tree.session(id).is_some());
        step.out.extend(self.sessions.raise_bound().map(Output::Remember));
        let Some(connection) = self.clients.get_mut(&client) else { return };
        connection.state = State::Opening { session, read_only };
        let body = Bytes::copy_from_slice(&connection.timeout_ms.to_be_bytes());
        self.by_session.insert(session, client);
        let id = RequestId { client: session, cxid: 0 };
        self.submitted.push_back(Submitted { id, client, audited: None });
        let request = Request { id, op: op::CREATE_SESSION, body, identities: None };
        step.out.push(Output::Submit { epoch: self.epoch, request });
    }

    /// A session that its client has already.
    fn attach(&mut self, step: &mut Step<'_>, client: ClientId, asked: &ConnectRequest) {
        let (session, read_only) = (asked.session, asked.read_only);
        if asked.password[..] != password(session)[..] {
            return self.refuse(step, client, read_only);
        }
        // At most one connection of a session: the client has given the older one up.
        if let Some(older) =
            self.by_session.insert(session, client).filter(|older| *older != client)
        {
            self.counters.moved += 1;
            self.close(step.out, older, Close::AfterWriting);
            self.by_session.insert(session, client);
        }
        let Some(connection) = self.clients.get_mut(&client) else { return };
        connection.state = State::Asking { session, read_only, foreign: 0 };
        let timeout_ms = connection.timeout_ms;
        if matches!(self.role, Role::Leader(_)) {
            if step.state.revalidate(session, Origin::Service) {
                self.mark(step, session, Comer::Client(client), timeout_ms);
            } else {
                self.revalidated(step, session, false);
            }
        } else {
            let mut body = BytesMut::with_capacity(12);
            body.put_i64(session);
            body.put_i32(timeout_ms);
            *self.asked.entry(session).or_default() += 1;
            step.out.push(Output::Revalidate(body.freeze()));
        }
    }

    /// What the leader says of a session, as REVALIDATE carries it.
    pub(crate) fn on_revalidated(&mut self, step: &mut Step<'_>, mut body: Bytes) {
        let (Ok(session), Ok(lives)) = (body.try_get_i64(), body.try_get_u8()) else { return };
        // What was asked for an older connection is answered first.
        let unanswered = self.asked.remove(&session).map_or(0, |asked| asked.saturating_sub(1));
        if unanswered > 0 {
            self.asked.insert(session, unanswered);
        }
        if unanswered == 0 || lives == 0 {
            self.revalidated(step, session, lives != 0);
        }
    }

    pub(crate) fn revalidated(&mut self, step: &mut Step<'_>, session: i64, lives: bool) {
        let Some(&client) = self.by_session.get(&session) else { return };
        let Some(connection) = self.clients.get_mut(&client) else { return };
        let State::Asking { read_only, foreign, .. } = connection.state else { return };
        // Its own mark is one of them; behind that another server may have got the session.
        connection.parts = foreign > 1;
        if lives {
            self.welcome(step, client, session, read_only);
        } else {
            self.refuse(step, client, read_only);
        }
    }

    /// The connection has its session: what was sent ahead is heard now.
    pub(crate) fn welcome(
        &mut self,
        step: &mut Step<'_>,
        client: ClientId,
        session: i64,
        read_only: Option<bool>,
    ) {
        let Some(connection) = self.clients.get_mut(&client) else { return };
        connection.state = State::Open { session };
        connection.figures.answered(step.at);
        let timeout_ms = connection.timeout_ms;
        let early = core::mem::take(&mut connection.early);
        connection.queued = 0;
        self.has_moved(client);
        // Whether this server is read-only, which none is.
        let read_only = read_only.map(|_| false);
        let response =
            ConnectResponse { timeout_ms, session, password: password(session), read_only };
        self.send(step.out, client, response.encode());
        for frame in early {
            self.on_frame(step, client, frame);
        }
    }

    /// There is no such session, or the password is another.
    fn refuse(&mut self, step: &mut Step<'_>, client: ClientId, read_only: Option<bool>) {
        let refused = ConnectResponse::refused(read_only.map(|_| false));
        self.send(step.out, client, refused.encode());
        self.close(step.out, client, Close::AfterWriting);
    }

    /// A learner asks whether a session lives. If so, it belongs to that learner from now on.
    pub(crate) fn on_revalidate(&mut self, step: &mut Step<'_>, from: LinkId, body: Bytes) {
        let mut asked = body;
        let (Ok(session), Ok(timeout_ms)) = (asked.try_get_i64(), asked.try_get_i32()) else {
            return;
        };
        if !step.state.revalidate(session, Origin::Learner(from)) {
            return answer(step, from, session, false);
        }
        // What it has here its client has given up.
        if let Some(&client) = self.by_session.get(&session) {
            self.counters.moved += 1;
            self.close(step.out, client, Close::AfterWriting);
        }
        self.mark(step, session, Comer::Learner(from), timeout_ms);
    }

    /// A session that lives has come there: its mark goes to the log, where such are left.
    fn mark(&mut self, step: &mut Step<'_>, session: i64, comer: Comer, timeout_ms: i32) {
        let (epoch, is_marked) = (self.epoch, self.is_marked);
        let Some(leading) = self.leading() else { return };
        leading.tracker.touch(step.at, session, timeout_ms, comer.learner());
        leading.marks.put(session, comer);
        if !is_marked {
            return self.on_marked(step, session);
        }
        step.out.push(Output::Submit { epoch, request: mark_of(session) });
    }

    /// A mark is applied at its leader: who has come is told whether the session still lives, and has its full time-out.
    pub(crate) fn on_marked(&mut self, step: &mut Step<'_>, session: i64) {
        let Some(leading) = self.leading() else { return };
        let Some(comer) = leading.marks.take(session) else { return };
        leading.tracker.renew(step.at, session);
        let lives = step.state.is_open(session);
        match comer {
            Comer::Client(client) if self.by_session.get(&session) == Some(&client) => {
                self.revalidated(step, session, lives);
            }
            // It has gone.
            Comer::Client(_) => {}
            Comer::Learner(to) => answer(step, to, session, lives),
        }
    }
}

/// What a learner is told of a session.
fn answer(step: &mut Step<'_>, to: LinkId, session: i64, lives: bool) {
    let mut body = BytesMut::with_capacity(9);
    body.put_i64(session);
    body.put_u8(u8::from(lives));
    step.out.push(Output::Revalidated { to, body: body.freeze() });
}

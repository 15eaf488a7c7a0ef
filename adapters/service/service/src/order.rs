//! The order of what a connection is told: its requests are begun, and answered, from the front of its queue.

use bytes::Bytes;
use quorate_application::clients::{ClientId, Close, Output, SyncId};
use quorate_core::time::Instant;

use crate::connection::{Connection, Entry, READS_AHEAD_MAX, Work};
use crate::log_limit::Cut;
use crate::replies::Latencies;
use crate::service::{Service, Step, Submitted};
use crate::wire::{ReplyHeader, op, put_text, reply};

impl Service {
    /// A connection's queue has moved: it goes on at the end of the step.
    pub(crate) fn has_moved(&mut self, client: ClientId) {
        if self.moved.back() != Some(&client) {
            self.moved.push_back(client);
        }
    }

    /// Lets every connection go on whose queue has moved. Room that was made for one that has gone, or that cannot use it
    /// yet, is the next one's: nothing else would wake it.
    pub(crate) fn go_on(&mut self, step: &mut Step<'_>) {
        loop {
            while let Some(client) = self.moved.pop_front() {
                self.begin(step, client);
                self.answer(step, client);
                // What has waited for the reads before it.
                self.begin(step, client);
                self.hold(step, client);
            }
            if self.waiting.is_empty() || self.room() == 0 {
                return;
            }
            self.make_room();
        }
    }

    /// Submits what can be, and asks for read points.
    fn begin(&mut self, step: &mut Step<'_>, client: ClientId) {
        let mut room = self.room();
        let Some(connection) = self.clients.get_mut(&client) else { return };
        let held_back = connection.is_held_back();
        let waited = core::mem::take(&mut connection.waited);
        let drops = self.options.drop_stale && self.options.throttled_requests_max.is_some();
        let patience = connection.patience();
        let is_stale = |came| waited && drops && step.at.since(came) > patience;
        while let Some(Entry { work, came, op, .. }) = connection.queue.get_mut(connection.reached)
        {
            match work {
                Work::Read(_) => connection.reads_ahead += 1,
                Work::Refused(_) | Work::Underway { .. } | Work::Done(_) => {}
                Work::Sync { done: true, .. } => {}
                Work::Sync { id: Some(_), .. } => return,
                Work::Waiting { .. } if held_back => return,
                Work::Waiting { .. } if connection.reads_ahead > READS_AHEAD_MAX => return,
                Work::Waiting { .. } | Work::Sync { .. }
                    if is_stale(*came) && *op != op::CLOSE_SESSION =>
                {
                    tracing::info!(
                        event = "request.dropped",
                        ?client,
                        "a request has waited longer than its session's time-out"
                    );
                    self.close_sessions_asked_for(step, client);
                    return self.close(step.out, client, Close::AfterWriting);
                }
                Work::Waiting { .. } | Work::Sync { .. } if room == 0 => {
                    if !core::mem::replace(&mut connection.waits, true) {
                        self.waiting.push_back(client);
                    }
                    return;
                }
                Work::Sync { id, .. } => {
                    let asked = SyncId(self.next_sync);
                    self.next_sync += 1;
                    *id = Some(asked);
                    self.syncs.insert(asked, client);
                    step.out.push(Output::Sync(asked));
                    return;
                }
                Work::Waiting { request, parts, audited } => {
                    let (id, parts) = (request.id, core::mem::take(parts));
                    let audited = audited.take();
                    let Work::Waiting { request, .. } =
                        core::mem::replace(work, Work::Underway { parts })
                    else {
                        return;
                    };
                    room -= 1;
                    self.submitted.push_back(Submitted { id, client, audited });
                    step.out.push(Output::Submit { epoch: self.epoch, request });
                }
            }
            connection.reached += 1;
        }
    }

    /// Answers from the front, as far as the answers are known.
    fn answer(&mut self, step: &mut Step<'_>, client: ClientId) {
        loop {
            let Some(connection) = self.clients.get_mut(&client) else { return };
            if connection.is_held_back() {
                return self.read_ahead(step, client);
            }
            let Some(front) = connection.queue.front() else { return };
            match &front.work {
                Work::Read(_)
                | Work::Refused(_)
                | Work::Done(_)
                | Work::Sync { done: true, .. } => {}
                Work::Waiting { .. } | Work::Underway { .. } | Work::Sync { .. } => return,
            }
            let Some(entry) = connection.queue.pop_front() else { return };
            let Entry { xid, op, came, bytes, work } = entry;
            connection.queued = connection.queued.saturating_sub(bytes);
            connection.reached = connection.reached.saturating_sub(1);
            let zxid = step.state.tree().last_zxid();
            connection.figures.last_zxid = zxid.0;
            connection.figures.latencies.add(step.at.since(came));
            connection.figures.answered(step.at);
            let (now, took) = (step.at.since(Instant::ORIGIN), step.at.since(came));
            self.counters.answered(took);
            let Latencies { reads, updates } = &mut self.latencies;
            let latencies = if matches!(work, Work::Done(_)) { updates } else { reads };
            latencies.observe_time(now, took);
            let bytes = match work {
                Work::Read(request) => {
                    connection.reads_ahead = connection.reads_ahead.saturating_sub(1);
                    let reply = self.read(step, client, xid, request);
                    self.send(step.out, client, reply);
                    continue;
                }
                Work::Refused(err) => reply(ReplyHeader { xid, zxid, err }, |_| {}),
                Work::Done(bytes) => bytes,
                Work::Sync { path, .. } => {
                    reply(ReplyHeader { xid, zxid, err: 0 }, |out| put_text(out, path.as_deref()))
                }
                Work::Waiting { .. } | Work::Underway { .. } => return,
            };
            self.note_long(step, client, op, None, bytes.len());
            self.send(step.out, client, bytes);
            if op == op::CLOSE_SESSION {
                return self.close(step.out, client, Close::AfterWriting);
            }
        }
    }

    /// A reply is sent however long it is; one that its client may not take is counted and named.
    pub(crate) fn note_long(
        &mut self,
        step: &Step<'_>,
        client: ClientId,
        op: i32,
        path: Option<&str>,
        bytes: usize,
    ) {
        self.counters.replies.sent(bytes);
        if bytes <= self.frame_bytes_max {
            return;
        }
        self.counters.long_replies += 1;
        if let Some(suppressed) = self.said_long.permit(step.at) {
            let session = self.clients.get(&client).and_then(Connection::session).unwrap_or(0);
            tracing::warn!(
                event = "reply.too_long",
                session = format_args!("0x{session:x}"),
                op,
                path = %Cut(path.unwrap_or_default()),
                bytes,
                suppressed,
                "a reply is longer than jute.maxbuffer, and its client may not take it"
            );
        }
    }

    /// Replies wait, and writes are under way: the reads before them see the tree without them, and no reply before them is
    /// as of a later moment.
    fn read_ahead(&mut self, step: &mut Step<'_>, client: ClientId) {
        let Some(connection) = self.clients.get(&client) else { return };
        let underway = |entry: &Entry| matches!(entry.work, Work::Underway { .. });
        let begun = connection.queue.iter().take(connection.reached);
        let Some(first) = begun.clone().position(underway) else { return };
        for at in 0..first {
            let Some(connection) = self.clients.get_mut(&client) else { return };
            let Some(Entry { xid, work, .. }) = connection.queue.get_mut(at) else { return };
            match work {
                Work::Read(_) => {}
                Work::Done(_) => continue,
                Work::Refused(err) => {
                    let (err, zxid) = (*err, step.state.tree().last_zxid());
                    *work = Work::Done(reply(ReplyHeader { xid: *xid, zxid, err }, |_| {}));
                    continue;
                }
                Work::Sync { path, done: true, .. } => {
                    let header =
                        ReplyHeader { xid: *xid, zxid: step.state.tree().last_zxid(), err: 0 };
                    *work = Work::Done(reply(header, |out| put_text(out, path.as_deref())));
                    continue;
                }
                // What is behind it has to wait as well.
                Work::Waiting { .. } | Work::Underway { .. } | Work::Sync { .. } => return,
            }
            let xid = *xid;
            let Work::Read(request) = core::mem::replace(work, Work::Done(Bytes::new())) else {
                return;
            };
            connection.reads_ahead = connection.reads_ahead.saturating_sub(1);
            let bytes = self.read(step, client, xid, request);
            let connection = self.clients.get_mut(&client);
            if let Some(entry) = connection.and_then(|connection| connection.queue.get_mut(at)) {
                entry.work = Work::Done(bytes);
            }
        }
    }

    /// Stops or goes on reading from a client.
    pub(crate) fn hold(&mut self, step: &mut Step<'_>, client: ClientId) {
        let Some(connection) = self.clients.get_mut(&client) else { return };
        let full = connection.is_full();
        if full && !connection.paused {
            connection.paused = true;
            step.out.push(Output::Pause(client));
        } else if !full && connection.paused {
            connection.paused = false;
            step.out.push(Output::Resume(client));
        }
    }

    /// How many requests more may be in process.
    fn room(&self) -> usize {
        let writes = self.outstanding_max.saturating_sub(self.submitted.len());
        let in_process = self.submitted.len() + self.syncs.len();
        match self.options.throttled_requests_max {
            Some(max) => writes.min(max.max(1).saturating_sub(in_process)),
            None => writes,
        }
    }

    /// There is room for more requests: those that waited for it go on.
    pub(crate) fn make_room(&mut self) {
        for _ in 0..self.room() {
            let Some(client) = self.waiting.pop_front() else { return };
            if let Some(connection) = self.clients.get_mut(&client) {
                (connection.waits, connection.waited) = (false, true);
                self.has_moved(client);
            }
        }
    }

    /// A connection ends. What waits there is dropped with it, but for what closes its session: the client has given it
    /// up, and what it owns is free at once.
    pub(crate) fn close_sessions_asked_for(&mut self, step: &mut Step<'_>, client: ClientId) {
        let Some(connection) = self.clients.get_mut(&client) else { return };
        for Entry { op, work, .. } in connection.queue.drain(..) {
            if let (op::CLOSE_SESSION, Work::Waiting { request, .. }) = (op, work) {
                self.submitted.push_back(Submitted { id: request.id, client, audited: None });
                step.out.push(Output::Submit { epoch: self.epoch, request });
            }
        }
    }

    /// A read point has come.
    pub(crate) fn on_synced(&mut self, sync: SyncId) {
        let Some(client) = self.syncs.remove(&sync) else { return };
        self.make_room();
        let Some(connection) = self.clients.get_mut(&client) else { return };
        for entry in &mut connection.queue {
            if let Work::Sync { id: Some(asked), done, .. } = &mut entry.work {
                *done |= *asked == sync;
            }
        }
        self.has_moved(client);
    }

    /// There will be no such read point.
    pub(crate) fn on_sync_refused(&mut self, step: &mut Step<'_>, sync: SyncId) {
        if let Some(client) = self.syncs.remove(&sync) {
            self.make_room();
            self.close(step.out, client, Close::AfterWriting);
        }
    }

    /// So many bytes to a client are written.
    pub(crate) fn on_written(&mut self, now: Instant, client: ClientId, bytes: usize) {
        if self.clients.get(&client).is_some_and(|connection| connection.paused) {
            // What it says we do not read: that it reads is a sign of it.
            self.touch(now, client);
        }
        let Some(connection) = self.clients.get_mut(&client) else { return };
        let was_full = connection.is_held_back() || connection.paused;
        connection.unwritten.written(bytes, now);
        if was_full {
            self.has_moved(client);
            self.may_be_told_on(client);
        }
    }
}

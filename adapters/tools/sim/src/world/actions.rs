//! Actions: what a test or a campaign does to servers, their disks, their clocks and their links.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::address::HostPort;
use quorate_core::id::{ReadId, ServerId};
use quorate_core::input::{Event, Plane};
use quorate_core::message::Request;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::recorder::Recorder;
use quorate_core::txn::RequestId;

use crate::application::KIND;
use crate::disk::Survival;
use crate::ensemble::Ensemble;
use crate::faults::FaultClass;
use crate::ledger::Ledger;
use crate::record::What as Told;
use crate::rule::Violation;
use crate::world::{What, World};

impl World {
    /// Lets the caller see each server's inputs and outputs.
    pub fn listen(&mut self, recorder: impl Fn(ServerId) -> Box<dyn Recorder>) {
        for (id, server) in &mut self.servers {
            server.recorder = Some(recorder(*id));
        }
    }

    /// Starts a server now.
    pub fn start(&mut self, id: i64) {
        self.start_after(id, Duration::ZERO);
    }

    /// Starts servers now, in this order.
    pub fn start_all(&mut self, ids: impl IntoIterator<Item = i64>) {
        for id in ids {
            self.start(id);
        }
    }

    /// Starts a server in a while, unless it runs by then.
    pub fn start_after(&mut self, id: i64, wait: Duration) {
        self.agenda.after(wait, What::Start { id: ServerId(id) });
    }

    /// Lets a server stand still: nothing reaches it until it is resumed, nothing gets lost either.
    pub fn pause(&mut self, id: i64) {
        if let Some(server) = self.servers.get_mut(&ServerId(id)) {
            if server.peer.is_some() && !server.paused {
                server.paused = true;
                self.coverage.hit(FaultClass::Pause);
                let now = self.agenda.now();
                self.trace.note(now, ServerId(id), || Told::Pause);
            }
        }
    }

    /// Lets a paused server go on; it hears at once of everything that happened meanwhile.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn resume(&mut self, id: i64) -> Result<(), Violation> {
        let id = ServerId(id);
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if !std::mem::take(&mut server.paused) {
            return Ok(());
        }
        let incarnation = server.incarnation;
        self.trace.note(self.agenda.now(), id, || Told::Resume);
        self.clock_goes_on(id);
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        for event in std::mem::take(&mut server.backlog) {
            let same = self.servers.get(&id).is_some_and(|s| s.incarnation == incarnation);
            if same {
                self.feed(id, event)?;
            }
        }
        self.schedule_tick(id);
        self.wake_front(id);
        Ok(())
    }

    /// The operator gives a server another lease, or none: from its next start on.
    pub fn set_lease(&mut self, id: i64, lease: Option<Duration>) {
        self.leases_change = true;
        self.lease_set.insert(ServerId(id), lease);
    }

    /// Tells a server something that neither network nor disk would, a request of the operator say.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn tell(&mut self, id: i64, event: Event) -> Result<(), Violation> {
        self.feed(ServerId(id), event)
    }

    /// A client at a server asks for a write of a cell; none if the server is down.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn propose(&mut self, id: i64, cell: u8) -> Result<Option<RequestId>, Violation> {
        self.propose_padded(id, cell, 0)
    }

    /// The same with this many bytes more than needed.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn propose_padded(
        &mut self,
        id: i64,
        cell: u8,
        padding: usize,
    ) -> Result<Option<RequestId>, Violation> {
        let mut body = vec![cell; 1 + padding];
        body.extend_from_slice(&self.steps.to_be_bytes());
        self.ask(ServerId(id), KIND, body.into())
    }

    fn ask(&mut self, id: ServerId, op: i32, body: Bytes) -> Result<Option<RequestId>, Violation> {
        let Some(server) = self.servers.get_mut(&id).filter(|server| server.peer.is_some()) else {
            return Ok(None);
        };
        server.asked += 1;
        let at = (id, server.incarnation);
        let (client, cxid) = (Ledger::client(at), i32::try_from(server.asked).unwrap_or(0));
        let request = RequestId { client, cxid };
        let cell = body.first().copied().filter(|_| op == KIND);
        self.checker.ledger.on_asked(at, request, cell);
        self.feed(id, Event::Propose(Request { id: request, op, body, identities: None }))?;
        Ok(Some(request))
    }

    /// An operator at a server asks for another membership; none if it is down.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn reconfigure(
        &mut self,
        id: i64,
        asked: &Reconfiguration,
    ) -> Result<Option<RequestId>, Violation> {
        self.ask(ServerId(id), Request::RECONFIGURE, asked.encode())
    }

    /// From now on this is what a quorum is counted by, until a change is committed: all files that count
    /// say so.
    pub fn agree_on(&mut self, ensemble: Ensemble) {
        self.checker.agree_on(ensemble);
    }

    /// The configuration of a server says something else when it starts again; whether there is such a one.
    ///
    /// # Panics
    ///
    /// If the view is no ensemble, say without a voter.
    pub fn show(&mut self, id: i64, view: &Ensemble) -> bool {
        let Some(server) = self.servers.get_mut(&ServerId(id)) else { return false };
        server.config.membership = match view.membership() {
            Ok(membership) => membership,
            Err(error) => panic!("{error}: {view:?}"),
        };
        true
    }

    /// A client at a server asks to read what is as new as everything acknowledged; none if it is down.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn read(&mut self, id: i64) -> Result<Option<ReadId>, Violation> {
        self.read_cell(id, 1)
    }

    /// The same with the cell that is to be read.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn read_cell(&mut self, id: i64, cell: u8) -> Result<Option<ReadId>, Violation> {
        let id = ServerId(id);
        let Some(server) = self.servers.get_mut(&id).filter(|server| server.peer.is_some()) else {
            return Ok(None);
        };
        server.asked += 1;
        let read = ReadId(server.incarnation << 32 | server.asked);
        self.checker.ledger.on_read(id, read, cell);
        self.feed(id, Event::Read(read))?;
        Ok(Some(read))
    }

    /// Asks a server to transfer its leadership, to this server or to the best.
    ///
    /// # Errors
    ///
    /// If what it does about it breaks a rule.
    pub fn transfer(&mut self, id: i64, to: Option<i64>) -> Result<(), Violation> {
        self.feed(ServerId(id), Event::TransferLeadership(to.map(ServerId)))
    }

    /// Cuts the ensemble into groups that cannot hear one another; servers in no group are alone.
    pub fn partition(&mut self, groups: &[&[i64]]) {
        let group_of = |id: ServerId| groups.iter().position(|group| group.contains(&id.0));
        let ids: Vec<_> = self.servers.keys().copied().collect();
        for from in &ids {
            for to in &ids {
                let (a, b) = (group_of(*from), group_of(*to));
                if a.is_none() || a != b {
                    self.block(from.0, to.0);
                }
            }
        }
    }

    /// Leaves only the ways between one server and each of the others.
    pub fn star(&mut self, center: i64) {
        let ids: Vec<_> = self.servers.keys().map(|id| id.0).collect();
        for from in ids.iter().filter(|id| **id != center) {
            for to in ids.iter().filter(|id| **id != center) {
                self.block(*from, *to);
            }
        }
        if ids.len() > 2 {
            self.coverage.hit(FaultClass::PartialConnectivity);
        }
    }

    /// Lets nothing pass from one server to another; the other direction stays as it is.
    pub fn block(&mut self, from: i64, to: i64) {
        let now = self.now();
        self.network.block(now, ServerId(from), ServerId(to));
        if from != to {
            self.trace.note(now, ServerId(from), || Told::Block(ServerId(to)));
        }
        self.enter_network();
    }

    /// Lets everything pass again, everywhere.
    pub fn heal(&mut self) {
        let now = self.now();
        let ids: Vec<_> = self.servers.keys().copied().collect();
        for from in &ids {
            for to in &ids {
                if self.network.is_blocked(*from, *to) {
                    self.trace.note(now, *from, || Told::Unblock(*to));
                    self.network.unblock(now, *from, *to);
                }
            }
        }
        self.enter_network();
    }

    /// Breaks every connection between two servers; they may connect again at once.
    pub fn cut(&mut self, a: i64, b: i64) {
        let now = self.now();
        self.trace.note(now, ServerId(a), || Told::Break(ServerId(b)));
        self.network.break_between(now, ServerId(a), ServerId(b));
        self.enter_network();
    }

    /// Breaks some connection.
    pub fn cut_any(&mut self) {
        self.network.break_any(self.agenda.now());
        self.enter_network();
    }

    /// Lets attempts to connect to a server vanish without an answer, or no longer.
    pub fn black_hole(&mut self, id: i64, on: bool) {
        self.network.black_hole(ServerId(id), on);
    }

    /// Lets the quorum port of a server accept no connections until it is told to or the server starts anew: it
    /// refuses them, or leaves them without an answer.
    ///
    /// # Errors
    ///
    /// If what it does about it breaks a rule.
    pub fn deafen(&mut self, id: i64, refuses: bool) -> Result<(), Violation> {
        let id = ServerId(id);
        if !self.is_up(id.0) {
            return Ok(());
        }
        self.coverage.hit(FaultClass::PortFails);
        self.network.deafen(id, Some(refuses));
        self.feed(id, Event::ListenFailed(Plane::Quorum))
    }

    /// Lets such a port accept connections again.
    ///
    /// # Errors
    ///
    /// If what it does about it breaks a rule.
    pub fn undeafen(&mut self, id: i64) -> Result<(), Violation> {
        let id = ServerId(id);
        if !self.network.is_deaf(id) {
            return Ok(());
        }
        self.network.deafen(id, None);
        self.feed(id, Event::Listening(Plane::Quorum))
    }

    /// Lets a server believe that there is little room left on its disk, or enough again, until it starts anew.
    ///
    /// # Errors
    ///
    /// If what it does about it breaks a rule.
    pub fn little_room(&mut self, id: i64, low: bool) -> Result<(), Violation> {
        if !self.is_up(id) {
            return Ok(());
        }
        if low {
            self.coverage.hit(FaultClass::LittleRoom);
        }
        self.feed(ServerId(id), Event::DiskLow(low))
    }

    /// Lets all others refuse the certificate of a server from now on, as when it has ended; links that are up stay. Or no
    /// longer.
    pub fn distrust(&mut self, id: i64, on: bool) {
        self.network.distrust(ServerId(id), on);
    }

    /// Lets a server say in its introductions that it listens at another address.
    pub fn advertise(&mut self, id: i64, address: HostPort) {
        self.network.advertise(ServerId(id), address);
    }

    /// Makes the world friendly from now on: nothing more breaks, is late or comes twice, clocks run as they
    /// should, and no non-member comes by.
    pub fn calm(&mut self) {
        let config = &mut self.network.config;
        (config.reset, config.spike, config.duplicate, config.damage) = (0, 0, 0, 0);
        (config.linger, config.slow_link, config.slow_dial) = (0, 0, 0);
        self.network.hasten(self.agenda.now());
        self.enter_network();
        self.non_members = None;
        (self.disk.slow, self.disk.failing) = (0, 0);
        for server in self.servers.values_mut() {
            (server.disk_full, server.disk_hangs) = (false, false);
        }
        self.clocks_run_true();
        self.crash_within = 0;
        self.traps.clear();
        (self.fuse, self.write_fuse) = (None, None);
        (self.next_fuse, self.next_write_fuse) = (None, None);
        self.disk.unreadable = 0;
        if let Some(crowd) = &mut self.crowd {
            crowd.calm();
        }
    }

    /// How crashes treat writes that are not synced.
    pub fn survival(&mut self, survival: Survival) {
        self.disk.survival = survival;
    }
}

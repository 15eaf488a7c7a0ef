//! A follower or observer, from the end of the election until it loses its leader.
//!
//! ```text
//!              connected         promised               UPTODATE
//!   settled ──► reaching ──► discovery ──► synchronization ──► broadcast (serving)
//!                  │ connect limit  │ initLimit    │ syncLimit      │ syncLimit, link ends
//!                  └────────────────┴──────────────┴────────────────┴──► LOOKING
//! ```
//!
//! The leader's side of each phase stands in the file of the same name under
//! [`leader`](crate::leader).

pub mod broadcast;
pub mod discovery;
pub mod synchronization;

use core::time::Duration;

use crate::context::{Context, Verdict};
use crate::id::{LinkId, ServerId};
use crate::learner::broadcast::Broadcast;
use crate::learner::discovery::Announced;
use crate::learner::synchronization::Synchronization;
use crate::message::Packet;
use crate::output::Hangup;
use crate::report::{self, Change, Reason};
use crate::timers::Timer;
use crate::vote::{ServerState, Standing};
use crate::zxid::Zxid;

/// How long a learner rests that could not take over what its leader offered.
const REST: Duration = Duration::from_secs(1);

/// The learner's side of Zab.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Learner {
    leader: ServerId,
    observer: bool,
    /// Where we stood when the election ended.
    settled: Standing,
    phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Dialling; the wait before the next try, and whether one has failed.
    Reaching {
        wait: Duration,
        refused: bool,
    },
    Discovery(LinkId),
    Synchronization(LinkId, Synchronization),
    Broadcast(LinkId, Broadcast),
}

impl Learner {
    /// Sets out for the leader that the election found.
    pub fn new(cx: &mut Context<'_>, settled: Standing) -> (Self, Verdict) {
        let leader = settled.vote.leader;
        let observer = settled.state == ServerState::Observing;
        let phase = Phase::Reaching { wait: cx.config.timing.connect_retry_min, refused: false };
        let learner = Self { leader, observer, settled, phase };
        cx.timers.after(Timer::ConnectLimit, cx.now, cx.config.timing.connect_time());
        let verdict = learner.dial(cx);
        (learner, verdict)
    }

    /// Whom we follow.
    pub const fn leader(&self) -> ServerId {
        self.leader
    }

    /// How far we have come.
    pub const fn phase(&self) -> report::Phase {
        match self.phase {
            Phase::Reaching { .. } | Phase::Discovery(_) => report::Phase::Discovery,
            Phase::Synchronization(..) => report::Phase::Synchronization,
            Phase::Broadcast(..) => report::Phase::Broadcast,
        }
    }

    /// The leader's quorum port has answered.
    pub fn on_link_up(&mut self, cx: &mut Context<'_>, link: LinkId, peer: ServerId) -> Verdict {
        if peer != self.leader || !matches!(self.phase, Phase::Reaching { .. }) {
            cx.links.hangup(link, Hangup::Unwanted, cx.outbox);
            return Verdict::Stay;
        }
        cx.timers.stop(Timer::Connect);
        cx.timers.stop(Timer::ConnectLimit);
        cx.timers.after(Timer::Silence, cx.now, cx.config.timing.init_time());
        discovery::introduce(cx, link, self.observer);
        self.phase = Phase::Discovery(link);
        Verdict::Stay
    }

    /// The leader's quorum port has not answered. We try again: it may not have counted its votes
    /// yet; a Java leader waits 200 ms before it even listens. Whether it lives at all its election
    /// port tells, so that is dialled too.
    pub fn on_dial_failed(&mut self, cx: &mut Context<'_>, peer: ServerId) -> Verdict {
        if peer != self.leader {
            return Verdict::Stay;
        }
        if let Phase::Reaching { wait, refused } = &mut self.phase {
            *refused = true;
            cx.timers.after(Timer::Connect, cx.now, cx.rng.around(*wait));
            *wait = (*wait * 2).min(cx.config.timing.connect_retry_max);
            if cx.links.election(peer).is_none() {
                cx.links.dial(cx.now, peer, cx.outbox);
            }
        }
        Verdict::Stay
    }

    /// A server's election port refuses us. If that is the leader whose quorum port did too, it is gone.
    pub fn on_unreachable(&mut self, peer: ServerId) -> Verdict {
        if peer == self.leader && matches!(self.phase, Phase::Reaching { refused: true, .. }) {
            Verdict::leave(Reason::LeaderUnreachable { leader: peer })
        } else {
            Verdict::Stay
        }
    }

    /// Somebody has said on the election plane where it stands. If it is the leader that we try to
    /// reach, that may tell that it will never wait for us.
    pub fn on_standing(&mut self, from: ServerId, heard: Standing) -> Verdict {
        if from != self.leader || !matches!(self.phase, Phase::Reaching { .. }) {
            return Verdict::Stay;
        }
        let moved_on = match heard.state {
            ServerState::Looking => {
                heard.round > self.settled.round
                    || (heard.round == self.settled.round
                        && heard.vote.better_than(&self.settled.vote).is_some())
            }
            ServerState::Following | ServerState::Leading | ServerState::Observing => {
                heard.vote.leader != self.leader
            }
        };
        if moved_on {
            Verdict::leave(Reason::LeaderMovedOn { leader: self.leader, round: heard.round })
        } else {
            Verdict::Stay
        }
    }

    /// The leader has said something.
    pub fn on_packet(&mut self, cx: &mut Context<'_>, from: LinkId, packet: Packet) -> Verdict {
        if self.link() != Some(from) {
            return Verdict::Stay;
        }
        self.heard(cx);
        match &mut self.phase {
            Phase::Reaching { .. } => Verdict::Stay,
            Phase::Discovery(link) => {
                let (link, leader) = (*link, self.leader);
                let Packet::LeaderInfo { epoch, .. } = packet else {
                    return self.misbehaved(cx, link, &packet);
                };
                let accepted = cx.epochs.accepted_epoch;
                match discovery::on_leader_info(cx, link, leader, epoch) {
                    Announced::Accepted => {
                        let change = Change::Phase {
                            from: report::Phase::Discovery,
                            to: report::Phase::Synchronization,
                        };
                        cx.outbox.report(change, Reason::LeaderSaid { leader, epoch });
                        self.phase = Phase::Synchronization(link, Synchronization::new(epoch));
                        Verdict::Stay
                    }
                    Announced::Refused => {
                        let reason = if epoch.is_valid() {
                            Hangup::OldEpoch(epoch)
                        } else {
                            Hangup::EpochOutOfRange(epoch)
                        };
                        cx.links.hangup(link, reason, cx.outbox);
                        Verdict::leave(Reason::OldEpoch { announced: epoch, accepted })
                    }
                }
            }
            Phase::Synchronization(..) => self.on_synchronization(cx, packet),
            Phase::Broadcast(link, _) => {
                if let Packet::Ping { zxid, .. } = packet {
                    broadcast::on_ping(cx, *link, zxid);
                } else if carries_history(&packet) {
                    return self.beyond_us(cx, &packet);
                }
                Verdict::Stay
            }
        }
    }

    /// The connection to the leader has ended.
    pub fn on_link_down(&mut self, link: LinkId) -> Verdict {
        if self.link() == Some(link) {
            Verdict::leave(Reason::LeaderLost { leader: self.leader })
        } else {
            Verdict::Stay
        }
    }

    /// A deadline has passed.
    pub fn on_timer(&mut self, cx: &mut Context<'_>, timer: Timer) -> Verdict {
        match timer {
            Timer::Connect => self.dial(cx),
            Timer::ConnectLimit => {
                Verdict::leave(Reason::LeaderUnreachable { leader: self.leader })
            }
            Timer::Silence => {
                if let Some(link) = self.link() {
                    cx.links.hangup(link, Hangup::Silent, cx.outbox);
                }
                Verdict::leave(Reason::LeaderSilent { leader: self.leader })
            }
            Timer::Start
            | Timer::Rest
            | Timer::Notification
            | Timer::Finalize
            | Timer::Redial
            | Timer::Introduction
            | Timer::Init
            | Timer::Ping => Verdict::Stay,
        }
    }

    fn on_synchronization(&mut self, cx: &mut Context<'_>, packet: Packet) -> Verdict {
        let leader = self.leader;
        let Phase::Synchronization(link, synchronization) = &mut self.phase else {
            return Verdict::Stay;
        };
        let (link, start) = (*link, Zxid::start_of(synchronization.epoch));
        let acknowledging = synchronization.acknowledging;
        match packet {
            Packet::Diff(_) if !synchronization.begun => synchronization.begun = true,
            Packet::NewLeader { zxid, .. }
                if synchronization.begun && acknowledging.is_none() && zxid == start =>
            {
                synchronization::on_new_leader(cx, link, leader, synchronization);
                cx.timers.after(Timer::Silence, cx.now, cx.config.timing.sync_time());
            }
            Packet::UpToDate if acknowledging.is_some_and(|t| cx.outbox.is_durable(t)) => {
                let epoch = synchronization.epoch;
                self.phase = Phase::Broadcast(link, broadcast::on_up_to_date(cx, link, epoch));
                let (from, to) = (report::Phase::Synchronization, report::Phase::Broadcast);
                let change = Change::Phase { from, to };
                cx.outbox.report(change, Reason::LeaderSaid { leader, epoch });
                return Verdict::Serve(epoch);
            }
            Packet::Diff(_) | Packet::NewLeader { .. } | Packet::UpToDate => {
                return self.misbehaved(cx, link, &packet);
            }
            Packet::Trunc(_)
            | Packet::Snap(_)
            | Packet::Proposal { .. }
            | Packet::Commit(_)
            | Packet::Inform { .. }
            | Packet::CommitAndActivate { .. }
            | Packet::InformAndActivate { .. } => return self.beyond_us(cx, &packet),
            // Java ignores everything else here, pings too, and so its leaders expect no answer.
            Packet::FollowerInfo(_)
            | Packet::ObserverInfo(_)
            | Packet::LeaderInfo { .. }
            | Packet::AckEpoch { .. }
            | Packet::Ack(_)
            | Packet::Acks(_)
            | Packet::Commits(_)
            | Packet::Ping { .. }
            | Packet::Request(_)
            | Packet::Revalidate(_)
            | Packet::Sync => {}
        }
        Verdict::Stay
    }

    /// Puts off the deadline of silence.
    fn heard(&self, cx: &mut Context<'_>) {
        let timing = &cx.config.timing;
        let acknowledged = match &self.phase {
            Phase::Reaching { .. } | Phase::Discovery(_) => false,
            Phase::Synchronization(_, s) => s.acknowledging.is_some(),
            Phase::Broadcast(..) => true,
        };
        let limit = if acknowledged { timing.sync_time() } else { timing.init_time() };
        cx.timers.after(Timer::Silence, cx.now, limit);
    }

    fn dial(&self, cx: &mut Context<'_>) -> Verdict {
        cx.timers.stop(Timer::Connect);
        let next = cx.config.next_membership.as_ref();
        let mut memberships = core::iter::once(&cx.config.membership).chain(next);
        let Some(member) = memberships.find_map(|m| m.member(self.leader)) else {
            return Verdict::leave(Reason::LeaderUnreachable { leader: self.leader });
        };
        let addresses = member.addresses.iter().map(|address| address.quorum.clone()).collect();
        cx.links.dial_leader(self.leader, addresses, cx.outbox);
        Verdict::Stay
    }

    fn misbehaved(&self, cx: &mut Context<'_>, link: LinkId, packet: &Packet) -> Verdict {
        let (leader, packet) = (self.leader, packet.name());
        cx.links.hangup(link, Hangup::OutOfTurn(packet), cx.outbox);
        Verdict::leave(Reason::LeaderMisbehaved { leader, packet })
    }

    /// The leader offers what this version cannot take over.
    fn beyond_us(&self, cx: &mut Context<'_>, packet: &Packet) -> Verdict {
        if let Some(link) = self.link() {
            cx.links.hangup(link, Hangup::HistoryOffered, cx.outbox);
        }
        let reason = Reason::HistoryUnsupported { packet: packet.name() };
        Verdict::Leave { reason, rest: REST }
    }

    const fn link(&self) -> Option<LinkId> {
        match self.phase {
            Phase::Reaching { .. } => None,
            Phase::Discovery(link)
            | Phase::Synchronization(link, _)
            | Phase::Broadcast(link, _) => Some(link),
        }
    }
}

/// Whether a packet brings transactions or takes them away.
const fn carries_history(packet: &Packet) -> bool {
    matches!(
        packet,
        Packet::Snap(_)
            | Packet::Trunc(_)
            | Packet::Proposal { .. }
            | Packet::Commit(_)
            | Packet::CommitAndActivate { .. }
            | Packet::Inform { .. }
            | Packet::InformAndActivate { .. }
    )
}

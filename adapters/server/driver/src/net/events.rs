//! What the tasks around the loop tell it, and what they share.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_channel::Sender;
use quorate_application::clients::Note;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, LinkUp, Plane};
use quorate_core::wire;

use crate::log_limit::LogLimit;
use crate::net::budget::{UNFINISHED_MAX, Unfinished};
use crate::net::client_handshakes::ClientHandshakes;
use crate::net::codec::ElectionCodec;
use crate::net::held_back::HeldBack;
use crate::net::login_outcomes::LoginOutcomes;
use crate::net::looks::Looks;
use crate::net::member_addresses::MemberAddresses;
use crate::net::open_links::OpenLinks;
use crate::net::outbound::Outbound;
use crate::net::port_health::PortHealth;
use crate::net::reach::Reach;
use crate::net::retransmits::Retransmits;
#[cfg(feature = "tls")]
use crate::net::secure_links::SecureLinks;
use crate::net::tls_failures::{FailedLink, Refusal, Side, TlsFailures};
use crate::permits::{Permit, Permits};
use crate::status::Counters;

/// What the tasks around the loop tell it.
#[derive(Debug)]
pub(crate) enum LoopEvent {
    /// A link is up, and this is how to write to it.
    Up(LinkUp, Outbound),
    /// Something that the core understands as it is.
    Event(Event),
    /// A message that takes much memory.
    Long { event: Event, _permit: Permit },
    /// Something that a log of who does what may tell.
    Noted(Note),
    /// Something lies in one of the loop's [inboxes](crate::inbox::Inbox).
    Wake,
    /// Something has changed about whether this port accepts connections.
    Ports(Plane),
}

/// What all tasks of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: ServerId,
    pub(crate) events: Sender<LoopEvent>,
    pub(crate) counters: Counters,
    pub(crate) warnings: LogLimit,
    pub(crate) ports: PortHealth,
    /// Who could be dialled.
    pub(crate) reach: Reach,
    pub(crate) tls_failures: TlsFailures,
    pub(crate) client_handshakes: ClientHandshakes,
    pub(crate) logins: LoginOutcomes,
    pub(crate) open_links: OpenLinks,
    pub(crate) retransmits: Retransmits,
    #[cfg(feature = "tls")]
    pub(crate) secure_links: SecureLinks,
    /// What is read again while it runs.
    pub(crate) looks: Looks,
    /// How often the stores of links were.
    #[cfg(feature = "tls")]
    pub(crate) store_reloads: AtomicU64,
    /// Where the members are.
    pub(crate) members: MemberAddresses,
    pub(super) held_back: HeldBack,
    pub(super) permits: Permits,
    pub(super) unfinished: Unfinished,
    pub(super) next_link: AtomicU64,
    /// How long a snapshot may pause on its way to us.
    pub(super) patience: Duration,
    /// What is said on the election port.
    pub(crate) codec: ElectionCodec,
    /// The longest data of a packet that is read, in bytes.
    pub(crate) packet_bytes_max: usize,
    /// Whether there is a log of who does what.
    pub(crate) is_audited: bool,
}

impl Shared {
    pub(crate) fn new(
        id: ServerId,
        events: Sender<LoopEvent>,
        patience: Duration,
        codec: ElectionCodec,
    ) -> Self {
        let (counters, warnings) = (Counters::default(), LogLimit::new());
        Self {
            id,
            events,
            counters,
            warnings,
            ports: PortHealth::default(),
            reach: Reach::default(),
            tls_failures: TlsFailures::default(),
            client_handshakes: ClientHandshakes::default(),
            logins: LoginOutcomes::default(),
            open_links: OpenLinks::default(),
            retransmits: Retransmits::default(),
            #[cfg(feature = "tls")]
            secure_links: SecureLinks::default(),
            looks: Looks::new(),
            #[cfg(feature = "tls")]
            store_reloads: AtomicU64::new(0),
            members: MemberAddresses::default(),
            held_back: HeldBack::default(),
            permits: Permits::new(LONG_MESSAGES_MAX),
            unfinished: Unfinished::new(UNFINISHED_MAX),
            next_link: AtomicU64::new(1),
            patience,
            codec,
            packet_bytes_max: wire::MAX_DATA,
            is_audited: false,
        }
    }

    /// Counts a failure, and tells of it.
    pub(super) fn tls_failed(&self, failed: &FailedLink<'_>, now: Instant) {
        let FailedLink { plane, side, remote, peer, refusal: Refusal { reason, seen } } = failed;
        self.tls_failures.count(failed);
        let (sid, plane, peer) = (self.id.0, *plane, peer.map(|peer| peer.0));
        if *reason == "refused-by-peer" {
            let event = "tls.refused_by_peer";
            if let Some(suppressed) = self.warnings.permit(event, Some(remote.ip()), now) {
                tracing::warn!(
                    event = "tls.refused_by_peer", sid, ?plane, side = side.word(), %remote, peer, reason, suppressed,
                    "no link: {seen}"
                );
            }
        } else if let Some(suppressed) = self.warnings.permit("tls.refused", Some(remote.ip()), now)
        {
            tracing::warn!(
                event = "tls.refused", sid, ?plane, side = side.word(), %remote, peer, reason, suppressed,
                "no link: {seen}"
            );
            self.note_refused("linkRefused", (plane, *side), (*remote, failed.peer), reason);
        }
    }

    /// Has it told in the log of who does what, where there is one, that another server got no link or did not log in.
    pub(super) fn note_refused(
        &self,
        operation: &'static str,
        (plane, side): (Plane, Side),
        (remote, peer): (SocketAddr, Option<ServerId>),
        reason: &str,
    ) {
        if !self.is_audited {
            return;
        }
        let mut fields = vec![
            ("ip", remote.ip().to_string()),
            ("plane", format!("{plane:?}").to_lowercase()),
            ("side", side.word().to_owned()),
            ("reason", reason.to_owned()),
        ];
        fields.extend(peer.map(|peer| ("server", peer.to_string())));
        let note = Note { operation, fields, result: "failure" };
        if self.events.try_send(LoopEvent::Noted(note)).is_err() {
            Counters::add(&self.counters.audit_dropped);
        }
    }

    /// Counts that a client was refused, and tells of it.
    pub(super) fn client_refused(&self, client: SocketAddr, refusal: &Refusal, now: Instant) {
        let Refusal { reason, seen } = refusal;
        self.client_handshakes.refuse(reason);
        let permitted = self.warnings.permit("tls.client_refused", Some(client.ip()), now);
        if let Some(suppressed) = permitted {
            tracing::warn!(
                event = "tls.client_refused", sid = self.id.0, %client, reason, suppressed,
                "client not let in: {seen}"
            );
        }
    }

    /// A link has no TLS, and is the first such with its peer.
    pub(super) fn tell_plain(&self, plane: Plane, peer: Option<ServerId>, remote: SocketAddr) {
        let (event, sid, peer) = ("tls.plain_link", self.id.0, peer.map(|peer| peer.0));
        tracing::warn!(
            event, sid, ?plane, peer, %remote,
            "a link without TLS, which portUnification allows: any host that reaches the port can have one"
        );
    }

    /// A link number that was never used.
    pub(crate) fn next_link(&self) -> LinkId {
        LinkId(self.next_link.fetch_add(1, Ordering::Relaxed))
    }
}

pub(super) fn event(event: Event) -> LoopEvent {
    LoopEvent::Event(event)
}

pub(super) fn cause_of(error: &io::Error) -> Cause {
    if error.kind() == io::ErrorKind::TimedOut { Cause::Silent } else { Cause::Reset }
}

/// How many long messages may wait for the loop.
const LONG_MESSAGES_MAX: usize = 8;

//! Noting: what is measured of what goes into the core and comes out of it.

use quorate_application::Application;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Event;
use quorate_core::message::{Message, Packet};
use quorate_core::output::{Output, Write};

use crate::drive::{Driver, Turn};
use crate::runtime::Runtime;

impl<R: Runtime, A: Application> Driver<R, A> {
    /// Something goes into the core.
    pub(super) fn note_event(&mut self, event: &Event, turn: &Turn) {
        if let Event::Received { link, message: Message::Packet(packet) } = event {
            if let Packet::FollowerInfo(info) | Packet::ObserverInfo(info) = packet {
                self.note_learner(*link, info.id);
            }
            self.proposals.received(*link, packet, turn.seen);
        } else if let Event::Persisted(ticket) = event {
            self.proposals.durable(*ticket, turn.seen);
        } else if let Event::LinkDown { link, .. } = event {
            self.proposals.ended(*link);
        }
    }

    /// Only members are measured: there is no memory for what strangers say that they are.
    fn note_learner(&mut self, link: LinkId, id: Option<ServerId>) {
        let member = id.filter(|id| self.peer.config().membership.member(*id).is_some());
        if let Some(id) = member {
            self.shared.retransmits.is_to(link, id);
            #[cfg(feature = "tls")]
            self.shared.secure_links.is_of(link, id);
        }
        if let (Some(id), Some(outbound)) = (member, self.links.get(&link)) {
            outbound.measure(self.proposals.joined(link, id));
        }
    }

    /// The core wants something done.
    pub(super) fn note_output(&mut self, output: &Output, turn: &Turn) {
        let proposals = &mut self.proposals;
        if let Output::Send { link, message: Message::Packet(packet) } = output {
            proposals.sent(*link, packet, turn.seen);
        } else if let Output::Persist { ticket, write: Write::Append(txns) } = output {
            proposals.written(*ticket, txns, turn.seen);
        } else if let Output::Deliver(txn) = output {
            proposals.delivered(txn, turn.seen);
        } else if let Output::Serving { epoch, leads, .. } = output {
            proposals.serves(Some((*epoch, *leads)));
        } else if let Output::Retired = output {
            proposals.serves(None);
        } else if let Output::Hangup { link, .. } = output {
            proposals.ended(*link);
        }
    }
}

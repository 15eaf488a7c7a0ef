//! The bytes of the election port: which messages are spoken there.

use bytes::{Bytes, BytesMut};
use quorate_core::config::Election;
use quorate_core::message::{Introduction, Message};
use quorate_core::wire::{self, DecodeError};

/// What is said on the election port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElectionCodec {
    /// Notifications.
    Fast,
    /// Messages.
    Generation,
}

impl ElectionCodec {
    /// That of a server with this configuration.
    pub(crate) const fn of(election: &Election) -> Self {
        match election {
            Election::Fast => Self::Fast,
            Election::Generation(_) => Self::Generation,
        }
    }

    /// An introduction in it.
    pub(crate) fn encode_introduction(self, introduction: &Introduction) -> Bytes {
        match self {
            Self::Fast => wire::encode_introduction(introduction),
            Self::Generation => wire::encode_generation_introduction(introduction),
        }
    }

    /// Takes an introduction in it off the front of `buf`.
    pub(crate) fn decode_introduction(
        self,
        buf: &mut BytesMut,
    ) -> Result<Option<Introduction>, DecodeError> {
        match self {
            Self::Fast => wire::decode_introduction(buf),
            Self::Generation => wire::decode_generation_introduction(buf),
        }
    }

    /// Takes a message in it off the front of `buf`.
    pub(super) fn take_message(self, buf: &mut BytesMut) -> Result<Option<Message>, DecodeError> {
        if let Some(probe) = wire::take_probe(buf) {
            return Ok(Some(Message::Probe(probe)));
        }
        match self {
            Self::Fast => wire::take_notification(buf).map(|m| m.map(Message::Notification)),
            Self::Generation => wire::take_generation(buf).map(|m| m.map(Message::Generation)),
        }
    }
}

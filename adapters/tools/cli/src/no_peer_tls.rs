//! What stands in the place of TLS to ports between servers in a build without it: no option, and nothing to come with.

use clap::Args;
use quorate_tokio::core::id::ServerId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::failure::Failure;

/// There is nothing to say.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PeerTlsArguments {}

/// There is none.
#[derive(Clone, Debug)]
pub(crate) enum PeerTls {}

/// A connection, with TLS or without.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl PeerTlsArguments {
    /// None.
    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with TLS")]
    pub(crate) fn open(&self) -> Result<Option<PeerTls>, Failure> {
        Ok(None)
    }
}

impl PeerTls {
    /// There is no server to ask.
    pub(crate) const fn is_both(&self) -> bool {
        match *self {}
    }

    /// There is no server to come.
    pub(crate) const fn id(&self, _: ServerId) -> ServerId {
        match *self {}
    }

    /// There is nothing to come with.
    #[allow(clippy::unused_async, reason = "as with TLS")]
    pub(crate) async fn shake(
        &self,
        _: TcpStream,
    ) -> Result<(Box<dyn Stream>, Vec<Vec<u8>>), String> {
        match *self {}
    }

    /// There is no certificate to judge.
    pub(crate) fn judge(&self, _: &[Vec<u8>]) -> Result<(), String> {
        match *self {}
    }
}

/// It is not known.
pub(crate) fn distrust(_: &[Vec<u8>], _: &[Vec<u8>]) -> Option<String> {
    None
}

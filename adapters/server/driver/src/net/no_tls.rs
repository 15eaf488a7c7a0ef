//! What stands in the place of TLS in a build without it: nothing that could be made.

use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::time::Duration;

use bytes::BytesMut;
use quorate_core::id::ServerId;
use quorate_core::membership::Membership;

use crate::net::tls_failures::Refusal;
use crate::net::wire::Wire;

/// There is none.
#[derive(Debug)]
pub(crate) struct Secure(Infallible);

/// Nor a certificate.
pub(super) type Names = Infallible;

/// A connection that was accepted.
pub(super) struct Accepted<S> {
    pub(super) wire: Wire<S>,
    pub(super) received: BytesMut,
    pub(super) names: Option<Names>,
}

impl Secure {
    pub(crate) fn know(&self, _: Vec<Membership>) {
        match self.0 {}
    }

    pub(super) fn tells_plain(&self, _: Option<ServerId>, _: IpAddr) -> bool {
        match self.0 {}
    }

    pub(super) fn dials(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn handshake_time(&self) -> Duration {
        match self.0 {}
    }

    pub(super) fn judge(
        &self,
        _: Option<ServerId>,
        _: Option<&Names>,
    ) -> Result<Option<String>, Refusal> {
        match self.0 {}
    }

    pub(super) async fn accept<S>(
        &self,
        _: S,
        _: impl Future<Output = ()>,
    ) -> Result<Accepted<S>, Refusal> {
        match self.0 {}
    }

    pub(super) async fn dial<S>(
        &self,
        _: S,
        _: ServerId,
        _: impl Future<Output = ()>,
    ) -> Result<Wire<S>, Refusal> {
        match self.0 {}
    }
}

/// There is no certificate that could be refused.
pub(super) async fn accepted_by_peer<S>(
    _: &mut Wire<S>,
    _: &mut BytesMut,
    _: impl Future<Output = ()>,
) -> Result<(), Refusal> {
    Ok(())
}

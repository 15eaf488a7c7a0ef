//! What stands in the place of TLS for clients in a build without it: nothing that could be made.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use quorate_application::clients::Transport;

use crate::net::events::Shared;
use crate::net::wire::Wire;
use crate::runtime::Runtime;

/// There is none.
#[derive(Debug)]
pub(crate) struct ClientSecure(Infallible);

/// Nor a door.
#[derive(Clone, Debug)]
pub(crate) struct SecureDoor(Infallible);

/// A client that may go on.
pub(super) struct Heard<S> {
    pub(super) wire: Wire<S>,
    pub(super) received: BytesMut,
    pub(super) over: Transport,
}

impl SecureDoor {
    pub(super) async fn hear<R: Runtime>(
        &self,
        _: &R,
        _: &Shared,
        _: (R::Stream, SocketAddr),
        _: Duration,
    ) -> Option<Heard<R::Stream>> {
        match self.0 {}
    }
}

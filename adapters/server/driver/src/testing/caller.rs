//! A client of the service [`Echo`], and servers with ports for such.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use futures_lite::io::{AsyncReadExt, AsyncWriteExt};
use quorate_core::id::ServerId;

use super::echo::Echo;
use super::ensemble::Ensemble;
use super::stage::Stage;
use crate::{Runtime, ServerConfig};

pub(super) type Servers<R> = Ensemble<R, Echo>;

pub(super) const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(super) fn serve_clients(config: &mut ServerConfig) {
    config.client_addresses = vec![HERE];
    config.client_shed = Duration::ZERO;
}

/// Three servers, or one, with a port for clients each.
pub(super) async fn running<R: Runtime>(
    stage: &Stage<R>,
    servers: usize,
    adjust: fn(&mut ServerConfig),
) -> (Servers<R>, ServerId) {
    let mut ensemble = Ensemble::new(stage, "127.0.0.1", [servers, 0], |_| Echo::default());
    ensemble.adjust = adjust;
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    (ensemble, leader)
}

/// A client's connection.
pub(super) struct Caller<'s, R: Runtime> {
    pub(super) stage: &'s Stage<R>,
    pub(super) stream: R::Stream,
}

impl<'s, R: Runtime> Caller<'s, R> {
    pub(super) async fn to(stage: &'s Stage<R>, ensemble: &Servers<R>, id: ServerId) -> Self {
        Self::try_to(stage, ensemble, id).await.expect("a connection")
    }

    /// None if it is reset before it is there.
    pub(super) async fn try_to(
        stage: &'s Stage<R>,
        ensemble: &Servers<R>,
        id: ServerId,
    ) -> Option<Self> {
        Self::at(stage, ensemble.server(id).client_addrs()[0]).await
    }

    pub(super) async fn at(stage: &'s Stage<R>, at: SocketAddr) -> Option<Self> {
        let stream = stage.within("a connection", stage.runtime(0).dial(at)).await.ok()?;
        Some(Self { stage, stream })
    }

    /// One that is served: a server is before its service has heard of it.
    pub(super) async fn served(stage: &'s Stage<R>, ensemble: &Servers<R>, id: ServerId) -> Self {
        loop {
            let Some(mut caller) = Self::try_to(stage, ensemble, id).await else { continue };
            caller.ask(b"g").await;
            if caller.try_answer().await.is_some() {
                return caller;
            }
        }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) {
        // The server may have closed meanwhile.
        drop(self.stage.within("write", self.stream.write_all(bytes)).await);
    }

    pub(super) async fn ask(&mut self, question: &[u8]) {
        self.write(&framed(question)).await;
    }

    pub(super) async fn try_answer(&mut self) -> Option<Vec<u8>> {
        let stream = &mut self.stream;
        let answer = async {
            let mut length = [0; 4];
            stream.read_exact(&mut length).await.ok()?;
            let mut answer = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut answer).await.ok()?;
            Some(answer)
        };
        self.stage.within("an answer", answer).await
    }

    pub(super) async fn answer(&mut self) -> Vec<u8> {
        self.try_answer().await.expect("an answer")
    }

    /// The answer to this letter, if it is a number.
    pub(super) async fn number(&mut self, letter: u8) -> u64 {
        let answer = self.answer().await;
        let (said, mut number) = answer.split_first().unwrap();
        assert_eq!(*said, letter, "in order");
        number.get_u64()
    }

    pub(super) async fn until_closed(&mut self, what: &str) {
        // A reset, or the end.
        let mut rest = Vec::new();
        drop(self.stage.within(what, self.stream.read_to_end(&mut rest)).await);
    }
}

pub(super) fn framed(question: &[u8]) -> BytesMut {
    let mut bytes = BytesMut::new();
    bytes.put_u32(u32::try_from(question.len()).unwrap());
    bytes.put_slice(question);
    bytes
}

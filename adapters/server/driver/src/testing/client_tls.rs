//! Clients that come through TLS: which ports take them, who each is, and who is not let in.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::io::{AsyncReadExt, AsyncWriteExt};
use futures_rustls::rustls::ClientConfig;
use futures_rustls::{TlsConnector, client::TlsStream};
use quorate_core::id::ServerId;
use quorate_tls::{ClientAuth, RevokedFile};

use super::caller::{HERE, Servers, framed};
use super::certificates::{Authority, Flaw, Holder};
use super::refusals::old_hellos;
use super::tls::Dribble;
use super::{Echo, Ensemble, Stage};
use crate::{Runtime, SecureClients, Server, ServerConfig, StartError};

/// A server that runs alone, with both ports for clients.
struct One<'s, R: Runtime> {
    stage: &'s Stage<R>,
    authority: Authority,
    servers: Servers<R>,
    id: ServerId,
}

impl<'s, R: Runtime> One<'s, R> {
    async fn start(stage: &'s Stage<R>, adjust: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::start_with(stage, |config, _| adjust(config)).await
    }

    async fn start_with(
        stage: &'s Stage<R>,
        adjust: impl FnOnce(&mut ServerConfig, &Authority),
    ) -> Self {
        let authority = Authority::new("ours");
        let mut servers = Ensemble::new(stage, "127.0.0.1", [1, 0], |_| Echo::default());
        let id = servers.ids()[0];
        let mut config = servers.config(id);
        let holder = authority.for_server(id);
        config.client_addresses = vec![HERE];
        config.client_shed = Duration::ZERO;
        config.client_tls = Some(SecureClients {
            settings: authority.for_clients(&servers.data_dir(id), &holder),
            addresses: vec![HERE],
            on_plain_port: true,
        });
        adjust(&mut config, &authority);
        servers.start_as(config).await;
        servers.agreed().await;
        let one = Self { stage, authority, servers, id };
        // A server is before its service has heard of it.
        while try_ask(one.plain().await, b"i").await.is_none() {
            stage.pass().await;
        }
        one
    }

    fn server(&self) -> &Server<R, Echo> {
        self.servers.server(self.id)
    }

    fn at(&self, secure: bool) -> SocketAddr {
        let addrs =
            if secure { self.server().secure_client_addrs() } else { self.server().client_addrs() };
        addrs[0]
    }

    async fn dial(&self, at: SocketAddr) -> R::Stream {
        let dialled = self.stage.runtime(0).dial(at);
        self.stage.within("a connection", dialled).await.unwrap()
    }

    async fn plain(&self) -> R::Stream {
        self.dial(self.at(false)).await
    }

    /// A handshake at one of the ports.
    async fn through(&self, config: Arc<ClientConfig>, secure: bool) -> TlsStream<R::Stream> {
        let stream = self.dial(self.at(secure)).await;
        let shaken = TlsConnector::from(config).connect("127.0.0.1".try_into().unwrap(), stream);
        self.stage.within("a handshake", shaken).await.unwrap()
    }

    fn client(&self, holder: Option<&Holder>) -> Arc<ClientConfig> {
        self.authority.stranger(holder)
    }

    /// What the page says behind this.
    fn figure(&self, name: &str) -> u64 {
        let page = self.server().figures().page(&[]);
        let told = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        told.map_or(0, |told| told.split('.').next().unwrap().parse().unwrap())
    }

    fn refused(&self, reason: &str) -> u64 {
        let labels = format!("plane=\"client\",side=\"accept\",reason=\"{reason}\"");
        self.figure(&format!("quorate_tls_failures_total{{{labels}}}"))
    }

    async fn until_refused(&self, reason: &str, count: u64) {
        let what = format!("a client refused for {reason}");
        self.stage.until(&what, || self.refused(reason) >= count).await;
    }
}

async fn try_ask(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    question: &[u8],
) -> Option<Vec<u8>> {
    stream.write_all(&framed(question)).await.ok()?;
    stream.flush().await.ok()?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).await.ok()?;
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut answer).await.ok()?;
    Some(answer.split_off(1))
}

/// Asks; what the answer is as text.
async fn ask<R: Runtime>(
    stage: &Stage<R>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    question: &[u8],
) -> String {
    let answer = stage.within("an answer", try_ask(stream, question)).await.unwrap();
    String::from_utf8(answer).unwrap()
}

pub async fn clients_come_through_tls_or_without_as_each_port_allows<R: Runtime>(stage: Stage<R>) {
    let one = One::start(&stage, |config| {
        config.client_tls.as_mut().unwrap().settings.client_auth = ClientAuth::Want;
    })
    .await;
    let holder = one.authority.for_client("a client");
    let own = "CN=a client,O=ours\\, all of it";
    let mut open = Vec::new();
    for secure in [false, true] {
        let mut stream = one.through(one.client(Some(&holder)), secure).await;
        assert_eq!(ask(&stage, &mut stream, b"i").await, own);
        // More than fits into one record, or into what waits within TLS.
        let long = [b"b", &3_000_000_u32.to_be_bytes()[..]].concat();
        assert_eq!(ask(&stage, &mut stream, &long).await.len(), 3_000_000);
        open.push(stream);
        let stream = one.through(one.client(None), secure).await;
        assert_eq!(ask(&stage, stream, b"i").await, "nobody");
        // Byte by byte.
        let stream = Dribble(one.dial(one.at(secure)).await);
        let connector = TlsConnector::from(one.client(Some(&holder)));
        let shaken = connector.connect("127.0.0.1".try_into().unwrap(), stream);
        let stream = stage.within("a handshake", shaken).await.unwrap();
        assert_eq!(ask(&stage, stream, b"i").await, own);
    }
    assert_eq!(ask(&stage, one.plain().await, b"i").await, "plain");
    assert_eq!(ask(&stage, Dribble(one.plain().await), b"i").await, "plain");
    let counted = || one.figure("quorate_client_connections{tls=\"true\"}") == 2;
    stage.until("two through TLS", counted).await;
    // The port for TLS alone says why it does not take another.
    let mut plain = one.dial(one.at(true)).await;
    stage.within("a word", plain.write_all(&framed(b"i"))).await.unwrap();
    drop(stage.within("the end", plain.read_to_end(&mut Vec::new())).await);
    one.until_refused("plain-on-tls-port", 1).await;
    drop(open);
    stage.until("none left", || one.figure("quorate_client_connections{tls=\"true\"}") == 0).await;
}

pub async fn a_client_that_may_not_is_refused_before_a_word_of_it_is_read<R: Runtime>(
    stage: Stage<R>,
) {
    let one = One::start(&stage, |config| {
        let settings = &mut config.client_tls.as_mut().unwrap().settings;
        settings.handshake_time = Duration::from_secs(3);
    })
    .await;
    let flawed = |flaw| Some(one.authority.with_flaw(ServerId(7), Some(flaw)));
    let strangers = [
        ("no-certificate", None),
        ("unknown-authority", Some(Authority::new("theirs").for_client("a client"))),
        ("expired", flawed(Flaw::Ended)),
        ("not-yet-valid", flawed(Flaw::NotBegun)),
        ("usage", flawed(Flaw::AcceptsOnly)),
    ];
    for (count, secure) in [(1, true), (2, false)] {
        for (reason, holder) in &strangers {
            // In TLS 1.3 it is not refused before it speaks.
            let mut stream = one.through(one.client(holder.as_ref()), secure).await;
            drop(stage.within("a word", stream.write_all(&framed(b"px"))).await);
            drop(stage.within("the end", stream.read_to_end(&mut Vec::new())).await);
            one.until_refused(reason, count).await;
        }
        for (reason, hello) in old_hellos() {
            let mut old = one.dial(one.at(secure)).await;
            stage.within("a hello", old.write_all(&hello)).await.unwrap();
            drop(stage.within("the end", old.read_to_end(&mut Vec::new())).await);
            one.until_refused(reason, count).await;
        }
        let mut silent = one.dial(one.at(secure)).await;
        stage.within("a beginning", silent.write_all(&[0x16, 3, 1])).await.unwrap();
        let mut garbage = one.dial(one.at(secure)).await;
        let bytes = [0x16, 3, 1, 0, 4, 9, 9, 9, 9, 9, 9, 9, 9];
        stage.within("garbage", garbage.write_all(&bytes)).await.unwrap();
        drop(stage.within("the end", garbage.read_to_end(&mut Vec::new())).await);
        one.until_refused("malformed", count).await;
        drop(stage.within("the end", silent.read_to_end(&mut Vec::new())).await);
        one.until_refused("timeout", count).await;
    }
    // Who is only looking whether a port is open is no one to be refused.
    drop(one.dial(one.at(true)).await);
    let mut good = one.through(one.client(Some(&one.authority.for_client("x"))), true).await;
    let answer = stage.within("an answer", try_ask(&mut good, b"g")).await.unwrap();
    assert_eq!(answer, [0; 8], "nothing that a stranger asked for was done");
    assert_eq!(one.refused("reset"), 0);
}

pub async fn a_port_without_tls_knows_it_when_it_sees_it<R: Runtime>(stage: Stage<R>) {
    let one = One::start(&stage, |config| config.client_tls = None).await;
    assert_eq!(one.server().secure_client_addrs(), []);
    let mut stream = one.plain().await;
    let hello = [0x16, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0];
    for byte in hello {
        drop(stage.within("a byte", stream.write_all(&[byte])).await);
    }
    drop(stage.within("the end", stream.read_to_end(&mut Vec::new())).await);
    one.until_refused("tls-on-plain-port", 1).await;
    assert_eq!(one.refused("tls-on-plain-port"), 1);
    assert_eq!(ask(&stage, one.plain().await, b"i").await, "plain");
}

pub async fn handshakes_that_do_not_go_on_keep_nobody_out<R: Runtime>(stage: Stage<R>) {
    let one = One::start(&stage, |config| {
        config.max_client_connections = 0;
        let settings = &mut config.client_tls.as_mut().unwrap().settings;
        settings.handshake_time = Duration::from_secs(600);
    })
    .await;
    let mut halves = Vec::new();
    for _ in 0..260 {
        let mut half = one.dial(one.at(true)).await;
        stage.within("a beginning", half.write_all(&[0x16, 3, 1])).await.unwrap();
        halves.push(half);
    }
    let exceeded = || one.figure("tls_handshake_exceeded") >= 10;
    stage.until("some have made room", exceeded).await;
    let holder = one.authority.for_client("a client");
    let stream = one.through(one.client(Some(&holder)), true).await;
    assert!(ask(&stage, stream, b"i").await.starts_with("CN=a client"));
    assert!(one.figure("outstanding_tls_handshake") <= 250);
    drop(halves);
    stage.until("none left", || one.figure("outstanding_tls_handshake") == 0).await;
}

pub async fn a_certificate_that_is_replaced_is_shown_to_clients_who_come_then<R: Runtime>(
    stage: Stage<R>,
) {
    let mut stores = None;
    let one = One::start(&stage, |config| {
        let settings = &mut config.client_tls.as_mut().unwrap().settings;
        settings.reload = Some(Duration::from_millis(20));
        stores = Some(settings.key_store.path.clone());
    })
    .await;
    let stores = stores.unwrap();
    let config = one.client(Some(&one.authority.for_client("a client")));
    let shown = async || {
        let stream = one.through(Arc::clone(&config), true).await;
        let (_, session) = stream.get_ref();
        (session.peer_certificates().unwrap()[0].to_vec(), stream)
    };
    let (mut before, mut open) = shown().await;
    let good = fs::read(&stores).unwrap();
    for half_written in [false, true] {
        if half_written {
            fs::write(&stores, &good[..good.len() / 2]).unwrap();
            assert_eq!(shown().await.0, before);
        }
        let holder = one.authority.for_server(one.id);
        drop(one.authority.for_clients(&one.servers.data_dir(one.id), &holder));
        let changed = async {
            loop {
                let (now, _) = shown().await;
                if now != before {
                    return now;
                }
            }
        };
        before = stage.within("another certificate", changed).await;
    }
    assert!(ask(&stage, &mut open, b"i").await.starts_with("CN=a client"), "it stays");
}

/// Only when an operator asks, where nothing is looked at otherwise.
pub async fn a_client_whose_certificate_is_taken_back_is_out_when_an_operator_asks<R: Runtime>(
    stage: Stage<R>,
) {
    let mut lists = None;
    let one = One::start_with(&stage, |config, authority| {
        let settings = &mut config.client_tls.as_mut().unwrap().settings;
        let path = settings.key_store.path.with_file_name("lists.pem");
        fs::write(&path, authority.revoked(&[])).unwrap();
        lists = Some(path.clone());
        settings.reload = None;
        settings.revoked = Some(RevokedFile { path, strict: false });
    })
    .await;
    let [good, bad] = [7, 8].map(|id| one.client(Some(&one.authority.for_server(ServerId(id)))));
    let mut open = one.through(Arc::clone(&bad), true).await;
    ask(&stage, &mut open, b"i").await;
    fs::write(lists.unwrap(), one.authority.revoked(&[ServerId(8)])).unwrap();
    let stream = one.through(Arc::clone(&bad), true).await;
    ask(&stage, stream, b"i").await;
    one.server().look_at_stores();
    let refused = async {
        while one.refused("revoked") == 0 {
            let stream = one.through(Arc::clone(&bad), true).await;
            drop(try_ask(stream, b"i").await);
        }
    };
    stage.within("a refusal", refused).await;
    let stream = one.through(good, true).await;
    ask(&stage, stream, b"i").await;
    ask(&stage, &mut open, b"i").await;
}

pub async fn a_port_for_tls_that_is_in_use_is_named<R: Runtime>(stage: Stage<R>) {
    let authority = Authority::new("ours");
    let servers: Servers<R> = Ensemble::new(&stage, "127.0.0.1", [1, 0], |_| Echo::default());
    let id = servers.ids()[0];
    let mut config = servers.config(id);
    let taken = std::net::TcpListener::bind(HERE).unwrap();
    let at = taken.local_addr().unwrap();
    config.bind_tries = 1;
    config.client_tls = Some(SecureClients {
        settings: authority.for_clients(&servers.data_dir(id), &authority.for_server(id)),
        addresses: vec![at],
        on_plain_port: false,
    });
    match servers.try_start(config.clone()).await {
        Err(StartError::BindClients { address, .. }) => assert_eq!(address, at.to_string()),
        other => panic!("{:?}", other.map(drop)),
    }
    drop(taken);
    // A store that is not good is named, too.
    let own = config.client_tls.as_ref().unwrap().settings.key_store.path.clone();
    fs::write(&own, "nothing").unwrap();
    match servers.try_start(config).await {
        Err(StartError::Tls(error)) => assert!(error.to_string().contains("own.pem"), "{error}"),
        other => panic!("{:?}", other.map(drop)),
    }
}

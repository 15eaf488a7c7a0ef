//! A client of plain sockets; servers and their pages on some runtime.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::sleep;
use std::time::{Duration, Instant};

use quorate_driver::testing::free_ports;
use quorate_driver::{NoApplication, Runtime, Server, ServerConfig};
use quorate_http::{Limits, Pages, Port};

/// Three servers, each with its pages.
pub(crate) struct Ensemble<R: Runtime> {
    pub(crate) servers: Vec<Server<R, NoApplication>>,
    pub(crate) pages: Vec<SocketAddr>,
    /// What the pages of each are made of.
    pub(crate) sites: Vec<Pages<R>>,
    _dir: tempfile::TempDir,
}

/// Runs something on a runtime, and returns what it returns.
pub(crate) fn on<R: Runtime, T: Send + 'static>(
    runtime: &R,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let (sender, receiver) = channel();
    runtime.spawn(async move {
        drop(sender.send(work.await));
    });
    receiver.recv_timeout(Duration::from_secs(30)).expect("it ends")
}

/// The pages of a server that is yet to start, at a port that the system picks.
pub(crate) fn open<R: Runtime>(runtime: &R, limits: Limits) -> (SocketAddr, Pages<R>) {
    let pages = Pages::with(quorate_http::NoMore, Duration::from_secs(2));
    let (site, on_it) = (Arc::new(pages.clone()), runtime.clone());
    let at = "127.0.0.1:0".parse().unwrap();
    let address = on(runtime, async move {
        let port = Port::open(on_it.clone(), at).await.unwrap();
        let address = port.local_addr();
        on_it.spawn(port.serve(site, limits));
        address
    });
    (address, pages)
}

impl<R: Runtime> Ensemble<R> {
    pub(crate) fn start(runtime: &R) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ports = free_ports(6);
        let (mut servers, mut addresses, mut sites) = (Vec::new(), Vec::new(), Vec::new());
        for id in 1..=3_u16 {
            let mut config = ServerConfig::builder(id.into(), dir.path().join(id.to_string()))
                .tick(Duration::from_millis(200))
                .limits(10, 5);
            for (voter, ports) in (1..).zip(ports.chunks(2)) {
                config = config.voter(voter, &format!("127.0.0.1:{}:{}", ports[0], ports[1]));
            }
            let (config, on_it) = (config.build().unwrap(), runtime.clone());
            let (address, pages) = open(runtime, Limits::default());
            let server =
                on(
                    runtime,
                    async move { Server::start(on_it, config, NoApplication).await.unwrap() },
                );
            pages.started(runtime, server.clone());
            servers.push(server);
            addresses.push(address);
            sites.push(pages);
        }
        Self { servers, pages: addresses, sites, _dir: dir }
    }

    /// Waits until one leads and all serve; says which leads.
    pub(crate) fn led(&self) -> usize {
        until("a leader", || {
            let serve = |at: &SocketAddr| get(*at, "/ready").0 == 200;
            let leads = |at: &SocketAddr| get(*at, "/leader").0 == 200;
            let all = self.pages.iter().all(serve);
            self.pages.iter().position(leads).filter(|_| all)
        })
    }
}

/// Waits for something.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "waited for {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Status and body.
pub(crate) fn get(at: SocketAddr, path: &str) -> (u16, String) {
    let answer = send(at, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    let (status, _, body) = parts(&answer);
    (status, body)
}

/// Writes bytes, reads to the end.
pub(crate) fn send(at: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may answer and close before it has read all.
    drop(stream.write_all(bytes.as_bytes()));
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    String::from_utf8(answer).unwrap()
}

/// Status, head, body.
pub(crate) fn parts(answer: &str) -> (u16, String, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or(0), head.to_ascii_lowercase(), body.to_owned())
}

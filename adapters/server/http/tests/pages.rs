//! What the pages tell, on every runtime.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use quorate_driver::Runtime;
use quorate_http::{Limits, Method, Pages, Request, Site as _};

use crate::client::{Ensemble, get, on, open, parts, send, until};

fn tell(runtime: &impl Runtime) {
    probes_and_pages(runtime);
    before_the_start(runtime);
}

/// A server that reads its disk for minutes is not to be restarted for it.
fn before_the_start(runtime: &impl Runtime) {
    let (at, _pages) = open(runtime, Limits::default());
    assert_eq!(get(at, "/healthy"), (200, "ok\n".to_owned()));
    assert_eq!(get(at, "/ready"), (503, "not ready: starting\n".to_owned()));
    assert_eq!(get(at, "/metrics").0, 503);
}

fn probes_and_pages<R: Runtime>(runtime: &R) {
    let ensemble = Ensemble::start(runtime);
    let leader = ensemble.led();
    for (index, &at) in ensemble.pages.iter().enumerate() {
        let leads = index == leader;
        for path in ["/ready", "/readyz", "/healthy", "/healthz", "/live", "/livez"] {
            assert_eq!(get(at, path), (200, "ok\n".to_owned()), "{path}");
        }
        assert_eq!(get(at, "/leader").0, if leads { 200 } else { 503 });
        assert_eq!(get(at, "/follower").0, if leads { 503 } else { 200 });
        assert_eq!(get(at, "/observer").0, 503);
        let verbose = get(at, "/ready?verbose").1;
        assert_eq!(verbose, "[+]loop\n[+]disk\n[+]writes\n[+]serving\n[+]stays\n");
        metrics(&get(at, "/metrics").1, leads);
        json(at, index);
        assert_eq!(get(at, "/quorate/nonsense").0, 404);
        assert_eq!(get(at, "/").0, 404);
    }
    let only = get(ensemble.pages[0], "/metrics?name%5B%5D=quorum_size").1;
    assert_eq!(only, "# HELP quorum_size quorum_size\n# TYPE quorum_size gauge\nquorum_size 3.0\n");
    only_a_part(runtime, &ensemble.sites[0]);
    lose_the_leader(runtime, ensemble, leader);
}

/// What is open to others for one thing is open to them for nothing else.
fn only_a_part<R: Runtime>(runtime: &R, site: &Pages<R>) {
    let asked = |site: Pages<R>, path: &str| {
        let request = Request {
            method: Method::Get,
            path: path.to_owned(),
            query: Vec::new(),
            accepts_json: false,
            authorization: None,
            last_event_id: None,
            remote: "127.0.0.1:1".parse().unwrap(),
        };
        let streams = site.events(&request).is_some();
        (on(runtime, async move { site.answer(request).await }).status, streams)
    };
    let paths = ["/metrics", "/ready", "/quorate/status", "/quorate/stream"];
    for (part, open) in [
        (site.clone(), [(200, false), (200, false), (200, false), (404, true)]),
        (site.only_metrics(), [(200, false), (404, false), (404, false), (404, false)]),
        (site.only_probes(), [(404, false), (200, false), (404, false), (404, false)]),
    ] {
        assert_eq!(paths.map(|path| asked(part.clone(), path)), open);
    }
}

/// Rules and dashboards tell leaders from others by what is there.
fn metrics(page: &str, leads: bool) {
    let has = |name: &str| page.lines().any(|line| line.split([' ', '{']).next() == Some(name));
    let always = [
        "looking_count",
        "election_time_count",
        "unavailable_time_sum",
        "fsynctime_sum",
        "quorum_size",
        "uptime",
        "quorate_has_leader",
        "zk_epoch",
        "quorate_build_info",
    ];
    for name in always {
        assert!(has(name), "{name} in {page}");
    }
    for name in ["leader_uptime", "learners", "synced_followers", "synced_non_voting_followers"] {
        assert_eq!(has(name), leads, "{name} in {page}");
    }
    let state = if leads { "leading" } else { "following" };
    assert!(page.contains(&format!("quorate_state{{state=\"{state}\"}} 1.0\n")), "{page}");
}

fn json(at: SocketAddr, index: usize) {
    let (status, body) = get(at, "/quorate/status");
    assert_eq!(status, 200);
    assert!(body.starts_with(&format!("{{\n  \"schema\" : 1,\n  \"id\" : {},\n", index + 1)));
    assert!(
        body.contains("\"serving\" : true,\n") && body.contains("server.3=127.0.0.1:"),
        "{body}"
    );
    let (_, changes) = get(at, "/quorate/changes");
    assert!(
        changes.contains("\"reason\" : ") && changes.contains("\"number\" : 0,\n"),
        "{changes}"
    );
    let (_, none) = get(at, "/quorate/changes?since=1000000");
    assert!(none.ends_with("\"changes\" : [ ]\n}"), "{none}");
    assert_eq!(get(at, "/quorate/changes?since=x").0, 400);
    until("links", || {
        let (_, reach) = get(at, "/quorate/reach");
        assert!(reach.contains("\"linked\" : "), "{reach}");
        (!reach.contains("\"linked\" : false")).then_some(())
    });
    let (_, health) = get(at, "/quorate/health");
    assert!(health.starts_with("{\n  \"ok\" : true,\n  \"role\" : "), "{health}");
    let asked = "GET /ready HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\
                 Connection: close\r\n\r\n";
    let (_, head, body) = parts(&send(at, asked));
    assert!(head.contains("content-type: application/json") && !head.contains("server:"), "{head}");
    assert!(body.contains("\"has_leader\" : true"), "{body}");
}

/// A stream of changes.
struct Events {
    stream: TcpStream,
    held: String,
}

impl Events {
    fn of(at: SocketAddr, query: &str, header: &str) -> Self {
        let mut stream = TcpStream::connect(at).unwrap();
        let asked = format!("GET /quorate/stream{query} HTTP/1.1\r\nHost: x\r\n{header}\r\n");
        stream.write_all(asked.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { stream, held: String::new() }
    }

    /// What has come when this has.
    fn until(&mut self, what: &str) -> String {
        let mut piece = [0; 4096];
        while !self.held.contains(what) || !self.held.ends_with("\n\n\r\n") {
            let read = self.stream.read(&mut piece).unwrap();
            assert!(read > 0, "it ends before {what}: {}", self.held);
            self.held += std::str::from_utf8(&piece[..read]).unwrap();
        }
        std::mem::take(&mut self.held)
    }
}

/// Without a quorum a server is not ready within a second, and healthy all the while.
fn lose_the_leader<R: Runtime>(runtime: &R, ensemble: Ensemble<R>, leader: usize) {
    let left = (leader + 1) % 3;
    let mut stream = Events::of(ensemble.pages[left], "?since=0", "");
    let first = stream.until("\nid: 0\n");
    assert!(first.contains("content-type: text/event-stream"), "{first}");
    for (index, server) in ensemble.servers.iter().enumerate() {
        if index != left {
            let server = server.clone();
            on(runtime, async move { server.kill().await });
        }
    }
    let (at, lost) = (ensemble.pages[left], Instant::now());
    let said = until("not ready", || Some(get(at, "/ready")).filter(|said| said.0 == 503));
    assert!(lost.elapsed() < Duration::from_secs(1), "after {:?}", lost.elapsed());
    assert!(said.1.starts_with("not ready: looking for a leader"), "{said:?}");
    assert_eq!(get(at, "/healthy"), (200, "ok\n".to_owned()));
    let page = get(at, "/metrics").1;
    assert!(page.contains("quorate_has_leader 0.0\n"), "{page}");
    assert!(!page.contains("\nuptime ") && !page.contains("\nquorum_size "), "{page}");
    // The stream told it when it happened, and goes on behind what its reader has had.
    let lost = stream.until("\"state\":\"looking\"");
    let last = lost.rsplit("id: ").next().unwrap().lines().next().unwrap().parse::<u64>().unwrap();
    let header = format!("Last-Event-ID: {}\r\n", last - 1);
    let again = Events::of(ensemble.pages[left], "", &header).until("\nid: ");
    assert!(again.contains(&format!("\nid: {last}\n")), "{again}");
    // One that has ended is neither.
    assert_eq!(get(ensemble.pages[leader], "/healthy").0, 503);
}

#[test]
fn pages_are_told_on_tokio() {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _context = tokio.enter();
    // Spawned from threads of the test, which is in its context.
    tell(&quorate_tokio::Tokio);
}

#[test]
fn pages_are_told_on_smol() {
    tell(&quorate_smol::Smol);
}

#[test]
fn pages_are_told_on_async_std() {
    tell(&quorate_async_std::AsyncStd);
}

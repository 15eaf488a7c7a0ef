//! Prometheus' own tool reads the page.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use quorate_metrics::{Detail, Figures, Summary};

#[test]
fn promtool_reads_the_page() {
    let mut figures = Figures::default();
    let mut summary = Summary::default();
    figures.summary("fsynctime", Detail::Basic, &summary.spread(Duration::ZERO));
    summary.observe(Duration::ZERO, 12);
    figures.summary("readlatency", Detail::Advanced, &summary.spread(Duration::ZERO));
    figures.counter("looking_count", 1_u64);
    figures.gauge("quorum_size", 3_u64);
    for peer in ["1", "\"2\\\n"] {
        figures.on_page("quorate_link_up", "a link", &[("peer", peer)], 1_u64);
    }
    let page = figures.page(&[]);
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut tool = match tool {
        Ok(tool) => tool,
        Err(error) => {
            let required = std::env::var("QUORATE_REQUIRE_PEERS").is_ok_and(|value| value == "1");
            assert!(!required, "promtool: {error}");
            return eprintln!("skipped: promtool: {error}");
        }
    };
    tool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let said = tool.wait_with_output().unwrap();
    // 3: it reads it, and does not like ZooKeeper's names.
    assert!(matches!(said.status.code(), Some(0 | 3)), "{page}\n{said:?}");
}

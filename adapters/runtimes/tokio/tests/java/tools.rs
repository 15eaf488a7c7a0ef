//! ZooKeeper's own client and its tools for files, run to their end.

use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use quorate_core::zxid::Zxid;

use super::command;

/// Gives these commands to ZooKeeper's command line client; what it prints.
pub async fn command_line(port: u16, commands: &[&str]) -> String {
    let commands = commands.join("\n") + "\nquit\n";
    let run = move || {
        let mut java = command();
        java.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn");
        java.arg("org.apache.zookeeper.ZooKeeperMain").arg("-waitforconnection");
        java.args(["-server", &format!("127.0.0.1:{port}")]);
        java.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut java = java.spawn().unwrap();
        java.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
        let Output { status, stdout, stderr } = java.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{status}: {said}");
        said.into_owned()
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// The transactions in a log file, as Java's tool reads them; fails if it finds a fault.
pub fn log_entries(file: &Path) -> Vec<Zxid> {
    let said = run("org.apache.zookeeper.server.persistence.TxnLogToolkit", file);
    let fine = said.contains("EOF reached after") && !said.contains("CRC ERROR");
    assert!(fine, "{}: {said}", file.display());
    let zxids = said.lines().filter_map(|line| line.split_once(" zxid 0x"));
    let hex = zxids.filter_map(|(_, rest)| rest.split(' ').next());
    hex.map(|hex| Zxid(i64::from_str_radix(hex, 16).unwrap())).collect()
}

/// The paths in a snapshot file, sorted, as Java's tool reads them.
pub fn snapshot_entries(file: &Path) -> Vec<String> {
    let said = run("org.apache.zookeeper.server.SnapshotFormatter", file);
    let nodes = said.lines().skip_while(|line| !line.starts_with("ZNode Details"));
    let nodes = nodes.take_while(|line| !line.starts_with("Session Details"));
    let mut paths: Vec<_> = nodes.filter(|line| line.starts_with('/')).map(str::to_owned).collect();
    assert!(!paths.is_empty(), "{}: {said}", file.display());
    paths.sort();
    paths
}

fn run(tool: &str, file: &Path) -> String {
    let mut java = command();
    java.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error");
    let Output { status, stdout, stderr } = java.arg(tool).arg(file).output().unwrap();
    let said = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{tool} {}: {status}: {said}", file.display());
    said.into_owned()
}

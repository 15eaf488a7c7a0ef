//! ZooKeeper's client for C judges: it sets all its watches again in one frame, however many there are.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::ensemble::Servers;
use crate::peer::{Judge, available, beside, run};

/// So many that the frame is longer than servers take frames to be otherwise.
const WATCHES: usize = 20_000;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn twenty_thousand_watches_of_a_c_client_outlive_their_server_and_tell_one_change_each() {
    let files = ["/usr/include/zookeeper/zookeeper.h", "/usr/bin/gcc"];
    if !available(&files, "Debian: libzookeeper-mt-dev, gcc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("watches");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-Wall", "-Wextra", "-Werror", "-DTHREADED"]).arg(beside("watches.c"));
    run(compiler.args(["-lzookeeper_mt", "-lpthread", "-o"]).arg(&program));

    let mut servers = Servers::start();
    // The election of another leader is no part of this.
    let leader = servers.leader();
    let [doomed, next] = [leader % 3 + 1, (leader + 1) % 3 + 1];
    let mut client = Command::new(program);
    client.arg(format!("{},{}", servers.host(doomed), servers.host(next)));
    client.args([servers.host(leader), WATCHES.to_string()]);
    let client = Judge::start(&mut client);
    client.says("watching", PATIENCE);
    let killed = Instant::now();
    servers.kill(doomed);
    client.says("connected", PATIENCE);
    println!("connected again after {:.1?}", killed.elapsed());
    client.says("done", PATIENCE);
    println!("all told after {:.1?}", killed.elapsed());
}

//! A member of an ensemble of Java ZooKeeper servers: an observer that has their whole tree.
//!
//! ```text
//!   cargo run -p quorate-tokio --example join_java_ensemble -- /etc/zookeeper/zoo.cfg /app/config
//! ```
//!
//! The `zoo.cfg` is one of theirs, with a line of our own (`server.4=here:2888:3888:observer`, and so in
//! theirs), `peerType=observer`, a `dataDir` and a `myid` of our own. The node's data is printed
//! whenever it is another.
//!
//! It is an observer since it is not proven as a leader over the clients of Java servers.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use quorate_service::ZooKeeper;
use quorate_tokio::start_with;
use quorate_tokio::zoo_cfg::ZooCfg;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(cfg), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: join_java_ensemble ZOO_CFG PATH".into());
    };
    let cfg = ZooCfg::read(cfg)?;
    for warning in &cfg.warnings {
        println!("{warning}");
    }
    let server = start_with(cfg, ZooKeeper::default()).await?;
    let (leader, epoch) = server.ready().await?;
    println!("server {leader} leads in epoch {epoch}, and we have what it has");

    let mut last = None;
    loop {
        let wanted = path.clone();
        let data = server
            .read_local(move |zookeeper| {
                zookeeper.tree().get(&wanted).map(|node| node.data().cloned())
            })
            .await?;
        if last.as_ref() != Some(&data) {
            match &data {
                None => println!("{path}: no such node"),
                Some(data) => {
                    let data = data.as_deref().unwrap_or_default();
                    println!("{path}: {}", String::from_utf8_lossy(data));
                }
            }
            last = Some(data);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

//! An elector in a service, and nothing else: the leader, and each change of it.
//!
//! ```text
//!   cargo run -p quorate-tokio --example elect_only
//! ```
//!
//! Three servers in one process; each would usually have a machine of its own, and be built with the
//! addresses of all. The leader is killed; the other two find the next one.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use quorate_tokio::{ServerConfig, start};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let mut servers = Vec::new();
    for id in [1, 2, 3] {
        let config = ServerConfig::builder(id, dir.path().join(id.to_string()))
            .voter(1, "127.0.0.1:24781:25781")
            .voter(2, "127.0.0.1:24782:25782")
            .voter(3, "127.0.0.1:24783:25783")
            .build()?;
        servers.push(start(config).await?);
    }

    let (first, epoch) = servers[0].ready().await?;
    println!("server {first} leads in epoch {epoch}");

    let dead = servers.iter().position(|server| server.id() == first).ok_or("not one of ours")?;
    servers.remove(dead).kill().await;
    println!("server {first} is dead");

    let mut leaders = servers[0].leaders();
    while let Some(leader) = leaders.next().await {
        match leader {
            None => println!("no leader"),
            Some((id, _)) if id == first => {}
            Some((id, epoch)) => {
                println!("server {id} leads in epoch {epoch}");
                return Ok(());
            }
        }
    }
    Err("the server has ended".into())
}

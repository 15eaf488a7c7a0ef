//! An ensemble that grows and shrinks while it serves.
//!
//! ```text
//!   cargo run -p quorate-tokio --example membership
//! ```
//!
//! Three servers; a fourth is started, follows without a vote until it has everything, and becomes a
//! member. Then the leader is told to leave: it names the next one, which takes over without an election.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::Member;
use quorate_tokio::core::reconfiguration::Reconfiguration;
use quorate_tokio::{ServerConfig, start};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let three = |id: i64| {
        ServerConfig::builder(id, dir.path().join(id.to_string()))
            .voter(1, "127.0.0.1:24481:25481")
            .voter(2, "127.0.0.1:24482:25482")
            .voter(3, "127.0.0.1:24483:25483")
            .reconfigurable(true)
    };
    let mut servers = Vec::new();
    for id in [1, 2, 3] {
        servers.push(start(three(id).build()?).await?);
    }
    let (leader, _) = servers[0].ready().await?;
    println!("server {leader} leads three");

    // It is told its own line too; the others hear of it by what follows.
    let fourth = start(three(4).voter(4, "127.0.0.1:24484:25484").build()?).await?;
    fourth.ready().await?;
    let line = Member::parse(ServerId(4), "127.0.0.1:24484:25484:participant")?;
    let version = servers[0].reconfigure(&Reconfiguration::change([line], [])).await?;
    println!("server 4 votes, by transaction {version:#x}");
    servers.push(fourth);

    let leave = Reconfiguration::change([], [leader]).if_version(version);
    let version = servers[0].reconfigure(&leave).await?;
    println!("server {leader} has no vote any more, by transaction {version:#x}");

    let other = servers.iter().find(|server| server.id() != leader).ok_or("no other server")?;
    let mut leaders = other.leaders();
    while let Some(next) = leaders.led().await {
        if next.0 != leader {
            println!("server {} leads, in epoch {}", next.0, next.1);
            return Ok(());
        }
    }
    Err("the server has ended".into())
}

//! A register that survives its servers: names and values, the same on three servers.
//!
//! ```text
//!   cargo run -p quorate-tokio --example replicated_register
//! ```
//!
//! The whole of a replicated state machine is the `impl StateMachine` below. A write is done when a
//! quorum has it on disk; a read, asked of any server, sees every write that was done before it began.
//! Then the leader is killed, and it all goes on.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use quorate_tokio::core::zxid::Zxid;
use quorate_tokio::core::{config::Config, id::ServerId, membership::Membership};
use quorate_tokio::{Replicated, RestoreError, Server, ServerConfig, StateMachine, start_with};

/// What is replicated. Behind an `Arc`, so that a snapshot is a moment's work.
#[derive(Default)]
struct Register {
    values: Arc<BTreeMap<String, String>>,
}

/// A command is text: `set NAME VALUE`, or `cas NAME OLD NEW` to set it only if it is OLD.
impl StateMachine for Register {
    type State = Arc<BTreeMap<String, String>>;

    /// Runs on every server, in the same order, and so must depend on nothing else.
    fn apply(&mut self, _zxid: Zxid, command: &[u8]) -> Bytes {
        let command = String::from_utf8_lossy(command);
        let words: Vec<_> = command.split(' ').collect();
        let values = Arc::make_mut(&mut self.values);
        match words[..] {
            ["set", name, value] => {
                values.insert(name.to_owned(), value.to_owned());
                "ok".into()
            }
            ["cas", name, old, new] if values.get(name).is_some_and(|value| value == old) => {
                values.insert(name.to_owned(), new.to_owned());
                "ok".into()
            }
            _ => "no".into(),
        }
    }

    fn save(&self) -> Self::State {
        Arc::clone(&self.values)
    }

    fn load(&mut self, state: Self::State) {
        self.values = state;
    }

    /// A piece for each name; they come back as they are, one at a time.
    fn write(state: Self::State) -> impl Iterator<Item = Bytes> + Send {
        Arc::unwrap_or_clone(state)
            .into_iter()
            .map(|(name, value)| format!("{name} {value}").into())
    }

    fn read(state: &mut Self::State, piece: &[u8]) -> Result<(), RestoreError> {
        let (name, value) = std::str::from_utf8(piece)?.split_once(' ').ok_or("no value")?;
        Arc::make_mut(state).insert(name.to_owned(), value.to_owned());
        Ok(())
    }
}

type Node = Server<Replicated<Register>>;

/// A write: done when it returns, on whichever server it is asked for.
async fn write(server: &Node, command: &'static str) -> Result<String, Box<dyn Error>> {
    let proposed = server.propose(command).await?;
    Ok(String::from_utf8_lossy(&proposed.reply).into_owned())
}

/// A read: never older than any write that was done before.
async fn read(server: &Node, name: &'static str) -> Result<Option<String>, Box<dyn Error>> {
    Ok(server.read(|register| register.machine().values.get(name).cloned()).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}

/// Three servers in one process; each would usually have a machine of its own.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let ensemble = Membership::parse(
        "server.1=127.0.0.1:24881:25881\nserver.2=127.0.0.1:24882:25882\nserver.3=127.0.0.1:24883:25883",
    )?;
    let dir = tempfile::tempdir()?;
    let mut servers = Vec::new();
    for id in [1, 2, 3] {
        let config = Config::new(ServerId(id), ensemble.clone());
        let config = ServerConfig::new(config, dir.path().join(id.to_string()));
        servers.push(start_with(config, Replicated::new("register", Register::default())).await?);
    }
    for server in &servers {
        server.leaders().led().await.ok_or("it has ended")?;
    }

    println!("set colour blue: {}", write(&servers[0], "set colour blue").await?);
    println!("server 3 reads {:?}", read(&servers[2], "colour").await?);

    let (leader, _) = servers[0].leader().ok_or("no leader")?;
    let dead = servers.iter().position(|server| server.id() == leader).ok_or("not one of ours")?;
    println!("server {leader} leads, and is killed");
    servers.remove(dead).kill().await;
    for server in &servers {
        let mut leaders = server.leaders();
        while leaders.led().await.ok_or("it has ended")?.0 == leader {}
    }

    println!("cas colour blue red: {}", write(&servers[0], "cas colour blue red").await?);
    println!("cas colour blue green: {}", write(&servers[1], "cas colour blue green").await?);
    println!("the other reads {:?}", read(&servers[1], "colour").await?);
    assert_eq!(read(&servers[0], "colour").await?.as_deref(), Some("red"));
    Ok(())
}

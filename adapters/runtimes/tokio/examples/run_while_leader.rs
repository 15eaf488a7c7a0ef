//! Work that only one server of several may do, and each can.
//!
//! ```text
//!   cargo run -p quorate-tokio --example run_while_leader
//! ```
//!
//! Each server waits for leadership and works while it has it. The work writes to a store that refuses
//! tokens smaller than it has seen, so that a leader that does not know yet that it is none can do no
//! harm. Then leadership is transferred: the old leader's work is dropped before the new one's begins.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quorate_tokio::core::id::ServerId;
use quorate_tokio::{FencingToken, Server, ServerConfig, start};
use tokio::sync::mpsc;

/// A store that several may write to: what fencing asks of it.
static STORE: Mutex<Option<FencingToken>> = Mutex::new(None);

/// Writes, unless a later leader has written before; returns whether it did.
fn write(token: FencingToken) -> bool {
    let mut newest = STORE.lock().unwrap_or_else(PoisonError::into_inner);
    let accepts = *newest <= Some(token);
    if accepts {
        *newest = Some(token);
    }
    accepts
}

/// Works whenever `server` leads, until it ends.
async fn work_while_leader(server: Server, news: mpsc::Sender<(ServerId, FencingToken)>) {
    while let Ok(leadership) = server.leadership().await {
        let token = leadership.token();
        let work = async {
            // No receiver: the example is over.
            let _ = news.send((server.id(), token)).await;
            while write(token) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // The work is dropped when leadership is over. Another server may lead when the guard
        // is dropped, at the end of this turn, and not before.
        if let Err(lost) = leadership.run(work).await {
            println!("server {} stops working with token {token}: {lost}", server.id());
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let (news, mut heard) = mpsc::channel(8);
    let mut servers = Vec::new();
    for id in [1, 2, 3] {
        let config = ServerConfig::builder(id, dir.path().join(id.to_string()))
            .voter(1, "127.0.0.1:24681:25681")
            .voter(2, "127.0.0.1:24682:25682")
            .voter(3, "127.0.0.1:24683:25683")
            .build()?;
        let server = start(config).await?;
        tokio::spawn(work_while_leader(server.clone(), news.clone()));
        servers.push(server);
    }

    let (leader, token) = heard.recv().await.ok_or("no server works")?;
    println!("server {leader} works with token {token}");
    for server in &servers {
        server.ready().await?;
    }
    let old = servers.iter().find(|server| server.id() == leader).ok_or("not one of ours")?;
    let next = servers.iter().find(|server| server.id() != leader).ok_or("no other server")?;
    old.transfer_leadership(next.id()).await?;

    let (leader, later) = heard.recv().await.ok_or("no server works")?;
    println!("server {leader} works with token {later}");
    assert!(leader == next.id() && later > token);
    Ok(())
}

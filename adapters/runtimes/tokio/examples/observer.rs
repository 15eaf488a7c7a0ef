//! An observer: a copy without a vote, which reads as well as a follower and slows no write down.
//!
//! ```text
//!   cargo run -p quorate-tokio --example observer
//! ```
//!
//! One server votes, a second only observes. What is written through the observer is agreed on by the
//! voter alone; what is read at the observer is as new as anything that was acknowledged before.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::iter;

use bytes::Bytes;
use quorate_tokio::core::zxid::Zxid;
use quorate_tokio::{Replicated, RestoreError, ServerConfig, StateMachine, start_with};

/// How often anything was written.
#[derive(Default)]
struct Count(u64);

impl StateMachine for Count {
    type State = u64;

    fn apply(&mut self, _: Zxid, _: &[u8]) -> Bytes {
        self.0 += 1;
        Bytes::new()
    }

    fn save(&self) -> u64 {
        self.0
    }

    fn load(&mut self, count: u64) {
        self.0 = count;
    }

    fn write(count: u64) -> impl Iterator<Item = Bytes> + Send {
        iter::once(Bytes::copy_from_slice(&count.to_be_bytes()))
    }

    fn read(count: &mut u64, piece: &[u8]) -> Result<(), RestoreError> {
        *count = u64::from_be_bytes(piece.try_into()?);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let config = |id: i64| {
        ServerConfig::builder(id, dir.path().join(id.to_string()))
            .voter(1, "127.0.0.1:24581:25581")
            .observer(2, "127.0.0.1:24582:25582")
            .build()
    };
    let count = || Replicated::new("count", Count::default());
    let voter = start_with(config(1)?, count()).await?;
    let observer = start_with(config(2)?, count()).await?;
    let (leader, _) = observer.ready().await?;
    println!("server {} observes, server {leader} leads", observer.id());

    voter.propose("once").await?;
    observer.propose("twice").await?;
    let seen = observer.read(|count| count.machine().0).await?;
    println!("the observer has seen {seen} writes");
    assert_eq!(seen, 2);
    Ok(())
}

//! A job that one process does at a time, by an election in ZooKeeper.
//!
//! ```console
//! $ cargo run -p quorate-zookeeper --example leader_only_job -- zk1:2181 host-1
//! $ cargo run -p quorate-zookeeper --example leader_only_job -- zk1:2181 host-2   # waits
//! ```
//!
//! Start it as often as you like, and kill the one that works: the next one goes on.
#![allow(clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::time::Duration;

use quorate_zookeeper::{Candidate, Config, FencingToken};

/// Whatever it writes to is given the token with each write, and refuses smaller ones.
async fn job(token: FencingToken) {
    for step in 1.. {
        println!("step {step}, token {token}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(hosts), Some(identity)) = (arguments.next(), arguments.next()) else {
        return Err("which HOST:PORT, and which identity?".into());
    };
    let candidate = Candidate::start(Config::new(hosts, "/leader_only_job", identity)).await?;
    loop {
        let leadership = candidate.leadership().await?;
        if let Err(lost) = leadership.run(job(leadership.token())).await {
            println!("{lost}");
        }
    }
}

//! A master that region servers register with, and that is replaced when it dies.
//!
//! ```console
//! $ cargo run -p quorate-zookeeper --example region_master -- zk1:2181 master m1
//! $ cargo run -p quorate-zookeeper --example region_master -- zk1:2181 master m2    # waits
//! $ cargo run -p quorate-zookeeper --example region_master -- zk1:2181 server s1
//! $ cargo run -p quorate-zookeeper --example region_master -- zk1:2181 server s2
//! ```
//!
//! Each process has one session. A region server that is alive has a node below `/regions/servers`; the master sees each that
//! comes or goes, and says in `/regions/assignment` who serves which region. It writes that in one transaction with a
//! check of its own offer: when its leadership is over, ZooKeeper itself refuses it.
#![allow(clippy::print_stdout, reason = "an example")]

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use quorate_zookeeper::zookeeper_client::{Acls, Client, CreateMode};
use quorate_zookeeper::{Candidate, Config, Contender, Members, Session};

const SERVERS: &str = "/regions/servers";
const MASTER: &str = "/regions/master";
const ASSIGNMENT: &str = "/regions/assignment";
const REGIONS: [&str; 4] = ["a-f", "g-l", "m-r", "s-z"];

type Failure = Box<dyn Error + Send + Sync>;

/// A region server, until its session is over.
pub(crate) async fn server(
    client: &Client,
    name: &str,
    say: impl Fn(String),
) -> Result<Infallible, Failure> {
    make_assignment(client).await?;
    // It takes no guard: it is a member and nothing else.
    let _member = Candidate::start(Config::on(&Session::of(client), SERVERS, name)).await?;
    let mut before = String::new();
    loop {
        let (text, _, changed) = client.get_and_watch_data(ASSIGNMENT).await?;
        let text = String::from_utf8_lossy(&text);
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        let own: Vec<_> =
            pairs.filter(|(_, server)| *server == name).map(|(region, _)| region).collect();
        let own = own.join(" ");
        if own != before {
            say(format!("{name} serves {own}"));
            before = own;
        }
        changed.changed().await;
    }
}

/// A candidate for master, until its session is over.
pub(crate) async fn master(
    client: &Client,
    name: &str,
    say: impl Fn(String),
) -> Result<Infallible, Failure> {
    make_assignment(client).await?;
    let session = Session::of(client);
    let candidate = Candidate::start(Config::on(&session, MASTER, name)).await?;
    loop {
        let leadership = candidate.leadership().await?;
        let Some(offer) = candidate.status().offer else { continue };
        say(format!("{name} is master"));
        let mut servers = Members::open(Config::on(&session, SERVERS, name))?;
        let work = async {
            loop {
                let alive = servers.next().await?;
                assign(client, &offer, &alive).await?;
                let names: Vec<_> = alive.iter().map(Contender::name).collect();
                say(format!("{name} assigns to {}", names.join(" ")));
            }
        };
        // A master that cannot do its work lets another try.
        let ended: Result<Result<Infallible, Failure>, _> = leadership.run(work).await;
        match ended {
            Ok(Err(error)) => say(format!("{name}: {error}")),
            Err(lost) => say(format!("{name}: {lost}")),
        }
    }
}

/// Each region to one of those that are alive.
async fn assign(client: &Client, offer: &str, alive: &[Contender]) -> Result<(), Failure> {
    let pairs = REGIONS.iter().zip(alive.iter().cycle());
    let text: String =
        pairs.map(|(region, server)| format!("{region} {}\n", server.name())).collect();
    let mut write = client.new_check_writer(&format!("{MASTER}/{offer}"), None)?;
    write.add_set_data(ASSIGNMENT, text.as_bytes(), None)?;
    write.commit().await?;
    Ok(())
}

async fn make_assignment(client: &Client) -> Result<(), Failure> {
    let mode = CreateMode::Persistent.with_acls(Acls::anyone_all());
    Ok(client.mkdir(ASSIGNMENT, &mode).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [hosts, role, name] = &arguments[..] else {
        return Err("which HOST:PORT, master or server, and which name?".into());
    };
    let connector = Client::connector().with_session_timeout(Duration::from_secs(10));
    let client = connector.connect(hosts).await?;
    let say = |line| println!("{line}");
    match role.as_str() {
        "master" => master(&client, name, say).await?,
        "server" => server(&client, name, say).await?,
        _ => return Err("master, or server?".into()),
    };
    Ok(())
}

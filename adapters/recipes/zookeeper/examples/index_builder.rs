//! One node builds the index of all documents, and the others copy it: work that only one should do.
//!
//! ```console
//! $ cargo run -p quorate-zookeeper --example index_builder -- zk1:2181 host-1 documents/ here-1/
//! $ cargo run -p quorate-zookeeper --example index_builder -- zk1:2181 host-2 documents/ here-2/
//! ```
//!
//! The leader builds the index, and says in `/index/current` which it is, and where to copy it: the token of its
//! leadership and an address. No process takes an index with a smaller token than the one it has, and ZooKeeper refuses
//! the word of a builder whose leadership is over: it is written in one transaction with a check of its offer.
#![allow(clippy::print_stdout, reason = "an example")]

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_zookeeper::zookeeper_client::{Acls, Client, CreateMode};
use quorate_zookeeper::{Candidate, Config, Session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const CURRENT: &str = "/index/current";
const BUILDERS: &str = "/index/builders";
/// No index is longer.
const BYTES_MAX: u64 = 1 << 30;
/// How long a copy may take.
const PATIENCE: Duration = Duration::from_secs(30);

type Failure = Box<dyn Error + Send + Sync>;

/// A node, until its session is over. It has its index in the directory `own`.
pub(crate) async fn node(
    client: &Client,
    name: &str,
    documents: &Path,
    own: &Path,
    say: impl Fn(String),
) -> Result<Infallible, Failure> {
    let mode = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.mkdir(CURRENT, &mode).await?;
    let index = own.join("index");
    // Where this node can be reached by the others: for this example, on the same machine.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?.to_string();
    let candidate = Candidate::start(Config::on(&Session::of(client), BUILDERS, name)).await?;
    let building = async {
        loop {
            let leadership = candidate.leadership().await?;
            let Some(offer) = candidate.status().offer else { continue };
            let token = leadership.token().as_u64();
            let work = async {
                let (from, to) = (documents.to_owned(), index.clone());
                tokio::task::spawn_blocking(move || build(&from, &to)).await??;
                let mut write = client.new_check_writer(&format!("{BUILDERS}/{offer}"), None)?;
                write.add_set_data(CURRENT, format!("{token} {address}").as_bytes(), None)?;
                write.commit().await?;
                say(format!("{name} has built"));
                // It keeps the leadership: there is nothing to build before it is gone.
                std::future::pending::<Result<Infallible, Failure>>().await
            };
            if let Ok(Err(error)) = leadership.run(work).await {
                say(format!("{name}: {error}"));
            }
        }
    };
    tokio::select! {
        ended = building => ended,
        ended = copy_each(client, name, &address, &index, &say) => ended,
        ended = give(listener, &index) => ended,
    }
}

/// Which words stand in which documents.
fn build(documents: &Path, index: &Path) -> Result<(), Failure> {
    let mut words: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(documents)? {
        let entry = entry?;
        let document = entry.file_name().to_string_lossy().into_owned();
        for word in fs::read_to_string(entry.path())?.split_whitespace() {
            words.entry(word.to_lowercase()).or_default().insert(document.clone());
        }
    }
    let line = |(word, at): (String, BTreeSet<String>)| {
        format!("{word}: {}\n", at.into_iter().collect::<Vec<_>>().join(" "))
    };
    replace(index, words.into_iter().map(line).collect::<String>().as_bytes())
}

/// In one step: a process that reads it has the one before, or this.
fn replace(index: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let new: PathBuf = index.with_extension("new");
    fs::write(&new, bytes)?;
    Ok(fs::rename(&new, index)?)
}

/// Copies each index that another node has built.
async fn copy_each(
    client: &Client,
    name: &str,
    own: &str,
    index: &Path,
    say: impl Fn(String),
) -> Result<Infallible, Failure> {
    let mut newest = 0_u64;
    loop {
        let (text, _, changed) = client.get_and_watch_data(CURRENT).await?;
        let text = String::from_utf8_lossy(&text);
        let (token, address) = text.split_once(' ').unwrap_or_default();
        let token = token.parse().unwrap_or(0);
        if token > newest && address != own {
            match tokio::time::timeout(PATIENCE, copy(address)).await {
                Ok(Ok(bytes)) => {
                    replace(index, &bytes)?;
                    say(format!("{name} has copied"));
                }
                // It has gone; the next one builds another.
                Ok(Err(error)) => say(format!("{name}: {error}")),
                Err(_) => say(format!("{name}: no copy within {PATIENCE:?}")),
            }
        }
        newest = token.max(newest);
        changed.changed().await;
    }
}

async fn copy(address: &str) -> Result<Vec<u8>, Failure> {
    let mut stream = TcpStream::connect(address).await?.take(BYTES_MAX);
    let length = stream.read_u64().await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    // One that breaks off is none.
    if u64::try_from(bytes.len())? == length { Ok(bytes) } else { Err("half an index".into()) }
}

/// Gives the index to each process that connects: its length, and its bytes.
async fn give(listener: TcpListener, index: &Path) -> Result<Infallible, Failure> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let index = index.to_owned();
        tokio::spawn(async move {
            let bytes = tokio::task::spawn_blocking(move || fs::read(index)).await??;
            stream.write_u64(u64::try_from(bytes.len())?).await?;
            stream.write_all(&bytes).await?;
            Ok::<_, Failure>(stream.shutdown().await?)
        });
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [hosts, name, documents, own] = &arguments[..] else {
        return Err(
            "which HOST:PORT, name, directory of documents, and directory of its own?".into()
        );
    };
    fs::create_dir_all(own)?;
    let connector = Client::connector().with_session_timeout(Duration::from_secs(10));
    let client = connector.connect(hosts).await?;
    node(&client, name, documents.as_ref(), own.as_ref(), |line| println!("{line}")).await?;
    Ok(())
}

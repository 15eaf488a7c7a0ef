//! Whether members can dial back: one introduces itself with the smallest id, and waits to be dialled.
//!
//! ```text
//!   doctor ── introduction: id 0, at ADDRESS ──► election port of a member ── closes it: the larger id owns the link
//!   doctor ◄── introduction ── the member dials ADDRESS
//! ```
//!
//! A Java server keeps a mailbox for the id 0 until it is restarted, and warns in its log: so it is only done when asked for.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::message::Introduction;
use quorate_tokio::core::wire;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Those of the members, each with its election port, that dial back in time, and those that do not.
///
/// # Errors
///
/// What the system says of our address.
pub(super) async fn ask(
    members: Vec<(ServerId, HostPort)>,
    address: &HostPort,
    patience: Duration,
) -> io::Result<Vec<(ServerId, bool)>> {
    let listener = TcpListener::bind((address.host.as_str(), address.port)).await?;
    let end = Instant::now() + patience;
    let heard = Arc::new(Mutex::new(BTreeSet::new()));
    let wanted = members.len();
    let accepting = {
        let heard = Arc::clone(&heard);
        async move {
            while let Ok((stream, _)) = listener.accept().await {
                let heard = Arc::clone(&heard);
                tokio::spawn(async move {
                    if let Ok(Some(id)) = timeout_at(end, introduced(stream)).await {
                        heard.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
                    }
                });
            }
        }
    };
    let accepting = tokio::spawn(accepting);
    let introductions: Vec<_> = members
        .iter()
        .map(|(_, at)| tokio::spawn(introduce(at.clone(), address.clone(), end)))
        .collect();
    let count = || heard.lock().unwrap_or_else(PoisonError::into_inner).len();
    while count() < wanted && Instant::now() < end {
        sleep_until(end.min(Instant::now() + LOOK_AFTER)).await;
    }
    accepting.abort();
    introductions.iter().for_each(tokio::task::JoinHandle::abort);
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(members.into_iter().map(|(id, _)| (id, heard.contains(&id))).collect())
}

/// Says who we are, and keeps the connection until the member closes it.
async fn introduce(at: HostPort, address: HostPort, end: Instant) {
    let introduction = Introduction { id: NOBODY, addresses: vec![address] };
    let said = async {
        let mut stream = TcpStream::connect((at.host.as_str(), at.port)).await?;
        stream.write_all(&wire::encode_introduction(&introduction)).await?;
        stream.read(&mut [0; 64]).await
    };
    // Whether it worked is told by who dials.
    drop(timeout_at(end, said).await);
}

/// Who a connection says that it is.
async fn introduced(mut stream: TcpStream) -> Option<ServerId> {
    let mut buffer = BytesMut::new();
    loop {
        match wire::decode_introduction(&mut buffer) {
            Ok(Some(introduction)) => return Some(introduction.id),
            Ok(None) => {}
            Err(_) => return None,
        }
        if stream.read_buf(&mut buffer).await.ok()? == 0 {
            return None;
        }
    }
}

/// Smaller than every server's.
const NOBODY: ServerId = ServerId(0);
/// How often it is looked whether all have dialled.
const LOOK_AFTER: Duration = Duration::from_millis(20);

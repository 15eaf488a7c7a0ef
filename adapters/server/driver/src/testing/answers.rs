//! Something in the place of a member that is dialled: what it answers is up to a test.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_rustls::rustls::{ServerConfig, ServerConnection};

use crate::lock::locked;

/// What is answered to a dial.
#[derive(Clone)]
pub(super) enum Answer {
    /// A handshake, and nothing after it.
    Handshake(Arc<ServerConfig>),
    /// These bytes, and the end.
    Bytes(Vec<u8>),
    /// Nothing.
    Silence,
}

/// Answers at a port, each dial on a thread of its own, until it is dropped.
pub(super) struct Impersonator {
    at: SocketAddr,
    answer: Arc<Mutex<Answer>>,
    ends: Arc<AtomicBool>,
}

impl Impersonator {
    pub(super) fn at(port: u16, answer: Answer) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let at = listener.local_addr().unwrap();
        let (answer, ends) = (Arc::new(Mutex::new(answer)), Arc::<AtomicBool>::default());
        let (answers, end) = (Arc::clone(&answer), Arc::clone(&ends));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                let answer = locked(&answers).clone();
                std::thread::spawn(move || give(stream, answer));
            }
        });
        Self { at, answer, ends }
    }

    /// To dials from now on.
    pub(super) fn answers(&self, answer: Answer) {
        *locked(&self.answer) = answer;
    }
}

impl Drop for Impersonator {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // It waits for one more.
        drop(TcpStream::connect(self.at));
    }
}

/// Whether the other side has had enough makes no difference.
fn give(mut stream: TcpStream, answer: Answer) {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    match answer {
        Answer::Handshake(config) => {
            let mut connection = ServerConnection::new(config).unwrap();
            while connection.complete_io(&mut stream).is_ok() && connection.is_handshaking() {}
            drop(stream.read_to_end(&mut Vec::new()));
        }
        Answer::Bytes(bytes) => {
            // First what it is an answer to: unread bytes would reset the connection.
            drop(stream.read(&mut [0; 4096]));
            drop(stream.write_all(&bytes));
        }
        Answer::Silence => drop(stream.read_to_end(&mut Vec::new())),
    }
}

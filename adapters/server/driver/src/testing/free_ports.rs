//! Ports for the servers of tests.

use std::net::{TcpListener, UdpSocket};
use std::sync::Mutex;

/// Below those that systems give to outgoing connections: a dial could have the port of a server that is not up yet.
const FIRST: u16 = 12_000;
const BLOCKS: u16 = 200;
const BLOCK: u16 = 100;

/// What this process has taken.
struct Taken {
    /// Each holds a block for as long as the process lives, by its first port. Whether a port can be bound says no more
    /// than that nobody listens yet; no two sockets bind the same one of UDP, which nothing else here uses.
    held: Vec<UdpSocket>,
    /// Ports of the last block that were not given out.
    rest: std::ops::Range<u16>,
}

/// Ports that no process uses at the moment, and that no other process that asks here is given while this one lives.
///
/// # Panics
///
/// If there are no more: 20,000 for all processes together.
pub fn free_ports(count: usize) -> Vec<u16> {
    static TAKEN: Mutex<Taken> = Mutex::new(Taken { held: Vec::new(), rest: 0..0 });
    let mut taken = TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let candidates = std::iter::repeat_with(|| taken.next());
    candidates.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).take(count).collect()
}

impl Taken {
    fn next(&mut self) -> u16 {
        self.rest.next().unwrap_or_else(|| {
            // Processes begin at different ones, so that they seldom try what others have.
            let start = u16::try_from(std::process::id() % u32::from(BLOCKS)).unwrap_or(0);
            let blocks = (0..BLOCKS).map(|nth| (start + nth) % BLOCKS);
            let mut firsts = blocks.map(|block| FIRST + block * BLOCK);
            let free =
                firsts.find_map(|first| Some((first, UdpSocket::bind(("127.0.0.1", first)).ok()?)));
            let (first, socket) = free.expect("a block of ports that no process of tests holds");
            self.held.push(socket);
            self.rest = first + 1..first + BLOCK;
            first
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What the child of this test prints in front of its ports.
    const PORTS: &str = "ports ";

    #[test]
    fn processes_that_live_at_the_same_time_get_different_ports() {
        const CHILD: &str = "QUORATE_TEST_PORTS";
        if std::env::var_os(CHILD).is_some() {
            println!("{PORTS}{:?}", free_ports(3));
            return;
        }
        // Among these the next process begins, which has one of the next ids.
        let own = free_ports(40 * usize::from(BLOCK));
        let name =
            "testing::free_ports::tests::processes_that_live_at_the_same_time_get_different_ports";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", name])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8(child.stdout).unwrap();
        let theirs = said.split_once(PORTS).unwrap().1.lines().next().unwrap();
        for port in theirs.trim_matches(['[', ']']).split(", ") {
            assert!(!own.contains(&port.parse().unwrap()), "{port}");
        }
    }
}

//! The core without any runtime: three servers in one thread, with a queue for a network and a struct for
//! each disk.
//!
//! ```text
//!   cargo run -p quorate-core --example bare_core
//! ```
//!
//! This is all that a driver has to do: wait for something to happen, step, carry out. A real one has
//! sockets where there is a queue here, and fills in the arms for histories and applications.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]
#![allow(clippy::wildcard_enum_match_arm, reason = "what it has no use for is not spelled out")]

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;

use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::output::Output;
use quorate_core::peer::Peer;
use quorate_core::time::Instant;

/// Both ends of every link: whose it is, and what the other end is called.
type Links = BTreeMap<LinkId, (ServerId, LinkId)>;

fn main() -> Result<(), Box<dyn Error>> {
    let membership =
        Membership::parse("server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888")?;
    let mut peers = BTreeMap::new();
    for id in [1, 2, 3].map(ServerId) {
        peers.insert(id, Peer::new(Config::new(id, membership.clone()), Durable::default())?);
    }
    let mut queue: VecDeque<(ServerId, Event)> = VecDeque::new();
    let mut links = Links::new();
    let mut now = Instant::ORIGIN;

    while !peers.values().all(|peer| peer.status().serving) {
        // 1. Wait for something to happen, or for the earliest deadline.
        let (id, event) = match queue.pop_front() {
            Some(happened) => happened,
            None => {
                let due = peers.iter().filter_map(|(id, peer)| Some((peer.deadline()?.0, *id)));
                let (at, id) = due.min().ok_or("nothing is due")?;
                now = now.max(at);
                (id, Event::Tick)
            }
        };
        // 2. Step.
        let Some(peer) = peers.get_mut(&id) else { continue };
        for output in peer.step(Input { at: now, event }) {
            // 3. Carry out.
            match output {
                Output::Send { link, message } => {
                    if let Some((to, link)) = links.get(&link).copied() {
                        queue.push_back((to, Event::Received { link, message }));
                    }
                }
                // A disk that is never slow, and a history that is empty.
                Output::Persist { ticket, .. } => queue.push_back((id, Event::Persisted(ticket))),
                Output::Dial { plane, peer, .. } => {
                    connect(&mut links, &mut queue, plane, id, peer)
                }
                Output::Hangup { link, .. } => {
                    if let Some((peer, theirs)) = links.remove(&link) {
                        links.remove(&theirs);
                        let cause = quorate_core::input::Cause::Closed;
                        queue.push_back((peer, Event::LinkDown { link: theirs, cause }));
                    }
                }
                Output::Report(report) => println!("server {id}: {report}"),
                Output::Halt(fault) => return Err(fault.into()),
                // What is replicated is another story: see the run loop in the crate's documentation.
                _ => {}
            }
        }
    }
    Ok(())
}

fn connect(
    links: &mut Links,
    queue: &mut VecDeque<(ServerId, Event)>,
    plane: Plane,
    from: ServerId,
    to: ServerId,
) {
    let number = links.keys().map(|link| link.0 + 1).max().unwrap_or(0) + 2;
    let (ours, theirs) = (LinkId(number), LinkId(number + 1));
    links.insert(ours, (to, theirs));
    links.insert(theirs, (from, ours));
    let up = |link, dialled, peer| {
        let (advertised, remote) = (None, None);
        Event::LinkUp(LinkUp { link, plane, dialled, peer, advertised, remote })
    };
    queue.push_back((from, up(ours, true, Some(to))));
    // On the election port the dialler introduces itself.
    queue.push_back((to, up(theirs, false, (plane == Plane::Election).then_some(from))));
}

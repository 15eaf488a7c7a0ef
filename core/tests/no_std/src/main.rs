//! Three servers elect a leader where there is no operating system, no std and no allocator but the
//! one below.
//!
//! It is not run; that it links is the proof. It does what a small controller would do: it keeps
//! its peers' inputs in a queue, carries messages as bytes through the codec, and answers writes at
//! once.
//!
//! The allocator and the entry point are the only unsafe code in this repository: no safe Rust can
//! provide either.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::hint::black_box;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};

use bytes::BytesMut;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Input, LinkUp, Plane};
use quorate_core::membership::Membership;
use quorate_core::message::Message;
use quorate_core::output::Output;
use quorate_core::peer::Peer;
use quorate_core::time::Instant;
use quorate_core::wire;

const ENSEMBLE: &str = "server.1=10.0.0.1:2888:3888:participant\n\
                        server.2=10.0.0.2:2888:3888:participant\n\
                        server.3=10.0.0.3:2888:3888:participant\n\
                        version=0";

/// What would be the firmware.
fn elect() -> Option<ServerId> {
    let membership = Membership::parse(ENSEMBLE).ok()?;
    let peer = |id| Peer::new(Config::new(ServerId(id), membership.clone()), Durable::default());
    let mut peers = Vec::new();
    for id in 1..=3 {
        peers.push(peer(id).ok()?);
    }
    let mut now = Instant::ORIGIN;
    let mut queue: VecDeque<(usize, Event)> =
        (0..peers.len()).map(|at| (at, Event::Tick)).collect();
    // Both ends of every link, by number: who is there, and the number of the other end.
    let mut ends: Vec<(usize, u64)> = Vec::new();
    let mut outputs = Vec::new();
    for _ in 0..10_000 {
        let Some((at, event)) = queue.pop_front() else {
            if peers.iter().all(|peer| peer.status().serving) {
                break;
            }
            let (due, next) = earliest(&peers)?;
            now = now.max(due);
            queue.push_back((next, Event::Tick));
            continue;
        };
        peers[at].step_into(Input { at: now, event }, &mut outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Dial { plane, peer, .. } => {
                    let other = usize::try_from(peer.0 - 1).ok()?;
                    let (near, far) = (ends.len() as u64, ends.len() as u64 + 1);
                    ends.extend([(at, far), (other, near)]);
                    let us = ServerId(at as i64 + 1);
                    queue.push_back((at, up(near, plane, true, Some(peer))));
                    let introduced = (plane == Plane::Election).then_some(us);
                    queue.push_back((other, up(far, plane, false, introduced)));
                }
                Output::Send { link, message } => {
                    let (_, far) = *ends.get(usize::try_from(link.0).ok()?)?;
                    let (other, _) = *ends.get(usize::try_from(far).ok()?)?;
                    let message = through_the_codec(&message)?;
                    queue.push_back((other, Event::Received { link: LinkId(far), message }));
                }
                Output::Persist { ticket, .. } => queue.push_back((at, Event::Persisted(ticket))),
                _ => {}
            }
        }
    }
    peers.first()?.status().leader
}

fn earliest(peers: &[Peer]) -> Option<(Instant, usize)> {
    let due = |(at, peer): (usize, &Peer)| peer.deadline().map(|(due, _)| (due, at));
    peers.iter().enumerate().filter_map(due).min()
}

fn up(link: u64, plane: Plane, dialled: bool, peer: Option<ServerId>) -> Event {
    let link = LinkId(link);
    Event::LinkUp(LinkUp { link, plane, dialled, peer, advertised: None, remote: None })
}

fn through_the_codec(message: &Message) -> Option<Message> {
    let mut bytes = BytesMut::new();
    match message {
        Message::Notification(notification) => {
            wire::encode_notification(notification, &mut bytes);
            wire::take_notification(&mut bytes).ok()?.map(Message::Notification)
        }
        Message::Packet(packet) => {
            wire::encode_packet(packet, &mut bytes);
            wire::decode_packet(&mut bytes, wire::MAX_DATA).ok()?.map(Message::Packet)
        }
        Message::Generation(message) => {
            wire::encode_generation(message, &mut bytes);
            wire::take_generation(&mut bytes).ok()?.map(Message::Generation)
        }
        Message::Probe(probe) => {
            wire::encode_probe(probe, &mut bytes);
            wire::take_probe(&mut bytes).map(Message::Probe)
        }
    }
}

/// Where a linker that is told nothing begins.
// SAFETY: nothing else in the program has this name.
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    black_box(elect());
    stop()
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    stop()
}

fn stop() -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Hands out a fixed arena from one end to the other and takes nothing back.
struct Arena {
    bytes: UnsafeCell<[u8; ARENA_BYTES]>,
    used: AtomicUsize,
}

const ARENA_BYTES: usize = 64 * 1024;

#[global_allocator]
static ARENA: Arena = Arena { bytes: UnsafeCell::new([0; ARENA_BYTES]), used: AtomicUsize::new(0) };

// SAFETY: every byte of the arena is handed out at most once, so no two callers ever hold the same.
unsafe impl Sync for Arena {}

// SAFETY: a block lies inside the arena, is aligned as asked, overlaps no other and stays valid for
// ever; nothing here unwinds.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.bytes.get().cast::<u8>();
        let place = |used: usize| {
            let free = (start as usize).checked_add(used)?;
            let begin = free.checked_next_multiple_of(layout.align())? - start as usize;
            let end = begin.checked_add(layout.size())?;
            (end <= ARENA_BYTES).then_some((begin, end))
        };
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            place(used).map(|(_, end)| end)
        });
        match taken.ok().and_then(place) {
            // SAFETY: `begin` is within the arena, as `place` has checked.
            Some((begin, _)) => unsafe { start.add(begin) },
            None => core::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

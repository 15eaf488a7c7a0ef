//! The connections that have not introduced themselves yet: to the election port, and with TLS to the quorum port, too.
//!
//! No more than [`PENDING_MAX`] wait at once: when they are more, the oldest of the host that has most makes room. So
//! neither one peer that stays silent nor a thousand keep the others waiting (ZOOKEEPER-3320, -2186). A handshake of TLS costs
//! more than silence: of those that may have one there are fewer, and fewer of one host.
//!
//! Half of the places are kept for addresses at which members are: strangers, however many, press only on each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_channel::{Receiver, Sender, bounded};

use crate::lock::locked;

/// The connections that have not introduced themselves yet, oldest first.
#[derive(Debug)]
pub(crate) struct Handshakes {
    queue: Mutex<Queue>,
    /// How many there may be.
    most: usize,
    /// How many of one host, if fewer.
    of_one: Option<usize>,
}

impl Default for Handshakes {
    fn default() -> Self {
        Self::new(false)
    }
}

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    from: IpAddr,
    /// Whether a member is there.
    member: bool,
    _staying: Sender<Infallible>,
}

impl Queue {
    /// The oldest of a host that has as many as one may have.
    fn oldest_of(&self, from: IpAddr, most: usize) -> Option<usize> {
        let mut of_it = self.waiting.iter().enumerate().filter(|(_, w)| w.from == from);
        let oldest = of_it.next()?.0;
        (of_it.count() + 1 >= most).then_some(oldest)
    }

    /// Which has to leave for one that comes from a member's address or another, where so many may be: none if there is
    /// room, else the oldest of the host that has most; of the strangers, if there are any.
    fn loser(&self, member: bool, most: usize) -> Option<usize> {
        let strangers = self.waiting.iter().filter(|waiting| !waiting.member).count();
        let full = self.waiting.len() >= most;
        if !full && (member || strangers < most / 2) {
            return None;
        }
        let mut hosts = BTreeMap::<IpAddr, (usize, usize)>::new();
        let of_strangers = self.waiting.iter().enumerate();
        for (at, waiting) in of_strangers.filter(|(_, w)| strangers == 0 || !w.member) {
            hosts.entry(waiting.from).or_insert((0, at)).0 += 1;
        }
        let (_, oldest) = hosts.into_values().max_by_key(|(count, at)| (*count, Reverse(*at)))?;
        Some(oldest)
    }
}

/// A place among the pending ones; dropping it leaves.
#[derive(Debug)]
pub(super) struct HandshakePlace {
    pub(super) number: u64,
    pub(super) evicted: bool,
    pub(super) handshakes: Arc<Handshakes>,
}

impl Handshakes {
    /// `secure`: each begins with a handshake of TLS.
    pub(crate) fn new(secure: bool) -> Self {
        let queue = Mutex::default();
        match secure {
            false => Self { queue, most: PENDING_MAX, of_one: None },
            true => Self { queue, most: SECURE_PENDING_MAX, of_one: Some(SECURE_OF_ONE_MAX) },
        }
    }

    /// Of clients, which have begun theirs. How many connections one host may have is bounded without that, and many that
    /// come back at once are no attack.
    #[cfg(feature = "tls")]
    pub(crate) fn of_clients() -> Self {
        Self { queue: Mutex::default(), most: CLIENTS_MAX, of_one: None }
    }

    /// Takes a place, that of another connection if all are taken that there are for it. The channel closes when it has to be left.
    pub(super) fn enter(
        self: &Arc<Self>,
        from: IpAddr,
        member: bool,
    ) -> (HandshakePlace, Receiver<Infallible>) {
        let (staying, given_up) = bounded(1);
        let mut queue = locked(&self.queue);
        let greedy = self.of_one.and_then(|most| queue.oldest_of(from, most));
        let loser = match greedy {
            None => queue.loser(member, self.most),
            greedy => greedy,
        };
        let evicted = loser.is_some_and(|loser| queue.waiting.remove(loser).is_some());
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back(Waiting { number, from, member, _staying: staying });
        drop(queue);
        (HandshakePlace { number, evicted, handshakes: Arc::clone(self) }, given_up)
    }
}

impl Drop for HandshakePlace {
    fn drop(&mut self) {
        let mut queue = locked(&self.handshakes.queue);
        if let Ok(at) = queue.waiting.binary_search_by_key(&self.number, |waiting| waiting.number) {
            queue.waiting.remove(at);
        }
    }
}

/// How many connections to the election port may be silent at once.
pub(super) const PENDING_MAX: usize = 128;
/// How many connections may be at their handshakes of TLS or silent at once.
const SECURE_PENDING_MAX: usize = 64;
/// How many of them one host may have.
const SECURE_OF_ONE_MAX: usize = 8;
/// How many clients may be at their handshakes at once: what ZooKeeper advises for
/// `netty.server.outstandingHandshake.limit`.
#[cfg(feature = "tls")]
const CLIENTS_MAX: usize = 250;

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(number: usize) -> IpAddr {
        IpAddr::from((0x0a01_0000 + u32::try_from(number).unwrap()).to_be_bytes())
    }

    #[test]
    fn the_oldest_silent_connection_makes_room() {
        let pending = Arc::new(Handshakes::default());
        let (noisy, quiet) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let honest = pending.enter(quiet, false);
        let half = PENDING_MAX / 2;
        let mut places: Vec<_> = (1..half).map(|_| pending.enter(noisy, false)).collect();
        assert!(places.iter().all(|(place, _)| !place.evicted));
        let (last, _) = pending.enter(noisy, false);
        assert!(last.evicted);
        assert!(places[0].1.is_closed() && !places[1].1.is_closed());
        assert!(!honest.1.is_closed(), "a host that has one keeps it");
        places.clear();
        assert_eq!(locked(&pending.queue).waiting.len(), 2);
    }

    #[test]
    fn one_host_has_few_places_for_handshakes_and_gives_up_its_own() {
        let pending = Arc::new(Handshakes::new(true));
        let (noisy, quiet) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let honest = pending.enter(quiet, false);
        let enter = || pending.enter(noisy, false);
        let mut places: Vec<_> = (0..SECURE_OF_ONE_MAX).map(|_| enter()).collect();
        assert!(places.iter().all(|(place, _)| !place.evicted));
        for oldest in 0..3 {
            let next = enter();
            assert!(next.0.evicted && places[oldest].1.is_closed());
            places.push(next);
        }
        assert!(!honest.1.is_closed());
        let many: Vec<_> = (0..100).map(|n| pending.enter(stranger(n), n % 2 == 0)).collect();
        assert_eq!(locked(&pending.queue).waiting.len(), SECURE_PENDING_MAX);
        drop(many);
    }

    /// Each from a host of its own, so that none is greedy.
    #[test]
    fn a_thousand_strangers_take_no_place_of_a_member() {
        for secure in [false, true] {
            let pending = Arc::new(Handshakes::new(secure));
            let before: Vec<_> = (0..1000).map(|n| pending.enter(stranger(n), false)).collect();
            let member = pending.enter(IpAddr::from([10, 0, 0, 1]), true);
            assert!(!member.0.evicted, "there is room");
            let behind: Vec<_> = (0..1000).map(|n| pending.enter(stranger(n), false)).collect();
            assert!(!member.1.is_closed());
            let most = if secure { SECURE_PENDING_MAX } else { PENDING_MAX };
            assert_eq!(locked(&pending.queue).waiting.len(), most / 2 + 1);
            drop((before, behind));
        }
    }

    #[test]
    fn members_take_the_places_of_strangers_before_those_of_each_other() {
        let pending = Arc::new(Handshakes::new(true));
        let strangers: Vec<_> = (0..8).map(|n| pending.enter(stranger(n), false)).collect();
        let members: Vec<_> =
            (0..SECURE_PENDING_MAX).map(|n| pending.enter(stranger(1_000 + n), true)).collect();
        assert!(strangers.iter().all(|(_, given_up)| given_up.is_closed()));
        assert!(members.iter().all(|(_, given_up)| !given_up.is_closed()));
        let next = pending.enter(stranger(5_000), true);
        assert!(next.0.evicted && members[0].1.is_closed());
        let last = pending.enter(stranger(6_000), false);
        assert!(last.0.evicted && members[1].1.is_closed(), "others have their half");
    }
}

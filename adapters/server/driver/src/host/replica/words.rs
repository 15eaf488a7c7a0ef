//! Words of operators, and their looks, which wait for no order but the one that is being carried out.
//!
//! They are answered by the service as soon as it is at home. If it does not come home for some time, since the application
//! is slow, they are answered with what the service has left for that, and it hears only that the client has gone.

use std::collections::VecDeque;
use std::time::{self, Duration};

use quorate_application::Application;
use quorate_application::clients::{AtHand, ClientId, Clients, Close, Event, Frame, Output};
use quorate_core::time::Instant;
use quorate_leadership::boot_time;

use crate::host::replica::{Replica, ReplicaOutput};
use crate::host::service::LookClosure;
use crate::host::worker::{Order, Worker};
use crate::turns::Held;

/// Words that wait, and what is at hand.
#[derive(Default)]
pub(super) struct Words {
    waiting: VecDeque<Waiting>,
    at_hand: AtHand,
    looked: Option<time::Instant>,
    /// The service has been told since that this server serves no longer.
    retired: bool,
    pub(super) now: Instant,
}

struct Waiting {
    client: ClientId,
    word: [u8; 4],
    since: Instant,
}

impl Words {
    /// The service is about to leave, with orders among which there is, or is not, its retirement.
    pub(super) fn look<A: Application>(&mut self, worker: &mut Worker<A>, retires: bool) {
        if !A::Clients::SERVES || self.looked.is_some_and(|at| boot_time::since(at) < LOOK_EVERY) {
            return;
        }
        self.at_hand = worker.service.at_hand(&mut worker.application);
        (self.looked, self.retired) = (Some(boot_time::now()), retires);
    }

    /// The service is told something.
    pub(super) fn told(&mut self, event: &Event) {
        self.retired |= matches!(event, Event::Retired);
    }

    fn answer(&self, word: [u8; 4]) -> Option<bytes::Bytes> {
        let AtHand { now, retired } = &self.at_hand;
        let answers = if self.retired { retired } else { now };
        answers.iter().find(|(known, _)| *known == word).map(|(_, answer)| answer.clone())
    }
}

impl<A: Application> Replica<A> {
    /// A client has sent a word.
    pub(crate) fn tell_word(&mut self, client: ClientId, word: [u8; 4]) {
        let since = self.words.now;
        self.words.waiting.push_back(Waiting { client, word, since });
    }

    /// An operator wants to look at the service and the application: between two orders, as soon as they are at home.
    pub(crate) fn look(&mut self, look: LookClosure<A>) {
        self.looks.push(look);
    }

    pub(super) fn let_look(&mut self) {
        let Some(worker) = &mut self.worker else { return };
        for look in self.looks.drain(..) {
            worker.service.look(look, &mut worker.application);
        }
    }

    /// When one is to be answered without the service.
    pub(crate) fn words_due(&self) -> Option<Instant> {
        let words = &self.words;
        let mut due = words.waiting.iter().filter(|waiting| words.answer(waiting.word).is_some());
        due.next().filter(|_| self.worker.is_none()).map(|first| first.since + WAIT)
    }

    /// Answers those that can be.
    pub(super) fn answer_words(&mut self, then: &mut ReplicaOutput) {
        for waiting in std::mem::take(&mut self.words.waiting) {
            let Waiting { client, word, since } = waiting;
            if self.worker.is_some() {
                self.step_with_word(client, word, then);
                continue;
            }
            let late = since + WAIT <= self.words.now;
            match self.words.answer(word).filter(|_| late) {
                Some(bytes) => {
                    then.clients.push(Output::Send { client, bytes });
                    then.clients.push(Output::Close { client, how: Close::AfterWriting });
                    self.tell_service(Event::Disconnected(client));
                }
                None => self.words.waiting.push_back(waiting),
            }
        }
    }

    /// The service is at home: it hears that the client has come, if it has not, and what it says.
    fn step_with_word(&mut self, client: ClientId, word: [u8; 4], then: &mut ReplicaOutput) {
        let arrival = self.orders.iter().position(|order| order.is_arrival(client));
        let arrival = arrival.and_then(|at| self.orders.remove(at));
        let frames = vec![Frame::Word(word)];
        self.told_service += 1;
        let said = Order::Client(Event::Received { client, frames }, Held::default());
        let Some(worker) = &mut self.worker else { return };
        let mut done = std::mem::take(&mut self.done);
        let first = worker.service.look_at_clock();
        for order in arrival.into_iter().chain([said]) {
            worker.perform(order, (first, Duration::ZERO), &mut done);
        }
        self.heard = worker.heard;
        self.deadline = worker.service.deadline();
        self.conclude(&mut done, then);
        self.done = done;
    }
}

/// How long a word waits for the service.
const WAIT: Duration = Duration::from_millis(200);
/// How often it is asked for what is at hand, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

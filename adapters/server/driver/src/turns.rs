//! A number of bytes of memory, of which who needs some waits for a turn, in order.
//!
//! Who waits takes nothing, and who has its turn has all that it needs: no task holds a part and waits for the rest.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use async_channel::{Receiver, Sender, bounded};

use crate::lock::locked;
use crate::permits::Permit;

/// So many bytes may be held at a time.
#[derive(Debug)]
pub(crate) struct Turns {
    most: usize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    held: usize,
    waiting: VecDeque<Waiting>,
    next: u64,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    bytes: usize,
    /// Its turn has come when this goes.
    _wake: Sender<Infallible>,
}

/// What an event holds until the service has heard of it: mostly nothing, so that events stay small.
#[derive(Debug, Default)]
pub(crate) struct Held {
    _all: Option<Box<(Option<Permit>, Option<Turn>)>>,
}

impl Held {
    /// A permit for what is long, and the turn of a long frame.
    pub(crate) fn new(permit: Option<Permit>, turn: Option<Turn>) -> Self {
        let holds = permit.is_some() || turn.is_some();
        Self { _all: holds.then(|| Box::new((permit, turn))) }
    }
}

/// The right to hold so many bytes. Dropping it lets the next ones in.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    number: u64,
    bytes: usize,
}

impl Turns {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, queue: Mutex::default() })
    }

    /// A turn with so many bytes, or all that there are; and what is closed when it comes, unless it has. Dropped before, it
    /// is given back, whether it has come or not.
    pub(crate) fn queue_up(self: &Arc<Self>, bytes: usize) -> (Turn, Option<Receiver<Infallible>>) {
        let bytes = bytes.min(self.most);
        let mut queue = locked(&self.queue);
        let number = queue.next;
        queue.next += 1;
        let turn = Turn { turns: Arc::clone(self), number, bytes };
        if queue.waiting.is_empty() && queue.held + bytes <= self.most {
            queue.held += bytes;
            return (turn, None);
        }
        let (wake, come) = bounded(1);
        queue.waiting.push_back(Waiting { number, bytes, _wake: wake });
        (turn, Some(come))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut queue = locked(&self.turns.queue);
        match queue.waiting.iter().position(|waiting| waiting.number == self.number) {
            Some(at) => drop(queue.waiting.remove(at)),
            None => queue.held -= self.bytes,
        }
        while let Some(next) = queue.waiting.front() {
            if queue.held + next.bytes > self.turns.most {
                break;
            }
            queue.held += next.bytes;
            queue.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_lite::future::{block_on, poll_once};

    use super::*;
    use crate::task_group::closed;

    async fn take(turns: &Arc<Turns>, bytes: usize) -> (Turn, bool) {
        let (turn, come) = turns.queue_up(bytes);
        let waited = come.is_some();
        if let Some(come) = come {
            closed(&come).await;
        }
        (turn, waited)
    }

    #[test]
    fn turns_go_in_order_and_what_is_given_up_is_given_back() {
        let turns = Turns::new(10);
        block_on(async {
            let (first, waited) = take(&turns, 6).await;
            assert!(!waited);
            let mut second = pin!(take(&turns, 6));
            let mut third = Box::pin(take(&turns, 100));
            let mut fourth = pin!(take(&turns, 1));
            assert!(poll_once(second.as_mut()).await.is_none());
            assert!(poll_once(third.as_mut()).await.is_none());
            assert!(poll_once(fourth.as_mut()).await.is_none(), "it would fit, and is not first");
            drop(first);
            let (second, waited) = poll_once(second.as_mut()).await.expect("its turn");
            assert!(waited);
            assert!(poll_once(fourth.as_mut()).await.is_none());
            drop(third);
            let (fourth, _) = poll_once(fourth.as_mut()).await.expect("who was before has gone");
            drop(second);
            // Its turn has come, and it has gone without noticing.
            let mut all = Box::pin(take(&turns, 100));
            assert!(poll_once(all.as_mut()).await.is_none());
            drop(fourth);
            drop(all);
            assert!(!take(&turns, 10).await.1);
        });
        assert_eq!(locked(&turns.queue).held, 0);
    }
}

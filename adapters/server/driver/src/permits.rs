//! A number of places that are taken and given back: how many connections may be under way at once.
//!
//! On a channel, and so on any runtime, and in the order in which they came.

use async_channel::{Receiver, Sender, bounded};

/// So many may do something at a time; the others wait, in order.
#[derive(Debug)]
pub(crate) struct Permits {
    taken: Sender<()>,
    given_back: Receiver<()>,
}

/// Dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Permit {
    given_back: Receiver<()>,
}

impl Permits {
    pub(crate) fn new(count: usize) -> Self {
        let (taken, given_back) = bounded(count.max(1));
        Self { taken, given_back }
    }

    pub(crate) async fn take(&self) -> Permit {
        // Cannot be closed: the other end is here.
        let _ = self.taken.send(()).await;
        Permit { given_back: self.given_back.clone() }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let _ = self.given_back.try_recv();
    }
}

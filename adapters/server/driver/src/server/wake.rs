//! Waking the loop.

use async_channel::Sender;

use crate::net::events::LoopEvent;

/// Wakes the loop, which looks at its inboxes and the leadership gate before it waits again.
pub(super) fn wake(events: &Sender<LoopEvent>) -> impl Fn() + Send + Sync + 'static {
    let events = events.clone();
    // Full: the loop is awake.
    move || drop(events.try_send(LoopEvent::Wake))
}

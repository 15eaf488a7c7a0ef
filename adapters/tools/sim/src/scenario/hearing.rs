//! Collects what is told of a story from the record, before the record forgets it.

use crate::record::{Happening, Moment, Record, Teller};

/// Follows a record, which keeps only so much.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// How much of the record was heard.
    heard: usize,
    teller: Teller,
    new: Vec<Moment>,
}

impl Hearing {
    /// Hears what is new.
    pub(super) fn hear(&mut self, record: &Record) {
        for moment in record.after(self.heard).flat_map(|entry| self.teller.tell(entry)) {
            if !self.new.last_mut().is_some_and(|last| takes_in(last, &moment)) {
                self.new.push(moment);
            }
        }
        self.heard = record.count();
    }

    /// What was heard since this was asked last.
    pub(super) fn take(&mut self) -> Vec<Moment> {
        std::mem::take(&mut self.new)
    }
}

fn takes_in(last: &mut Moment, next: &Moment) -> bool {
    let same = (last.at, last.server) == (next.at, next.server);
    match (&mut last.what, &next.what) {
        (Happening::Way { to, open }, Happening::Way { to: more, open: too })
            if same && open == too =>
        {
            to.extend(more);
            true
        }
        // What is delivered in one go is told by its last.
        (Happening::Deliver(last), Happening::Deliver(through)) if same => {
            *last = *through;
            true
        }
        _ => false,
    }
}

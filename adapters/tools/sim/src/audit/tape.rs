//! A tape: the inputs and outputs that recorders of several servers noted, in one order.

use std::sync::{Arc, Mutex, PoisonError};

use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::ServerId;
use quorate_core::input::Input;
use quorate_core::output::Output;
use quorate_core::recorder::Recorder;

/// Something that was recorded of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Of which.
    pub server: ServerId,
    /// What.
    pub what: What,
}

/// What was recorded of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are steps")]
pub enum What {
    /// It starts.
    Start {
        /// Told this.
        config: Box<Config>,
        /// With this on its disk.
        durable: Box<Durable>,
    },
    /// It has heard something and said what is to be done; nothing of that was done before this was recorded.
    Step {
        /// What it heard.
        input: Input,
        /// What it said.
        outputs: Vec<Output>,
    },
}

/// What the servers of one process were told and did, in an order that could have been: whatever one of
/// them did comes before everything that came of it elsewhere. Clones are the same tape.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    entries: Arc<Mutex<Vec<Entry>>>,
}

impl Tape {
    /// A recorder of one server, for one of its lives or for all.
    pub fn recorder(&self, server: ServerId) -> Box<dyn Recorder> {
        Box::new(Head { tape: self.clone(), server, heard: None })
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.with(|entries| entries.len())
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was recorded so far; the tape is empty then.
    pub fn take(&self) -> Vec<Entry> {
        self.with(std::mem::take)
    }

    fn note(&self, server: ServerId, what: What) {
        self.with(|entries| entries.push(Entry { server, what }));
    }

    fn with<T>(&self, use_them: impl FnOnce(&mut Vec<Entry>) -> T) -> T {
        // A thread that has panicked with it has left it whole: an entry is there or not.
        use_them(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes to a tape.
#[derive(Debug)]
struct Head {
    tape: Tape,
    server: ServerId,
    /// What it has not answered yet.
    heard: Option<Input>,
}

impl Recorder for Head {
    fn starts(&mut self, config: &Config, durable: &Durable) {
        let (config, durable) = (Box::new(config.clone()), Box::new(durable.clone()));
        self.tape.note(self.server, What::Start { config, durable });
    }

    fn hears(&mut self, input: &Input) {
        self.heard = Some(input.clone());
    }

    fn does(&mut self, outputs: &[Output]) {
        if let Some(input) = self.heard.take() {
            self.tape.note(self.server, What::Step { input, outputs: outputs.to_vec() });
        }
    }
}

//! Topics of moments, by which a story chooses what is shown.

/// What a moment is about, to choose how much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// Starts, crashes, cuts: told always.
    Fate,
    /// States, votes and rounds; who leads through a store.
    Votes,
    /// Phases, epochs, how learners are brought up; sessions with a store, and what is in it.
    Phases,
    /// Messages, but heartbeats; calls on a store, and answers.
    Messages,
    /// What becomes durable.
    Disk,
    /// What the application gets.
    Deliveries,
    /// What is said to those who asked for something.
    Clients,
    /// Dials, links, heartbeats, timers.
    Rest,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Fate,
        Self::Votes,
        Self::Phases,
        Self::Messages,
        Self::Disk,
        Self::Deliveries,
        Self::Clients,
        Self::Rest,
    ];
}

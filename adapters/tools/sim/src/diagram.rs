//! A story as a space-time diagram: an SVG with a line for each server and time running down.
//!
//! ```text
//!         1           2           3
//!   0.0   ┆ votes 1   ┆ votes 2   ┆ votes 3
//!         ┆╲          ┆           ┆
//!         ┆ ╲ votes 1 ┆           ┆
//!   4.0   ┆  ╲───────►┆ …         ┆
//! ```
//!
//! Time is not to scale, since an election takes milliseconds and a silence seconds: each instant at which
//! something happened gets the room that its texts need, and longer gaps between them are larger. Arrows
//! are messages; one that was lost ends in a cross. The colour of a line is its server's state, a square on it
//! is a write that is durable (what became so stands beside it). A browser shows the whole of a text that was cut
//! when it is pointed at. The file needs nothing beside itself, has its own paper, and is drawn by every viewer: no
//! style sheet, nothing but attributes.

mod layout;
mod style;

use std::collections::BTreeSet;
use std::fmt;

use quorate_core::id::ServerId;

use crate::record::{Moment, Topic};
use layout::Layout;

/// A space-time diagram; its `Display` is the SVG.
#[derive(Clone, Debug)]
pub struct Diagram {
    title: String,
    servers: Vec<ServerId>,
    moments: Vec<Moment>,
}

impl Diagram {
    /// What is drawn if nothing else is said.
    pub const TOPICS: [Topic; 5] =
        [Topic::Fate, Topic::Votes, Topic::Phases, Topic::Messages, Topic::Disk];

    /// A diagram for these servers, from left to right, of the moments about these topics.
    pub fn new<'a>(
        title: &str,
        servers: impl IntoIterator<Item = ServerId>,
        moments: impl IntoIterator<Item = &'a Moment>,
        topics: &BTreeSet<Topic>,
    ) -> Self {
        let about = |moment: &&Moment| topics.contains(&moment.topic());
        Self {
            title: title.to_owned(),
            servers: servers.into_iter().collect(),
            moments: moments.into_iter().filter(about).cloned().collect(),
        }
    }
}

impl fmt::Display for Diagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Layout::of(&self.servers, &self.moments).draw(&self.title, f)
    }
}

/// A text as XML may hold it.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            // XML has no way to hold the others.
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use quorate_core::vote::ServerState;

    use super::style::{ARROW, CRASH, HEAD, LOST, PAPER, lifeline};
    use super::*;
    use crate::ensemble::Ensemble;
    use crate::faults::CrashKind;
    use crate::world::{World, WorldConfig};
    use std::time::Duration;

    fn drawn() -> String {
        let mut world = World::new(1, WorldConfig::new(Ensemble::majority(3)));
        world.start_all([1, 2, 3]);
        world.run_for(Duration::from_secs(1)).unwrap();
        world.crash(3, CrashKind::Power).unwrap();
        world.propose(1, 1).unwrap();
        world.run_for(Duration::from_secs(20)).unwrap();
        let topics = Diagram::TOPICS.into_iter().collect();
        let moments = world.record().moments();
        Diagram::new("a <b> & \"c\"", world.ensemble().ids(), &moments, &topics).to_string()
    }

    #[test]
    fn tags_are_balanced_and_texts_are_escaped() {
        let svg = drawn();
        assert!(svg.contains("a &lt;b&gt; &amp; &quot;c&quot;"));
        let mut open: Vec<&str> = Vec::new();
        for tag in svg.split('<').skip(1) {
            let (tag, text) = tag.split_once('>').expect("a tag ends");
            assert!(!text.contains('>'), "{text}");
            let name = tag.split([' ', '/']).next().unwrap();
            if let Some(closed) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(closed));
            } else if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn states_writes_and_lost_messages_are_drawn() {
        let svg = drawn();
        let states =
            [ServerState::Looking, ServerState::Following, ServerState::Leading].map(lifeline);
        // The legend has each state and a write once.
        for look in states.into_iter().chain(["height=\"5\""]) {
            assert!(svg.matches(look).count() > 1, "nothing is {look}");
        }
        for look in [ARROW, HEAD, LOST, CRASH, PAPER] {
            assert!(svg.contains(look), "nothing is {look}");
        }
    }

    #[test]
    fn nothing_is_left_to_a_style_sheet() {
        let svg = drawn();
        for browsers_only in ["<style", "class=", "style=", "var(", "paint-order"] {
            assert!(!svg.contains(browsers_only), "{browsers_only}");
        }
    }
}

//! What a rule is.

use std::fmt;

use crate::facts::Facts;
use crate::finding::{Found, Level};

/// A rule: when it fires, why that matters, and what to do. All of them are [`RULES`](crate::RULES).
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name, which stays.
    pub id: &'static str,
    /// The levels that its findings may have, the worst first.
    pub levels: &'static [Level],
    /// When it fires, in a line.
    pub when: &'static str,
    /// Why it matters, in a sentence.
    pub why: &'static str,
    /// What to do, in general.
    pub todo: &'static str,
    /// Where it is discussed.
    pub sources: &'static [&'static str],
    /// Rules whose findings come of this one.
    pub explains: &'static [&'static str],
    pub(crate) check: fn(&Facts) -> Vec<Found>,
}

/// The long text.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels: Vec<_> = self.levels.iter().map(ToString::to_string).collect();
        writeln!(f, "{} ({})\n", self.id, levels.join(", "))?;
        writeln!(f, "fires when  {}", self.when)?;
        writeln!(f, "why         {}", self.why)?;
        writeln!(f, "what to do  {}", self.todo)?;
        if !self.explains.is_empty() {
            writeln!(f, "explains    {}", self.explains.join(", "))?;
        }
        if !self.sources.is_empty() {
            writeln!(f, "see         {}", self.sources.join(", "))?;
        }
        Ok(())
    }
}

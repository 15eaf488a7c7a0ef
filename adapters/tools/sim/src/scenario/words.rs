//! Reads the words of a command one by one: ids, zxids, durations, keywords.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use quorate_core::generation_message::Generation;
use quorate_core::id::ServerId;
use quorate_core::zxid::{Counter, Epoch, Zxid};

use super::Problem;
use crate::ensemble::Ensemble;

/// The longest that anything lasts in a story, and the story itself. No story waits for what comes after a year, and
/// times, which are counted in nanoseconds, stay a hundred times away from their end.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The words that are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    left: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { left: text.trim() }
    }

    /// The next word, left where it is.
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.left.split_whitespace().next()
    }

    /// Takes the next word.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.left = self.left[word.len()..].trim_start();
        Some(word)
    }

    /// What is wrong, if something else was expected here.
    pub(super) fn wrong(&self, expected: impl Into<String>) -> Problem {
        let found =
            self.peek().map_or("the end of the line".to_owned(), |word| format!("`{word}`"));
        Problem::Syntax { expected: expected.into(), found }
    }

    /// Takes this word, if it is the next.
    pub(super) fn has(&mut self, word: &str) -> bool {
        let is = self.peek() == Some(word);
        if is {
            self.next();
        }
        is
    }

    /// This word, and no other.
    pub(super) fn word(&mut self, word: &str) -> Result<(), Problem> {
        if self.has(word) { Ok(()) } else { Err(self.wrong(format!("`{word}`"))) }
    }

    /// Whatever the next word becomes.
    pub(super) fn take<T>(
        &mut self,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Problem> {
        let value = self.peek().and_then(read).ok_or_else(|| self.wrong(expected))?;
        self.next();
        Ok(value)
    }

    /// One of these words.
    pub(super) fn one_of<T: Copy>(&mut self, known: &[(&str, T)]) -> Result<T, Problem> {
        let names: Vec<_> = known.iter().map(|(name, _)| format!("`{name}`")).collect();
        let find = |word: &str| known.iter().find(|(name, _)| *name == word).map(|(_, one)| *one);
        self.take(&names.join(" or "), find)
    }

    pub(super) fn number<T: FromStr>(&mut self, what: &str) -> Result<T, Problem> {
        self.take(what, |word| word.parse().ok())
    }

    /// What was read since `start`, as it is written.
    pub(super) fn since(&self, start: &Self) -> &'a str {
        start.left[..start.left.len() - self.left.len()].trim_end()
    }

    /// A number of something: at least this one.
    pub(super) fn at_least<T>(&mut self, least: T, of: &str) -> Result<T, Problem>
    where
        T: FromStr + PartialOrd + Copy + Display,
    {
        let number = |word: &str| word.parse().ok().filter(|number| *number >= least);
        self.take(&format!("how many {of}, at least {least}"), number)
    }

    /// A server.
    pub(super) fn id(&mut self) -> Result<i64, Problem> {
        self.take("a server's number, 1 to 199", server)
    }

    /// Servers, at least one, as many as there are.
    pub(super) fn ids(&mut self) -> Result<Vec<i64>, Problem> {
        let mut ids = vec![self.id()?];
        ids.extend(self.maybe_ids());
        Ok(ids)
    }

    /// Servers, perhaps none.
    pub(super) fn maybe_ids(&mut self) -> Vec<i64> {
        let mut ids = Vec::new();
        while let Some(id) = self.peek().and_then(server) {
            ids.push(id);
            self.next();
        }
        ids
    }

    /// `1.5`: counter 5 of epoch 1.
    pub(super) fn zxid(&mut self) -> Result<Zxid, Problem> {
        self.take("a zxid, say `1.5`", zxid)
    }

    /// Zxids, perhaps none.
    pub(super) fn zxids(&mut self) -> Vec<Zxid> {
        let mut all = Vec::new();
        while let Some(zxid) = self.peek().and_then(zxid) {
            all.push(zxid);
            self.next();
        }
        all
    }

    /// One of those that are epochs at all.
    pub(super) fn epoch(&mut self) -> Result<Epoch, Problem> {
        let epoch = |word: &str| word.parse().ok().map(Epoch).filter(|epoch| epoch.is_valid());
        self.take(&format!("an epoch, 0 to {}", Epoch::MAX), epoch)
    }

    /// One in which a server may be.
    pub(super) fn generation(&mut self) -> Result<Generation, Problem> {
        let valid = |generation: &Generation| generation.is_valid();
        let generation = |word: &str| word.parse().ok().map(Generation).filter(valid);
        self.take("a generation, 0 or more", generation)
    }

    /// `200ms`, `5s`.
    pub(super) fn duration(&mut self) -> Result<Duration, Problem> {
        self.take("a duration, say `200ms` or `5s`, at most a year", duration)
    }

    /// The same where what happens so often would else be all that happens.
    pub(super) fn period(&mut self, least: Duration) -> Result<Duration, Problem> {
        let expected = format!("a duration of {least:?} to a year");
        self.take(&expected, |word| duration(word).filter(|duration| *duration >= least))
    }

    /// Nothing more.
    pub(super) fn end(&self) -> Result<(), Problem> {
        if self.left.is_empty() { Ok(()) } else { Err(self.wrong("the end of the line")) }
    }
}

/// The ids above are those of non-members.
pub(super) fn server(word: &str) -> Option<i64> {
    word.parse().ok().filter(|id| *id >= 1 && !Ensemble::is_non_member(ServerId(*id)))
}

pub(super) fn zxid(word: &str) -> Option<Zxid> {
    let (epoch, counter) = word.split_once('.')?;
    let epoch = Epoch(epoch.parse().ok()?);
    epoch.is_valid().then_some(())?;
    Some(Zxid::new(epoch, Counter(counter.parse().ok()?)))
}

fn duration(word: &str) -> Option<Duration> {
    let at = word.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = (word[..at].parse().ok()?, &word[at..]);
    let duration = match unit {
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        _ => return None,
    };
    Some(duration).filter(|duration| *duration <= LONGEST)
}

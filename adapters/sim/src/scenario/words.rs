//! The words of a command, read one by one.

use std::time::Duration;

use quorate_core::zxid::{Counter, Epoch, Zxid};

use super::Problem;

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

    pub(super) fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, Problem> {
        self.take(what, |word| word.parse().ok())
    }

    /// A server.
    pub(super) fn id(&mut self) -> Result<i64, Problem> {
        self.take("a server's number, 1 to 255", server)
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

    /// `200ms`, `5s`.
    pub(super) fn duration(&mut self) -> Result<Duration, Problem> {
        self.take("a duration, say `200ms` or `5s`", duration)
    }

    /// Nothing more.
    pub(super) fn end(&self) -> Result<(), Problem> {
        if self.left.is_empty() { Ok(()) } else { Err(self.wrong("the end of the line")) }
    }
}

fn server(word: &str) -> Option<i64> {
    word.parse().ok().filter(|id| (1..=255).contains(id))
}

fn zxid(word: &str) -> Option<Zxid> {
    let (epoch, counter) = word.split_once('.')?;
    let epoch = Epoch(epoch.parse().ok()?);
    epoch.is_valid().then_some(())?;
    Some(Zxid::new(epoch, Counter(counter.parse().ok()?)))
}

fn duration(word: &str) -> Option<Duration> {
    let at = word.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = (word[..at].parse().ok()?, &word[at..]);
    match unit {
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

//! The words of a JAAS file, as Java's `StreamTokenizer` tells them apart with the settings of `ConfigFile`.

use alloc::string::String;
use core::iter::Peekable;
use core::str::Chars;

use zeroize::Zeroizing;

use crate::jaas::reason::{JaasError, JaasReason};

/// A word.
#[derive(Clone, Debug)]
pub(super) enum Word {
    /// A name or a value, in quotes or without.
    Text(Zeroizing<String>),
    /// `{`, `}`, `=`, `;`, and anything else that stands for nothing.
    Sign(char),
}

/// The words of a text, one ahead.
#[derive(Debug)]
pub(super) struct Words<'a> {
    rest: Peekable<Chars<'a>>,
    /// How long a text can be, so that none is moved while it is read: what grows leaves copies behind.
    most: usize,
    /// Of the next word.
    line: usize,
    /// Of what follows it.
    reached: usize,
    next: Option<Word>,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, JaasError> {
        let longest = text.lines().map(str::len).max().unwrap_or(0);
        let rest = text.chars().peekable();
        let mut words = Self { rest, most: longest, line: 1, reached: 1, next: None };
        words.advance()?;
        Ok(words)
    }

    /// The line of the next word.
    pub(super) const fn line(&self) -> usize {
        self.line
    }

    pub(super) const fn is_over(&self) -> bool {
        self.next.is_none()
    }

    pub(super) fn is_sign(&self, sign: char) -> bool {
        matches!(self.next, Some(Word::Sign(next)) if next == sign)
    }

    /// Takes a text.
    pub(super) fn text(&mut self, expected: &'static str) -> Result<Zeroizing<String>, JaasError> {
        let Some(Word::Text(text)) = self.next.take() else { return Err(self.expected(expected)) };
        self.advance()?;
        Ok(text)
    }

    /// Takes this sign.
    pub(super) fn sign(&mut self, sign: char, expected: &'static str) -> Result<(), JaasError> {
        if !self.is_sign(sign) {
            return Err(self.expected(expected));
        }
        self.advance()
    }

    const fn expected(&self, what: &'static str) -> JaasError {
        JaasError { line: self.line, reason: JaasReason::Expected(what) }
    }

    fn advance(&mut self) -> Result<(), JaasError> {
        self.pass_over();
        self.line = self.reached;
        self.next = match self.rest.next() {
            None => None,
            Some('"') => Some(Word::Text(self.quoted()?)),
            Some(first) if begins_word(first) => {
                let mut text = Zeroizing::new(String::with_capacity(self.most));
                text.push(first);
                while let Some(more) = self.rest.next_if(|next| continues_word(*next)) {
                    text.push(more);
                }
                Some(Word::Text(text))
            }
            Some(sign) => Some(Word::Sign(sign)),
        };
        Ok(())
    }

    /// Blanks and remarks.
    fn pass_over(&mut self) {
        while let Some(&next) = self.rest.peek() {
            match next {
                '\n' => self.reached += 1,
                ..=' ' => {}
                '/' => {
                    self.rest.next();
                    self.remark();
                    continue;
                }
                _ => return,
            }
            self.rest.next();
        }
    }

    /// Behind a slash: up to the end of the line, or between `/*` and `*/`.
    fn remark(&mut self) {
        if self.rest.next_if_eq(&'*').is_none() {
            while self.rest.next_if(|next| !matches!(next, '\n' | '\r')).is_some() {}
            return;
        }
        let mut star = false;
        for next in self.rest.by_ref() {
            match next {
                '/' if star => return,
                '\n' => self.reached += 1,
                _ => {}
            }
            star = next == '*';
        }
    }

    /// Behind a quote, up to the next one.
    fn quoted(&mut self) -> Result<Zeroizing<String>, JaasError> {
        let unended = JaasError { line: self.line, reason: JaasReason::Unended };
        let mut text = Zeroizing::new(String::with_capacity(self.most));
        loop {
            match self.rest.next() {
                Some('"') => return Ok(text),
                None | Some('\n' | '\r') => return Err(unended),
                Some('\\') => match self.escaped() {
                    Some(character) => text.push(character),
                    None => return Err(unended),
                },
                Some(character) => text.push(character),
            }
        }
    }

    /// Behind a backslash.
    fn escaped(&mut self) -> Option<char> {
        Some(match self.rest.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            first @ '0'..='7' => {
                // Up to three digits, and no more than a byte.
                let digits = if first <= '3' { 2 } else { 1 };
                let mut number = first.to_digit(8)?;
                for _ in 0..digits {
                    let Some(digit) = self.rest.next_if(|next| ('0'..='7').contains(next)) else {
                        break;
                    };
                    number = number * 8 + digit.to_digit(8)?;
                }
                char::from_u32(number)?
            }
            '\n' | '\r' => return None,
            character => character,
        })
    }
}

/// What begins with a digit, a dot or a minus is a number in Java, which no value may be.
fn begins_word(character: char) -> bool {
    character.is_ascii_alphabetic() || matches!(character, '$' | '_' | '*' | '\u{a0}'..)
}

fn continues_word(character: char) -> bool {
    begins_word(character) || character.is_ascii_digit() || matches!(character, '.' | '-')
}

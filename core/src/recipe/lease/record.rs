//! What a candidate writes into the key.

use alloc::format;
use core::str;
use core::time::Duration;

use bytes::Bytes;

/// What the key holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The number of a term that one candidate has, or tries to have: nobody else's, and never again. 0 in
    /// what was not written by a candidate of ours.
    pub holder: u128,
    /// Who that is.
    pub identity: Bytes,
    /// How long it may be silent. Others count with this, not with a duration of their own.
    pub duration: Duration,
    /// Of which version the key was when this term took it; 0 in the write that takes it.
    pub taken: u64,
    /// It was given up in good order: nobody has to wait.
    pub released: bool,
}

impl Record {
    /// One line that people can read: `quorate-lease 1 HOLDER MILLISECONDS TAKEN held|released IDENTITY`.
    pub fn encode(&self) -> Bytes {
        let state = if self.released { "released" } else { "held" };
        let head = format!(
            "{MAGIC} {:032x} {} {} {state} ",
            self.holder,
            u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            self.taken
        );
        let mut line = head.into_bytes();
        line.extend_from_slice(&self.identity);
        Bytes::from(line)
    }

    /// What [`Record::encode`] has made; none if it is something else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC.as_bytes())?.strip_prefix(b" ")?;
        let mut words = rest.splitn(5, |byte| *byte == b' ');
        let mut word = || str::from_utf8(words.next()?).ok();
        let holder = u128::from_str_radix(word()?, 16).ok()?;
        let duration = Duration::from_millis(word()?.parse().ok()?);
        let taken = word()?.parse().ok()?;
        let released = match word()? {
            "released" => true,
            "held" => false,
            _ => return None,
        };
        let identity = Bytes::copy_from_slice(words.next()?);
        Some(Self { holder, identity, duration, taken, released })
    }
}

/// What a record begins with, and the version of its form.
const MAGIC: &str = "quorate-lease 1";

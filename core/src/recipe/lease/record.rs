//! The record that a candidate writes into the key.

use alloc::format;
use core::str;
use core::time::Duration;

use bytes::Bytes;

/// The content of the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The number of one leadership, or of one attempt at it: no other candidate has it, and it never comes back. 0 in
    /// what another program wrote.
    pub holder: u128,
    /// The name by which others know the holder.
    pub identity: Bytes,
    /// How long the holder may be silent. Others count with this, not with a duration of their own.
    pub duration: Duration,
    /// The version of the key with which this leadership began; 0 in the write that takes it.
    pub taken: u64,
    /// It was given up in order: no candidate has to wait.
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

    /// The record of a key that was created with this version: what another program wrote there is taken for the
    /// identity of a leader that never gives the key up.
    pub fn of_key(data: Bytes, created: u64) -> Self {
        Self::decode(&data).unwrap_or(Self {
            holder: 0,
            identity: data,
            duration: Duration::ZERO,
            taken: created,
            released: false,
        })
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

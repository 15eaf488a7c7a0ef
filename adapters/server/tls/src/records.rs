//! How many records of TLS have passed, told by the bytes (RFC 8446, 5.1; RFC 5246, 6.2.1).
//!
//! A key of TLS 1.2 with AES-GCM is worn after 2²⁴ records (RFC 8446, 5.5 has the reckoning), and that version cannot change
//! it: the connection ends. Who counts can renew it before.

/// Counts the records in one direction of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// The length of a record that is coming, as far as it is known.
    length: u16,
    /// How much of a header has come.
    header: u8,
    /// How much of a record is still to come.
    rest: u16,
    count: u64,
}

impl Records {
    /// More bytes have passed.
    pub fn pass(&mut self, mut bytes: &[u8]) {
        loop {
            let taken = usize::from(self.rest).min(bytes.len());
            self.rest -= u16::try_from(taken).unwrap_or(self.rest);
            bytes = &bytes[taken..];
            if let (0, [_, _, _, high, low, behind @ ..]) = (self.header, bytes) {
                self.rest = u16::from_be_bytes([*high, *low]);
                self.count += 1;
                bytes = behind;
                continue;
            }
            let Some((byte, behind)) = bytes.split_first() else { return };
            bytes = behind;
            self.header += 1;
            if self.header > TYPE_AND_VERSION {
                self.length = self.length << 8 | u16::from(*byte);
            }
            if self.header == HEADER {
                (self.rest, self.header, self.length) = (self.length, 0, 0);
                self.count += 1;
            }
        }
    }

    /// How many have begun.
    pub const fn count(&self) -> u64 {
        self.count
    }
}

/// Before the length in a header.
const TYPE_AND_VERSION: u8 = 3;
/// The length of a header.
const HEADER: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_however_their_bytes_come() {
        let mut bytes = Vec::new();
        for length in [0_u16, 1, 5, 255, 256, 16_384, 65_535, 0, 3] {
            bytes.extend([23, 3, 3]);
            bytes.extend(length.to_be_bytes());
            bytes.extend(vec![0x17; length.into()]);
        }
        for piece in [1, 2, 3, 4, 5, 6, 7, 1000, 100_000] {
            let mut records = Records::default();
            bytes.chunks(piece).for_each(|piece| records.pass(piece));
            assert_eq!(records, Records { count: 9, ..Records::default() }, "{piece}");
        }
        let mut records = Records::default();
        records.pass(&bytes[..5 + 5 + 2]);
        assert_eq!(records.count(), 2, "one that has begun counts");
    }
}

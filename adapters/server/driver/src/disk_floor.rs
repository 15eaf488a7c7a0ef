//! How much room is to be left on the disk of a server that leads.

/// How many bytes are to be free in the directories of a server that leads (`quorate.disk.floor`): with less it lets
/// another lead that has more, and is given no leadership. It may be elected all the same, where no other can lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DiskFloor {
    /// As many as the newest snapshot has, and 128 MiB: another snapshot has room, and the log beside it.
    #[default]
    Snapshot,
    /// So many.
    Bytes(u64),
    /// It is not looked.
    Off,
}

impl DiskFloor {
    /// Reads `snapshot`, `off` or a number of bytes, which may have `k`, `m`, `g` or `t` behind it as flags of a JVM have;
    /// none if it is none of them.
    pub fn from_text(text: &str) -> Option<Self> {
        match text {
            "snapshot" => return Some(Self::Snapshot),
            "off" | "0" => return Some(Self::Off),
            _ => {}
        }
        let shift = match text.bytes().last()?.to_ascii_lowercase() {
            b'k' => 10,
            b'm' => 20,
            b'g' => 30,
            b't' => 40,
            _ => 0,
        };
        let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
        if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
        Some(if bytes == 0 { Self::Off } else { Self::Bytes(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_said_in_bytes_or_as_a_jvm_would_say_it() {
        for (text, expected) in [
            ("snapshot", Some(DiskFloor::Snapshot)),
            ("off", Some(DiskFloor::Off)),
            ("0", Some(DiskFloor::Off)),
            ("0g", Some(DiskFloor::Off)),
            ("1", Some(DiskFloor::Bytes(1))),
            ("512M", Some(DiskFloor::Bytes(512 << 20))),
            ("3k", Some(DiskFloor::Bytes(3 << 10))),
            ("2g", Some(DiskFloor::Bytes(2 << 30))),
            ("1T", Some(DiskFloor::Bytes(1 << 40))),
            ("18446744073709551615", Some(DiskFloor::Bytes(u64::MAX))),
            ("18446744073709551616", None),
            ("99999999999t", None),
            ("", None),
            ("g", None),
            ("+1", None),
            ("-1", None),
            ("1 g", None),
            ("1MB", None),
            ("10%", None),
            ("1é", None),
        ] {
            assert_eq!(DiskFloor::from_text(text), expected, "{text:?}");
        }
    }
}

//! Files with logs, as rotation leaves them: plain, or compressed with gzip, whatever they are called.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// The bytes of a log.
///
/// # Errors
///
/// That of the system; of the kind [`Unsupported`](io::ErrorKind::Unsupported) for what is compressed otherwise.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_from(File::open(path)?)
}

/// The same of what is open, such as stdin.
///
/// # Errors
///
/// As [`read`].
pub(crate) fn read_from(from: impl Read) -> io::Result<Vec<u8>> {
    read_up_to(LOG_MAX, from)
}

fn read_up_to(most: u64, from: impl Read) -> io::Result<Vec<u8>> {
    let mut from = BufReader::with_capacity(BUFFER, from);
    let begins = from.fill_buf()?;
    let compressed = MARKS.iter().find(|(mark, _)| begins.starts_with(mark)).map(|(_, by)| *by);
    let mut bytes = Vec::new();
    match compressed {
        None => from.take(most).read_to_end(&mut bytes)?,
        Some(GZIP) => MultiGzDecoder::new(from).take(most).read_to_end(&mut bytes)?,
        Some(by) => {
            let what = format!("it is compressed by {by}: only gzip is read; unpack it first");
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
    };
    Ok(bytes)
}

const GZIP: &str = "gzip";
/// How compressed files begin.
const MARKS: [(&[u8], &str); 5] = [
    (b"\x1f\x8b", GZIP),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
];
const BUFFER: usize = 64 << 10;
/// So much of a log is read: what is beyond is of another day.
const LOG_MAX: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(text.as_bytes()).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn a_log_is_read_plain_or_out_of_several_packed_pieces() {
        let read = |bytes: &[u8]| read_from(bytes).map(|read| String::from_utf8(read).unwrap());
        assert_eq!(read(b"").unwrap(), "");
        assert_eq!(read(b"one line\n").unwrap(), "one line\n");
        let both = [packed("one\n"), packed("two\n")].concat();
        assert_eq!(read(&both).unwrap(), "one\ntwo\n");
        let cut = &both[..both.len() - 9];
        assert_eq!(read(cut).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_packed_otherwise_is_refused_by_name() {
        for (mark, by) in &MARKS[1..] {
            let error = read_from(&[*mark, &b"and more"[..]].concat()[..]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains(by), "{error}");
        }
    }

    #[test]
    fn a_log_without_end_is_read_so_far_packed_or_not() {
        let text = " ".repeat(1 << 20);
        for bytes in [packed(&text), text.clone().into_bytes()] {
            assert_eq!(read_up_to(1000, &bytes[..]).unwrap().len(), 1000);
        }
    }
}

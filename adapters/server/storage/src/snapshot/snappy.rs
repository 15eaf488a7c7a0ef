//! The stream in which a Java server compresses a snapshot with Snappy, unpacked.
//!
//! ```text
//!   82 "SNAPPY" 00 ┬ version : i32 ┬ readable since version : i32
//!   length : i32 ┬ a block of raw Snappy, which begins with its length unpacked      again and again
//! ```
//!
//! It is that of snappy-java, and not the framing format of Snappy itself. It has no end of its own and no checksum: the
//! seals of the snapshot tell of both.
//!
//! In the Java code: `SnapStream`, and `SnappyOutputStream`, `SnappyCodec` of snappy-java.

use std::io::{self, Read};

use snap::raw::{Decoder, decompress_len, max_compress_len};

/// What a stream begins with.
pub(super) const SNAPPY_MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
/// The version that we know, and the only one that there is.
const VERSION: i32 = 1;
/// How much one block may be, unpacked. snappy-java makes blocks of 32 KiB unless it is told otherwise.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Unpacks a stream. What is no such stream is an error of kind `InvalidData`; one that ends within its header or within
/// a block, of kind `UnexpectedEof`. It holds one block at a time, packed and unpacked.
#[derive(Debug)]
pub(super) struct SnappyDecoder<R> {
    source: R,
    /// The header has been read.
    begun: bool,
    packed: Vec<u8>,
    block: Vec<u8>,
    taken: usize,
}

impl<R: Read> SnappyDecoder<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, begun: false, packed: Vec::new(), block: Vec::new(), taken: 0 }
    }

    fn header(&mut self) -> io::Result<()> {
        let (mut magic, mut versions) = ([0; SNAPPY_MAGIC.len()], [[0; 4]; 2]);
        self.source.read_exact(&mut magic)?;
        if magic != SNAPPY_MAGIC {
            return Err(invalid("not a stream of snappy-java"));
        }
        for version in &mut versions {
            self.source.read_exact(version)?;
        }
        let [version, since] = versions.map(i32::from_be_bytes);
        if version < VERSION || since > VERSION {
            return Err(invalid("a stream of another version of snappy-java"));
        }
        self.begun = true;
        Ok(())
    }

    /// Unpacks the next block. False at the end of the stream.
    fn next_block(&mut self) -> io::Result<bool> {
        let Some(length) = next_length(&mut self.source)? else { return Ok(false) };
        let length = usize::try_from(length).ok();
        let length = length.filter(|length| *length <= max_compress_len(BLOCK_BYTES_MAX));
        let length = length.ok_or_else(|| invalid("a block of a length that no server writes"))?;
        self.packed.resize(length, 0);
        self.source.read_exact(&mut self.packed)?;
        let unpacked = decompress_len(&self.packed).map_err(invalid)?;
        if unpacked > BLOCK_BYTES_MAX {
            return Err(invalid("a block that unpacks to more than any server writes"));
        }
        self.taken = 0;
        self.block.resize(unpacked, 0);
        let written = Decoder::new().decompress(&self.packed, &mut self.block).map_err(invalid)?;
        self.block.truncate(written);
        Ok(true)
    }
}

impl<R: Read> Read for SnappyDecoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.begun {
            self.header()?;
        }
        // An empty block is none that is written, but it is not the end.
        while self.taken == self.block.len() {
            if !self.next_block()? {
                return Ok(0);
            }
        }
        let read = (&self.block[self.taken..]).read(buffer)?;
        self.taken += read;
        Ok(read)
    }
}

/// A length; none if the source has ended before its first byte.
fn next_length(source: &mut impl Read) -> io::Result<Option<i32>> {
    // `read_exact` does not tell nothing from too little.
    let mut bytes = Vec::with_capacity(4);
    source.take(4).read_to_end(&mut bytes)?;
    match bytes.first_chunk() {
        Some(length) => Ok(Some(i32::from_be_bytes(*length))),
        None if bytes.is_empty() => Ok(None),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use snap::raw::Encoder;

    use super::*;

    fn stream(blocks: &[&[u8]]) -> Vec<u8> {
        let mut bytes = [&SNAPPY_MAGIC[..], &[0, 0, 0, 1, 0, 0, 0, 1]].concat();
        for block in blocks {
            let packed = Encoder::new().compress_vec(block).unwrap();
            bytes.extend_from_slice(&i32::try_from(packed.len()).unwrap().to_be_bytes());
            bytes.extend_from_slice(&packed);
        }
        bytes
    }

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        SnappyDecoder::new(bytes).read_to_end(&mut found)?;
        Ok(found)
    }

    #[test]
    fn blocks_of_any_length_are_one_stream() {
        let long = [7; BLOCK_BYTES_MAX];
        let found = unpacked(&stream(&[b"first ", b"", b"x", &long])).unwrap();
        assert_eq!(found, [b"first x", &long[..]].concat());
        assert_eq!(unpacked(&stream(&[])).unwrap(), b"");
    }

    #[test]
    fn a_stream_that_ends_within_its_header_or_a_block_is_known_to_have_ended() {
        let bytes = stream(&[b"one", b"two"]);
        let first_ends = stream(&[b"one"]).len();
        for length in 0..bytes.len() {
            match unpacked(&bytes[..length]) {
                Ok(found) if length == 16 => assert_eq!(found, b""),
                Ok(found) => assert_eq!((length, &found[..]), (first_ends, &b"one"[..])),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length}"),
            }
        }
    }

    #[test]
    fn a_length_is_not_believed() {
        let header = stream(&[]);
        let too_much = max_compress_len(BLOCK_BYTES_MAX) + 1;
        for length in [-1, i32::MIN, i32::MAX, i32::try_from(too_much).unwrap()] {
            let error = unpacked(&[&header[..], &length.to_be_bytes()].concat()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{length}");
        }
        // What a block says that it is, unpacked: 4 GiB less one, one byte too much, and no number at all.
        for block in [b"\xff\xff\xff\xff\x0f", &b"\x81\x80\x40"[..], b"\xff\xff\xff\xff\xff", b""] {
            let length = i32::try_from(block.len()).unwrap().to_be_bytes();
            let error = unpacked(&[&header[..], &length, block].concat()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{block:02x?}");
        }
    }

    #[test]
    fn another_version_of_the_stream_is_refused() {
        for (place, value, taken) in [(11, 0, false), (15, 2, false), (11, 2, true), (1, 0, false)]
        {
            let mut bytes = stream(&[b"one"]);
            bytes[place] = value;
            assert_eq!(unpacked(&bytes).is_ok(), taken, "byte {place} is {value}");
        }
    }
}

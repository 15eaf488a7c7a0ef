//! Framing a state's pieces by their lengths, so that they come back as they were and the end is found.
//!
//! ```text
//!   u32 length, from 1 · so many bytes      a piece, again and again
//!   u32 0                                   the end
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::application::{RestoreError, SnapshotError};

/// Puts pieces behind `out` until there are some 64 KiB, or the end; false with the end.
pub(crate) fn frame(
    pieces: &mut (impl Iterator<Item = Bytes> + ?Sized),
    out: &mut BytesMut,
) -> Result<bool, SnapshotError> {
    let begun = out.len();
    while out.len() - begun < GATHERED_BYTES {
        let Some(piece) = pieces.next() else {
            out.put_u32(0);
            return Ok(false);
        };
        // A length of 0 would be the end.
        if piece.is_empty() {
            continue;
        }
        let length = u32::try_from(piece.len()).ok().filter(|_| piece.len() <= PIECE_BYTES_MAX);
        let Some(length) = length else {
            return Err(too_long(piece.len()));
        };
        out.put_u32(length);
        out.put_slice(&piece);
    }
    Ok(true)
}

/// Finds the pieces again.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// A length that has not come whole, or a piece that has not.
    begun: BytesMut,
    /// How long the piece is.
    length: Option<usize>,
}

impl Frames {
    /// The next piece, if it has come whole, or the end; takes nothing behind the end.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame>, RestoreError> {
        let length = match self.length {
            Some(length) => length,
            None => {
                let Some(mut length) = self.take(4, bytes) else { return Ok(None) };
                let length = usize::try_from(length.get_u32())?;
                if length == 0 {
                    return Ok(Some(Frame::End));
                }
                if length > PIECE_BYTES_MAX {
                    return Err(too_long(length));
                }
                self.length = Some(length);
                length
            }
        };
        let Some(piece) = self.take(length, bytes) else { return Ok(None) };
        self.length = None;
        Ok(Some(Frame::Piece(piece)))
    }

    /// So many bytes, when they have come.
    fn take(&mut self, count: usize, bytes: &mut &[u8]) -> Option<Bytes> {
        let (now, later) = bytes.split_at((count - self.begun.len()).min(bytes.len()));
        *bytes = later;
        if self.begun.is_empty() && now.len() == count {
            return Some(Bytes::copy_from_slice(now));
        }
        self.begun.extend_from_slice(now);
        (self.begun.len() == count).then(|| self.begun.split().freeze())
    }
}

/// What stands in such a state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Piece(Bytes),
    End,
}

/// A piece of a state is longer than [`PIECE_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a piece of {length} bytes is too long, beyond {PIECE_BYTES_MAX}")]
pub struct PieceTooLong {
    /// How long it is.
    pub length: usize,
}

fn too_long(length: usize) -> RestoreError {
    PieceTooLong { length }.into()
}

/// How much is gathered at a time.
const GATHERED_BYTES: usize = 64 * 1024;
/// The longest piece of a state machine's snapshot, in bytes: 16 MiB.
pub const PIECE_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn pieces(of: &[usize]) -> Vec<Bytes> {
        of.iter().map(|length| vec![length.to_be_bytes()[7]; *length].into()).collect()
    }

    fn framed(pieces: Vec<Bytes>) -> BytesMut {
        let (mut pieces, mut out) = (pieces.into_iter(), BytesMut::new());
        while frame(&mut pieces, &mut out).unwrap() {}
        out
    }

    fn found(bytes: &mut &[u8], at_a_time: usize) -> Result<Vec<Bytes>, RestoreError> {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        while !bytes.is_empty() {
            let (mut now, _) = bytes.split_at(at_a_time.min(bytes.len()));
            let given = now.len();
            let frame = frames.next(&mut now)?;
            *bytes = &bytes[given - now.len()..];
            match frame {
                Some(Frame::Piece(piece)) => found.push(piece),
                Some(Frame::End) => return Ok(found),
                None => assert!(now.is_empty()),
            }
        }
        Err("it goes on".into())
    }

    #[test]
    fn pieces_come_back_as_they_were_however_their_bytes_are_cut() {
        let whole = pieces(&[1, 70_000, 3, 65_536, 2]);
        let mut bytes = framed(whole.clone());
        bytes.extend_from_slice(b"more");
        for at_a_time in [1, 2, 3, 4, 5, 7, 65_536, 1 << 20] {
            let mut rest = &bytes[..];
            assert_eq!(found(&mut rest, at_a_time).unwrap(), whole);
            assert_eq!(rest, b"more");
        }
        let cut = bytes.len() - 5;
        assert!(found(&mut &bytes[..cut], 1 << 20).is_err());
    }

    #[test]
    fn no_piece_is_the_end_and_an_empty_one_is_none() {
        assert_eq!(&framed(vec![])[..], [0; 4]);
        assert_eq!(framed(pieces(&[0, 2, 0, 0, 1])), framed(pieces(&[2, 1])));
    }

    #[test]
    fn a_length_beyond_the_bound_is_refused_both_ways_and_takes_no_memory() {
        let long = (u32::try_from(PIECE_BYTES_MAX).unwrap() + 1).to_be_bytes();
        assert!(found(&mut &long[..], 4).is_err());
        let mut piece = pieces(&[PIECE_BYTES_MAX + 1]).into_iter();
        assert!(frame(&mut piece, &mut BytesMut::new()).is_err());
        let mut frames = Frames::default();
        let mut promise = &16_000_000_u32.to_be_bytes()[..];
        assert!(frames.next(&mut promise).unwrap().is_none());
        assert!(frames.begun.capacity() < 1024);
    }
}

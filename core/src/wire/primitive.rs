//! Big-endian numbers and the counted values of jute, ZooKeeper's encoding of records.
//!
//! ```text
//!   int  i32      long  i64      buffer, string  i32 length, bytes      vector  i32 count, items
//! ```
//!
//! Reads are checked: a number that has not fully arrived is `None`.

use bytes::{BufMut, BytesMut};

use super::error::DecodeError;

/// What jute writes in place of the length of a buffer, string or vector that is absent.
pub(super) const NULL: i32 = -1;

/// The number at `at`, if it is there.
#[inline]
pub(super) fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..)?.first_chunk().map(|chunk| i32::from_be_bytes(*chunk))
}

/// The number at `at`, if it is there.
#[inline]
pub(super) fn i64_at(bytes: &[u8], at: usize) -> Option<i64> {
    bytes.get(at..)?.first_chunk().map(|chunk| i64::from_be_bytes(*chunk))
}

/// The number at `AT` of a chunk that contains it; a chunk that does not is a compile error.
#[inline(always)]
pub(super) fn i32_in<const AT: usize, const N: usize>(chunk: &[u8; N]) -> i32 {
    const { assert!(AT + 4 <= N) };
    i32::from_be_bytes(core::array::from_fn(|i| chunk[AT + i]))
}

/// The number at `AT` of a chunk that contains it; a chunk that does not is a compile error.
#[inline(always)]
pub(super) fn i64_in<const AT: usize, const N: usize>(chunk: &[u8; N]) -> i64 {
    const { assert!(AT + 8 <= N) };
    i64::from_be_bytes(core::array::from_fn(|i| chunk[AT + i]))
}

/// `length` as jute writes it. Nothing that long exists outside of a bug; it becomes a length that
/// every receiver refuses.
#[inline]
pub(super) fn wire_length(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// Appends a string.
pub(super) fn put_string(out: &mut BytesMut, string: &str) {
    out.put_i32(wire_length(string.len()));
    out.put_slice(string.as_bytes());
}

/// A length that a buffer or string may have; −1 is not one.
pub(super) fn buffer_length(announced: i32, max: usize) -> Result<usize, DecodeError> {
    usize::try_from(announced)
        .ok()
        .filter(|length| *length <= max)
        .ok_or(DecodeError::BufferLength { length: announced, max })
}

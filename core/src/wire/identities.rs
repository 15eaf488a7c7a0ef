//! The identities of a client, at the end of a packet: by what scheme it is known, and as which id.
//!
//! ```text
//!   count  i32 │ scheme  i32, bytes │ id  i32, bytes │ …      count −1: absent
//! ```
//!
//! Their number and their length together are bounded before anything is held for them.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::{Buf, BufMut, BytesMut};

use super::error::DecodeError;
use super::limits::MAX_IDENTITIES;
use super::primitive::{NULL, buffer_length, i32_at, put_string, wire_length};
use crate::message::Identity;

/// Appends the identities, or that there are none.
pub(super) fn encode_identities(identities: Option<&[Identity]>, out: &mut BytesMut) {
    let Some(identities) = identities else { return out.put_i32(NULL) };
    out.put_i32(wire_length(identities.len()));
    for Identity { scheme, id } in identities {
        put_string(out, scheme);
        put_string(out, id);
    }
}

/// Where the identities that begin at `at` end, and the packet with them; none if more bytes are needed.
///
/// This may walk over them once per arriving segment, hence the bound on their number.
pub(super) fn identities_end(
    bytes: &[u8],
    at: usize,
    max: usize,
) -> Result<Option<usize>, DecodeError> {
    let Some(announced) = i32_at(bytes, at) else { return Ok(None) };
    let mut end = at + 4;
    if announced == NULL {
        return Ok(Some(end));
    }
    let count = usize::try_from(announced)
        .ok()
        .filter(|count| *count <= MAX_IDENTITIES)
        .ok_or(DecodeError::IdentityCount(announced))?;
    for string in 0..2 * count {
        let Some(announced) = i32_at(bytes, end) else { return Ok(None) };
        if announced == NULL {
            return Err(DecodeError::IdentityNull(string / 2));
        }
        end += 4 + buffer_length(announced, max)?;
        if end - at > max {
            return Err(DecodeError::IdentitiesLength { length: end - at, max });
        }
    }
    Ok((bytes.len() >= end).then_some(end))
}

/// The identities in bytes over which [`identities_end`] has walked to the end.
pub(super) fn parse_identities(
    mut bytes: &[u8],
    max: usize,
) -> Result<Option<Vec<Identity>>, DecodeError> {
    let count = bytes.get_i32();
    if count == NULL {
        return Ok(None);
    }
    let mut string = || {
        let length = buffer_length(bytes.get_i32(), max)?;
        let (string, rest) = bytes.split_at(length);
        bytes = rest;
        Ok(String::from_utf8_lossy(string).into_owned())
    };
    (0..count)
        .map(|_| Ok(Identity { scheme: string()?, id: string()? }))
        .collect::<Result<_, _>>()
        .map(Some)
}

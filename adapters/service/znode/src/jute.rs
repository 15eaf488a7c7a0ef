//! Decoding jute, ZooKeeper's encoding of records, in the body of a transaction or request.
//!
//! ```text
//!   int  i32      long  i64      boolean  u8      buffer, string  i32 length, bytes
//!   vector  i32 count, items     a length or count of -1 is null      all big-endian
//! ```
//!
//! Nothing is allocated by a length that was not checked against the bytes that are there.

use std::str;

use thiserror::Error;

use crate::acl::Acl;

/// The bytes that are still to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    length: usize,
}

/// What could not be read, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) offset: usize,
    pub(crate) reason: Malformed,
}

/// What is wrong with the body of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Malformed {
    /// It ends before its fields do.
    #[error("it ends too early")]
    Short,
    /// A length or a count below -1.
    #[error("a negative length")]
    NegativeLength,
    /// A buffer or string that is longer than what is left.
    #[error("a length beyond the end")]
    LengthBeyondEnd,
    /// A path that is null.
    #[error("a path that is null")]
    NullPath,
    /// A path that is not UTF-8.
    #[error("a path that is not UTF-8")]
    PathNotUtf8,
    /// An element of a multi whose body is null.
    #[error("an element without a body")]
    NoBody,
}

type Read<T> = Result<T, Fault>;

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, length: bytes.len() }
    }

    /// How many bytes are left.
    pub(crate) const fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn fault(&self, reason: Malformed) -> Fault {
        Fault { offset: self.length - self.bytes.len(), reason }
    }

    fn chunk<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (chunk, rest) =
            self.bytes.split_first_chunk().ok_or_else(|| self.fault(Malformed::Short))?;
        self.bytes = rest;
        Ok(*chunk)
    }

    pub(crate) fn int(&mut self) -> Read<i32> {
        self.chunk().map(i32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Read<i64> {
        self.chunk().map(i64::from_be_bytes)
    }

    pub(crate) fn boolean(&mut self) -> Read<bool> {
        self.chunk().map(|[byte]| byte != 0)
    }

    /// A length or a count; none for null.
    pub(crate) fn count(&mut self) -> Read<Option<usize>> {
        let fault = self.fault(Malformed::NegativeLength);
        match self.int()? {
            -1 => Ok(None),
            count => usize::try_from(count).map(Some).map_err(|_| fault),
        }
    }

    pub(crate) fn buffer(&mut self) -> Read<Option<&'a [u8]>> {
        let Some(length) = self.count()? else { return Ok(None) };
        let (buffer, rest) = self
            .bytes
            .split_at_checked(length)
            .ok_or_else(|| self.fault(Malformed::LengthBeyondEnd))?;
        self.bytes = rest;
        Ok(Some(buffer))
    }

    pub(crate) fn path(&mut self) -> Read<&'a str> {
        let (null, encoding) =
            (self.fault(Malformed::NullPath), self.fault(Malformed::PathNotUtf8));
        str::from_utf8(self.buffer()?.ok_or(null)?).map_err(|_| encoding)
    }

    /// A count of items and the items, each of which takes at least one byte; none for null.
    pub(crate) fn vector<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Option<Vec<T>>> {
        let Some(count) = self.count()? else { return Ok(None) };
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(Some(items))
    }

    pub(crate) fn acl(&mut self) -> Read<Option<Vec<Acl>>> {
        self.vector(|reader| {
            Ok(Acl { perms: reader.int()?, scheme: reader.word()?, id: reader.word()? })
        })
    }

    /// A string that is not taken for a name: what is not UTF-8 in it is replaced, as in Java.
    fn word(&mut self) -> Read<Box<str>> {
        Ok(word(self.buffer()?.unwrap_or_default()))
    }
}

/// See [`Reader::word`].
pub(crate) fn word(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_not_empty() {
        let bytes = [255, 255, 255, 255, 0, 0, 0, 0, 255, 255, 255, 254];
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.buffer(), Ok(None));
        assert_eq!(reader.buffer(), Ok(Some(&[][..])));
        assert_eq!(reader.buffer(), Err(Fault { offset: 8, reason: Malformed::NegativeLength }));
    }

    #[test]
    fn a_huge_count_ends_with_the_bytes() {
        let mut reader = Reader::new(&[0x7f, 255, 255, 255, 0, 0, 0, 1]);
        let fault = reader.vector(Reader::int).unwrap_err();
        assert_eq!(fault, Fault { offset: 8, reason: Malformed::Short });
    }
}

//! Numbers and the counted values of jute, ZooKeeper's encoding of records, in the bytes of one frame.
//!
//! ```text
//!   int  i32      long  i64      boolean  u8      buffer, string  i32 length, bytes
//!   vector  i32 count, items     a length or count of -1 is null      all big-endian
//! ```

use alloc::string::String;
use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::zxid::Zxid;
use quorate_znode::acl::Acl;
use quorate_znode::stat::Stat;

/// What jute writes in place of the length of a buffer, string or vector that is null.
const NULL: i32 = -1;
/// The fewest bytes of an entry of an access list: its permissions and two lengths.
const ACL_MIN: usize = 12;
/// The fewest bytes of a string: its length.
pub(super) const TEXT_MIN: usize = 4;
/// The schemes whose ids are looked at. For `auth` a server fills in the identities itself, and what no server knows it
/// refuses by its name.
const SCHEMES: [&str; 5] = ["world", "digest", "ip", "sasl", "x509"];

/// Why the bytes of a frame are not what they should be.
///
/// In a request whose operation is known a server answers it with
/// [`MARSHALLING_ERROR`](super::code::MARSHALLING_ERROR), and the connection stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// It ends before its fields do.
    #[error("it ends too early")]
    Short,
    /// A length or a count below -1.
    #[error("a length of {0}")]
    NegativeLength(i32),
    /// A buffer or string that is longer than what is left.
    #[error("a length of {length} where {left} bytes are left")]
    LengthBeyondEnd {
        /// The announced length.
        length: usize,
        /// The bytes that are left.
        left: usize,
    },
    /// A vector with more items than what is left can hold.
    #[error("a count of {count} where {left} bytes are left")]
    CountBeyondEnd {
        /// The announced count.
        count: usize,
        /// The bytes that are left.
        left: usize,
    },
    /// A path that is null where it may not be.
    #[error("a path that is null")]
    NullPath,
    /// Another string that is null where it may not be.
    #[error("a string that is null")]
    NullText,
    /// The id of an entry of an access list is null.
    #[error("an entry of an access list without id")]
    NullId,
    /// An operation that may not be an element of this multi.
    #[error("operation {0} as an element")]
    NotAnElement(i32),
    /// A response to a connect request whose password is null or has not 16 bytes.
    #[error("a password that has not 16 bytes")]
    Password,
}

/// The fields of a frame, one after the other.
///
/// What a read that fails leaves behind means nothing.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    frame: &'a Bytes,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads from the first byte on.
    pub const fn new(frame: &'a Bytes) -> Self {
        Self { frame, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.frame.get(self.at..).unwrap_or_default()
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest().len()
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let chunk = self.rest().first_chunk().ok_or(Malformed::Short)?;
        self.at += N;
        Ok(*chunk)
    }

    /// An `i32`.
    pub fn int(&mut self) -> Result<i32, Malformed> {
        self.chunk().map(i32::from_be_bytes)
    }

    /// An `i64`.
    pub fn long(&mut self) -> Result<i64, Malformed> {
        self.chunk().map(i64::from_be_bytes)
    }

    /// An `i64` that is a transaction's number.
    pub fn zxid(&mut self) -> Result<Zxid, Malformed> {
        self.long().map(Zxid)
    }

    /// A byte: anything but 0 is true.
    pub fn boolean(&mut self) -> Result<bool, Malformed> {
        self.chunk().map(|[byte]| byte != 0)
    }

    /// A length or a count, not yet compared with what is there; none for null.
    fn count(&mut self) -> Result<Option<usize>, Malformed> {
        match self.int()? {
            NULL => Ok(None),
            count => usize::try_from(count).map(Some).map_err(|_| Malformed::NegativeLength(count)),
        }
    }

    /// How many bytes stand at `self.at`, behind their length; none for null.
    fn length(&mut self) -> Result<Option<usize>, Malformed> {
        let Some(length) = self.count()? else { return Ok(None) };
        let left = self.left();
        if length <= left {
            Ok(Some(length))
        } else {
            Err(Malformed::LengthBeyondEnd { length, left })
        }
    }

    /// Bytes, a slice of the frame; none for null.
    pub fn data(&mut self) -> Result<Option<Bytes>, Malformed> {
        let Some(length) = self.length()? else { return Ok(None) };
        let data = self.frame.slice(self.at..self.at + length);
        self.at += length;
        Ok(Some(data))
    }

    /// A string; none for null. What is not UTF-8 in it becomes U+FFFD, as in Java.
    pub fn text(&mut self) -> Result<Option<String>, Malformed> {
        let Some(length) = self.length()? else { return Ok(None) };
        let bytes = self.rest().get(..length).unwrap_or_default();
        self.at += length;
        Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
    }

    /// A string that is not null, see [`text`](Self::text).
    pub fn path(&mut self) -> Result<String, Malformed> {
        self.text()?.ok_or(Malformed::NullPath)
    }

    /// Items that take `least` bytes each, or more; none for null.
    ///
    /// A count that `least` shows to be too great is refused before anything is allocated.
    pub fn vector<T>(
        &mut self,
        least: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<Vec<T>>, Malformed> {
        let Some(count) = self.count()? else { return Ok(None) };
        let left = self.left();
        if count > left / least.max(1) {
            return Err(Malformed::CountBeyondEnd { count, left });
        }
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(Some(items))
    }

    /// An access list; none for null. A scheme that is null becomes the empty one, which no server knows, and so does
    /// an id that no server looks at; any other id has to be there.
    pub fn acl(&mut self) -> Result<Option<Vec<Acl>>, Malformed> {
        self.vector(ACL_MIN, |reader| {
            let perms = reader.int()?;
            let scheme = reader.text()?.unwrap_or_default();
            let id = match reader.text()? {
                None if SCHEMES.contains(&&*scheme) => return Err(Malformed::NullId),
                id => id.unwrap_or_default(),
            };
            Ok(Acl { perms, scheme: scheme.into(), id: id.into() })
        })
    }

    /// A [`Stat`]: 68 bytes.
    pub fn stat(&mut self) -> Result<Stat, Malformed> {
        Ok(Stat {
            czxid: self.zxid()?,
            mzxid: self.zxid()?,
            ctime: self.long()?,
            mtime: self.long()?,
            version: self.int()?,
            cversion: self.int()?,
            aversion: self.int()?,
            ephemeral_owner: self.long()?,
            data_length: self.int()?,
            num_children: self.int()?,
            pzxid: self.zxid()?,
        })
    }
}

/// `length` as jute writes it. Nothing that long exists outside of a bug; it becomes a length that every receiver
/// refuses.
pub(super) fn wire_length(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// Appends bytes with their length, or null.
pub fn put_data(out: &mut BytesMut, data: Option<&[u8]>) {
    let Some(data) = data else { return out.put_i32(NULL) };
    out.put_i32(wire_length(data.len()));
    out.put_slice(data);
}

/// Appends a string with its length, or null.
pub fn put_text(out: &mut BytesMut, text: Option<&str>) {
    put_data(out, text.map(str::as_bytes));
}

/// Appends items behind their count, which is known when the last one was written.
pub fn put_vector<T>(
    out: &mut BytesMut,
    items: impl IntoIterator<Item = T>,
    mut put: impl FnMut(&mut BytesMut, T),
) {
    let at = out.len();
    out.put_i32(0);
    let mut count = 0;
    for item in items {
        put(out, item);
        count += 1;
    }
    set_length(out, at, count);
}

/// Appends an access list.
pub fn put_acl(out: &mut BytesMut, acl: &[Acl]) {
    put_vector(out, acl, |out, entry| {
        out.put_i32(entry.perms);
        put_text(out, Some(&entry.scheme));
        put_text(out, Some(&entry.id));
    });
}

/// Appends an access list, or null.
pub(super) fn put_acl_or_null(out: &mut BytesMut, acl: Option<&[Acl]>) {
    match acl {
        Some(acl) => put_acl(out, acl),
        None => out.put_i32(NULL),
    }
}

/// Writes a length into the place that was left for it at `at`.
fn set_length(out: &mut BytesMut, at: usize, length: usize) {
    if let Some(place) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = wire_length(length).to_be_bytes();
    }
}

/// A whole frame: the length, and what `put` appends.
pub(super) fn framed(capacity: usize, put: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::with_capacity(4 + capacity);
    out.put_i32(0);
    put(&mut out);
    let length = out.len() - 4;
    set_length(&mut out, 0, length);
    out.freeze()
}

/// Strings that may be null; a vector that is null is an empty one.
pub(super) fn texts(reader: &mut Reader<'_>) -> Result<Vec<Option<String>>, Malformed> {
    Ok(reader.vector(TEXT_MIN, Reader::text)?.unwrap_or_default())
}

/// Strings that may not be null; a vector that is null is an empty one.
pub(super) fn names(reader: &mut Reader<'_>) -> Result<Vec<String>, Malformed> {
    let name = |reader: &mut Reader<'_>| reader.text()?.ok_or(Malformed::NullText);
    Ok(reader.vector(TEXT_MIN, name)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_not_empty() {
        let bytes = Bytes::from_static(&[255, 255, 255, 255, 0, 0, 0, 0, 255, 255, 255, 254]);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.data(), Ok(None));
        assert_eq!(reader.data(), Ok(Some(Bytes::new())));
        assert_eq!(reader.data(), Err(Malformed::NegativeLength(-2)));
    }

    #[test]
    fn a_count_is_compared_with_the_bytes_that_are_there() {
        let bytes = Bytes::from_static(&[0x7f, 255, 255, 255, 0, 0, 0, 1]);
        let refused = Reader::new(&bytes).vector(4, Reader::int);
        assert_eq!(refused, Err(Malformed::CountBeyondEnd { count: 0x7fff_ffff, left: 4 }));
        let refused = Reader::new(&bytes).text();
        assert_eq!(refused, Err(Malformed::LengthBeyondEnd { length: 0x7fff_ffff, left: 4 }));
    }

    #[test]
    fn what_is_not_utf8_is_replaced() {
        let bytes = Bytes::from_static(&[0, 0, 0, 3, b'/', 0xff, 0xfe]);
        assert_eq!(Reader::new(&bytes).path().as_deref(), Ok("/\u{fffd}\u{fffd}"));
    }

    #[test]
    fn an_id_may_only_be_null_where_it_is_not_looked_at() {
        let entry = |scheme: Option<&str>| {
            let mut out = BytesMut::new();
            put_vector(&mut out, [31], |out, perms| {
                out.put_i32(perms);
                put_text(out, scheme);
                put_text(out, None);
            });
            Reader::new(&out.freeze()).acl()
        };
        for known in ["world", "digest", "ip"] {
            assert_eq!(entry(Some(known)), Err(Malformed::NullId));
        }
        for (scheme, read) in [(Some("auth"), "auth"), (Some("rumour"), "rumour"), (None, "")] {
            let acl = Acl { perms: 31, scheme: read.into(), id: "".into() };
            assert_eq!(entry(scheme), Ok(Some([acl].to_vec())));
        }
    }
}

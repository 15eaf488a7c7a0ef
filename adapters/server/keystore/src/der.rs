//! A cursor over DER (X.690): one element after the other, each length checked before it is believed.
//!
//! Nothing is copied and nothing recurses: a nested element is another cursor, opened by the reader that expects it.

/// What is wrong with an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DerError {
    /// It ends within an element.
    Cut,
    /// A length is not given in advance, which BER allows and DER does not.
    Indefinite,
    /// A length is longer than any store, or a number longer than is meant.
    Long,
    /// Another element is expected.
    Other,
    /// Something follows where nothing is expected.
    Trailing,
}

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const BMP_STRING: u8 = 0x1e;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// The constructed element of a context, such as `[0]`.
pub(crate) const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// What has not been read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tag of the next element.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The next element: its tag and what is in it.
    pub(crate) fn any(&mut self) -> Result<(u8, &'a [u8]), DerError> {
        let (&tag, rest) = self.0.split_first().ok_or(DerError::Cut)?;
        // A tag of several bytes: none of what is read here has one.
        if tag & 0x1f == 0x1f {
            return Err(DerError::Other);
        }
        let (&first, mut rest) = rest.split_first().ok_or(DerError::Cut)?;
        let length = match first {
            0..=0x7f => usize::from(first),
            0x80 => return Err(DerError::Indefinite),
            0x81..=0x84 => {
                let (bytes, after) =
                    rest.split_at_checked(usize::from(first & 0x7f)).ok_or(DerError::Cut)?;
                rest = after;
                bytes.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte))
            }
            _ => return Err(DerError::Long),
        };
        let (content, after) = rest.split_at_checked(length).ok_or(DerError::Cut)?;
        self.0 = after;
        Ok((tag, content))
    }

    /// The next element as it stands, with its tag and length.
    pub(crate) fn whole(&mut self) -> Result<&'a [u8], DerError> {
        let all = self.0;
        self.any()?;
        Ok(all.get(..all.len() - self.0.len()).unwrap_or_default())
    }

    /// The content of the next element, which has this tag.
    pub(crate) fn take(&mut self, tag: u8) -> Result<&'a [u8], DerError> {
        if self.peek().is_some_and(|found| found != tag) {
            return Err(DerError::Other);
        }
        self.any().map(|(_, content)| content)
    }

    /// The same, if it is there.
    pub(crate) fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, DerError> {
        if self.peek() == Some(tag) { self.take(tag).map(Some) } else { Ok(None) }
    }

    /// A cursor over the next element, which has this tag and elements in it.
    pub(crate) fn open(&mut self, tag: u8) -> Result<Self, DerError> {
        self.take(tag).map(Self)
    }

    pub(crate) fn sequence(&mut self) -> Result<Self, DerError> {
        self.open(SEQUENCE)
    }

    /// A non-negative number, without the zeros before it.
    pub(crate) fn unsigned(&mut self) -> Result<&'a [u8], DerError> {
        let bytes = self.take(INTEGER)?;
        if bytes.first().is_none_or(|first| first & 0x80 != 0) {
            return Err(DerError::Other);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        Ok(bytes.get(zeros..).unwrap_or_default())
    }

    /// A non-negative number; `u64::MAX` if it is larger than that.
    pub(crate) fn number(&mut self) -> Result<u64, DerError> {
        let bytes = self.unsigned()?;
        let larger = bytes.len() > 8;
        let value = || bytes.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        Ok(if larger { u64::MAX } else { value() })
    }

    /// An algorithm: its identifier, and a cursor over its parameters.
    pub(crate) fn algorithm(&mut self) -> Result<(&'a [u8], Self), DerError> {
        let mut algorithm = self.sequence()?;
        let identifier = algorithm.take(OBJECT_IDENTIFIER)?;
        Ok((identifier, algorithm))
    }

    /// The content of a bit string of whole bytes.
    pub(crate) fn bits(&mut self) -> Result<&'a [u8], DerError> {
        match self.take(BIT_STRING)?.split_first() {
            Some((0, bytes)) => Ok(bytes),
            _ => Err(DerError::Other),
        }
    }

    /// Nothing follows.
    pub(crate) const fn end(self) -> Result<(), DerError> {
        if self.is_empty() { Ok(()) } else { Err(DerError::Trailing) }
    }
}

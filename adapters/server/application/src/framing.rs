//! A state whose length nobody knows in advance, in pieces behind their lengths, so that its end is found.

use std::io::{self, Read, Write};

/// Cuts what is written into pieces, each behind its length; a length of 0 is the end.
pub(crate) struct Framing<'a> {
    to: &'a mut dyn Write,
    piece: Vec<u8>,
}

impl<'a> Framing<'a> {
    pub(crate) fn new(to: &'a mut dyn Write) -> Self {
        Self { to, piece: Vec::with_capacity(PIECE_BYTES) }
    }

    /// Nothing comes behind it.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.flush()?;
        self.to.write_all(&0_u32.to_be_bytes())
    }
}

impl Write for Framing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        let bytes = &bytes[..bytes.len().min(PIECE_BYTES - self.piece.len())];
        self.piece.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(self.piece.len()).map_err(io::Error::other)?;
        self.to.write_all(&length.to_be_bytes())?;
        self.to.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }
}

/// Reads such pieces, and not one byte behind the end.
pub(crate) struct Framed<'a> {
    from: &'a mut dyn Read,
    left: usize,
    ended: bool,
}

impl<'a> Framed<'a> {
    pub(crate) fn new(from: &'a mut dyn Read) -> Self {
        Self { from, left: 0, ended: false }
    }
}

impl Read for Framed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.ended {
            let mut length = [0; 4];
            self.from.read_exact(&mut length)?;
            self.left = usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?;
            if self.left > PIECE_BYTES {
                let error = format!("a piece of {} bytes is too long", self.left);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            self.ended = self.left == 0;
        }
        let most = buffer.len().min(self.left);
        let read = if most == 0 { 0 } else { self.from.read(&mut buffer[..most])? };
        if read == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read;
        Ok(read)
    }
}

/// The longest piece of a snapshot.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

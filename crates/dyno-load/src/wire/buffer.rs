//! Buffer of received but unread bytes of one connection, without an allocation per message.
//!
//! Bytes that are not needed are skipped without storing them, so a large result need not fit into the buffer. The
//! buffer grows with the bytes that have arrived, never with the length that a header claims.

use std::io::{self, Read};
use std::ops::Range;

/// Initial size of a buffer [bytes].
pub const START_BYTES: usize = 16 << 10;

/// Received bytes of one connection.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    head: usize,
    tail: usize,
    /// Number of bytes to skip that have not arrived yet.
    skip: usize,
    /// Number of bytes that the next message needs in total.
    need: usize,
}

impl Buffer {
    /// Returns an empty buffer; the first message has at least `need` bytes.
    pub fn new(need: usize) -> Self {
        Self { bytes: vec![0; START_BYTES], head: 0, tail: 0, skip: 0, need }
    }

    /// Returns the first N unread bytes, or `None` if fewer have arrived; it then records that N bytes are needed.
    #[inline]
    pub fn peek<const N: usize>(&mut self) -> Option<[u8; N]> {
        let found = self.bytes[self.head..self.tail].first_chunk::<N>().copied();
        if found.is_none() {
            self.need = N;
        }
        found
    }

    /// Consumes `head` bytes and the `kept` bytes after them, and returns the range of the latter; `None` if not all of
    /// them have arrived.
    ///
    /// `length` bytes follow the head in total; those beyond `kept` are skipped.
    #[inline]
    pub fn take(&mut self, head: usize, kept: usize, length: usize) -> Option<Range<usize>> {
        if self.tail - self.head < head + kept {
            self.need = head + kept;
            return None;
        }
        let start = self.head + head;
        self.head = start + kept;
        if kept < length {
            self.drop(length - kept);
        }
        Some(start..start + kept)
    }

    /// Skips the rest of a body; returns true if nothing is left to skip.
    #[inline]
    pub fn skipped(&mut self) -> bool {
        if self.skip > 0 {
            self.drop(self.skip);
        }
        self.skip == 0
    }

    /// Returns the bytes of a body; they are valid only until the next [`Buffer::fill`].
    #[inline]
    pub fn bytes(&self, body: &Range<usize>) -> &[u8] {
        &self.bytes[body.clone()]
    }

    /// Enlarges the buffer to at least this size, so that large results need fewer reads.
    pub fn widen(&mut self, bytes: usize) {
        if bytes > self.bytes.len() {
            self.bytes.resize(bytes, 0);
        }
    }

    /// Shrinks the buffer to this size [bytes] after a long message, without dropping unread bytes.
    pub fn narrow(&mut self, bytes: usize) {
        self.bytes.copy_within(self.head..self.tail, 0);
        (self.head, self.tail) = (0, self.tail - self.head);
        self.bytes.truncate(self.tail.max(bytes));
        self.bytes.shrink_to_fit();
    }

    /// Returns true if there are no unread bytes.
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Returns the size of the buffer [bytes].
    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.bytes.len()
    }

    /// Reads once; returns true if the read filled the buffer: the source then possibly has more bytes.
    ///
    /// # Errors
    /// The read failed; the end of the stream is [`io::ErrorKind::UnexpectedEof`].
    #[inline]
    pub fn fill(&mut self, source: &mut impl Read) -> io::Result<bool> {
        if self.head == self.tail {
            (self.head, self.tail) = (0, 0);
        }
        if self.head + self.need > self.bytes.len() {
            self.make_room()?;
        }
        loop {
            let room = self.bytes.len() - self.tail;
            match source.read(&mut self.bytes[self.tail..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.tail += count;
                    return Ok(count == room);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Moves the unread bytes to the front of the buffer; doubles its size if it is full.
    #[cold]
    fn make_room(&mut self) -> io::Result<()> {
        self.bytes.copy_within(self.head..self.tail, 0);
        self.tail -= self.head;
        self.head = 0;
        let full = self.bytes.len();
        if self.tail == full {
            self.bytes.try_reserve_exact(full).map_err(|_| io::ErrorKind::OutOfMemory)?;
            self.bytes.resize(2 * full, 0);
        }
        Ok(())
    }

    #[inline]
    fn drop(&mut self, length: usize) {
        let here = length.min(self.tail - self.head);
        self.head += here;
        self.skip = length - here;
        self.need = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_looked_at_stays_when_the_room_of_a_long_message_is_given_back() {
        let (length, rest) = (900_000, 100_000);
        let bytes: Vec<u8> = (0..length + rest).map(|at| (at % 251) as u8).collect();
        let (mut buffer, mut source) = (Buffer::new(1), &bytes[..]);
        let long = loop {
            match buffer.take(0, length, length) {
                Some(long) => break long,
                None => drop(buffer.fill(&mut source).expect("more")),
            }
        };
        assert!(buffer.bytes(&long) == &bytes[..length]);
        assert!(!buffer.is_empty());
        buffer.narrow(START_BYTES);
        assert!(buffer.room() < length / 2, "{}", buffer.room());
        let last = loop {
            match buffer.take(0, rest, rest) {
                Some(last) => break last,
                None => drop(buffer.fill(&mut source).expect("more")),
            }
        };
        assert!(buffer.bytes(&last) == &bytes[length..]);
        buffer.narrow(START_BYTES);
        assert_eq!(buffer.room(), START_BYTES);
    }
}

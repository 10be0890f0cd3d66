//! Reader that splits the server's bytes into packets without copying them, and writer of packets.
//!
//! A packet has a length of three bytes, its number in the current exchange, and a body. A body with the maximum length
//! continues in the next packet. Only the beginning of each body is kept; the rest is skipped.

use std::ops::Range;

use crate::wire::WireError;
use crate::wire::buffer::Buffer;

/// Length of a packet's head [bytes]: three bytes with the length, and one with the number.
pub const HEAD_BYTES: usize = 4;
/// Maximum length of a body [bytes]; such a body continues in the next packet.
pub const PART_BYTES: usize = 0xff_ffff;
/// Longest packet that is accepted before the login, when all packets are short [bytes].
const SHORT_BYTES_MAX: usize = 30_000;

/// Beginning of one packet.
#[derive(Debug, Clone)]
pub struct Packet {
    /// First byte of the body, which identifies the kind of the packet.
    pub first: u8,
    /// Length of the packet's first part [bytes].
    pub length: usize,
    /// Packet number in the current exchange.
    pub number: u8,
    /// Range of the bytes that are kept, for [`Packets::bytes`].
    pub body: Range<usize>,
    /// True if the body is longer than the bytes that are kept.
    pub cut: bool,
}

/// Incoming packets of one connection; the caller reads the bytes into its buffer.
#[derive(Debug)]
pub struct Packets {
    /// Received bytes.
    pub buffer: Buffer,
    limit: usize,
    /// True if the next packet continues the previous one.
    goes_on: bool,
}

impl Packets {
    /// Returns the packets of a connection before its login; only short packets are accepted.
    pub fn before_login() -> Self {
        Self { buffer: Buffer::new(HEAD_BYTES + 1), limit: SHORT_BYTES_MAX, goes_on: false }
    }

    /// Accepts packets of any length from now on.
    pub fn logged_in(&mut self) {
        self.limit = PART_BYTES;
    }

    /// Returns the next packet, or `None` if more bytes are needed.
    ///
    /// `wanted` returns how many bytes to keep of a packet that begins with this byte; at least one byte is kept.
    ///
    /// # Errors
    /// A packet is empty or longer than allowed.
    #[inline]
    pub fn next(&mut self, wanted: impl Fn(u8) -> usize) -> Result<Option<Packet>, WireError> {
        loop {
            if !self.buffer.skipped() {
                return Ok(None);
            }
            if self.goes_on {
                let Some([a, b, c, _]) = self.buffer.peek::<HEAD_BYTES>() else { return Ok(None) };
                let length = length(a, b, c);
                self.goes_on = length == PART_BYTES;
                let _ = self.buffer.take(HEAD_BYTES, 0, length);
                continue;
            }
            let Some([a, b, c, number, first]) = self.buffer.peek::<{ HEAD_BYTES + 1 }>() else { return Ok(None) };
            let length = length(a, b, c);
            if length == 0 || length > self.limit {
                return Err(WireError::Protocol(format!("a packet of {length} bytes")));
            }
            let kept = wanted(first).clamp(1, length);
            let Some(body) = self.buffer.take(HEAD_BYTES, kept, length) else { return Ok(None) };
            self.goes_on = length == PART_BYTES;
            return Ok(Some(Packet { first, length, number, body, cut: kept < length || self.goes_on }));
        }
    }

    /// Returns the next complete part and its number, or `None` if more bytes are needed.
    ///
    /// A body whose part has [`PART_BYTES`] continues in the next part.
    pub fn part(&mut self) -> Option<(Range<usize>, u8)> {
        if !self.buffer.skipped() {
            return None;
        }
        let [a, b, c, number] = self.buffer.peek::<HEAD_BYTES>()?;
        let length = length(a, b, c);
        self.buffer.take(HEAD_BYTES, length, length).map(|body| (body, number))
    }

    /// Returns the bytes of a body; they are valid only until the buffer is filled again.
    #[inline]
    pub fn bytes(&self, body: &Range<usize>) -> &[u8] {
        self.buffer.bytes(body)
    }
}

#[inline]
fn length(a: u8, b: u8, c: u8) -> usize {
    u32::from_le_bytes([a, b, c, 0]) as usize
}

/// Begins a packet and returns its start in `out`; [`end`] writes its head.
#[inline]
pub fn begin(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; HEAD_BYTES]);
    out.len() - HEAD_BYTES
}

/// Ends the packet that began at `start`, and sets its number in the current exchange; a long packet is split into
/// parts.
#[inline]
pub fn end(out: &mut Vec<u8>, start: usize, number: u8) {
    let length = out.len() - start - HEAD_BYTES;
    if length >= PART_BYTES {
        return end_long(out, start, number);
    }
    head(&mut out[start..], length, number);
}

#[cold]
fn end_long(out: &mut Vec<u8>, start: usize, number: u8) {
    let body = out.split_off(start + HEAD_BYTES);
    out.truncate(start);
    let mut number = number;
    let mut rest = body.as_slice();
    loop {
        let (part, after) = rest.split_at(rest.len().min(PART_BYTES));
        let at = begin(out);
        out.extend_from_slice(part);
        head(&mut out[at..], part.len(), number);
        if part.len() < PART_BYTES {
            return;
        }
        (rest, number) = (after, number.wrapping_add(1));
    }
}

#[inline]
fn head(out: &mut [u8], length: usize, number: u8) {
    out[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    out[3] = number;
}

/// Reader of integers and texts from a body; a body that is too short is an error.
#[derive(Debug, Clone)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Reads `count` bytes.
    ///
    /// # Errors
    /// The body is too short.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| WireError::Protocol("a torn packet".into()))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a little-endian integer of `bytes` bytes.
    ///
    /// # Errors
    /// The body is too short.
    #[inline]
    pub fn number(&mut self, bytes: usize) -> Result<u64, WireError> {
        let taken = self.take(bytes)?;
        Ok(taken.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    /// Reads a length-encoded integer; returns `None` for NULL.
    ///
    /// # Errors
    /// The body is too short, or its first byte is 0xff.
    #[inline]
    pub fn counted(&mut self) -> Result<Option<u64>, WireError> {
        match self.number(1)? {
            0xfb => Ok(None),
            0xfc => self.number(2).map(Some),
            0xfd => self.number(3).map(Some),
            0xfe => self.number(8).map(Some),
            0xff => Err(WireError::Protocol("a length of 0xff".into())),
            small => Ok(Some(small)),
        }
    }

    /// Reads bytes that are preceded by their length; returns `None` for NULL.
    ///
    /// # Errors
    /// The body is too short.
    #[inline]
    pub fn text(&mut self) -> Result<Option<&'a [u8]>, WireError> {
        match self.counted()? {
            None => Ok(None),
            Some(length) => self.take(usize::try_from(length).unwrap_or(usize::MAX)).map(Some),
        }
    }

    /// Reads bytes up to a zero byte, or to the end if there is none.
    pub fn up_to_zero(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or(&[]);
        text
    }
}

/// Appends bytes preceded by their length.
pub fn write_text(text: &[u8], out: &mut Vec<u8>) {
    let length = text.len() as u64;
    match length {
        0..=0xfa => out.push(length as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&length.to_le_bytes()[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&length.to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&length.to_le_bytes());
        }
    }
    out.extend_from_slice(text);
}

//! Incremental parsing of bytes into messages.
//!
//! A message may be spread over any number of reads, and of a long message only the requested part is kept.
//!
//! ```
//! use dyno_proxy::framing::Framer;
//! let mut framer = Framer::default();
//! let mut seen = Vec::new();
//! for piece in [b"Q\0\0\0".as_slice(), b"\x0dselect 1\0", b"S\0\0\0\x04"] {
//!     framer.feed(piece, |_| 100, |message| seen.push((message.tag, message.body.to_vec()))).unwrap();
//! }
//! assert_eq!(seen, [(b'Q', b"select 1\0".to_vec()), (b'S', vec![])]);
//! ```

/// Message; `body` is the kept beginning of its body.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Type byte.
    pub tag: u8,
    /// Length of the body on the wire [bytes].
    pub length: usize,
    /// Kept beginning of the body.
    pub body: &'a [u8],
}

impl Message<'_> {
    /// Returns true if the whole body was kept.
    pub fn is_whole(&self) -> bool {
        self.body.len() == self.length
    }
}

/// Bytes that are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a protocol message: {length} bytes with the tag 0x{tag:02x}")]
pub struct Rubbish {
    /// Type byte.
    pub tag: u8,
    /// Length that follows the type byte, as received.
    pub length: u32,
}

/// Length of a message's header [bytes]: type byte and length.
const HEAD: usize = 5;
/// Length from which a message is not accepted: the server accepts no message of 1 GiB.
const LONGEST: u32 = 1 << 30;

/// Parser of a stream of messages; holds the state between reads.
#[derive(Debug, Default)]
pub struct Framer {
    head: [u8; HEAD],
    have: usize,
    /// Number of body bytes that are still to come.
    left: usize,
    kept: Vec<u8>,
    limit: usize,
}

impl Framer {
    /// Parses bytes and calls `on` with each completed message; `keep` returns how many body bytes to keep of a message
    /// with a given tag.
    ///
    /// # Errors
    /// The bytes are not messages.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        keep: impl Fn(u8) -> usize,
        mut on: impl FnMut(Message<'_>),
    ) -> Result<(), Rubbish> {
        while !bytes.is_empty() {
            if self.have < HEAD {
                let take = (HEAD - self.have).min(bytes.len());
                self.head[self.have..self.have + take].copy_from_slice(&bytes[..take]);
                self.have += take;
                bytes = &bytes[take..];
                if self.have < HEAD {
                    return Ok(());
                }
                self.left = self.length()?;
                self.limit = keep(self.head[0]).min(self.left);
                if bytes.len() >= self.left {
                    // Usual case: nothing is copied.
                    on(Message { tag: self.head[0], length: self.left, body: &bytes[..self.limit] });
                    bytes = &bytes[self.left..];
                    self.have = 0;
                    continue;
                }
            }
            let take = self.left.min(bytes.len());
            let wanted = (self.limit - self.kept.len()).min(take);
            self.kept.extend_from_slice(&bytes[..wanted]);
            self.left -= take;
            bytes = &bytes[take..];
            if self.left == 0 {
                on(Message { tag: self.head[0], length: self.length()?, body: &self.kept });
                // The space of a long message is released.
                if self.kept.capacity() > 4096 {
                    self.kept = Vec::new();
                } else {
                    self.kept.clear();
                }
                self.have = 0;
            }
        }
        Ok(())
    }

    fn length(&self) -> Result<usize, Rubbish> {
        let length = u32::from_be_bytes([self.head[1], self.head[2], self.head[3], self.head[4]]);
        let tag = self.head[0];
        let is_sound = (4..LONGEST).contains(&length) && tag.is_ascii_graphic();
        if is_sound { Ok(length as usize - 4) } else { Err(Rubbish { tag, length }) }
    }

    /// Returns true if a message has begun and is not complete.
    pub fn is_within(&self) -> bool {
        self.have > 0
    }
}

/// Splits at the first zero byte: the text before it, and the bytes after it.
pub fn text(body: &[u8]) -> (&[u8], &[u8]) {
    match body.iter().position(|byte| *byte == 0) {
        Some(end) => (&body[..end], &body[end + 1..]),
        None => (body, &[]),
    }
}

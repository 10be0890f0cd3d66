//! Reader that splits the server's bytes into messages without copying them.
//!
//! A message has a type byte, a length that includes the length field itself, and a body. Bodies that are not needed
//! are skipped; of the others, the beginning is kept. A length that is implausible for its type is refused immediately
//! instead of being waited for; before the login every long message is implausible.

use std::ops::Range;

use super::WireError;
use super::buffer::Buffer;

/// Longest body of a message that carries no data, and of any message before the login [bytes]; libpq has the same
/// limit.
const SHORT_BYTES_MAX: usize = 30_000;
/// Longest body of any message [bytes]: the server cannot produce longer ones.
const LONG_BYTES_MAX: usize = 1 << 30;
/// Size of a message's head [bytes]: a type byte and a length.
const HEAD_BYTES: usize = 5;

/// How much of a message's body is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing is kept, however long the body is.
    Nothing,
    /// At most this number of bytes at the beginning are kept.
    Start(usize),
    /// The complete body is kept; only for message types that are short.
    All,
}

/// One message: its type, and where its body is in the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Type byte.
    pub tag: u8,
    /// Range of the body, for [`Inbox::bytes`]; empty if it was not kept.
    pub body: Range<usize>,
    /// True if the body is longer than the bytes that are kept.
    pub cut: bool,
}

/// Incoming messages of one connection; the caller reads the bytes into its buffer.
#[derive(Debug)]
pub struct Inbox {
    /// Received bytes.
    pub buffer: Buffer,
    /// Longest body that is accepted [bytes].
    limit: usize,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { buffer: Buffer::new(HEAD_BYTES), limit: LONG_BYTES_MAX }
    }
}

impl Inbox {
    /// Returns the inbox of a connection before its login; only short messages are accepted.
    pub fn before_login() -> Self {
        Self { limit: SHORT_BYTES_MAX, ..Self::default() }
    }

    /// Accepts long messages from now on.
    pub fn logged_in(&mut self) {
        self.limit = LONG_BYTES_MAX;
    }

    /// Returns the next message, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// The type is unknown, or the length is implausible.
    #[inline]
    pub fn next(&mut self, wanted: impl Fn(u8) -> Keep) -> Result<Option<Message>, WireError> {
        if !self.buffer.skipped() {
            return Ok(None);
        }
        let Some([tag, a, b, c, d]) = self.buffer.peek::<HEAD_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length < 4 || length - 4 > limit_bytes(tag)?.min(self.limit) {
            let tag = char::from(tag);
            return Err(WireError::Protocol(format!("message {tag:?} of {length} bytes")));
        }
        let length = length - 4;
        let kept = match wanted(tag) {
            Keep::Nothing => 0,
            Keep::Start(bytes) => length.min(bytes),
            Keep::All => length,
        };
        let body = self.buffer.take(HEAD_BYTES, kept, length);
        Ok(body.map(|body| Message { tag, body, cut: kept < length }))
    }

    /// Returns the bytes of a body; they are valid only until the buffer is filled again.
    #[inline]
    pub fn bytes(&self, body: &Range<usize>) -> &[u8] {
        self.buffer.bytes(body)
    }
}

/// Returns the longest body that a message of this type can have [bytes]; fails for types that the server never sends.
fn limit_bytes(tag: u8) -> Result<usize, WireError> {
    match tag {
        b'D' | b'T' | b'd' | b'E' | b'N' | b'A' | b't' | b'V' => Ok(LONG_BYTES_MAX),
        b'1' | b'2' | b'3' | b'C' | b'G' | b'H' | b'I' | b'K' | b'R' | b'S' | b'W' | b'Z' | b'c' | b'n' | b's'
        | b'v' => Ok(SHORT_BYTES_MAX),
        other => Err(WireError::Protocol(format!("message type 0x{other:02x}"))),
    }
}

/// Appends a message with this type and body.
pub fn frame(tag: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

/// Returns the row count in a `CommandComplete` body: the last word of `SELECT 1`, `INSERT 0 1`, `COPY 5`.
///
/// It is read from the end, so neither a known verb nor valid UTF-8 is needed. `None` if there is no count.
pub fn tag_rows(body: &[u8]) -> Option<i64> {
    let digits = body.strip_suffix(&[0]).unwrap_or(body);
    let (mut rows, mut scale) = (0_i64, 1_i64);
    for &byte in digits.iter().rev() {
        match byte {
            b'0'..=b'9' => {
                rows = rows.checked_add(scale.checked_mul(i64::from(byte - b'0'))?)?;
                scale = scale.saturating_mul(10);
            }
            b' ' if scale > 1 => return Some(rows),
            _ => return None,
        }
    }
    None
}

/// Returns an iterator over the columns of a `DataRow` body; a column is `None` if it is NULL.
pub fn columns(body: &[u8]) -> Columns<'_> {
    let (count, rest) = body.split_at_checked(2).unwrap_or((&[0, 0], &[]));
    Columns { left: u16::from_be_bytes([count[0], count[1]]), rest }
}

/// Iterator over the columns of a row; see [`columns`].
#[derive(Debug)]
pub struct Columns<'a> {
    left: u16,
    rest: &'a [u8],
}

impl<'a> Iterator for Columns<'a> {
    type Item = Result<Option<&'a [u8]>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let torn = || Some(Err(WireError::Protocol("a torn row".into())));
        let Some((length, rest)) = self.rest.split_first_chunk::<4>() else { return torn() };
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.rest = rest;
            return Some(Ok(None));
        };
        let Some((value, rest)) = rest.split_at_checked(length) else { return torn() };
        self.rest = rest;
        Some(Ok(Some(value)))
    }
}

/// Returns the column names of a `RowDescription` body.
///
/// # Errors
/// The body is too short.
pub fn column_names(body: &[u8]) -> Result<Vec<String>, WireError> {
    let torn = || WireError::Protocol("a torn row description".into());
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(torn)?;
    let mut names = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let end = rest.iter().position(|&b| b == 0).ok_or_else(torn)?;
        names.push(String::from_utf8_lossy(&rest[..end]).into_owned());
        rest = rest.get(end + 19..).ok_or_else(torn)?;
    }
    Ok(names)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Read;

    use super::*;
    use crate::wire::buffer::START_BYTES;
    use proptest::prelude::*;

    /// Reader that returns its bytes in portions of this size.
    pub(crate) struct Torn<'a>(pub &'a [u8], pub usize);

    impl Read for Torn<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buf.len());
            buf[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    /// Returns a message; the client's own [`frame`](super::frame) is under test.
    pub(crate) fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut out = vec![tag];
        out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        out.extend_from_slice(body);
        out
    }

    #[test]
    fn rows_come_from_the_end_of_the_tag() {
        assert_eq!(tag_rows(b"SELECT 12\0"), Some(12));
        assert_eq!(tag_rows(b"INSERT 0 3\0"), Some(3));
        assert_eq!(tag_rows(b"UPDATE 0\0"), Some(0));
        assert_eq!(tag_rows(b"BEGIN\0"), None);
        assert_eq!(tag_rows(b"CREATE TABLE\0"), None);
        assert_eq!(tag_rows(b" 99999999999999999999\0"), None);
        assert_eq!(tag_rows(b""), None);
    }

    /// Reads until there is a complete message, or no more bytes.
    fn read(inbox: &mut Inbox, source: &mut impl Read, keep: Keep) -> Result<Message, WireError> {
        loop {
            if let Some(message) = inbox.next(|_| keep)? {
                return Ok(message);
            }
            inbox.buffer.fill(source)?;
        }
    }

    #[test]
    fn garbage_is_refused_at_once() {
        for bytes in [&b"HTTP/1.1 400 Bad"[..], &b"\x16\x03\x01\x02\x00"[..], &b"Z\0\0\0\x03"[..]] {
            let result = read(&mut Inbox::default(), &mut Torn(bytes, 64), Keep::All);
            assert!(matches!(result, Err(WireError::Protocol(_))), "{result:?}");
        }
    }

    #[test]
    fn five_bytes_cost_no_more_than_five_bytes() {
        let mut claim = vec![b'E'];
        claim.extend_from_slice(&(1_u32 << 30).to_be_bytes());
        let refused = read(&mut Inbox::before_login(), &mut Torn(&claim, 64), Keep::All);
        assert!(matches!(refused, Err(WireError::Protocol(_))), "{refused:?}");
        for tag in [b'E', b'D', b'T', b'N'] {
            claim[0] = tag;
            let mut inbox = Inbox::default();
            let waiting = read(&mut inbox, &mut Torn(&claim, 64), Keep::All);
            assert!(matches!(waiting, Err(WireError::Closed)), "{waiting:?}");
            assert_eq!(inbox.buffer.room(), START_BYTES);
        }
    }

    #[test]
    fn the_buffer_grows_with_what_has_come() {
        let bytes = frame(b'D', &vec![7; 300_000]);
        let mut inbox = Inbox::default();
        let torn = read(&mut inbox, &mut Torn(&bytes[..100_000], 9_000), Keep::All);
        assert!(matches!(torn, Err(WireError::Closed)) && inbox.buffer.room() < 200_000, "{}", inbox.buffer.room());
        let mut inbox = Inbox::default();
        let whole = read(&mut inbox, &mut Torn(&bytes, 9_000), Keep::Start(5_000)).expect("a message");
        assert_eq!((whole.body.len(), whole.cut, inbox.buffer.room()), (5_000, true, START_BYTES));
    }

    #[test]
    fn the_end_in_the_middle_of_a_message_is_a_closed_connection() {
        let bytes = frame(b'C', b"SELECT 1\0");
        for cut in 0..bytes.len() {
            let result = read(&mut Inbox::default(), &mut Torn(&bytes[..cut], 3), Keep::All);
            assert!(matches!(result, Err(WireError::Closed)), "{cut}: {result:?}");
        }
    }

    proptest! {
        #[test]
        fn messages_survive_any_tearing(
            bodies in prop::collection::vec(0_usize..40_000, 1..8),
            portion in 1_usize..9_000,
            skip in any::<u8>(),
        ) {
            let mut bytes: Vec<u8> =
                bodies.iter().flat_map(|&len| frame(b'D', &vec![len as u8; len])).collect();
            bytes.extend(frame(b'Z', b"I"));
            let mut inbox = Inbox::default();
            let mut source = Torn(&bytes, portion);
            for (index, &len) in bodies.iter().enumerate() {
                let keep = [Keep::All, Keep::Nothing, Keep::Start(1_000)][usize::from(skip >> index) % 3];
                let message = read(&mut inbox, &mut source, keep).expect("a message");
                prop_assert_eq!(message.tag, b'D');
                let body = inbox.bytes(&message.body);
                let kept = match keep {
                    Keep::Nothing => 0,
                    Keep::Start(bytes) => len.min(bytes),
                    Keep::All => len,
                };
                prop_assert_eq!((body.len(), message.cut), (kept, kept < len));
                prop_assert!(body.iter().all(|&b| b == len as u8));
            }
            let last = read(&mut inbox, &mut source, Keep::All).expect("a message");
            prop_assert_eq!((last.tag, inbox.bytes(&last.body)), (b'Z', &b"I"[..]));
        }

        #[test]
        fn no_bytes_make_the_parsers_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = tag_rows(&bytes);
            let _ = crate::wire::ServerError::parse(&bytes);
            let _ = column_names(&bytes);
            let _ = columns(&bytes).count();
            let mut inbox = Inbox::default();
            let mut source = Torn(&bytes, 200);
            let keep = [Keep::All, Keep::Nothing, Keep::Start(3)][bytes.len() % 3];
            while read(&mut inbox, &mut source, keep).is_ok() {}
        }
    }
}

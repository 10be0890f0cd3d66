//! Cuts the server's bytes into messages: one buffer per connection, no allocation per message.
//!
//! A message is a type byte, a length that counts itself, and a body. Bodies nobody needs are
//! skipped in place, so a large result never has to fit into the buffer. What is too long to be
//! true for its type is refused at once instead of being waited for.

use std::fmt;
use std::io::Read;

use super::WireError;

const START_BYTES: usize = 16 << 10;
/// Longest body of a message that carries no data; libpq draws the line at the same place.
const SHORT_BYTES_MAX: usize = 30_000;
/// Longest body at all: the server cannot make longer ones.
const LONG_BYTES_MAX: usize = 1 << 30;

/// Type and body length of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The type byte.
    pub tag: u8,
    /// Bytes of the body.
    pub len: usize,
}

/// Incoming bytes of one connection.
#[derive(Debug)]
pub struct Inbox {
    buffer: Vec<u8>,
    head: usize,
    tail: usize,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { buffer: vec![0; START_BYTES], head: 0, tail: 0 }
    }
}

impl Inbox {
    /// Bytes received and not yet taken.
    pub fn pending(&self) -> usize {
        self.tail - self.head
    }

    /// The next message's head.
    pub fn head(&mut self, source: &mut impl Read) -> Result<Head, WireError> {
        self.need(5, source)?;
        let b = &self.buffer[self.head..self.head + 5];
        let (tag, length) = (b[0], u32::from_be_bytes([b[1], b[2], b[3], b[4]]) as usize);
        self.head += 5;
        let limit = limit_bytes(tag)?;
        if length < 4 || length - 4 > limit {
            return Err(WireError::Protocol(format!(
                "message {:?} of {length} bytes",
                char::from(tag)
            )));
        }
        Ok(Head { tag, len: length - 4 })
    }

    /// The whole body, which is taken.
    pub fn body(&mut self, len: usize, source: &mut impl Read) -> Result<&[u8], WireError> {
        self.need(len, source)?;
        let start = self.head;
        self.head += len;
        Ok(&self.buffer[start..start + len])
    }

    /// Takes a body without looking at it, however long.
    pub fn skip(&mut self, len: usize, source: &mut impl Read) -> Result<(), WireError> {
        let mut left = len;
        loop {
            let step = left.min(self.pending());
            self.head += step;
            left -= step;
            if left == 0 {
                return Ok(());
            }
            self.fill(source)?;
        }
    }

    #[inline]
    fn need(&mut self, len: usize, source: &mut impl Read) -> Result<(), WireError> {
        if self.pending() >= len {
            return Ok(());
        }
        if self.head + len > self.buffer.len() {
            self.buffer.copy_within(self.head..self.tail, 0);
            self.tail -= self.head;
            self.head = 0;
            if len > self.buffer.len() {
                self.buffer.resize(len.next_power_of_two(), 0);
            }
        }
        while self.pending() < len {
            self.fill(source)?;
        }
        Ok(())
    }

    fn fill(&mut self, source: &mut impl Read) -> Result<(), WireError> {
        if self.head == self.tail {
            self.head = 0;
            self.tail = 0;
        }
        loop {
            match source.read(&mut self.buffer[self.tail..]) {
                Ok(0) => return Err(WireError::Closed),
                Ok(count) => {
                    self.tail += count;
                    return Ok(());
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// How long a body of this type may be; an error for types that the server never sends.
fn limit_bytes(tag: u8) -> Result<usize, WireError> {
    match tag {
        b'D' | b'T' | b'd' | b'E' | b'N' | b'A' | b't' | b'V' => Ok(LONG_BYTES_MAX),
        b'1' | b'2' | b'3' | b'C' | b'G' | b'H' | b'I' | b'K' | b'R' | b'S' | b'W' | b'Z'
        | b'c' | b'n' | b's' | b'v' => Ok(SHORT_BYTES_MAX),
        other => Err(WireError::Protocol(format!("message type 0x{other:02x}"))),
    }
}

/// The rows a `CommandComplete` body counts: the last word of `SELECT 1`, `INSERT 0 1`, `COPY 5`.
/// Reads from the end, so that neither the verb nor UTF-8 is looked at.
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

/// The columns of a `DataRow` body; `None` is NULL.
pub fn columns(body: &[u8]) -> Columns<'_> {
    let (count, rest) = body.split_at_checked(2).unwrap_or((&[0, 0], &[]));
    Columns { left: u16::from_be_bytes([count[0], count[1]]), rest }
}

/// See [`columns`].
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

/// The column names of a `RowDescription` body.
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

/// What the server says when it refuses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL`, `PANIC`, not translated.
    pub severity: String,
    /// SQLSTATE.
    pub code: String,
    /// The message.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// The server's own advice.
    pub hint: Option<String>,
}

impl ServerError {
    /// From the body of an `ErrorResponse`; whatever is missing stays empty.
    pub fn parse(body: &[u8]) -> Self {
        let mut error = Self::default();
        let mut localised = String::new();
        for field in body.split(|&b| b == 0) {
            let Some((kind, text)) = field.split_first() else { continue };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                b'S' => localised = text,
                b'V' => error.severity = text,
                b'C' => error.code = text,
                b'M' => error.message = text,
                b'D' => error.detail = Some(text),
                b'H' => error.hint = Some(text),
                _ => {}
            }
        }
        if error.severity.is_empty() {
            error.severity = localised;
        }
        if error.code.len() != 5 {
            error.code = "XX000".into();
        }
        error
    }

    /// A refusal of our own, in the form of the server's.
    pub fn ours(code: &str, message: String) -> Self {
        Self { severity: "ERROR".into(), code: code.into(), message, ..Self::default() }
    }

    /// Whether the server ends the connection after it.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (SQLSTATE {})", self.severity, self.message, self.code)?;
        if let Some(detail) = &self.detail {
            write!(f, "; {detail}")?;
        }
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; hint: {hint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hands out its bytes in the given portions.
    struct Torn<'a>(&'a [u8], usize);

    impl Read for Torn<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buf.len());
            buf[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
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

    #[test]
    fn an_error_keeps_its_fields() {
        let body = b"SFEHLER\0VERROR\0C23505\0Mduplicate\0DKey (id)=(1)\0Htry 2\0\0";
        let error = ServerError::parse(body);
        assert_eq!(error.code, "23505");
        assert!(!error.is_fatal());
        assert_eq!(
            error.to_string(),
            "ERROR: duplicate (SQLSTATE 23505); Key (id)=(1); hint: try 2"
        );
        assert_eq!(ServerError::parse(b"junk").code, "XX000");
    }

    #[test]
    fn garbage_is_refused_at_once() {
        for bytes in [&b"HTTP/1.1 400 Bad"[..], &b"\x16\x03\x01\x02\x00"[..], &b"Z\0\0\0\x03"[..]] {
            let result = Inbox::default().head(&mut Torn(bytes, 64));
            assert!(matches!(result, Err(WireError::Protocol(_))), "{result:?}");
        }
    }

    #[test]
    fn the_end_in_the_middle_of_a_message_is_a_closed_connection() {
        let bytes = frame(b'C', b"SELECT 1\0");
        for cut in 0..bytes.len() {
            let mut inbox = Inbox::default();
            let mut source = Torn(&bytes[..cut], 3);
            let result = match inbox.head(&mut source) {
                Ok(head) => inbox.body(head.len, &mut source).map(<[u8]>::len),
                Err(e) => Err(e),
            };
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
            let bytes: Vec<u8> =
                bodies.iter().flat_map(|&len| frame(b'D', &vec![len as u8; len])).collect();
            let mut inbox = Inbox::default();
            let mut source = Torn(&bytes, portion);
            for (index, &len) in bodies.iter().enumerate() {
                let head = inbox.head(&mut source).expect("a head");
                prop_assert_eq!(head, Head { tag: b'D', len });
                if skip >> index & 1 == 1 {
                    inbox.skip(len, &mut source).expect("skips");
                } else {
                    let body = inbox.body(len, &mut source).expect("a body");
                    prop_assert!(body.iter().all(|&b| b == len as u8));
                }
            }
            prop_assert_eq!(inbox.pending(), 0);
        }

        #[test]
        fn no_bytes_make_the_parsers_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = tag_rows(&bytes);
            let _ = ServerError::parse(&bytes);
            let _ = column_names(&bytes);
            let _ = columns(&bytes).count();
            let _ = Inbox::default().head(&mut Torn(&bytes, 200));
        }
    }
}

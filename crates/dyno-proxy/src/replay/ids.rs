//! Mapping of generated keys: captured values to values of the replay.
//!
//! If a statement with RETURNING returned 17 in the capture and returns 23 now, 17 is replaced by 23 in everything
//! that is sent afterwards: in parameters of either format, and in literals of texts. Integers and other values
//! (UUIDs) are distinguished; an integer is the same in text and in binary form.
//!
//! Limits: a value that happens to equal an old key without being one is replaced, too; the number of replacements is
//! reported. If a key's number had been sent before the key was generated, it meant something else then; that is
//! counted as a doubt about the whole mapping.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::framing::text;
use dyno_evidence::normal::{Piece, pieces};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    Number(i64),
    Bytes(Vec<u8>),
}

impl Value {
    fn of(bytes: &[u8]) -> Self {
        let words = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
        match words {
            Some(number) => Self::Number(number),
            // Two bytes are more likely a text of two letters.
            None if bytes.len() == 2 => Self::Bytes(bytes.to_vec()),
            None => Self::of_binary(bytes),
        }
    }

    /// Interprets a parameter in binary form: an integer of two, four or eight bytes, or bytes.
    fn of_binary(bytes: &[u8]) -> Self {
        let two = |bytes: [u8; 2]| i16::from_be_bytes(bytes).into();
        let four = |bytes: [u8; 4]| i32::from_be_bytes(bytes).into();
        let number = match bytes.len() {
            2 => bytes.try_into().ok().map(two),
            4 => bytes.try_into().ok().map(four),
            8 => bytes.try_into().ok().map(i64::from_be_bytes),
            _ => None,
        };
        number.map_or_else(|| Self::Bytes(bytes.to_vec()), Self::Number)
    }

    fn as_text(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Number(number) => number.to_string().into_bytes(),
        }
    }

    /// Encodes the value in binary form with the old length; `None` if it does not fit.
    fn as_binary(&self, length: usize) -> Option<Vec<u8>> {
        match (self, length) {
            (Self::Bytes(bytes), _) => Some(bytes.clone()),
            (Self::Number(number), 2) => Some(i16::try_from(*number).ok()?.to_be_bytes().to_vec()),
            (Self::Number(number), 4) => Some(i32::try_from(*number).ok()?.to_be_bytes().to_vec()),
            (Self::Number(number), 8) => Some(number.to_be_bytes().to_vec()),
            _ => None,
        }
    }
}

/// Largest number of sent integers that are remembered.
const SENT_MOST: usize = 1 << 20;

/// Mapping of old values to new ones.
#[derive(Debug, Default)]
pub struct Ids {
    known: Mutex<HashMap<Value, Value>>,
    /// Integers that were sent.
    sent: Mutex<HashSet<i64>>,
    early: AtomicU64,
}

impl Ids {
    /// Learns from a row that was returned in the capture and the corresponding row of now.
    pub fn learn(&self, then: &[u8], now: &[u8]) {
        let (Some(then), Some(now)) = (columns(then), columns(now)) else { return };
        for (old, new) in then.iter().zip(&now) {
            if let (Some(old), Some(new)) = (old, new)
                && old != new
            {
                let old = Value::of(old);
                if let Value::Number(number) = old
                    && self.sent.lock().unwrap_or_else(PoisonError::into_inner).contains(&number)
                {
                    self.early.fetch_add(1, Ordering::Relaxed);
                }
                let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                known.insert(old, Value::of(new));
            }
        }
    }

    /// Returns the number of mapped values.
    pub fn len(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the number of keys whose value had been sent before: it is used for something else, too.
    pub fn early(&self) -> u64 {
        self.early.load(Ordering::Relaxed)
    }

    /// Returns true if no value is mapped.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn instead(&self, old: &[u8], is_binary: bool) -> Option<Vec<u8>> {
        let value = if is_binary { Value::of_binary(old) } else { Value::of(old) };
        if let Value::Number(number) = value {
            let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
            if sent.len() < SENT_MOST {
                sent.insert(number);
            }
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = known.get(&value)?;
        if is_binary { new.as_binary(old.len()) } else { Some(new.as_text()) }
    }

    /// Returns a message body with replaced values and their number; `None` if nothing is replaced.
    pub fn mapped(&self, tag: u8, body: &[u8]) -> Option<(Vec<u8>, u64)> {
        match tag {
            b'B' => self.in_bind(body),
            b'Q' => self.in_text(text(body).0).map(|(mut sql, count)| {
                sql.push(0);
                (sql, count)
            }),
            b'P' => {
                let (name, rest) = text(body);
                let (sql, types) = text(rest);
                let (sql, count) = self.in_text(sql)?;
                Some(([name, &[0], &sql, &[0], types].concat(), count))
            }
            _ => None,
        }
    }

    fn in_text(&self, sql: &[u8]) -> Option<(Vec<u8>, u64)> {
        let (mut out, mut count) = (Vec::with_capacity(sql.len()), 0);
        for piece in pieces(sql) {
            let (Piece::Literal(range) | Piece::Space(range) | Piece::Other(range)) = piece.clone();
            let bytes = &sql[range];
            let quoted = bytes.strip_prefix(b"'").and_then(|rest| rest.strip_suffix(b"'"));
            let new =
                matches!(piece, Piece::Literal(_)).then(|| self.instead(quoted.unwrap_or(bytes), false)).flatten();
            let Some(new) = new else {
                out.extend_from_slice(bytes);
                continue;
            };
            count += 1;
            let quote: &[u8] = if quoted.is_some() { b"'" } else { b"" };
            out.extend_from_slice(&[quote, &new, quote].concat());
        }
        (count > 0).then_some((out, count))
    }

    fn in_bind(&self, body: &[u8]) -> Option<(Vec<u8>, u64)> {
        let (_, rest) = text(body);
        let (_, rest) = text(rest);
        let formats = usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?]));
        let values = rest.get(2 + 2 * formats..)?;
        // No formats: all values are text; one format: it applies to all.
        let is_binary = |place: usize| match formats {
            0 => false,
            1 => rest[3] == 1,
            _ => rest.get(3 + 2 * place) == Some(&1),
        };
        let head = body.len() - values.len();
        let mut out = body[..head + 2].to_vec();
        let (mut at, mut count) = (2, 0);
        for place in 0..usize::from(u16::from_be_bytes([*values.first()?, *values.get(1)?])) {
            let length = i32::from_be_bytes(values.get(at..at + 4)?.try_into().ok()?);
            at += 4;
            let Ok(size) = usize::try_from(length) else {
                out.extend_from_slice(&length.to_be_bytes());
                continue;
            };
            let old = values.get(at..at + size)?;
            at += size;
            let new = self.instead(old, is_binary(place));
            count += u64::from(new.is_some());
            let value = new.as_deref().unwrap_or(old);
            out.extend_from_slice(&(value.len() as i32).to_be_bytes());
            out.extend_from_slice(value);
        }
        out.extend_from_slice(&values[at..]);
        (count > 0).then_some((out, count))
    }
}

/// Returns the values of a row in the protocol's form.
fn columns(row: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let mut at = 2;
    let mut found = Vec::new();
    for _ in 0..u16::from_be_bytes([*row.first()?, *row.get(1)?]) {
        let length = i32::from_be_bytes(row.get(at..at + 4)?.try_into().ok()?);
        at += 4;
        let Ok(size) = usize::try_from(length) else {
            found.push(None);
            continue;
        };
        found.push(Some(row.get(at..at + size)?));
        at += size;
    }
    Some(found)
}

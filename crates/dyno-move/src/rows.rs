//! Parsing of COPY's binary form into rows, wherever its bytes are split.
//!
//! The server normally sends one row per message; a proxy may split them differently. An incomplete row is kept until
//! the rest has arrived.

use crate::error::MoveError;

/// First bytes of COPY's binary form.
pub const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// Length of the header [bytes]: signature, flags, length of an extension.
const HEAD_BYTES: usize = 19;

/// Longest row that PostgreSQL sends, which is the limit of one message [bytes].
const ROW_BYTES_MAX: usize = 1 << 30;

/// Offset and length of a value in its row; a length below 0 is NULL.
type Slot = (usize, i32);

/// Parser of the rows of one COPY.
#[derive(Debug)]
pub struct Cutter {
    columns: usize,
    slots: Vec<Slot>,
    kept: Vec<u8>,
    begun: bool,
    ended: bool,
}

impl Cutter {
    /// Returns a parser for rows with this number of columns.
    pub fn new(columns: usize) -> Self {
        Self { columns, slots: vec![(0, 0); columns], kept: Vec::new(), begun: false, ended: false }
    }

    /// Parses bytes and calls `row` with each complete row.
    ///
    /// # Errors
    /// The bytes are not in COPY's form, or `row` fails.
    #[inline]
    pub fn push(
        &mut self,
        bytes: &[u8],
        mut row: impl FnMut(&Row<'_>) -> Result<(), MoveError>,
    ) -> Result<(), MoveError> {
        if self.kept.is_empty() {
            let used = self.cut(bytes, &mut row)?;
            return keep(&mut self.kept, &bytes[used..]);
        }
        let mut all = std::mem::take(&mut self.kept);
        keep(&mut all, bytes)?;
        let used = self.cut(&all, &mut row)?;
        all.drain(..used);
        self.kept = all;
        Ok(())
    }

    /// Returns true if the end has arrived, with nothing after it.
    pub fn is_whole(&self) -> bool {
        self.ended && self.kept.is_empty()
    }

    fn cut(
        &mut self,
        bytes: &[u8],
        row: &mut impl FnMut(&Row<'_>) -> Result<(), MoveError>,
    ) -> Result<usize, MoveError> {
        let mut at = 0;
        if !self.begun {
            let Some(length) = head(bytes)? else { return Ok(0) };
            (self.begun, at) = (true, length);
        }
        loop {
            let Some(count) = bytes.get(at..at + 2) else { return Ok(at) };
            let count = i16::from_be_bytes([count[0], count[1]]);
            if self.ended {
                return Err(MoveError::Stream("bytes after the end".into()));
            }
            if count == -1 {
                (self.ended, at) = (true, at + 2);
                continue;
            }
            if usize::try_from(count) != Ok(self.columns) {
                return Err(MoveError::Stream(format!("a row of {count} columns instead of {}", self.columns)));
            }
            let Some(end) = self.find(bytes, at + 2)? else { return Ok(at) };
            row(&Row { bytes, slots: &self.slots, raw: &bytes[at..end] })?;
            at = end;
        }
    }

    /// Fills the slots; returns the end of the row, or `None` if it is incomplete.
    #[inline]
    fn find(&mut self, bytes: &[u8], mut at: usize) -> Result<Option<usize>, MoveError> {
        for slot in &mut self.slots {
            let Some(length) = bytes.get(at..at + 4).and_then(|head| head.first_chunk::<4>()) else { return Ok(None) };
            let length = i32::from_be_bytes(*length);
            at += 4;
            *slot = (at, length);
            match length {
                -1 => {}
                0.. => at += length as usize,
                _ => return Err(MoveError::Stream(format!("a value of {length} bytes"))),
            }
        }
        Ok((at <= bytes.len()).then_some(at))
    }
}

/// Keeps the bytes of an incomplete row.
fn keep(kept: &mut Vec<u8>, bytes: &[u8]) -> Result<(), MoveError> {
    if kept.len() + bytes.len() > ROW_BYTES_MAX {
        return Err(MoveError::Stream(format!("a row of more than {ROW_BYTES_MAX} bytes")));
    }
    kept.try_reserve(bytes.len())
        .map_err(|_| MoveError::Stream(format!("no memory for a row after {}", kept.len())))?;
    kept.extend_from_slice(bytes);
    Ok(())
}

/// Complete row.
#[derive(Debug)]
pub struct Row<'a> {
    bytes: &'a [u8],
    slots: &'a [Slot],
    raw: &'a [u8],
}

impl<'a> Row<'a> {
    /// Returns the row as received: the number of columns, then lengths and values.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Returns the value of a column; `None` is NULL.
    #[inline]
    pub fn value(&self, column: usize) -> Option<&'a [u8]> {
        let (at, length) = self.slots[column];
        usize::try_from(length).ok().map(|length| &self.bytes[at..at + length])
    }
}

/// Returns the length of the header, or `None` if it is incomplete.
fn head(bytes: &[u8]) -> Result<Option<usize>, MoveError> {
    let here = bytes.len().min(SIGNATURE.len());
    if bytes[..here] != SIGNATURE[..here] {
        return Err(MoveError::Stream("not COPY's signature".into()));
    }
    let Some(rest) = bytes.get(SIGNATURE.len()..HEAD_BYTES) else { return Ok(None) };
    if rest != [0; 8] {
        return Err(MoveError::Stream("flags or an extension that are not known".into()));
    }
    Ok(Some(HEAD_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(rows: &[Vec<Option<Vec<u8>>>]) -> Vec<u8> {
        let mut out = SIGNATURE.to_vec();
        out.extend_from_slice(&[0; 8]);
        for row in rows {
            out.extend_from_slice(&(row.len() as i16).to_be_bytes());
            for value in row {
                out.extend_from_slice(&value.as_ref().map_or(-1, |value| value.len() as i32).to_be_bytes());
                out.extend_from_slice(value.as_deref().unwrap_or_default());
            }
        }
        out.extend_from_slice(&(-1_i16).to_be_bytes());
        out
    }

    proptest! {
        #[test]
        fn rows_survive_any_tearing(
            rows in prop::collection::vec(
                prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..40)), 3), 0..20),
            portion in 1_usize..90,
        ) {
            let bytes = stream(&rows);
            let mut cutter = Cutter::new(3);
            let mut found = Vec::new();
            for part in bytes.chunks(portion) {
                cutter.push(part, |row| {
                    found.push((0..3).map(|column| row.value(column).map(<[u8]>::to_vec)).collect::<Vec<_>>());
                    Ok(())
                }).expect("whole");
            }
            prop_assert!(cutter.is_whole());
            prop_assert_eq!(found, rows);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), head in any::<bool>()) {
            let mut all = if head { [&SIGNATURE[..], &[0; 8]].concat() } else { Vec::new() };
            all.extend(bytes);
            let mut cutter = Cutter::new(2);
            for part in all.chunks(7) {
                if cutter.push(part, |_| Ok(())).is_err() {
                    break;
                }
            }
        }
    }

    #[test]
    fn a_stream_without_its_end_is_not_whole() {
        let bytes = stream(&[vec![Some(b"x".to_vec())]]);
        let mut cutter = Cutter::new(1);
        cutter.push(&bytes[..bytes.len() - 2], |_| Ok(())).expect("rows");
        assert!(!cutter.is_whole());
        let more = [&bytes[..], &[0, 1]].concat();
        assert!(Cutter::new(1).push(&more, |_| Ok(())).is_err());
        assert!(Cutter::new(2).push(&bytes, |_| Ok(())).is_err());
        assert!(Cutter::new(1).push(b"HTTP/1.1", |_| Ok(())).is_err());
    }
}

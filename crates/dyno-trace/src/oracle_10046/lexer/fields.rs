//! Careful path through a line: `name=value` pairs in any order.

use super::numbers;
use crate::oracle_10046::record::{NONE, Reason};

/// The fields of a line.
pub(super) struct Fields<'a> {
    line: &'a [u8],
    at: usize,
    separator: u8,
}

/// A field; `start` and `end` bound the value in the line.
pub(super) struct Field<'a> {
    pub name: &'a [u8],
    pub value: &'a [u8],
    pub start: usize,
}

impl<'a> Fields<'a> {
    /// Returns the fields of `line` from `at` on, separated by `separator` (blanks around it are ignored).
    pub(super) fn new(line: &'a [u8], at: usize, separator: u8) -> Self {
        Fields { line, at, separator }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    /// Returns the next field; a piece without `=` has its text as the name and an empty value.
    fn next(&mut self) -> Option<Field<'a>> {
        let line = self.line;
        while line.get(self.at).is_some_and(|b| *b == self.separator || *b == b' ') {
            self.at += 1;
        }
        if self.at >= line.len() {
            return None;
        }
        let name_start = self.at;
        let stop = |from: usize, what: u8| memchr::memchr(what, &line[from..]).map_or(line.len(), |found| from + found);
        let equals = memchr::memchr2(b'=', self.separator, &line[name_start..]);
        let Some(equals) = equals.map(|e| name_start + e).filter(|e| line[*e] == b'=') else {
            let end = stop(name_start, self.separator);
            self.at = end;
            return Some(Field { name: &line[name_start..end], value: &[], start: end });
        };
        let mut start = equals + 1;
        let end;
        if line.get(start) == Some(&b'\'') {
            start += 1;
            end = stop(start, b'\'');
            self.at = (end + 1).min(line.len());
            if end == line.len() {
                // The closing quote is missing: the value is cut.
                return Some(Field { name: &line[name_start..end], value: &[], start: end });
            }
        } else {
            end = stop(start, self.separator);
            self.at = end;
        }
        let value = &line[start..end];
        Some(Field { name: &line[name_start..equals], value, start })
    }
}

/// First fault of a line; `None` if the line is intact.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults(pub(super) Option<Reason>);

impl Faults {
    /// Records a fault.
    pub(super) fn note(&mut self, reason: Reason) {
        self.0.get_or_insert(reason);
    }

    /// Records a torn line if `is_torn`.
    pub(super) fn torn_if(&mut self, is_torn: bool) {
        if is_torn {
            self.note(Reason::Torn);
        }
    }

    /// Parses a number; if it is invalid, records a fault and returns `NONE`.
    pub(super) fn number(&mut self, value: &[u8]) -> i64 {
        self.take(numbers::signed(value), NONE)
    }

    /// Parses a time of the trace's clock; if it is invalid, records a fault and returns `NONE`.
    pub(super) fn clock(&mut self, value: &[u8]) -> i64 {
        self.take(numbers::clock(value), NONE)
    }

    /// Parses a number below 255; if it is invalid, records a fault and returns 255.
    pub(super) fn small(&mut self, value: &[u8]) -> u8 {
        let number = numbers::unsigned(value).and_then(|number| match number {
            0..=254 => Ok(number as u8),
            _ => Err(Reason::TooLarge),
        });
        self.take(number, 255)
    }

    /// Parses a cursor number; if it is invalid, records a fault and returns 0.
    pub(super) fn cursor(&mut self, value: &[u8]) -> u64 {
        self.take(numbers::unsigned(value), 0)
    }

    /// Returns the parsed value; if parsing failed, records the fault and returns `missing`.
    pub(super) fn take<T>(&mut self, value: Result<T, Reason>, missing: T) -> T {
        value.unwrap_or_else(|reason| {
            self.note(reason);
            missing
        })
    }
}

/// Returns the end of the digits that begin at `at`.
pub(super) fn digits_end(line: &[u8], at: usize) -> usize {
    let rest = line.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

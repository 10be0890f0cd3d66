//! Values of a row in the binary form, which are read without copying.

use super::packet::Reader;
use super::result::Column;
use super::statement::kind;
use crate::wire::WireError;

/// Value of a row; integers are widened to 64 bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WireValue<'a> {
    /// NULL.
    Null,
    /// Signed integer.
    Int(i64),
    /// Unsigned integer.
    Uint(u64),
    /// Single-precision number.
    Float(f32),
    /// Double-precision number.
    Double(f64),
    /// Text, bytes, or the digits of a decimal.
    Bytes(&'a [u8]),
    /// Date, or date and time; if all parts are 0, it is MariaDB's zero date.
    Point(Point),
    /// Duration.
    Span(Span),
}

/// Date and time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Point {
    /// Year, from 0 on.
    pub year: u16,
    /// Month; 0 if unknown.
    pub month: u8,
    /// Day; 0 if unknown.
    pub day: u8,
    /// Time since midnight [us].
    pub us: u64,
}

/// Duration with a sign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// True if the duration is negative.
    pub is_negative: bool,
    /// Length of the duration, without its sign [us].
    pub us: u64,
}

/// Row in the binary form, read value by value.
#[derive(Debug)]
pub struct WireRow<'a> {
    columns: &'a [Column],
    nulls: &'a [u8],
    body: Reader<'a>,
    at: usize,
}

impl<'a> WireRow<'a> {
    pub(super) fn new(body: &'a [u8], columns: &'a [Column]) -> Result<Self, WireError> {
        let mut body = Reader(body);
        body.take(1)?;
        let nulls = body.take((columns.len() + 9) / 8)?;
        Ok(Self { columns, nulls, body, at: 0 })
    }

    /// Returns the next value, or `None` at the end of the row.
    ///
    /// # Errors
    /// The row is too short.
    #[inline]
    pub fn value(&mut self) -> Result<Option<WireValue<'a>>, WireError> {
        let Some(column) = self.columns.get(self.at) else { return Ok(None) };
        let bit = self.at + 2;
        self.at += 1;
        if self.nulls[bit / 8] >> (bit % 8) & 1 == 1 {
            return Ok(Some(WireValue::Null));
        }
        value(column, &mut self.body).map(Some)
    }
}

#[inline]
fn value<'a>(column: &Column, body: &mut Reader<'a>) -> Result<WireValue<'a>, WireError> {
    let mut whole = |bytes: usize| -> Result<WireValue<'a>, WireError> {
        let number = body.number(bytes)?;
        let shift = 64 - 8 * bytes as u32;
        Ok(if column.unsigned { WireValue::Uint(number) } else { WireValue::Int((number << shift) as i64 >> shift) })
    };
    match column.kind {
        kind::TINY => whole(1),
        kind::SHORT | kind::YEAR => whole(2),
        kind::LONG | kind::INT24 => whole(4),
        kind::LONGLONG => whole(8),
        kind::FLOAT => Ok(WireValue::Float(f32::from_bits(body.number(4)? as u32))),
        kind::DOUBLE => Ok(WireValue::Double(f64::from_bits(body.number(8)?))),
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => {
            let mut parts = Parts(body.text()?.unwrap_or_default());
            let (year, month, day) = (parts.next(2) as u16, parts.next(1) as u8, parts.next(1) as u8);
            Ok(WireValue::Point(Point { year, month, day, us: parts.clock() }))
        }
        kind::TIME => {
            let mut parts = Parts(body.text()?.unwrap_or_default());
            let (is_negative, days) = (parts.next(1) != 0, parts.next(4));
            Ok(WireValue::Span(Span { is_negative, us: days * 86_400_000_000 + parts.clock() }))
        }
        kind::NULL => Ok(WireValue::Null),
        _ => Ok(WireValue::Bytes(body.text()?.unwrap_or_default())),
    }
}

/// Parts of a date or time; the server omits trailing parts that are zero.
struct Parts<'a>(&'a [u8]);

impl Parts<'_> {
    fn next(&mut self, bytes: usize) -> u64 {
        let (part, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        part.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    }

    fn clock(&mut self) -> u64 {
        let (hour, minute, second) = (self.next(1), self.next(1), self.next(1));
        (hour * 3600 + minute * 60 + second) * 1_000_000 + self.next(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_zero_may_be_missing() {
        let mut none = Parts(&[]);
        assert_eq!((none.next(2), none.clock()), (0, 0));
        let mut whole = Parts(&[1, 2, 3, 4, 0, 0, 0]);
        assert_eq!(whole.clock(), 3_723_000_004);
    }
}

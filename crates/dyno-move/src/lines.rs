//! Encoding of Arrow arrays as lines of MariaDB's `LOAD DATA`.
//!
//! Fields are separated by tabs, NULL is `\N`, and bytes are in hexadecimal.
//!
//! Values that MariaDB cannot hold are refused here, because the server would alter them and only warn.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, UInt32Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use crate::encode::Place;
use crate::error::MoveError;
use crate::mariadb::{civil_from_days, days_from_civil};

const DAY_US: i64 = 86_400_000_000;
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Returns the type of a staging column that can hold an Arrow type exactly; `None` if dbdyno does not load it.
pub fn mariadb_type(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Boolean => "tinyint(1)".into(),
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "int".into(),
        DataType::Int64 => "bigint".into(),
        DataType::UInt32 => "int unsigned".into(),
        DataType::Float32 => "float".into(),
        DataType::Float64 => "double".into(),
        DataType::Decimal128(precision, scale) if *scale >= 0 => format!("decimal({precision},{scale})"),
        DataType::Date32 => "date".into(),
        DataType::Time64(TimeUnit::Microsecond) => "time(6)".into(),
        DataType::Timestamp(TimeUnit::Microsecond, _) => "datetime(6)".into(),
        DataType::Utf8 => "longtext".into(),
        DataType::Binary => "longblob".into(),
        _ => return None,
    })
}

/// Appends the rows of a batch from `from` on until `out` has `limit` bytes; returns the next row.
///
/// If `place` has a file, its number and the row's number come first in each line.
///
/// # Errors
/// MariaDB cannot accept a row, and `place` does not allow leaving it out.
pub fn lines(
    batch: &RecordBatch,
    from: usize,
    limit: usize,
    place: &mut Place,
    out: &mut Vec<u8>,
) -> Result<usize, MoveError> {
    let mut row = from;
    while row < batch.num_rows() && out.len() < limit {
        let begun = out.len();
        if let Some(file) = place.file {
            write(out, format_args!("{file}\t{}\t", place.number(row)));
        }
        match fields(batch, row, out) {
            Ok(()) => out.push(b'\n'),
            Err((column, reason)) => {
                place.refuse(batch, row, column, reason)?;
                out.truncate(begun);
            }
        }
        row += 1;
    }
    Ok(row)
}

fn fields(batch: &RecordBatch, row: usize, out: &mut Vec<u8>) -> Result<(), (usize, &'static str)> {
    for (place, array) in batch.columns().iter().enumerate() {
        if place > 0 {
            out.push(b'\t');
        }
        if array.is_null(row) {
            out.extend_from_slice(b"\\N");
        } else {
            field(array.as_ref(), row, out).map_err(|reason| (place, reason))?;
        }
    }
    Ok(())
}

fn write(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    // Writing into memory does not fail.
    let _ = write!(out, "{value}");
}

#[inline]
fn field(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
    match array.data_type() {
        DataType::Int64 => write(out, array.as_primitive::<Int64Type>().value(row)),
        DataType::Utf8 => text(array.as_string::<i32>().value(row), out),
        DataType::Utf8View => text(array.as_string_view().value(row), out),
        DataType::Int32 => write(out, array.as_primitive::<Int32Type>().value(row)),
        DataType::Int16 => write(out, array.as_primitive::<Int16Type>().value(row)),
        DataType::Boolean => out.push(b'0' + u8::from(array.as_boolean().value(row))),
        DataType::UInt32 => write(out, array.as_primitive::<UInt32Type>().value(row)),
        DataType::Float32 => {
            let number = array.as_primitive::<Float32Type>().value(row);
            if !number.is_finite() {
                return Err("a number that is not finite, which MariaDB cannot hold");
            }
            // The shortest digits that represent this number exactly.
            write(out, format_args!("{number:e}"));
        }
        DataType::Float64 => {
            let number = array.as_primitive::<Float64Type>().value(row);
            if !number.is_finite() {
                return Err("a number that is not finite, which MariaDB cannot hold");
            }
            write(out, format_args!("{number:e}"));
        }
        DataType::Decimal128(_, scale) => decimal(array.as_primitive::<Decimal128Type>().value(row), *scale, out),
        DataType::Date32 => date(array.as_primitive::<Date32Type>().value(row), out)?,
        DataType::Time64(TimeUnit::Microsecond) => {
            let time = array.as_primitive::<Time64MicrosecondType>().value(row);
            if !(0..=DAY_US).contains(&time) {
                return Err("a time outside a day");
            }
            clock(time, out);
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let moment = array.as_primitive::<TimestampMicrosecondType>().value(row);
            let day = i32::try_from(moment.div_euclid(DAY_US)).map_err(|_| OUT_OF_CALENDAR)?;
            date(day, out)?;
            out.push(b' ');
            clock(moment.rem_euclid(DAY_US), out);
        }
        DataType::Binary => hex(array.as_binary::<i32>().value(row), out),
        DataType::BinaryView => hex(array.as_binary_view().value(row), out),
        _ => return Err("a value of a type that is not loaded"),
    }
    Ok(())
}

const OUT_OF_CALENDAR: &str = "a date that MariaDB cannot hold: its years are 0 to 9999";

fn date(days: i32, out: &mut Vec<u8>) -> Result<(), &'static str> {
    if !(days_from_civil(0, 1, 1)..=days_from_civil(9999, 12, 31)).contains(&days) {
        return Err(OUT_OF_CALENDAR);
    }
    let (year, month, day) = civil_from_days(days);
    write(out, format_args!("{year:04}-{month:02}-{day:02}"));
    Ok(())
}

fn clock(us: i64, out: &mut Vec<u8>) {
    let (seconds, part) = (us / 1_000_000, us % 1_000_000);
    write(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    if part > 0 {
        write(out, format_args!(".{part:06}"));
    }
}

fn decimal(number: i128, scale: i8, out: &mut Vec<u8>) {
    if scale <= 0 {
        return write(out, number);
    }
    let power = 10_u128.pow(u32::from(scale.unsigned_abs()));
    let (whole, part) = (number.unsigned_abs() / power, number.unsigned_abs() % power);
    let sign = if number < 0 { "-" } else { "" };
    write(out, format_args!("{sign}{whole}.{part:0width$}", width = scale.unsigned_abs() as usize));
}

#[inline]
fn text(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut from = 0;
    for at in memchr::memchr3_iter(b'\\', b'\t', b'\n', bytes) {
        out.extend_from_slice(&bytes[from..at]);
        out.push(b'\\');
        from = at;
    }
    out.extend_from_slice(&bytes[from..]);
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Date32Array, Decimal128Array, Float64Array, StringArray};

    use super::*;

    fn of(column: ArrayRef) -> Result<String, MoveError> {
        let batch = RecordBatch::try_from_iter([("c", column)]).expect("a batch");
        let mut out = Vec::new();
        lines(&batch, 0, usize::MAX, &mut Place::default(), &mut out)?;
        Ok(String::from_utf8(out).expect("text"))
    }

    #[test]
    fn what_separates_is_escaped_and_null_is_no_text() {
        let texts = [Some("a\tb\nc\\N"), None, Some("\\N"), Some("")];
        assert_eq!(of(Arc::new(StringArray::from_iter(texts))).expect("lines"), "a\\\tb\\\nc\\\\N\n\\N\n\\\\N\n\n");
    }

    #[test]
    fn a_row_says_where_it_stood_and_a_bad_one_is_left_out() {
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN, 2.0]));
        let batch = RecordBatch::try_from_iter([("c", numbers)]).expect("a batch");
        let (mut place, mut out) = (Place { file: Some(4), before: 10, rejects: true, ..Place::default() }, Vec::new());
        assert_eq!(lines(&batch, 0, usize::MAX, &mut place, &mut out).expect("lines"), 3);
        assert_eq!(String::from_utf8(out).expect("text"), "4\t11\t1e0\n4\t13\t2e0\n");
        assert_eq!(place.refused.iter().map(|one| one.row).collect::<Vec<_>>(), [12]);
    }

    #[test]
    fn decimals_have_their_places() {
        let numbers = Decimal128Array::from(vec![-5, 1234, 0]).with_precision_and_scale(9, 3).expect("typed");
        assert_eq!(of(Arc::new(numbers)).expect("lines"), "-0.005\n1.234\n0.000\n");
    }

    #[test]
    fn what_mariadb_cannot_hold_is_refused() {
        assert!(of(Arc::new(Float64Array::from(vec![f64::NAN]))).is_err());
        assert!(of(Arc::new(Date32Array::from(vec![i32::MAX]))).is_err());
        assert_eq!(
            of(Arc::new(Date32Array::from(vec![-719_528, 2_932_896]))).expect("lines"),
            "0000-01-01\n9999-12-31\n"
        );
    }
}

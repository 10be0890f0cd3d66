//! Conversion of MariaDB's values to COPY's binary form, the only form that the rest of this crate reads.
//!
//! A value that has no such form (a zero date, a time beyond a day) is [`MoveError::Unrepresentable`]: its column
//! must be moved as text.

use dyno_load::{Point, Span, WireRow, WireValue};

use crate::column::{EPOCH_DAYS, EPOCH_US};
use crate::decimal::numeric;
use crate::error::MoveError;
use crate::spec::{ColumnSpec, Kind, TableSpec};

const DAY_US: i64 = 86_400_000_000;

/// Appends a row; if it has one column more than the table, that column is text and names the row's folder.
///
/// # Errors
/// A value has no such form or is not of its column's type, or the connection's bytes are invalid.
pub fn write_row(table: &TableSpec, row: &mut WireRow<'_>, out: &mut Vec<u8>) -> Result<(), MoveError> {
    let start = out.len();
    out.extend_from_slice(&[0; 2]);
    let mut place = 0;
    while let Some(value) = row.value()? {
        if value == WireValue::Null {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
        } else {
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            write_value(table.columns.get(place), value, out)?;
            let length = i32::try_from(out.len() - at - 4)
                .map_err(|_| MoveError::Stream("a value of more than 2 GiB".into()))?;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        place += 1;
    }
    let count = i16::try_from(place).map_err(|_| MoveError::Stream(format!("a row of {place} columns")))?;
    out[start..start + 2].copy_from_slice(&count.to_be_bytes());
    Ok(())
}

fn write_value(spec: Option<&ColumnSpec>, value: WireValue<'_>, out: &mut Vec<u8>) -> Result<(), MoveError> {
    let Some(spec) = spec else {
        return match value {
            WireValue::Bytes(text) => {
                out.extend_from_slice(text);
                Ok(())
            }
            other => Err(MoveError::Stream(format!("{other:?} is not text"))),
        };
    };
    let torn = || MoveError::Stream(format!("column {}: the server sent no {}", spec.name, spec.pg_type));
    let whole = match value {
        WireValue::Int(number) => Some(i128::from(number)),
        WireValue::Uint(number) => Some(i128::from(number)),
        _ => None,
    };
    match (spec.kind, value) {
        (Kind::Bool, _) => out.push(u8::from(whole.ok_or_else(torn)? != 0)),
        (Kind::Int2, _) => out.extend(whole.and_then(|n| i16::try_from(n).ok()).ok_or_else(torn)?.to_be_bytes()),
        (Kind::Int4, _) => out.extend(whole.and_then(|n| i32::try_from(n).ok()).ok_or_else(torn)?.to_be_bytes()),
        (Kind::Int8, _) => out.extend(whole.and_then(|n| i64::try_from(n).ok()).ok_or_else(torn)?.to_be_bytes()),
        (Kind::Oid, _) => out.extend(whole.and_then(|n| u32::try_from(n).ok()).ok_or_else(torn)?.to_be_bytes()),
        (Kind::Float4, WireValue::Float(number)) => out.extend(number.to_be_bytes()),
        (Kind::Float8, WireValue::Double(number)) => out.extend(number.to_be_bytes()),
        (Kind::Float8, WireValue::Float(number)) => out.extend(f64::from(number).to_be_bytes()),
        (Kind::Decimal, WireValue::Bytes(text)) => {
            numeric(units(text, spec.scale).ok_or_else(torn)?, spec.scale, out);
        }
        (Kind::Decimal, _) => {
            let number = whole.ok_or_else(torn)?;
            let power = 10_i128.pow(spec.scale.max(0).unsigned_abs().into());
            numeric(number.checked_mul(power).ok_or_else(torn)?, spec.scale, out);
        }
        (Kind::Date, WireValue::Point(point)) => out.extend((day(spec, point)? - EPOCH_DAYS).to_be_bytes()),
        (Kind::Timestamp | Kind::Timestamptz, WireValue::Point(point)) => {
            let moment = i64::from(day(spec, point)?) * DAY_US + point.us as i64 - EPOCH_US;
            out.extend(moment.to_be_bytes());
        }
        (Kind::Time, WireValue::Span(Span { is_negative, us })) => {
            if (is_negative && us > 0) || us >= DAY_US as u64 {
                return Err(cannot(spec, "a time outside a day"));
            }
            out.extend((us as i64).to_be_bytes());
        }
        (Kind::Text | Kind::Bytea, WireValue::Bytes(bytes)) => out.extend_from_slice(bytes),
        _ => return Err(torn()),
    }
    Ok(())
}

#[cold]
fn cannot(spec: &ColumnSpec, what: &'static str) -> MoveError {
    MoveError::Unrepresentable { column: spec.name.clone(), what, holder: format!("{:?}", spec.kind).to_lowercase() }
}

/// Returns a date as days since 1970-01-01.
#[inline]
fn day(spec: &ColumnSpec, point: Point) -> Result<i32, MoveError> {
    let (year, month, day) = (i32::from(point.year), i32::from(point.month), i32::from(point.day));
    if month == 0 || day == 0 {
        return Err(cannot(spec, "a date with a month or day of 0"));
    }
    let found = days_from_civil(year, month, day);
    // `ALLOW_INVALID_DATES` admits dates such as the 31st of February.
    if civil_from_days(found) != (year, month, day) {
        return Err(cannot(spec, "a day that does not exist in the calendar"));
    }
    Ok(found)
}

/// Returns the days since 1970-01-01 of a date (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
pub(crate) fn days_from_civil(year: i32, month: i32, day: i32) -> i32 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns year, month and day from the days since 1970-01-01 (same source as [`days_from_civil`]).
pub(crate) fn civil_from_days(days: i32) -> (i32, i32, i32) {
    let days = i64::from(days) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let part = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * part + 2) / 5 + 1, if part < 10 { part + 3 } else { part - 9 });
    ((year + era * 400 + i64::from(month <= 2)) as i32, month as i32, day as i32)
}

/// Parses a decimal into units of 10^-`scale`; `None` if it is not a number or has more decimal places.
#[inline]
fn units(text: &[u8], scale: i8) -> Option<i128> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let (mut sum, mut places) = (0_i128, None::<i8>);
    for &byte in digits {
        match (byte, &mut places) {
            (b'.', None) => places = Some(0),
            (b'0'..=b'9', _) => {
                sum = sum.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                if let Some(places) = &mut places {
                    *places += 1;
                }
            }
            _ => return None,
        }
    }
    let left = u32::try_from(scale.checked_sub(places.unwrap_or(0))?).ok()?;
    let number = sum.checked_mul(10_i128.checked_pow(left)?)?;
    Some(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::unscaled;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn days_and_dates_are_each_other(days in -719_528..2_932_897_i32) {
            let (year, month, day) = civil_from_days(days);
            prop_assert!((0..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day));
            prop_assert_eq!(days_from_civil(year, month, day), days);
        }

        #[test]
        fn digits_are_the_number_that_they_show(number in -10_i128.pow(37)..10_i128.pow(37), scale in 0_i8..20) {
            let power = 10_u128.pow(scale as u32);
            let sign = if number < 0 { "-" } else { "" };
            let (whole, part) = (number.unsigned_abs() / power, number.unsigned_abs() % power);
            let text = if scale == 0 { format!("{sign}{whole}") } else {
                format!("{sign}{whole}.{part:0width$}", width = scale as usize)
            };
            prop_assert_eq!(units(text.as_bytes(), scale), Some(number));
            let mut binary = Vec::new();
            numeric(number, scale, &mut binary);
            prop_assert_eq!(unscaled(&binary, scale), Ok(number));
        }
    }

    #[test]
    fn days_that_everybody_knows() {
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        assert_eq!(days_from_civil(2000, 1, 1), EPOCH_DAYS);
        assert_eq!(civil_from_days(days_from_civil(2000, 2, 29)), (2000, 2, 29));
        assert_ne!(civil_from_days(days_from_civil(2001, 2, 29)), (2001, 2, 29));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "1.234", "1..2", "x", "1e3"] {
            assert_eq!(units(text.as_bytes(), 2), if text.is_empty() { Some(0) } else { None }, "{text}");
        }
    }
}

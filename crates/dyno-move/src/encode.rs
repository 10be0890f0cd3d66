//! Arrow's arrays as rows of COPY's binary form.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, UInt32Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use crate::column::{EPOCH_DAYS, EPOCH_US};
use crate::decimal::numeric;
use crate::error::MoveError;
use crate::rows::SIGNATURE;
use crate::spec::Refused;

/// What a stream begins with.
pub fn head(out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&[0; 8]);
}

/// What a stream ends with.
pub fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1_i16).to_be_bytes());
}

/// The type of a column that takes the values of an Arrow type as they are; `None` for what dbdyno does not load.
pub fn pg_type(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Boolean => "boolean".into(),
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "integer".into(),
        DataType::Int64 => "bigint".into(),
        DataType::UInt32 => "oid".into(),
        DataType::Float32 => "real".into(),
        DataType::Float64 => "double precision".into(),
        DataType::Decimal128(precision, scale) if *scale >= 0 => format!("numeric({precision},{scale})"),
        DataType::Date32 => "date".into(),
        DataType::Time64(TimeUnit::Microsecond) => "time".into(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp".into(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamptz".into(),
        DataType::Utf8 => "text".into(),
        DataType::Binary => "bytea".into(),
        _ => return None,
    })
}

/// Where the rows of a batch stand, and what could not be sent of them.
#[derive(Debug, Default)]
pub struct Place {
    /// Number of the file, where each row says it.
    pub file: Option<i32>,
    /// Rows of the file before this batch.
    pub before: u64,
    /// Whether rows that the server cannot take are left out; else they are an error.
    pub rejects: bool,
    /// Those that were.
    pub refused: Vec<Refused>,
}

/// The rows of a batch from one on, until `limit` bytes are there; the row to go on with.
pub fn rows(
    batch: &RecordBatch,
    from: usize,
    limit: usize,
    place: &mut Place,
    out: &mut Vec<u8>,
) -> Result<usize, MoveError> {
    let extra = if place.file.is_some() { 2 } else { 0 };
    let count = (batch.num_columns() as i16 + extra).to_be_bytes();
    let mut row = from;
    while row < batch.num_rows() && out.len() < limit {
        let begun = out.len();
        out.extend_from_slice(&count);
        if let Some(file) = place.file {
            out.extend_from_slice(&[0, 0, 0, 4]);
            out.extend_from_slice(&file.to_be_bytes());
            out.extend_from_slice(&[0, 0, 0, 8]);
            out.extend_from_slice(&(place.before + row as u64 + 1).to_be_bytes());
        }
        if let Err((column, reason)) = columns(batch, row, out) {
            let refused = Refused {
                row: place.before + row as u64 + 1,
                column: batch.schema_ref().field(column).name().clone(),
                reason,
            };
            if !place.rejects {
                return Err(MoveError::Refused { column: refused.column, reason, row: refused.row });
            }
            out.truncate(begun);
            place.refused.push(refused);
        }
        row += 1;
    }
    Ok(row)
}

fn columns(batch: &RecordBatch, row: usize, out: &mut Vec<u8>) -> Result<(), (usize, &'static str)> {
    for (place, array) in batch.columns().iter().enumerate() {
        if array.is_null(row) {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            continue;
        }
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        value(array.as_ref(), row, out).map_err(|reason| (place, reason))?;
        let length = (out.len() - at - 4) as i32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// What PostgreSQL holds, in days from 2000-01-01: `IS_VALID_DATE` of its datatype/timestamp.h.
const DAYS: std::ops::Range<i32> = -2_451_545..2_145_031_949;
/// In microseconds from there: `IS_VALID_TIMESTAMP` of the same.
const MOMENTS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
/// 24:00:00 is a time of PostgreSQL's.
const TIMES: std::ops::RangeInclusive<i64> = 0..=86_400_000_000;

#[inline]
fn text(text: &str, out: &mut Vec<u8>) -> Result<(), &'static str> {
    if memchr::memchr(0, text.as_bytes()).is_some() {
        return Err("text with a NUL character, which PostgreSQL cannot hold");
    }
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

#[inline]
fn value(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
    match array.data_type() {
        DataType::Int64 => out.extend_from_slice(&array.as_primitive::<Int64Type>().value(row).to_be_bytes()),
        DataType::Utf8 => text(array.as_string::<i32>().value(row), out)?,
        DataType::Utf8View => text(array.as_string_view().value(row), out)?,
        DataType::Int32 => out.extend_from_slice(&array.as_primitive::<Int32Type>().value(row).to_be_bytes()),
        DataType::Int16 => out.extend_from_slice(&array.as_primitive::<Int16Type>().value(row).to_be_bytes()),
        DataType::Boolean => out.push(u8::from(array.as_boolean().value(row))),
        DataType::UInt32 => out.extend_from_slice(&array.as_primitive::<UInt32Type>().value(row).to_be_bytes()),
        DataType::Float32 => out.extend_from_slice(&array.as_primitive::<Float32Type>().value(row).to_be_bytes()),
        DataType::Float64 => out.extend_from_slice(&array.as_primitive::<Float64Type>().value(row).to_be_bytes()),
        DataType::Decimal128(_, scale) => numeric(array.as_primitive::<Decimal128Type>().value(row), *scale, out),
        DataType::Date32 => {
            let day = array.as_primitive::<Date32Type>().value(row).checked_sub(EPOCH_DAYS);
            let day = day.filter(|day| DAYS.contains(day)).ok_or("a date that PostgreSQL cannot hold")?;
            out.extend_from_slice(&day.to_be_bytes());
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            let time = array.as_primitive::<Time64MicrosecondType>().value(row);
            if !TIMES.contains(&time) {
                return Err("a time that is none of a day");
            }
            out.extend_from_slice(&time.to_be_bytes());
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let moment = array.as_primitive::<TimestampMicrosecondType>().value(row).checked_sub(EPOCH_US);
            let moment =
                moment.filter(|moment| MOMENTS.contains(moment)).ok_or("a time that PostgreSQL cannot hold")?;
            out.extend_from_slice(&moment.to_be_bytes());
        }
        DataType::Binary => out.extend_from_slice(array.as_binary::<i32>().value(row)),
        DataType::BinaryView => out.extend_from_slice(array.as_binary_view().value(row)),
        _ => return Err("a value of a type that is not loaded"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Columns;
    use crate::rows::Cutter;
    use crate::spec::TableSpec;
    use proptest::prelude::*;

    const KINDS: [(&str, usize); 9] = [
        ("bool", 1),
        ("int2", 2),
        ("int4", 4),
        ("int8", 8),
        ("oid", 4),
        ("float4", 4),
        ("float8", 8),
        ("bytea", 5),
        ("decimal", 0),
    ];

    fn table() -> TableSpec {
        let columns = KINDS.map(|(kind, _)| {
            format!(r#"{{"name": "{kind}", "kind": "{kind}", "precision": 20, "scale": 3, "pg_type": ""}}"#)
        });
        serde_json::from_str(&format!(r#"{{"columns": [{}]}}"#, columns.join(","))).expect("a table")
    }

    proptest! {
        #[test]
        fn what_was_read_is_written_as_it_came(
            seeds in prop::collection::vec((any::<[u8; 8]>(), any::<u16>()), 0..40),
            limit in 1_usize..3_000,
        ) {
            let mut came = Vec::new();
            head(&mut came);
            for (bytes, nulls) in &seeds {
                came.extend((KINDS.len() as i16).to_be_bytes());
                for (place, (kind, length)) in KINDS.iter().enumerate() {
                    if nulls >> place & 1 == 1 {
                        came.extend((-1_i32).to_be_bytes());
                        continue;
                    }
                    let mut value = bytes[..*length.min(&8)].to_vec();
                    match *kind {
                        "bool" => value[0] &= 1,
                        "decimal" => numeric(i64::from_be_bytes(*bytes).into(), 3, &mut value),
                        _ => {}
                    }
                    came.extend((value.len() as i32).to_be_bytes());
                    came.extend(value);
                }
            }
            end(&mut came);
            let mut columns = Columns::new(&table(), 1 << 20);
            let mut cutter = Cutter::new(KINDS.len());
            cutter.push(&came, |row| columns.push(row).map(|_| ())).expect("rows");
            let batch = columns.take().expect("a batch");
            let mut ours = Vec::new();
            head(&mut ours);
            let mut row = 0;
            while row < batch.num_rows() {
                let mut part = Vec::new();
                row = rows(&batch, row, limit, &mut Place::default(), &mut part).expect("is written");
                ours.extend(part);
            }
            end(&mut ours);
            prop_assert_eq!(ours, came);
        }
    }
}

//! Encoding of Arrow arrays as rows in COPY's binary form.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, TimeUnit};

use crate::error::MoveError;
use crate::field::{Field, Values, without_nul};
use crate::rows::SIGNATURE;
use crate::spec::Refused;

/// Appends the header of a COPY stream.
pub fn head(out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&[0; 8]);
}

/// Appends the end marker of a COPY stream.
pub fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1_i16).to_be_bytes());
}

/// Returns the PostgreSQL type that can hold the values of an Arrow type exactly; `None` if dbdyno does not load it.
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

/// Position of a batch's rows in their file, and the rows that could not be sent.
#[derive(Debug, Default)]
pub struct Place {
    /// File number, if each row is to contain it.
    pub file: Option<i32>,
    /// Number of rows in the file before this batch.
    pub before: u64,
    /// True to leave out rows that the server cannot accept; otherwise they are an error.
    pub rejects: bool,
    /// Rows that were left out.
    pub refused: Vec<Refused>,
}

impl Place {
    /// Returns the number of a row of the batch within its file, from 1.
    pub(crate) fn number(&self, row: usize) -> u64 {
        self.before + row as u64 + 1
    }

    /// Records a row that the server cannot accept, or returns it as an error.
    pub(crate) fn refuse(
        &mut self,
        batch: &RecordBatch,
        row: usize,
        column: usize,
        reason: &'static str,
    ) -> Result<(), MoveError> {
        let (row, column) = (self.number(row), batch.schema_ref().field(column).name().clone());
        if !self.rejects {
            return Err(MoveError::Refused { column, reason, row });
        }
        self.refused.push(Refused { row, column, reason });
        Ok(())
    }
}

/// Position up to which a batch has been written.
#[derive(Debug, Default, Clone, Copy)]
pub struct At {
    /// Index of the next row to write.
    pub row: usize,
    /// Within a partly written row: the column, and the number of bytes of its value already written.
    inside: Option<(usize, usize)>,
}

/// Appends the rows of a batch from `at` on until `out` has `limit` bytes.
///
/// `long` is the result of [`crate::field::has_long`] for the batch.
///
/// # Errors
/// The server cannot accept a row, and `place` does not allow leaving it out.
pub fn rows(
    batch: &RecordBatch,
    at: &mut At,
    long: bool,
    limit: usize,
    place: &mut Place,
    out: &mut Vec<u8>,
) -> Result<(), MoveError> {
    let extra = if place.file.is_some() { 2 } else { 0 };
    let count = (batch.num_columns() as i16 + extra).to_be_bytes();
    let fields: Vec<Field<'_>> = batch.columns().iter().map(|array| Field::of(array.as_ref())).collect();
    while at.row < batch.num_rows() && out.len() < limit {
        let row = at.row;
        if at.inside.is_some() {
            go_on(&fields, at, limit, out);
            continue;
        }
        let begun = out.len();
        out.extend_from_slice(&count);
        if let Some(file) = place.file {
            out.extend_from_slice(&[0, 0, 0, 4]);
            out.extend_from_slice(&file.to_be_bytes());
            out.extend_from_slice(&[0, 0, 0, 8]);
            out.extend_from_slice(&place.number(row).to_be_bytes());
        }
        let is_long = long && fields.iter().any(|field| field.long(row).is_some());
        // Nothing of a long row may be sent before all of it is known to be valid.
        let written = if is_long { check(&fields, row) } else { columns(&fields, row, out) };
        match written {
            Ok(()) if is_long => {
                at.inside = Some((0, 0));
                continue;
            }
            Ok(()) => {}
            Err((column, reason)) => {
                place.refuse(batch, row, column, reason)?;
                out.truncate(begun);
            }
        }
        at.row += 1;
    }
    Ok(())
}

/// Checks that all values of a row can be written; the error is the index of a column and the reason.
fn check(fields: &[Field<'_>], row: usize) -> Result<(), (usize, &'static str)> {
    let mut aside = Vec::new();
    for (place, field) in fields.iter().enumerate().filter(|(_, field)| !field.is_null(row)) {
        match (field.long(row), &field.values) {
            (Some(bytes), Values::Text(_) | Values::TextView(_)) => without_nul(bytes).map_err(|why| (place, why))?,
            (Some(_), _) => {}
            (None, values) => values.write(row, &mut aside).map_err(|why| (place, why))?,
        }
        aside.clear();
    }
    Ok(())
}

/// Continues a long row, which was checked, until `out` has `limit` bytes.
fn go_on(fields: &[Field<'_>], at: &mut At, limit: usize, out: &mut Vec<u8>) {
    let row = at.row;
    while let Some((column, sent)) = at.inside.filter(|_| out.len() < limit) {
        let Some(field) = fields.get(column) else {
            *at = At { row: row + 1, inside: None };
            return;
        };
        let Some(bytes) = field.long(row) else {
            // The row was checked: no value is refused here.
            let _ = columns(&fields[column..=column], row, out);
            at.inside = Some((column + 1, 0));
            continue;
        };
        if sent == 0 {
            out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
        }
        let end = bytes.len().min(sent + limit.saturating_sub(out.len()).max(1));
        out.extend_from_slice(&bytes[sent..end]);
        at.inside = Some(if end == bytes.len() { (column + 1, 0) } else { (column, end) });
    }
}

fn columns(fields: &[Field<'_>], row: usize, out: &mut Vec<u8>) -> Result<(), (usize, &'static str)> {
    for (place, field) in fields.iter().enumerate() {
        if field.is_null(row) {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
        } else {
            field.values.write(row, out).map_err(|reason| (place, reason))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Columns;
    use crate::decimal::numeric;
    use crate::field::{LONG_BYTES, has_long};
    use crate::rows::Cutter;
    use crate::spec::TableSpec;
    use arrow_array::{ArrayRef, Date32Array, Int32Array, StringArray, StringViewArray};
    use proptest::prelude::*;
    use std::sync::Arc;

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
            let mut at = At::default();
            while at.row < batch.num_rows() {
                let mut part = Vec::new();
                rows(&batch, &mut at, false, limit, &mut Place::default(), &mut part).expect("is written");
                ours.extend(part);
            }
            end(&mut ours);
            prop_assert_eq!(ours, came);
        }
    }

    fn batch(texts: &[Option<&str>], numbers: &[i32], days: &[i32]) -> RecordBatch {
        let columns: [(&str, ArrayRef); 4] = [
            ("n", Arc::new(Int32Array::from(numbers.to_vec()))),
            ("x", Arc::new(StringArray::from(texts.to_vec()))),
            ("y", Arc::new(texts.iter().copied().collect::<StringViewArray>())),
            ("d", Arc::new(Date32Array::from(days.to_vec()))),
        ];
        RecordBatch::try_from_iter(columns).expect("a batch")
    }

    fn in_pieces(batch: &RecordBatch, limit: usize, place: &mut Place) -> (Vec<u8>, usize) {
        let (mut ours, mut most, mut at) = (Vec::new(), 0, At::default());
        while at.row < batch.num_rows() {
            let mut part = Vec::new();
            rows(batch, &mut at, has_long(batch), limit, place, &mut part).expect("is written");
            most = most.max(part.len());
            ours.extend(part);
        }
        (ours, most)
    }

    #[test]
    fn a_long_value_goes_out_in_pieces_and_is_what_it_was_whole() {
        let long = "y".repeat(LONG_BYTES + 7);
        let texts = [Some("short"), Some(&long), None, Some(""), Some(&long)];
        let given = batch(&texts, &[1, 2, 3, 4, 5], &[0; 5]);
        assert!(has_long(&given));
        let mut whole = Vec::new();
        for row in 0..5 {
            whole.extend(4_i16.to_be_bytes());
            let fields: Vec<Field<'_>> = given.columns().iter().map(|array| Field::of(array.as_ref())).collect();
            columns(&fields, row, &mut whole).expect("is written");
        }
        for limit in [1 << 10, 32 << 10, LONG_BYTES + 11, 1 << 30] {
            let (ours, most) = in_pieces(&given, limit, &mut Place::default());
            assert!(ours == whole, "pieces of {limit}");
            assert!(most < limit.saturating_add(100), "{most} of {limit}");
        }
    }

    #[test]
    fn of_a_long_row_that_is_refused_nothing_was_sent() {
        let (long, nul) = ("y".repeat(LONG_BYTES), format!("{}\0", "y".repeat(LONG_BYTES)));
        let texts = [Some(long.as_str()), Some(&nul), Some(&long), Some("z")];
        // The third row has, after its long values, a day that PostgreSQL does not have.
        let given = batch(&texts, &[1, 2, 3, 4], &[0, 0, i32::MIN, 0]);
        let mut place = Place { rejects: true, ..Place::default() };
        let (ours, _) = in_pieces(&given, 64 << 10, &mut place);
        assert_eq!(
            place.refused.iter().map(|one| (one.row, one.column.as_str())).collect::<Vec<_>>(),
            [(2, "x"), (3, "d")]
        );
        let good = batch(&[Some(&long), Some("z")], &[1, 4], &[0, 0]);
        assert!(ours == in_pieces(&good, 64 << 10, &mut Place::default()).0);
        let error =
            rows(&given, &mut At { row: 1, inside: None }, true, 1 << 30, &mut Place::default(), &mut Vec::new());
        assert!(error.is_err());
    }
}

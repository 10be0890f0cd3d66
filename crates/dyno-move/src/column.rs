//! Columns of a chunk: decoding of COPY's bytes into Arrow arrays.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, UInt32Type,
};
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::decimal::{NotDecimal, unscaled};
use crate::error::MoveError;
use crate::rows::Row;
use crate::spec::{ColumnSpec, Kind, TableSpec};

/// Days from 1970-01-01 to PostgreSQL's epoch 2000-01-01.
pub const EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to PostgreSQL's epoch 2000-01-01.
pub const EPOCH_US: i64 = 946_684_800_000_000;
/// End of a day [us]: 24:00:00 is valid in PostgreSQL's time but not in Arrow's.
const DAY_US: i64 = 86_400_000_000;
/// Largest number of rows in a batch.
const BATCH_ROWS: usize = 16_384;
/// Largest capacity that the text buffer of a column keeps between batches [bytes].
const ROOM_BYTES: usize = 1 << 20;
const UTC: &str = "UTC";

/// Columns that accept rows and return batches.
#[derive(Debug)]
pub struct Columns {
    schema: SchemaRef,
    each: Vec<Column>,
    rows: usize,
    bytes: usize,
    bytes_max: usize,
    /// Number of rows in the batches already returned.
    before: u64,
}

impl Columns {
    /// Returns empty columns; a batch is full when it has `bytes_max` bytes or `BATCH_ROWS` rows.
    pub fn new(table: &TableSpec, bytes_max: usize) -> Self {
        Self {
            schema: schema(table),
            each: table.columns.iter().map(|spec| Column::new(spec.clone())).collect(),
            rows: 0,
            bytes: 0,
            bytes_max,
            before: 0,
        }
    }

    /// Returns the schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Adds a row; returns true if the batch is full.
    ///
    /// # Errors
    /// A value cannot be decoded, or its Arrow type cannot hold it.
    #[inline]
    pub fn push(&mut self, row: &Row<'_>) -> Result<bool, MoveError> {
        for (place, column) in self.each.iter_mut().enumerate() {
            let value = row.value(place);
            self.bytes += value.map_or(0, <[u8]>::len);
            column.push(value)?;
        }
        self.rows += 1;
        Ok(self.rows >= BATCH_ROWS || self.bytes >= self.bytes_max)
    }

    /// Returns the rows since the last batch.
    ///
    /// # Errors
    /// A text is not valid UTF-8.
    pub fn take(&mut self) -> Result<RecordBatch, MoveError> {
        let before = self.before;
        let arrays = self.each.iter_mut().map(|column| column.take(before)).collect::<Result<Vec<_>, _>>()?;
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|e| MoveError::Stream(e.to_string()))?;
        self.before += self.rows as u64;
        (self.rows, self.bytes) = (0, 0);
        Ok(batch)
    }

    /// Returns the number of rows so far, in returned batches and in the current one.
    pub fn rows(&self) -> u64 {
        self.before + self.rows as u64
    }
}

/// Returns the schema of a table's files; each field's metadata has the original type of its column.
pub fn schema(table: &TableSpec) -> SchemaRef {
    let fields: Vec<Field> = table
        .columns
        .iter()
        .map(|spec| {
            let mut says = HashMap::from([("dbdyno.pg_type".to_owned(), spec.pg_type.clone())]);
            if let Some(name) = &spec.mariadb_type {
                says.insert("dbdyno.mariadb_type".to_owned(), name.clone());
            }
            Field::new(&spec.name, data_type(spec), true).with_metadata(says)
        })
        .collect();
    let says: HashMap<String, String> =
        table.metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    Arc::new(Schema::new_with_metadata(fields, says))
}

fn data_type(spec: &ColumnSpec) -> DataType {
    match spec.kind {
        Kind::Bool => DataType::Boolean,
        Kind::Int2 => DataType::Int16,
        Kind::Int4 => DataType::Int32,
        Kind::Int8 => DataType::Int64,
        Kind::Oid => DataType::UInt32,
        Kind::Float4 => DataType::Float32,
        Kind::Float8 => DataType::Float64,
        Kind::Decimal => DataType::Decimal128(spec.precision, spec.scale),
        Kind::Date => DataType::Date32,
        Kind::Time => DataType::Time64(TimeUnit::Microsecond),
        Kind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        Kind::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        Kind::Text | Kind::Jsonb | Kind::Uuid => DataType::Utf8,
        Kind::Bytea => DataType::Binary,
    }
}

#[derive(Debug)]
enum Values {
    Bool(BooleanBufferBuilder),
    Int2(Vec<i16>),
    Int4(Vec<i32>),
    Int8(Vec<i64>),
    Oid(Vec<u32>),
    Float4(Vec<f32>),
    Float8(Vec<f64>),
    Decimal(Vec<i128>),
    Bytes { ends: Vec<i32>, data: Vec<u8> },
}

#[derive(Debug)]
struct Column {
    spec: ColumnSpec,
    values: Values,
    valid: NullBufferBuilder,
}

impl Column {
    fn new(spec: ColumnSpec) -> Self {
        let values = match spec.kind {
            Kind::Bool => Values::Bool(BooleanBufferBuilder::new(BATCH_ROWS)),
            Kind::Int2 => Values::Int2(Vec::new()),
            Kind::Int4 | Kind::Date => Values::Int4(Vec::new()),
            Kind::Int8 | Kind::Time | Kind::Timestamp | Kind::Timestamptz => Values::Int8(Vec::new()),
            Kind::Oid => Values::Oid(Vec::new()),
            Kind::Float4 => Values::Float4(Vec::new()),
            Kind::Float8 => Values::Float8(Vec::new()),
            Kind::Decimal => Values::Decimal(Vec::new()),
            Kind::Text | Kind::Jsonb | Kind::Uuid | Kind::Bytea => Values::Bytes { ends: vec![0], data: Vec::new() },
        };
        Self { spec, values, valid: NullBufferBuilder::new(BATCH_ROWS) }
    }

    #[inline]
    fn push(&mut self, value: Option<&[u8]>) -> Result<(), MoveError> {
        let Some(bytes) = value else {
            self.push_null();
            return Ok(());
        };
        match &mut self.values {
            Values::Int8(values) => {
                let number = i64::from_be_bytes(fixed(&self.spec, bytes)?);
                values.push(match self.spec.kind {
                    Kind::Int8 => number,
                    Kind::Time if number < DAY_US => number,
                    Kind::Time => return Err(cannot(&self.spec, "24:00:00")),
                    _ => moment(&self.spec, number)?,
                });
            }
            Values::Bytes { ends, data } => {
                put(&self.spec, bytes, data)?;
                ends.push(data.len() as i32);
            }
            Values::Int4(values) => {
                let number = i32::from_be_bytes(fixed(&self.spec, bytes)?);
                values.push(if self.spec.kind == Kind::Date { day(&self.spec, number)? } else { number });
            }
            Values::Decimal(values) => values.push(decimal(&self.spec, bytes)?),
            Values::Int2(values) => values.push(i16::from_be_bytes(fixed(&self.spec, bytes)?)),
            Values::Oid(values) => values.push(u32::from_be_bytes(fixed(&self.spec, bytes)?)),
            Values::Float4(values) => values.push(f32::from_be_bytes(fixed(&self.spec, bytes)?)),
            Values::Float8(values) => values.push(f64::from_be_bytes(fixed(&self.spec, bytes)?)),
            Values::Bool(values) => values.append(fixed::<1>(&self.spec, bytes)?[0] != 0),
        }
        self.valid.append_non_null();
        Ok(())
    }

    fn push_null(&mut self) {
        self.valid.append_null();
        match &mut self.values {
            Values::Bool(values) => values.append(false),
            Values::Int2(values) => values.push(0),
            Values::Int4(values) => values.push(0),
            Values::Int8(values) => values.push(0),
            Values::Oid(values) => values.push(0),
            Values::Float4(values) => values.push(0.0),
            Values::Float8(values) => values.push(0.0),
            Values::Decimal(values) => values.push(0),
            Values::Bytes { ends, data } => ends.push(data.len() as i32),
        }
    }

    fn take(&mut self, before: u64) -> Result<ArrayRef, MoveError> {
        let valid = self.valid.finish();
        Ok(match &mut self.values {
            Values::Bool(values) => Arc::new(BooleanArray::new(values.finish(), valid)),
            Values::Int2(values) => numbers::<Int16Type>(values, valid),
            Values::Int4(values) if self.spec.kind == Kind::Date => numbers::<Date32Type>(values, valid),
            Values::Int4(values) => numbers::<Int32Type>(values, valid),
            Values::Int8(values) => match self.spec.kind {
                Kind::Time => numbers::<Time64MicrosecondType>(values, valid),
                Kind::Timestamp | Kind::Timestamptz => {
                    let zone = (self.spec.kind == Kind::Timestamptz).then_some(UTC);
                    let array = PrimitiveArray::<TimestampMicrosecondType>::new(std::mem::take(values).into(), valid);
                    Arc::new(array.with_timezone_opt(zone))
                }
                _ => numbers::<Int64Type>(values, valid),
            },
            Values::Oid(values) => numbers::<UInt32Type>(values, valid),
            Values::Float4(values) => numbers::<Float32Type>(values, valid),
            Values::Float8(values) => numbers::<Float64Type>(values, valid),
            Values::Decimal(values) => {
                let array = PrimitiveArray::<Decimal128Type>::new(std::mem::take(values).into(), valid);
                let typed = array.with_precision_and_scale(self.spec.precision, self.spec.scale);
                Arc::new(typed.map_err(|e| MoveError::Stream(e.to_string()))?)
            }
            Values::Bytes { ends, data } => {
                let ends = std::mem::replace(ends, vec![0]);
                // The space of one long value is not kept for the rest.
                let room = data.len().min(ROOM_BYTES);
                let data = std::mem::replace(data, Vec::with_capacity(room));
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                if self.spec.kind == Kind::Bytea {
                    Arc::new(BinaryArray::new(offsets, Buffer::from_vec(data), valid))
                } else {
                    text(&self.spec, offsets, data, valid, before)?
                }
            }
        })
    }
}

fn numbers<T: ArrowPrimitiveType>(values: &mut Vec<T::Native>, valid: Option<NullBuffer>) -> ArrayRef {
    let room = values.len();
    let values = std::mem::replace(values, Vec::with_capacity(room));
    Arc::new(PrimitiveArray::<T>::new(values.into(), valid))
}

fn text(
    spec: &ColumnSpec,
    offsets: OffsetBuffer<i32>,
    data: Vec<u8>,
    valid: Option<NullBuffer>,
    before: u64,
) -> Result<ArrayRef, MoveError> {
    if std::str::from_utf8(&data).is_err() {
        let bad = offsets.windows(2).position(|ends| {
            let value = &data[ends[0] as usize..ends[1] as usize];
            std::str::from_utf8(value).is_err()
        });
        let row = before + bad.unwrap_or(0) as u64 + 1;
        return Err(MoveError::NotUtf8 { column: spec.name.clone(), row });
    }
    let array = StringArray::try_new(offsets, Buffer::from_vec(data), valid);
    Ok(Arc::new(array.map_err(|e| MoveError::Stream(e.to_string()))?))
}

#[inline]
fn fixed<const N: usize>(spec: &ColumnSpec, bytes: &[u8]) -> Result<[u8; N], MoveError> {
    bytes.try_into().map_err(|_| torn(spec, bytes.len()))
}

#[cold]
fn torn(spec: &ColumnSpec, bytes: usize) -> MoveError {
    MoveError::Stream(format!("column {}: {bytes} bytes are no {}", spec.name, spec.pg_type))
}

#[cold]
fn cannot(spec: &ColumnSpec, what: &'static str) -> MoveError {
    MoveError::Unrepresentable { column: spec.name.clone(), what, holder: data_type(spec).to_string() }
}

#[inline]
fn moment(spec: &ColumnSpec, number: i64) -> Result<i64, MoveError> {
    match number {
        i64::MAX => Err(cannot(spec, "infinity")),
        i64::MIN => Err(cannot(spec, "-infinity")),
        _ => number.checked_add(EPOCH_US).ok_or_else(|| cannot(spec, "a time after the year 294246")),
    }
}

#[inline]
fn day(spec: &ColumnSpec, number: i32) -> Result<i32, MoveError> {
    match number {
        i32::MAX => Err(cannot(spec, "infinity")),
        i32::MIN => Err(cannot(spec, "-infinity")),
        _ => number.checked_add(EPOCH_DAYS).ok_or_else(|| cannot(spec, "a date out of range")),
    }
}

#[inline]
fn decimal(spec: &ColumnSpec, bytes: &[u8]) -> Result<i128, MoveError> {
    unscaled(bytes, spec.scale).map_err(|error| match error {
        NotDecimal::Nan => cannot(spec, "NaN"),
        NotDecimal::Infinite => cannot(spec, "an infinity"),
        NotDecimal::Digits => cannot(spec, "a number with more digits than its column declares"),
        NotDecimal::Torn => torn(spec, bytes.len()),
    })
}

#[inline]
fn put(spec: &ColumnSpec, bytes: &[u8], data: &mut Vec<u8>) -> Result<(), MoveError> {
    match spec.kind {
        Kind::Uuid => data.extend_from_slice(&uuid(&fixed::<16>(spec, bytes)?)),
        Kind::Jsonb => match bytes.split_first() {
            Some((1, text)) => data.extend_from_slice(text),
            _ => return Err(torn(spec, bytes.len())),
        },
        _ => data.extend_from_slice(bytes),
    }
    Ok(())
}

fn uuid(bytes: &[u8; 16]) -> [u8; 36] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut out = [b'-'; 36];
    let mut at = 0;
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            at += 1;
        }
        out[at] = HEX[usize::from(byte >> 4)];
        out[at + 1] = HEX[usize::from(byte & 15)];
        at += 2;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_as_text() {
        let bytes: [u8; 16] = std::array::from_fn(|place| (place * 17) as u8);
        assert_eq!(&uuid(&bytes), b"00112233-4455-6677-8899-aabbccddeeff");
    }
}

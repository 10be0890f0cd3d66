//! Column of a batch whose values are encoded one by one in COPY's binary form.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, UInt32Type,
};
use arrow_array::{Array, BinaryArray, BinaryViewArray, BooleanArray, RecordBatch, StringArray, StringViewArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use crate::column::{EPOCH_DAYS, EPOCH_US};
use crate::decimal::numeric;

/// Size from which a value is sent in pieces [bytes], so that memory does not hold a complete copy of it in addition to
/// its batch.
pub(crate) const LONG_BYTES: usize = 1 << 20;

/// Days since 2000-01-01 that PostgreSQL can represent: `IS_VALID_DATE` in its datatype/timestamp.h.
const DAYS: std::ops::Range<i32> = -2_451_545..2_145_031_949;
/// Microseconds since 2000-01-01 that PostgreSQL can represent: `IS_VALID_TIMESTAMP` in PostgreSQL's
/// `datatype/timestamp.h`.
const MOMENTS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
/// Times of day that PostgreSQL can represent [us]; 24:00:00 is one of them.
const TIMES: std::ops::RangeInclusive<i64> = 0..=86_400_000_000;

/// Returns true if a value of a batch must be sent in pieces.
pub fn has_long(batch: &RecordBatch) -> bool {
    batch.columns().iter().any(|array| match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value_data().len() >= LONG_BYTES,
        DataType::Binary => array.as_binary::<i32>().value_data().len() >= LONG_BYTES,
        DataType::Utf8View => array.as_string_view().views().iter().any(|&view| is_long_view(view)),
        DataType::BinaryView => array.as_binary_view().views().iter().any(|&view| is_long_view(view)),
        _ => false,
    })
}

/// Returns true if the length at the beginning of a view is that of a long value.
fn is_long_view(view: u128) -> bool {
    (view as u32) as usize >= LONG_BYTES
}

/// Column of a batch.
///
/// Its type is determined once for all rows of a piece, because doing so for each value took a third of the time.
pub(crate) struct Field<'a> {
    nulls: Option<&'a NullBuffer>,
    pub(crate) values: Values<'a>,
}

pub(crate) enum Values<'a> {
    Boolean(&'a BooleanArray),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    UInt32(&'a [u32]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Decimal(&'a [i128], i8),
    Date(&'a [i32]),
    Time(&'a [i64]),
    Moment(&'a [i64]),
    Text(&'a StringArray),
    TextView(&'a StringViewArray),
    Binary(&'a BinaryArray),
    BinaryView(&'a BinaryViewArray),
    NotLoaded,
}

impl<'a> Field<'a> {
    pub(crate) fn of(array: &'a dyn Array) -> Self {
        let values = match array.data_type() {
            DataType::Boolean => Values::Boolean(array.as_boolean()),
            DataType::Int16 => Values::Int16(array.as_primitive::<Int16Type>().values()),
            DataType::Int32 => Values::Int32(array.as_primitive::<Int32Type>().values()),
            DataType::Int64 => Values::Int64(array.as_primitive::<Int64Type>().values()),
            DataType::UInt32 => Values::UInt32(array.as_primitive::<UInt32Type>().values()),
            DataType::Float32 => Values::Float32(array.as_primitive::<Float32Type>().values()),
            DataType::Float64 => Values::Float64(array.as_primitive::<Float64Type>().values()),
            DataType::Decimal128(_, scale) => Values::Decimal(array.as_primitive::<Decimal128Type>().values(), *scale),
            DataType::Date32 => Values::Date(array.as_primitive::<Date32Type>().values()),
            DataType::Time64(TimeUnit::Microsecond) => {
                Values::Time(array.as_primitive::<Time64MicrosecondType>().values())
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Values::Moment(array.as_primitive::<TimestampMicrosecondType>().values())
            }
            DataType::Utf8 => Values::Text(array.as_string()),
            DataType::Utf8View => Values::TextView(array.as_string_view()),
            DataType::Binary => Values::Binary(array.as_binary()),
            DataType::BinaryView => Values::BinaryView(array.as_binary_view()),
            _ => Values::NotLoaded,
        };
        Self { nulls: array.nulls(), values }
    }

    #[inline]
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// Returns the value of a row if it must be sent in pieces, else `None`.
    pub(crate) fn long(&self, row: usize) -> Option<&'a [u8]> {
        if self.is_null(row) {
            return None;
        }
        let bytes = match &self.values {
            Values::Text(values) => values.value(row).as_bytes(),
            Values::TextView(values) => values.value(row).as_bytes(),
            Values::Binary(values) => values.value(row),
            Values::BinaryView(values) => values.value(row),
            _ => return None,
        };
        Some(bytes).filter(|bytes| bytes.len() >= LONG_BYTES)
    }
}

impl Values<'_> {
    /// Appends the length of a value and the value; the error is the reason why PostgreSQL cannot hold it.
    #[inline]
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
        match self {
            Self::Int64(values) => fixed(values[row].to_be_bytes(), out),
            Self::Int32(values) => fixed(values[row].to_be_bytes(), out),
            Self::Int16(values) => fixed(values[row].to_be_bytes(), out),
            Self::UInt32(values) => fixed(values[row].to_be_bytes(), out),
            Self::Float32(values) => fixed(values[row].to_be_bytes(), out),
            Self::Float64(values) => fixed(values[row].to_be_bytes(), out),
            Self::Boolean(values) => fixed([u8::from(values.value(row))], out),
            Self::Text(values) => return text(values.value(row), out),
            Self::TextView(values) => return text(values.value(row), out),
            Self::Binary(values) => bytes(values.value(row), out),
            Self::BinaryView(values) => bytes(values.value(row), out),
            Self::Decimal(values, scale) => {
                let at = out.len();
                out.extend_from_slice(&[0; 4]);
                numeric(values[row], *scale, out);
                let length = (out.len() - at - 4) as i32;
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
            Self::Date(values) => {
                let day = values[row].checked_sub(EPOCH_DAYS).filter(|day| DAYS.contains(day));
                fixed(day.ok_or("a date that PostgreSQL cannot hold")?.to_be_bytes(), out);
            }
            Self::Time(values) => {
                let time = Some(values[row]).filter(|time| TIMES.contains(time));
                fixed(time.ok_or("a time outside a day")?.to_be_bytes(), out);
            }
            Self::Moment(values) => {
                let moment = values[row].checked_sub(EPOCH_US).filter(|moment| MOMENTS.contains(moment));
                fixed(moment.ok_or("a time that PostgreSQL cannot hold")?.to_be_bytes(), out);
            }
            Self::NotLoaded => return Err("a value of a type that is not loaded"),
        }
        Ok(())
    }
}

#[inline]
fn fixed<const N: usize>(value: [u8; N], out: &mut Vec<u8>) {
    out.reserve(4 + N);
    out.extend_from_slice(&(N as i32).to_be_bytes());
    out.extend_from_slice(&value);
}

#[inline]
fn bytes(value: &[u8], out: &mut Vec<u8>) {
    out.reserve(4 + value.len());
    out.extend_from_slice(&(value.len() as i32).to_be_bytes());
    out.extend_from_slice(value);
}

#[inline]
fn text(text: &str, out: &mut Vec<u8>) -> Result<(), &'static str> {
    without_nul(text.as_bytes())?;
    bytes(text.as_bytes(), out);
    Ok(())
}

#[inline]
pub(crate) fn without_nul(text: &[u8]) -> Result<(), &'static str> {
    match memchr::memchr(0, text) {
        Some(_) => Err("text with a NUL character, which PostgreSQL cannot hold"),
        None => Ok(()),
    }
}

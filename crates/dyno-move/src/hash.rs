//! A sum over rows that does not depend on their order: the same from the source and from the files.
//!
//! Each row becomes 64 bits out of its typed values in the order of the columns, NULL unlike any value; a set of rows is
//! the sum of those in 128 bits, so that a row that is missing, doubled or altered changes it. The chance that two
//! different sets of n rows agree is about 2⁻⁶⁴; it is a check against accidents, not against an attacker.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, UInt32Type,
};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use crate::error::MoveError;

/// Rows and the sum of their hashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows.
    pub rows: u64,
    /// The sum, modulo 2¹²⁸.
    pub sum: u128,
}

impl Tally {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, sum: self.sum.wrapping_add(other.sum) }
    }

    /// One more row, by its bytes.
    pub fn add(&mut self, row: &[u8]) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(u128::from(mix(of_bytes(row), SEED)));
    }

    /// As text.
    pub fn hash(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;
const NULL: u64 = 0x6a09_e667_f3bc_c909;

/// A product of 128 bits folded to 64: every bit of both goes into every bit.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ SEED) * u128::from(b ^ FACTOR);
    (product as u64) ^ ((product >> 64) as u64)
}

fn of_bytes(bytes: &[u8]) -> u64 {
    let mut state = mix(bytes.len() as u64, FACTOR);
    let mut parts = bytes.chunks_exact(8);
    for part in &mut parts {
        let word = part.iter().rev().fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
        state = mix(state, word).wrapping_add(word);
    }
    let rest = parts.remainder().iter().rev().fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
    mix(state, rest.wrapping_add(SEED))
}

/// The rows of a batch.
pub fn hash_batch(batch: &RecordBatch) -> Result<Tally, MoveError> {
    let mut states = vec![SEED; batch.num_rows()];
    for column in batch.columns() {
        add(column.as_ref(), &mut states)?;
    }
    let sum = states.iter().fold(0_u128, |sum, &state| sum.wrapping_add(u128::from(mix(state, SEED))));
    Ok(Tally { rows: batch.num_rows() as u64, sum })
}

fn add(array: &dyn Array, states: &mut [u64]) -> Result<(), MoveError> {
    match array.data_type() {
        DataType::Boolean => each(array, states, |row| u64::from(array.as_boolean().value(row))),
        DataType::Int16 => numbers::<Int16Type>(array, states, |value| value as u64),
        DataType::Int32 => numbers::<Int32Type>(array, states, |value| value as u64),
        DataType::Date32 => numbers::<Date32Type>(array, states, |value| value as u64),
        DataType::Int64 => numbers::<Int64Type>(array, states, |value| value as u64),
        DataType::Time64(TimeUnit::Microsecond) => {
            numbers::<Time64MicrosecondType>(array, states, |value| value as u64);
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            numbers::<TimestampMicrosecondType>(array, states, |value| value as u64);
        }
        DataType::UInt32 => numbers::<UInt32Type>(array, states, u64::from),
        DataType::Float32 => numbers::<Float32Type>(array, states, |value| u64::from(value.to_bits())),
        DataType::Float64 => numbers::<Float64Type>(array, states, f64::to_bits),
        DataType::Decimal128(_, _) => {
            numbers::<Decimal128Type>(array, states, |value| mix(value as u64, (value >> 64) as u64));
        }
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            each(array, states, |row| of_bytes(texts.value(row).as_bytes()));
        }
        DataType::Binary => {
            let texts = array.as_binary::<i32>();
            each(array, states, |row| of_bytes(texts.value(row)));
        }
        DataType::Utf8View => {
            let texts = array.as_string_view();
            each(array, states, |row| of_bytes(texts.value(row).as_bytes()));
        }
        DataType::BinaryView => {
            let texts = array.as_binary_view();
            each(array, states, |row| of_bytes(texts.value(row)));
        }
        other => return Err(MoveError::Stream(format!("a column of type {other}, which dbdyno does not write"))),
    }
    Ok(())
}

fn numbers<T: ArrowPrimitiveType>(array: &dyn Array, states: &mut [u64], word: impl Fn(T::Native) -> u64) {
    let typed: &PrimitiveArray<T> = array.as_primitive::<T>();
    let values = typed.values();
    each(array, states, |row| word(values[row]));
}

#[inline]
fn each(array: &dyn Array, states: &mut [u64], word: impl Fn(usize) -> u64) {
    match array.nulls() {
        None => states.iter_mut().enumerate().for_each(|(row, state)| *state = mix(state.rotate_left(23), word(row))),
        Some(valid) => states.iter_mut().enumerate().for_each(|(row, state)| {
            *state = if valid.is_valid(row) {
                mix(state.rotate_left(23), word(row))
            } else {
                mix(state.rotate_left(29), NULL)
            }
        }),
    }
}

//! Hash of a set of rows that does not depend on their order: the same for the source and the files.
//!
//! Each row becomes 64 bits, from its typed values in the order of the columns; NULL differs from any value. The hash
//! of a set of rows is the sum of these in 128 bits, so a missing, duplicated or altered row changes it. The chance
//! that two different sets of n rows agree is about 2⁻⁶⁴. It is a check against accidents, not against an attacker.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, UInt32Type,
};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use crate::error::MoveError;

/// Number of rows and the sum of their hashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of rows.
    pub rows: u64,
    /// Sum of the hashes, modulo 2¹²⁸.
    pub sum: u128,
}

impl Tally {
    /// Returns the tally of both sets together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, sum: self.sum.wrapping_add(other.sum) }
    }

    /// Adds one row, given by its bytes.
    pub fn add(&mut self, row: &[u8]) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(u128::from(mix(of_bytes(row), SEED)));
    }

    /// Returns the sum as hexadecimal text.
    pub fn hash(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;
const NULL: u64 = 0x6a09_e667_f3bc_c909;

/// Returns a mixture of two numbers: their product in 128 bits, folded to 64. Every bit of both numbers affects every
/// bit of the result.
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

/// Size from which a value is hashed only once, however many rows of a batch share it [bytes].
const LONG_BYTES: u32 = 4096;

/// Hashes of long values by their views.
///
/// A dictionary with one value for a million rows is a small file, but hashing each row would take hours.
#[derive(Debug, Default)]
struct Known(HashMap<u128, u64>);

impl Known {
    /// Returns the hash of a value; a view starts with its length, and equal views of one array are the same value.
    #[inline]
    fn of<'a>(&mut self, view: u128, bytes: impl FnOnce() -> &'a [u8]) -> u64 {
        if (view as u32) < LONG_BYTES {
            of_bytes(bytes())
        } else {
            *self.0.entry(view).or_insert_with(|| of_bytes(bytes()))
        }
    }
}

/// Returns the tally of a batch's rows.
///
/// # Errors
/// A column has a type that dbdyno does not write.
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
            let mut known = Known::default();
            each(array, states, |row| known.of(texts.views()[row], || texts.value(row).as_bytes()));
        }
        DataType::BinaryView => {
            let texts = array.as_binary_view();
            let mut known = Known::default();
            each(array, states, |row| known.of(texts.views()[row], || texts.value(row)));
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
fn each(array: &dyn Array, states: &mut [u64], mut word: impl FnMut(usize) -> u64) {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BinaryArray, BinaryViewArray, StringArray, StringViewArray};

    use super::*;

    fn tally(column: ArrayRef) -> Tally {
        hash_batch(&RecordBatch::try_from_iter([("c", column)]).expect("a batch")).expect("is hashed")
    }

    #[test]
    fn views_hash_as_the_values_that_they_show_long_ones_too() {
        let long = ["x".repeat(LONG_BYTES as usize), "y".repeat(LONG_BYTES as usize + 1)];
        let texts = [Some("short"), None, Some(&long[0]), Some(""), Some(&long[1]), Some(&long[0])];
        let bytes = texts.map(|text| text.map(str::as_bytes));
        assert_eq!(tally(Arc::new(StringArray::from_iter(texts))), tally(Arc::new(StringViewArray::from_iter(texts))));
        assert_eq!(tally(Arc::new(BinaryArray::from_iter(bytes))), tally(Arc::new(BinaryViewArray::from_iter(bytes))));
    }
}

//! Random, hash and permutation functions of scripts, which return the same values as pgbench 15 to 18.
//!
//! Bounds are inclusive. Callers check the arguments ([`check_range`], [`Skew`]).

use crate::error::Fault;
use crate::{EvalError, Rng};

/// Distribution of a random function within its range, with a checked parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Skew {
    Exponential(f64),
    Gaussian(f64),
    Zipfian(f64),
}

impl Skew {
    pub(crate) fn exponential(parameter: f64) -> Result<Self, Fault> {
        if parameter.is_nan() || parameter <= 0.0 {
            return Err(parameter_error("random_exponential", "greater than zero", parameter).into());
        }
        Ok(Self::Exponential(parameter))
    }

    pub(crate) fn gaussian(parameter: f64) -> Result<Self, Fault> {
        if parameter.is_nan() || parameter < 2.0 {
            return Err(parameter_error("random_gaussian", "at least 2", parameter).into());
        }
        Ok(Self::Gaussian(parameter))
    }

    pub(crate) fn zipfian(parameter: f64) -> Result<Self, Fault> {
        if !(1.001..=1000.0).contains(&parameter) {
            return Err(parameter_error("random_zipfian", "from 1.001 to 1000", parameter).into());
        }
        Ok(Self::Zipfian(parameter))
    }

    /// Draws an integer from `low` to `high`.
    pub(crate) fn draw(self, rng: &mut Rng, low: i64, high: i64) -> i64 {
        match self {
            Self::Exponential(parameter) => spread(low, high, exponential(rng, parameter)),
            Self::Gaussian(parameter) => spread(low, high, gaussian(rng, parameter)),
            Self::Zipfian(parameter) => low.wrapping_sub(1).wrapping_add(zipfian(rng, high - low + 1, parameter)),
        }
    }
}

fn parameter_error(function: &'static str, bounds: &'static str, value: f64) -> EvalError {
    EvalError::Parameter { function, bounds, value }
}

/// Checks that the range of a random function is not empty and that its size fits 64 bits.
#[inline]
pub(crate) fn check_range(low: i64, high: i64) -> Result<(), Fault> {
    if low > high {
        return Err(EvalError::EmptyRange { low, high }.into());
    }
    match high.checked_sub(low).and_then(|width| width.checked_add(1)) {
        Some(_) => Ok(()),
        None => Err(EvalError::WideRange { low, high }.into()),
    }
}

/// Draws an integer from `low` to `high` with uniform distribution.
#[inline]
pub(crate) fn uniform(rng: &mut Rng, low: i64, high: i64) -> i64 {
    low.wrapping_add(rng.up_to(high.wrapping_sub(low) as u64) as i64)
}

/// Maps a share in [0, 1) to the integers of a range.
fn spread(low: i64, high: i64, share: f64) -> i64 {
    low.wrapping_add(((high - low + 1) as f64 * share) as i64)
}

/// Draws from a truncated exponential distribution on [0, 1), by inversion.
fn exponential(rng: &mut Rng, parameter: f64) -> f64 {
    let cut = (-parameter).exp();
    let uniform = 1.0 - rng.unit();
    -(cut + (1.0 - cut) * uniform).ln() / parameter
}

/// Draws from a normal distribution mapped to [0, 1); values beyond `parameter` standard deviations are drawn again.
fn gaussian(rng: &mut Rng, parameter: f64) -> f64 {
    loop {
        let deviate = rng.normal();
        if !(deviate < -parameter || deviate >= parameter) {
            return (deviate + parameter) / (parameter * 2.0);
        }
    }
}

/// Draws from a Zipfian distribution on 1 to `count` with exponent `exponent` > 1, by rejection.
///
/// Source: L. Devroye, Non-Uniform Random Variate Generation, Springer 1986, pages 550 and 551.
fn zipfian(rng: &mut Rng, count: i64, exponent: f64) -> i64 {
    if count <= 1 {
        return 1;
    }
    let power = exponent - 1.0;
    let bound = 2.0_f64.powf(power);
    loop {
        let (u, v) = (rng.unit(), rng.unit());
        let rank = u.powf(-1.0 / power).floor();
        let ratio = (1.0 + 1.0 / rank).powf(power);
        if v * rank * (ratio - 1.0) / (bound - 1.0) <= ratio / bound && rank <= count as f64 {
            return rank as i64;
        }
    }
}

/// Returns the FNV-1a hash of the eight bytes of a number, lowest first (Fowler, Noll and Vo).
pub(crate) fn hash_fnv1a(number: i64, seed: i64) -> i64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let start = BASIS ^ seed as u64;
    let hash = number.to_le_bytes().into_iter().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    hash as i64
}

/// Returns the `MurmurHash2` hash, 64-bit variant A, of one 8-byte block (Austin Appleby, public domain).
pub(crate) fn hash_murmur2(number: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut block = (number as u64).wrapping_mul(MULTIPLIER);
    block ^= block >> SHIFT;
    block = block.wrapping_mul(MULTIPLIER);
    let mut hash = seed as u64 ^ MULTIPLIER.wrapping_mul(8);
    hash = (hash ^ block).wrapping_mul(MULTIPLIER);
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(MULTIPLIER);
    (hash ^ (hash >> SHIFT)) as i64
}

/// Returns the place of `number` (taken modulo `size`) in a pseudo-random permutation of 0 to `size - 1`.
///
/// There are six rounds. Each multiplies by an odd number, flips bits and rotates within the largest power of two that
/// fits, once from below and once from above, then adds an offset modulo the size. All three steps are one-to-one, so
/// the whole mapping is, too.
pub(crate) fn permute(number: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut rng = Rng::new(seed as u64);
    let size = size as u64;
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    let mut place = number as u64 % size;
    for _ in 0..6 {
        place = scramble(&mut rng, place, bits, mask);
        place = size - 1 - scramble(&mut rng, size - 1 - place, bits, mask);
        let offset = rng.up_to(size - 1);
        place = (place + offset) % size; // both below 2^63
    }
    place as i64
}

/// Applies a one-to-one mapping on 0 to `mask`; larger numbers stay unchanged, but `rng` advances all the same.
fn scramble(rng: &mut Rng, place: u64, bits: u32, mask: u64) -> u64 {
    let factor = (rng.next_u64() & mask) | 1;
    let flips = rng.next_u64() & mask;
    if place > mask {
        return place;
    }
    let mixed = (place.wrapping_mul(factor) ^ flips) & mask;
    ((mixed << 1) & mask) | (mixed >> (bits - 1))
}

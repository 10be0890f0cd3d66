//! Hot loops compiled twice: once for any processor, once for processors with AVX2.
//!
//! A Python wheel has to run on any x86-64 processor, so the compiler may use only what all of them have: registers of
//! 16 bytes, and shifts whose count is in one fixed register. Nearly all processors in use have registers of 32 bytes,
//! and shifts with the count in any register (AVX2, BMI, since 2013). Work passed to [`run`] is compiled for both
//! kinds, and the processor's features decide at run time which version runs.
//!
//! ```
//! struct Sum<'a>(&'a [i64]);
//!
//! impl dyno_cpu::Work for Sum<'_> {
//!     type Done = i64;
//!
//!     #[inline(always)]
//!     fn run(self) -> i64 {
//!         self.0.iter().sum()
//!     }
//! }
//!
//! assert_eq!(dyno_cpu::run(Sum(&[1, 2, 3])), 6);
//! ```
//!
//! Limits: only code that is inlined into [`Work::run`] is compiled for the wider registers, so every function called
//! in its loops must be `#[inline(always)]`, too. Floats give the same results, since nothing is contracted or
//! reordered. The check of the processor costs a load and a branch: too much for a single number, negligible for a
//! column.
//!
//! [`equal_to`] compares many bytes at once on every processor: the compiler does not generate such code from a
//! portable loop. `unsafe` code is used in these two functions only.

#![allow(clippy::inline_always)]

use std::sync::atomic::{AtomicU8, Ordering};

/// Work that contains a hot loop.
pub trait Work {
    /// Result of the work.
    type Done;

    /// Does the work; must be `#[inline(always)]`, as must every function called in its loops.
    fn run(self) -> Self::Done;
}

/// Runs the work with the widest registers that this processor has.
#[inline]
pub fn run<W: Work>(work: W) -> W::Done {
    #[cfg(target_arch = "x86_64")]
    if is_wide() {
        // SAFETY: this processor has every feature that `wide` is compiled with: `WIDE` is only stored where `has_wide`
        // has asked for all of them.
        #[allow(unsafe_code)]
        return unsafe { wide(work) };
    }
    work.run()
}

/// Number of bytes that [`equal_to`] compares.
pub const BLOCK: usize = 32;

/// Returns a bit for each byte of the block, the lowest bit for the first byte; a bit is set if the byte is `one` or
/// `other`.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
#[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)] // A byte and the bits of a mask have no sign.
pub fn equal_to(block: &[u8; BLOCK], one: u8, other: u8) -> u32 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8};
    let half = |at: usize| {
        let bytes: &[u8; 16] = block[at..at + 16].first_chunk().unwrap_or(&[0; 16]);
        // SAFETY: every x86-64 processor has SSE2, and the 16 bytes that are loaded are those of the array.
        #[allow(unsafe_code)]
        unsafe {
            let loaded = _mm_loadu_si128(bytes.as_ptr().cast());
            let found = _mm_cmpeq_epi8(loaded, _mm_set1_epi8(one as i8));
            _mm_movemask_epi8(_mm_or_si128(found, _mm_cmpeq_epi8(loaded, _mm_set1_epi8(other as i8)))) as u32
        }
    };
    half(0) | half(16) << 16
}

/// Returns a bit for each byte of the block, the lowest bit for the first byte; a bit is set if the byte is `one` or
/// `other`.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub fn equal_to(block: &[u8; BLOCK], one: u8, other: u8) -> u32 {
    let bit = |(at, byte): (usize, &u8)| u32::from(*byte == one || *byte == other) << at;
    block.iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
}

const UNKNOWN: u8 = 0;
const PLAIN: u8 = 1;
const WIDE: u8 = 2;

/// Version of the code in use; `UNKNOWN` until the processor has been checked.
static WAY: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Returns true if work runs with the wide registers.
#[inline]
pub fn is_wide() -> bool {
    match WAY.load(Ordering::Relaxed) {
        UNKNOWN => choose(true),
        way => way == WIDE,
    }
}

/// Selects the wide or the narrow registers, so that a benchmark can compare the two; returns true if work now runs
/// with the wide ones, which only some processors have.
#[cold]
pub fn choose(is_wide: bool) -> bool {
    let is_wide = is_wide && has_wide();
    WAY.store(if is_wide { WIDE } else { PLAIN }, Ordering::Relaxed);
    is_wide
}

#[cfg(target_arch = "x86_64")]
fn has_wide() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_wide() -> bool {
    false
}

/// Runs the work compiled for AVX2 and BMI; undefined behaviour on a processor without these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[allow(unsafe_code)]
unsafe fn wide<W: Work>(work: W) -> W::Done {
    work.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_of_a_block_that_is_one_of_two_has_its_bit() {
        for at in 0..BLOCK {
            let mut block = [b'x'; BLOCK];
            block[at] = b'\n';
            assert_eq!(equal_to(&block, b'\n', b'\n'), 1 << at);
            block[(at + 7) % BLOCK] = b'\'';
            assert_eq!(equal_to(&block, b'\n', b'\''), 1 << at | 1 << ((at + 7) % BLOCK));
            assert_eq!(equal_to(&block, 0, 255), 0);
        }
        assert_eq!(equal_to(&[200; BLOCK], 200, 201), u32::MAX, "bytes above 127 as well");
    }

    struct Digits<'a>(&'a [u64]);

    impl Work for Digits<'_> {
        type Done = (u32, u32, u64);

        #[inline(always)]
        fn run(self) -> Self::Done {
            let zeros = self.0.iter().map(|n| n.leading_zeros() + n.trailing_zeros()).sum();
            let ones = self.0.iter().map(|n| n.count_ones()).sum();
            (zeros, ones, self.0.iter().zip(0_u32..).fold(0, |all, (n, at)| all ^ (n << (at % 64))))
        }
    }

    #[test]
    fn both_ways_count_alike_and_the_wide_one_is_chosen_only_where_it_can_run() {
        let numbers: Vec<u64> =
            (0..999_u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (n % 65).min(63)).collect();
        let expected = Digits(&numbers).run();
        for wanted in [true, false] {
            assert_eq!(choose(wanted), wanted && has_wide());
            assert_eq!(is_wide(), wanted && has_wide());
            assert_eq!(run(Digits(&numbers)), expected);
        }
    }
}

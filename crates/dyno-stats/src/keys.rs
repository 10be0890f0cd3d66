//! Numbers as unsigned keys of the same order, and a sort of such keys.
//!
//! Ranks, quantiles and the K largest need only the order of values, so whole numbers and floats share one set of
//! kernels over `u64`. The sort is a radix sort over the bits in which the keys differ: waits in microseconds differ in
//! about twenty bits, and two passes sort them.

/// A number that has a key: `a < b` exactly when `a.key() < b.key()`.
pub trait Ordered: Copy + Default + Send + Sync {
    /// Returns the key; NaN has none and must be left out beforehand.
    fn key(self) -> u64;
    /// Returns the number that has this key.
    fn of_key(key: u64) -> Self;
    /// Returns the number as a float; whole numbers beyond 2^53 are rounded.
    fn float(self) -> f64;
    /// Returns `self - other` as a float, rounded only after the subtraction.
    fn less(self, other: Self) -> f64;
    /// Returns true if the number is a value (not NaN).
    fn is_value(self) -> bool;
}

const SIGN: u64 = 1 << 63;

impl Ordered for i64 {
    fn key(self) -> u64 {
        self as u64 ^ SIGN
    }
    fn of_key(key: u64) -> Self {
        (key ^ SIGN) as Self
    }
    fn float(self) -> f64 {
        self as f64
    }
    fn less(self, other: Self) -> f64 {
        (i128::from(self) - i128::from(other)) as f64
    }
    fn is_value(self) -> bool {
        true
    }
}

impl Ordered for f64 {
    /// Returns the bits of the float, changed so that keys have the order of the floats: the bits of a positive float
    /// rise with its value, those of a negative float fall and are therefore inverted. Minus zero becomes zero.
    fn key(self) -> u64 {
        let bits = (self + 0.0).to_bits();
        if bits & SIGN == 0 { bits | SIGN } else { !bits }
    }
    fn of_key(key: u64) -> Self {
        Self::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
    }
    fn float(self) -> f64 {
        self
    }
    fn less(self, other: Self) -> f64 {
        self - other
    }
    fn is_value(self) -> bool {
        !self.is_nan()
    }
}

/// Number of key bits that one pass of the radix sort uses.
const DIGIT: u32 = 11;
/// Length below which the standard library's sort is faster.
const RADIX_FROM: usize = 4096;

/// Sorts keys in rising order.
pub fn sort_keys(keys: &mut Vec<u64>) {
    if keys.len() < RADIX_FROM {
        keys.sort_unstable();
        return;
    }
    let (low, high) = keys.iter().fold((u64::MAX, 0), |(a, b), &k| (a.min(k), b.max(k)));
    let bits = u64::BITS - (high - low).leading_zeros();
    if bits > 4 * DIGIT {
        keys.sort_unstable(); // more than four passes cost more than comparisons
        return;
    }
    let mut aside = vec![0; keys.len()];
    for pass in 0..bits.div_ceil(DIGIT) {
        scatter(keys, &mut aside, low, pass * DIGIT);
        std::mem::swap(keys, &mut aside);
    }
}

/// Does one stable radix pass: sorts keys by the digit that begins at bit `shift` of their distance from `low`.
fn scatter(from: &[u64], to: &mut [u64], low: u64, shift: u32) {
    let digit = |key: u64| ((key - low) >> shift) as usize & ((1 << DIGIT) - 1);
    let mut next = vec![0usize; 1 << DIGIT];
    for &key in from {
        next[digit(key)] += 1;
    }
    let mut start = 0;
    for place in &mut next {
        start += std::mem::replace(place, start);
    }
    for &key in from {
        let place = &mut next[digit(key)];
        to[*place] = key;
        *place += 1;
    }
}

/// Returns twice the mid-rank of each value (1-based, ties share their mean rank), so that ranks are whole numbers, and
/// the sizes of the tied groups (2 or more).
pub fn doubled_ranks<T: Ordered>(values: &[T]) -> (Vec<u64>, Vec<u64>) {
    let mut order: Vec<(u64, u32)> = values.iter().enumerate().map(|(at, v)| (v.key(), at as u32)).collect();
    order.sort_unstable();
    let mut ranks = vec![0; values.len()];
    let mut ties = Vec::new();
    let mut before = 0u64;
    for run in order.chunk_by(|a, b| a.0 == b.0) {
        let n = run.len() as u64;
        for &(_, at) in run {
            ranks[at as usize] = 2 * before + n + 1;
        }
        if n > 1 {
            ties.push(n);
        }
        before += n;
    }
    (ranks, ties)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn minus_zero_is_zero_and_extremes_keep_their_place() {
        assert_eq!((-0.0f64).key(), 0.0f64.key());
        let rising = [f64::NEG_INFINITY, f64::MIN, -1.0, -1e-310, 0.0, 5e-324, 1.0, f64::INFINITY];
        assert!(rising.windows(2).all(|w| w[0].key() < w[1].key()));
        assert!(i64::MIN.key() < (-1i64).key() && (-1i64).key() < 0i64.key());
    }

    #[test]
    fn ties_share_their_mean_rank() {
        assert_eq!(doubled_ranks(&[30i64, 10, 30, 20]), (vec![7, 2, 7, 4], vec![2]));
        assert_eq!(doubled_ranks::<f64>(&[]), (vec![], vec![]));
    }

    proptest! {
        #[test]
        fn a_key_keeps_the_number_and_its_order(a in any::<f64>(), b in any::<f64>(),
                                                i in any::<i64>(), j in any::<i64>()) {
            prop_assume!(a.is_value() && b.is_value());
            prop_assert_eq!(f64::of_key(a.key()).to_bits(), (a + 0.0).to_bits());
            prop_assert_eq!(a < b, a.key() < b.key());
            prop_assert_eq!(i64::of_key(i.key()), i);
            prop_assert_eq!(i < j, i.key() < j.key());
        }

        #[test]
        fn long_lists_are_sorted(seed in any::<u64>(), bits in 1u32..64) {
            let mut state = seed;
            let mut keys: Vec<u64> = (0..RADIX_FROM + 37)
                .map(|_| (crate::rng::splitmix64(&mut state) >> (64 - bits)) + 1000)
                .collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            sort_keys(&mut keys);
            prop_assert_eq!(keys, expected);
        }
    }
}

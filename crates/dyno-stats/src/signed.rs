//! Log-bucket histogram of any floats: signs, zero, fractions; mergeable, relative error up to 1/256.
//!
//! A bucket holds the floats with the same sign, exponent and first seven binary digits of the fraction: each power of
//! two is divided into 128 buckets of equal width, so the middle of a bucket is at most 1/256 (0.39 %) away from any
//! value in it. On whole numbers up to 2^53 these are the buckets of [`crate::histogram`]. The same bucket number can
//! be computed in SQL, which is how evidence on several machines is summarised.

use std::collections::BTreeMap;

use crate::keys::Ordered;

/// Number of low bits of a float's key that a bucket ignores.
const DROPPED: u32 = 52 - 7;

/// Returns the number of the bucket of a value; larger values never have a smaller number.
pub fn bucket_of(value: f64) -> u32 {
    (value.key() >> DROPPED) as u32
}

/// Returns the ends of a bucket: the lower end is included and the upper end excluded, or the reverse for a bucket of
/// negative values. Both ends of the bucket of zero are 0.
pub fn bounds_of(bucket: u32) -> (f64, f64) {
    let low = f64::of_key(u64::from(bucket) << DROPPED);
    if low == 0.0 {
        return (0.0, 0.0);
    }
    let last = f64::of_key((u64::from(bucket) << DROPPED) | ((1 << DROPPED) - 1));
    if low > 0.0 { (low, last.next_up()) } else { (low.next_down(), last) }
}

/// Counts per bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignedHistogram {
    counts: BTreeMap<u32, u64>,
}

impl SignedHistogram {
    /// Counts a value once; NaN is ignored.
    pub fn record(&mut self, value: f64) {
        if value.is_value() {
            *self.counts.entry(bucket_of(value)).or_default() += 1;
        }
    }

    /// Returns the histogram of keys in rising order; this takes one search per bucket instead of one step per value.
    pub fn of_sorted<T: Ordered>(keys: &[u64]) -> Self {
        let mut made = Self::default();
        let mut rest = keys;
        while let Some(&first) = rest.first() {
            let bucket = bucket_of(T::of_key(first).float());
            let within = rest.partition_point(|&k| bucket_of(T::of_key(k).float()) == bucket);
            made.counts.insert(bucket, within as u64);
            rest = &rest[within..];
        }
        made
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (&bucket, count) in &other.counts {
            *self.counts.entry(bucket).or_default() += count;
        }
    }

    /// Returns (bucket, count) in rising order of the values.
    pub fn buckets(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.counts.iter().map(|(&bucket, &count)| (bucket, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram;
    use proptest::prelude::*;

    #[test]
    fn whole_numbers_fall_as_in_the_histogram_of_whole_numbers() {
        for value in (1u64..3000).chain([1 << 20, (1 << 30) + 12345, 1 << 50]) {
            let (low, high) = histogram::bounds_of(histogram::bucket_of(value));
            let (ours_low, ours_high) = bounds_of(bucket_of(value as f64));
            if value >= histogram::EXACT_BELOW {
                assert_eq!((low as f64, (high + 1) as f64), (ours_low, ours_high), "{value}");
            } else {
                assert_eq!(ours_low.to_bits(), (value as f64).to_bits());
            }
        }
    }

    #[test]
    fn zero_has_a_bucket_of_its_own_and_the_number_is_as_sql_makes_it() {
        assert_eq!(bounds_of(bucket_of(0.0)), (0.0, 0.0));
        // 1 is 2^0: sign bit, exponent 1023, fraction 0.
        assert_eq!(bucket_of(1.0), (1 << 18) | (1023 << 7));
        assert_eq!(bucket_of(1.5), (1 << 18) | (1023 << 7) | 64);
        assert_eq!(bucket_of(-1.5), (1 << 18) - 1 - ((1023 << 7) | 64));
    }

    proptest! {
        #[test]
        fn a_value_is_within_its_bucket_and_near_its_middle(value in -1e12f64..1e12) {
            prop_assume!(value.abs() > 1e-300);
            let (low, high) = bounds_of(bucket_of(value));
            prop_assert!(low <= value && value <= high);
            let middle = f64::midpoint(low, high);
            prop_assert!((middle - value).abs() <= value.abs() / 256.0 * (1.0 + 1e-9));
        }

        #[test]
        fn merging_two_parts_equals_the_whole(a in prop::collection::vec(-1e6f64..1e6, 0..60),
                                              b in prop::collection::vec(-1e2f64..1e2, 0..60)) {
            let of = |values: &[f64]| {
                let mut made = SignedHistogram::default();
                for &v in values {
                    made.record(v);
                }
                made
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let mut all = [a, b].concat();
            prop_assert_eq!(&merged, &of(&all));
            all.sort_by(f64::total_cmp);
            let keys: Vec<u64> = all.iter().map(|v| v.key()).collect();
            prop_assert_eq!(&merged, &SignedHistogram::of_sorted::<f64>(&keys));
        }
    }
}

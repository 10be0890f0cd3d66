//! Log-bucket histogram of whole numbers: small, mergeable, with a bounded relative error.
//!
//! Each value below 256 has its own bucket. Above that, every power of two is divided into 128 buckets of equal width,
//! so a bucket is at most 1/128 of its lower end wide, and its middle is at most 1/256 (0.39 %) away from any value in
//! it. All of u64 needs 7,424 buckets (58 KiB); memory is allocated only up to the largest value seen. Limits: order
//! and exact values are lost; a quantile is the nearest-rank quantile (R's type 1), reported as the middle of its
//! bucket.

/// log2 of the number of buckets per power of two.
const SPLIT_BITS: u32 = 7;
/// Values below this bound are counted exactly.
pub const EXACT_BELOW: u64 = 1 << (SPLIT_BITS + 1);
/// Number of buckets that cover every u64.
pub const BUCKETS_MAX: usize = ((64 - SPLIT_BITS as usize - 1) << SPLIT_BITS) + EXACT_BELOW as usize;
/// Largest relative distance between a value and the middle of its bucket.
pub const RELATIVE_ERROR: f64 = 1.0 / (1u64 << (SPLIT_BITS + 1)) as f64;

/// Returns the number of the bucket that holds a value.
#[inline]
pub fn bucket_of(value: u64) -> usize {
    // Shift so that 8 significant bits stay; below 256 there is nothing to shift.
    let shift = (value | (EXACT_BELOW - 1)).ilog2() - SPLIT_BITS;
    ((u64::from(shift) << SPLIT_BITS) + (value >> shift)) as usize
}

/// Returns the lowest and highest value of a bucket, both included.
pub fn bounds_of(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    if bucket < EXACT_BELOW {
        return (bucket, bucket);
    }
    let shift = (bucket >> SPLIT_BITS) - 1;
    let low = (bucket - (shift << SPLIT_BITS)) << shift;
    (low, low + ((1 << shift) - 1))
}

/// A bucket with at least one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Lowest value that belongs to the bucket.
    pub low: u64,
    /// Highest value that belongs to the bucket.
    pub high: u64,
    /// Number of values.
    pub count: u64,
}

/// Histogram of whole numbers (usually nanoseconds) with a relative error of at most 1/256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHistogram {
    counts: Vec<u64>,
    count: u64,
    /// Smallest value; the largest u64 if there is no value.
    low: u64,
    high: u64,
}

impl Default for LogHistogram {
    fn default() -> Self {
        Self { counts: Vec::new(), count: 0, low: u64::MAX, high: 0 }
    }
}

impl LogHistogram {
    /// Returns an empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the histogram of a slice.
    pub fn of(values: &[u64]) -> Self {
        let mut made = Self::new();
        let (mut low, mut high) = (u64::MAX, 0);
        for &v in values {
            low = low.min(v);
            high = high.max(v);
        }
        if values.is_empty() {
            return made;
        }
        made.counts = vec![0; bucket_of(high) + 1];
        for &v in values {
            made.counts[bucket_of(v)] += 1;
        }
        made.count = values.len() as u64;
        (made.low, made.high) = (low, high);
        made
    }

    /// Counts a value once.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.add(value, 1);
    }

    /// Counts a value `times` times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times > 0 {
            self.add(value, times);
        }
    }

    #[inline]
    fn add(&mut self, value: u64, times: u64) {
        let bucket = bucket_of(value);
        if bucket >= self.counts.len() {
            self.grow(bucket + 1);
        }
        self.counts[bucket] += times;
        self.count += times;
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }

    #[cold]
    fn grow(&mut self, buckets: usize) {
        self.counts.resize(buckets, 0);
    }

    /// Adds the values of another histogram; the order of merging does not matter.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the smallest value, exactly.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.low)
    }

    /// Returns the largest value, exactly.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.high)
    }

    /// Returns the buckets with values, in rising order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts.iter().enumerate().filter(|&(_, &count)| count > 0).map(|(i, &count)| {
            let (low, high) = bounds_of(i);
            Bucket { low, high, count }
        })
    }

    /// Returns the count per bucket number, up to the last bucket used.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the nearest-rank quantile: the value of rank `ceil(q * n)` (at least 1), as the middle of its bucket but
    /// never outside the smallest and the largest value. `None` if empty or `q` is not within 0..=1.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let (min, max) = (self.min()?, self.max()?);
        if !(0.0..=1.0).contains(&q) {
            return None;
        }
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut below = 0;
        for bucket in self.buckets() {
            below += bucket.count;
            if below >= rank {
                let middle = bucket.low as f64 + (bucket.high - bucket.low) as f64 / 2.0;
                return Some(middle.clamp(min as f64, max as f64));
            }
        }
        Some(max as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of_any_size() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift)
    }

    #[test]
    fn buckets_join_without_gap_or_overlap_up_to_the_largest_u64() {
        let mut next = 0u64;
        for bucket in 0..BUCKETS_MAX {
            let (low, high) = bounds_of(bucket);
            assert_eq!(low, next);
            assert_eq!((bucket_of(low), bucket_of(high)), (bucket, bucket));
            next = high.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends at u64::MAX");
    }

    #[test]
    fn an_empty_histogram_has_no_quantile_and_a_bad_q_has_none() {
        assert_eq!(LogHistogram::new().quantile(0.5), None);
        assert_eq!(LogHistogram::of(&[1]).quantile(1.5), None);
        assert_eq!(LogHistogram::of(&[1]).quantile(f64::NAN), None);
    }

    #[test]
    fn memory_is_bounded_by_the_largest_value() {
        let mut h = LogHistogram::new();
        h.record(u64::MAX);
        assert_eq!(h.counts().len(), BUCKETS_MAX);
        assert_eq!(LogHistogram::of(&[4_000_000]).counts().len(), bucket_of(4_000_000) + 1);
    }

    proptest! {
        #[test]
        fn merging_two_parts_equals_the_whole(a in prop::collection::vec(any::<u64>(), 0..50),
                                              b in prop::collection::vec(0u64..5000, 0..50)) {
            let mut merged = LogHistogram::of(&a);
            merged.merge(&LogHistogram::of(&b));
            let mut recorded = LogHistogram::new();
            a.iter().chain(&b).for_each(|&v| recorded.record(v));
            prop_assert_eq!(&merged, &recorded);
            prop_assert_eq!(&merged, &LogHistogram::of(&[a, b].concat()));
        }

        #[test]
        fn a_quantile_is_within_one_256th_of_the_exact_one(
            mut values in prop::collection::vec(of_any_size(), 1..300),
            q in 0.0f64..=1.0,
        ) {
            let estimate = LogHistogram::of(&values).quantile(q).unwrap_or(f64::NAN);
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            prop_assert!((estimate - exact).abs() <= exact * RELATIVE_ERROR * (1.0 + 1e-12));
            if values[rank - 1] < EXACT_BELOW {
                prop_assert!((estimate - exact).abs() < f64::EPSILON);
            }
        }
    }
}

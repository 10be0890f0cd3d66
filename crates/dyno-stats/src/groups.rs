//! Summaries of all groups (usually an arm in a block) at once, in parallel.
//!
//! Quantiles are exact without sorting everything: the histogram, which is made anyway, gives the bucket of each rank;
//! only the values of those buckets are selected and sorted. The time is linear for any list of quantiles that needs
//! few buckets, and that of a plain sort at worst.

use rayon::prelude::*;

use crate::histogram::{LogHistogram, bucket_of};
use crate::moments::Moments;
use crate::quantiles::{between, type7_ranks};

/// Number of values per piece of work; fixed, so that the result does not depend on the number of threads.
const PIECE: usize = 1 << 18;

/// The values of one arm in one block, in any order.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Arm number.
    pub arm: u32,
    /// Block number.
    pub block: u32,
    /// Elapsed times (or other whole numbers).
    pub values: Vec<u64>,
}

/// Summary of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSummary {
    /// Arm number.
    pub arm: u32,
    /// Block number.
    pub block: u32,
    /// Number of values.
    pub count: u64,
    /// Mean; 0 when there are no values.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub m2: f64,
    /// Type 7 quantiles, one for each requested q; NaN if there are no values or q is not in 0..=1.
    pub quantiles: Vec<f64>,
    /// Largest value; 0 when there are none.
    pub max: u64,
    /// Distribution, for figures and for merging.
    pub histogram: LogHistogram,
}

/// Summarises each group; the results are in the order of the input.
pub fn summarise(groups: &[Group], qs: &[f64]) -> Vec<GroupSummary> {
    groups.par_iter().map(|group| summarise_one(group.arm, group.block, &group.values, qs)).collect()
}

/// Summarises one group from borrowed values.
pub fn summarise_one(arm: u32, block: u32, values: &[u64], qs: &[f64]) -> GroupSummary {
    let pieces: Vec<(Moments, LogHistogram)> =
        values.par_chunks(PIECE).map(|piece| (Moments::of_integers(piece), LogHistogram::of(piece))).collect();
    let (mut moments, mut histogram) = (Moments::default(), LogHistogram::new());
    for (m, h) in &pieces {
        moments.merge(m);
        histogram.merge(h);
    }
    GroupSummary {
        arm,
        block,
        count: moments.count,
        mean: moments.mean,
        m2: moments.m2,
        quantiles: exact_quantiles(values, &histogram, qs),
        max: histogram.max().unwrap_or(0),
        histogram,
    }
}

/// Returns type 7 quantiles of unsorted values whose histogram is known.
fn exact_quantiles(values: &[u64], histogram: &LogHistogram, qs: &[f64]) -> Vec<f64> {
    let ranks: Vec<_> = qs.iter().map(|&q| type7_ranks(values.len(), q)).collect();
    let counts = histogram.counts();
    let ends: Vec<usize> = counts
        .iter()
        .scan(0usize, |end, &count| {
            *end += count as usize;
            Some(*end)
        })
        .collect();
    let bucket_at = |rank: usize| ends.partition_point(|&end| end <= rank);

    let mut wanted = vec![false; counts.len()];
    for &(low, high, _) in ranks.iter().flatten() {
        wanted[bucket_at(low)] = true;
        wanted[bucket_at(high)] = true;
    }
    let mut picked: Vec<u64> = values
        .par_chunks(PIECE)
        .flat_map_iter(|piece| piece.iter().copied().filter(|&v| wanted[bucket_of(v)]))
        .collect();
    picked.par_sort_unstable();

    // Values left out before each bucket: a rank among all, less these, is a rank among the picked.
    let left_out: Vec<usize> = (0..counts.len())
        .scan(0usize, |out, i| {
            let before = *out;
            *out += if wanted[i] { 0 } else { counts[i] as usize };
            Some(before)
        })
        .collect();
    let value_at = |rank: usize| picked[rank - left_out[bucket_at(rank)]];
    ranks
        .iter()
        .map(|rank| match *rank {
            Some((low, high, weight)) => between(value_at(low), value_at(high), weight),
            None => f64::NAN,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantiles::quantile;
    use proptest::prelude::*;

    fn of_any_size() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift)
    }

    #[test]
    fn groups_keep_their_order_and_labels() {
        let groups: Vec<Group> =
            (0..9).map(|i| Group { arm: i % 2, block: i / 2, values: vec![u64::from(i)] }).collect();
        let labels: Vec<_> = summarise(&groups, &[]).iter().map(|s| (s.arm, s.block, s.max)).collect();
        let expected: Vec<_> = (0..9).map(|i| (i % 2, i / 2, u64::from(i))).collect();
        assert_eq!(labels, expected);
    }

    #[test]
    fn an_empty_group_says_so() {
        let s = summarise_one(0, 0, &[], &[0.5]);
        assert_eq!((s.count, s.mean, s.max), (0, 0.0, 0));
        assert!(s.quantiles[0].is_nan());
    }

    #[test]
    fn a_group_of_several_pieces_is_exact() {
        let values: Vec<u64> = (0..PIECE as u64 * 2 + 77).rev().collect();
        let n = values.len() as f64;
        let s = summarise_one(1, 2, &values, &[0.0, 0.25, 0.999, 1.0]);
        let expected: Vec<f64> = [0.0, 0.25, 0.999, 1.0].iter().map(|q| q * (n - 1.0)).collect();
        for (found, expected) in s.quantiles.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        assert!((s.mean - (n - 1.0) / 2.0).abs() < 1e-6);
        assert!((s.m2 / (n * (n * n - 1.0) / 12.0) - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn quantiles_equal_those_of_the_sorted_values(
            mut values in prop::collection::vec(of_any_size(), 1..200),
            qs in prop::collection::vec(0.0f64..=1.0, 0..8),
        ) {
            let s = summarise_one(0, 0, &values, &qs);
            values.sort_unstable();
            let expected: Vec<f64> = qs.iter().filter_map(|&q| quantile(&values, q)).collect();
            prop_assert_eq!(s.quantiles, expected);
            prop_assert_eq!(Some(&s.max), values.last());
        }
    }
}

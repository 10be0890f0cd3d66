//! Exact two-sample statistics on ranks, from values in rising order or from counts.
//!
//! Latencies are whole nanoseconds with many ties, so one pass over the two sorted samples (or over two short lists of
//! distinct values with their counts) gives everything: no ranking, no floats until the end. p-values are computed
//! elsewhere; they assume independent values.

use std::iter::Peekable;

/// A distinct value and its frequency.
pub type Count = (u64, u64);

/// Returns the distinct values of a sorted slice with their counts.
pub fn runs(sorted: &[u64]) -> impl Iterator<Item = Count> + '_ {
    sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64))
}

/// Iterates over two lists of counts together: yields (count in a, count in b) for each distinct value, in rising order
/// of the values.
struct SideBySide<A: Iterator<Item = Count>, B: Iterator<Item = Count>> {
    a: Peekable<A>,
    b: Peekable<B>,
}

fn side_by_side<A, B>(a: A, b: B) -> SideBySide<A::IntoIter, B::IntoIter>
where
    A: IntoIterator<Item = Count>,
    B: IntoIterator<Item = Count>,
{
    SideBySide { a: a.into_iter().peekable(), b: b.into_iter().peekable() }
}

impl<A: Iterator<Item = Count>, B: Iterator<Item = Count>> Iterator for SideBySide<A, B> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let value = match (self.a.peek(), self.b.peek()) {
            (Some(a), Some(b)) => a.0.min(b.0),
            (Some(a), None) => a.0,
            (None, Some(b)) => b.0,
            (None, None) => return None,
        };
        let in_a = self.a.next_if(|a| a.0 == value).map_or(0, |a| a.1);
        let in_b = self.b.next_if(|b| b.0 == value).map_or(0, |b| b.1);
        Some((in_a, in_b))
    }
}

/// Mann-Whitney U of sample a against sample b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MannWhitney {
    /// Twice U, so that ties (which count one half) stay whole: 2 * #(a > b) + #(a = b).
    pub u_doubled: u128,
    /// Number of values in a.
    pub count_a: u64,
    /// Number of values in b.
    pub count_b: u64,
    /// Sum over tied groups of t^3 - t.
    pub tie_term: u128,
}

impl MannWhitney {
    /// Computes the statistic from two slices in rising order.
    pub fn of_sorted(a: &[u64], b: &[u64]) -> Self {
        Self::of_counts(runs(a), runs(b))
    }

    /// Computes the statistic from distinct values in rising order with their counts.
    pub fn of_counts<A, B>(a: A, b: B) -> Self
    where
        A: IntoIterator<Item = Count>,
        B: IntoIterator<Item = Count>,
    {
        let (mut u_doubled, mut tie_term) = (0u128, 0u128);
        let (mut count_a, mut count_b) = (0u64, 0u64);
        for (in_a, in_b) in side_by_side(a, b) {
            u_doubled += u128::from(in_a) * (2 * u128::from(count_b) + u128::from(in_b));
            let tied = u128::from(in_a) + u128::from(in_b);
            tie_term += tied * tied * tied - tied;
            count_a += in_a;
            count_b += in_b;
        }
        Self { u_doubled, count_a, count_b, tie_term }
    }

    /// Returns U of sample a: the number of pairs in which a is larger, ties counted as one half.
    pub fn u(&self) -> f64 {
        self.u_doubled as f64 / 2.0
    }

    /// Returns the variance of U under the hypothesis of equal distributions, corrected for ties:
    /// `n m / 12 * ((N + 1) - sum(t^3 - t) / (N (N - 1)))` (Lehmann, Nonparametrics, 1.5). Zero if all values are equal
    /// or a sample is empty.
    pub fn variance(&self) -> f64 {
        let (n, m) = (self.count_a as f64, self.count_b as f64);
        let all = n + m;
        if n == 0.0 || m == 0.0 {
            return 0.0;
        }
        (n * m / 12.0 * ((all + 1.0) - self.tie_term as f64 / (all * (all - 1.0)))).max(0.0)
    }

    /// Returns P(a > b) + P(a = b) / 2, the share of pairs in which a is larger; `None` without pairs.
    pub fn superiority(&self) -> Option<f64> {
        let pairs = self.count_a as f64 * self.count_b as f64;
        (pairs > 0.0).then(|| self.u() / pairs)
    }
}

/// Kolmogorov-Smirnov: the largest distance between two empirical distribution functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KolmogorovSmirnov {
    /// Largest of `F_a - F_b`, times `count_a * count_b`.
    pub above: u128,
    /// Largest of `F_b - F_a`, times `count_a * count_b`.
    pub below: u128,
    /// Number of values in a.
    pub count_a: u64,
    /// Number of values in b.
    pub count_b: u64,
}

impl KolmogorovSmirnov {
    /// Computes the statistic from two slices in rising order.
    pub fn of_sorted(a: &[u64], b: &[u64]) -> Self {
        let (n, m) = (a.len() as u64, b.len() as u64);
        Self::walk(side_by_side(runs(a), runs(b)), n, m)
    }

    /// Computes the statistic from distinct values in rising order with their counts.
    pub fn of_counts(a: &[Count], b: &[Count]) -> Self {
        let total = |counts: &[Count]| counts.iter().map(|c| c.1).sum();
        let pairs = side_by_side(a.iter().copied(), b.iter().copied());
        Self::walk(pairs, total(a), total(b))
    }

    fn walk(pairs: impl Iterator<Item = (u64, u64)>, count_a: u64, count_b: u64) -> Self {
        let (n, m) = (i128::from(count_a), i128::from(count_b));
        let (mut apart, mut above, mut below) = (0i128, 0i128, 0i128);
        for (in_a, in_b) in pairs {
            apart += i128::from(in_a) * m - i128::from(in_b) * n;
            above = above.max(apart);
            below = below.max(-apart);
        }
        Self { above: above.unsigned_abs(), below: below.unsigned_abs(), count_a, count_b }
    }

    /// Returns D, two-sided; `None` if a sample is empty.
    pub fn d(&self) -> Option<f64> {
        let pairs = self.count_a as f64 * self.count_b as f64;
        (pairs > 0.0).then(|| self.above.max(self.below) as f64 / pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(mut values: Vec<u64>) -> Vec<u64> {
        values.sort_unstable();
        values
    }

    /// R, help page of `wilcox.test` (times 100): W = 35.
    #[test]
    fn the_example_of_wilcox_test() {
        let x = sorted(vec![80, 83, 189, 104, 145, 138, 191, 164, 73, 146]);
        let y = sorted(vec![115, 88, 90, 74, 121]);
        assert_eq!(MannWhitney::of_sorted(&x, &y).u_doubled, 70);
    }

    /// R, help page of `ks.test`: c(1,2,2,3,3) against c(1,2,3,3,4,5,6) gives D = 3/7.
    #[test]
    fn the_example_of_ks_test_with_ties() {
        let ks = KolmogorovSmirnov::of_sorted(&[1, 2, 2, 3, 3], &[1, 2, 3, 3, 4, 5, 6]);
        assert_eq!((ks.above, ks.below), (15, 0));
        assert_eq!(ks.d(), Some(3.0 / 7.0));
    }

    #[test]
    fn an_empty_sample_has_no_distance_and_no_variance() {
        assert_eq!(KolmogorovSmirnov::of_sorted(&[], &[1]).d(), None);
        let u = MannWhitney::of_sorted(&[], &[1]);
        assert_eq!((u.superiority(), u.variance()), (None, 0.0));
    }

    #[test]
    fn all_equal_values_have_no_variance() {
        let u = MannWhitney::of_sorted(&[4; 5], &[4; 3]);
        assert_eq!((u.u(), u.variance(), u.superiority()), (7.5, 0.0, Some(0.5)));
    }

    proptest! {
        #[test]
        fn u_equals_the_count_over_all_pairs(a in prop::collection::vec(0u64..12, 0..40),
                                             b in prop::collection::vec(0u64..12, 0..40)) {
            let (a, b) = (sorted(a), sorted(b));
            let mut doubled = 0u128;
            for x in &a {
                for y in &b {
                    doubled += 2 * u128::from(x > y) + u128::from(x == y);
                }
            }
            let all = [a.clone(), b.clone()].concat();
            // sum of t^3 - t over groups = sum over values of t^2 - 1
            let times = |v: &u64| all.iter().filter(|w| *w == v).count() as u128;
            let ties: u128 = all.iter().map(|v| times(v).pow(2) - 1).sum();
            let u = MannWhitney::of_sorted(&a, &b);
            prop_assert_eq!((u.u_doubled, u.tie_term), (doubled, ties));
            prop_assert_eq!(u, MannWhitney::of_counts(runs(&a), runs(&b)));
        }

        #[test]
        fn d_equals_the_largest_distance_at_any_value(a in prop::collection::vec(0u64..12, 1..40),
                                                      b in prop::collection::vec(0u64..12, 1..40)) {
            let (a, b) = (sorted(a), sorted(b));
            let share = |s: &[u64], v: u64| {
                s.iter().filter(|&&x| x <= v).count() as f64 / s.len() as f64
            };
            let naive = (0..12).map(|v| (share(&a, v) - share(&b, v)).abs()).fold(0.0, f64::max);
            let ks = KolmogorovSmirnov::of_sorted(&a, &b);
            prop_assert!((ks.d().unwrap_or(f64::NAN) - naive).abs() < 1e-12);
            let counts = |s: &[u64]| runs(s).collect::<Vec<_>>();
            prop_assert_eq!(ks, KolmogorovSmirnov::of_counts(&counts(&a), &counts(&b)));
        }
    }
}

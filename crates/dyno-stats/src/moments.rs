//! Count, mean and sum of squared deviations, mergeable without loss of digits.
//!
//! The textbook form (sum and sum of squares) loses all digits if the spread is small relative to the mean (NIST's
//! `NumAcc4`: none left). Here the mean is subtracted before squaring: Welford (1962) for one value at a time, two
//! passes for a slice, and the pairwise formula of Chan, Golub and `LeVeque` (1983) to merge.

/// Count, mean and M2 (the sum of squared deviations from the mean).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Mean; 0 without values.
    pub mean: f64,
    /// Sum of `(value - mean)^2`.
    pub m2: f64,
}

impl Moments {
    /// Returns the moments of a slice of integers. The sum is exact, so the mean is rounded once.
    pub fn of_integers(values: &[u64]) -> Self {
        let Some(&pivot) = values.first() else { return Self::default() };
        let count = values.len() as u64;
        // Deviations from the first value stay small where the spread is small beside the mean.
        let sum: i128 = values.iter().map(|&v| i128::from(v) - i128::from(pivot)).sum();
        let mean = pivot as f64 + sum as f64 / count as f64;
        let m2 = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum();
        Self { count, mean, m2 }
    }

    /// Returns the moments of a slice of floats. The mean is corrected by the mean of its own residuals, and M2 by the
    /// square of their sum (the "corrected two-pass" algorithm of the paper by Chan, Golub and `LeVeque`).
    pub fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let n = values.len() as f64;
        let first = values.iter().sum::<f64>() / n;
        let mean = first + total(values.iter().map(|v| v - first)) / n;
        let (mut residual, mut m2) = (0.0, 0.0);
        for v in values {
            residual += v - mean;
            m2 += (v - mean).powi(2);
        }
        Self { count: values.len() as u64, mean, m2: m2 - residual * residual / n }
    }

    /// Adds one value (Welford).
    pub fn push(&mut self, value: f64) {
        self.count += 1;
        let from_old = value - self.mean;
        self.mean += from_old / self.count as f64;
        self.m2 += from_old * (value - self.mean);
    }

    /// Adds the values of another summary (Chan, Golub and `LeVeque`).
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        self.count += other.count;
        self.mean += apart * (b / (a + b));
        self.m2 += other.m2 + apart * apart * (a * b / (a + b));
    }

    /// Returns the variance with denominator n - 1; `None` below two values.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.m2 / (self.count - 1) as f64)
    }

    /// Returns the standard deviation with denominator n - 1; `None` below two values.
    pub fn standard_deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }
}

/// Returns a sum whose rounding errors are summed separately and added at the end (Neumaier 1974).
pub fn total(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0);
    for value in values {
        let next = sum + value;
        let (large, small) = if sum.abs() >= value.abs() { (sum, value) } else { (value, sum) };
        lost += (large - next) + small;
        sum = next;
    }
    sum + lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64, scale: f64) -> bool {
        (a - b).abs() <= 1e-9 * scale.max(1.0)
    }

    #[test]
    fn a_total_keeps_what_a_plain_sum_loses() {
        assert_eq!(total([1.0, 1e100, 1.0, -1e100].into_iter()).to_bits(), 2.0f64.to_bits());
    }

    #[test]
    fn nothing_has_no_variance() {
        assert_eq!(Moments::of(&[]).variance(), None);
        assert_eq!(Moments::of_integers(&[7]).standard_deviation(), None);
    }

    /// NIST `StRD` `NumAcc1`: 10000001, 10000003, 10000002; mean 10000002, sd 1, both exact.
    #[test]
    fn numacc1_is_exact() {
        let m = Moments::of_integers(&[10_000_001, 10_000_003, 10_000_002]);
        assert_eq!((m.mean, m.standard_deviation()), (10_000_002.0, Some(1.0)));
    }

    /// NIST `StRD` `NumAcc4`: 10000000.2, then 10000000.1 and 10000000.3 alternately, 1001 values; sd 0.1. The data
    /// themselves carry only 8.3 digits of it.
    #[test]
    fn numacc4_keeps_the_digits_that_the_data_have() {
        let values: Vec<f64> = (0..1001)
            .map(|i| match i {
                0 => 10_000_000.2,
                i if i % 2 == 1 => 10_000_000.1,
                _ => 10_000_000.3,
            })
            .collect();
        let sd = Moments::of(&values).standard_deviation().unwrap_or(f64::NAN);
        assert!((sd - 0.1).abs() < 1e-8, "{sd}");
        let mut one_by_one = Moments::default();
        for &v in &values {
            one_by_one.push(v);
        }
        assert!(close(one_by_one.m2, 10.0, 1e-6 / 1e-9), "{}", one_by_one.m2);
    }

    proptest! {
        #[test]
        fn merging_two_parts_equals_the_whole(
            values in prop::collection::vec(0u64..1 << 50, 0..200),
            cut in 0usize..200,
        ) {
            let cut = cut.min(values.len());
            let whole = Moments::of_integers(&values);
            let mut merged = Moments::of_integers(&values[..cut]);
            merged.merge(&Moments::of_integers(&values[cut..]));
            let mut pushed = Moments::default();
            for &v in &values {
                pushed.push(v as f64);
            }
            for other in [merged, pushed] {
                prop_assert_eq!(other.count, whole.count);
                prop_assert!(close(other.mean, whole.mean, whole.mean));
                prop_assert!(close(other.m2, whole.m2, whole.m2));
            }
        }
    }
}

//! Moments of pairs, mergeable without loss of digits: the input of a correlation or of a straight-line fit.

use crate::moments::total;

/// Count, means, sums of squared deviations of x and of y, and sum of the products of their deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comoments {
    /// Number of pairs.
    pub count: u64,
    /// Mean of x; 0 without pairs.
    pub mean_x: f64,
    /// Mean of y.
    pub mean_y: f64,
    /// Sum of `(x - mean_x)^2`.
    pub xx: f64,
    /// Sum of `(y - mean_y)^2`.
    pub yy: f64,
    /// Sum of `(x - mean_x)(y - mean_y)`.
    pub xy: f64,
}

impl Comoments {
    /// Returns the comoments of two slices by the corrected two-pass algorithm (Chan, Golub and `LeVeque` 1983);
    /// surplus values of the longer slice are ignored.
    pub fn of(x: &[f64], y: &[f64]) -> Self {
        let count = x.len().min(y.len());
        if count == 0 {
            return Self::default();
        }
        let (x, y, size) = (&x[..count], &y[..count], count as f64);
        let mean = |side: &[f64]| {
            let first = side.iter().sum::<f64>() / size;
            first + total(side.iter().map(|value| value - first)) / size
        };
        let (mean_x, mean_y) = (mean(x), mean(y));
        let (mut rest_x, mut rest_y) = (0.0, 0.0);
        let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
        for (from_x, from_y) in x.iter().map(|v| v - mean_x).zip(y.iter().map(|v| v - mean_y)) {
            rest_x += from_x;
            rest_y += from_y;
            xx += from_x * from_x;
            yy += from_y * from_y;
            xy += from_x * from_y;
        }
        Self {
            count: count as u64,
            mean_x,
            mean_y,
            xx: xx - rest_x * rest_x / size,
            yy: yy - rest_y * rest_y / size,
            xy: xy - rest_x * rest_y / size,
        }
    }

    /// Adds the pairs of another summary.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let (share, both) = (b / (a + b), a * b / (a + b));
        let (u, v) = (other.mean_x - self.mean_x, other.mean_y - self.mean_y);
        self.count += other.count;
        self.mean_x += u * share;
        self.mean_y += v * share;
        self.xx += other.xx + u * u * both;
        self.yy += other.yy + v * v * both;
        self.xy += other.xy + u * v * both;
    }

    /// Returns Pearson's r; `None` if x or y does not vary.
    pub fn correlation(&self) -> Option<f64> {
        let scale = self.xx.sqrt() * self.yy.sqrt();
        (scale > 0.0).then(|| (self.xy / scale).clamp(-1.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// R, help page of `cor.test` (Hollander and Wolfe's tuna): r = 0.5711816.
    #[test]
    fn the_example_of_cor_test() {
        let x = [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1];
        let y = [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8];
        let r = Comoments::of(&x, &y).correlation().unwrap_or(f64::NAN);
        assert!((r - 0.571_181_6).abs() < 5e-8, "{r}");
    }

    #[test]
    fn without_spread_there_is_no_correlation() {
        assert_eq!(Comoments::of(&[1.0, 1.0], &[1.0, 2.0]).correlation(), None);
        assert_eq!(Comoments::of(&[], &[]).correlation(), None);
    }

    proptest! {
        #[test]
        fn merging_two_parts_equals_the_whole(
            pairs in prop::collection::vec((-1e6f64..1e6, -1e3f64..1e3), 0..200),
            cut in 0usize..200,
        ) {
            let cut = cut.min(pairs.len());
            let (x, y): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let whole = Comoments::of(&x, &y);
            let mut merged = Comoments::of(&x[..cut], &y[..cut]);
            merged.merge(&Comoments::of(&x[cut..], &y[cut..]));
            prop_assert_eq!(merged.count, whole.count);
            let scale = (whole.xx * whole.yy).sqrt();
            for (a, b, size) in [
                (merged.mean_x, whole.mean_x, 1e6), (merged.mean_y, whole.mean_y, 1e3),
                (merged.xx, whole.xx, whole.xx), (merged.yy, whole.yy, whole.yy),
                (merged.xy, whole.xy, scale),
            ] {
                prop_assert!((a - b).abs() <= 1e-10 * size.max(1.0), "{} {}", a, b);
            }
        }
    }
}

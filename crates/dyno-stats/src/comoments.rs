//! Moments of pairs, mergeable without loss of digits: the input of a correlation or of a straight-line fit.

use crate::moments::Moments;

/// Moments of x and of y, and sum of the products of their deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comoments {
    /// Moments of x; their count is the number of pairs.
    pub x: Moments,
    /// Moments of y.
    pub y: Moments,
    /// Sum of `(x - mean of x)(y - mean of y)`.
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
        let (x, y) = (&x[..count], &y[..count]);
        let (of_x, of_y) = (Moments::of(x), Moments::of(y));
        let (mut rest_x, mut rest_y, mut xy) = (0.0, 0.0, 0.0);
        for (from_x, from_y) in x.iter().map(|v| v - of_x.mean).zip(y.iter().map(|v| v - of_y.mean)) {
            rest_x += from_x;
            rest_y += from_y;
            xy += from_x * from_y;
        }
        Self { x: of_x, y: of_y, xy: xy - rest_x * rest_y / count as f64 }
    }

    /// Adds the pairs of another summary.
    pub fn merge(&mut self, other: &Self) {
        let (a, b) = (self.x.count as f64, other.x.count as f64);
        if b > 0.0 {
            let (u, v) = (other.x.mean - self.x.mean, other.y.mean - self.y.mean);
            self.xy += other.xy + u * v * (a * b / (a + b));
        }
        self.x.merge(&other.x);
        self.y.merge(&other.y);
    }

    /// Returns Pearson's r; `None` if x or y does not vary.
    pub fn correlation(&self) -> Option<f64> {
        let scale = self.x.m2.sqrt() * self.y.m2.sqrt();
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
            prop_assert_eq!(merged.x.count, whole.x.count);
            let scale = (whole.x.m2 * whole.y.m2).sqrt();
            for (a, b, size) in [
                (merged.x.mean, whole.x.mean, 1e6), (merged.y.mean, whole.y.mean, 1e3),
                (merged.x.m2, whole.x.m2, whole.x.m2), (merged.y.m2, whole.y.m2, whole.y.m2),
                (merged.xy, whole.xy, scale),
            ] {
                prop_assert!((a - b).abs() <= 1e-10 * size.max(1.0), "{} {}", a, b);
            }
        }
    }
}

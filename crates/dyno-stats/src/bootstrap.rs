//! Resampling kernel: means of samples drawn with replacement (Efron 1979).

use rayon::prelude::*;

use crate::rng::{Xoshiro256, splitmix64};

/// Number of resamples per random stream; fixed, so that the result does not depend on the threads.
const STREAM: usize = 256;

/// Returns the means of `resamples` samples drawn with replacement from `values`, each as long as `values`. The same
/// seed gives the same means on every machine. Empty if `values` is empty.
///
/// Meant for blocks (tens to thousands of values): the cost is `resamples * values.len()` draws.
pub fn bootstrap_means(values: &[f64], resamples: usize, seed: u64) -> Vec<f64> {
    if values.is_empty() {
        return Vec::new();
    }
    let n = values.len();
    let mut means = vec![0.0; resamples];
    means.par_chunks_mut(STREAM).enumerate().for_each(|(stream, part)| {
        let mut start = seed ^ (stream as u64).wrapping_mul(0xd134_2543_de82_ef95);
        let mut rng = Xoshiro256::new(splitmix64(&mut start));
        for mean in part {
            let sum: f64 = (0..n).map(|_| values[rng.below(n as u64) as usize]).sum();
            *mean = sum / n as f64;
        }
    });
    means
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments::Moments;

    #[test]
    fn a_seed_gives_the_same_means_and_another_seed_others() {
        let values: Vec<f64> = (0..37).map(f64::from).collect();
        let first = bootstrap_means(&values, 1000, 7);
        assert_eq!(first, bootstrap_means(&values, 1000, 7));
        assert_eq!(first[..300], bootstrap_means(&values, 300, 7)[..], "a prefix stays a prefix");
        assert_ne!(first, bootstrap_means(&values, 1000, 8));
    }

    /// The variance of a resampled mean is the population variance over n.
    #[test]
    fn the_spread_is_that_of_a_mean() {
        let values: Vec<f64> = (0..50).map(f64::from).collect();
        let means = Moments::of(&bootstrap_means(&values, 40_000, 1));
        let expected = Moments::of(&values).m2 / 50.0 / 50.0;
        let found = means.variance().unwrap_or(f64::NAN);
        assert!((means.mean - 24.5).abs() < 0.05, "{means:?}");
        assert!((found / expected - 1.0).abs() < 0.04, "{found} {expected}");
    }

    #[test]
    fn nothing_gives_nothing() {
        assert!(bootstrap_means(&[], 10, 1).is_empty());
        assert!(bootstrap_means(&[1.0], 0, 1).is_empty());
    }
}

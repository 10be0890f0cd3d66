//! Rank correlation: Spearman's rho and Kendall's tau from the order alone, and the exact
//! distribution of Spearman's statistic for few pairs.

use crate::comoments::Comoments;
use crate::keys::{Ordered, doubled_ranks};

/// Spearman's rho of two slices of equal length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spearman {
    /// Correlation of the mid-ranks; NaN when one side does not vary.
    pub rho: f64,
    /// Sum of the squared differences of the ranks.
    pub s: f64,
    /// True if a value occurs more than once on one side.
    pub ties: bool,
}

/// Computes Spearman's rho (1904): Pearson's correlation of the mid-ranks.
pub fn spearman<T: Ordered, U: Ordered>(x: &[T], y: &[U]) -> Spearman {
    let ((rx, tx), (ry, ty)) = (doubled_ranks(x), doubled_ranks(y));
    let n = x.len() as f64;
    let ties = !tx.is_empty() || !ty.is_empty();
    let fourfold: u128 = rx.iter().zip(&ry).map(|(&a, &b)| u128::from(a.abs_diff(b)).pow(2)).sum();
    let s = fourfold as f64 / 4.0;
    let rho = if ties {
        let float = |r: &[u64]| r.iter().map(|&v| v as f64).collect::<Vec<_>>();
        Comoments::of(&float(&rx), &float(&ry)).correlation().unwrap_or(f64::NAN)
    } else {
        1.0 - 6.0 * s / (n * (n * n - 1.0))
    };
    Spearman { rho, s, ties }
}

/// Kendall's tau-b of two slices of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Kendall {
    /// Number of concordant pairs minus number of discordant pairs.
    pub score: i128,
    /// tau-b; NaN when one side does not vary.
    pub tau: f64,
    /// Sizes of the tied groups of x (2 or more).
    pub ties_x: Vec<u64>,
    /// Sizes of the tied groups of y (each at least 2).
    pub ties_y: Vec<u64>,
}

/// Computes Kendall's tau-b (1938, ties 1945). Discordant pairs are the inversions of y in the order of x, counted by a
/// merge sort (Knight 1966).
pub fn kendall<T: Ordered, U: Ordered>(x: &[T], y: &[U]) -> Kendall {
    let n = x.len().min(y.len());
    let mut pairs: Vec<(u64, u64)> = (0..n).map(|i| (x[i].key(), y[i].key())).collect();
    pairs.sort_unstable();
    let sizes = |runs: Vec<u64>| runs.into_iter().filter(|&n| n > 1).collect::<Vec<u64>>();
    let ties_x = sizes(pairs.chunk_by(|a, b| a.0 == b.0).map(|r| r.len() as u64).collect());
    let both = sizes(pairs.chunk_by(|a, b| a == b).map(|r| r.len() as u64).collect());
    let mut order: Vec<u64> = pairs.iter().map(|p| p.1).collect();
    let mut aside = order.clone();
    let discordant = inversions(&mut order, &mut aside);
    let ties_y = sizes(order.chunk_by(|a, b| a == b).map(|r| r.len() as u64).collect());
    let within = |ties: &[u64]| -> i128 { ties.iter().map(|&t| pairs_of(t)).sum() };
    let (all, tied_x, tied_y) = (pairs_of(n as u64), within(&ties_x), within(&ties_y));
    let score = all - tied_x - tied_y + within(&both) - 2 * i128::from(discordant);
    let scale = ((all - tied_x) as f64).sqrt() * ((all - tied_y) as f64).sqrt();
    let tau = if scale > 0.0 { score as f64 / scale } else { f64::NAN };
    Kendall { score, tau, ties_x, ties_y }
}

fn pairs_of(n: u64) -> i128 {
    i128::from(n) * (i128::from(n) - 1) / 2
}

/// Sorts the values, and returns the number of pairs that were in the wrong order; equal values do not count.
fn inversions(values: &mut [u64], aside: &mut [u64]) -> u64 {
    let n = values.len();
    if n < 2 {
        return 0;
    }
    let middle = n / 2;
    let mut count = inversions(&mut values[..middle], &mut aside[..middle])
        + inversions(&mut values[middle..], &mut aside[middle..]);
    let (mut a, mut b) = (0, middle);
    for place in aside.iter_mut() {
        if b == n || (a < middle && values[a] <= values[b]) {
            *place = values[a];
            a += 1;
        } else {
            count += (middle - a) as u64;
            *place = values[b];
            b += 1;
        }
    }
    values.copy_from_slice(aside);
    count
}

/// Largest number of pairs for which all orders are enumerated.
pub const EXACT_UP_TO: usize = 9;

/// Returns how many of the n! orders give each sum of squared rank differences: entry `k` is for the sum `2 k` (the sum
/// is always even). `None` above [`EXACT_UP_TO`] pairs.
pub fn spearman_orders(n: usize) -> Option<Vec<u64>> {
    if n > EXACT_UP_TO {
        return None;
    }
    let mut orders = vec![0; n * (n * n - usize::from(n > 0)) / 6 + 1];
    place_next(n, 0, 0, 0, &mut orders);
    Some(orders)
}

/// Tries each remaining rank for the pair `at` and recurses to the next pair.
fn place_next(n: usize, at: usize, taken: u32, sum: usize, orders: &mut [u64]) {
    if at == n {
        orders[sum / 2] += 1;
        return;
    }
    for rank in (0..n).filter(|rank| taken & (1 << rank) == 0) {
        place_next(n, at + 1, taken | (1 << rank), sum + at.abs_diff(rank).pow(2), orders);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const X: [f64; 9] = [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1];
    const Y: [f64; 9] = [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8];

    /// Compares with the example on R's help page of `cor.test`: rho = 0.6 (exact p 0.0484 one-sided), tau = 0.4444444.
    #[test]
    fn the_example_of_cor_test() {
        let rho = spearman(&X, &Y);
        assert!((rho.rho - 0.6).abs() < 1e-12 && !rho.ties);
        let orders = spearman_orders(9).unwrap_or_default();
        let tail: u64 = orders[..=(rho.s / 2.0) as usize].iter().sum();
        assert!((tail as f64 / 362_880.0 - 0.0484).abs() < 5e-5, "{tail}");
        assert!((kendall(&X, &Y).tau - 4.0 / 9.0).abs() < 1e-12);
    }

    #[test]
    fn all_orders_are_counted_and_lie_evenly() {
        for (n, all) in [(0, 1), (1, 1), (2, 2), (5, 120), (8, 40_320)] {
            let orders = spearman_orders(n).unwrap_or_default();
            assert_eq!(orders.iter().sum::<u64>(), all);
            assert!(orders.iter().eq(orders.iter().rev()));
        }
        assert_eq!(spearman_orders(10), None);
    }

    #[test]
    fn without_spread_there_is_none() {
        assert!(spearman(&[1i64, 1], &[1i64, 2]).rho.is_nan());
        assert!(kendall(&[1i64, 1], &[1i64, 2]).tau.is_nan());
    }

    proptest! {
        #[test]
        fn the_score_equals_the_count_over_all_pairs(
            pairs in prop::collection::vec((0i64..9, 0i64..9), 2..40),
        ) {
            let (x, y): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
            let mut score = 0i128;
            for (i, a) in pairs.iter().enumerate() {
                for b in &pairs[..i] {
                    score += i128::from(((a.0 - b.0) * (a.1 - b.1)).signum());
                }
            }
            prop_assert_eq!(kendall(&x, &y).score, score);
        }
    }
}

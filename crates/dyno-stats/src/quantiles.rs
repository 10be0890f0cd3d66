//! Exact quantiles of sorted values, and the order-statistic interval around one.

/// Returns the two ranks (0-based) around a type 7 quantile of `n` values, and the weight of the upper one:
/// `h = (n - 1) q` (Hyndman and Fan 1996, definition 7; the default of R and numpy).
///
/// `None` if `n` is 0 or `q` is not within 0..=1.
pub fn type7_ranks(n: usize, q: f64) -> Option<(usize, usize, f64)> {
    if n == 0 || !(0.0..=1.0).contains(&q) {
        return None;
    }
    let h = (n - 1) as f64 * q;
    let low = (h.floor() as usize).min(n - 1);
    Some((low, (low + 1).min(n - 1), h - low as f64))
}

/// Returns the type 7 quantile of values in rising order; `None` if empty or `q` is not within 0..=1.
pub fn quantile(sorted: &[u64], q: f64) -> Option<f64> {
    let (low, high, weight) = type7_ranks(sorted.len(), q)?;
    Some(between(sorted[low], sorted[high], weight))
}

/// Returns `low + weight * (high - low)` in floats.
pub(crate) fn between(low: u64, high: u64, weight: f64) -> f64 {
    low as f64 + weight * (high - low) as f64
}

/// Order statistics that enclose the true quantile; ranks are 1-based.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderInterval {
    /// Rank of the lower end; `None` if too few values lie below for a bound.
    pub low: Option<u64>,
    /// Rank of the upper end; `None` if too few values lie above for a bound.
    pub high: Option<u64>,
    /// Probability that the interval contains the true quantile, at least the level requested.
    pub coverage: f64,
}

/// Returns the distribution-free interval for quantile `q` from `n` **independent** values at `level`, with at most
/// `(1 - level) / 2` beyond each end.
///
/// The number of values below the true quantile is binomial(n, q); `X(r) <= quantile <= X(s)` holds with probability
/// `P(r <= B <= s - 1)` (David and Nagaraja, Order Statistics, section 7.1). Latencies of one session depend on each
/// other: the interval is then far too narrow and must be shown with that warning.
///
/// `None` if `n` is 0, or `q` or `level` is not strictly between 0 and 1.
pub fn order_interval(n: u64, q: f64, level: f64) -> Option<OrderInterval> {
    let open = |x: f64| x > 0.0 && x < 1.0;
    if n == 0 || !open(q) || !open(level) {
        return None;
    }
    let (first, mass) = binomial_mass(n, q);
    let tail = (1.0 - level) / 2.0;
    let at = |i: usize| first + i as u64;

    // low: the largest r with P(B <= r - 1) <= tail.
    let mut below = 0.0;
    let mut low = 0;
    for (i, p) in mass.iter().enumerate() {
        if below + p > tail {
            low = at(i);
            break;
        }
        below += p;
    }
    // high: the smallest s with P(B >= s) <= tail.
    let mut above = 0.0;
    let mut high = n + 1;
    for (i, p) in mass.iter().enumerate().rev() {
        if above + p > tail {
            high = at(i) + 1;
            break;
        }
        above += p;
    }
    Some(OrderInterval {
        low: (low >= 1).then_some(low),
        high: (high <= n).then_some(high),
        coverage: 1.0 - if low >= 1 { below } else { 0.0 } - if high <= n { above } else { 0.0 },
    })
}

/// Returns the probabilities of binomial(n, q) around its mode, out to where they are negligible (a range of about 20
/// standard deviations), and the count to which the first of them belongs. Each probability is computed from its
/// neighbour, outwards from the mode, and then divided by the sum of all: this needs no factorial and loses no digits
/// for n in the millions.
fn binomial_mass(n: u64, q: f64) -> (u64, Vec<f64>) {
    const NOTHING: f64 = 1e-20;
    let odds = q / (1.0 - q);
    let mode = (((n + 1) as f64 * q).floor() as u64).min(n);
    let mut down = Vec::new();
    let (mut k, mut p) = (mode, 1.0f64);
    while k > 0 {
        p *= k as f64 / ((n - k + 1) as f64 * odds);
        k -= 1;
        if p < NOTHING {
            k += 1;
            break;
        }
        down.push(p);
    }
    let first = k;
    let mut mass: Vec<f64> = down.into_iter().rev().collect();
    mass.push(1.0);
    let (mut k, mut p) = (mode, 1.0f64);
    while k < n {
        p *= (n - k) as f64 * odds / (k + 1) as f64;
        k += 1;
        if p < NOTHING {
            break;
        }
        mass.push(p);
    }
    let total: f64 = mass.iter().sum();
    for p in &mut mass {
        *p /= total;
    }
    (first, mass)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// R: quantile(c(1, 2, 3, 4), 0.25) is 1.75; quantile(c(7), 0.9) is 7.
    #[test]
    fn type_7_is_the_default_of_r() {
        assert_eq!(quantile(&[1, 2, 3, 4], 0.25), Some(1.75));
        assert_eq!(quantile(&[7], 0.9), Some(7.0));
        assert_eq!(quantile(&[1, 9], 1.0), Some(9.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1], -0.1), None);
    }

    /// Median of 10 values, 95 %: ranks 2 and 9, coverage 1 - 22/1024 (in every textbook).
    #[test]
    fn the_interval_of_a_median_of_ten() {
        let interval = order_interval(10, 0.5, 0.95).unwrap_or_else(|| panic!("defined"));
        assert_eq!((interval.low, interval.high), (Some(2), Some(9)));
        assert!((interval.coverage - (1.0 - 22.0 / 1024.0)).abs() < 1e-12);
    }

    #[test]
    fn a_tail_without_enough_values_has_no_upper_end() {
        let interval = order_interval(1000, 0.999, 0.95).unwrap_or_else(|| panic!("defined"));
        assert!(interval.low.is_some());
        assert_eq!(interval.high, None);
    }

    #[test]
    fn millions_of_values_follow_the_normal_approximation() {
        let n = 8_000_000u64;
        let interval = order_interval(n, 0.5, 0.95).unwrap_or_else(|| panic!("defined"));
        let half = 1.959_964 * (n as f64 * 0.25).sqrt();
        let low = interval.low.unwrap_or(0) as f64;
        assert!((low - (n as f64 / 2.0 - half)).abs() < 2.0, "{low}");
    }

    #[test]
    fn impossible_questions_have_no_answer() {
        for (n, q, level) in [(0, 0.5, 0.95), (10, 0.0, 0.95), (10, 0.5, 1.0), (10, f64::NAN, 0.9)] {
            assert_eq!(order_interval(n, q, level), None);
        }
    }

    proptest! {
        #[test]
        fn the_interval_covers_at_least_its_level(
            n in 1u64..400,
            q in 0.01f64..0.99,
            level in 0.5f64..0.999,
        ) {
            let interval = order_interval(n, q, level).unwrap_or_else(|| panic!("defined"));
            prop_assert!(interval.coverage >= level - 1e-12);
            if let (Some(low), Some(high)) = (interval.low, interval.high) {
                prop_assert!(1 <= low && low < high && high <= n);
            }
        }
    }
}

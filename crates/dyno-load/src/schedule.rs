//! When transactions start: the end of a closed loop, and the arrivals of an open loop.
//!
//! Arrivals of an open loop form a Poisson process: gaps are independent and exponential with mean 1 / rate. Their
//! intended times are drawn from a random generator that belongs to the arm, so the same seed gives the same arrivals
//! whatever the engine does.

use dyno_script::Rng;

/// When a slice ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// No transaction starts at or after this time [ns since the epoch].
    Until(i64),
    /// The slice ends after this number of transactions has started.
    Starts(u64),
}

/// Arrivals of one arm in an open loop.
#[derive(Debug)]
pub struct Arrivals {
    rng: Rng,
    gap_ns: f64,
    start_ns: i64,
    offset_ns: f64,
    bound: Bound,
}

impl Arrivals {
    /// Returns arrivals with a mean rate of `rate_per_s`.
    pub fn new(rng: Rng, rate_per_s: f64) -> Self {
        let gap_ns = 1e9 / rate_per_s;
        Self { rng, gap_ns, start_ns: 0, offset_ns: 0.0, bound: Bound::Starts(0) }
    }

    /// Begins a slice; the arrival process is memoryless, so it can be restarted at any time.
    pub fn begin(&mut self, start_ns: i64, bound: Bound) {
        self.start_ns = start_ns;
        self.offset_ns = 0.0;
        self.bound = bound;
    }

    /// Returns the next arrival [ns since the epoch], or `None` if the slice has no more arrivals.
    pub fn take(&mut self) -> Option<i64> {
        if self.bound == Bound::Starts(0) {
            return None;
        }
        self.offset_ns -= (1.0 - self.rng.unit()).ln() * self.gap_ns;
        let intended = self.start_ns + self.offset_ns as i64;
        match &mut self.bound {
            Bound::Until(end) if intended >= *end => {
                self.bound = Bound::Starts(0);
                return None;
            }
            Bound::Until(_) => {}
            Bound::Starts(left) => *left -= 1,
        }
        Some(intended)
    }

    /// Returns the time after which arrivals are skipped [ns since the epoch].
    ///
    /// This is the slice's end plus ten times its length, but at least one second after the end.
    pub fn cap_ns(start_ns: i64, bound: Bound, rate_per_s: f64) -> i64 {
        let length = match bound {
            Bound::Until(end) => end - start_ns,
            Bound::Starts(count) => (count as f64 / rate_per_s * 1e9) as i64,
        };
        start_ns.saturating_add(length).saturating_add(length.saturating_mul(10).max(1_000_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let mut arrivals = Arrivals::new(Rng::new(7), 10_000.0);
        arrivals.begin(0, Bound::Starts(100_000));
        let times: Vec<i64> = std::iter::from_fn(|| arrivals.take()).collect();
        assert_eq!(times.len(), 100_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // The standard error of the mean is 316 ns, that of the standard deviation about 450 ns.
        assert!((mean - 100_000.0).abs() < 1_500.0, "{mean}");
        assert!((variance.sqrt() - 100_000.0).abs() < 2_500.0, "{}", variance.sqrt());
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals_and_none_after_the_end() {
        let run = || {
            let mut arrivals = Arrivals::new(Rng::new(1), 1_000.0);
            arrivals.begin(5, Bound::Until(1_000_000_005));
            let times: Vec<i64> = std::iter::from_fn(|| arrivals.take()).collect();
            assert_eq!(arrivals.take(), None);
            times
        };
        let times = run();
        assert_eq!(times, run());
        assert!(times.is_sorted() && times.iter().all(|t| (5..1_000_000_005).contains(t)));
        assert!((800..1_200).contains(&times.len()));
    }

    #[test]
    fn the_cap_is_ten_slices_and_at_least_a_second_after_the_end() {
        let second = 1_000_000_000;
        assert_eq!(Arrivals::cap_ns(0, Bound::Until(50_000_000), 1.0), 50_000_000 + second);
        assert_eq!(Arrivals::cap_ns(0, Bound::Until(2 * second), 1.0), 22 * second);
        assert_eq!(Arrivals::cap_ns(0, Bound::Starts(100), 50.0), 22 * second);
    }
}

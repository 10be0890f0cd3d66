//! One line of a profile: count, time and distribution.

use dyno_stats::histogram::LogHistogram;

/// Number of decades: below 1 µs, then by powers of ten up to the largest number.
pub const DECADES: usize = 18;

/// Powers of ten that a u64 can hold.
const POW10: [u64; 20] = {
    let mut powers = [1; 20];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Durations of one kind. A duration may be negative if the trace counts the same time twice.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Count and sum [ns] by decade.
    pub decades: [(u64, i128); DECADES],
    /// Negative durations.
    pub negative: Negative,
    histogram: LogHistogram,
}

/// Negative durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negative {
    /// Number of durations.
    pub count: u64,
    /// Sum of the durations [ns].
    pub total_ns: i128,
    /// Smallest duration, the one farthest from 0 [ns].
    pub min_ns: i64,
    /// Largest duration, the one nearest to 0 [ns].
    pub max_ns: i64,
}

impl Default for Negative {
    fn default() -> Self {
        Self { count: 0, total_ns: 0, min_ns: i64::MAX, max_ns: i64::MIN }
    }
}

/// Returns the decade of a value: 0 below 1000, and one more for every power of ten. The number of bits gives the
/// number of digits, or one more (1233 / 4096 is the decimal logarithm of 2); a comparison with a table of powers of
/// ten decides which.
#[inline]
fn decade(value: u64) -> usize {
    let value = value | 1; // 0 as 1; no power of ten lies between the two.
    let most = (((64 - value.leading_zeros()) * 1233) >> 12) as usize;
    (most - usize::from(value < POW10[most])).saturating_sub(2)
}

/// Returns the lowest value of a decade and that of the next decade [ns].
pub fn bounds_of(decade: usize) -> (i64, i64) {
    let power = |n: usize| 10i64.checked_pow(n as u32 + 2).unwrap_or(i64::MAX);
    (if decade == 0 { 0 } else { power(decade) }, power(decade + 1))
}

impl Line {
    /// Adds a duration.
    #[inline]
    pub fn record(&mut self, value_ns: i64) {
        if value_ns < 0 {
            return self.record_negative(value_ns);
        }
        let (count, sum) = &mut self.decades[decade(value_ns as u64).min(DECADES - 1)];
        *count += 1;
        *sum += i128::from(value_ns);
        self.histogram.record(value_ns as u64);
    }

    #[cold]
    fn record_negative(&mut self, value_ns: i64) {
        self.negative.count += 1;
        self.negative.total_ns += i128::from(value_ns);
        self.negative.min_ns = self.negative.min_ns.min(value_ns);
        self.negative.max_ns = self.negative.max_ns.max(value_ns);
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.histogram.count() + self.negative.count
    }

    /// Returns the sum, with its sign [ns].
    pub fn total_ns(&self) -> i128 {
        self.decades.iter().map(|(_, sum)| sum).sum::<i128>() + self.negative.total_ns
    }

    /// Returns the smallest duration [ns]; the largest i64 if there is none.
    pub fn min_ns(&self) -> i64 {
        let low = self.histogram.min().map_or(i64::MAX, |low| low as i64);
        low.min(self.negative.min_ns)
    }

    /// Returns the longest duration [ns]; the smallest i64 if there is none.
    pub fn max_ns(&self) -> i64 {
        self.histogram.max().map_or(self.negative.max_ns, |high| high as i64)
    }

    /// Adds another line's durations.
    pub fn merge(&mut self, other: &Self) {
        for (own, theirs) in self.decades.iter_mut().zip(&other.decades) {
            own.0 += theirs.0;
            own.1 += theirs.1;
        }
        self.negative.count += other.negative.count;
        self.negative.total_ns += other.negative.total_ns;
        self.negative.min_ns = self.negative.min_ns.min(other.negative.min_ns);
        self.negative.max_ns = self.negative.max_ns.max(other.negative.max_ns);
        self.histogram.merge(&other.histogram);
    }

    /// Returns the nearest-rank quantile, accurate to 0.4 %; `None` if it falls among the negative durations.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = ((q * self.count() as f64).ceil() as u64).max(1);
        let rank = rank.checked_sub(self.negative.count).filter(|rank| *rank > 0)?;
        self.histogram.quantile(rank as f64 / self.histogram.count() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_join_and_hold_what_they_say() {
        for at in 0..DECADES - 1 {
            let (low, high) = bounds_of(at);
            assert_eq!(bounds_of(at + 1).0, high);
            assert_eq!(decade(low as u64), at);
            assert_eq!(decade(high as u64 - 1), at);
        }
        assert_eq!(decade(i64::MAX as u64).min(DECADES - 1), 16);
    }

    #[test]
    fn a_decade_is_that_of_the_logarithm() {
        let around = |power: &u64| [power - 1, *power, power + 1, power / 7 * 9];
        for value in POW10.iter().flat_map(around).chain((0..64).map(|shift| 1 << shift)) {
            let log = value.checked_ilog10().unwrap_or(0) as usize;
            assert_eq!(decade(value), log.saturating_sub(2), "{value}");
        }
    }

    #[test]
    fn a_line_of_negative_durations_alone() {
        let mut line = Line::default();
        line.record(-7);
        line.record(-3);
        assert_eq!((line.count(), line.total_ns()), (2, -10));
        assert_eq!((line.min_ns(), line.max_ns()), (-7, -3));
        assert_eq!(line.quantile(0.99), None);
    }

    #[test]
    fn negative_durations_keep_their_sign_in_the_total() {
        let mut line = Line::default();
        for value in [-5, 0, 10, 2_000] {
            line.record(value);
        }
        assert_eq!((line.count(), line.total_ns()), (4, 2005));
        assert_eq!((line.min_ns(), line.max_ns()), (-5, 2000));
        assert_eq!((line.negative.count, line.negative.total_ns), (1, -5));
        assert_eq!((line.decades[0], line.decades[1]), ((2, 10), (1, 2000)));
        assert_eq!((line.quantile(0.1), line.quantile(0.5)), (None, Some(0.0)));
    }
}

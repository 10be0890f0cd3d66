//! One line of a profile: how often, how long, how skewed.

use dyno_stats::histogram::LogHistogram;

/// Number of decades: below 1 us, then by powers of ten up to the largest number.
pub const DECADES: usize = 18;

/// Durations of one kind. A duration may be negative: time that two accounts both claim.
#[derive(Clone, Debug)]
pub struct Line {
    /// How many.
    pub count: u64,
    /// Their sum, with its sign.
    pub total_ns: i128,
    /// The least.
    pub min_ns: i64,
    /// The longest.
    pub max_ns: i64,
    /// Count and sum by decade.
    pub decades: [(u64, i128); DECADES],
    /// Count and sum of the negative ones.
    pub negative: (u64, i128),
    histogram: LogHistogram,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            count: 0,
            total_ns: 0,
            min_ns: i64::MAX,
            max_ns: i64::MIN,
            decades: [(0, 0); DECADES],
            negative: (0, 0),
            histogram: LogHistogram::new(),
        }
    }
}

#[inline]
fn decade(value: u64) -> usize {
    if value < 1000 { 0 } else { value.ilog10() as usize - 2 }
}

/// Lowest value of a decade and the lowest beyond it, ns.
pub fn bounds_of(decade: usize) -> (i64, i64) {
    let power = |n: usize| 10i64.checked_pow(n as u32 + 2).unwrap_or(i64::MAX);
    (if decade == 0 { 0 } else { power(decade) }, power(decade + 1))
}

impl Line {
    /// Takes a duration in.
    #[inline]
    pub fn record(&mut self, value_ns: i64) {
        self.count += 1;
        self.total_ns += i128::from(value_ns);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
        if value_ns >= 0 {
            let (count, sum) = &mut self.decades[decade(value_ns as u64).min(DECADES - 1)];
            *count += 1;
            *sum += i128::from(value_ns);
            self.histogram.record(value_ns as u64);
        } else {
            self.negative.0 += 1;
            self.negative.1 += i128::from(value_ns);
        }
    }

    /// Takes in another line's durations.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        for (own, theirs) in self.decades.iter_mut().zip(&other.decades) {
            own.0 += theirs.0;
            own.1 += theirs.1;
        }
        self.negative.0 += other.negative.0;
        self.negative.1 += other.negative.1;
        self.histogram.merge(&other.histogram);
    }

    /// The nearest-rank quantile, to 0.4 %; `None` where it falls among the negative ones.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let rank = rank.checked_sub(self.negative.0).filter(|rank| *rank > 0)?;
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
    fn negative_durations_keep_their_sign_in_the_total() {
        let mut line = Line::default();
        for value in [-5, 0, 10, 2_000] {
            line.record(value);
        }
        assert_eq!((line.count, line.total_ns, line.min_ns, line.max_ns), (4, 2005, -5, 2000));
        assert_eq!(line.negative, (1, -5));
        assert_eq!((line.decades[0], line.decades[1]), ((2, 10), (1, 2000)));
        assert_eq!((line.quantile(0.1), line.quantile(0.5)), (None, Some(0.0)));
    }
}

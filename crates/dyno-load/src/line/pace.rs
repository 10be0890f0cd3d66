//! Arrival times of bytes at the far end of a line, for one direction; no I/O.

use super::LineSpec;

/// Pace of a line in one direction, shared by all its connections.
#[derive(Debug)]
pub struct Pace {
    delay_ns: i64,
    rate_bit_per_s: Option<u64>,
    /// Time at which the last bit sent so far leaves the sender [ns since the epoch].
    free_ns: i64,
}

impl Pace {
    /// Returns the pace of a direction in which nothing travels.
    pub fn new(spec: LineSpec) -> Self {
        let delay_ns = i64::try_from(spec.delay_ns).unwrap_or(i64::MAX);
        Self { delay_ns, rate_bit_per_s: spec.rate_bit_per_s.filter(|rate| *rate > 0), free_ns: 0 }
    }

    /// Returns when bytes that are sent at `now_ns` arrive [ns since the epoch]; never before bytes that were sent
    /// earlier.
    pub fn arrival_ns(&mut self, now_ns: i64, bytes: usize) -> i64 {
        let took_ns = self.rate_bit_per_s.map_or(0, |rate| bytes as u128 * 8_000_000_000 / u128::from(rate));
        self.free_ns = self.free_ns.max(now_ns).saturating_add(i64::try_from(took_ns).unwrap_or(i64::MAX));
        self.free_ns.saturating_add(self.delay_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn pace(delay_ms: i64, rate_bit_per_s: Option<u64>) -> Pace {
        Pace::new(LineSpec { delay_ns: (delay_ms * MS) as u64, rate_bit_per_s })
    }

    #[test]
    fn a_delay_is_the_same_for_few_and_many_bytes() {
        let mut pace = pace(5, None);
        assert_eq!(pace.arrival_ns(100 * MS, 1), 105 * MS);
        assert_eq!(pace.arrival_ns(100 * MS, 1_000_000), 105 * MS);
    }

    #[test]
    fn a_rate_adds_the_time_that_the_bits_take() {
        // 12,500 bytes at 100 Mbit/s take 1 ms.
        let mut pace = pace(5, Some(100_000_000));
        assert_eq!(pace.arrival_ns(0, 12_500), 6 * MS);
    }

    #[test]
    fn bytes_queue_behind_those_that_came_before_and_not_behind_idle_time() {
        let mut pace = pace(5, Some(100_000_000));
        assert_eq!(pace.arrival_ns(0, 12_500), 6 * MS);
        assert_eq!(pace.arrival_ns(0, 12_500), 7 * MS);
        assert_eq!(pace.arrival_ns(50 * MS, 12_500), 56 * MS);
    }

    #[test]
    fn nothing_overtakes_at_the_edges_of_the_numbers() {
        let mut pace = pace(i64::MAX / MS, Some(1));
        assert!(pace.arrival_ns(i64::MAX - 1, usize::MAX) == i64::MAX);
        let mut free = Pace::new(LineSpec { delay_ns: 0, rate_bit_per_s: Some(0) });
        assert_eq!(free.arrival_ns(7, 1_000), 7);
    }
}

//! Frequency of looks: as high as the allowed share of the machine permits.

/// Periods of looks from which the pace is chosen [ns].
pub const PERIODS: [u64; 9] = [20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000];
/// Share of the machine that looks may take if the user set no share and no processor is spare.
pub const UNASKED: f64 = 0.02;
/// Interval at which the pace is chosen anew [ns].
pub const PACE_NS: u64 = 500_000_000;
/// Number of processors below which none counts as spare.
const SPARE_FROM: usize = 4;

/// Pace of looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Without a pause, on a dedicated processor.
    Spin,
    /// With this mean period [ns].
    Every(u64),
}

impl Pace {
    /// Returns the mean period [ns]; 0 without a pause.
    pub fn period_ns(self) -> u64 {
        match self {
            Self::Spin => 0,
            Self::Every(period_ns) => period_ns,
        }
    }
}

/// Current state of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Processors that may be used.
    pub processors: usize,
    /// Number of idle processors; the one used by the looks counts as idle.
    pub idle: f64,
}

/// Returns the shortest pace whose looks take at most the share `limit` of the machine (0: no limit).
///
/// If the user set no limit, looks take a whole processor if there are four or more and one is idle; otherwise 2 % of
/// the machine. `look_ns` is the CPU time of one look, sleeping and waking included.
pub fn pace(limit: Option<f64>, machine: Machine, look_ns: u64) -> Pace {
    let is_spare = machine.processors >= SPARE_FROM && machine.idle >= 1.0;
    let allowed = match limit {
        None if is_spare => 1.0,
        None => UNASKED * machine.processors as f64,
        Some(0.0) => f64::INFINITY,
        Some(share) => share * machine.processors as f64,
    };
    if allowed >= 1.0 {
        return Pace::Spin;
    }
    let pays = |period: &&u64| look_ns as f64 <= allowed * **period as f64;
    Pace::Every(PERIODS.iter().find(pays).copied().unwrap_or(PERIODS[PERIODS.len() - 1]))
}

/// Returns idle time and total time of all processors from the kernel's account (`/proc/stat`) [ticks].
pub fn idle_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is in user already.
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((idle, ticks.iter().take(8).sum()))
}

/// Returns the share of all processors' time that was idle between two results of [`idle_ticks`].
pub fn idle_share(before: (u64, u64), after: (u64, u64)) -> f64 {
    after.0.saturating_sub(before.0) as f64 / after.1.saturating_sub(before.1).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Machine = Machine { processors: 2, idle: 1.5 };
    const LARGE: Machine = Machine { processors: 8, idle: 3.0 };

    #[test]
    fn unasked_a_small_machine_gives_two_percent_and_a_large_one_a_processor_that_is_idle() {
        assert_eq!(pace(None, SMALL, 8_000), Pace::Every(200_000));
        assert_eq!(pace(None, LARGE, 8_000), Pace::Spin);
        assert_eq!(pace(None, Machine { idle: 0.4, ..LARGE }, 8_000), Pace::Every(50_000));
    }

    #[test]
    fn a_limit_that_was_asked_for_is_kept() {
        for (limit, look_ns) in [(0.01, 3_000), (0.05, 10_000), (0.2, 30_000)] {
            let Pace::Every(period_ns) = pace(Some(limit), SMALL, look_ns) else { panic!("it may not spin") };
            assert!(look_ns as f64 / period_ns as f64 <= limit * 2.0);
        }
        assert_eq!(pace(Some(0.5), SMALL, 8_000), Pace::Spin);
        assert_eq!(pace(Some(0.0), SMALL, 8_000), Pace::Spin);
        assert_eq!(pace(Some(0.0001), SMALL, 900_000), Pace::Every(10_000_000));
    }

    #[test]
    fn waiting_for_a_disk_is_idle_and_a_guest_is_counted_once() {
        let text = "cpu  10 1 4 70 5 1 1 8 10 0\ncpu0 1 2 3 4\n";
        assert_eq!(idle_ticks(text), Some((75, 100)));
        assert_eq!(idle_ticks("nonsense"), None);
        assert!((idle_share((75, 100), (90, 120)) - 0.75).abs() < 1e-9);
        assert!(idle_share((75, 100), (75, 100)).abs() < 1e-9);
    }
}

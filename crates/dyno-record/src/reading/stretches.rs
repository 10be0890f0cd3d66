//! Statistics of looks: their rate, and the gaps without looks.

use super::pace::Pace;

/// Minimum length of a gap: at least `GAP_NS` [ns] and at least `GAP_TIMES` periods. Anything shorter is ordinary
/// variation of sleeps.
const GAP_NS: u64 = 1_000_000;
const GAP_TIMES: u64 = 4;

/// Consecutive looks at one pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Start [ns].
    pub from_ns: u64,
    /// End [ns].
    pub until_ns: u64,
    /// Target period [ns]; 0 without a pause.
    pub period_ns: u64,
    /// Number of looks.
    pub looks: u64,
    /// Longest time between two looks [ns].
    pub longest_ns: u64,
    /// Number of gaps.
    pub gaps: u64,
    /// Total time of the gaps [ns].
    pub gap_ns: u64,
    /// CPU time of the looks [ns].
    pub cpu_ns: u64,
}

impl Stretch {
    /// Merges the following stretch; returns false if it had a different pace.
    pub fn join(&mut self, next: &Self) -> bool {
        let is_one = self.looks == 0 || self.period_ns == next.period_ns;
        if is_one {
            let from_ns = if self.looks == 0 { next.from_ns } else { self.from_ns };
            *self = Self {
                from_ns,
                until_ns: next.until_ns,
                period_ns: next.period_ns,
                looks: self.looks + next.looks,
                longest_ns: self.longest_ns.max(next.longest_ns),
                gaps: self.gaps + next.gaps,
                gap_ns: self.gap_ns + next.gap_ns,
                cpu_ns: self.cpu_ns + next.cpu_ns,
            };
        }
        is_one
    }

    /// Returns the mean time between two looks, without gaps [ns].
    pub fn mean_ns(&self) -> u64 {
        let seen_ns = (self.until_ns - self.from_ns).saturating_sub(self.gap_ns);
        seen_ns / self.looks.saturating_sub(self.gaps).max(1)
    }
}

/// Statistics of the time between looks.
#[derive(Debug)]
pub struct Pause {
    now: Stretch,
    gap_ns: u64,
}

impl Pause {
    /// Returns empty statistics for looks at this pace.
    pub fn new(pace: Pace) -> Self {
        let mut made = Self { now: Stretch::default(), gap_ns: 0 };
        made.change(pace);
        made
    }

    /// Begins a different pace.
    pub fn change(&mut self, pace: Pace) {
        self.now.period_ns = pace.period_ns();
        self.gap_ns = GAP_NS.max(GAP_TIMES * pace.period_ns());
    }

    /// Adds a look that came `apart_ns` after the previous one; returns true if that time was a gap.
    pub fn add(&mut self, at_ns: u64, apart_ns: u64) -> bool {
        if self.now.from_ns == 0 {
            self.now.from_ns = at_ns - apart_ns;
        }
        let is_gap = apart_ns > self.gap_ns;
        self.now.looks += 1;
        self.now.longest_ns = self.now.longest_ns.max(apart_ns);
        self.now.gaps += u64::from(is_gap);
        self.now.gap_ns += if is_gap { apart_ns } else { 0 };
        is_gap
    }

    /// Returns the stretch up to now, and begins the next one.
    pub fn take(&mut self, at_ns: u64, cpu_ns: u64) -> Stretch {
        let period_ns = self.now.period_ns;
        let from_ns = if self.now.from_ns == 0 { at_ns } else { self.now.from_ns };
        let done = Stretch { from_ns, until_ns: at_ns, cpu_ns, ..self.now };
        self.now = Stretch { from_ns: at_ns, period_ns, ..Stretch::default() };
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_is_much_longer_than_the_period_is_a_gap() {
        let mut pause = Pause::new(Pace::Every(200_000));
        assert!(!pause.add(1_000_000, 230_000));
        assert!(!pause.add(1_900_000, 900_000));
        assert!(pause.add(5_000_000, 3_100_000));
        let told = pause.take(5_000_000, 77);
        assert_eq!((told.looks, told.gaps, told.gap_ns, told.longest_ns), (3, 1, 3_100_000, 3_100_000));
        assert_eq!((told.from_ns, told.until_ns, told.cpu_ns), (770_000, 5_000_000, 77));
        assert_eq!(told.mean_ns(), (5_000_000 - 770_000 - 3_100_000) / 2);
        pause.change(Pace::Every(2_000_000));
        assert!(!pause.add(9_000_000, 4_000_000), "at a slower pace it is none");
    }

    #[test]
    fn stretches_of_one_pace_are_one() {
        let one = Stretch { from_ns: 10, until_ns: 20, period_ns: 5, looks: 2, longest_ns: 6, ..Stretch::default() };
        let mut all = Stretch::default();
        assert!(all.join(&one));
        assert!(all.join(&Stretch { from_ns: 20, until_ns: 40, longest_ns: 9, ..one }));
        assert_eq!((all.from_ns, all.until_ns, all.looks, all.longest_ns), (10, 40, 4, 9));
        assert!(!all.join(&Stretch { period_ns: 6, ..one }));
    }
}

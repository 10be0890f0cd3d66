//! Estimate of the number of waits from the number of looks that found them.
//!
//! Looks come every `d` on average, without regard to the waits. A wait of length L is found by L / d looks on average.
//! So the number of looks that found an event, times d, is an unbiased estimate of the event's time, although some of
//! its waits were not found. A wait shorter than d is found with probability L / d, so the number of waits that were
//! found is a lower bound of their true number.
//!
//! The true number depends on the distribution of the lengths. If they are exponential with mean m, a wait is found
//! with probability (1 - e^(-d/m)) m / d. The number of looks that find a wait, if at least one does, is geometric with
//! mean 1 / (1 - e^(-d/m)). That mean is observed, so m and the number of waits follow. For lengths that vary less than
//! exponential ones the estimate is too high, for lengths that vary more it is too low; the tests say by how much.

/// Waits of one event, as looks found them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Number of waits that at least one look found.
    pub waits: u64,
    /// Total number of looks that found these waits.
    pub looks: u64,
    /// Sum of the times of the waits, each from the first look that found it to the first that did not [ns].
    pub elapsed_ns: u64,
}

impl Found {
    /// Adds a wait.
    pub fn add(&mut self, looks: u64, elapsed_ns: u64) {
        self.waits += 1;
        self.looks += looks;
        self.elapsed_ns += elapsed_ns;
    }

    /// Returns the estimated number of waits, assuming exponential lengths; at least the number seen.
    ///
    /// `None` where no wait was found by more than one look: all that is known then is that the waits are short.
    pub fn estimate(&self) -> Option<u64> {
        if self.looks <= self.waits {
            return None;
        }
        // The mean number of looks is 1 / (1 - q), q = e^(-d/m).
        let q = 1.0 - self.waits as f64 / self.looks as f64;
        let share = (1.0 - q) / -q.ln();
        Some(((self.waits as f64 / share).round() as u64).max(self.waits))
    }
}

#[cfg(test)]
mod tests {
    use super::Found;

    /// Generator of random numbers between 0 and 1 (xorshift), from a seed.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        }

        /// Simulates looks at `waits` waits whose lengths `length` draws, every 100 us plus or minus an eighth; returns
        /// what was found and the true time [ns].
        fn look_at(&mut self, waits: u64, length: &dyn Fn(&mut Self) -> f64) -> (Found, f64) {
            let (mut found, mut all) = (Found::default(), 0.0);
            for _ in 0..waits {
                let lasts = length(self);
                all += lasts;
                let (mut at, mut looks, mut first) = (self.roll() * 100_000.0, 0, 0.0);
                while at < lasts {
                    if looks == 0 {
                        first = at;
                    }
                    looks += 1;
                    at += 100_000.0 * (0.875 + 0.25 * self.roll());
                }
                if looks > 0 {
                    found.add(looks, (at - first) as u64);
                }
            }
            (found, all)
        }
    }

    const WAITS: u64 = 200_000;

    fn off(told: f64, is: f64) -> f64 {
        (told / is - 1.0).abs()
    }

    #[test]
    fn the_time_is_unbiased_whatever_the_lengths_are() {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let exponential = |mean: f64| move |dice: &mut Dice| -mean * dice.roll().ln();
        let heavy = |dice: &mut Dice| (8_000.0 * dice.roll().powf(-0.5)).min(50e6);
        for mean in [5_000.0, 20_000.0, 100_000.0, 1_000_000.0] {
            let (found, all) = dice.look_at(WAITS, &exponential(mean));
            assert!(off(found.elapsed_ns as f64, all) < 0.03, "mean {mean}: {found:?} for {all}");
        }
        let (found, all) = dice.look_at(WAITS, &|_| 30_000.0);
        assert!(off(found.elapsed_ns as f64, all) < 0.03, "{found:?} for {all}");
        let (found, all) = dice.look_at(WAITS, &heavy);
        assert!(off(found.elapsed_ns as f64, all) < 0.05, "{found:?} for {all}");
    }

    #[test]
    fn the_number_of_exponential_waits_is_estimated_to_some_percent() {
        let mut dice = Dice(42);
        for (mean, within) in [(20_000.0, 0.10), (50_000.0, 0.03), (100_000.0, 0.02), (1_000_000.0, 0.01)] {
            let (found, _) = dice.look_at(WAITS, &|dice| -mean * dice.roll().ln());
            let told = found.estimate().expect("some are found twice") as f64;
            assert!(off(told, WAITS as f64) < within, "mean {mean}: {told}, {found:?}");
        }
    }

    #[test]
    fn of_lengths_that_vary_less_it_is_too_high_and_of_those_that_vary_more_too_low() {
        let mut dice = Dice(7);
        let (constant, _) = dice.look_at(WAITS, &|_| 300_000.0);
        assert_eq!(constant.waits, WAITS, "waits longer than a period are all seen");
        let told = constant.estimate().expect("found three times each");
        assert!(told >= WAITS && off(told as f64, WAITS as f64) < 0.25, "{told}");
        let (mixed, _) = dice.look_at(WAITS, &|dice| if dice.roll() < 0.9 { 5_000.0 } else { 500_000.0 });
        let told = mixed.estimate().expect("the long ones are found often");
        assert!(mixed.waits <= told && told < WAITS, "a lower bound, still: {told}");
    }

    #[test]
    fn where_no_wait_was_found_twice_nothing_is_estimated() {
        let mut dice = Dice(1);
        let (found, _) = dice.look_at(WAITS, &|_| 10_000.0);
        assert!(found.waits > WAITS / 20);
        assert_eq!(found.estimate(), None);
        assert_eq!(Found::default().estimate(), None);
    }
}

//! Utilisation of cores as Linux averages it, and the number of cores that it therefore searches for an idle one.

/// Time in which a contribution to the average decays to half [ns] (`kernel/sched/pelt.c`).
const HALF_LIFE_NS: f64 = 32e6;
/// Factor on the utilisation that decides how many cores are searched (`imbalance_pct` of `sd_llc`).
const IMBALANCE: f64 = 1.17;

/// Average number of busy cores.
pub(super) struct Utilisation {
    cores: f64,
    busy: f64,
    /// Average number of busy cores at `since_ns`.
    average: f64,
    since_ns: u64,
}

impl Utilisation {
    /// Returns the utilisation of idle cores.
    pub fn new(cores: usize) -> Self {
        Self { cores: cores as f64, busy: 0.0, average: 0.0, since_ns: 0 }
    }

    /// Changes the number of busy cores by `busy`.
    pub fn change(&mut self, busy: f64, now_ns: u64) {
        self.average = self.at(now_ns);
        self.busy += busy;
        self.since_ns = now_ns;
    }

    /// Returns the number of cores that are searched for an idle one (`update_idle_cpu_scan`): all cores, less a share
    /// that is the square of the scaled utilisation.
    pub fn searched(&self, now_ns: u64) -> usize {
        let load = IMBALANCE * self.at(now_ns) / self.cores;
        (self.cores * (1.0 - (load * load).min(1.0))) as usize
    }

    /// Sets the average number of busy cores.
    pub fn set(&mut self, average: f64, now_ns: u64) {
        (self.average, self.since_ns) = (average, now_ns);
    }

    /// Returns the average number of busy cores.
    pub fn at(&self, now_ns: u64) -> f64 {
        let passed_ns = (now_ns - self.since_ns) as f64;
        self.busy + (self.average - self.busy) * libm::exp2(-passed_ns / HALF_LIFE_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::Utilisation;

    #[test]
    fn an_average_of_two_cores_comes_half_way_in_each_half_life() {
        let mut cores = Utilisation::new(2);
        cores.change(2.0, 0);
        assert!((cores.at(32_000_000) - 1.0).abs() < 1e-12);
        cores.change(-2.0, 64_000_000);
        assert!((cores.at(96_000_000) - 0.75).abs() < 1e-12);
    }

    #[test]
    fn of_two_cores_one_is_searched_up_to_60_per_cent() {
        let long_ns = 10_000_000_000;
        let searched = |busy: f64| {
            let mut cores = Utilisation::new(2);
            cores.change(busy, 0);
            cores.searched(long_ns)
        };
        assert_eq!([0.0, 1.0, 1.2, 1.22, 2.0].map(searched), [2, 1, 1, 0, 0]);
    }
}

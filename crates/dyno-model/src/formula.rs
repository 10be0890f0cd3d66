//! Closed forms against which kernel and devices are tested. Times are in units of the mean service time unless a
//! function says otherwise; `rho` is the utilisation, below 1.
//!
//! Sources: Kleinrock, Queueing Systems I (1975) for the single stations; Reiser and Lavenberg (1980) for mean value
//! analysis; Whitt, Management Science 35 (1989) 1341 for the variance of a simulated mean; Desnoyers (SYSTOR 2012) and
//! Van Houdt (SIGMETRICS 2013) for garbage collection.

/// Returns the mean time from arrival to departure in an M/M/1 station.
pub fn mm1_sojourn(rho: f64) -> f64 {
    1.0 / (1.0 - rho)
}

/// Returns the standard error of the mean wait (or time) of `n` successive customers of M/M/1 in steady state.
/// Successive waits are correlated, so the error is much larger than that of independent waits.
pub fn mm1_wait_standard_error(rho: f64, n: f64) -> f64 {
    let asymptotic = rho * (2.0 + 5.0 * rho - 4.0 * rho * rho + rho.powi(3)) / (1.0 - rho).powi(4);
    (asymptotic / n).sqrt()
}

/// Returns the mean wait in M/M/c by Erlang's C formula.
pub fn mmc_wait(servers: u32, rho: f64) -> f64 {
    let c = f64::from(servers);
    let offered = rho * c;
    let blocked = (1..=servers).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b));
    let waits = blocked / (1.0 - rho * (1.0 - blocked));
    waits / (c * (1.0 - rho))
}

/// Returns the mean wait in M/G/1 (Pollaczek and Khinchine) from the squared coefficient of variation of the service
/// time: 0 for M/D/1.
pub fn mg1_wait(rho: f64, cv2: f64) -> f64 {
    rho * (1.0 + cv2) / (2.0 * (1.0 - rho))
}

/// Returns the share of customers that M/M/1/K turns away: `k` places, the server's included.
pub fn mm1k_blocked(rho: f64, k: i32) -> f64 {
    (1.0 - rho) * rho.powi(k) / (1.0 - rho.powi(k + 1))
}

/// Returns (throughput, time in the stations) by mean value analysis of one class in a closed network, from the demand
/// at each queueing station, the think time and the number of customers.
pub fn mva(demands: &[f64], think: f64, customers: u32) -> (f64, f64) {
    let mut queue = vec![0.0; demands.len()];
    let mut result = (0.0, demands.iter().sum());
    for n in 1..=customers {
        let times: Vec<f64> = demands.iter().zip(&queue).map(|(d, q)| d * (1.0 + q)).collect();
        let time = times.iter().sum();
        let rate = f64::from(n) / (think + time);
        queue = times.iter().map(|time| rate * time).collect();
        result = (rate, time);
    }
    result
}

/// Returns the write amplification of greedy garbage collection under uniformly random writes, for a die of many blocks
/// with `pages` pages each; `spare` is the physical size divided by the logical size (> 1). Mean field: in the steady
/// state the probability of a block with `i` valid pages is proportional to 1 / i, down to the level at which it is
/// collected.
pub fn greedy_amplification(spare: f64, pages: u32) -> f64 {
    let b = f64::from(pages);
    // Collection takes all blocks at a level above `j` pages, and a share 1 - p of those at `j`. Walk
    // down from full: at first more pages are freed than rewritten; collect where the two meet.
    let mut harmonic = 0.0;
    for j in (1..=pages).rev() {
        let level = f64::from(j);
        let freed = |p: f64| b - level + 1.0 - p;
        let surplus = |p: f64| freed(p) - b / spare * (harmonic + (1.0 - p) / level);
        let (above, at) = (surplus(1.0), surplus(0.0));
        if at <= 0.0 {
            return b / freed(at / (at - above));
        }
        harmonic += 1.0 / level;
    }
    1.0
}

/// Returns the write amplification of first-in-first-out collection (and of greedy with very large blocks): A = 1 /
/// (1 - exp(-spare / A)), by bisection.
pub fn fifo_amplification(spare: f64) -> f64 {
    let (mut low, mut high) = (1.0, 1e6);
    for _ in 0..200 {
        let middle: f64 = f64::midpoint(low, high);
        let next = 1.0 / (1.0 - (-spare / middle).exp());
        if next > middle { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 2e-5, "{value} is not {expected}");
    }

    #[test]
    fn single_stations() {
        near(mm1_sojourn(0.8), 5.0);
        near(mm1_wait_standard_error(0.8, 1.0).powi(2), 1976.0);
        near(mmc_wait(2, 0.8), 1.777_778);
        near(mmc_wait(8, 0.9), 0.876_916);
        near(mmc_wait(32, 0.95), 0.434_819);
        near(mg1_wait(0.8, 0.0), 2.0);
        near(mg1_wait(0.8, 4.0), 10.0);
        near(mm1k_blocked(0.8, 10), 0.023_492_9);
    }

    #[test]
    fn a_closed_network() {
        for (n, rate, time) in [(1, 8.547_01, 17.0), (10, 77.230_44, 29.482_63), (50, 125.0, 300.0)] {
            let (x, r) = mva(&[5.0, 8.0, 4.0], 100.0, n);
            near(x * 1e3, rate);
            near(r, time);
        }
    }

    #[test]
    fn garbage_collection() {
        for (spare, pages, expected) in [
            (1.07, 64, 7.0099),
            (1.28, 64, 2.4028),
            (1.07, 128, 7.3916),
            (1.28, 128, 2.4412),
            (1.07, 256, 7.5969),
            (2.0, 256, 1.2509),
        ] {
            near(greedy_amplification(spare, pages), expected);
        }
        near(fifo_amplification(1.28), 2.481_36);
    }
}

//! Clock of the benches.

use std::time::Instant;

/// Returns the CPU time of this process so far [s], or the wall-clock time since `since` if the system does not report
/// CPU time.
pub fn cpu_s(since: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
    ns.filter(|&ns| ns > 0).map_or(since.elapsed().as_secs_f64(), |ns| ns as f64 / 1e9)
}

//! CPU time, wall time and peak memory of this process, from /proc.

use std::time::Instant;

/// Measurement of a piece of work.
pub struct Cost {
    wall: Instant,
    cpu: f64,
}

/// Returns user and system time so far [s].
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let own = stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0);
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|t| t.parse::<f64>().ok()).unwrap_or(0.0);
    // All threads by ticks of 10 ms, or this one exactly where it did all the work.
    ((ticks(11) + ticks(12)) / 100.0).max(own / 1e9)
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

impl Cost {
    /// Starts a measurement.
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu() }
    }

    /// Prints the cost of reading `bytes` bytes.
    pub fn print(&self, what: &str, bytes: u64) {
        let (wall, cpu, mb) = (self.wall.elapsed().as_secs_f64(), cpu() - self.cpu, bytes as f64 / 1e6);
        println!(
            "{what}: {mb:.1} MB in {wall:.3} s wall, {cpu:.3} s CPU: {:.0} MB/s, {:.0} MB per \
             CPU-second, peak {:.0} MiB",
            mb / wall,
            mb / cpu.max(1e-9),
            peak_mib()
        );
    }
}

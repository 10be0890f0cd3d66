//! Fitting an empirical device to measured latencies, and saying how good the fit is.
//!
//! A fit is judged by distances between what it gives and what was measured: Kolmogorov and
//! Smirnov's largest gap between the distribution functions; the mean gap between the quantile
//! functions of the logarithms (Wasserstein's first distance, a mean relative error); and the
//! relative error at chosen quantiles. A distance means nothing alone, because two halves of the
//! same measurement differ too: every distance stands beside the **noise floor**, the same distance
//! between the first and the second half. A fit near the floor is as good as the data can tell; a
//! floor that is itself high says that the device changed while it was measured, and that one table
//! is the wrong model (regimes are needed, or a calmer measurement).

use crate::kernel::table::{Table, TableError, quantile_of};

/// How far two sets of latencies are apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Largest gap between the distribution functions: 0 to 1.
    pub ks: f64,
    /// Mean absolute difference of the logarithms of equal quantiles.
    pub log_w1: f64,
    /// Relative error at p50, p90, p99 and p99.9.
    pub quantiles: [f64; 4],
}

/// A fit and its judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Quantiles of all values.
    pub table: Table,
    /// A table of the first half against the second half.
    pub distance: Distance,
    /// The first half itself against the second half.
    pub floor: Distance,
    /// Correlation of the logarithms of neighbours: near 0, or one table is not enough.
    pub neighbours: f64,
}

/// Quantiles at which errors are shown.
pub const SHOWN: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Points at which distribution and quantile functions are compared.
const GRID: usize = 10_000;

/// Fits a table to latencies (in us, in the order measured). Four values or more.
pub fn fit(values_us: &[f64]) -> Result<Fit, TableError> {
    let (first, second) = values_us.split_at(values_us.len() / 2);
    if first.len() < 2 {
        return Err(TableError::Shape);
    }
    let half = Table::of_values(first)?;
    let (first, second) = (sorted(first), sorted(second));
    Ok(Fit {
        table: Table::of_values(values_us)?,
        distance: distance(|p| half.quantile(p), &second),
        floor: distance(|p| quantile_of(&first, p), &second),
        neighbours: neighbours(values_us),
    })
}

/// A model's quantile function against sorted measured values, not empty.
pub fn distance(model: impl Fn(f64) -> f64, measured: &[f64]) -> Distance {
    let (mut ks, mut log_w1) = (0.0_f64, 0.0);
    for i in 0..GRID {
        let p = (i as f64 + 0.5) / GRID as f64;
        let value = model(p);
        // With ties the distribution function jumps: no gap if p lies within the jump.
        let below = measured.partition_point(|&x| x < value) as f64 / measured.len() as f64;
        let up_to = measured.partition_point(|&x| x <= value) as f64 / measured.len() as f64;
        ks = ks.max(below - p).max(p - up_to);
        log_w1 += libm::log(value / quantile_of(measured, p)).abs() / GRID as f64;
    }
    let quantiles = SHOWN.map(|p| model(p) / quantile_of(measured, p) - 1.0);
    Distance { ks, log_w1, quantiles }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().map(|value| value.max(1e-9)).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn neighbours(values: &[f64]) -> f64 {
    let logs: Vec<f64> = values.iter().map(|value| libm::log(value.max(1e-9))).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let variance: f64 = logs.iter().map(|x| (x - mean).powi(2)).sum();
    let together: f64 = logs.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if variance > 0.0 { together / variance } else { 0.0 }
}

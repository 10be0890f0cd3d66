//! Fit of an empirical device to measured latencies, with an assessment of how good the fit is.
//!
//! A fit is judged by three distances between its distribution and the measured one: the largest gap between the
//! distribution functions (Kolmogorov and Smirnov); the mean gap between the quantile functions of the logarithms
//! (Wasserstein's first distance, a mean relative error); and the relative error at chosen quantiles. A distance by
//! itself means nothing, because two halves of the same measurement differ too. So every distance is reported with its
//! **noise floor**, the same distance between the first and the second half of the measurement. A fit near the floor is
//! as good as the data allow. A high floor means that the device changed during the measurement, and that one table is
//! the wrong model (use regimes, or measure under steadier conditions).
//!
//! Successive latencies are usually correlated. So the intervals of quantiles come from a moving-block bootstrap, which
//! draws stretches as long as the correlation lasts, not single values (Künsch, Annals of Statistics 17 (1989) 1217).
//! If the correlation comes from a slow state that persists, [`super::regimes`] finds it.

use dyno_stats::autocorrelation::autocorrelation;
use dyno_stats::rng::Xoshiro256;
use serde_json::{Value, json};

use super::regimes::{self, Regimes, logarithms};
use crate::kernel::table::{Table, TableError, quantile_of};

/// Distances between two sets of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Largest gap between the distribution functions, 0 to 1.
    pub ks: f64,
    /// Mean absolute difference between the logarithms of corresponding quantiles.
    pub log_w1: f64,
    /// Relative error at p50, p90, p99 and p99.9.
    pub quantiles: [f64; 4],
}

/// A fit, with the distances by which it is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Quantiles of all values.
    pub table: Table,
    /// Distance between a table fitted to the first half of the values and the second half.
    pub distance: Distance,
    /// Noise floor: distance between the first and the second half of the values.
    pub floor: Distance,
    /// Correlation of the logarithms of successive latencies; unless it is near 0, one table is not enough.
    pub neighbours: f64,
}

/// Quantiles at which errors are shown.
pub const SHOWN: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Number of points at which distribution and quantile functions are compared.
const GRID: usize = 10_000;

/// Fits a table to four or more latencies [µs] in the order measured.
///
/// # Errors
/// Fewer than four values.
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

/// Returns the distance between a model's quantile function and sorted measured values, which must not be empty.
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
    autocorrelation(&logarithms(values), 1).unwrap_or(0.0)
}

/// Returns the number of values over which neighbours are correlated: twice the first of the lags 1, 2, 4, ... at which
/// the correlation is at most 0.05. The result is at least the cube root of the number of values, and at most an eighth
/// of that number.
pub fn block_length(logs: &[f64]) -> usize {
    let most = (logs.len() / 8).max(1);
    let least = (libm::cbrt(logs.len() as f64) as usize).clamp(1, most);
    let mut lag = 1;
    while lag < most && autocorrelation(logs, lag).is_some_and(|r| r.abs() > 0.05) {
        lag *= 2;
    }
    if lag == 1 { least } else { (2 * lag).clamp(least, most) }
}

/// Width of the bins of the bootstrap: a quarter of a percent.
const STEP: f64 = 0.0025;
const RESAMPLES: usize = 400;

/// Returns 95 % intervals of the quantiles [`SHOWN`] by resampling stretches of `block` neighbours. The resolution of
/// the values is a quarter of a percent; the random numbers are the same in every call.
pub fn intervals(logs: &[f64], block: usize) -> [[f64; 2]; 4] {
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let bin = |x: f64| ((x - low) / STEP) as u32;
    let bins: Vec<u32> = logs.iter().map(|&x| bin(x)).collect();
    let mut counts = vec![0_u32; bins.iter().max().map_or(1, |most| *most as usize + 1)];
    let mut dice = Xoshiro256::new(0x0063_616c_6962_7261);
    let mut found: [Vec<f64>; 4] = Default::default();
    let starts = (logs.len() - block + 1) as u64;
    for _ in 0..RESAMPLES {
        counts.fill(0);
        let mut left = logs.len();
        while left > 0 {
            let start = dice.below(starts) as usize;
            let length = block.min(left);
            bins[start..start + length].iter().for_each(|&at| counts[at as usize] += 1);
            left -= length;
        }
        for (found, p) in found.iter_mut().zip(SHOWN) {
            let wanted = (p * logs.len() as f64) as u32;
            let mut seen = 0;
            let at = counts.iter().position(|count| {
                seen += count;
                seen > wanted
            });
            found.push(libm::exp(low + STEP * (at.unwrap_or(counts.len()) as f64 + 0.5)));
        }
    }
    found.map(|mut values| {
        values.sort_by(f64::total_cmp);
        [quantile_of(&values, 0.025), quantile_of(&values, 0.975)]
    })
}

/// Lags at which the correlation is reported.
const LAGS: [usize; 4] = [1, 10, 100, 1_000];

/// Returns the fit as JSON: its figures, its distances, and the device as parameter text. If the start times of the
/// requests are known, the durations of regimes are differences of these times; otherwise they are sums of latencies,
/// as if requests had run one after another.
///
/// # Errors
/// Fewer than four values.
pub fn report(values_us: &[f64], started_ns: Option<&[i64]>) -> Result<Value, TableError> {
    let fit = fit(values_us)?;
    let logs = logarithms(values_us);
    let block = block_length(&logs);
    let intervals = intervals(&logs, block);
    let regimes = regimes::find(values_us);
    let all = sorted(values_us);
    let quantiles: Vec<Value> = SHOWN
        .iter()
        .zip(intervals)
        .map(|(&p, [low, high])| json!({"p": p, "us": quantile_of(&all, p), "low": low, "high": high}))
        .collect();
    let lags: Vec<Value> = LAGS
        .iter()
        .filter(|lag| **lag * 4 < logs.len())
        .map(|&lag| {
            let given = regimes.as_ref().map(|regimes| regimes.autocorrelation(lag));
            json!({"lag": lag, "measured": autocorrelation(&logs, lag), "regimes": given})
        })
        .collect();
    let (parameters, states) = match &regimes {
        None => (regime_text(&fit.table, 0.0), Vec::new()),
        Some(regimes) => of_regimes(regimes, values_us, started_ns)?,
    };
    Ok(json!({
        "n": values_us.len(), "mean_us": values_us.iter().sum::<f64>() / values_us.len() as f64,
        "quantiles": quantiles, "block": block, "blocks": values_us.len() / block,
        "distance": distance_json(&fit.distance), "floor": distance_json(&fit.floor),
        "lags": lags, "regimes": states,
        "toml": format!("regimes = [\n{parameters}]\n"),
    }))
}

fn distance_json(distance: &Distance) -> Value {
    json!({"ks": distance.ks, "log_w1": distance.log_w1, "quantiles": distance.quantiles})
}

fn of_regimes(
    regimes: &Regimes,
    values: &[f64],
    started_ns: Option<&[i64]>,
) -> Result<(String, Vec<Value>), TableError> {
    let stay_us = started_ns.map_or(regimes.stay_us, |started| regimes.stay_on_clock_us(started));
    let (mut text, mut states) = (String::new(), Vec::new());
    for state in 0..2_u8 {
        let table = Table::of_values(&regimes.values(values, state))?;
        let at = usize::from(state);
        let stay_ms = stay_us[at] / 1e3;
        text += &regime_text(&table, stay_ms);
        states.push(json!({
            "share": regimes.share[at], "stay_ms": stay_ms,
            "stay_requests": regimes.stay_requests[at],
            "p50_us": table.quantile(0.5), "p99_us": table.quantile(0.99),
        }));
    }
    Ok((text, states))
}

/// Returns a regime as parameter text, with one table for reads and writes, which were not measured separately.
fn regime_text(table: &Table, stay_ms: f64) -> String {
    let listed = |of: fn(&(f64, f64)) -> f64, digits: usize| {
        let words: Vec<String> = table.points().iter().map(|point| short(of(point), digits)).collect();
        words.join(", ")
    };
    let times = format!(
        "{{ kind = \"measured\", probability = [{}], us = [{}] }}",
        listed(|point| point.0, 8),
        listed(|point| point.1, 6)
    );
    format!("  {{ stay_ms = {}, read = {times}, write = {times} }},\n", short(stay_ms, 4))
}

/// Returns a number with this many significant digits, without trailing zeros but always with a decimal point.
fn short(value: f64, digits: usize) -> String {
    let whole = if value > 0.0 { libm::log10(value).floor() as i32 + 1 } else { 1 };
    let behind = (digits as i32 - whole).max(1) as usize;
    let text = format!("{value:.behind$}");
    let cut = text.trim_end_matches('0');
    if cut.ends_with('.') { format!("{cut}0") } else { cut.to_owned() }
}

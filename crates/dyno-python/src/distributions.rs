//! Tails and quantiles of distributions. Undefined parameters give NaN.

use std::f64::consts::LN_10;

use dyno_stats::distributions as of;
use pyo3::prelude::*;

fn log10(ln_p: Option<f64>) -> f64 {
    ln_p.map_or(f64::NAN, |ln_p| ln_p.min(0.0) / LN_10)
}

/// Return P(T <= t) of Student's t.
#[pyfunction]
pub(crate) fn t_cdf(df: f64, t: f64) -> f64 {
    of::t_cdf(t, df).unwrap_or(f64::NAN)
}

/// Return the p quantile of Student's t.
#[pyfunction]
pub(crate) fn t_quantile(df: f64, p: f64) -> f64 {
    of::t_quantile(df, p).unwrap_or(f64::NAN)
}

/// Return log10 of the two-sided p of Student's t.
#[pyfunction]
pub(crate) fn t_log10_p(t: f64, df: f64) -> f64 {
    log10(of::t_ln_p(t, df))
}

/// Return log10 of the upper-tail p of Fisher's F with `between` and `within` degrees of freedom.
#[pyfunction]
pub(crate) fn f_log10_p(f: f64, between: f64, within: f64) -> f64 {
    log10(of::f_ln_p(f, between, within))
}

/// Return log10 of the upper-tail p of chi squared.
#[pyfunction]
pub(crate) fn chi2_log10_p(x: f64, df: f64) -> f64 {
    log10(of::chi2_ln_p(x, df))
}

/// Return the p quantile of chi squared.
#[pyfunction]
pub(crate) fn chi2_quantile(df: f64, p: f64) -> f64 {
    of::chi2_quantile(df, p).unwrap_or(f64::NAN)
}

/// Return P(|T| > critical) of a noncentral t with noncentrality `away`.
#[pyfunction]
pub(crate) fn t_power(df: f64, away: f64, critical: f64) -> f64 {
    dyno_stats::power::t_power(df, away, critical).unwrap_or(f64::NAN)
}

/// Return P(B <= k) of a binomial of `n` draws with probability `q`.
#[pyfunction]
pub(crate) fn binomial_cdf(k: f64, n: f64, q: f64) -> f64 {
    of::binomial_cdf(k, n, q).unwrap_or(f64::NAN)
}

/// Return P(B > k) of a binomial of `n` draws with probability `q`.
#[pyfunction]
pub(crate) fn binomial_sf(k: f64, n: f64, q: f64) -> f64 {
    of::binomial_sf(k, n, q).unwrap_or(f64::NAN)
}

/// Return P(Z <= z) of a standard normal.
#[pyfunction]
pub(crate) fn normal_cdf(z: f64) -> f64 {
    of::normal_cdf(z)
}

/// Return the p quantile of a standard normal.
#[pyfunction]
pub(crate) fn normal_quantile(p: f64) -> f64 {
    of::normal_quantile(p).unwrap_or(f64::NAN)
}

/// Return log10 of the two-sided p of a standard normal value.
#[pyfunction]
pub(crate) fn normal_log10_p(z: f64) -> f64 {
    log10(Some(of::normal_ln_p(z)))
}

/// Return log10 of the asymptotic two-sided p of the Kolmogorov-Smirnov D of samples of `n` and `m` values.
#[pyfunction]
pub(crate) fn kolmogorov_log10_p(d: f64, n: f64, m: f64) -> f64 {
    log10(Some(of::kolmogorov_ln_p(d, n, m)))
}

/// Return log10 of the two-sided p of a correlation r over n pairs; None where it is not defined.
#[pyfunction]
pub(crate) fn prob_r_log10(r: f64, n: u64) -> Option<f64> {
    of::correlation_ln_p(r, n).map(|ln_p| ln_p / LN_10)
}

/// Return the two-sided p of a correlation r over n pairs; None where it is not defined.
#[pyfunction]
pub(crate) fn prob_r(r: f64, n: i64) -> Option<f64> {
    of::correlation_ln_p(r, u64::try_from(n).ok()?).map(f64::exp)
}

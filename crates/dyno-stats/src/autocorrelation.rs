//! Sample autocorrelation: how well a value predicts a later one.

/// Returns the autocorrelation at a lag, in the form NIST certifies:
/// `sum (y[t] - mean)(y[t + lag] - mean) / sum (y[t] - mean)^2`.
///
/// `None` if the lag is not below the number of values, or the values do not vary.
pub fn autocorrelation(values: &[f64], lag: usize) -> Option<f64> {
    if lag >= values.len() {
        return None;
    }
    let n = values.len() as f64;
    let first = values.iter().sum::<f64>() / n;
    let mean = first + values.iter().map(|v| v - first).sum::<f64>() / n;
    let whole: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let shared: f64 = values.iter().zip(&values[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum();
    (whole > 0.0).then(|| shared / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST `StRD`: `NumAcc1` r1 = -0.5; `NumAcc2` (1.2, then 1.1 and 1.3 alternately, 1001 values) r1 = -0.999. Both
    /// exact.
    #[test]
    fn certified_values() {
        let r = autocorrelation(&[10_000_001.0, 10_000_003.0, 10_000_002.0], 1);
        assert_eq!(r, Some(-0.5));
        let second: Vec<f64> = (0..1001).map(|i| if i == 0 { 1.2 } else { [1.3, 1.1][i % 2] }).collect();
        let r = autocorrelation(&second, 1).unwrap_or(f64::NAN);
        assert!((r + 0.999).abs() < 1e-12, "{r}");
    }

    #[test]
    fn lag_zero_is_one_and_constants_have_none() {
        assert_eq!(autocorrelation(&[1.0, 2.0], 0), Some(1.0));
        assert_eq!(autocorrelation(&[3.0; 9], 1), None);
        assert_eq!(autocorrelation(&[1.0, 2.0], 2), None);
    }
}

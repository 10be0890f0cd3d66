//! Power of a two-sided t test.

use crate::distributions::normal_cdf;
use crate::special::ln_gamma_front;

/// Points and weights of the positive half of the 16-point Gauss-Legendre rule on -1..1 (Abramowitz and Stegun 25.4).
const RULE: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
    (0.755_404_408_355_003, 0.124_628_971_255_533_87),
    (0.865_631_202_387_831_7, 0.095_158_511_682_492_78),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_095),
];

/// Distance from the middle, in standard deviations, beyond which a density is negligible.
const FAR: f64 = 9.0;

/// Returns `P(|T| > critical)` of a noncentral t with `df` degrees of freedom and noncentrality `away`.
///
/// A noncentral t is a normal with mean `away` divided by an estimated spread, the root of a chi squared over its
/// degrees of freedom. The probability at a given spread is averaged over the spread's density, piece by piece: pieces
/// end where the normal's tail begins and ends. `None` unless `df` and `critical` are above 0.
pub fn t_power(df: f64, away: f64, critical: f64) -> Option<f64> {
    if away.is_nan() || !(df > 0.0 && df.is_finite() && critical > 0.0) {
        return None;
    }
    let reach = FAR / (2.0 * df).sqrt();
    let (low, high) = ((1.0 - reach).max(0.0), 1.0 + reach);
    let turns = [-FAR, -4.0, -2.0, 0.0, 2.0, 4.0, FAR].map(|step| (away.abs() + step) / critical);
    let middle = [0.25, 0.5, 0.75].map(|part| low + part * (high - low));
    let mut ends: Vec<f64> = turns.into_iter().chain(middle).filter(|end| low < *end && *end < high).collect();
    ends.extend([low, high]);
    ends.sort_by(f64::total_cmp);
    let shown = |spread: f64| normal_cdf(away - critical * spread) + normal_cdf(-away - critical * spread);
    // The density of the spread s is 2/s times the leading factor of the gamma at df/2 s^2.
    let at = |spread: f64| 2.0 / spread * ln_gamma_front(df / 2.0, df / 2.0 * spread * spread).exp() * shown(spread);
    // At 0 the density is no smooth function of s, but one of its fourth root.
    let root = if low > 0.0 { 1 } else { 4 };
    for end in &mut ends {
        *end = end.powf(1.0 / f64::from(root));
    }
    let of_root = |u: f64| f64::from(root) * u.powi(root - 1) * at(u.powi(root));
    Some(ends.windows(2).map(|piece| integral(piece[0], piece[1], of_root)).sum::<f64>().clamp(0.0, 1.0))
}

/// Returns the integral of a function over a short interval.
fn integral(from: f64, to: f64, of: impl Fn(f64) -> f64) -> f64 {
    let (middle, half) = (f64::midpoint(from, to), (to - from) / 2.0);
    let pair = |(point, weight): (f64, f64)| weight * (of(middle - half * point) + of(middle + half * point));
    half * RULE.into_iter().map(pair).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::{t_cdf, t_quantile};

    #[test]
    fn without_a_difference_the_power_is_the_level_of_the_test() {
        for df in [1.0, 1.5, 2.0, 4.0, 19.0, 300.0, 99_999.0] {
            for p in [0.9, 0.975, 0.995, 0.9995] {
                let critical = t_quantile(df, p).unwrap_or(f64::NAN);
                let expected = 2.0 * (1.0 - t_cdf(critical, df).unwrap_or(f64::NAN));
                let found = t_power(df, 0.0, critical).unwrap_or(f64::NAN);
                assert!((found - expected).abs() < 1e-7, "{df} {p}: {found} {expected}");
            }
        }
    }

    #[test]
    fn few_blocks_have_the_power_of_scipy_however_near_to_0_a_piece_begins() {
        // Integrals of scipy 1.17 over the density of chi.
        for (df, away, critical, expected) in [
            (1.375_859_824_754_279_7, 4.003_330_673_488_509_5, 2.580_116_341_553_094_5, 0.855_165_267_001_515),
            (1.0, 4.0, 12.706_204_736_174_694, 0.246_355_587_288_992_84),
            (1.5, 0.006, 1.596_747_605_755_126_7, 0.290_005_659_814_036_86),
            (3.0, 2.0, 3.182_446_305_283_707_8, 0.288_752_416_401_715_06),
        ] {
            let found = t_power(df, away, critical).unwrap_or(f64::NAN);
            let same = t_power(df, -away, critical).unwrap_or(f64::NAN);
            assert!((found - expected).abs() < 1e-8, "{df} {away}: {found} {expected}");
            assert_eq!(found.to_bits(), same.to_bits());
        }
    }

    #[test]
    fn with_many_blocks_the_power_is_that_of_the_normal() {
        let expected = normal_cdf(3.0 - 1.96) + normal_cdf(-3.0 - 1.96);
        let found = t_power(1e9, 3.0, 1.96).unwrap_or(f64::NAN);
        assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    }

    #[test]
    fn what_defines_no_test_has_no_power() {
        assert_eq!(t_power(0.0, 1.0, 2.0), None);
        assert_eq!(t_power(3.0, f64::NAN, 2.0), None);
        assert_eq!(t_power(3.0, 1.0, 0.0), None);
        assert_eq!(t_power(f64::NAN, 1.0, 2.0), None);
    }

    #[test]
    fn a_difference_far_beyond_the_spread_is_always_shown_and_at_once() {
        let begin = std::time::Instant::now();
        for away in (1..=30).map(|power| 1e3 * 10f64.powi(power)).chain([1e3, -1e3, f64::INFINITY]) {
            let found = t_power(4.0, away, 2.776).unwrap_or(f64::NAN);
            assert!((found - 1.0).abs() < 1e-9, "{away}: {found}");
        }
        let took_ms = begin.elapsed().as_millis();
        assert!(took_ms < 1000, "{took_ms} ms: each took 100 while a fraction did not end");
    }
}

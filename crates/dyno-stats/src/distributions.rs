//! Tail probabilities and quantiles of the distributions that intervals and tests need.
//!
//! Two-sided and upper tails are natural logarithms: with millions of waits every p underflows as a float. They agree
//! with scipy to about 13 digits (`tests/oracles`). Each returns `None` where its parameters define no distribution.

use std::f64::consts::{LN_2, PI};

use crate::special::{ln_beta_front, ln_beta_regularised, ln_gamma_upper};

/// Returns the natural logarithm of the two-sided p of Student's t.
///
/// `P(|T| > t) = I_x(df/2, 1/2)` with `x = df / (df + t^2)` (DLMF 8.17).
pub fn t_ln_p(t: f64, df: f64) -> Option<f64> {
    if t.is_nan() || df.is_nan() || df <= 0.0 {
        return None;
    }
    if df.is_infinite() {
        return Some(normal_ln_p(t));
    }
    let square = t * t;
    let whole = df + square;
    Some(if whole.is_infinite() {
        f64::NEG_INFINITY
    } else {
        ln_beta_regularised(df / 2.0, 0.5, df / whole, square / whole)
    })
}

/// Returns `P(T <= t)` of Student's t.
pub fn t_cdf(t: f64, df: f64) -> Option<f64> {
    let tail = t_ln_p(t, df)?.exp() / 2.0;
    Some(if t > 0.0 { 1.0 - tail } else { tail })
}

/// Returns the `p` quantile of Student's t.
///
/// Uses Newton's method on `ln P(|T| > t)` as a function of ln t; this function is concave, and nearly a line far from
/// zero. The method starts at the normal quantile, which is never farther from zero than the result.
pub fn t_quantile(df: f64, p: f64) -> Option<f64> {
    let start = normal_quantile(p)?;
    if df.is_nan() || df <= 0.0 {
        return None;
    }
    if df.is_infinite() || start == 0.0 || start.is_infinite() {
        return Some(start);
    }
    let goal = (2.0 * p.min(1.0 - p)).ln();
    let mut t = start.abs();
    for _ in 0..100 {
        let reached = t_ln_p(t, df)?;
        let whole = df + t * t;
        // The slope is t times the density over the tail; t times the density is the leading factor of the tail.
        let slope = 2.0 * (ln_beta_front(df / 2.0, 0.5, df / whole, t * t / whole) - reached).exp();
        let step = (reached - goal) / slope;
        t *= step.clamp(-20.0, 20.0).exp();
        // What is left after a step is its square.
        if step.abs() < 1e-9 {
            break;
        }
    }
    Some(t.copysign(start))
}

/// Returns the natural logarithm of the two-sided p of a correlation `r` over `n` pairs, for independent pairs of
/// normal values: Student's t with n - 2 degrees of freedom at `r sqrt((n - 2) / (1 - r^2))`, for which the `x` of
/// [`t_ln_p`] is just `1 - r^2`. `None` below three pairs or if r is not within -1..=1.
pub fn correlation_ln_p(r: f64, n: u64) -> Option<f64> {
    if n < 3 || !(-1.0..=1.0).contains(&r) {
        return None;
    }
    let size = r.abs();
    Some(ln_beta_regularised((n - 2) as f64 / 2.0, 0.5, (1.0 - size) * (1.0 + size), size * size))
}

/// Returns the natural logarithm of the upper-tail p of Fisher's F with `between` and `within` degrees of freedom:
/// `I_x(within/2, between/2)` with `x = within / (within + between f)`.
pub fn f_ln_p(f: f64, between: f64, within: f64) -> Option<f64> {
    if f.is_nan() || !(between > 0.0 && within > 0.0) {
        return None;
    }
    if f <= 0.0 {
        return Some(0.0);
    }
    let whole = within + between * f;
    Some(if whole.is_infinite() {
        f64::NEG_INFINITY
    } else {
        ln_beta_regularised(within / 2.0, between / 2.0, within / whole, between * f / whole)
    })
}

/// Returns the natural logarithm of the upper-tail p of chi squared: `Q(df/2, x/2)`.
pub fn chi2_ln_p(x: f64, df: f64) -> Option<f64> {
    if x.is_nan() || df.is_nan() || df <= 0.0 {
        return None;
    }
    Some(ln_gamma_upper(df / 2.0, x / 2.0))
}

/// Returns the `p` quantile of chi squared, by bisection of its tail.
pub fn chi2_quantile(df: f64, p: f64) -> Option<f64> {
    if df.is_nan() || df <= 0.0 || !(0.0..=1.0).contains(&p) {
        return None;
    }
    if p <= 0.0 || p >= 1.0 {
        return Some(if p <= 0.0 { 0.0 } else { f64::INFINITY });
    }
    let is_below = |x: f64| chi2_ln_p(x, df).is_some_and(|ln_p| -ln_p.exp_m1() < p);
    let (mut low, mut high) = (0.0, df.max(1.0));
    while high.is_finite() && is_below(high) {
        (low, high) = (high, 2.0 * high);
    }
    loop {
        let middle = f64::midpoint(low, high);
        if !(low < middle && middle < high) {
            return Some(high);
        }
        if is_below(middle) { low = middle } else { high = middle }
    }
}

/// Returns `P(B <= k)` of a binomial of `n` draws with probability `q`: `I_(1-q)(n - k, k + 1)`.
pub fn binomial_cdf(k: f64, n: f64, q: f64) -> Option<f64> {
    binomial(k, n, q, |k| ln_beta_regularised(n - k, k + 1.0, 1.0 - q, q), 1.0)
}

/// Returns `P(B > k)` of a binomial of `n` draws with probability `q`: `I_q(k + 1, n - k)`.
pub fn binomial_sf(k: f64, n: f64, q: f64) -> Option<f64> {
    binomial(k, n, q, |k| ln_beta_regularised(k + 1.0, n - k, q, 1.0 - q), 0.0)
}

fn binomial(k: f64, n: f64, q: f64, ln_tail: impl Fn(f64) -> f64, beyond: f64) -> Option<f64> {
    let k = k.floor();
    if !(k >= -1.0 && n >= k && (0.0..=1.0).contains(&q)) {
        return None;
    }
    Some(if k < 0.0 {
        1.0 - beyond
    } else if k >= n {
        beyond
    } else {
        ln_tail(k).exp()
    })
}

/// Returns the natural logarithm of the two-sided p of a standard normal value.
pub fn normal_ln_p(z: f64) -> f64 {
    // A normal squared is chi squared with one degree of freedom.
    ln_gamma_upper(0.5, z * z / 2.0)
}

/// Returns `P(Z <= z)` of a standard normal; NaN for NaN.
pub fn normal_cdf(z: f64) -> f64 {
    let tail = normal_ln_p(z).exp() / 2.0;
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// Returns the `p` quantile of a standard normal, by Halley's method, starting from the approximation of Abramowitz and
/// Stegun 26.2.23.
pub fn normal_quantile(p: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    let tail = p.min(1.0 - p);
    let sign = if p < 0.5 { -1.0 } else { 1.0 };
    if tail == 0.0 {
        return Some(sign * f64::INFINITY);
    }
    if tail >= 0.5 {
        return Some(0.0);
    }
    let goal = tail.ln() + LN_2;
    let t = (-2.0 * tail.ln()).sqrt();
    let mut z =
        t - (2.515_517 + t * (0.802_853 + t * 0.010_328)) / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    for _ in 0..4 {
        // g = ln P(|Z| > z) - goal; its slope is minus the hazard h, whose own slope is h (h - z).
        let reached = normal_ln_p(z);
        let hazard = (-z * z / 2.0 - reached).exp() * (2.0 / PI).sqrt();
        let newton = (reached - goal) / hazard;
        z += newton / (1.0 - newton * (hazard - z) / 2.0);
    }
    Some(sign * z)
}

/// Returns the natural logarithm of the asymptotic two-sided p of the Kolmogorov-Smirnov D of samples of `n` and `m`
/// values: `2 sum (-1)^(k-1) exp(-2 k^2 l^2)` with `l = D sqrt(n m / (n + m))` (Kolmogorov 1933), and for a small `l`
/// its transformed series.
pub fn kolmogorov_ln_p(d: f64, n: f64, m: f64) -> f64 {
    let scaled = d * (n / (n + m) * m).sqrt();
    if scaled <= 0.0 {
        return 0.0;
    }
    let square = scaled * scaled;
    if scaled < 1.18 {
        let power = |odd: f64| (-(odd * odd) * PI * PI / (8.0 * square)).exp();
        let cdf = (2.0 * PI).sqrt() / scaled * [1.0, 3.0, 5.0, 7.0].map(power).iter().sum::<f64>();
        return (-cdf).ln_1p();
    }
    // After the first term: e^(-6 l^2) is below 3e-4, and four terms are below the rounding.
    let rest: f64 = [(2.0, -1.0), (3.0, 1.0), (4.0, -1.0)]
        .iter()
        .map(|&(k, sign): &(f64, f64)| sign * (-2.0 * (k * k - 1.0) * square).exp())
        .sum();
    LN_2 - 2.0 * square + rest.ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn p(r: f64, n: u64) -> f64 {
        correlation_ln_p(r, n).map_or(f64::NAN, f64::exp)
    }

    proptest! {
        /// Compares with the closed forms for three to six pairs (Student's t with 1 to 4 degrees of freedom).
        #[test]
        fn closed_forms_of_few_pairs(r in -0.999f64..0.999) {
            use std::f64::consts::FRAC_2_PI;
            let (a, root) = (r.abs(), (1.0 - r * r).sqrt());
            let forms = [
                1.0 - FRAC_2_PI * a.asin(),
                1.0 - a,
                1.0 - FRAC_2_PI * (a.asin() + a * root),
                1.0 - a * (3.0 - a * a) / 2.0,
            ];
            for (n, expected) in (3u64..).zip(forms) {
                let found = p(r, n);
                prop_assert!((found - expected).abs() <= 2e-14, "{} {} {}", n, found, expected);
            }
        }
    }

    #[test]
    fn known_points_and_edges() {
        // R: cor.test of the tuna, two-sided p = 2 * 0.05409.
        assert!((p(0.571_181_6, 9) / 2.0 - 0.054_09).abs() < 5e-6);
        assert!((p(0.0, 50) - 1.0).abs() < 1e-15);
        assert_eq!(correlation_ln_p(-1.0, 10), Some(f64::NEG_INFINITY));
        for (r, n) in [(0.5, 2), (1.1, 9), (f64::NAN, 9)] {
            assert_eq!(correlation_ln_p(r, n), None);
        }
        // Far out it is -n/2 ln(1/(1 - r^2)) and does not underflow.
        let far = correlation_ln_p(0.5, 4_000_000).unwrap_or(f64::NAN);
        assert!((far / (2e6 * 0.75f64.ln()) - 1.0).abs() < 1e-4, "{far}");
    }

    #[test]
    fn t_with_two_degrees_of_freedom_has_a_closed_form() {
        for t in [0.0f64, 1e-8, 0.3, 2.0, 50.0, 1e10] {
            // 1 - t / sqrt(2 + t^2) = 2 / (2 + t^2 + t sqrt(2 + t^2))
            let expected = (2.0 / (2.0 + t * t + t * (2.0 + t * t).sqrt())).ln();
            let found = t_ln_p(-t, 2.0).unwrap_or(f64::NAN);
            assert!((found - expected).abs() <= 1e-13 * expected.abs().max(1.0), "{t}");
        }
        assert_eq!(t_ln_p(1.0, 0.0), None);
        assert_eq!(t_ln_p(f64::INFINITY, 3.0), Some(f64::NEG_INFINITY));
    }

    #[test]
    fn quantiles_of_one_and_two_degrees_of_freedom_have_closed_forms() {
        for p in [1e-140, 1e-12, 0.001, 0.025, 0.3, 0.7, 0.975, 0.999_999] {
            let p: f64 = p;
            let cauchy = (p - 0.5).signum() / (std::f64::consts::PI * p.min(1.0 - p)).tan();
            let two = (2.0 * p - 1.0) / (2.0 * p * (1.0 - p)).sqrt();
            for (df, expected) in [(1.0, cauchy), (2.0, two)] {
                let found = t_quantile(df, p).unwrap_or(f64::NAN);
                assert!((found - expected).abs() <= 1e-13 * expected.abs().max(1e-3), "{df} {p}: {found} {expected}");
            }
        }
    }

    #[test]
    fn quantiles_of_chi_squared_with_two_degrees_of_freedom_have_a_closed_form() {
        for p in [0.0, 1e-9, 0.025, 0.5, 0.975, 0.999_999] {
            let expected = -2.0 * f64::ln_1p(-p);
            let found = chi2_quantile(2.0, p).unwrap_or(f64::NAN);
            assert!((found - expected).abs() <= 1e-9 * expected, "{p}: {found} {expected}");
        }
        assert_eq!(chi2_quantile(3.0, 1.0), Some(f64::INFINITY));
        assert_eq!(chi2_quantile(3.0, 1.5), None);
        assert_eq!(chi2_quantile(0.0, 0.5), None);
    }

    proptest! {
        #[test]
        fn a_quantile_is_the_inverse_of_its_tail(df in 0.2f64..1e7, p in 1e-9f64..0.5) {
            let found = 2.0 * t_cdf(t_quantile(df, p).unwrap_or(f64::NAN), df).unwrap_or(f64::NAN);
            prop_assert!((found / (2.0 * p) - 1.0).abs() < 1e-12, "{} {}: {}", df, p, found);
            let normal = normal_cdf(normal_quantile(p).unwrap_or(f64::NAN));
            prop_assert!((normal / p - 1.0).abs() < 1e-12, "{}: {}", p, normal);
        }

        #[test]
        fn a_binomial_is_the_sum_of_its_probabilities(n in 1u32..60, k in 0u32..60, q in 0.001f64..0.999) {
            let k = k.min(n);
            let (mut term, mut sum) = ((1.0 - q).powi(n as i32), 0.0);
            for at in 0..=k {
                sum += term;
                term *= f64::from(n - at) / f64::from(at + 1) * q / (1.0 - q);
            }
            let (low, high) = (binomial_cdf(k.into(), n.into(), q), binomial_sf(k.into(), n.into(), q));
            prop_assert!((low.unwrap_or(f64::NAN) - sum).abs() < 1e-12);
            prop_assert!((high.unwrap_or(f64::NAN) - (1.0 - sum)).abs() < 1e-12);
        }

        /// Chi squared with two degrees of freedom is exponential; the tail of F with two numerator degrees of freedom
        /// is a power.
        #[test]
        fn tails_with_closed_forms(x in 0.0f64..5000.0, within in 1.0f64..1e6) {
            let chi2 = chi2_ln_p(x, 2.0).unwrap_or(f64::NAN);
            prop_assert!((chi2 + x / 2.0).abs() <= 1e-13 * x.max(1.0), "{} {}", x, chi2);
            let f = f_ln_p(x, 2.0, within).unwrap_or(f64::NAN);
            let expected = -within / 2.0 * (2.0 * x / within).ln_1p();
            prop_assert!((f - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{} {} {}", x, f, expected);
        }
    }

    #[test]
    fn the_series_of_kolmogorov_meet() {
        let [below, above] = [1.18 - 1e-12, 1.18].map(|l: f64| kolmogorov_ln_p(l, 2.0, 2.0));
        assert!((below - above).abs() < 1e-10);
        assert!(kolmogorov_ln_p(0.0, 5.0, 5.0).abs() < f64::EPSILON);
    }
}
